"""The queries of `map`: one that joins and computes, and one per output that takes what it wants of it.

The first gives every value a flat name, says for each inner lookup whether something was found, and for each output whether its
condition holds; so all outputs agree on every row, even where an expression throws dice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
from sqlglot import exp

from penstock.components import queries as build
from penstock.components.transform.base import Parameters, actual
from penstock.components.transform.join import MATCH_WORDS, Match, On, beside, chosen
from penstock.data import select
from penstock.data.sql_rules import SqlMistake, span
from penstock.data.types import MissingColumn
from penstock.ports.rows import Schema
from penstock.tools.parameters import about, similar


class LookupSpec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    on: Annotated[
        On,
        about(
            "The key: columns that the input has under the same name, or a mapping of a column of the lookup to an "
            "SQL expression over the input and the lookups above."
        ),
    ]
    how: Annotated[
        Literal["inner", "left"],
        about("`left`: a row without a match goes on, with nothing in these columns. `inner`: it is rejected."),
    ] = "left"
    match: Annotated[Match, about(MATCH_WORDS)] = "unique"


class OutputSpec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    columns: Annotated[
        dict[str, str | None] | list[str] | None,
        about(
            "Column name to SQL expression, or a list of columns. Without it, all columns of the input and of the "
            "lookups."
        ),
    ] = None
    where: Annotated[str | None, about("SQL condition for the rows this output takes.")] = None
    reject: Annotated[
        bool | Literal["filter", "lookup"],
        about(
            "Take the rows that no plain output took: `lookup` those without a match in an inner lookup, `filter` "
            "those that meet no condition, `true` both."
        ),
    ] = False


class MapParams(Parameters):
    lookups: Annotated[dict[str, LookupSpec], about("Input port -> how its rows are found.")] = {}  # noqa: RUF012
    variables: Annotated[dict[str, str], about("Name to SQL expression, for use below as `name` or `var.name`.")] = {}  # noqa: RUF012
    outputs: Annotated[
        dict[str, OutputSpec], about("Output port -> what it gives; `main` with all columns by default.")
    ] = {}  # noqa: RUF012
    suffix: Annotated[str, about("What is added to a column of a lookup whose name is taken.", min_length=1)] = (
        "_lookup"
    )
    keep_order: Annotated[
        bool, about("Give the rows in the order of the input, at the cost of sorting them. Otherwise any order.")
    ] = False


def effective_outputs(params: MapParams) -> dict[str, OutputSpec]:
    return params.outputs or {"main": OutputSpec()}


MAIN = "input"
VARIABLES = "var"

Spelling = "Callable[[str, str], exp.Expr]"


@dataclass(slots=True)
class Names:
    """What is visible at one place: the input, the lookups joined so far and the variables computed so far."""

    ports: Mapping[str, Schema]
    variables: list[str] = field(default_factory=list)

    def rewritten(self, text: str, spell: Callable[[str, str], exp.Expr]) -> exp.Expr:
        """The author's expression with every name replaced by `spell(owner, column)`. Raises SqlMistake."""
        tree = select.expression(text)

        def replace(node: exp.Expr) -> exp.Expr:
            return self._replaced(node, spell) if isinstance(node, exp.Column) else node

        return tree.transform(replace)

    def _replaced(self, node: exp.Column, spell: Callable[[str, str], exp.Expr]) -> exp.Expr:
        parts = node.parts
        words = [part.name for part in parts]
        found = self._owner(words)
        if found is None:
            if node.find_ancestor(exp.Query) is not None:
                return node  # a name of an inner query's own
            raise self._unknown(node, words)
        owner, column, used = found
        value = spell(owner, column)
        for rest in parts[used:]:
            value = exp.Dot(this=value, expression=rest.copy())
        return value

    def _owner(self, words: list[str]) -> tuple[str, str, int] | None:
        """(owner, column, how many words that took); further words are fields of a structure."""
        first = words[0].lower()
        if len(words) > 1:
            port = next((port for port in self.ports if port.lower() == first), None)
            column = None if port is None else actual(words[1], self.ports[port])
            if port is not None and column is not None:
                return port, column, 2
            if first == VARIABLES and (variable := self._variable(words[1])) is not None:
                return VARIABLES, variable, 2
        if (variable := self._variable(first)) is not None:
            return VARIABLES, variable, 1
        having = [port for port, schema in self.ports.items() if actual(first, schema) is not None]
        # The ports come in the order of the links, so the input need not be the first of them.
        owner = MAIN if MAIN in having else having[0] if len(having) == 1 else None
        return None if owner is None else (owner, actual(first, self.ports[owner]) or first, 1)

    def _variable(self, word: str) -> str | None:
        return next((name for name in self.variables if name.lower() == word.lower()), None)

    def _unknown(self, node: exp.Column, words: list[str]) -> Exception:
        offset, length = span(node)
        dotted = ".".join(words)
        having = [
            f"`{port}.{words[-1]}`" for port, schema in self.ports.items() if actual(words[-1], schema) is not None
        ]
        if len(words) == 1 and having:
            message = f"`{dotted}` is in several lookups: say {' or '.join(having)}"
            return SqlMistake(message, offset, length, kind="column")
        known = [name for name in self.all_names() if ("." in name) == (len(words) > 1)]
        missing = (
            MissingColumn(words[1], words[0]) if len(words) > 1 and words[0] in self.ports else MissingColumn(dotted)
        )
        message = f"there is no column `{dotted}`{similar(dotted, known)}"
        return SqlMistake(message, offset, length, kind="column", missing=missing)

    def all_names(self) -> Iterator[str]:
        for port, schema in self.ports.items():
            for column in schema:
                yield column.name
                yield f"{port}.{column.name}"
        for variable in self.variables:
            yield variable
            yield f"{VARIABLES}.{variable}"


def flat(owner: str, column: str) -> str:
    return f"{owner}.{column}"


def flat_column(owner: str, column: str) -> exp.Expr:
    return select.column(flat(owner, column))


def qualified(owner: str, column: str) -> exp.Expr:
    return select.column(column, owner)


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
    flags = [flat_column(FOUND, port) for port in _inner(params)]
    return build.all_of(flags) if flags else exp.true()


def _route(params: MapParams, port: str, output: OutputSpec) -> exp.Expr:
    """Which of the joined rows an output takes."""
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
    plain = {port: output for port, output in effective_outputs(params).items() if not output.reject}
    if any(output.where is None for output in plain.values()):
        return exp.true()
    return exp.or_(*(flat_column(TAKEN, port) for port in plain)) if plain else exp.false()


def _reasons(params: MapParams, output: OutputSpec, own: set[str]) -> list[exp.Alias]:
    missed = exp.Not(this=exp.Paren(this=_found(params)))
    code = exp.Case(ifs=[exp.If(this=missed, true=select.literal("NO_MATCH"))], default=select.literal("FILTER"))
    messages = [
        exp.If(this=exp.Not(this=flat_column(FOUND, port)), true=select.literal(f"no row of `{port}` matches"))
        for port in _inner(params)
    ]
    otherwise = select.literal("no output takes this row")
    message = exp.Case(ifs=messages, default=otherwise) if messages else otherwise
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
    return {column.name for column in tree.find_all(exp.Column)}


def _star() -> exp.Expr:
    return exp.Star()
