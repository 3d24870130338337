from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.adapters.files import blobs as file_blobs
from penstock.adapters.files.blobs import FileBlobs
from penstock.kernel.errors import Unavailable
from tests.adapters import children


def stored(home: Path) -> list[Path]:
    """All files of the store, finished and unfinished."""
    return sorted(path for path in (home / "blobs").rglob("*") if path.is_file() and path.name != "lock")


def test_a_result_lies_in_a_file_named_after_its_content(tmp_path: Path) -> None:
    ref = FileBlobs(tmp_path).put([b"content"])
    name = tmp_path / "blobs" / ref.checksum[:2] / ref.checksum[2:]
    assert (ref.store, ref.key) == ("file", f"sha256/{ref.checksum[:2]}/{ref.checksum[2:]}")
    assert stored(tmp_path) == [name]
    assert FileBlobs(tmp_path).path(ref) == str(name)


def test_equal_contents_are_stored_once_and_written_once(tmp_path: Path) -> None:
    store = FileBlobs(tmp_path)
    first = Path(store.path(store.put([b"content"]))).stat()
    second = Path(store.path(store.put([b"con", b"tent"]))).stat()
    assert first.st_ino == second.st_ino
    assert len(stored(tmp_path)) == 1


@pytest.mark.parametrize(
    ("damage", "told"), [(b"contenT", "its SHA-256 is not"), (b"cont", "it has 4 bytes and should have 7")]
)
def test_damage_is_told_with_the_name_of_the_file_and_healed_by_storing_again(
    tmp_path: Path, damage: bytes, told: str
) -> None:
    store = FileBlobs(tmp_path)
    ref = store.put([b"content"])
    Path(store.path(ref)).write_bytes(damage)
    with pytest.raises(Unavailable, match=told) as error:
        store.get(ref)
    assert str(tmp_path) in error.value.message
    assert "backup" in str(error.value.hint)
    store.put([b"content"])
    assert store.get(ref) == b"content"


def test_nothing_is_left_behind_when_the_source_fails(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise OSError("the source went away")

    with pytest.raises(OSError, match="the source went away"):
        FileBlobs(tmp_path).put(chunks())
    assert stored(tmp_path) == []


def test_a_full_disk_is_told_and_nothing_is_left_behind(tmp_path: Path) -> None:
    said = children.finish(children.start("put_beyond_a_limit", tmp_path, 1_000_000))
    assert said.startswith("Unavailable the disk is full: `")
    assert "make room and resume the run" in said
    assert stored(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable, match=r"file` cannot be used: file exists"):
        FileBlobs(tmp_path / "file").put([b"x"])


def test_threads_that_put_the_same_store_it_once(tmp_path: Path) -> None:
    contents = [str(number % 5).encode() * 10_000 for number in range(60)]
    with ThreadPoolExecutor(6) as pool:
        refs = list(pool.map(lambda content: FileBlobs(tmp_path).put([content]), contents))
    assert [FileBlobs(tmp_path).get(ref) for ref in refs] == contents
    assert len(stored(tmp_path)) == 5


def test_what_a_dead_process_left_unfinished_is_swept_when_it_is_old(tmp_path: Path) -> None:
    FileBlobs(tmp_path).put([b"content"])
    old, young = (tmp_path / "blobs" / "unfinished" / name for name in ("old", "young"))
    for file in (old, young):
        file.write_bytes(b"half")
    os.utime(old, (1.0, 1.0))
    FileBlobs(tmp_path).put([b"content"])
    assert (old.exists(), young.exists()) == (False, True)


def test_tidying_removes_unfinished_files_that_are_old(tmp_path: Path) -> None:
    store = FileBlobs(tmp_path)
    store.put([b"content"])
    old, young = (tmp_path / "blobs" / "unfinished" / name for name in ("old", "young"))
    for file in (old, young):
        file.write_bytes(b"half")
    os.utime(old, (1.0, 1.0))
    store.tidy(1_000.0)
    assert (old.exists(), young.exists()) == (False, True)


def test_a_process_that_is_frozen_with_the_lock_is_told_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FileBlobs(tmp_path).put([b"content"])
    monkeypatch.setattr(file_blobs, "LOCK_SECONDS", 0.01)
    with (tmp_path / "blobs" / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match=r"lock` is held by a process that does not go on"):
            FileBlobs(tmp_path).put([b"content"])
    assert len(stored(tmp_path)) == 1


def test_other_files_in_the_folder_are_none_of_its_keys(tmp_path: Path) -> None:
    store = FileBlobs(tmp_path)
    ref = store.put([b"content"])
    (tmp_path / "blobs" / "ab").mkdir()
    (tmp_path / "blobs" / "ab" / "notes.txt").write_text("by hand")
    assert [key for key, _ in store.keys(4e9)] == [ref.key]


def test_a_store_that_was_never_used_is_empty(tmp_path: Path) -> None:
    store = FileBlobs(tmp_path / "nowhere")
    assert list(store.keys(4e9)) == []
    store.tidy(4e9)
    assert not (tmp_path / "nowhere").exists()
