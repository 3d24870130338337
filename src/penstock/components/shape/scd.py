"""`scd`: a dimension that keeps its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Call, Known, Mistake, PlanCall, Port
from penstock.components.io.parameters import missing_value
from penstock.components.shape.merge_changes import last_of_each
from penstock.components.transform.base import (
    Parameters,
    Transform,
    absent,
    actual,
    missing,
    refuse,
    repeated,
    type_of,
)
from penstock.components.types import is_nothing
from penstock.data import select
from penstock.ports.rows import Column, Schema
from penstock.tools.parameters import about

ANY_TIME = "1970-01-01 00:00:00"
"""Stands for the time of the run while nothing runs."""


class ScdParams(Parameters, kw_only=True):
    keys: Annotated[list[str], about("The columns that name one thing of the dimension.", min_length=1)]
    type1: Annotated[list[str], about("Columns whose new value takes the place of the old one, without history.")] = []  # noqa: RUF012
    type2: Annotated[
        list[str] | None,
        about("Columns whose change begins a new version; all but the keys when this and `type1` are left out."),
    ] = None
    as_of: Annotated[
        str | None, about("The date or time from which the input holds; that of the run when left out.")
    ] = None
    valid_from: Annotated[str, about("Column with the time a version begins.", min_length=1)] = "valid_from"
    valid_to: Annotated[str, about("Column with the time it ended.", min_length=1)] = "valid_to"
    current: Annotated[str, about("Column that is true for the version that holds.", min_length=1)] = "is_current"
    open_end: Annotated[
        str | None, about("What `valid_to` has while a version holds, such as `9999-12-31`; NULL when left out.")
    ] = None
    surrogate_key: Annotated[
        str | None, about("A column that numbers the versions, counted on from the highest there is.")
    ] = None
    gone: Annotated[
        Literal["keep", "close"], about("Things that are not in the input stay as they are, or their version ends.")
    ] = "keep"


class Scd(Transform[ScdParams]):
    """Bring a dimension up to date, with its history (slowly changing dimension, types 1 and 2).

    `input` has the things as they are now, `dimension` the versions known so far; on the first load it need not be connected. A
    key that is new makes a version. A change in a column of `type2` ends the version that holds (`valid_to` is `as_of`, which
    is no longer part of it) and begins a new one. A change in columns of `type1` only is written into the version that holds.

    - `insert`: versions to be added
    - `update`: versions to be changed, as they are to be; `keys` and `valid_from`, or the surrogate key, tell which
    - `unchanged`: versions that hold and stay as they are
    - `main`: the whole new dimension, to be written in place of the old one

    The new dimension has the columns of the old one; on the first load those of the input, then `valid_from`, `valid_to` and
    `is_current`. Two missing values are equal. If a key occurs more than once in the input, its last row counts. Running the same
    input again changes nothing.
    """

    type = "scd"
    inputs: ClassVar[tuple[Port, ...]] = (
        Port("input", description="the things as they are now"),
        Port("dimension", required=False, description="the versions known so far"),
    )
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", reject=True, description="the whole new dimension"),
        Port("insert", reject=True, description="new versions"),
        Port("update", reject=True, description="versions that change"),
        Port("unchanged", reject=True, description="versions that hold and stay as they are"),
    )

    @classmethod
    def passes(cls, params: Mapping[str, object]) -> None:
        return None

    def is_fusable(self, params: ScdParams, connected: frozenset[str]) -> bool:
        return params.as_of is not None  # a query has no clock

    def wrong(self, params: ScdParams, inputs: Known) -> Iterable[Mistake]:
        source, dimension = inputs.get("input"), inputs.get("dimension")
        tracked = {"keys": params.keys, "type1": params.type1, "type2": params.type2 or []}
        for parameter, names in tracked.items():
            yield from absent((parameter,), names, source)
            yield from absent((parameter,), names, dimension, "dimension")
        every = [name for names in tracked.values() for name in names]
        for mistake in repeated((), every):
            yield Mistake((), f"{mistake.message} among `keys`, `type1` and `type2`")
        for parameter in ("valid_from", "valid_to", "current", "surrogate_key"):
            name = getattr(params, parameter)
            if name is not None:
                yield from missing((parameter,), name, dimension, "dimension")
                if source is not None and actual(name, source) is not None:
                    yield Mistake((parameter,), f"`{name}` is a column of `input`, and it is made here")
        for parameter in ("as_of", "open_end"):
            yield from _no_time(parameter, getattr(params, parameter))

    def queries(self, params: ScdParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:

        return History(params, params.as_of or ANY_TIME, inputs["input"], inputs.get("dimension")).queries()

    def run(self, params: ScdParams, call: Call) -> None:
        inputs = {port: call.input(port) for port in call.inputs}
        schemas = {port: rows.schema for port, rows in inputs.items()}
        refuse(self.wrong(params, schemas))
        now = datetime.fromtimestamp(call.clock.now(), UTC).strftime("%Y-%m-%d %H:%M:%S")
        made = History(params, now, schemas["input"], schemas.get("dimension")).queries()
        for port in sorted(call.connected):
            call.put(port, call.engine.select(select.sql(made[port]), inputs))


def _no_time(parameter: str, value: str | None) -> Iterable[Mistake]:
    if value is not None:
        try:
            datetime.fromisoformat(value)
        except ValueError:
            yield Mistake((parameter,), f"`{value}` is neither a date nor a time", hint="write it like `2026-03-01`")


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
        matched = build.is_not_null(select.column(build.POSITION, "new"))
        differs = build.some([self._differs(self._type2), self._differs(self._params.type1)])
        return {
            "main": self._whole(),
            "insert": _ordered(self._begins(), "new"),
            "update": _ordered(self._versions([build.some([self._closes(), self._overwritten()])]), "old"),
            "unchanged": _ordered(self._versions([matched, build.is_not(differs)]), "old"),
        }

    def _whole(self) -> exp.Select:
        """All versions: the old ones in their order, then the new ones in theirs."""
        parts = [
            query.select(build.called(select.literal(number), _PART), select.column(build.POSITION, side))
            for number, (query, side) in enumerate([(self._versions([]), "old"), (self._begins(), "new")])
        ]
        order = [build.ascending(select.column(_PART)), build.ascending(select.column(build.POSITION))]
        return build.picked(build.every(self._columns), build.together(parts)).order_by(*order)

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
        wanted = [build.called(self._version(column), column.name) for column in self._columns]
        query = build.picked(wanted, self._old(), "old")
        query = query.join(build.named(self._new(), "new"), on=self._belong(), join_type="left")
        return query.where(*conditions)

    def _version(self, column: Column) -> exp.Expr:
        params, value = self._params, select.column(column.name, "old")
        name = column.name.lower()
        if name in {each.lower() for each in params.type1}:
            return build.case([(self._overwritten(), self._incoming(column))], value)
        if name == params.valid_to.lower():
            return build.case([(self._closes(), self._moment(self._as_of, column))], value)
        if name == params.current.lower():
            return build.case([(self._closes(), select.cast(exp.false(), column.type))], value)
        return value

    def _begins(self) -> exp.Select:
        wanted = [build.called(self._beginning(column), column.name) for column in self._columns]
        query = build.picked(wanted, self._new(), "new")
        query = query.join(build.named(self._old(), "old"), on=self._belong(), join_type="left")
        fresh = build.is_null(select.column(build.POSITION, "old"))
        return query.where(build.some([fresh, self._differs(self._type2)])).order_by(
            build.ascending(select.column(build.POSITION, "new"))
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
        turn = build.row_number(order=[build.ascending(select.column(build.POSITION, "new"))])
        if self._is_first:
            return select.cast(turn, column.type)
        highest = exp.Subquery(this=build.picked([exp.Max(this=select.column(column.name))], "dimension"))
        after = exp.Add(this=build.function("coalesce", highest, select.literal(0)), expression=turn)
        return select.cast(after, column.type)

    def _incoming(self, column: Column) -> exp.Expr:
        there = actual(column.name, self._source) or column.name
        value = select.column(there, "new")
        return value if type_of(there, self._source) == column.type else select.cast(value, column.type)

    def _moment(self, value: str | None, column: Column) -> exp.Expr:
        return select.cast(select.literal(value), column.type)

    def _closes(self) -> exp.Expr:
        there = build.is_not_null(select.column(build.POSITION, "new"))
        changed = build.every_one([there, self._differs(self._type2)])
        if self._params.gone == "keep":
            return changed
        return build.some(
            [changed, build.every_one([self._holds(), build.is_null(select.column(build.POSITION, "new"))])]
        )

    def _overwritten(self) -> exp.Expr:
        there = build.is_not_null(select.column(build.POSITION, "new"))
        return build.every_one([there, build.is_not(self._differs(self._type2)), self._differs(self._params.type1)])

    def _differs(self, names: list[str]) -> exp.Expr:
        return build.some(
            [
                build.differ(select.column(column.name, "old"), self._incoming(column))
                for column in self._columns
                if column.name.lower() in {name.lower() for name in names}
            ]
        )

    def _belong(self) -> exp.Expr:
        keys = {name.lower() for name in self._params.keys}
        pairs = [
            build.same(select.column(column.name, "old"), self._incoming(column))
            for column in self._columns
            if column.name.lower() in keys
        ]
        return build.every_one([*pairs, self._holds()])

    def _holds(self) -> exp.Expr:
        return build.is_true(select.cast(select.column(self._params.current, "old"), "BOOLEAN"))

    def _new(self) -> exp.Select:
        return last_of_each("input", self._params.keys, self._source)

    def _old(self) -> exp.Select:
        if not self._is_first:
            return build.numbered("dimension")
        nothing = [missing_value(column.name, column.type) for column in self._columns]
        none = exp.Select(expressions=[*nothing, build.called(select.cast(exp.null(), "BIGINT"), build.POSITION)])
        return none.where(exp.false())


def _ordered(query: exp.Select, side: str) -> exp.Select:
    return query.order_by(build.ascending(select.column(build.POSITION, side)))
