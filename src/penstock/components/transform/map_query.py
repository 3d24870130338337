"""The queries of `map`: one that joins and computes, and one per output that takes what it wants of it.

The first gives every value a flat name, says for each inner lookup whether something was found, and for each output whether its
condition holds; so all outputs agree on every row, even where an expression throws dice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.components.transform.map_names import MAIN, VARIABLES, Names, flat, flat_column, qualified
from penstock.components.transform.map_params import LookupSpec, MapParams, OutputSpec, effective_outputs
from penstock.components.transform.matching import beside, chosen
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp

SHARED = "__joined"
FOUND = "__found"
TAKEN = "__taken"
PLACE = "__place"


def names_of(params: MapParams, inputs: Mapping[str, Schema]) -> Names:
    """Everything that an output's expression may name."""
    ports = {port: inputs[port] for port in (MAIN, *params.lookups) if port in inputs}
    return Names(ports, list(params.variables))


def shared(params: MapParams, inputs: Mapping[str, Schema], connected: Iterable[str]) -> exp.Query:
    """The joined rows with all that the connected outputs need."""
    from penstock.components import queries as build

    query: exp.Query = _joined(params, inputs)
    for layer in _variable_layers(params, inputs):
        query = build.picked([_star(), *(build.called(tree, flat(VARIABLES, name)) for name, tree in layer)], query)
    names = names_of(params, inputs)
    taken = [
        build.called(build.is_true(names.rewritten(output.where, flat_column)), flat(TAKEN, port))
        for port, output in effective_outputs(params).items()
        if output.where is not None
    ]
    whole = build.picked([_star(), *taken], query)
    needed = sorted(_needed(params, inputs, connected))
    return build.picked(build.columns(needed), whole) if needed else whole


def outputs(params: MapParams, inputs: Mapping[str, Schema], source: exp.Query | str) -> dict[str, exp.Query]:
    """A query per output over the shared rows, which are a table or a query of their own."""
    from penstock.components import queries as build
    from penstock.data import select

    made: dict[str, exp.Query] = {}
    for port, output in effective_outputs(params).items():
        expressions = [build.called(tree, name) for name, tree in _columns(params, inputs, output).items()]
        if output.reject:
            expressions += _reasons(params, output, set(_columns(params, inputs, output)))
        copied = source if isinstance(source, str) else source.copy()
        query = build.picked(expressions, copied, SHARED).where(_route(params, port, output))
        made[port] = query.order_by(build.ascending(select.column(PLACE))) if params.keep_order else query
    return made


def _joined(params: MapParams, inputs: Mapping[str, Schema]) -> exp.Select:
    from sqlglot import exp

    from penstock.components import queries as build
    from penstock.data import select

    seen: dict[str, Schema] = {MAIN: inputs[MAIN]}
    joins: list[exp.Join] = []
    expressions = _flattened(MAIN, inputs[MAIN])
    for port, lookup in params.lookups.items():
        keys = _keys(lookup, Names(dict(seen)))
        rows = chosen(port, list(keys), lookup.match, inputs[port])
        marked = exp.Select(
            expressions=[exp.Star(), build.called(exp.true(), FOUND)],
            from_=exp.From(this=build.named(rows, port) if isinstance(rows, exp.Query) else rows),
        )
        condition = build.all_of(
            [exp.EQ(this=value, expression=select.column(key, port)) for key, value in keys.items()]
        )
        joins.append(exp.Join(this=build.named(marked, port), kind="LEFT", on=condition))
        expressions += _flattened(port, inputs[port])
        found = exp.Not(this=exp.Is(this=select.column(FOUND, port), expression=exp.null()))
        expressions.append(build.called(found, flat(FOUND, port)))
        seen[port] = inputs[port]
    main: exp.Expr = select.table(MAIN)
    if params.keep_order:
        main = build.named(build.numbered(MAIN, PLACE), MAIN)
        expressions.append(build.called(select.column(PLACE, MAIN), PLACE))
    return exp.Select(expressions=expressions, from_=exp.From(this=main), joins=joins)


def _keys(lookup: LookupSpec, names: Names) -> dict[str, exp.Expr]:
    """Column of the lookup -> what it must be equal to."""
    on = lookup.on if isinstance(lookup.on, dict) else {name: name for name in lookup.on}
    return {column: names.rewritten(text, qualified) for column, text in on.items()}


def _flattened(port: str, schema: Schema) -> list[exp.Expr]:
    from penstock.components import queries as build
    from penstock.data import select

    return [build.called(select.column(column.name, port), flat(port, column.name)) for column in schema]


def _variable_layers(params: MapParams, inputs: Mapping[str, Schema]) -> list[list[tuple[str, exp.Expr]]]:
    """The variables in groups, each of which sees those before it."""
    ports = names_of(params, inputs).ports
    done: list[list[tuple[str, exp.Expr]]] = []
    known: list[str] = []
    for name, text in params.variables.items():
        tree = Names(ports, list(known)).rewritten(text, flat_column)
        fresh = {flat(VARIABLES, one) for one, _ in done[-1]} if done else set()
        if not done or _reads(tree) & fresh:
            done.append([])
        done[-1].append((name, tree))
        known.append(name)
    return done


def _columns(params: MapParams, inputs: Mapping[str, Schema], output: OutputSpec) -> dict[str, exp.Expr]:
    names = names_of(params, inputs)
    if output.columns is None:
        return _all_columns(params, inputs)
    if isinstance(output.columns, list):
        return {name.rpartition(".")[2]: names.rewritten(as_expression(name), flat_column) for name in output.columns}
    return {
        name: names.rewritten(as_expression(name) if text is None else text, flat_column)
        for name, text in output.columns.items()
    }


def as_expression(name: str) -> str:
    """A plain column name, which may have blanks in it, as an expression."""
    from penstock.data import select

    words = name.split(".", 1)
    return select.sql(select.column(words[-1], words[0] if len(words) > 1 else None))


def _all_columns(params: MapParams, inputs: Mapping[str, Schema]) -> dict[str, exp.Expr]:
    """Those of the input, and beside them those of the lookups."""
    made = {column.name: flat_column(MAIN, column.name) for column in inputs[MAIN]}
    for port, lookup in params.lookups.items():
        for new, old in beside(made, inputs[port], list(lookup.on), params.suffix).items():
            made[new] = flat_column(port, old)
    return made


def _inner(params: MapParams) -> list[str]:
    return [port for port, lookup in params.lookups.items() if lookup.how == "inner"]


def _found(params: MapParams) -> exp.Expr:
    from sqlglot import exp

    from penstock.components import queries as build

    flags = [flat_column(FOUND, port) for port in _inner(params)]
    return build.all_of(flags) if flags else exp.true()


def _route(params: MapParams, port: str, output: OutputSpec) -> exp.Expr:
    """Which of the joined rows an output takes."""
    from sqlglot import exp

    own = [flat_column(TAKEN, port)] if output.where is not None else []
    if not output.reject:
        return exp.and_(_found(params), *own)
    missed = exp.Not(this=exp.Paren(this=_found(params)))
    refused = exp.and_(_found(params), exp.Not(this=exp.Paren(this=_taken_by_any(params))))
    if output.reject == "lookup":
        return exp.and_(missed, *own)
    if output.reject == "filter":
        return exp.and_(refused, *own)
    return exp.and_(exp.Paren(this=exp.or_(missed, refused)), *own)


def _taken_by_any(params: MapParams) -> exp.Expr:
    from sqlglot import exp

    plain = {port: output for port, output in effective_outputs(params).items() if not output.reject}
    if any(output.where is None for output in plain.values()):
        return exp.true()
    return exp.or_(*(flat_column(TAKEN, port) for port in plain)) if plain else exp.false()


def _reasons(params: MapParams, output: OutputSpec, own: set[str]) -> list[exp.Alias]:
    from sqlglot import exp

    from penstock.components import queries as build
    from penstock.data import select

    missed = exp.Not(this=exp.Paren(this=_found(params)))
    code = exp.Case(ifs=[exp.If(this=missed, true=select.literal("NO_MATCH"))], default=select.literal("FILTER"))
    said = [
        exp.If(this=exp.Not(this=flat_column(FOUND, port)), true=select.literal(f"no row of `{port}` matches"))
        for port in _inner(params)
    ]
    otherwise = select.literal("no output takes this row")
    message = exp.Case(ifs=said, default=otherwise) if said else otherwise
    reasons = {"error_code": code, "error_message": message}
    taken = {name.lower() for name in own}
    return [build.called(tree, name) for name, tree in reasons.items() if name not in taken]


def _needed(params: MapParams, inputs: Mapping[str, Schema], connected: Iterable[str]) -> set[str]:
    """The flat names that the connected outputs read."""
    found: set[str] = {PLACE} if params.keep_order else set()
    for port, query in outputs(params, inputs, SHARED).items():
        if port in connected:
            found |= _reads(query)
    return found


def _reads(tree: exp.Expr) -> set[str]:
    from sqlglot import exp

    return {column.name for column in tree.find_all(exp.Column)}


def _star() -> exp.Expr:
    from sqlglot import exp

    return exp.Star()
