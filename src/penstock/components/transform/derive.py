"""`select` and `derive`: columns chosen, renamed and reordered, and new ones computed from others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, TypeAlias

from sqlglot import exp

from penstock.components import inference
from penstock.components import queries as build
from penstock.components.base import Known, Mistake, PlanCall, UserSql
from penstock.components.transform.base import Parameters, Transform, absent, actual, missing, repeated
from penstock.data import select
from penstock.ports.rows import Column, Schema
from penstock.tools.parameters import about

ALL_OTHERS = "*"
Chosen = list[str | dict[str, str]] | dict[str, str]


class SelectParams(Parameters):
    columns: Annotated[
        Chosen | None,
        about(
            "The columns that go on, in this order: a list of names, or a mapping of new name to old name. In a "
            "list, `{new: old}` renames one and `*` stands for all that are not named. All of them by default."
        ),
    ] = None
    exclude: Annotated[list[str], about("Columns to leave out.")] = []  # noqa: RUF012
    rename: Annotated[dict[str, str], about("Other names: old name to new name.")] = {}  # noqa: RUF012


class Select(Transform[SelectParams]):
    """Choose, rename and reorder columns.

    `columns` says which ones go on and in which order; `exclude` takes some away; `rename` gives new names to those that stay.
    """

    type = "select"
    keeps_count: ClassVar[bool] = True

    def wrong(self, params: SelectParams, inputs: Known) -> Iterable[Mistake]:
        schema = inputs.get("input")
        for path, _, old in _choices(params.columns):
            if old != ALL_OTHERS:
                yield from missing(path, old, schema)
        yield from absent(("exclude",), params.exclude, schema)
        for old in params.rename:
            yield from missing(("rename", old), old, schema)
        if schema is not None:
            yield from _clashes(_picked(params, schema))

    def queries(self, params: SelectParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        pairs = _picked(params, inputs["input"])
        return {"main": build.picked([build.called(select.column(old), new) for new, old in pairs], "input")}


def _choices(columns: Chosen | None) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """(where it stands, new name, old name) of each entry."""
    if isinstance(columns, dict):
        for new, old in columns.items():
            yield ("columns", new), new, old
        return
    for index, entry in enumerate(columns or ()):
        if isinstance(entry, str):
            yield ("columns", index), entry, entry
        else:
            for new, old in entry.items():
                yield ("columns", index, new), new, old


def _picked(params: SelectParams, schema: Schema) -> list[tuple[str, str]]:
    """(new name, old name) of each column that goes on."""
    choices = [(new, old) for _, new, old in _choices(params.columns)]
    if params.columns is None:
        choices = [(column.name, column.name) for column in schema]
    named_ones = {old.lower() for _, old in choices}
    gone = {name.lower() for name in params.exclude}
    renamed = {old.lower(): new for old, new in params.rename.items()}
    pairs: list[tuple[str, str]] = []
    for new, old in choices:
        if (new, old) == (ALL_OTHERS, ALL_OTHERS):
            pairs += [(one.name, one.name) for one in schema if one.name.lower() not in named_ones]
        else:
            found = actual(old, schema) or old
            pairs.append((found if new == old else new, found))
    kept = [(new, old) for new, old in pairs if old.lower() not in gone]
    return [(renamed.get(old.lower(), new) if new == old else new, old) for new, old in kept]


def _clashes(pairs: list[tuple[str, str]]) -> Iterator[Mistake]:
    for mistake in repeated((), [new for new, _ in pairs]):
        yield Mistake(("columns",), f"{mistake.message}: two columns would have that name")
    if not pairs:
        yield Mistake((), "no column is left")


class DeriveParams(Parameters):
    columns: Annotated[
        dict[str, str],
        about(
            "Column name to SQL expression. A name that exists is replaced in its place; others are added at the "
            "end. Later expressions may use earlier ones.",
            min_length=1,
        ),
    ]


class Derive(Transform[DeriveParams]):
    """Compute columns from the others.

    Each entry of `columns` is an SQL expression over the row. An expression sees the results of those above it, so that
    `gross: net * 1.19` may stand below `net: quantity * price`. Rows keep their order.
    """

    type = "derive"
    keeps_count: ClassVar[bool] = True

    def user_sql(self, params: DeriveParams) -> Iterable[UserSql]:
        # Those that see the result of another are bound in `unbound`, with the columns they will meet.
        for name, text in free_of(params.columns):
            yield UserSql(("columns", name), text, ("input",))

    def unbound(self, params: DeriveParams, inputs: Mapping[str, Schema]) -> Iterable[Mistake]:
        free = {name for name, _ in free_of(params.columns)}
        if len(free) == len(params.columns):
            return
        schema = inputs["input"]
        for name, text in params.columns.items():
            found = inference.check(text, "value", {"input": schema})
            if found.mistake is not None and name not in free:
                yield inference.mistake_of(found.mistake, ("columns", name))
            if found.mistake is not None or found.type is None:
                return  # what comes after may need it
            schema = _with_column(schema, Column(name, found.type))

    def queries(self, params: DeriveParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        parts: list[Layer] = layers(params.columns)
        return {"main": stacked_layers(parts, inputs["input"])}


def _with_column(schema: Schema, column: Column) -> Schema:
    if actual(column.name, schema) is None:
        return (*schema, column)
    return tuple(column if one.name.lower() == column.name.lower() else one for one in schema)


Layer: TypeAlias = "dict[str, exp.Expr]"


def layers(columns: Mapping[str, str]) -> list[Layer]:
    """The expressions, parsed, in groups that do not depend on each other. Raises SqlMistake."""
    made: list[Layer] = [{}]
    for name, text in columns.items():
        tree = select.expression(text)
        fresh = {one.lower() for one in made[-1]}
        if reads(tree) & fresh or name.lower() in fresh:
            made.append({})
        made[-1][name] = tree
    return made


def reads(tree: exp.Expr) -> set[str]:
    """The names an expression may be reading: of `a.b.c` each part may be the column."""
    return {part.name.lower() for column in tree.find_all(exp.Column) for part in column.parts}


def free_of(columns: Mapping[str, str]) -> list[tuple[str, str]]:
    """The expressions that read none of the names above them; unreadable ones are among them, to be complained of."""
    above: set[str] = set()
    found: list[tuple[str, str]] = []
    for name, text in columns.items():
        try:
            names = reads(select.expression(text))
        except select.SqlMistake:
            names = set()
        if not names & above:
            found.append((name, text))
        above.add(name.lower())
    return found


def stacked_layers(parts: list[Layer], schema: Schema) -> exp.Query:
    """The input's columns with those of the layers: replaced in their place, or added at the end."""
    query: exp.Query | str = "input"
    names = [column.name for column in schema]
    for layer in parts:
        fresh = {name.lower(): (name, tree) for name, tree in layer.items()}
        expressions: list[exp.Expr] = []
        for name in names:
            replaced = fresh.pop(name.lower(), None)
            expressions.append(select.column(name) if replaced is None else build.called(replaced[1], name))
        expressions += [build.called(tree, name) for name, tree in fresh.values()]
        names += [name for name, _ in fresh.values()]
        query = build.picked(expressions, query)
    assert not isinstance(query, str)
    return query
