"""`write_json`: rows as JSON, in one list or one object a line."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Call, Mistake, PlanCall, Sink
from penstock.components.io import file_paths, placing, words
from penstock.components.io.write_csv import PACKED
from penstock.kernel.values import Json
from penstock.ports.rows import Copy, Schema

LINES = (".jsonl", ".ndjson", ".jsonlines")


class WriteJsonParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: words.TargetPath
    format: Annotated[
        Literal["auto", "array", "lines"],
        Meta(
            description="`array`: one list; `lines`: one object a line; `auto`: lines for `.jsonl` and `.ndjson`, else a list."
        ),
    ] = "auto"
    date_format: words.DateFormat = None
    timestamp_format: words.TimestampFormat = None
    append: words.Append = False


def is_lines(path: str, format: str) -> bool:
    bare = Path(path).with_suffix("") if Path(path).suffix in PACKED else Path(path)
    return format == "lines" or (format == "auto" and bare.suffix.lower() in LINES)


class WriteJson(Sink[WriteJsonParams]):
    """Write rows as JSON: one list of objects, or one object a line.

    The file replaces an older one when it is complete; lines can be added to it with `append: true`. Dates and
    timestamps are text, structures are objects, decimals are numbers with all their digits. A path that ends in `.gz`
    or `.zst` is packed.

    The rows go on through `main` when it is connected.
    """

    type = "write_json"
    Params = WriteJsonParams
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: write_events}
components:
  - name: events
    type: generate_rows
    params: {count: 3, columns: {id: i, name: "'event ' || i", tags: "['a', 'b']"}}
  - name: write
    type: write_json
    params: {path: events.jsonl}
connections:
  data: events.main -> write.input
"""

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        return "input", "main"

    def check(self, params: WriteJsonParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        if params.append and not is_lines(params.path, params.format):
            return [Mistake(("append",), "only lines can be added to a file; hint: `format: lines`")]
        if params.append and Path(params.path).suffix in PACKED:
            return [Mistake(("append",), "a packed file cannot be added to")]
        return []

    def is_fusable(self, params: WriteJsonParams, connected: frozenset[str]) -> bool:
        return not connected and not params.append

    def copy(self, params: WriteJsonParams, schema: Schema, call: PlanCall) -> Copy:
        assert not params.append, "only `run` can write this: a COPY would replace the file"
        path = file_paths.resolved(params.path, call)
        file_paths.make_room(path)
        return Copy(path, "json", _options(params, packed=PACKED.get(path.suffix)))

    def run(self, params: WriteJsonParams, call: Call) -> None:
        from penstock.components.queries import everything
        from penstock.data import select

        rows = call.input()
        query = select.sql(everything("input"))
        if not params.append:
            plan = PlanCall(call.folder, call.connected, call.declared)
            call.engine.copy(query, {"input": rows}, self.copy(params, rows.schema, plan))
        else:
            path = file_paths.resolved(params.path, call)
            file_paths.make_room(path)
            with tempfile.TemporaryDirectory(prefix="json-", dir=call.work) as folder:
                part = Path(folder) / "part.jsonl"
                call.engine.copy(query, {"input": rows}, Copy(part, "json", _options(params, packed=None)))
                with placing.appended_file(path) as target:
                    placing.pour(part, target)
        if "main" in call.connected:
            call.put("main", rows)


def _options(params: WriteJsonParams, *, packed: str | None) -> dict[str, Json]:
    options: dict[str, Json] = {"array": not is_lines(params.path, params.format)}
    if params.date_format is not None:
        options["dateformat"] = params.date_format
    if params.timestamp_format is not None:
        options["timestampformat"] = params.timestamp_format
    if packed is not None:
        options["compression"] = packed
    return options
