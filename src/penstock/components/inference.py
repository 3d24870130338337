"""Plan-time inference of one use of a component: its mistakes, its output columns, and their lineage.

Parameters may hold `UNKNOWN`. What is known is checked and the rest is left alone: no mistake is ever reported of a value that
nobody has seen, and a schema that may depend on one is not claimed. A condition that is not known changes no columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from sqlglot import exp

from penstock.components import incremental
from penstock.components.base import (
    ColumnMistake,
    Component,
    ComponentFailure,
    Known,
    ParamPath,
    PlanCall,
    Relational,
    Sink,
    UserSql,
)
from penstock.data import lineage, select
from penstock.data.types import is_open
from penstock.ports.components import NO_SCHEMAS, Inferred, Mistake, Port, Unknown
from penstock.ports.rows import RowsFailed, Schema, SqlText
from penstock.tools.base import ToolFailure
from penstock.tools.parameters import convert

if TYPE_CHECKING:
    from penstock.data.binder import Binder, BoundSql
    from penstock.data.select import SqlMistake


def check(text: str, form: str, inputs: Mapping[str, Schema]) -> BoundSql:
    return _binder().check(text, form, inputs)


def schema(query: SqlText, inputs: Mapping[str, Schema]) -> Schema:
    """Raises RowsFailed."""
    return _binder().schema(query, inputs)


def mistake_of(problem: SqlMistake, path: tuple[str | int, ...]) -> Mistake:
    """A mistake in a piece of SQL as one in the parameter that holds it."""
    offset, length = problem.offset, problem.length
    if problem.missing is None:
        return Mistake(path, problem.message, hint=problem.hint, offset=offset, length=length, kind=problem.kind)
    return ColumnMistake(
        path,
        problem.message,
        hint=problem.hint,
        offset=offset,
        length=length,
        kind=problem.kind,
        missing=problem.missing,
    )


@cache
def _binder() -> Binder:
    from penstock.data.binder import Binder  # DuckDB takes 0.1 s to import, and a job without SQL needs none.

    return Binder()


_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_STAND_IN = "true"
"""Takes the place of an unknown text: harmless where a condition is meant, and a value that depends on it is never used."""


def infer(
    component: Component[Any],
    params: Mapping[str, Any],
    inputs: Known,
    outputs: tuple[str, ...],
    folder: Path,
    declared: Mapping[str, Schema] = NO_SCHEMAS,
    *,
    engine: str = "duckdb",
    with_lineage: bool = True,
) -> Inferred:
    """`with_lineage`: also follow every column to where it comes from, which takes longer than all the rest."""
    unknown = frozenset(_unknown(params, ()))
    mistakes, model = _converted(component, params, unknown)
    if model is None:
        return Inferred(dict.fromkeys(outputs), tuple(mistakes))
    call = PlanCall(folder, frozenset(outputs), declared)
    pieces = list(_pieces(component, model))
    mistakes += [*_unbound(pieces, inputs, unknown), *_checked(component, model, inputs, call, unknown)]
    if (refused := component.refused_on(engine, model, call)) is not None:
        mistakes.append(Mistake((), f"`{component.type}` cannot run on `{engine}`: {refused}", kind="engine"))
    conditions = {piece.path for piece in pieces if piece.form == "condition"}
    if mistakes or not unknown <= conditions:
        return Inferred(dict.fromkeys(outputs), tuple(mistakes))
    found, queries = _shapes(component, model, inputs, outputs, call)
    if engine != "duckdb" and (wrong := list(_not_there(engine, component, model, inputs, call, queries))):
        return replace(found, mistakes=(*found.mistakes, *wrong))
    asked = getattr(model, "incremental", None)
    if asked is not None and (wrong := incremental.mistakes(asked, found.outputs.get("main"))):
        return replace(found, mistakes=(*found.mistakes, *wrong))
    known = {port: schema for port, schema in inputs.items() if schema is not None}
    if with_lineage and known:
        for port, query in queries.items():
            found.lineage[port] = lineage.lineage(query, known, [column.name for column in found.outputs[port] or ()])
    return found


def _not_there(
    engine: str, component: Component[Any], params: Any, inputs: Known, call: PlanCall, queries: Mapping[str, SqlText]
) -> Iterable[Mistake]:
    """What an engine of another kind than DuckDB cannot do."""
    from penstock.data.translation import INSTEAD  # Only jobs that ask for another engine need it.

    translated: Callable[[SqlText, Mapping[str, Schema], Callable[[SqlText], Schema]], object]
    if engine == "spark":
        from penstock.data.spark.files import check  # Only jobs on Spark need it.
        from penstock.data.spark.sql import spark_query

        translated = spark_query
    elif engine == "snowflake":
        from penstock.data.database.snowflake_sql import check, snowflake_query  # Only jobs in Snowflake need it.

        translated = snowflake_query
    else:
        from penstock.data.database.postgres_sql import check, postgres_query  # Only jobs in a database need it.

        translated = postgres_query

    whose = f"`{component.type}` cannot run on `{engine}`"
    reason = component.bound_here(params, inputs, call)
    # Out of a database rows come here, and go back, for components that make something of each of them.
    if reason is not None and (engine == "spark" or isinstance(component, Relational)):
        yield Mistake((), f"{whose}: {reason}", hint=INSTEAD, kind="engine")
        return
    known = {port: columns for port, columns in inputs.items() if columns is not None}
    # Of columns that only the run knows, at least the functions are looked at.
    for piece in _pieces(component, params) if not queries else ():
        if piece.form == "query":
            continue
        try:
            translated(select.sql(exp.select(select.expression(piece.text))), {}, lambda part: ())
        except select.SqlMistake as problem:
            yield Mistake(piece.path, f"{whose}: {problem.message}", hint=problem.hint, kind="engine")
            return
    for query in queries.values():
        try:
            check(query, known, lambda part: schema(part, known))
        except select.SqlMistake as problem:
            yield Mistake((), f"{whose}: {problem.message}", hint=problem.hint, kind="engine")
            return


def _unbound(pieces: Iterable[UserSql], inputs: Known, unknown: frozenset[ParamPath]) -> Iterable[Mistake]:
    for piece in pieces:
        if not any(piece.path[: len(place)] == place for place in unknown):
            problem = _problem(piece, inputs)
            if problem is not None:
                yield mistake_of(problem, piece.path)


def _problem(piece: UserSql, inputs: Known) -> select.SqlMistake | None:
    seen = _visible(piece.inputs, inputs)
    if seen is not None:
        return check(piece.text, piece.form, seen).mistake
    try:
        _ = select.query(piece.text) if piece.form == "query" else select.expression(piece.text)
    except select.SqlMistake as problem:
        return problem
    return None


def _shapes(
    component: Component[Any], params: Any, inputs: Known, outputs: tuple[str, ...], call: PlanCall
) -> tuple[Inferred, dict[str, SqlText]]:
    """What flows out of the connected ports, and by which queries."""
    schemas = component.schemas(params, inputs, call)
    if isinstance(component, Sink) and not schemas:
        schemas = dict.fromkeys(outputs, next(iter(inputs.values()), None))
    found = Inferred({port: schemas.get(port) for port in outputs})
    known = {port: schema for port, schema in inputs.items() if schema is not None}
    if not isinstance(component, Relational) or len(known) < len(inputs):
        return found, {}
    try:
        queries = component.selects(params, known, call)
        for port, query in queries.items():
            shape = found.outputs.get(port) or schema(query, known)
            found.outputs[port] = None if is_open(shape) else shape
    except (ComponentFailure, RowsFailed, select.SqlMistake) as problem:
        # The pieces are right and the whole is not; a message about the whole has no place of its own.
        return Inferred(dict.fromkeys(outputs), (Mistake((), problem.message),)), {}
    return found, queries


def _visible(ports: Iterable[str], inputs: Known) -> dict[str, Schema] | None:
    """The columns a piece of SQL may name; None while those of one of the inputs are not known."""
    seen: dict[str, Schema] = {}
    for port in ports:
        for name, schema in inputs.items():
            if Port(port).accepts(name):
                if schema is None:
                    return None
                seen[name] = schema
    return seen


def _pieces(component: Component[Any], params: Any) -> Iterable[UserSql]:
    written = getattr(component, "user_sql", None)
    return () if written is None else written(params)


def _checked(
    component: Component[Any], params: Any, inputs: Known, call: PlanCall, unknown: frozenset[ParamPath]
) -> list[Mistake]:
    """What the component itself has to say, but nothing about values that stand in for unknown ones."""
    found = [*_formats(params), *component.check(params, inputs, call)]
    return found if not unknown else [one for one in found if not _touches(one.path, unknown)]


def _formats(params: Any) -> Iterable[Mistake]:
    """A format without a `%` is a text that no date is written as."""
    for name, example in (("date_format", "%d.%m.%Y"), ("timestamp_format", "%d.%m.%Y %H:%M:%S")):
        text = getattr(params, name, None)
        if isinstance(text, str) and "%" not in text:
            hint = f"its parts are written as in `{example}`"
            yield Mistake((name,), f"`{text}` names no part of a date", hint=hint)


def _touches(path: ParamPath, unknown: frozenset[ParamPath]) -> bool:
    return any(path[: len(place)] == place or place[: len(path)] == path for place in unknown)


def _unknown(value: Any, path: ParamPath) -> Iterable[ParamPath]:
    if isinstance(value, Unknown):
        yield path
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _unknown(inner, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _unknown(inner, (*path, index))


def _converted(
    component: Component[Any], params: Mapping[str, Any], unknown: frozenset[ParamPath]
) -> tuple[list[Mistake], msgspec.Struct | None]:
    """The parameters as the component's model, or what is wrong with them. Both may be missing when too little is known."""
    try:
        return [], convert(component.type, component.Params, _stood_in(params) if unknown else params)
    except ToolFailure as failure:
        problems = failure.detail.get("problems")
    assert isinstance(problems, list)
    found = []
    for problem in problems:
        assert isinstance(problem, dict)
        place = _path(str(problem["parameter"]))
        if not _touches(place, unknown):
            found.append(Mistake(place, str(problem["message"])))
    return found, None


def _stood_in(value: Any) -> Any:
    if isinstance(value, Unknown):
        return _STAND_IN
    if isinstance(value, Mapping):
        return {key: _stood_in(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_stood_in(inner) for inner in value]
    return value


def _path(text: str) -> ParamPath:
    """`rules[2].column` as a path. What stands behind `[...]`, some key of a mapping, is not known."""
    known = text.partition("[...]")[0]
    return tuple(int(number) if number else word for number, word in _STEP.findall(known))
