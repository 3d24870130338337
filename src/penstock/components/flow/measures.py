"""`log_catcher`, `flow_meter` and `stats`: failures, row counts and durations of the job so far, as rows.

Law: these look at the moment they run. Behind a `post_job` that is the whole job; anywhere else, what has ended by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from penstock.components.base import Action, Call, Known, PlanCall, Schemas
from penstock.kernel.values import JsonMap
from penstock.ports.components import Port
from penstock.ports.rows import Column, Schema
from penstock.tools.parameters import about

Row = tuple[Any, ...]

CAUGHT: Schema = (
    Column("component", "VARCHAR"),
    Column("severity", "VARCHAR"),
    Column("kind", "VARCHAR"),
    Column("message", "VARCHAR"),
    Column("code", "INTEGER"),
)
METERED: Schema = (Column("source", "VARCHAR"), Column("target", "VARCHAR"), Column("rows", "BIGINT"))
TIMED: Schema = (
    Column("component", "VARCHAR"),
    Column("state", "VARCHAR"),
    Column("rows_in", "BIGINT"),
    Column("rows_out", "BIGINT"),
    Column("ms", "DOUBLE"),
)


def _put(call: Call, schema: Schema, rows: list[Row]) -> JsonMap:
    call.put("main", call.engine.load(schema, [rows]))
    return {"count": len(rows)}


def _components(call: Call) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every component but the one that asks."""
    known = call.standing().get("components")
    own = call.component.rpartition("/")[2]  # Its name in the job, which may run inside another.
    for name, facts in (known if isinstance(known, dict) else {}).items():
        if name != own and isinstance(facts, Mapping):
            yield name, facts


class LogCatcherParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    catch: Annotated[
        list[Literal["error", "die", "warning"]],
        about("Which of them: failures, what `die` said, what `warn` said; all three by default."),
    ] = msgspec.field(default_factory=lambda: ["error", "die", "warning"])


class LogCatcher(Action[LogCatcherParams]):
    """Errors and warnings of this job so far, one row each; also of iterations that failed, whatever their iterator made of it.

    Columns of `main`: `component`, `severity` (`error`, `die` or `warning`), `kind`, `message`, `code`. Put it behind a
    `post_job`, or behind an `error` or `subjob_error` link. The result is `{count}`. After-variable: `COUNT`.
    """

    type: ClassVar[str] = "log_catcher"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="one row per error or warning"),)

    def schemas(self, params: LogCatcherParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": CAUGHT}

    def run(self, params: LogCatcherParams, call: Call) -> JsonMap:
        rows = [
            row for name, facts in _components(call) for row in _caught(name, facts, call) if row[1] in params.catch
        ]
        call.after["COUNT"] = len(rows)
        return _put(call, CAUGHT, rows)


def _caught(name: str, facts: Mapping[str, Any], call: Call) -> Iterator[Row]:
    error = facts.get("error")
    if error:
        details = error if isinstance(error, Mapping) else {"message": str(error)}
        kind = str(details.get("kind", ""))
        code = details.get("code", details.get("exit_code"))
        yield name, "die" if kind == "die" else "error", kind, str(details.get("message", "")), _whole(code)
    failures = facts.get("failures")
    for iteration, failure in failures.items() if isinstance(failures, Mapping) else ():
        yield from _caught(
            str(failure.get("component") or iteration) if failure else iteration, {"error": failure}, call
        )
    after = facts.get("after") or call.globals.get(name)
    if isinstance(after, Mapping) and "WARN_MESSAGE" in after:
        yield name, "warning", "warn", str(after["WARN_MESSAGE"]), _whole(after.get("WARN_CODE"))


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class MeasureParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    components: Annotated[list[str] | None, about("Names of components to look at; all when left out.")] = None


class FlowMeter(Action[MeasureParams]):
    """How many rows went over each data link of this job so far.

    Columns of `main`: `source`, `target`, `rows`; a link is named if either of its ends is in `components`. The result is
    `{count}`, the number of links.
    """

    type: ClassVar[str] = "flow_meter"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="one row per data link"),)

    def schemas(self, params: MeasureParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": METERED}

    def run(self, params: MeasureParams, call: Call) -> JsonMap:
        edges = call.standing().get("edges")
        rows: list[Row] = []
        for edge in edges if isinstance(edges, list) else []:
            if not isinstance(edge, Mapping) or not isinstance(edge.get("rows"), int) or edge.get("on") != "data":
                continue
            ends = (str(edge["from"]), str(edge["to"]))
            if params.components is None or any(_owner(end) in params.components for end in ends):
                rows.append((*ends, edge["rows"]))
        return _put(call, METERED, rows)


def _owner(end: str) -> str:
    """`orders.main` is an end at the component `orders`; inner names have dots of their own and are kept whole."""
    name, _, port = end.rpartition(".")
    return name if name and not port.startswith("__") else end


class Stats(Action[MeasureParams]):
    """State, rows and time of each component so far.

    Columns of `main`: `component`, `state` (`WAIT`, `RUNNING`, `OK`, `ERROR`, `SKIPPED`), `rows_in` and `rows_out` over all
    ports together, `ms`. The result is `{count}`. The times differ from run to run.
    """

    type: ClassVar[str] = "stats"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="one row per component"),)

    def schemas(self, params: MeasureParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": TIMED}

    def run(self, params: MeasureParams, call: Call) -> JsonMap:
        rows: list[Row] = [
            (
                name,
                str(facts.get("state", "")),
                _sum(facts.get("rows_in")),
                _sum(facts.get("rows_out")),
                facts.get("ms"),
            )
            for name, facts in _components(call)
            if params.components is None or name in params.components
        ]
        return _put(call, TIMED, rows)


def _sum(ports: object) -> int:
    return sum(ports.values()) if isinstance(ports, Mapping) else 0
