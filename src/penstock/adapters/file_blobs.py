"""The result store on local files: `<home>/blobs/ab/cdef…`, named after the SHA-256 of what is in them.

Law: a file under its final name is whole and durable: it is written and synchronised under another name first.
Equal contents are stored once, so deleting is for those who know that nothing refers to them any more.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.adapters.folders import make_folder, sync_folder, unavailable_file
from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import Json
from penstock.ports.blobs import ResultRef

STORE = "file"
KEY = re.compile(r"sha256/([0-9a-f]{2})/([0-9a-f]{62})")
READ_BYTES = 1024 * 1024
# Unfinished files of processes that died are swept once they are this old.
STALE_SECONDS = 24 * 3600.0


class FileBlobs:
    def __init__(self, home: Path | str) -> None:
        self._folder = Path(home) / "blobs"
        self._unfinished = self._folder / "unfinished"
        self._ready = False

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        self._get_ready()
        digest = hashlib.sha256()
        size = 0
        with self._unfinished_file() as (descriptor, name):
            # An error of whoever makes the chunks is his, and passes through as it is.
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                with _guarding(self._folder):
                    _write_all(descriptor, chunk)
            checksum = digest.hexdigest()
            ref = ResultRef(STORE, f"sha256/{checksum[:2]}/{checksum[2:]}", size, checksum, media, schema_hint)
            with _guarding(self._folder):
                self._settle(descriptor, name, self._file(ref), ref)
        return ref

    def get(self, ref: ResultRef) -> bytes:
        path = self._file(ref)
        with _guarding(path):
            try:
                data = path.read_bytes()
            except FileNotFoundError as error:
                raise _missing(ref, path) from error
        _check(ref, path, len(data), hashlib.sha256(data).hexdigest())
        return data

    def path(self, ref: ResultRef) -> str:
        path = self._file(ref)
        with _guarding(path):
            try:
                size = path.stat().st_size
            except FileNotFoundError as error:
                raise _missing(ref, path) from error
        _check(ref, path, size, ref.checksum)
        return str(path)

    def delete(self, ref: ResultRef) -> None:
        path = self._file(ref)
        with _guarding(path):
            path.unlink(missing_ok=True)

    def _file(self, ref: ResultRef) -> Path:
        """A key comes from the log, which other programs can write: it names a file in this store or it is refused."""
        match = KEY.fullmatch(ref.key)
        if ref.store != STORE or match is None:
            raise Refused(f"`{ref.store}:{ref.key}` is not a reference into the file store")
        return self._folder / match[1] / match[2]

    def _settle(self, descriptor: int, name: Path, target: Path, ref: ResultRef) -> None:
        """Under its final name, durably. An equal file that is already there is kept, unless it has been damaged."""
        make_folder(target.parent)
        if not _is_intact(target, ref):
            os.fsync(descriptor)
            name.replace(target)
        sync_folder(target.parent)

    @contextmanager
    def _unfinished_file(self) -> Iterator[tuple[int, Path]]:
        with _guarding(self._unfinished):
            descriptor, name = tempfile.mkstemp(dir=self._unfinished)
        try:
            yield descriptor, Path(name)
        finally:
            os.close(descriptor)
            Path(name).unlink(missing_ok=True)

    def _get_ready(self) -> None:
        if self._ready:
            return
        make_folder(self._unfinished)
        with _guarding(self._unfinished):
            oldest = time.time() - STALE_SECONDS
            for file in self._unfinished.iterdir():
                try:
                    if file.stat().st_mtime < oldest:
                        file.unlink()
                except FileNotFoundError:
                    continue
        self._ready = True


@contextmanager
def _guarding(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unavailable_file(error, path) from error


def _write_all(descriptor: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(descriptor, view) :]


def _is_intact(path: Path, ref: ResultRef) -> bool:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != ref.size:
                return False
            digest = hashlib.sha256()
            while chunk := file.read(READ_BYTES):
                digest.update(chunk)
    except FileNotFoundError:
        return False
    return digest.hexdigest() == ref.checksum


def _missing(ref: ResultRef, path: Path) -> Unavailable:
    return Unavailable(
        f"the stored result `{ref.key}` is not there: `{path}` is missing",
        "put the file back from a backup, or run the step that made it again",
    )


def _check(ref: ResultRef, path: Path, size: int, checksum: str) -> None:
    hint = "put the file back from a backup, or run the step that made it again"
    if size != ref.size:
        raise Unavailable(
            f"the stored result `{path}` is damaged: it has {size} bytes and should have {ref.size}", hint
        )
    if checksum != ref.checksum:
        raise Unavailable(f"the stored result `{path}` is damaged: its SHA-256 is not `{ref.checksum}`", hint)
