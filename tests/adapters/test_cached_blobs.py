"""Local copies of far results; the store far away is a folder here, which is not the matter of these tests."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock.adapters.files.blobs import BlobCache
from penstock.adapters.objects import ObjectBlobs
from penstock.ports.blobs import ResultRef


class Steps:
    """A clock that goes on by a second whenever it is looked at, ahead of the kernel's own, which notes some reads, too."""

    def __init__(self) -> None:
        self.now = 3e9

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def copies(folder: Path) -> list[int]:
    """The sizes of all copies."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return sorted(path.stat().st_size for path in files)


CLOCK = Steps()


def opened(tmp_path: Path, limit: int = 10**9, hold_s: float = 0.0) -> ObjectBlobs:
    cache = BlobCache(tmp_path / "cache", limit, hold_s, CLOCK)
    return ObjectBlobs(f"file://{tmp_path / 'far'}", cache)


def put_far(tmp_path: Path, *contents: bytes) -> list[ResultRef]:
    """Results that somebody else has stored."""
    store = ObjectBlobs(f"file://{tmp_path / 'far'}", tmp_path / "other cache")
    return [store.put([content]) for content in contents]


def test_a_result_is_fetched_once(tmp_path: Path) -> None:
    (ref,) = put_far(tmp_path, b"content")
    store = opened(tmp_path)
    path = Path(store.path(ref))
    assert path.is_relative_to(tmp_path / "cache")
    first = path.stat()
    assert Path(store.path(ref)).stat().st_mtime_ns == first.st_mtime_ns
    assert store.get(ref) == b"content"


def test_what_was_put_here_need_not_be_fetched(tmp_path: Path) -> None:
    store = opened(tmp_path)
    ref = store.put([b"content"])
    for file in (tmp_path / "far").rglob("*"):
        if file.is_file():
            file.unlink()
    assert store.get(ref) == b"content"
    assert Path(store.path(ref)).read_bytes() == b"content"


def test_a_damaged_copy_is_fetched_again(tmp_path: Path) -> None:
    (ref,) = put_far(tmp_path, b"content")
    path = Path(opened(tmp_path).path(ref))
    for damage in (b"contenT", b"cont", b""):
        path.write_bytes(damage)
        assert opened(tmp_path).get(ref) == b"content"
        assert Path(opened(tmp_path).path(ref)).read_bytes() == b"content"


def test_a_copy_that_is_damaged_while_the_process_runs_is_noticed(tmp_path: Path) -> None:
    (ref,) = put_far(tmp_path, b"content")
    store = opened(tmp_path)
    path = Path(store.path(ref))
    path.write_bytes(b"contenT")
    os.utime(path, ns=(0, 0))
    assert store.get(ref) == b"content"
    assert Path(store.path(ref)).read_bytes() == b"content"


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    contents = [bytes([number]) * (1_000 + number) for number in range(8)]
    refs = put_far(tmp_path, *contents)
    store = opened(tmp_path, limit=5_200)
    for ref in refs[:4]:
        store.path(ref)
    store.path(refs[0])
    for ref in refs[4:6]:
        store.path(ref)
    assert copies(tmp_path / "cache") == [1_000, 1_003, 1_004, 1_005]


def test_a_copy_handed_out_a_short_time_ago_stays_even_when_it_is_too_much(tmp_path: Path) -> None:
    refs = put_far(tmp_path, *(bytes([number]) * 1_000 for number in range(8)))
    store = opened(tmp_path, limit=2_000, hold_s=3_600.0)
    paths = [Path(store.path(ref)) for ref in refs]
    assert all(path.exists() for path in paths)


def test_a_result_larger_than_the_limit_is_there_when_it_is_handed_out(tmp_path: Path) -> None:
    small, large = put_far(tmp_path, b"small" * 100, b"large" * 1_000)
    store = opened(tmp_path, limit=1_000)
    store.path(small)
    assert Path(store.path(large)).read_bytes() == b"large" * 1_000
    assert copies(tmp_path / "cache") == [5_000]


def test_several_stores_may_share_the_copies_and_the_limit(tmp_path: Path) -> None:
    contents = [bytes([number]) * 1_000 for number in range(12)]
    refs = put_far(tmp_path, *contents)

    def read_all(turn: int) -> list[bytes]:
        store = opened(tmp_path, limit=4_000)
        return [store.get(ref) for ref in refs[turn:] + refs[:turn] if store.path(ref)]

    with ThreadPoolExecutor(4) as pool:
        for turn, read in enumerate(pool.map(read_all, range(4))):
            assert read == contents[turn:] + contents[:turn]
    opened(tmp_path, limit=4_000).path(put_far(tmp_path, b"one more" * 125)[0])
    assert sum(copies(tmp_path / "cache")) <= 4_000


def test_threads_that_want_the_same_result_fetch_it_once(tmp_path: Path) -> None:
    (ref,) = put_far(tmp_path, b"content" * 100_000)
    fetched: list[str] = []

    class Watched(ObjectBlobs):
        def _bring(self, key: str):  # type: ignore[no-untyped-def]
            fetched.append(key)
            return super()._bring(key)

    store = Watched(f"file://{tmp_path / 'far'}", tmp_path / "cache")
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(store.path, [ref] * 16))) == 1
    assert fetched == [ref.key]


def test_a_deleted_result_has_no_copy_left(tmp_path: Path) -> None:
    store = opened(tmp_path)
    ref = store.put([b"content"])
    store.delete(ref)
    assert copies(tmp_path) == []
