"""`normalise` and `unpivot`: one row becomes many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Known, Mistake, PlanCall
from penstock.components.transform.base import (
    Parameters,
    Transform,
    absent,
    actual,
    family,
    missing,
    repeated,
    type_of,
    unused,
)
from penstock.data import select
from penstock.data.types import NOTHING
from penstock.ports.rows import Schema
from penstock.tools.parameters import about


class NormaliseParams(Parameters):
    column: Annotated[str, about("The column with several values: text to cut, or a list.")]
    separator: Annotated[str, about("The delimiter between the values of a text.", min_length=1)] = ","
    trim: Annotated[bool, about("Cut blanks off both ends of each value.")] = True
    keep_empty: Annotated[
        bool, about("A row without any value stays, with nothing in the column; otherwise it goes.")
    ] = True
    position: Annotated[str | None, about("A new column for the number of the value in its row, from 1.")] = None


class Normalise(Transform[NormaliseParams]):
    """Make one row of each value in a field.

    The column holds text with separators, or a list; all other columns are repeated. Rows and values keep their order.
    `denormalise` is the way back.
    """

    type = "normalise"

    def wrong(self, params: NormaliseParams, inputs: Known) -> Iterable[Mistake]:
        schema = inputs.get("input")
        yield from missing(("column",), params.column, schema)
        if schema is None:
            return
        kind = type_of(params.column, schema)
        if kind and not _is_list(kind) and kind.upper() not in ("VARCHAR", NOTHING):
            message = f"`{params.column}` is {kind}: only text and lists hold several values"
            yield Mistake(("column",), message, offset=0, length=len(params.column), kind="type")
        if params.position is not None and actual(params.position, schema) is not None:
            yield Mistake(("position",), f"there is a column `{params.position}` already")

    def queries(self, params: NormaliseParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        schema = inputs["input"]
        column = actual(params.column, schema) or params.column
        values = unused("__values", schema)
        whole = build.picked([exp.Star(), build.called(_values(params, column, schema), values)], "input")
        one = build.function("unnest", select.column(values))
        number = build.function("unnest", build.function("range", select.literal(1), _after_last(values)))
        expressions: list[exp.Expr] = [
            build.called(one, name) if name == column else select.column(name) for name in build.names(schema)
        ]
        if params.position is not None:
            expressions.append(build.called(number, params.position))
        return {"main": build.picked(expressions, whole)}


def _is_list(kind: str) -> bool:
    return kind.endswith("]")


def _after_last(values: str) -> exp.Expr:
    return exp.Add(this=build.function("len", select.column(values)), expression=select.literal(1))


def _values(params: NormaliseParams, column: str, schema: Schema) -> exp.Expr:
    """The values of the field as a list; one that holds only NULL when there are none and the row is to stay."""
    field: exp.Expr = select.column(column)
    if _is_list(type_of(column, schema)):
        listed: exp.Expr = select.cast(field, type_of(column, schema).rpartition("[")[0] + "[]")
    else:
        text = build.function("nullif", field, select.literal(""))
        listed = build.function("string_split", text, select.literal(params.separator))
        if params.trim:
            trimmed = exp.Lambda(this=build.function("trim", exp.column("e")), expressions=[exp.to_identifier("e")])
            listed = build.function("list_transform", listed, trimmed)
    if not params.keep_empty:
        return listed
    some = exp.GT(this=build.function("len", listed), expression=select.literal(0))
    nothing = exp.Array(expressions=[exp.null()])
    return exp.Case(ifs=[exp.If(this=some, true=listed.copy())], default=nothing)


class UnpivotParams(Parameters):
    columns: Annotated[
        list[str] | None, about("The columns that become rows; all that are not in `keep` by default.")
    ] = None
    keep: Annotated[
        list[str] | None, about("The columns that are repeated; all that are not in `columns` by default.")
    ] = None
    name: Annotated[str, about("The new column for the old column names.", min_length=1)] = "name"
    value: Annotated[str, about("The new column for the values.", min_length=1)] = "value"
    keep_nulls: Annotated[bool, about("Make a row for missing values, too.")] = False


class Unpivot(Transform[UnpivotParams]):
    """Turn columns into rows: one row for each of the columns, with its name and its value.

    `columns` become rows, `keep` are repeated in each of them; one of the two is enough. The values must be of one type, or of
    types that fit into one (whole numbers and decimals): convert them first when they are not.
    """

    type = "unpivot"

    def wrong(self, params: UnpivotParams, inputs: Known) -> Iterable[Mistake]:
        schema = inputs.get("input")
        if params.columns is None and params.keep is None:
            yield Mistake((), "at least one of `columns` and `keep` is needed")
            return
        for field, given in (("columns", params.columns), ("keep", params.keep)):
            yield from absent((field,), given or (), schema)
            yield from repeated((field,), given or ())
        if params.name.lower() == params.value.lower():
            yield Mistake(("value",), "`name` and `value` are the same column")
        if schema is not None:
            kept, folded = _sides(params, schema)
            if not folded:
                yield Mistake((), "no column is left to become rows")
            for field, given_name in (("name", params.name), ("value", params.value)):
                if given_name.lower() in {one.lower() for one in kept}:
                    yield Mistake((field,), f"there is a column `{given_name}` already: choose another name")
            yield from _different(params, folded, schema)

    def queries(self, params: UnpivotParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        kept, folded = _sides(params, inputs["input"])
        named = build.function("unnest", select.literal(folded))
        valued = build.function("unnest", exp.Array(expressions=build.columns(folded)))
        query = build.picked(
            [*build.columns(kept), build.called(named, params.name), build.called(valued, params.value)], "input"
        )
        if params.keep_nulls:
            return {"main": query}
        there = exp.Not(this=exp.Is(this=select.column(params.value), expression=exp.null()))
        return {"main": build.picked([exp.Star()], query).where(there)}


def _sides(params: UnpivotParams, schema: Schema) -> tuple[list[str], list[str]]:
    """(columns that stay, columns that become rows), as they are spelled in the schema."""
    names = [column.name for column in schema]
    kept = {name.lower() for name in params.keep or ()}
    if params.columns is None:
        folded = [name for name in names if name.lower() not in kept]
    else:
        folded = [actual(name, schema) or name for name in params.columns]
    gone = {name.lower() for name in folded}
    if params.keep is not None:
        return [actual(name, schema) or name for name in params.keep], folded
    return [name for name in names if name.lower() not in gone], folded


def _different(params: UnpivotParams, folded: list[str], schema: Schema) -> Iterable[Mistake]:
    first = next((name for name in folded if type_of(name, schema) not in ("", NOTHING)), None)
    for index, name in enumerate(folded):
        if first is None or type_of(name, schema) in ("", NOTHING):
            continue
        if family(type_of(name, schema)) != family(type_of(first, schema)):
            path = ("columns", index) if params.columns is not None else ("keep",)
            kinds = f"`{name}` is {type_of(name, schema)} and `{first}` is {type_of(first, schema)}"
            message = f"{kinds}: one column cannot hold both"
            yield Mistake(
                path, message, hint="convert them to one type first, with `convert_types` or `derive`", kind="type"
            )
            return
