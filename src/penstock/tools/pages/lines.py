"""The lines of a text file, found again by where they lie in it.

A token is `[byte, line]`: where the next line begins, and how many lines lie before it. Of a file that can only be read from its
beginning (packed, or in an encoding whose line breaks are more than one byte) only the number of lines counts.
"""

from __future__ import annotations

import asyncio
import codecs
import gzip
import io
import os
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar, NamedTuple, cast

import msgspec

from penstock.kernel.values import Json
from penstock.ports.collections import Page
from penstock.ports.undoing import unless_done
from penstock.tools.base import Call, ToolFailure, local_path, open_regular, os_failure
from penstock.tools.pages.base import Reader
from penstock.tools.parameters import about

PAGE_BYTES = 32 * 1024 * 1024
"""A page of long lines ends early."""
LONGEST_LINE = 64 * 1024 * 1024


class LinesPagesParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("The file, relative to the document's folder. One that ends in `.gz` is unpacked.")]
    encoding: Annotated[str, about("The encoding of its text.")] = "utf-8"
    skip: Annotated[int, about("So many lines at the beginning are no elements: a header.", ge=0)] = 0


class _Span(NamedTuple):
    """What is to be read: from a byte and line on, so many lines, and, of a page that was read before, up to a byte."""

    byte: int
    line: int
    most: int
    until: int | None


class _Read(NamedTuple):
    lines: list[str]
    byte: int
    line: int
    """How many lines lie before the first of them."""
    is_end: bool


class LinesPages(Reader[LinesPagesParams]):
    """The lines of a text file, without their line breaks (`\\n` or `\\r\\n`).

    An empty line is an element too. `iter.iter_key` is the number of the line, counted from 1. Lines that are appended while the
    loop runs are read if its end has not been reached by then. A file that is packed (`.gz`), or in an encoding such as UTF-16,
    can only be read from its beginning, so on a fleet every range reads all that lies before it: unpack a large one first.
    """

    kind: ClassVar[str] = "lines"
    is_fixed: ClassVar[bool] = True

    def __init__(self, params: LinesPagesParams, call: Call) -> None:
        super().__init__(params, call)
        self._path = local_path(params.path, call)
        self._codec = _codec(params.encoding)
        self._is_packed = self._path.suffix.lower() == ".gz"

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        byte, line = cast("list[int]", token) if token is not None else (0, 0)
        span = _Span(byte, line, most, None)
        if until is not None:
            last_byte, last_line = cast("list[int]", until)
            span = _Span(byte, line, min(most, last_line - max(line, self.params.skip)), last_byte)
        if not self._is_packed and "\n".encode(self._codec) == b"\n":
            read: _Read = await self.call.threads.run(self._read_or_fail, self._seek, span)
        else:
            stream = await self._stream()
            async with stream.turn:
                read = await self.call.threads.run(self._read_or_fail, stream.read, span)
        if until is not None and len(read.lines) < span.most:
            raise self._changed()
        following: Json = [read.byte, read.line + len(read.lines)]
        keys = [str(number) for number in range(read.line + 1, read.line + 1 + len(read.lines))]
        return Page(read.lines, following, read.is_end, keys)

    def _read_or_fail(self, read: Callable[[_Span], _Read], span: _Span) -> _Read:
        try:
            return read(span)
        except UnicodeDecodeError as error:
            raise self._undecodable(f"after line {span.line}", error) from error
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise ToolFailure(
                "decode", f"`{self._path}` is not a whole `.gz` file: {error}", path=str(self._path)
            ) from error
        except OSError as error:
            raise os_failure(error, self._path) from error

    def _changed(self) -> ToolFailure:
        message = f"`{self._path}` has been changed since the loop began: its lines are not where they were"
        return ToolFailure("collection", message, path=str(self._path))

    def _undecodable(self, where: str, error: UnicodeDecodeError) -> ToolFailure:
        message = f"`{self._path}`, {where}, is not in the encoding `{self.params.encoding}`: {error.reason}"
        return ToolFailure("decode", message, path=str(self._path))

    # ---- by bytes

    def _seek(self, span: _Span) -> _Read:
        with open_regular(self._path) as file:
            line, byte = span.line, span.byte
            if byte == 0:
                byte, line = self._beginning(file)
            elif not _is_line_start(file, byte):
                raise self._changed()
            lines: list[str] = []
            size = 0
            while len(lines) < span.most and size < PAGE_BYTES and (span.until is None or byte < span.until):
                data = file.readline(LONGEST_LINE + 1 if span.until is None else span.until - byte)
                if not data:
                    break
                if len(data) > LONGEST_LINE:
                    raise _too_long(self._path, line + len(lines) + 1)
                lines.append(self._decoded(data, line + len(lines) + 1))
                byte += len(data)
                size += len(data)
            return _Read(lines, byte, line, not file.read(1))

    def _beginning(self, file: IO[bytes]) -> tuple[int, int]:
        """Where the first element begins, and how many lines lie before it."""
        if self._codec == "utf-8" and file.read(3) != codecs.BOM_UTF8:
            file.seek(0)
        line = 0
        while line < self.params.skip and (data := file.readline(LONGEST_LINE + 1)):
            if len(data) > LONGEST_LINE:
                raise _too_long(self._path, line + 1)
            line += 1
        return file.tell(), line

    def _decoded(self, data: bytes, number: int) -> str:
        try:
            return _bare(data.decode(self._codec))
        except UnicodeDecodeError as error:
            raise self._undecodable(f"line {number}", error) from error

    # ---- from the beginning

    async def _stream(self) -> _Stream:
        """Kept open for the pages that follow, until the run is over."""

        async def make() -> tuple[_Stream, Callable[[], Awaitable[None]]]:
            stream = _Stream(self._path, self._codec, self._is_packed, self.params.skip)
            return stream, stream.close

        key = ("lines", str(self._path), self._codec, self.params.skip)
        stream: _Stream = await self.call.resources.get(key, make)
        return stream


class _Stream:
    """A file that is read line by line, by one at a time. It is begun anew for a line that lies behind it."""

    def __init__(self, path: Path, codec: str, is_packed: bool, skip: int) -> None:
        self.turn = asyncio.Lock()
        self._path = path
        self._codec = codec
        self._is_packed = is_packed
        self._skip = skip
        self._file: IO[bytes] | None = None
        self._text: IO[str] | None = None
        self._version: tuple[int, int] | None = None
        self._line = 0
        self._ahead = ""

    def read(self, span: _Span) -> _Read:
        with unless_done(self._shut):  # Where it stands would not be known any more.
            return self._read(span)

    def _read(self, span: _Span) -> _Read:
        first = max(span.line, self._skip)
        found = os.stat(self._path)
        version = (found.st_mtime_ns, found.st_size)
        if self._text is None or self._line > first or self._version != version:
            self._begin(version)
        while self._ahead and self._line < first:
            self._next()
        lines: list[str] = []
        size = 0
        line = self._line
        while self._ahead and len(lines) < span.most and size < PAGE_BYTES:
            lines.append(_bare(self._ahead))
            size += len(self._ahead)
            self._next()
        return _Read(lines, 0, line, not self._ahead)

    def _begin(self, version: tuple[int, int]) -> None:
        self._shut()
        self._file = open_regular(self._path)
        data: Any = gzip.GzipFile(fileobj=self._file) if self._is_packed else self._file
        self._text = io.TextIOWrapper(data, self._codec, newline="\n")
        self._version, self._line = version, -1
        self._next()
        self._ahead = self._ahead.removeprefix("\ufeff")

    def _next(self) -> None:
        assert self._text is not None
        self._line += 1
        self._ahead = self._text.readline(LONGEST_LINE + 1)
        if len(self._ahead) > LONGEST_LINE:
            raise _too_long(self._path, self._line + 1)

    def _shut(self) -> None:
        for one in (self._text, self._file):  # Closing what unpacks a file leaves the file open.
            if one is not None:
                one.close()
        self._text = self._file = None

    async def close(self) -> None:
        self._shut()


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _is_line_start(file: IO[bytes], byte: int) -> bool:
    file.seek(byte - 1)
    return file.read(1) == b"\n"


def _too_long(path: Path, number: int) -> ToolFailure:
    message = f"line {number} of `{path}` is longer than {LONGEST_LINE // 2**20} MiB; is it a text file?"
    return ToolFailure("too_large", message, path=str(path))


def _codec(encoding: str) -> str:
    try:
        found = codecs.lookup(encoding)
        "\n".encode(found.name)
    except LookupError:
        raise ToolFailure("parameters", f"`encoding`: `{encoding}` is not an encoding of text") from None
    return "utf-8" if found.name == "utf-8-sig" else found.name
