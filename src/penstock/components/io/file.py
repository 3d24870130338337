"""`read_file`: files as they are, one row a file or one a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure, Mistake, PlanCall, Port
from penstock.components.io import file_paths, text_file, words
from penstock.ports.rows import Column, Schema


class ReadFileParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: words.SourcePath
    content: Annotated[Literal["text", "bytes"], Meta(description="What `content` is.")] = "text"
    lines: Annotated[bool, Meta(description="One row for each line, instead of one for the file.")] = False
    encoding: words.Encoding = "utf-8"


def _schema(params: ReadFileParams) -> Schema:
    if params.lines:
        return (Column("path", "VARCHAR"), Column("line", "BIGINT"), Column("text", "VARCHAR"))
    kind = "VARCHAR" if params.content == "text" else "BLOB"
    return (Column("path", "VARCHAR"), Column("size", "BIGINT"), Column("content", kind))


class ReadFile(Action[ReadFileParams]):
    """Read whole files, one row each: `path`, `size` in bytes, and `content` as text or bytes.

    With `lines: true` there is a row for each line: `path`, `line` from 1, and `text` without the end of the line.
    `path` may be a pattern. Text that is not of the `encoding` ends the component in ERROR.
    """

    type = "read_file"
    family = "read"
    makes_files: ClassVar[bool] = False
    Params = ReadFileParams
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the files, or their lines"),)
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: read_note}
components:
  - name: write
    type: write_file
    params: {path: note.txt, content: "first\\nsecond\\n"}
  - name: read
    type: read_file
    params: {path: note.txt, lines: true}
  - name: show
    type: log_rows
connections:
  data: read.main -> show.input
  control: write (subjob_ok) read
"""

    def check(self, params: ReadFileParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        if params.lines and params.content == "bytes":
            return [Mistake(("content",), "lines are text; hint: leave out `content: bytes`, or `lines: true`")]
        try:
            file_paths.codec(params.encoding)
        except ComponentFailure as failure:
            return [Mistake(("encoding",), failure.message)]
        return []

    def schemas(
        self, params: ReadFileParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
        return {"main": _schema(params)}

    def run(self, params: ReadFileParams, call: Call) -> None:
        found = file_paths.all_files(params.path, call)
        rows = (row for path in found for row in (_lines(path, params) if params.lines else _whole(path, params)))
        size = 5_000 if params.lines else 1
        call.put("main", call.engine.load(_schema(params), text_file.in_batches(rows, size)))


def _lines(path: Path, params: ReadFileParams) -> Iterator[tuple[Any, ...]]:
    for number, line, flaw in text_file.lines(path, params.encoding):
        if flaw is not None:
            raise ComponentFailure("encoding", f"`{path}`, line {number}: {flaw}", path=str(path), line=number)
        yield str(path), number, line


def _whole(path: Path, params: ReadFileParams) -> Iterator[tuple[Any, ...]]:
    data = path.read_bytes()
    if params.content == "bytes":
        yield str(path), len(data), data
        return
    try:
        text = data.decode("utf-8-sig" if file_paths.is_utf8(params.encoding) else params.encoding)
    except UnicodeError as error:
        at = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        raise ComponentFailure(
            "encoding",
            f"`{path}` is not written in `{params.encoding}`{at}; hint: another `encoding`, or `content: bytes`",
            path=str(path),
        ) from None
    yield str(path), len(data), text
