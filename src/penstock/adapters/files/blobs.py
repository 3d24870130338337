"""The result store on local files: `<home>/blobs/ab/cdef…`, named after the SHA-256 of what is in them.

Law: a file under its final name is whole and durable: it is written and synchronised under another name first.
Equal contents are stored once, so deleting is for those who know that nothing refers to them any more.
A file's time of change is when its content was last put.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.adapters.files.blob_folder import (
    BlobFolder,
    Written,
    check,
    guarding,
    is_intact,
    missing,
    pieces,
    verified,
)
from penstock.adapters.files.folders import make_folder, sync_folder
from penstock.kernel.values import Json
from penstock.ports.blobs import Missing, ResultRef, own_key
from penstock.ports.state_folder import PRIVATE_FOLDER

STORE = "file"


class FileBlobs:
    stores = (STORE,)

    def __init__(self, home: Path | str) -> None:
        self._folder = BlobFolder(Path(home) / "blobs")

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        with self._folder.written(chunks) as written:
            self._make_durable(written)
            return ResultRef(STORE, written.key, written.size, written.checksum, media, schema_hint)

    def get(self, ref: ResultRef) -> bytes:
        path = self._file(ref)
        with guarding(path):
            try:
                data = path.read_bytes()
            except FileNotFoundError as error:
                raise _missing(ref, path) from error
        check(path, ref.size, ref.checksum, len(data), hashlib.sha256(data).hexdigest())
        return data

    def path(self, ref: ResultRef) -> str:
        path = self._file(ref)
        with guarding(path):
            try:
                size = path.stat().st_size
            except FileNotFoundError as error:
                raise _missing(ref, path) from error
        check(path, ref.size, ref.checksum, size, ref.checksum)
        return str(path)

    def delete(self, ref: ResultRef) -> None:
        path = self._file(ref)
        with guarding(path):
            path.unlink(missing_ok=True)

    def read(self, ref: ResultRef) -> Iterator[bytes]:
        path = self._file(ref)
        with guarding(path):
            try:
                yield from verified(pieces(path), ref.key, path)
            except FileNotFoundError as error:
                raise _missing(ref, path) from error

    def seen(self, key: str) -> float | None:
        found = self._stat(key)
        return None if found is None else found.st_mtime

    def size(self, key: str) -> int | None:
        found = self._stat(key)
        return None if found is None else found.st_size

    def _stat(self, key: str) -> os.stat_result | None:
        path = self._folder.file(key)
        with guarding(path):
            try:
                return path.stat()
            except FileNotFoundError:
                return None

    def keys(self, older_than: float) -> Iterator[tuple[str, float]]:
        for key, stat in self._folder.files():
            if stat.st_mtime < older_than:
                yield key, stat.st_mtime

    def discard(self, key: str, seen: float) -> bool:
        def unlink_if_old(path: Path, stat: os.stat_result) -> bool:
            if stat.st_mtime > seen:
                return False
            path.unlink()
            return True

        return self._folder.change(self._folder.file(key), unlink_if_old)

    def tidy(self, older_than: float) -> None:
        self._folder.sweep_unfinished(older_than)

    def close(self) -> None:
        """Nothing is held between calls."""

    def _file(self, ref: ResultRef) -> Path:
        return self._folder.file(own_key(ref, STORE))

    def _make_durable(self, written: Written) -> None:
        """Under its final name. An equal file that is already there is kept and made young, unless it has been damaged."""
        target = self._folder.file(written.key)
        with guarding(target):
            make_folder(target.parent, PRIVATE_FOLDER)
            kept = is_intact(target, written.size, written.checksum) and self._folder.change(target, _make_young)
            if not kept:
                os.fsync(written.descriptor)
                self._folder.settle(written)
            sync_folder(target.parent)


def _make_young(path: Path, _: os.stat_result) -> bool:
    os.utime(path)
    return True


def _missing(ref: ResultRef, path: Path) -> Missing:
    return missing(ref.key, f"`{path}` is missing")
