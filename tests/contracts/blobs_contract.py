"""What every result store keeps to. An adapter's test class inherits this and says how its store is opened."""

from __future__ import annotations

import os
import time
import tracemalloc
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.blobs import KeptBlobs, Missing, ResultRef, is_ref
from tests.cases import cases
from tests.contracts import blobs_child

FAR_FUTURE = 4e9


class BlobsContract(ABC):
    tick = 0.02
    rounds = 15

    @pytest.fixture(autouse=True)
    def _stores(self, place: None) -> Iterator[None]:
        """`place`, a fixture of the adapter's own, makes the place where the store lies, and outlives what is opened in it."""
        self._opened: list[KeptBlobs] = []
        yield
        for store in self._opened:
            store.close()

    def open_store(self) -> KeptBlobs:
        """The same store each time within a test."""
        store = self.opened()
        self._opened.append(store)
        return store

    @abstractmethod
    def opened(self) -> KeptBlobs: ...

    def open_fresh(self) -> KeptBlobs:
        """The same store, and no copy of what is in it."""
        return self.open_store()

    @abstractmethod
    def damage(self, ref: ResultRef) -> None:
        """Change a byte of what is stored, behind the store's back; what is still to be read of it is not its size."""

    def age(self) -> None:
        """Let so much time go by that what is put now is younger than what was put before: clocks of files tick slowly."""
        time.sleep(self.tick)

    def test_what_is_put_is_got_back(self) -> None:
        store = self.open_store()
        for content in (b"", b"x", bytes(range(256)) * 5_000):
            assert store.get(store.put([content])) == content

    def test_chunks_are_one_result(self) -> None:
        store = self.open_store()
        ref = store.put(str(number).encode() for number in range(1_000))
        assert store.get(ref) == b"".join(str(number).encode() for number in range(1_000))

    def test_a_reference_says_what_is_stored(self) -> None:
        ref = self.open_store().put([b"a,b\n", b"1,2\n"], media="text/csv", schema_hint={"columns": ["a", "b"]})
        assert (ref.size, ref.checksum) == (8, sha256(b"a,b\n1,2\n").hexdigest())
        assert (ref.media, ref.schema_hint) == ("text/csv", {"columns": ["a", "b"]})
        assert ref.checksum[2:] in ref.key

    def test_a_reference_survives_the_log(self) -> None:
        store = self.open_store()
        ref = store.put([b"content"], schema_hint=[1, None])
        assert is_ref(ref.as_json())
        assert ResultRef.from_json(ref.as_json()) == ref
        assert self.open_store().get(ResultRef.from_json(ref.as_json())) == b"content"

    def test_equal_contents_have_one_key(self) -> None:
        store = self.open_store()
        assert store.put([b"ab", b"c"]) == store.put([b"a", b"bc"])
        assert store.put([b"abc"]).key != store.put([b"abd"]).key

    def test_the_path_leads_to_the_same_bytes(self) -> None:
        store = self.open_store()
        ref = store.put([b"to be streamed"])
        assert Path(store.path(ref)).read_bytes() == b"to be streamed"
        assert store.path(ref) == store.path(ref)

    def test_what_was_deleted_is_told_to_be_missing(self) -> None:
        store = self.open_store()
        kept, ref = store.put([b"kept"]), store.put([b"content"])
        store.path(ref)
        store.delete(ref)
        for look in (store.get, store.path):
            with pytest.raises(Unavailable, match=r"`sha256/.*` is not there"):
                look(ref)
        store.delete(ref)
        assert store.get(kept) == b"kept"
        assert store.get(store.put([b"content"])) == b"content"

    def test_a_reference_that_does_not_fit_the_content_is_told(self) -> None:
        store = self.open_store()
        ref = store.put([b"content"])
        with pytest.raises(Unavailable, match="is damaged"):
            store.get(replace(ref, size=8))
        with pytest.raises(Unavailable, match="is damaged"):
            store.get(replace(ref, checksum="0" * 64))

    def test_a_reference_into_another_store_is_refused(self) -> None:
        store = self.open_store()
        foreign = replace(store.put([b"content"]), store="elsewhere")
        for act in (store.get, store.path, store.delete):
            with pytest.raises(Refused, match="`elsewhere:sha256"):
                act(foreign)

    def test_an_error_of_whoever_makes_the_chunks_passes_through_and_nothing_is_stored(self) -> None:
        def chunks() -> Iterator[bytes]:
            yield b"half"
            raise ConnectionResetError("the source went away")

        store = self.open_store()
        with pytest.raises(ConnectionResetError, match="the source went away"):
            store.put(chunks())
        assert store.get(store.put([b"half"])) == b"half"

    @cases(
        "key",
        [
            "../../../etc/passwd",
            "sha256/../../../../../etc/passwd",
            "/etc/passwd",
            "sha256/ab/" + "c" * 61,
            "sha256/AB/" + "c" * 62,
            "sha256/ab/" + "c" * 62 + "\n",
            "sha256/ab/*",
            "",
        ],
    )
    def test_a_key_of_another_shape_is_refused(self, key: str) -> None:
        store = self.open_store()
        ref = replace(store.put([b"content"]), key=key)
        for act in (store.get, store.path, store.delete, lambda ref: list(store.read(ref))):
            with pytest.raises(Refused, match="is not a reference into the"):
                act(ref)

    def test_what_was_never_put_is_missing(self) -> None:
        store = self.open_store()
        checksum = sha256(b"never put").hexdigest()
        ref = replace(store.put([b"content"]), key=f"sha256/{checksum[:2]}/{checksum[2:]}", checksum=checksum, size=9)
        for look in (store.get, store.path, lambda ref: list(store.read(ref))):
            with pytest.raises(Missing, match=r"`sha256/.*` is not there"):
                look(ref)
        store.delete(ref)
        assert store.seen(ref.key) is None
        assert store.size(ref.key) is None
        assert not store.discard(ref.key, FAR_FUTURE)

    def test_it_can_be_read_in_pieces(self) -> None:
        store = self.open_store()
        content = os.urandom(3_000_000)
        ref = store.put([content])
        assert b"".join(store.read(ref)) == content
        assert store.size(ref.key) == len(content)

    def test_many_threads_may_put_the_same_and_different_results(self) -> None:
        store = self.open_store()
        contents = [str(number % 5).encode() * 10_000 for number in range(40)]
        with ThreadPoolExecutor(6) as pool:
            refs = list(pool.map(lambda content: store.put([content]), contents))
            assert list(pool.map(store.get, refs)) == contents
            assert {Path(path).read_bytes() for path in pool.map(store.path, refs)} == set(contents)
        assert {ref.key for ref in refs} == {key for key, _ in store.keys(FAR_FUTURE)}

    def test_damage_is_told_and_healed_by_putting_it_again(self) -> None:
        store = self.open_store()
        ref = store.put([b"content" * 1_000])
        self.damage(ref)
        for look in (store.get, lambda ref: list(store.read(ref))):
            with pytest.raises(Unavailable, match="is damaged"):
                look(ref)
        store.put([b"content" * 1_000])
        assert store.get(ref) == b"content" * 1_000
        assert Path(store.path(ref)).read_bytes() == b"content" * 1_000

    def test_the_keeper_sees_every_key_with_its_age(self) -> None:
        store = self.open_store()
        refs = [store.put([f"content {number}".encode()]) for number in range(5)]
        listed = dict(store.keys(FAR_FUTURE))
        assert listed == {ref.key: store.seen(ref.key) for ref in refs}
        assert all(abs(seen - time.time()) < 3_600 for seen in listed.values())
        assert list(store.keys(min(listed.values()))) == []

    def test_the_keeper_sees_only_what_is_old_enough(self) -> None:
        store = self.open_store()
        old = store.put([b"old"])
        self.age()
        young = store.put([b"young"])
        border = store.seen(young.key)
        assert border is not None
        assert [key for key, _ in store.keys(border)] == [old.key]

    def test_putting_it_again_makes_it_young(self) -> None:
        store = self.open_store()
        ref = store.put([b"content"])
        first = store.seen(ref.key)
        self.age()
        store.put([b"cont", b"ent"])
        second = store.seen(ref.key)
        assert first is not None
        assert second is not None
        assert second > first

    def test_what_was_put_again_is_not_discarded(self) -> None:
        store = self.open_store()
        ref = store.put([b"content"])
        ((key, seen),) = store.keys(FAR_FUTURE)
        self.age()
        store.put([b"content"])
        assert not store.discard(key, seen)
        assert store.get(ref) == b"content"

    def test_what_is_discarded_is_gone_and_can_be_put_again(self) -> None:
        store = self.open_store()
        kept, ref = store.put([b"kept"]), store.put([b"content"])
        seen = store.seen(ref.key)
        assert seen is not None
        assert store.discard(ref.key, seen)
        assert not store.discard(ref.key, seen)
        with pytest.raises(Missing):
            store.get(ref)
        assert [key for key, _ in store.keys(FAR_FUTURE)] == [kept.key]
        assert store.get(store.put([b"content"])) == b"content"

    def test_discarding_never_undoes_a_put(self) -> None:
        """A sweeper and a writer at once: whichever comes first, what the writer has put is there afterwards."""
        store, sweeper = self.open_store(), self.open_store()
        with ThreadPoolExecutor(2) as pool:
            for _ in range(self.rounds):
                ref = store.put([b"content" * 1_000])
                seen = store.seen(ref.key)
                assert seen is not None
                self.age()
                discarding = pool.submit(sweeper.discard, ref.key, seen)
                putting = pool.submit(store.put, [b"content" * 1_000])
                discarding.result()
                assert putting.result() == ref
                assert store.seen(ref.key) is not None
                assert self.open_fresh().get(ref) == b"content" * 1_000

    def test_tidying_leaves_every_result(self) -> None:
        store = self.open_store()
        refs = [store.put([str(number).encode()]) for number in range(5)]
        store.tidy(FAR_FUTURE)
        assert [store.get(ref) for ref in refs] == [str(number).encode() for number in range(5)]

    def test_it_may_be_closed_twice(self) -> None:
        store = self.open_store()
        store.put([b"content"])
        store.close()
        store.close()


class SharedBlobsContract(BlobsContract):
    """What a store keeps to that several processes, perhaps on several machines, use at once."""

    @abstractmethod
    def opened_elsewhere(self) -> KeptBlobs:
        """The same store as another machine sees it, which has never read anything from it."""

    @abstractmethod
    def spec(self) -> str:
        """What a setting says to mean this store."""

    def open_fresh(self) -> KeptBlobs:
        return self.open_elsewhere()

    def open_elsewhere(self) -> KeptBlobs:
        store = self.opened_elsewhere()
        self._opened.append(store)
        return store

    def test_another_machine_reads_what_was_put_here(self) -> None:
        content = os.urandom(2_500_000)
        ref = self.open_store().put([content])
        assert self.open_elsewhere().get(ref) == content
        there = self.open_elsewhere()
        assert Path(there.path(ref)).read_bytes() == content
        assert there.path(ref) == there.path(ref)
        assert b"".join(self.open_elsewhere().read(ref)) == content

    def test_large_results_take_little_memory(self) -> None:
        chunk = os.urandom(64 * 1024)
        here, there = self.open_store(), self.open_elsewhere()
        here.put([b"what is loaded once"])
        there.put([b"what is loaded once"])
        with little_memory():
            ref = here.put(chunk for _ in range(400))
        with little_memory():
            assert sum(len(piece) for piece in there.read(ref)) == 400 * len(chunk)
        with little_memory():
            assert Path(there.path(ref)).stat().st_size == 400 * len(chunk)
        assert ref.size == 400 * len(chunk)

    def test_processes_may_put_the_same_at_once(self, tmp_path: Path) -> None:
        children = [blobs_child.start(self.spec(), tmp_path / f"child-{number}") for number in range(3)]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        said = [child.communicate("go\n", timeout=60)[0] for child in children]
        assert [child.returncode for child in children] == [0, 0, 0]
        keys = [f"sha256/{one[:2]}/{one[2:]}" for one in (sha256(data).hexdigest() for data in blobs_child.CONTENTS)]
        assert [one.split() for one in said] == [keys * 3] * 3
        store = self.open_store()
        assert sorted({key for key, _ in store.keys(FAR_FUTURE)}) == sorted(keys)
        for key, content in zip(keys, blobs_child.CONTENTS, strict=True):
            ref = ResultRef(store.stores[0], key, len(content), sha256(content).hexdigest())
            assert store.get(ref) == content


@contextmanager
def little_memory() -> Iterator[None]:
    """Far less than a large result has, whatever its size."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * 1024 * 1024
