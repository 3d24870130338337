"""`read_file` and `write_file`: files as they are, one row per file or per line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components.base import Action, Call, ComponentFailure, Known, Mistake, PlanCall, Port, Schemas
from penstock.components.io import file_paths, parameters
from penstock.data import select
from penstock.ports.rows import Column, Relation, Schema
from penstock.tools.parameters import about
from penstock.tools.sql.results import as_json_text, to_json


class ReadFileParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.SourcePath
    content: Annotated[Literal["text", "bytes"], about("What `content` is.")] = "text"
    lines: Annotated[bool, about("One row for each line, instead of one for the file.")] = False
    encoding: parameters.Encoding = "utf-8"
    credentials: parameters.Credentials = None


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
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the files, or their lines"),)

    def check(self, params: ReadFileParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        if params.lines and params.content == "bytes":
            return [Mistake(("content",), "lines are text; hint: leave out `content: bytes`, or `lines: true`")]
        return parameters.encoding_mistakes(params.encoding)

    def schemas(self, params: ReadFileParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": _schema(params)}

    def run(self, params: ReadFileParams, call: Call) -> None:
        found = file_paths.all_files(params.path, call, params.credentials)
        read = _lines if params.lines else _whole
        rows = ((file_paths.shown(path, call), *row) for path in found for row in read(path, params))
        size = 5_000 if params.lines else 1
        call.put("main", call.engine.load(_schema(params), file_paths.in_batches(rows, size)))


def _lines(path: Path, params: ReadFileParams) -> Iterator[tuple[Any, ...]]:
    for number, line, flaw in file_paths.lines(path, params.encoding):
        if flaw is not None:
            raise ComponentFailure("encoding", f"`{path}`, line {number}: {flaw}", path=str(path), line=number)
        yield number, line


def _whole(path: Path, params: ReadFileParams) -> Iterator[tuple[Any, ...]]:
    data = path.read_bytes()
    if params.content == "bytes":
        yield len(data), data
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
    yield len(data), text


_WRITTEN: Schema = (Column("path", "VARCHAR"), Column("bytes", "BIGINT"))


class WriteFileParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.TargetPath
    content: Annotated[str | None, about("The text to write, when no rows come in.")] = None
    column: Annotated[str, about("The column with the text or bytes to write.", min_length=1)] = "content"
    end: Annotated[str, about('What is written after each value, such as `"\\n"`.')] = ""
    encoding: parameters.Encoding = "utf-8"
    append: parameters.Append = False
    credentials: parameters.Credentials = None


class WriteFile(Action[WriteFileParams]):
    """Write text or bytes into a file as they are: the `column` of each row, one after another, or the text in
    `content`.

    The file replaces an older one when it is complete, unless `append: true`. Text is written in the `encoding`,
    bytes as they are; NULL writes nothing. The rows go on through `main` when it is connected. The result is `{path,
    bytes}`.
    """

    type = "write_file"
    family = "write"
    inputs: ClassVar[tuple[Port, ...]] = (Port("input", required=False, description="what to write"),)
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", reject=True, description="the same rows, written"),)

    def check(self, params: WriteFileParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        if wrong := parameters.encoding_mistakes(params.encoding):
            return wrong
        if "input" not in inputs:
            missing = params.content is None
            return (
                [Mistake((), "there is nothing to write; hint: connect `input`, or give `content`")] if missing else []
            )
        if params.content is not None:
            return [Mistake(("content",), "rows come in, so `content` would not be written")]
        schema = inputs["input"]
        problem = None if schema is None else parameters.missing([params.column], [c.name for c in schema], "the input")
        return [Mistake(("column",), problem, kind="column")] if problem else []

    def schemas(self, params: WriteFileParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": inputs.get("input", _WRITTEN)}

    def run(self, params: WriteFileParams, call: Call) -> Any:
        path = file_paths.target(params.path, call, params.credentials, append=params.append)
        name = file_paths.shown(path, call)
        rows = call.input() if call.inputs.get("input") else None
        if rows is None and params.content is None:
            raise ComponentFailure("parameters", "there is nothing to write; hint: connect `input`, or give `content`")
        with file_paths.target_file(path, append=params.append) as file:
            if rows is None:
                written = file.write(_bytes(params.content, params) + _bytes(params.end, params))
            else:
                written = sum(file.write(piece) for piece in _pieces(rows, params, call))
        if rows is None and "main" in call.connected:
            rows = call.engine.load(_WRITTEN, [[(name, written)]])
        if rows is not None:
            call.put("main", rows)
        return {"path": name, "bytes": written}


def _pieces(rows: Relation, params: WriteFileParams, call: Call) -> Any:
    parameters.require([params.column], rows.schema)
    query = exp.select(select.column(params.column)).from_(select.table("input"))
    end = _bytes(params.end, params)
    for batch in call.engine.rows(select.sql(query), {"input": rows}, 1_000):
        for (value,) in batch:
            yield _bytes(value, params) + end


def _bytes(value: Any, params: WriteFileParams) -> bytes:
    match value:
        case None:
            return b""
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case str():
            text = value
        case dict() | list():
            text = as_json_text(value)
        case _:
            text = str(to_json(value))
    try:
        return text.encode(params.encoding)
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.end]
        raise ComponentFailure("encoding", f"`{wrong}` cannot be written in `{params.encoding}`") from None
