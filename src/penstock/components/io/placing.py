"""Files that appear whole or not at all: written beside their place, then moved there, by the engine's own way of landing a file.

What is added to a file that exists is taken off again when the adding fails.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from penstock.components.base import ComponentFailure
from penstock.components.flow.tool_calls import file_failures
from penstock.components.io import file_paths
from penstock.data.landing import Landing


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    try:
        with file_failures(path):
            yield
    except ComponentFailure as failure:
        cause = failure.__cause__
        if isinstance(cause, OSError) and cause.errno == errno.EFBIG:
            raise ComponentFailure("disk", f"there is no room for all of `{path}`", path=str(path)) from cause
        raise


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to. It takes its place, replacing what is there, when the block ends well."""
    file_paths.make_room(path)
    with _said_of(path):
        landing = Landing(path)
        try:
            with landing.written.open("wb") as file:
                yield file
                file.flush()
                if landing.is_beside:
                    os.fsync(file.fileno())
            landing.land()
        finally:
            landing.discard()


@contextmanager
def appended_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to add to. It is as long as before when the block fails."""
    file_paths.make_room(path)
    with _said_of(path):
        before = path.stat().st_size if path.exists() else None
        done = False
        try:
            with path.open("ab") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            done = True
        finally:
            if not done:
                with suppress(OSError):
                    if before is None:
                        path.unlink(missing_ok=True)
                    else:
                        os.truncate(path, before)


def is_begun(path: Path) -> bool:
    """Is there something in the file already, so that what is added needs no header?"""
    return path.is_file() and path.stat().st_size > 0


@contextmanager
def target_file(path: Path, *, append: bool) -> Iterator[IO[bytes]]:
    with appended_file(path) if append else whole_file(path) as file:
        yield file


def pour(source: Path, target: IO[bytes], encoding: str = "utf-8") -> None:
    """Bytes of a file in UTF-8 into another, in another encoding when that is asked for."""
    if encoding == "utf-8":
        with source.open("rb") as file:
            shutil.copyfileobj(file, target, 1 << 20)
        return
    at_the_start = target.tell() == 0
    # What is added to a file must not begin with another byte order mark.
    plain = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
    chosen = encoding if at_the_start else plain.get(encoding, encoding)
    with source.open(encoding="utf-8", newline="") as text:
        for number, line in enumerate(text, 1):
            try:
                target.write(line.encode(chosen))
            except UnicodeEncodeError as error:
                wrong = error.object[error.start : error.end]
                raise ComponentFailure(
                    "encoding",
                    f"line {number}: `{wrong}` cannot be written in `{encoding}`; hint: `encoding: utf-8`",
                    line=number,
                ) from None
            chosen = plain.get(chosen, chosen)
