from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.adapters.blob_stores import RoutedBlobs
from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.adapters.objects import ObjectBlobs
from penstock.kernel.errors import Refused
from penstock.ports.blobs import Missing


def test_new_results_go_to_the_default(tmp_path: Path) -> None:
    memory, files = MemoryBlobs(), FileBlobs(tmp_path)
    routed = RoutedBlobs(memory, files)
    ref = routed.put([b"content"], "text/plain", {"type": "string"})
    assert (ref.store, ref.media, ref.schema_hint) == ("memory", "text/plain", {"type": "string"})
    assert memory.get(ref) == b"content"
    assert files.seen(ref.key) is None
    assert routed.stores == ("memory", "file")


def test_a_reference_is_read_where_it_lies(tmp_path: Path) -> None:
    memory, files = MemoryBlobs(), FileBlobs(tmp_path / "files")
    objects = ObjectBlobs("memory:///", tmp_path / "cache")
    routed = RoutedBlobs(memory, files, objects)
    for store in (memory, files, objects):
        ref = store.put([f"in {store.stores[0]}".encode()])
        content = f"in {ref.store}".encode()
        assert routed.get(ref) == content
        assert b"".join(routed.read(ref)) == content
        assert Path(routed.path(ref)).read_bytes() == content
        routed.delete(ref)
        with pytest.raises(Missing):
            store.get(ref)


def test_the_same_content_in_two_stores_is_two_results(tmp_path: Path) -> None:
    memory, files = MemoryBlobs(), FileBlobs(tmp_path)
    routed = RoutedBlobs(memory, files)
    first, second = memory.put([b"content"]), files.put([b"content"])
    assert first.key == second.key
    routed.delete(first)
    assert routed.get(second) == b"content"


def test_a_reference_into_a_store_that_is_not_open_is_refused_with_those_that_are(tmp_path: Path) -> None:
    routed = RoutedBlobs(MemoryBlobs(), FileBlobs(tmp_path))
    foreign = replace(routed.put([b"content"]), store="postgres")
    for act in (routed.get, routed.path, routed.delete, routed.read):
        with pytest.raises(Refused, match=r"`postgres:sha256/.*` lies in a postgres store") as error:
            act(foreign)
        assert "open are `memory`, `file`" in str(error.value.hint)


def test_two_stores_of_one_kind_cannot_be_told_apart(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there are two file stores"):
        RoutedBlobs(FileBlobs(tmp_path / "a"), FileBlobs(tmp_path / "b"))


def test_the_keeper_sees_the_default_only(tmp_path: Path) -> None:
    memory, files = MemoryBlobs(), FileBlobs(tmp_path)
    routed = RoutedBlobs(memory, files)
    mine, other = routed.put([b"mine"]), files.put([b"other"])
    assert [key for key, _ in routed.keys(4e9)] == [mine.key]
    assert routed.seen(other.key) is None
    assert not routed.discard(other.key, 4e9)
    assert routed.discard(mine.key, 4e9)
    routed.tidy(4e9)
    assert routed.get(other) == b"other"
    routed.close()


def test_several_may_be_routed_through_several(tmp_path: Path) -> None:
    memory, files = MemoryBlobs(), FileBlobs(tmp_path)
    routed = RoutedBlobs(ObjectBlobs("memory:///", tmp_path / "cache"), RoutedBlobs(memory, files))
    assert routed.stores == ("object", "memory", "file")
    assert routed.get(files.put([b"content"])) == b"content"
