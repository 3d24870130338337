"""`write_csv`: rows as delimited text, written by DuckDB; what DuckDB cannot spell is written in two steps."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from penstock.components.base import Call, ComponentFailure, Mistake, PlanCall, Sink
from penstock.components.io import file_paths, placing, words
from penstock.data.untyped import is_open
from penstock.kernel.values import Json
from penstock.ports.rows import Copy, Schema

if TYPE_CHECKING:
    from sqlglot import exp

_DECIMAL_POINT = ("DECIMAL", "DOUBLE", "FLOAT", "REAL")
PACKED = {".gz": "gzip", ".zst": "zstd"}


class WriteCsvParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: words.TargetPath
    delimiter: words.Delimiter = ","
    header: Annotated[bool, Meta(description="Name the columns in the first line.")] = True
    quote: Annotated[
        str, Meta(min_length=1, max_length=1, description="The quote character, around values that need it.")
    ] = '"'
    escape: Annotated[
        words.Character | None,
        Meta(description="The character that escapes a quote inside quotes; the quote itself if left out."),
    ] = None
    quote_all: Annotated[bool, Meta(description="Put quotes around every value.")] = False
    encoding: words.Encoding = "utf-8"
    null: Annotated[str, Meta(description="How a missing value is written.")] = ""
    decimal: words.Decimal = "."
    date_format: words.DateFormat = None
    timestamp_format: words.TimestampFormat = None
    append: words.Append = False


class WriteCsv(Sink[WriteCsvParams]):
    """Write rows as delimited text, with the names of the columns in the first line.

    The file replaces an older one when it is complete; with `append: true` rows are added to it, without a second
    header. Values that hold the delimiter, a quote or a line break are put in quotes. Lists and structures are
    written as DuckDB spells them. A path that ends in `.gz` or `.zst` is packed. `encoding: utf-8-sig` is what Excel
    wants to recognise UTF-8.

    The rows go on through `main` when it is connected.
    """

    type = "write_csv"
    Params = WriteCsvParams
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: write_people}
components:
  - name: people
    type: fixed_rows
    params: {columns: [id, name, balance], rows: [[1, Ada, 12.5], [2, "Bob; the second", 3.25]]}
  - name: write
    type: write_csv
    params: {path: people.csv, delimiter: ";", decimal: ",", encoding: cp1252}
connections:
  data: people.main -> write.input
"""

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        return "input", "main"

    def check(self, params: WriteCsvParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        try:
            file_paths.codec(params.encoding)
        except ComponentFailure as failure:
            return [Mistake(("encoding",), failure.message)]
        if Path(params.path).suffix in PACKED and _needs_two_steps(params):
            return [Mistake(("path",), "a packed file cannot be appended to, nor have another `encoding` or `decimal`")]
        return []

    def is_fusable(self, params: WriteCsvParams, connected: frozenset[str]) -> bool:
        return not connected and not _needs_two_steps(params)

    def copy(self, params: WriteCsvParams, schema: Schema, call: PlanCall) -> Copy:
        assert not _needs_two_steps(params), "only `run` can write this: a COPY would replace the file"
        path = file_paths.resolved(params.path, call)
        file_paths.make_room(path)
        options = _options(params, packed=PACKED.get(path.suffix))
        # Where nothing came that says what the columns are, there is no header either.
        return Copy(path, "csv", options | {"header": params.header and not is_open(schema)})

    def run(self, params: WriteCsvParams, call: Call) -> None:
        """What one COPY cannot do: write beside, then add or recode."""
        from penstock.data import select

        rows = call.input()
        if not _needs_two_steps(params):
            plan = PlanCall(call.folder, call.connected, call.declared)
            query = select.sql(_written(rows.schema, "."))
            call.engine.copy(query, {"input": rows}, self.copy(params, rows.schema, plan))
        else:
            self._in_two_steps(params, call)
        if "main" in call.connected:
            call.put("main", rows)

    def _in_two_steps(self, params: WriteCsvParams, call: Call) -> None:
        from penstock.data import select

        rows, path = call.input(), file_paths.resolved(params.path, call)
        file_paths.make_room(path)
        header = params.header and not (params.append and placing.is_begun(path)) and not is_open(rows.schema)
        with tempfile.TemporaryDirectory(prefix="csv-", dir=call.work) as folder:
            part = Path(folder) / "part.csv"
            copy = Copy(part, "csv", _options(params, packed=None) | {"header": header})
            call.engine.copy(select.sql(_written(rows.schema, params.decimal)), {"input": rows}, copy)
            with placing.target_file(path, append=params.append) as target:
                placing.pour(part, target, file_paths.codec(params.encoding))


def _needs_two_steps(params: WriteCsvParams) -> bool:
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
    from sqlglot import exp

    from penstock.components.io.text_types import call
    from penstock.data import select

    def cell(name: str, type: str) -> exp.Expr:
        if decimal == "." or not type.startswith(_DECIMAL_POINT) or type.endswith("]"):
            return select.column(name)
        text = select.cast(select.column(name), "VARCHAR")
        return exp.alias_(call("replace", text, ".", decimal), select.name(name))

    return exp.select(*(cell(column.name, column.type) for column in schema)).from_(select.table("input"))
