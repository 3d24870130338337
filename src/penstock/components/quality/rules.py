"""Checks as conditions on rows, a flag for each rule that a row breaks, and what becomes of the rows that break one.

No row is lost in silence: one that is refused leaves through `reject`, or ends the component in ERROR, or is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta
from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Call, ComponentFailure, ParamPath, PlanCall
from penstock.components.queries import gathered
from penstock.components.transform.base import Parameters, Transform, actual, refuse
from penstock.data import select
from penstock.ports.rows import Relation, Schema
from penstock.tools.parameters import Positive, about

Count = Annotated[int, Meta(ge=0)]
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|m|h|d|w|second|minute|hour|day|week)s?\s*\Z", re.ASCII)


class Freshness(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    column: Annotated[str, about("A date or timestamp.")]
    max_age: Annotated[
        Positive | str, about("How old the newest value may be: seconds, or text such as `24h`, `7 days`.")
    ]

    def __post_init__(self) -> None:
        self.seconds()

    def seconds(self) -> float:
        if not isinstance(self.max_age, str):
            return float(self.max_age)
        found = _DURATION.match(self.max_age)
        if found is None:
            raise ValueError(f"`max_age: {self.max_age}` is no duration; `90s`, `30m`, `24h`, `7d` are")
        return float(found[1]) * _UNITS[found[2][0]]


class RowCount(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    min: Annotated[Count | None, about("At least so many rows.")] = None
    max: Annotated[Count | None, about("At most so many rows.")] = None

    def __post_init__(self) -> None:
        if self.min is None and self.max is None:
            raise ValueError("`row_count` needs `min`, `max` or both")


class Check(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One kind of check, for one or more columns."""

    name: Annotated[str | None, about("What the check is called in messages and in `error_code`.")] = None
    not_null: Annotated[list[str] | None, about("Columns that must have a value.")] = None
    unique: Annotated[
        list[str] | None, about("Columns that together occur once; a row repeating an earlier one fails.")
    ] = None
    range: Annotated[
        dict[str, tuple[Any, Any]] | None, about("Column -> `[lowest, highest]`, both allowed; null for an open end.")
    ] = None
    regex: Annotated[dict[str, str] | None, about("Column -> pattern that its whole text must match.")] = None
    in_: Annotated[dict[str, list[Any]] | None, about("Column -> the values it may have.")] = msgspec.field(
        name="in", default=None
    )
    expression: Annotated[str | None, about("A condition in SQL that must not be false.")] = None
    freshness: Annotated[Freshness | None, about("How old the newest row may be.")] = None
    row_count: Annotated[RowCount | None, about("How many rows there must be.")] = None

    def __post_init__(self) -> None:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            wanted = ", ".join(f"`{kind.rstrip('_')}`" for kind in KINDS)
            found = " and ".join(f"`{kind.rstrip('_')}`" for kind in given) or "none"
            raise ValueError(f"a check has exactly one of {wanted}; this one has {found}")

    @property
    def is_of_rows(self) -> bool:
        return self.freshness is None and self.row_count is None


KINDS = ("not_null", "unique", "range", "regex", "in_", "expression", "freshness", "row_count")


def named_columns(checks: Sequence[Check]) -> Iterator[tuple[ParamPath, str]]:
    """Every column that a check names, with its place in the parameters."""
    for number, check in enumerate(checks):
        for kind in ("not_null", "unique"):
            for index, column in enumerate(getattr(check, kind) or ()):
                yield ("checks", number, kind, index), column
        for kind in ("range", "regex", "in_"):
            for column in getattr(check, kind) or ():
                yield ("checks", number, kind.rstrip("_"), column), column
        if check.freshness is not None:
            yield ("checks", number, "freshness", "column"), check.freshness.column


@dataclass(frozen=True, slots=True)
class Rule:
    """A check of single rows, on one column where that is what it is about."""

    code: str
    says: str
    """What is wrong with a row that breaks it."""
    fails: exp.Expr
    columns: tuple[str, ...] = ()
    """Whose values show what is wrong."""
    shows: exp.Expr | None = None
    """What to say of the row itself, when that is more than `says`."""

    def message(self) -> exp.Expr:
        return select.literal(self.says) if self.shows is None else self.shows


def rules(checks: Sequence[Check], schema: Schema) -> list[Rule]:
    """The checks of rows, one rule per column."""
    return [rule for check in checks if check.is_of_rows for rule in _rules(check, schema)]


def missing_value(name: str, code: str) -> Rule:
    return Rule(code, f"`{name}` has no value", build.is_null(select.column(name)))


def seen_before(keys: Sequence[str], code: str) -> Rule:
    """An earlier row has the same key. The condition needs the rows to have their `POSITION`."""
    found = [select.column(name) for name in keys]
    again = exp.GT(
        this=build.row_number(found, [build.ascending(select.column(build.POSITION))]), expression=select.literal(1)
    )
    fails = build.every_one([again, *(build.is_not_null(key) for key in found)])
    return Rule(code, f"{', '.join(f'`{name}`' for name in keys)} occurred before", fails, tuple(keys))


def no_match(name: str, pattern: str, code: str) -> Rule:
    fails = build.is_not(build.function("regexp_full_match", build.text(select.column(name)), select.literal(pattern)))
    return Rule(code, f"`{name}` does not match `{pattern}`", fails, (name,))


def _rules(check: Check, schema: Schema) -> Iterator[Rule]:
    for name in check.not_null or ():
        yield missing_value(name, check.name or "not_null")
    if check.unique is not None:
        yield seen_before(check.unique, check.name or "unique")
    for name, (low, high) in (check.range or {}).items():
        yield _outside(name, low, high, check.name or "range")
    for name, pattern in (check.regex or {}).items():
        yield no_match(name, pattern, check.name or "regex")
    for name, values in (check.in_ or {}).items():
        yield _none_of(name, values, check.name or "in")
    if check.expression is not None:
        yield _false(check.expression, check.name, schema)


def _outside(name: str, low: Any, high: Any, code: str) -> Rule:
    column = select.column(name)
    outside: list[exp.Expr] = []
    if low is not None:
        outside.append(exp.LT(this=column, expression=select.literal(low)))
    if high is not None:
        outside.append(exp.GT(this=column, expression=select.literal(high)))
    bounds = {
        (True, True): f"between {low} and {high}",
        (True, False): f"at least {low}",
        (False, True): f"at most {high}",
    }
    message = bounds.get((low is not None, high is not None), "in any range")
    return Rule(code, f"`{name}` is not {message}", build.some(outside), (name,))


def _none_of(name: str, values: Sequence[Any], code: str) -> Rule:
    values = [value for value in values if value is not None]  # `x NOT IN (…, NULL)` is never true in SQL
    shown = ", ".join(f"`{value}`" for value in values[:8]) + (" …" if len(values) > 8 else "")
    return Rule(
        code, f"`{name}` is not one of {shown}", build.is_not(build.one_of(select.column(name), values)), (name,)
    )


def _false(expression: str, name: str | None, schema: Schema) -> Rule:
    node = select.expression(expression)
    mentioned = dict.fromkeys(column.name for column in node.find_all(exp.Column))
    shown = tuple(column for column in mentioned if actual(column, schema) is not None)
    message = f"`{name}`: `{expression.strip()}` is false" if name else f"`{expression.strip()}` is false"
    return Rule(name or "expression", message, build.is_not(node), shown)


class Flagged:
    """`beside` are columns of `source` that rules and conversions may look at, and that are not the rows' own."""

    def __init__(
        self, schema: Schema, rules: Sequence[Rule], source: exp.Query | None = None, beside: Sequence[str] = ()
    ) -> None:
        self.rules = list(rules)
        self._schema = schema
        self._source = source
        self._beside = beside
        self._looks_around = any(rule.fails.find(exp.Window) for rule in self.rules)

    def passed(self, converted: Sequence[exp.Expr] = ()) -> exp.Select:
        """The rows that break no rule, or `converted` of them."""
        wanted = converted or build.every(self._schema)
        if not self.rules:
            return build.picked(wanted, "input")
        return self._in_order(self._select(wanted).where(build.is_not(build.some(self._flags()))))

    def failed(self) -> exp.Select:
        """The rows that break one or more: the first is their `error_code`, all are in their `error_message`."""
        branches = list(zip(self._flags(), self.rules, strict=True))
        code = build.text(build.case([(flag, select.literal(rule.code)) for flag, rule in branches]))
        message = build.joined(
            "; ", [build.case([(flag, rule.message())]) for flag, rule in branches] or [select.literal("")]
        )
        own = [name for name in build.names(self._schema) if name.lower() not in ("error_code", "error_message")]
        wanted = [*build.columns(own), build.called(code, "error_code"), build.called(message, "error_message")]
        return self._in_order(self._select(wanted).where(build.some(self._flags())))

    def first(self) -> exp.Select:
        """Of the first row that breaks one: the number of the rule, what it says, and all columns."""
        branches = list(zip(self._flags(), self.rules, strict=True))
        number = build.case([(flag, select.literal(place)) for place, flag in enumerate(self._flags())])
        message = build.case([(flag, rule.message()) for flag, rule in branches])
        own = [build.text(column) for column in build.every(self._schema)]
        return self._in_order(self._select([number, message, *own]).where(build.some(self._flags()))).limit(1)

    def names(self) -> list[str]:
        return build.names(self._schema)

    def counts(self) -> exp.Select:
        """How many rows there are, and how many break each rule."""
        counted = [build.function("count_if", flag) for flag in self._flags()]
        return self._select([exp.Count(this=exp.Star()), *counted])

    def sample(self, number: int, size: int) -> exp.Select | None:
        """Some values that break a rule; None when it is about a value that is not there."""
        rule = self.rules[number]
        if not rule.columns:
            return None
        return self._in_order(self._select(build.columns(rule.columns)).where(self._flags()[number])).limit(size)

    def _flags(self) -> list[exp.Expr]:
        return [select.column(f"__flag_{number}") for number in range(len(self.rules))]

    def _select(self, wanted: Sequence[exp.Expr]) -> exp.Select:
        marked = [build.called(build.is_true(rule.fails), f"__flag_{number}") for number, rule in enumerate(self.rules)]
        place = [build.POSITION] if self._looks_around else []
        source = build.numbered("input") if self._looks_around else self._source or "input"
        return build.picked(
            wanted, build.picked([*build.every(self._schema), *build.columns([*place, *self._beside]), *marked], source)
        )

    def _in_order(self, query: exp.Select) -> exp.Select:
        """Windows disturb the order of rows."""
        return query.order_by(build.ascending(select.column(build.POSITION))) if self._looks_around else query


_SHOWN = 60

OnError = Annotated[
    Literal["fail", "skip"],
    about(
        "What a row that is refused does when the `reject` port is not connected: `fail` ends the component in ERROR "
        "and names the value, `skip` leaves the row out and counts it."
    ),
]


class RefusingParams(Parameters, kw_only=True):
    on_error: OnError = "fail"


R = TypeVar("R", bound=RefusingParams)


class Refusing(Transform[R]):
    """A transform that takes most rows and refuses some, each for itself."""

    refuses: ClassVar[bool] = True

    def parted(self, params: R, schema: Schema) -> tuple[Flagged, Sequence[exp.Expr]]:
        """The rules that a row may break, and the columns of one that breaks none."""
        raise NotImplementedError

    def queries(self, params: R, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:
        flagged, made = self.parted(params, inputs["input"])
        return {"main": flagged.passed(made), "reject": flagged.failed()}

    def is_fusable(self, params: R, connected: frozenset[str]) -> bool:
        return "reject" in connected

    def advice(self, params: R) -> str:
        """What an author may do who does not want the component to fail."""
        return "connect the `reject` port, or set `on_error: skip`"

    def run(self, params: R, call: Call) -> None:
        rows = gathered(call, "input")
        refuse(self.wrong(params, {"input": rows.schema}))
        flagged, made = self.parted(params, rows.schema)
        passed = call.engine.select(select.sql(flagged.passed(made)), {"input": rows})
        count = rows.rows - passed.rows
        call.after["NB_LINE_REJECTED"] = count
        if "reject" in call.connected:
            call.put("reject", call.engine.select(select.sql(flagged.failed()), {"input": rows}))
        elif count:
            code, message, value = _first(flagged, rows, call)
            if params.on_error == "fail":
                refusals = f"{count:,} of {rows.rows:,} rows {_were(count)} refused; the first: {message}"
                message = f"{refusals}; hint: {self.advice(params)}"
                raise ComponentFailure(code.lower(), message, refused=count, rows=rows.rows, value=value)
            call.say(f"{count:,} of {rows.rows:,} rows {_were(count)} left out; the first: {message}")
        if "main" in call.connected:
            call.put("main", passed)


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _first(flagged: Flagged, rows: Relation, call: Call) -> tuple[str, str, str | None]:
    """The first row that was refused: the code of the rule it broke, a sentence that has the value in it, and the value."""
    found: tuple[Any, ...] = next(iter(call.engine.rows(select.sql(flagged.first()), {"input": rows})))[0]
    number, message, *values = found
    rule = flagged.rules[number]
    named = dict(zip(flagged.names(), values, strict=True))
    shown = [str(named[name])[:_SHOWN] for name in rule.columns if named.get(name) is not None]
    value = ", ".join(shown) if shown else None
    is_in_there = rule.shows is not None or value is None
    return rule.code, message if is_in_there else f"{message}: `{value}`", value
