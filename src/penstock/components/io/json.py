"""`read_json`: objects of JSON files as rows. Fused with what follows it when it can be; with a reject port it runs
by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Call, ComponentFailure, Mistake, PlanCall, Port, Relational
from penstock.components.incremental import IncrementalParam
from penstock.components.io import columns, file_paths, json_shape, words
from penstock.components.io.json_shape import Manner, Reading
from penstock.components.io.rejects import REJECTED
from penstock.data import select
from penstock.data.untyped import is_open
from penstock.ports.rows import RowsFailed, Schema, SqlText

_OF_THE_ROWS = ("format", "conversion", "data")


class ReadJsonParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: words.SourcePath
    format: Annotated[
        Literal["auto", "array", "lines"],
        Meta(description="`array`: one list of objects; `lines`: one object a line; `auto`: by how the file begins."),
    ] = "auto"
    rows: Annotated[
        str | None,
        Meta(
            description="Where in the document the list of rows is, such as `data.items`; the document itself if left out."
        ),
    ] = None
    columns: Annotated[
        words.Columns,
        Meta(description="The keys to read, in this order: names, or `{name, type}`. All of them when left out."),
    ] = []
    types: words.Types = {}
    date_format: words.DateFormat = None
    timestamp_format: words.TimestampFormat = None
    file_column: words.FileColumn = None
    sample: Annotated[int, Meta(ge=-1, description="Objects from which keys and types are inferred; -1 for all.")] = (
        20_480
    )
    max_object_bytes: Annotated[int, Meta(ge=1, description="The largest object that is accepted.")] = 16_777_216
    on_error: words.OnError = "fail"
    incremental: IncrementalParam = None


def settle(params: ReadJsonParams, call: PlanCall | Call) -> Reading:
    found = file_paths.all_files(params.path, call)
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
    wanted = columns.named(params.columns, call.declared.get("main"))
    types = {name: columns.sql_type(type) for name, type in params.types.items()}
    return json_shape.settle(found, manner, wanted, types, params.file_column)


class ReadJson(Relational[ReadJsonParams]):
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
    family = "read"
    Params = ReadJsonParams
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows"),
        Port("reject", reject=True, description="what is not a row, with what is wrong"),
    )
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: read_events}
components:
  - name: events
    type: generate_rows
    params: {count: 3, columns: {id: i, name: "'event ' || i"}}
  - name: write
    type: write_json
    params: {path: events.json}
  - name: read
    type: read_json
    params: {path: events.json}
  - name: show
    type: log_rows
connections:
  data: |
    events.main -> write.input
    read.main -> show.input
  control: |
    write (subjob_ok) read
"""

    def is_fusable(self, params: ReadJsonParams, connected: frozenset[str]) -> bool:
        return "reject" not in connected and params.on_error == "fail"

    def check(self, params: ReadJsonParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        found = columns.type_mistakes(params.columns, params.types)
        if found:
            return found
        try:
            settle(params, call)
        except ComponentFailure as failure:
            if failure.kind == "columns":
                where = "rows" if "`rows:" in failure.message else "columns" if params.columns else "types"
                return [Mistake((where,), failure.message, kind="column")]
        return []

    def schemas(
        self, params: ReadJsonParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
        try:
            found = settle(params, call).schema
            main = None if is_open(found) else found
        except ComponentFailure:
            main = call.declared.get("main")
        return {"main": main, "reject": REJECTED}

    def prepare(self, params: ReadJsonParams, call: PlanCall) -> None:
        settle(params, call)

    def selects(self, params: ReadJsonParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, SqlText]:
        try:
            return {"main": select.sql(settle(params, call).query())}
        except ComponentFailure:
            return {}  # `prepare` has said so in the run, and before it the file may be missing

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
    from penstock.components.io import json_rejects
    from penstock.components.io.row_types import first_failure

    objects = {"objects": json_rejects.objects(reading, call)}
    good, bad = json_rejects.parted(reading)
    rejected = call.engine.select(select.sql(bad), objects)
    call.after["NB_LINE_REJECTED"] = rejected.rows
    if "reject" in call.connected:
        call.put("reject", rejected)
    elif rejected.rows:
        first = first_failure(call, rejected)
        if params.on_error == "fail":
            raise first
        call.say(f"{rejected.rows} rows were left out; the first: {first.message}")
    call.put("main", call.engine.select(select.sql(good), objects))
