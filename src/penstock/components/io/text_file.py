"""Lines of a text file, whatever stands in it: a byte that is not of the encoding spoils its own line and no other."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from penstock.components.base import ComponentFailure
from penstock.components.io import file_paths


def open_text(path: Path, encoding: str) -> IO[str]:
    # A byte order mark at the beginning is none of the text.
    chosen = "utf-8-sig" if file_paths.codec(encoding) == "utf-8" else encoding
    if path.suffix == ".gz":
        return cast("IO[str]", gzip.open(path, "rt", encoding=chosen, errors="surrogateescape"))
    return path.open(encoding=chosen, errors="surrogateescape")


def lines(path: Path, encoding: str, skip: int = 0) -> Iterator[tuple[int, str, str | None]]:
    """(number, text, flaw) of each line, without its end; the number counts from 1. Raises ComponentFailure."""
    try:
        with open_text(path, encoding) as file:
            for number, line in enumerate(file, 1):
                if number > skip:
                    yield number, *_sound(line.rstrip("\r\n"), encoding)
    except UnicodeError as error:
        raise ComponentFailure(
            "encoding", f"`{path}` is not written in `{encoding}`: {error}; hint: `encoding: utf-8`", path=str(path)
        ) from None
    except gzip.BadGzipFile:
        raise ComponentFailure("format", f"`{path}` is not a gzip file", path=str(path)) from None


def _sound(line: str, encoding: str) -> tuple[str, str | None]:
    try:
        line.encode()
    except UnicodeEncodeError:
        return line.encode("utf-8", "replace").decode(), f"these bytes are not `{encoding}`"
    return line, None


def in_batches(rows: Iterator[tuple[Any, ...]], size: int = 5_000) -> Iterator[list[tuple[Any, ...]]]:
    batch: list[tuple[Any, ...]] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch
