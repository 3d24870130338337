"""`map`: an input with any number of lookups, variables, and any number of outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.components import inference
from penstock.components.base import Call, Known, Mistake, ParamPath, PlanCall, Port, Ports
from penstock.components.queries import gathered
from penstock.components.transform import map_query
from penstock.components.transform.base import Transform, missing, refuse, type_of
from penstock.components.transform.join import uncomparable
from penstock.components.transform.map_query import (
    MAIN,
    VARIABLES,
    MapParams,
    Names,
    as_expression,
    effective_outputs,
    flat_column,
)
from penstock.data import select
from penstock.ports.rows import Column, Schema

if TYPE_CHECKING:
    from sqlglot import exp


class Map(Transform[MapParams]):
    """Look values up, compute, and route rows to several outputs.

    For each row of `input` the `lookups` find rows of the other inputs; `variables` are computed once and used below; each of the
    `outputs` has columns of its own and may take only the rows that meet its `where`. A row may go to several outputs. One with
    `reject` takes the rows that no plain output took, and says why in `error_code` (`NO_MATCH` or `FILTER`) and `error_message`.

    Ports are named by the parameters: an input port for each lookup, an output port for each output. In expressions
    `input.amount`, `lookup_x.name` and `var.total` are exact; a bare name is a variable, else a column of `input`, else of the
    one lookup that has it.

    As in SQL, rows leave in no particular order unless `keep_order` is set.
    """

    type = "map"
    inputs: ClassVar[tuple[Port, ...]] = (Port(MAIN), Port("lookup_*", required=False))
    outputs: ClassVar[tuple[Port, ...]] = (Port("main"),)

    @classmethod
    def ports(cls, params: Mapping[str, Any]) -> Ports:
        lookups, outputs = params.get("lookups") or {}, params.get("outputs") or {"main": {}}
        inputs: tuple[Port, ...] = (Port(MAIN), Port("lookup_*", required=False))
        if isinstance(lookups, Mapping):
            inputs = (Port(MAIN), *(Port(str(name)) for name in lookups))
        if not isinstance(outputs, Mapping):
            return Ports(inputs, (Port("*"),))
        return Ports(inputs, tuple(Port(str(name), reject=_is_reject(one)) for name, one in outputs.items()))

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        plain = [port for port in cls.ports(params).outputs if not port.reject]
        return (MAIN, plain[0].name) if plain else None

    def is_fusable(self, params: MapParams, connected: frozenset[str]) -> bool:
        # With several outputs the lookups are joined once and kept, instead of once per output.
        return len(connected) < 2

    def wrong(self, params: MapParams, inputs: Known) -> Iterable[Mistake]:
        yield from _shape(params)
        known = {port: schema for port, schema in inputs.items() if schema is not None}
        if {MAIN, *params.lookups} <= {*known}:
            yield from _unresolved(params, known)

    def unbound(self, params: MapParams, inputs: Mapping[str, Schema]) -> Iterable[Mistake]:
        return _mistyped(params, inputs)

    def queries(self, params: MapParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        return map_query.outputs(params, inputs, map_query.shared(params, inputs, call.connected))

    def run(self, params: MapParams, call: Call) -> None:
        inputs = {port: gathered(call, port) for port in call.inputs}
        schemas = {port: rows.schema for port, rows in inputs.items()}
        refuse(self.wrong(params, schemas))
        joined = call.engine.select(select.sql(map_query.shared(params, schemas, call.connected)), inputs)
        for port, query in map_query.outputs(params, schemas, map_query.SHARED).items():
            if port in call.connected:
                call.put(port, call.engine.select(select.sql(query), {map_query.SHARED: joined}))


def _is_reject(output: Any) -> bool:
    return isinstance(output, Mapping) and bool(output.get("reject"))


def _shape(params: MapParams) -> Iterable[Mistake]:
    for port in params.lookups:
        if port.lower() in (MAIN, VARIABLES):
            yield Mistake(("lookups", port), f"a lookup cannot be called `{port}`: that name is taken")
    outputs = effective_outputs(params)
    if all(output.reject for output in outputs.values()):
        yield Mistake(("outputs",), "every output is a reject output: at least one must take rows")
    for port, output in outputs.items():
        if output.reject == "lookup" and all(lookup.how == "left" for lookup in params.lookups.values()):
            hint = "give a lookup `how: inner`"
            yield Mistake(("outputs", port, "reject"), "no lookup is `inner`, so no row is without a match", hint=hint)


def _pieces(params: MapParams, inputs: Mapping[str, Schema]) -> Iterable[tuple[ParamPath, str, Names, str]]:
    """Every expression with its place, the names it sees and its form."""
    seen = {MAIN: inputs[MAIN]}
    for port, lookup in params.lookups.items():
        if isinstance(lookup.on, dict):
            for column, text in lookup.on.items():
                yield ("lookups", port, "on", column), text, Names(dict(seen)), "value"
        seen[port] = inputs[port]
    known: list[str] = []
    for name, text in params.variables.items():
        yield ("variables", name), text, Names(seen, list(known)), "value"
        known.append(name)
    for port, output in effective_outputs(params).items():
        if isinstance(output.columns, dict):
            for name, expression in output.columns.items():
                place = ("outputs", port, "columns", name)
                yield place, f'"{name}"' if expression is None else expression, Names(seen, known), "value"
        if output.where is not None:
            yield ("outputs", port, "where"), output.where, Names(seen, known), "condition"


def _unresolved(params: MapParams, inputs: Mapping[str, Schema]) -> Iterable[Mistake]:
    """Names that stand for nothing, each with its place in the text."""
    for path, text, names, _ in _pieces(params, inputs):
        try:
            names.rewritten(text, flat_column)
        except select.SqlMistake as problem:
            yield inference.mistake_of(problem, path)
    for port, lookup in params.lookups.items():
        for index, column in enumerate(lookup.on):
            where = ("lookups", port, "on", column if isinstance(lookup.on, dict) else index)
            yield from missing(where, column, inputs[port], port)
            if isinstance(lookup.on, list):
                yield from missing(where, column, inputs[MAIN], MAIN)
    for port, output in effective_outputs(params).items():
        if isinstance(output.columns, list):
            yield from _unlisted(("outputs", port, "columns"), output.columns, Names(inputs, list(params.variables)))


def _unlisted(path: ParamPath, columns: list[str], names: Names) -> Iterable[Mistake]:
    for index, column in enumerate(columns):
        try:
            names.rewritten(as_expression(column), flat_column)
        except select.SqlMistake as problem:
            whole = select.SqlMistake(problem.message, 0, len(column), kind="column", missing=problem.missing)
            yield inference.mistake_of(whole, (*path, index))


def _mistyped(params: MapParams, inputs: Mapping[str, Schema]) -> Iterable[Mistake]:
    """All names are known: what is left are types that do not go together."""
    types: list[Column] = [
        Column(f"{port}.{column.name}", column.type) for port in (MAIN, *params.lookups) for column in inputs[port]
    ]
    for path, text, names, form in _pieces(params, inputs):
        found = inference.check(select.sql(names.rewritten(text, flat_column)), form, {"joined": tuple(types)})
        if found.mistake is not None:
            yield Mistake(path, found.mistake.message, hint=found.mistake.hint, offset=0, length=len(text), kind="type")
        elif path[0] == "variables":
            types.append(Column(f"{VARIABLES}.{path[1]}", found.type or "VARCHAR"))
        elif path[0] == "lookups" and found.type is not None:
            port, column = str(path[1]), str(path[3])
            key = (column, type_of(column, inputs[port]), port)
            yield from uncomparable(path, (text, found.type, MAIN), key)
