"""This machine, as a place among others. Paths are absolute."""

from __future__ import annotations

import datetime
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.tools import file_changes
from penstock.tools.base import os_failure, require_regular
from penstock.tools.places.base import CHUNK, Entry, Location, Place


class LocalPlace(Place):
    def __init__(self) -> None:
        super().__init__(Location("file", "", "/"))

    @contextmanager
    def _failures(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise os_failure(error, Path(path)) from error

    def look(self, path: str) -> Entry | None:
        with self._failures(path):
            try:
                return _entry(Path(path), Path(path).name)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def entries(self, folder: str, *, recursive: bool) -> Iterator[Entry]:
        base = Path(folder or "/")
        if not base.is_dir():
            return
        for path in base.rglob("*") if recursive else base.iterdir():
            try:
                found = _entry(path, path.relative_to(base).as_posix())
            except OSError:
                continue  # gone since it was listed, or a link that leads nowhere
            if found is not None:
                yield found

    def read(self, entry: Entry, start: int = 0) -> Iterator[bytes]:
        with self._failures(entry.path):
            require_regular(Path(entry.path))
            with open(entry.path, "rb") as file:
                file.seek(start)
                while chunk := file.read(CHUNK):
                    yield chunk

    def write(self, path: str, chunks: Iterable[bytes], *, overwrite: bool = True) -> int:
        with self._failures(path):
            return file_changes.replace(Path(path), chunks, overwrite=overwrite)

    def delete(self, path: str) -> None:
        with self._failures(path):
            os.unlink(path)


def _entry(path: Path, relative: str) -> Entry | None:
    about = path.stat()
    is_folder = stat.S_ISDIR(about.st_mode)
    # A pipe or a device is neither: reading it could block for ever.
    if not is_folder and not stat.S_ISREG(about.st_mode):
        return None
    modified = datetime.datetime.fromtimestamp(about.st_mtime, datetime.UTC).replace(tzinfo=None)
    return Entry(str(path), relative, about.st_size, modified, is_folder)
