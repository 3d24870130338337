"""`context_load`: settings from a file or from rows, as global variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure, PlanCall
from penstock.components.flow.tool_calls import file_failures, missing_columns, place_of, require
from penstock.kernel.values import JsonMap
from penstock.ports.components import Mistake, Port
from penstock.ports.meanings import READS_FILE, only_when
from penstock.ports.rows import Schema


class ContextLoadParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[
        str | None,
        Meta(
            description="The file; without it the names and values come in through `input`.",
            extra_json_schema=only_when(READS_FILE, missing_ok=[None, False]),
        ),
    ] = None
    format: Annotated[
        Literal["auto", "yaml", "json", "env", "csv"],
        Meta(description="What is in it; `auto` goes by the file's name."),
    ] = "auto"
    prefix: Annotated[str, Meta(description="Put in front of every name.")] = ""
    key: Annotated[str, Meta(description="The column with the names, of `input` and of CSV.")] = "key"
    value: Annotated[str, Meta(description="The column with the values.")] = "value"
    required: Annotated[list[str], Meta(description="Names that must be there, without the prefix.")] = []
    missing_ok: Annotated[bool, Meta(description="A file that is not there is no error.")] = False
    encoding: Annotated[str, Meta(description="The encoding of the file.")] = "utf-8"
    delimiter: Annotated[str | None, Meta(description="Between the values of CSV; a comma, a tab in `.tsv`.")] = None


class ContextLoad(Action[ContextLoadParams]):
    """Read settings from a file, or from rows, into global variables.

    The context of a job does not change while it runs, so what is loaded here becomes globals: `host: db1` in the file is
    `{{ global.host }}` afterwards, with `prefix: db_` it is `{{ global.db_host }}`.

    YAML and JSON are one mapping, and its values keep their types; in `.env` files (`NAME=value`, quotes and `#` comments
    understood) and in CSV (a first line with the columns `key` and `value`) all values are text. Of rows on `input` the
    last one counts when a name comes twice; a row without a name is an error.

    The result is `{names}`; the values are not shown, as they may be secrets. After-variable: `COUNT`.
    """

    type: ClassVar[str] = "context_load"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False
    Params = ContextLoadParams
    inputs: ClassVar[tuple[Port, ...]] = (Port("input", required=False, description="rows of names and values"),)
    example: ClassVar[str] = """\
components:
  - name: settings
    type: fixed_rows
    params: {columns: [key, value], rows: [[table, orders], [country, NL]]}
  - name: load
    type: context_load
  - name: tell
    type: warn
    params: {message: "loading {{ global.table }} of {{ global.country }}"}
connections:
  data: settings.main -> load.input
  control: load (ok) tell
"""

    def check(self, params: ContextLoadParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        return _mistakes(params, "input" in inputs) or missing_columns(_places(params), inputs.get("input"))

    def run(self, params: ContextLoadParams, call: Call) -> JsonMap:
        require(_mistakes(params, "input" in call.inputs))
        values = _from_rows(params, call) if params.path is None else _from_file(params, params.path, call)
        absent = [name for name in params.required if name not in values]
        if absent:
            raise ComponentFailure("missing", f"`{'`, `'.join(absent)}` is required and was not among what was loaded")
        names = [params.prefix + name for name in values]
        for name, value in zip(names, values.values(), strict=True):
            call.globals[name] = value
        call.after["COUNT"] = len(names)
        return {"names": [*sorted(names)]}


def _mistakes(params: ContextLoadParams, fed: bool) -> list[Mistake]:
    if fed == (params.path is not None):
        had = "both" if fed else "neither"
        message = f"settings come either from a file, `path`, or from rows on `input`; here there is {had}"
        return [Mistake(("path",) if fed else (), message)]
    return []


def _places(params: ContextLoadParams) -> list[tuple[tuple[str | int, ...], str]]:
    return [(("key",), params.key), (("value",), params.value)]


def _from_file(params: ContextLoadParams, given: str, call: Call) -> JsonMap:
    from penstock.components.flow.context_formats import format_of, read

    path = place_of(given, call)
    if params.missing_ok and not path.exists():
        return {}
    form = format_of(path) if params.format == "auto" else params.format
    with file_failures(path):
        return read(path, form, params.encoding, (params.key, params.value), params.delimiter)


def _from_rows(params: ContextLoadParams, call: Call) -> JsonMap:
    from sqlglot import exp

    from penstock.components.flow.iterate_rows import mappings
    from penstock.data import select

    rows = call.input()
    require(missing_columns(_places(params), rows.schema))
    by_name = {column.name.casefold(): column for column in rows.schema}
    schema = (by_name[params.key.casefold()], by_name[params.value.casefold()])
    query = exp.select(*(select.column(column.name) for column in schema)).from_(select.table("input"))
    values: JsonMap = {}
    for number, row in enumerate(mappings(schema, call.engine.rows(select.sql(query), {"input": rows})), start=1):
        key, value = row.values()
        if key is None or key == "":
            raise ComponentFailure("rows", f"row {number} has no name in the column `{params.key}`")
        values[str(key)] = value
    return values
