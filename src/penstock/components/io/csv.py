"""`read_csv` and `write_csv`: delimited text. Reading is fused with what follows where it can be; with a reject port it runs
by itself."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
from sqlglot import exp

from penstock.components.base import Call, ComponentFailure, Known, Mistake, PlanCall, Port, Sink
from penstock.components.incremental import IncrementalParam
from penstock.components.io import csv_rejects, file_paths, parameters
from penstock.components.io.csv_shape import (
    Group,
    Layout,
    Reading,
    all_names,
    grouped,
    has_mixed_ends,
    inferred,
    recode,
)
from penstock.components.io.row_types import Notation, call
from penstock.components.io.scans import FileReader
from penstock.components.types import WHOLE
from penstock.data import select
from penstock.data.types import NOTHING, is_open
from penstock.kernel.values import Json
from penstock.ports.rows import Copy, RowsFailed, Schema, SqlText
from penstock.tools.parameters import about


class ReadCsvParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.SourcePath
    delimiter: parameters.Delimiter = ","
    header: parameters.Header = True
    columns: Annotated[
        parameters.Columns,
        about(
            "With a header: the columns to read, in this order. Without one: the names of all columns. "
            "Each is a name, or `{name, type}`. All columns when left out."
        ),
    ] = []
    types: parameters.Types = {}
    quote: Annotated[str, about("The quote character around values; empty for none.", max_length=1)] = '"'
    escape: Annotated[
        parameters.Character | None,
        about("The character that escapes a quote inside quotes; the quote itself if left out."),
    ] = None
    encoding: parameters.Encoding = "utf-8"
    null: parameters.NullTexts = ""
    quoted_null: Annotated[bool, about("A null text in quotes is a missing value, too.")] = True
    decimal: parameters.Decimal = "."
    thousands: parameters.Thousands = None
    date_format: parameters.DateFormat = None
    timestamp_format: parameters.TimestampFormat = None
    skip: Annotated[int, about("Lines to leave out at the beginning, before the header.", ge=0)] = 0
    comment: Annotated[parameters.Character | None, about("Lines that begin with this are left out.")] = None
    fill_missing: Annotated[bool, about("A line with too few values is filled up with NULL.")] = False
    by_name: Annotated[bool, about("Files of a pattern may differ in their columns; NULL where one is missing.")] = (
        False
    )
    file_column: parameters.FileColumn = None
    sample: Annotated[
        int, about("Lines from which types are inferred; -1 for all of them, which reads the file twice.", ge=-1)
    ] = 20_480
    max_line_bytes: Annotated[int, about("The longest line that is accepted.", ge=1)] = 2_097_152
    on_error: parameters.OnError = "fail"
    credentials: parameters.Credentials = None

    def layout(self) -> Layout:
        delimiter = {"tab": "\t", "\\t": "\t"}.get(self.delimiter, self.delimiter)
        notation = Notation(self.decimal, self.thousands, self.date_format, self.timestamp_format)
        return Layout(
            delimiter=delimiter,
            quote=self.quote,
            escape=self.quote if self.escape is None else self.escape,
            header=self.header,
            skip=self.skip,
            comment=self.comment,
            encoding=file_paths.codec(self.encoding),
            null=(self.null,) if isinstance(self.null, str) else tuple(self.null),
            quoted_null=self.quoted_null,
            fill_missing=self.fill_missing,
            max_line_bytes=self.max_line_bytes,
            sample=self.sample,
            notation=notation,
        )

    incremental: IncrementalParam = None


def settle(params: ReadCsvParams, call: PlanCall | Call) -> Reading:
    """What is to be read. Looks at the files; raises ComponentFailure when they are not there or not what was asked
    for."""
    layout = params.layout()
    found = file_paths.readable_files(params.path, call, params.credentials)
    wanted = parameters.named(params.columns, call.declared.get("main"))
    groups = grouped(found, layout)
    if not any(group.names for group in groups):
        if not wanted:
            raise ComponentFailure(
                "format",
                f"`{found[0]}` is empty, so its columns are not known; hint: name them in `columns`",
                path=str(found[0]),
            )
        groups = [Group((), tuple(found[:1]))]
    elif wanted and not params.header:
        groups = [_renamed(group, tuple(wanted)) for group in groups]
    present = all_names(groups, by_name=params.by_name)
    given = {name: parameters.sql_type(type) for name, type in params.types.items()}
    given = {name: type for name, type in wanted.items() if type is not None} | given
    if present:
        problem = parameters.missing([*wanted, *params.types], present, f"`{found[0]}`")
        if problem is not None:
            raise ComponentFailure("columns", problem, path=str(found[0]))
    types = dict.fromkeys([*present, *wanted], NOTHING) | inferred(groups, layout, given)
    chosen = tuple(wanted) or present
    shown = {path: file_paths.shown(path, call) for path in found}
    is_copied = any(str(path) != name for path, name in shown.items())
    return Reading(
        tuple(groups),
        types,
        chosen,
        layout,
        params.file_column,
        shown if is_copied else None,
        whole=_whole(given, chosen, layout),
    )


def _whole(given: Mapping[str, str], chosen: Sequence[str], layout: Layout) -> tuple[str, ...]:
    if layout.notation.thousands is not None or not given:
        return ()
    return tuple(name for name in chosen if given.get(name) in WHOLE)


def _renamed(group: Group, names: tuple[str, ...]) -> Group:
    if group.names and len(names) != len(group.names):
        path = group.paths[0]
        raise ComponentFailure(
            "columns",
            f"{len(names)} columns are named, and the first line of `{path}` has {len(group.names)} values",
            path=str(path),
        )
    return replace(group, names=names)


class ReadCsv(FileReader[ReadCsvParams]):
    """Read rows from delimited text: CSV, TSV and their relatives.

    The first line names the columns unless `header: false`. Types are inferred from the first `sample` lines, or
    declared: in `columns`, in `types`, or as the component's `schema`. Only what would be written the same way again
    becomes a number, so that `007` stays the text it is; dates and timestamps are those of ISO 8601, or follow
    `date_format` and `timestamp_format`. A file without rows says nothing about its types: such a column goes with any
    other, so that a day on which nothing happened ends with no rows and not in an error.

    `path` may be a pattern (`in/2024-*.csv`); all files then have the same columns, in any order, unless `by_name:
    true`. Files that end in `.gz`, `.zst`, `.bz2` or `.xz` are unpacked.

    A line that cannot be read (too many or too few values, a value that is not of its column's type, a quote that is
    never closed, bytes that are not of the `encoding`) goes to the port `reject` with `error_code`, `error_message`,
    `file`, `line`, `column` and `raw_line`. When that port is not connected, such a line ends the component in ERROR,
    unless `on_error: skip`. Codes: `bad_value`, `missing_columns`, `too_many_columns`, `bad_quotes`, `line_too_long`,
    `bad_encoding`, `bad_line`.

    After-variables: `NB_LINE_REJECTED`, the lines that were not read.
    """

    type = "read_csv"
    refuses = True
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows"),
        Port("reject", reject=True, description="lines that cannot be read, with what is wrong"),
    )

    def is_fusable(self, params: ReadCsvParams, connected: frozenset[str]) -> bool:
        return "reject" not in connected and params.on_error == "fail" and file_paths.is_utf8(params.encoding)

    def wrong(self, params: ReadCsvParams) -> list[Mistake]:
        found = parameters.type_mistakes(params.columns, params.types)
        found += parameters.encoding_mistakes(params.encoding)
        if params.decimal == params.thousands:
            found.append(Mistake(("thousands",), "`decimal` and `thousands` cannot be the same"))
        return found

    def culprit(self, params: ReadCsvParams, failure: ComponentFailure) -> str:
        return "columns" if params.columns else "types" if params.types else "path"

    def settled(self, params: ReadCsvParams, call: PlanCall | Call) -> Reading:
        return settle(params, call)

    def selects(self, params: ReadCsvParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, SqlText]:
        try:
            # Everything is told and nothing left to find out; but a scan that looks at one row first is a fifth faster and
            # takes half the memory of one that is told not to look. Where the look fails, `run` reads the file.
            return {"main": select.sql(settle(params, call).query(auto_detect=None, sample_size=1))}
        except ComponentFailure:
            return {}

    def run(self, params: ReadCsvParams, call: Call) -> None:
        reading = settle(params, call)
        if file_paths.is_utf8(params.encoding):
            try:
                _deliver(reading, params, call)
            except RowsFailed as failure:
                if not has_mixed_ends(failure.message):
                    raise
            else:
                return
        with tempfile.TemporaryDirectory(prefix="utf8-", dir=call.work) as folder:
            _deliver(_recoded(reading, Path(folder)), params, call)


def _deliver(reading: Reading, params: ReadCsvParams, call: Call) -> None:
    rows, rejects = csv_rejects.read(reading, call)
    call.after["NB_LINE_REJECTED"] = rejects.count
    if "reject" in call.connected:
        call.put("reject", rejects.relation())
    elif rejects.count and params.on_error == "fail":
        raise rejects.failure()
    elif rejects.count:
        call.say(f"{rejects.count} lines were left out; the first: {rejects.first()}")
    call.put("main", rows)


def _recoded(reading: Reading, folder: Path) -> Reading:
    """The same read from copies in UTF-8."""
    copies: dict[Path, Path] = {}
    for path in (path for group in reading.groups for path in group.paths):
        copies[path] = folder / f"{len(copies)}.csv"
        recode(path, copies[path], reading.layout.encoding)
    groups = tuple(replace(group, paths=tuple(copies[path] for path in group.paths)) for group in reading.groups)
    shown = {copy: (reading.shown or {}).get(path, str(path)) for path, copy in copies.items()}
    return replace(reading, groups=groups, shown=shown)


_DECIMAL_POINT = ("DECIMAL", "DOUBLE", "FLOAT", "REAL")


class WriteCsvParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.TargetPath
    delimiter: parameters.Delimiter = ","
    header: Annotated[bool, about("Name the columns in the first line.")] = True
    quote: Annotated[str, about("The quote character, around values that need it.", min_length=1, max_length=1)] = '"'
    escape: Annotated[
        parameters.Character | None,
        about("The character that escapes a quote inside quotes; the quote itself if left out."),
    ] = None
    quote_all: Annotated[bool, about("Put quotes around every value.")] = False
    encoding: parameters.Encoding = "utf-8"
    null: Annotated[str, about("How a missing value is written.")] = ""
    decimal: parameters.Decimal = "."
    date_format: parameters.DateFormat = None
    timestamp_format: parameters.TimestampFormat = None
    append: parameters.Append = False
    credentials: parameters.Credentials = None


class WriteCsv(Sink[WriteCsvParams]):
    """Write rows as delimited text, with the names of the columns in the first line.

    The file replaces an older one when it is complete; with `append: true` rows are added to it, without a second
    header. Values that hold the delimiter, a quote or a line break are put in quotes. Lists and structures are
    written as DuckDB spells them. A path that ends in `.gz`, `.zst`, `.bz2` or `.xz` is packed.
    `encoding: utf-8-sig` is what Excel wants to recognise UTF-8.

    The rows go on through `main` when it is connected.
    """

    type = "write_csv"

    def check(self, params: WriteCsvParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        if wrong := parameters.encoding_mistakes(params.encoding):
            return wrong
        if params.append and Path(params.path).suffix in file_paths.PACKED:
            return [Mistake(("append",), "a packed file cannot be added to")]
        return []

    def is_fusable(self, params: WriteCsvParams, connected: frozenset[str]) -> bool:
        return not connected and not _needs_two_steps(params)

    def copy(self, params: WriteCsvParams, schema: Schema, call: PlanCall) -> Copy:
        assert not _needs_two_steps(params), "only `run` can write this: a COPY would replace the file"
        path = file_paths.target(params.path, call, params.credentials)
        file_paths.make_room(path)
        options = _options(params, packed=file_paths.BY_THE_ENGINE.get(path.suffix))
        # Where nothing came that says what the columns are, there is no header either.
        return Copy(path, "csv", options | {"header": params.header and not is_open(schema)})

    def run(self, params: WriteCsvParams, call: Call) -> None:
        """What one COPY cannot do: write beside, then add or recode."""
        rows = call.input()
        if not _needs_two_steps(params):
            query = select.sql(_written(rows.schema, "."))
            call.engine.copy(query, {"input": rows}, self.copy(params, rows.schema, call.plan()))
        else:
            self._in_two_steps(params, call)
        if "main" in call.connected:
            call.put("main", rows)

    def _in_two_steps(self, params: WriteCsvParams, call: Call) -> None:
        rows = call.input()
        path = file_paths.target(params.path, call, params.credentials, append=params.append)
        file_paths.make_room(path)
        header = params.header and not (params.append and file_paths.is_begun(path)) and not is_open(rows.schema)
        with tempfile.TemporaryDirectory(prefix="csv-", dir=call.work) as folder:
            part = Path(folder) / "part.csv"
            copy = Copy(part, "csv", _options(params, packed=None) | {"header": header})
            call.engine.copy(select.sql(_written(rows.schema, params.decimal)), {"input": rows}, copy)
            with (
                file_paths.target_file(path, append=params.append) as target,
                file_paths.packed_into(target, path) as packed,
            ):
                file_paths.pour(part, packed, file_paths.codec(params.encoding))


def _needs_two_steps(params: WriteCsvParams) -> bool:
    if Path(params.path).suffix in set(file_paths.PACKED) - set(file_paths.BY_THE_ENGINE):
        return True
    return params.append or params.decimal != "." or file_paths.codec(params.encoding) != "utf-8"


def _options(params: WriteCsvParams, *, packed: str | None) -> dict[str, Json]:
    options: dict[str, Json] = {
        "header": params.header,
        "delimiter": {"tab": "\t", "\\t": "\t"}.get(params.delimiter, params.delimiter),
        "quote": params.quote,
        "escape": params.quote if params.escape is None else params.escape,
        "nullstr": params.null,
    }
    if params.quote_all:
        options["force_quote"] = "*"
    if params.date_format is not None:
        options["dateformat"] = params.date_format
    if params.timestamp_format is not None:
        options["timestampformat"] = params.timestamp_format
    if packed is not None:
        options["compression"] = packed
    return options


def _written(schema: Schema, decimal: str) -> exp.Select:
    def cell(name: str, type: str) -> exp.Expr:
        if decimal == "." or not type.startswith(_DECIMAL_POINT) or type.endswith("]"):
            return select.column(name)
        text = select.cast(select.column(name), "VARCHAR")
        return exp.alias_(call("replace", text, ".", decimal), select.name(name))

    return exp.select(*(cell(column.name, column.type) for column in schema)).from_(select.table("input"))
