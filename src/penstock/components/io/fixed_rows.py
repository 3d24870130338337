"""`fixed_rows`: rows that stand in the document itself."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from sqlglot import exp

from penstock.components.base import ComponentFailure, Known, Mistake, PlanCall, Port, Relational, Schemas
from penstock.components.io import parameters, scans
from penstock.components.io.row_types import try_cast
from penstock.data import select
from penstock.data.types import NOTHING
from penstock.ports.rows import Column, Schema, SqlText
from penstock.tools.parameters import about, similar

Rows = list[list[Any] | dict[str, Any]]


class FixedRowsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    columns: Annotated[
        parameters.Columns, about("The columns: names, or `{name, type}`. May be left out when rows are mappings.")
    ] = []
    rows: Annotated[Rows, about("The rows: lists of values in the order of `columns`, or mappings.")]


_SIMPLE: dict[type, str] = {
    bool: "BOOLEAN", float: "DOUBLE", str: "VARCHAR", datetime.datetime: "TIMESTAMP", datetime.date: "DATE",
    datetime.time: "TIME", bytes: "BLOB", dict: "JSON",
}  # fmt: skip


def _type_of(value: Any) -> str:
    if isinstance(value, list):
        inner = common_type(value)
        return "JSON" if inner == "JSON" else f"{inner}[]"
    if isinstance(value, bool) or not isinstance(value, int):
        return _SIMPLE.get(type(value), "DOUBLE" if isinstance(value, decimal.Decimal) else "VARCHAR")
    return "BIGINT" if -(2**63) <= value < 2**63 else "HUGEINT"


def common_type(values: Sequence[Any]) -> str:
    """The narrowest type that takes all of them; text when they have nothing in common."""
    kinds = {_type_of(value) for value in values if value is not None}
    if len(kinds) == 1:
        return kinds.pop()
    if not kinds:
        return "VARCHAR"
    if kinds <= {"BIGINT", "HUGEINT"}:
        return "HUGEINT"
    if kinds <= {"BIGINT", "HUGEINT", "DOUBLE"}:
        return "DOUBLE"
    return "JSON" if any(kind == "JSON" or kind.endswith("[]") for kind in kinds) else "VARCHAR"


def _names(params: FixedRowsParams, declared: Schema | None) -> dict[str, str | None]:
    named = parameters.named(params.columns, declared)
    if not named:
        for row in params.rows:
            if isinstance(row, dict):
                named.update(dict.fromkeys(row, None))
    return named


def _cells(row: list[Any] | dict[str, Any], names: Sequence[str]) -> list[Any]:
    return [row.get(name) for name in names] if isinstance(row, dict) else row


def _settled(params: FixedRowsParams, declared: Schema | None) -> tuple[Schema, list[list[Any]]]:
    named = _names(params, declared)
    rows = [_cells(row, list(named)) for row in params.rows]
    given = tuple(
        Column(name, type or (common_type([row[index] for row in rows]) if rows else NOTHING))
        for index, (name, type) in enumerate(named.items())
    )
    return given, rows


def _text(value: Any, type: str) -> exp.Expr:
    """A value on its way to a type: as text, which every type can be cast from."""
    if value is None:
        return select.literal(None)
    if type == "JSON" or isinstance(value, (list, dict)):
        return select.cast(select.literal(json.dumps(value, ensure_ascii=False, default=str)), "JSON")
    if isinstance(value, bool):
        return select.literal("true" if value else "false")
    if isinstance(value, bytes):
        return select.literal(value)
    return select.literal(value if isinstance(value, str) else str(value))


def _table(schema: Schema, rows: Sequence[Sequence[Any]], *, numbered: bool = False) -> exp.Table | exp.Values:
    tuples = [
        exp.Tuple(
            expressions=[
                *([select.literal(number)] if numbered else []),
                *(_text(value, column.type) for value, column in zip(row, schema, strict=True)),
            ]
        )
        for number, row in enumerate(rows)
    ]
    names = [*(["row"] if numbered else []), *(f"c{index}" for index in range(len(schema)))]
    alias = exp.TableAlias(this=select.name("given"), columns=[select.name(name) for name in names])
    return exp.Values(expressions=tuples, alias=alias)


def _query(schema: Schema, rows: Sequence[Sequence[Any]]) -> exp.Select:
    if not rows:
        return parameters.no_rows(schema)
    wanted = [
        exp.alias_(select.cast(select.column(f"c{index}"), each.type), select.name(each.name))
        for index, each in enumerate(schema)
    ]
    return exp.select(*wanted).from_(_table(schema, rows))


def _misfit(schema: Schema, rows: Sequence[Sequence[Any]], typed: Sequence[int]) -> Mistake | None:
    """The first value that is not of the type its column was given."""
    if not rows or not typed:
        return None
    wrong = [
        exp.and_(
            select.column(f"c{index}").is_(exp.null()).not_(),
            try_cast(select.column(f"c{index}"), schema[index].type).is_(exp.null()),
        )
        for index in typed
    ]
    case = exp.case()
    for index, condition in zip(typed, wrong, strict=True):
        case = case.when(condition, select.literal(index))
    query = exp.select(select.column("row"), exp.alias_(case, "wrong")).from_(_table(schema, rows, numbered=True))
    query = query.where(exp.or_(*wrong)).order_by(select.column("row")).limit(1)
    for row, index in scans.ask(query):
        value = rows[row][index]
        return Mistake(("rows", row, index), f"`{value}` is not a {schema[index].type}", kind="type")
    return None


class FixedRows(Relational[FixedRowsParams]):
    """Rows that stand in the document: for small tables, tests and examples.

    `rows` is a list of lists in the order of `columns`, or a list of mappings. A column without a type gets the
    narrowest one that takes all its values: `BIGINT`, `DOUBLE`, `BOOLEAN`, `VARCHAR`; lists of those; `JSON` for
    mappings. Without rows, a column without a type goes with any other. Dates are text in YAML, so a column of dates
    says so: `{name: day, type: date}`.
    """

    type = "fixed_rows"
    family = "read"
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def check(self, params: FixedRowsParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        found = parameters.type_mistakes(params.columns, {})
        if found:
            return found
        names = list(_names(params, call.declared.get("main")))
        if not names:
            return [Mistake(("columns",), "there are no columns; hint: `columns: [id, name]`")]
        found = _row_mistakes(params, names)
        if found:
            return found
        schema, rows = _settled(params, call.declared.get("main"))
        typed = [
            index for index, type in enumerate(parameters.named(params.columns, None).values()) if type is not None
        ]
        misfit = _misfit(schema, rows, typed)
        return [misfit] if misfit else []

    def schemas(self, params: FixedRowsParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": _settled(params, call.declared.get("main"))[0]}

    def prepare(self, params: FixedRowsParams, call: PlanCall) -> None:
        # Rows may come from a template, and are seen here for the first time then.
        for mistake in self.check(params, {}, call):
            where = f"`{mistake.path[0]}[{mistake.path[1]}]`: " if len(mistake.path) > 1 else ""
            raise ComponentFailure("parameters", f"{where}{mistake.message}")

    def selects(self, params: FixedRowsParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, SqlText]:
        return {"main": select.sql(_query(*_settled(params, call.declared.get("main"))))}


def _row_mistakes(params: FixedRowsParams, names: Sequence[str]) -> list[Mistake]:
    found: list[Mistake] = []
    for index, row in enumerate(params.rows):
        if isinstance(row, list) and len(row) != len(names):
            found.append(Mistake(("rows", index), f"{len(row)} values for {len(names)} columns"))
        elif isinstance(row, dict):
            strange = next((name for name in row if name not in names), None)
            if strange is not None:
                message = f"there is no column `{strange}`{similar(strange, names)}"
                found.append(Mistake(("rows", index, strange), message, kind="column"))
    return found
