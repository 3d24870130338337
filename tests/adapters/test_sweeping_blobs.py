from __future__ import annotations

import asyncio
import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.adapters.blob_stores import Mention, Swept, mentions, sweep, would_sweep
from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.adapters.objects import ObjectBlobs
from penstock.adapters.sqlite.log import SqliteLog
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.blobs import KeptBlobs, ResultRef, key_of
from penstock.ports.results import decode, encode, loader, materialised, thawed
from tests.depth import times
from tests.engine import play

quick = settings(max_examples=times(30), deadline=None, database=None, derandomize=True)
DAY = 86_400.0
PARQUET = "application/vnd.apache.parquet"


class Hands:
    """A clock that is moved by hand."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def without_mark(ref: ResultRef) -> dict[str, Any]:
    """As the rows of a component are written into the log."""
    return {name: value for name, value in ref.as_json().items() if name != "$ref"}


def by_number(text: str) -> str:
    return "".join(f"\\u{ord(one):04x}" if one.isalnum() or one == "/" else one for one in text)


# Every way in which a reference can stand in JSON.
SHAPES: dict[str, Callable[[ResultRef], bytes]] = {
    "as it is written": lambda ref: encode(ref.as_json()),
    "with spaces": lambda ref: json.dumps(ref.as_json(), indent=2).encode(),
    "in another order": lambda ref: json.dumps(ref.as_json(), sort_keys=True).encode(),
    "as rows": lambda ref: encode({"at": "a.main", "stored": without_mark(ref)}),
    "with escaped slashes": lambda ref: encode(ref.as_json()).replace(b"/", b"\\/"),
    "by numbers": lambda ref: encode(ref.as_json()).replace(ref.key.encode(), by_number(ref.key).encode()),
    "in a text": lambda ref: encode(encode(ref.as_json()).decode()),
    "in a text in a text": lambda ref: encode(encode(encode(ref.as_json()).decode()).decode()),
}


@st.composite
def worlds(draw: st.DrawFn) -> list[tuple[list[tuple[int, str]], bool, bool, str | None]]:
    """Results that refer to earlier ones: (what it refers to and how, is it old, does it hold JSON, how an entry names it)."""
    world = []
    for number in range(draw(st.integers(1, 9))):
        inside = draw(
            st.lists(st.tuples(st.integers(0, max(0, number - 1)), st.sampled_from(sorted(SHAPES))), max_size=3)
        )
        named = draw(st.none() | st.sampled_from(sorted(SHAPES)))
        world.append((inside if number else [], draw(st.booleans()), draw(st.integers(0, 3)) > 0, named))
    return world


@given(worlds())
@quick
def test_what_can_be_reached_stays_and_what_nothing_mentions_goes(
    world: list[tuple[list[tuple[int, str]], bool, bool, str | None]],
) -> None:
    clock = Hands()
    blobs = MemoryBlobs(clock)
    refs: list[ResultRef] = []
    for number, (inside, is_old, holds_json, _) in enumerate(world):
        clock.now = 1_000_000.0 if is_old else 1_000_000.0 + 2 * DAY
        content = b'{"number":%d,"inside":[%s]}' % (number, b",".join(SHAPES[how](refs[one]) for one, how in inside))
        refs.append(blobs.put([content], "application/json" if holds_json else PARQUET))
    entries = [b'{"result":%s}' % SHAPES[named](ref) for ref, (*_, named) in zip(refs, world, strict=True) if named]
    named = {number for number, (*_, how) in enumerate(world) if how}

    swept = sweep(blobs, entries, DAY, now=1_000_000.0 + 2 * DAY)

    reachable = closure(world, named, lambda number: world[number][2])
    mentioned = closure(world, named, lambda number: True)
    left = {number for number, ref in enumerate(refs) if blobs.seen(ref.key) is not None}
    old = {number for number, (_, is_old, *_) in enumerate(world) if is_old}
    assert reachable <= left
    assert left <= mentioned | (set(range(len(world))) - old)
    assert swept == (len(world) - len(left), len(left & old))
    load = loader(blobs)
    for entry in entries:
        materialised(thawed(decode(entry), load))


def closure(world: list[Any], start: set[int], can_hold_references: Callable[[int], bool]) -> set[int]:
    found: set[int] = set()
    waiting = list(start)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += [one for one, _ in world[number][0]] if can_hold_references(number) else []
    return found


@given(
    st.lists(st.tuples(st.sampled_from(sorted(SHAPES)), st.integers(0, 5_000)), min_size=1, max_size=4),
    st.lists(st.integers(1, 9_000), max_size=12),
)
@quick
def test_mentions_are_found_wherever_the_pieces_are_cut(shapes: list[tuple[str, int]], cuts: list[int]) -> None:
    data = b""
    for number, (how, filling) in enumerate(shapes):
        ref = reference(f"{number}".encode(), PARQUET if number % 2 else "application/json")
        data += b'"' + b"x" * filling + b'",' + SHAPES[how](ref) + b","
    assert set(mentions(pieces(data, cuts))) == set(mentions([data]))
    assert {one.checksum for one in mentions([data])} == {sha256(f"{n}".encode()).digest() for n in range(len(shapes))}


def reference(content: bytes, media: str = "application/json", store: str = "memory") -> ResultRef:
    checksum = sha256(content).hexdigest()
    return ResultRef(store, key_of(checksum), len(content), checksum, media)


def pieces(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    for size in sizes:
        yield data[:size]
        data = data[size:]
    yield data


def test_a_mention_says_where_the_result_lies_and_whether_it_holds_json() -> None:
    ref = reference(b"content", PARQUET, "postgres")
    checksum = bytes.fromhex(ref.checksum)
    assert list(mentions([encode(ref.as_json())])) == [Mention(checksum, "postgres", False)]
    assert list(mentions([encode(without_mark(reference(b"content")))])) == [Mention(checksum, "memory", True)]
    assert list(mentions([encode(f"see {ref.key}")])) == [Mention(checksum, None, None)]
    assert list(mentions([b"{}", b'"sha256/ab/short"'])) == []


@pytest.mark.parametrize("medias", [(PARQUET, "application/json"), ("application/json", PARQUET)])
def test_a_result_is_looked_into_if_one_of_its_mentions_says_that_it_holds_json(medias: tuple[str, str]) -> None:
    blobs = MemoryBlobs()
    inner = blobs.put([b"inner"])
    manifests = [blobs.put([encode([inner.as_json()])], media) for media in medias]
    assert sweep(blobs, [encode(ref.as_json()) for ref in manifests], DAY, now=4e9) == (0, 2)


def test_what_was_put_within_the_grace_stays() -> None:
    clock = Hands()
    blobs = MemoryBlobs(clock)
    old = blobs.put([b"old"])
    clock.now += DAY
    young = blobs.put([b"young"])
    assert sweep(blobs, [], 3_600.0, now=clock.now) == Swept(1, 0)
    assert (blobs.seen(old.key), blobs.seen(young.key)) == (None, clock.now)


def test_what_is_put_again_while_the_sweep_looks_around_stays() -> None:
    clock = Hands()
    blobs = MemoryBlobs(clock)
    ref = blobs.put([b"content"])
    clock.now += 2 * DAY

    def entries() -> Iterator[bytes]:
        blobs.put([b"content"])
        yield b"{}"

    assert sweep(blobs, entries(), DAY).deleted == 0
    assert blobs.get(ref) == b"content"


def test_what_is_put_again_between_being_listed_and_being_discarded_stays() -> None:
    clock = Hands()

    class Interrupted(MemoryBlobs):
        def discard(self, key: str, seen: float) -> bool:
            self.put([b"content"])
            return super().discard(key, seen)

    blobs = Interrupted(clock)
    ref = blobs.put([b"content"])
    clock.now += 2 * DAY
    assert sweep(blobs, [], DAY) == Swept(0, 1)
    assert blobs.get(ref) == b"content"


def test_what_would_be_swept_is_counted_and_left_alone() -> None:
    clock = Hands()
    blobs = MemoryBlobs(clock)
    kept, inner = blobs.put([b"kept"], PARQUET), blobs.put([b"inner"], PARQUET)
    manifest = blobs.put([encode([inner.as_json()])])
    blobs.put([b"nobody's"], PARQUET)
    blobs.put([b"no more of anybody"], PARQUET)
    clock.now += 2 * DAY
    blobs.put([b"young"], PARQUET)
    referred = [encode(ref.as_json()) for ref in (kept, manifest)]
    assert would_sweep(blobs, referred, clock.now - DAY) == (2, len(b"nobody's") + len(b"no more of anybody"))
    assert sweep(blobs, referred, DAY, now=clock.now).deleted == 2
    assert would_sweep(blobs, referred, clock.now - DAY) == (0, 0)


def test_the_age_is_counted_by_the_clock_of_the_store() -> None:
    """The store's clock is years away from the one of this machine."""
    clock = Hands()
    blobs = MemoryBlobs(clock)
    ref = blobs.put([b"content"])
    clock.now += DAY - 10
    assert sweep(blobs, [], DAY).deleted == 0
    clock.now += 20
    assert sweep(blobs, [], DAY).deleted == 1
    assert blobs.seen(ref.key) is None


def test_a_result_that_is_missing_leads_nowhere_and_stops_nothing() -> None:
    clock = Hands()
    blobs = MemoryBlobs(clock)
    other = blobs.put([b"other"])
    assert sweep(blobs, [encode(reference(b"lost").as_json())], DAY, now=clock.now + 2 * DAY) == (1, 0)
    assert blobs.seen(other.key) is None


def test_nothing_is_removed_when_a_result_that_may_refer_to_others_cannot_be_read(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    inner = blobs.put([b"inner"])
    manifest = blobs.put([encode([inner.as_json()])])
    Path(blobs.path(manifest)).write_bytes(b"damaged")
    with pytest.raises(Unavailable, match="the results cannot be swept, because one of them cannot be read"):
        sweep(blobs, [encode(manifest.as_json())], DAY, now=4e9)
    assert blobs.seen(inner.key) is not None


def test_nothing_is_removed_when_a_result_that_may_refer_to_others_lies_in_a_store_that_is_not_open(
    tmp_path: Path,
) -> None:
    blobs = FileBlobs(tmp_path)
    ref = blobs.put([b"content"])
    elsewhere = encode(reference(b"manifest", store="postgres").as_json())
    with pytest.raises(Refused, match="lies in a postgres store, and none is open here"):
        sweep(blobs, [elsewhere], DAY, now=4e9)
    assert blobs.seen(ref.key) is not None
    rows_elsewhere = encode(reference(b"rows", PARQUET, "postgres").as_json())
    somebodys_text = encode(reference(b"text", store="a cupboard").as_json())
    assert sweep(blobs, [rows_elsewhere, somebodys_text], DAY, now=4e9) == (1, 0)


def test_a_grace_that_is_no_grace_is_refused() -> None:
    for grace in (0.0, 59.0, -1.0):
        with pytest.raises(Refused, match="is too short"):
            sweep(MemoryBlobs(), [], grace)


def test_many_entries_take_little_memory() -> None:
    blobs = MemoryBlobs()
    tracemalloc.start()
    try:
        swept = sweep(blobs, (encode(reference(b"%d" % n, PARQUET).as_json()) for n in range(5_000)), DAY)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert swept == (0, 0)
    assert peak < 300 * 1024


@pytest.mark.parametrize("kind", ["files", "objects"])
def test_old_files_are_swept_with_what_writers_left_behind(kind: str, tmp_path: Path) -> None:
    is_files = kind == "files"
    blobs: KeptBlobs = FileBlobs(tmp_path) if is_files else ObjectBlobs(f"file://{tmp_path}", tmp_path / "cache")
    refs = [blobs.put([f"{number}".encode()]) for number in range(20)]
    if is_files:
        (tmp_path / "blobs" / "unfinished" / "half").write_bytes(b"half")
    for file in tmp_path.rglob("*"):
        if file.is_file() and "cache" not in file.parts:
            os.utime(file, (1_000.0, 1_000.0))
    assert sweep(blobs, [encode(ref.as_json()) for ref in refs[:8]], DAY) == (12, 8)
    assert [ref for ref in refs if blobs.seen(ref.key) is not None] == refs[:8]
    assert not (tmp_path / "blobs" / "unfinished" / "half").exists()


BIG_LOOP = """
- step: start
  loop: {in: "{{ range(4) }}", iterator: item}
  tool: {kind: python, code: "def main(item):\\n    return {'item': item, 'text': 'x' * 200000}", args: {item: "{{ iter.item }}"}}
"""


def test_after_a_sweep_a_run_still_has_all_its_results(tmp_path: Path) -> None:
    """Results of iterations lie in the store, and so does the list of references to them, which is what the log refers to."""
    assert play(BIG_LOOP, tmp_path).status == "completed"
    blobs = FileBlobs(tmp_path / ".penstock")
    garbage = blobs.put([b"nobody's"])
    log = SqliteLog(tmp_path / ".penstock")
    payloads = [entry.payload for entry in log.read("run-1")]
    asyncio.run(log.close())
    before = {key for key, _ in blobs.keys(4e9)}
    assert sweep(blobs, payloads, DAY, now=4e9).deleted == 1
    assert {key for key, _ in blobs.keys(4e9)} == before - {garbage.key}
    load = loader(blobs)
    seen = json.dumps([materialised(thawed(decode(payload), load)) for payload in payloads])
    assert seen.count("x" * 200_000) >= 4
