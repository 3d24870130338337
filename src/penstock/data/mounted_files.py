"""Files elsewhere, as DuckDB reads them: under their URLs, in parts.

DuckDB asks a file system of fsspec for the parts it needs: the end of a Parquet file, then the columns and row groups of a query.
"""

from __future__ import annotations

import datetime
import io
import threading
from collections.abc import Callable, Sequence
from typing import Any

import duckdb

from penstock.ports.meanings import FILE_SCHEMES
from penstock.ports.rows import Parts, RowsFailed


class MountedFiles:
    """The files that queries of one database may name. The file system is registered with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, list[Parts]] = {}
        self._is_registered = False
        self._failure: RowsFailed | None = None

    def mount(self, connection: duckdb.DuckDBPyConnection, files: Sequence[Parts]) -> Callable[[], None]:
        with self._lock:
            if files and not self._is_registered:
                connection.register_filesystem(_filesystem(self))
                self._is_registered = True
            for file in files:
                self._files.setdefault(file.url, []).append(file)
        return lambda: self._unmount(files)

    def _unmount(self, files: Sequence[Parts]) -> None:
        with self._lock:
            for file in files:
                held = self._files.get(file.url, [])
                if file in held:
                    held.remove(file)
                if not held:
                    self._files.pop(file.url, None)

    def unregister(self, connection: duckdb.DuckDBPyConnection) -> None:
        if self._is_registered:
            connection.unregister_filesystem("s3")
            self._is_registered = False

    def failed(self, failure: RowsFailed) -> None:
        self._failure = failure

    def cause_of(self, error: duckdb.Error) -> RowsFailed | None:
        """The failure of a part behind an error of DuckDB's, which passes on nothing but its message."""
        failure, self._failure = self._failure, None
        return failure if failure is not None and failure.message in str(error) else None

    def find(self, url: str) -> Parts:
        with self._lock:
            held = self._files.get(url)
        if not held:
            # A query of the author's own names a URL: only components reach places, with addresses judged.
            raise FileNotFoundError(url)
        return held[-1]


class _File(io.RawIOBase):
    def __init__(self, parts: Parts, mounted: MountedFiles) -> None:
        self._parts = parts
        self._mounted = mounted
        self._at = 0
        self.mode = "rb"
        self.size = parts.size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        length = self.size - self._at if size < 0 else min(size, self.size - self._at)
        try:
            found = self._parts.part(self._at, length)
        except RowsFailed as failure:
            self._mounted.failed(failure)
            raise
        self._at += len(found)
        return found

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _filesystem(mounted: MountedFiles) -> Any:
    from fsspec import AbstractFileSystem  # An optional dependency: without it files are copied whole.

    class FileSystem(AbstractFileSystem):  # type: ignore[misc]
        protocol = FILE_SCHEMES
        cachable = False

        def open(self, path: str, mode: str = "rb", **options: Any) -> _File:
            if mode != "rb":
                raise PermissionError(path)
            return _File(mounted.find(path), mounted)

        def info(self, path: str, **options: Any) -> dict[str, Any]:
            return {"name": path, "size": mounted.find(path).size, "type": "file"}

        def exists(self, path: str, **options: Any) -> bool:
            mounted.find(path)
            return True

        def glob(self, path: str, **options: Any) -> list[str]:
            return [_plain(path)]

        def modified(self, path: str) -> datetime.datetime:
            return mounted.find(path).modified or datetime.datetime.now(datetime.UTC).replace(tzinfo=None)

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path

    return FileSystem()


def _plain(path: str) -> str:
    """Names with marks of patterns in them reach DuckDB with each of these in brackets."""
    for mark in "*?[":
        path = path.replace(f"[{mark}]", mark)
    return path
