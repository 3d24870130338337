"""A dimension and the rows that bring it up to date, as four queries over one comparison.

Each version (`old`) is set beside the row of the input with its key (`new`), if it is the version that holds. From there:

    closes       a column of type 2 differs, or the key is gone and that ends it: the version ends
    overwritten  only columns of type 1 differ: the version gets their new values
    begins       a row of the input whose key has no version, or whose version closes
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.components.io.columns import missing_value
from penstock.components.queries import (
    POSITION,
    ascending,
    called,
    every,
    function,
    is_true,
    named,
    numbered,
    picked,
    row_number,
    together,
)
from penstock.components.shape.comparison import last_of_each
from penstock.components.shape.scd import ScdParams
from penstock.components.shape.terms import case, differ, every_one, is_not, is_not_null, is_null, same, some
from penstock.components.transform.base import actual, type_of
from penstock.components.types import is_nothing
from penstock.data import select
from penstock.ports.rows import Column, Schema

_PART = "__part"


class History:
    def __init__(self, params: ScdParams, as_of: str, source: Schema, dimension: Schema | None) -> None:
        self._params = params
        self._as_of = as_of
        self._source = source
        self._columns = self._first_columns() if dimension is None else self._typed(dimension)
        self._is_first = dimension is None
        tracked = params.type2
        if tracked is None:
            known = {name.lower() for name in params.keys}
            tracked = [] if params.type1 else [column.name for column in source if column.name.lower() not in known]
        self._type2 = [name for name in tracked if actual(name, self._columns) is not None]

    def queries(self) -> dict[str, exp.Query]:
        matched = is_not_null(select.column(POSITION, "new"))
        differs = some([self._differs(self._type2), self._differs(self._params.type1)])
        return {
            "main": self._whole(),
            "insert": _ordered(self._begins(), "new"),
            "update": _ordered(self._versions([some([self._closes(), self._overwritten()])]), "old"),
            "unchanged": _ordered(self._versions([matched, is_not(differs)]), "old"),
        }

    def _whole(self) -> exp.Select:
        """All versions: the old ones in their order, then the new ones in theirs."""
        parts = [
            query.select(called(select.literal(number), _PART), select.column(POSITION, side))
            for number, (query, side) in enumerate([(self._versions([]), "old"), (self._begins(), "new")])
        ]
        order = [ascending(select.column(_PART)), ascending(select.column(POSITION))]
        return picked(every(self._columns), together(parts)).order_by(*order)

    def _first_columns(self) -> Schema:
        params = self._params
        moment = "TIMESTAMP" if ":" in self._as_of else "DATE"
        numbers = (Column(params.surrogate_key, "BIGINT"),) if params.surrogate_key else ()
        own = (
            Column(params.valid_from, moment),
            Column(params.valid_to, moment),
            Column(params.current, "BOOLEAN"),
        )
        return (*numbers, *self._source, *own)

    def _typed(self, dimension: Schema) -> Schema:
        """A dimension that has never had a row gets the types of its first."""
        known = {column.name.lower(): column.type for column in self._first_columns()}
        return tuple(
            replace(column, type=known.get(column.name.lower(), column.type)) if is_nothing(column.type) else column
            for column in dimension
        )

    def _versions(self, conditions: list[exp.Expr]) -> exp.Select:
        """The versions that meet the conditions, as they are to be."""
        wanted = [called(self._version(column), column.name) for column in self._columns]
        query = picked(wanted, self._old(), "old")
        query = query.join(named(self._new(), "new"), on=self._belong(), join_type="left")
        return query.where(*conditions)

    def _version(self, column: Column) -> exp.Expr:
        params, value = self._params, select.column(column.name, "old")
        name = column.name.lower()
        if name in {each.lower() for each in params.type1}:
            return case([(self._overwritten(), self._incoming(column))], value)
        if name == params.valid_to.lower():
            return case([(self._closes(), self._moment(self._as_of, column))], value)
        if name == params.current.lower():
            return case([(self._closes(), select.cast(exp.false(), column.type))], value)
        return value

    def _begins(self) -> exp.Select:
        wanted = [called(self._beginning(column), column.name) for column in self._columns]
        query = picked(wanted, self._new(), "new")
        query = query.join(named(self._old(), "old"), on=self._belong(), join_type="left")
        fresh = is_null(select.column(POSITION, "old"))
        return query.where(some([fresh, self._differs(self._type2)])).order_by(
            ascending(select.column(POSITION, "new"))
        )

    def _beginning(self, column: Column) -> exp.Expr:
        params, name = self._params, column.name.lower()
        if name == params.valid_from.lower():
            return self._moment(self._as_of, column)
        if name == params.valid_to.lower():
            return self._moment(params.open_end, column)
        if name == params.current.lower():
            return select.cast(exp.true(), column.type)
        if params.surrogate_key is not None and name == params.surrogate_key.lower():
            return self._number(column)
        # A column that the input does not have goes on from version to version.
        return self._incoming(column) if actual(column.name, self._source) else select.column(column.name, "old")

    def _number(self, column: Column) -> exp.Expr:
        turn = row_number(order=[ascending(select.column(POSITION, "new"))])
        if self._is_first:
            return select.cast(turn, column.type)
        highest = exp.Subquery(this=picked([exp.Max(this=select.column(column.name))], "dimension"))
        after = exp.Add(this=function("coalesce", highest, select.literal(0)), expression=turn)
        return select.cast(after, column.type)

    def _incoming(self, column: Column) -> exp.Expr:
        there = actual(column.name, self._source) or column.name
        value = select.column(there, "new")
        return value if type_of(there, self._source) == column.type else select.cast(value, column.type)

    def _moment(self, value: str | None, column: Column) -> exp.Expr:
        return select.cast(select.literal(value), column.type)

    def _closes(self) -> exp.Expr:
        there = is_not_null(select.column(POSITION, "new"))
        changed = every_one([there, self._differs(self._type2)])
        if self._params.gone == "keep":
            return changed
        return some([changed, every_one([self._holds(), is_null(select.column(POSITION, "new"))])])

    def _overwritten(self) -> exp.Expr:
        there = is_not_null(select.column(POSITION, "new"))
        return every_one([there, is_not(self._differs(self._type2)), self._differs(self._params.type1)])

    def _differs(self, names: list[str]) -> exp.Expr:
        return some(
            [
                differ(select.column(column.name, "old"), self._incoming(column))
                for column in self._columns
                if column.name.lower() in {name.lower() for name in names}
            ]
        )

    def _belong(self) -> exp.Expr:
        keys = {name.lower() for name in self._params.keys}
        pairs = [
            same(select.column(column.name, "old"), self._incoming(column))
            for column in self._columns
            if column.name.lower() in keys
        ]
        return every_one([*pairs, self._holds()])

    def _holds(self) -> exp.Expr:
        return is_true(select.cast(select.column(self._params.current, "old"), "BOOLEAN"))

    def _new(self) -> exp.Select:
        return last_of_each("input", self._params.keys, self._source)

    def _old(self) -> exp.Select:
        if not self._is_first:
            return numbered("dimension")
        nothing = [missing_value(column.name, column.type) for column in self._columns]
        none = exp.Select(expressions=[*nothing, called(select.cast(exp.null(), "BIGINT"), POSITION)])
        return none.where(exp.false())


def _ordered(query: exp.Select, side: str) -> exp.Select:
    return query.order_by(ascending(select.column(POSITION, side)))
