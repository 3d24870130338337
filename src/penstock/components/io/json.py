"""`read_json` and `write_json`: objects of JSON files as rows. Reading is fused with what follows where it can be; with a
reject port it runs by itself."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components.base import Call, ComponentFailure, Known, Mistake, PlanCall, Port, Sink
from penstock.components.incremental import IncrementalParam
from penstock.components.io import file_paths, json_shape, parameters
from penstock.components.io.json_shape import Manner, NoSuchRows, Reading, named, rows_in
from penstock.components.io.row_types import Notation, first_failure, try_cast
from penstock.components.io.row_types import call as function
from penstock.components.io.scans import FileReader, renamed
from penstock.components.queries import everything
from penstock.components.types import WHOLE, is_written_whole
from penstock.data import select
from penstock.data.types import NOTHING
from penstock.kernel.values import Json
from penstock.ports.rows import Column, Copy, Relation, RowsFailed, Schema
from penstock.tools.parameters import about

_OF_THE_ROWS = ("format", "conversion", "data")


class ReadJsonParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.SourcePath
    format: Annotated[
        Literal["auto", "array", "lines"],
        about("`array`: one list of objects; `lines`: one object a line; `auto`: by how the file begins."),
    ] = "auto"
    rows: Annotated[
        str | None,
        about("Where in the document the list of rows is, such as `data.items`; the document itself if left out."),
    ] = None
    columns: Annotated[
        parameters.Columns,
        about("The keys to read, in this order: names, or `{name, type}`. All of them when left out."),
    ] = []
    types: parameters.Types = {}
    date_format: parameters.DateFormat = None
    timestamp_format: parameters.TimestampFormat = None
    file_column: parameters.FileColumn = None
    sample: Annotated[int, about("Objects from which keys and types are inferred; -1 for all.", ge=-1)] = 20_480
    max_object_bytes: Annotated[int, about("The largest object that is accepted.", ge=1)] = 16_777_216
    on_error: parameters.OnError = "fail"
    incremental: IncrementalParam = None
    credentials: parameters.Credentials = None


def settle(params: ReadJsonParams, call: PlanCall | Call) -> Reading:
    found = file_paths.readable_files(params.path, call, params.credentials)
    largest = max(path.stat().st_size for path in found)
    manner = Manner(
        json_shape.form_of(found[0], params.format, params.rows),
        params.rows,
        params.sample,
        # With `rows` the whole document is one object, and how large that is, is no surprise.
        max(params.max_object_bytes, largest + 1) if params.rows is not None else params.max_object_bytes,
        params.date_format,
        params.timestamp_format,
    )
    wanted = parameters.named(params.columns, call.declared.get("main"))
    types = {name: parameters.sql_type(type) for name, type in params.types.items()}
    reading = json_shape.settle(found, manner, wanted, types, params.file_column)
    return reading if call.mirror is None else replace(reading, names=tuple(call.mirror.prefixes().items()))


class ReadJson(FileReader[ReadJsonParams]):
    """Read rows from JSON: one list of objects, one object a line, or a list somewhere inside a document.

    The keys are the columns; a key that an object does not have is NULL. Types are inferred from the first `sample`
    objects, or declared in `columns`, in `types` or as the component's `schema`. Objects within objects become
    structures, lists lists. `rows: data.items` reads the objects of a list inside the document; a number in it is a
    place in a list, from 0.

    With the port `reject` connected, lines that are not JSON, rows that are no objects and values that are not of
    their column's type go there, with `error_code`, `error_message`, `file`, `line` (in a list: the number of the
    element), `column` and `raw_line`. Without it they end the component in ERROR, unless `on_error: skip`. Codes:
    `not_json`, `not_an_object`, `bad_value`. After-variables: `NB_LINE_REJECTED`.
    """

    type = "read_json"
    refuses = True
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows"),
        Port("reject", reject=True, description="what is not a row, with what is wrong"),
    )

    def is_fusable(self, params: ReadJsonParams, connected: frozenset[str]) -> bool:
        return "reject" not in connected and params.on_error == "fail"

    def wrong(self, params: ReadJsonParams) -> list[Mistake]:
        return parameters.type_mistakes(params.columns, params.types)

    def culprit(self, params: ReadJsonParams, failure: ComponentFailure) -> str:
        return "rows" if isinstance(failure, NoSuchRows) else "columns" if params.columns else "types"

    def settled(self, params: ReadJsonParams, call: PlanCall | Call) -> Reading:
        return settle(params, call)

    def run(self, params: ReadJsonParams, call: Call) -> None:
        reading = settle(params, call)
        if not self.is_fusable(params, call.connected):
            _one_by_one(reading, params, call)
            return
        try:
            call.put("main", call.engine.select(select.sql(reading.query()), {}))
        except RowsFailed as failure:
            if failure.kind not in _OF_THE_ROWS:
                raise
            # Row by row it can be said which one it is.
            _one_by_one(reading, params, call)


def _one_by_one(reading: Reading, params: ReadJsonParams, call: Call) -> None:
    found = {"objects": objects(reading, call)}
    good, bad = parted(reading)
    rejected = call.engine.select(select.sql(bad), found)
    call.after["NB_LINE_REJECTED"] = rejected.rows
    if "reject" in call.connected:
        call.put("reject", rejected)
    elif rejected.rows:
        first = first_failure(call, rejected)
        if params.on_error == "fail":
            raise first
        call.say(f"{rejected.rows} rows were left out; the first: {first.message}")
    call.put("main", call.engine.select(select.sql(good), found))


def objects(reading: Reading, call: Call) -> Relation:
    """(file, line, raw) of every row, as text that may or may not be JSON."""
    return call.engine.select(select.sql(renamed(rows_in(reading.paths, reading.manner), "file", reading.names)), {})


@dataclass(frozen=True, slots=True)
class _Cell:
    """A column, and where in the row's JSON its value is."""

    column: Column
    way: str
    notation: Notation

    @staticmethod
    def of(column: Column, reading: Reading) -> _Cell:
        key = column.name.replace("\\", "\\\\").replace('"', '\\"')
        manner = reading.manner
        notation = Notation(date_format=manner.date_format, timestamp_format=manner.timestamp_format)
        return _Cell(column, f'$."{key}"' if reading.has_objects else "$", notation)

    @property
    def text(self) -> exp.Expr:
        return function("json_extract_string", select.column("raw"), self.way)

    @property
    def value(self) -> exp.Expr:
        """As the column's type; NULL when it cannot be."""
        if self.column.type == "VARCHAR":
            return self.text
        if self.column.type == NOTHING:
            return exp.null()
        value: exp.Expr = try_cast(function("json_extract", select.column("raw"), self.way), self.column.type)
        format = self.notation.format_of(self.column.type)
        if format is not None:
            # What is written as in ISO 8601 is read as well, as DuckDB does it.
            written = select.cast(function("try_strptime", self.text, format), self.column.type)
            return function("coalesce", written, value)
        return (
            exp.case().when(is_written_whole(self.text), value).else_(exp.null())
            if self.column.type in WHOLE
            else value
        )

    @property
    def is_wrong(self) -> exp.Expr:
        kind = function("coalesce", function("json_type", select.column("raw"), self.way), "NULL")
        return exp.and_(kind.neq(select.literal("NULL")), self.value.is_(exp.null()))


def parted(reading: Reading) -> tuple[exp.Query, exp.Query]:
    """Over `objects`: the rows, and the rejects."""
    cells = [_Cell.of(column, reading) for column in reading.columns]
    wrong = [cell for cell in cells if cell.column.type not in ("VARCHAR", "JSON")]
    code = exp.case().when(function("json_valid", select.column("raw")).not_(), select.literal("not_json"))
    # DuckDB stops at text that is not JSON, so every question about it comes after that one.
    if reading.has_objects:
        is_other = function("json_type", select.column("raw")).neq(select.literal("OBJECT"))
        code = code.when(is_other, select.literal("not_an_object"))
    culprit = exp.case().when(function("json_valid", select.column("raw")).not_(), exp.null())
    for cell in wrong:
        code = code.when(cell.is_wrong, select.literal("bad_value"))
        culprit = culprit.when(cell.is_wrong, select.literal(cell.column.name))
    judged = exp.select(exp.Star(), named(code, "code"), named(culprit, "culprit")).from_(select.table("objects"))
    extra = [named(select.column("file"), reading.file_column)] if reading.file_column is not None else []
    good = exp.select(*(named(cell.value, cell.column.name) for cell in cells), *extra)
    good = good.from_(judged.copy().subquery("judged")).where(select.column("code").is_(exp.null()))
    bad = exp.select(
        named(select.column("code"), "error_code"),
        named(_message(wrong), "error_message"),
        select.column("file"),
        select.column("line"),
        named(select.cast(_culprit_if_any(), "VARCHAR"), "column"),
        named(select.column("raw"), "raw_line"),
    )
    return good, bad.from_(judged.subquery("judged")).where(select.column("code").is_(exp.null()).not_())


def _culprit_if_any() -> exp.Expr:
    is_value = select.column("code").eq(select.literal("bad_value"))
    return exp.case().when(is_value, select.column("culprit")).else_(exp.null())


def _message(wrong: list[_Cell]) -> exp.Expr:
    message = exp.case()
    message = message.when(select.column("code").eq(select.literal("not_json")), select.literal("this is not JSON"))
    is_other = select.column("code").eq(select.literal("not_an_object"))
    message = message.when(is_other, select.literal("this is JSON, but no object"))
    for cell in wrong:
        column = cell.column
        ending = f"` is not a {column.type}{cell.notation.written_as(column.type)}"
        quoted = function("concat", "`", function("left", cell.text, select.literal(200)), ending)
        message = message.when(select.column("culprit").eq(select.literal(column.name)), quoted)
    return message


LINES = (".jsonl", ".ndjson", ".jsonlines")


class WriteJsonParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.TargetPath
    format: Annotated[
        Literal["auto", "array", "lines"],
        about("`array`: one list; `lines`: one object a line; `auto`: lines for `.jsonl` and `.ndjson`, else a list."),
    ] = "auto"
    date_format: parameters.DateFormat = None
    timestamp_format: parameters.TimestampFormat = None
    append: parameters.Append = False
    credentials: parameters.Credentials = None


def is_lines(path: str, format: str) -> bool:
    bare = Path(path).with_suffix("") if Path(path).suffix in file_paths.PACKED else Path(path)
    return format == "lines" or (format == "auto" and bare.suffix.lower() in LINES)


class WriteJson(Sink[WriteJsonParams]):
    """Write rows as JSON: one list of objects, or one object a line.

    The file replaces an older one when it is complete; lines can be added to it with `append: true`. Dates and
    timestamps are text, structures are objects, decimals are numbers with all their digits. A path that ends in `.gz`,
    `.zst`, `.bz2` or `.xz` is packed.

    The rows go on through `main` when it is connected.
    """

    type = "write_json"

    def check(self, params: WriteJsonParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        if params.append and not is_lines(params.path, params.format):
            return [Mistake(("append",), "only lines can be added to a file; hint: `format: lines`")]
        if params.append and Path(params.path).suffix in file_paths.PACKED:
            return [Mistake(("append",), "a packed file cannot be added to")]
        return []

    def bound_here(self, params: WriteJsonParams, inputs: Known, call: PlanCall) -> str | None:
        if not is_lines(params.path, params.format):
            return "one list of objects is written by one process (`format: lines` is not)"
        return super().bound_here(params, inputs, call)

    def is_fusable(self, params: WriteJsonParams, connected: frozenset[str]) -> bool:
        return not connected and not _needs_two_steps(params)

    def copy(self, params: WriteJsonParams, schema: Schema, call: PlanCall) -> Copy:
        assert not _needs_two_steps(params), "only `run` can write this: a COPY would replace the file"
        path = file_paths.target(params.path, call, params.credentials)
        file_paths.make_room(path)
        return Copy(path, "json", _options(params, packed=file_paths.BY_THE_ENGINE.get(path.suffix)))

    def run(self, params: WriteJsonParams, call: Call) -> None:
        rows = call.input()
        query = select.sql(everything("input"))
        if not _needs_two_steps(params):
            call.engine.copy(query, {"input": rows}, self.copy(params, rows.schema, call.plan()))
        else:
            path = file_paths.target(params.path, call, params.credentials, append=params.append)
            file_paths.make_room(path)
            with tempfile.TemporaryDirectory(prefix="json-", dir=call.work) as folder:
                part = Path(folder) / "part.jsonl"
                call.engine.copy(query, {"input": rows}, Copy(part, "json", _options(params, packed=None)))
                with (
                    file_paths.target_file(path, append=params.append) as target,
                    file_paths.packed_into(target, path) as packed,
                ):
                    file_paths.pour(part, packed)
        if "main" in call.connected:
            call.put("main", rows)


def _needs_two_steps(params: WriteJsonParams) -> bool:
    return params.append or Path(params.path).suffix in set(file_paths.PACKED) - set(file_paths.BY_THE_ENGINE)


def _options(params: WriteJsonParams, *, packed: str | None) -> dict[str, Json]:
    options: dict[str, Json] = {"array": not is_lines(params.path, params.format)}
    if params.date_format is not None:
        options["dateformat"] = params.date_format
    if params.timestamp_format is not None:
        options["timestampformat"] = params.timestamp_format
    if packed is not None:
        options["compression"] = packed
    return options
