"""`assert_rows`: checks rows against rules, and fails or warns when they break one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, ClassVar, Literal

from sqlglot import exp

from penstock.components.base import Call, ComponentFailure, Known, Mistake, PlanCall, Port, UserSql
from penstock.components.quality.rules import KINDS, Check, Flagged, named_columns, rules
from penstock.components.queries import picked, volatile
from penstock.components.shape.patterns import wrong_pattern
from penstock.components.transform.base import Parameters, Transform, missing, refuse, type_of
from penstock.components.types import is_moment, is_nothing
from penstock.data import select
from penstock.kernel.values import JsonMap
from penstock.ports.rows import Relation, Schema
from penstock.tools.parameters import about

SHOWN = 3
"""Values that a message shows of those that failed."""


class AssertRowsParams(Parameters):
    checks: Annotated[list[Check], about("What must be true, each entry one kind of check.", min_length=1)]
    on_fail: Annotated[
        Literal["fail", "reject", "warn"],
        about("`fail`: the component is in ERROR; `reject`: failing rows leave through `reject`; `warn`: only logged."),
    ] = "fail"


class AssertRows(Transform[AssertRowsParams]):
    """Check the quality of rows.

    Each entry of `checks` has one kind of check, and may have a `name`:

    - `not_null: [columns]`: a value is there
    - `unique: [columns]`: no earlier row has the same values; rows in which one is NULL pass
    - `range: {column: [lowest, highest]}`: between the two, both allowed; null for an open end
    - `regex: {column: pattern}`: the whole text matches
    - `in: {column: [values]}`: one of these
    - `expression: SQL`: not false
    - `freshness: {column, max_age}`: the newest value is at most so old, as in `24h` or `7 days`
    - `row_count: {min, max}`: so many rows

    NULL passes every check but `not_null`. With `on_fail: fail` a failed check puts the component into ERROR, with how many
    rows failed each check and some of their values. With `reject` the rows that fail go to `reject`, with the first check they
    failed as `error_code` and all of them in `error_message`; `freshness` and `row_count`, which no single row can fail, are
    errors here, too. With `warn` all rows go on, and the run's log has the failures.

    After-variables: `ASSERT_FAILED`, the number of checks that failed.
    """

    type = "assert_rows"
    family = "quality"
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows that passed"),
        Port("reject", reject=True, description="the rows that failed a check, with `on_fail: reject`"),
    )

    def is_fusable(self, params: AssertRowsParams, connected: frozenset[str]) -> bool:
        return False  # Failures are counted even if the rows have no reader.

    def user_sql(self, params: AssertRowsParams) -> Iterable[UserSql]:
        for number, check in enumerate(params.checks):
            if check.expression is not None:
                yield UserSql(("checks", number, "expression"), check.expression, ("input",), "condition")

    def wrong(self, params: AssertRowsParams, inputs: Known) -> Iterable[Mistake]:
        schema = inputs.get("input")
        for path, name in named_columns(params.checks):
            yield from missing(path, name, schema)
        for number, check in enumerate(params.checks):
            type = type_of(check.freshness.column, schema) if check.freshness and schema is not None else ""
            if check.freshness is not None and type and not (is_moment(type) or is_nothing(type)):
                message = f"`freshness` needs a date or timestamp, and `{check.freshness.column}` is {type}"
                yield Mistake(("checks", number, "freshness", "column"), message, kind="type")
            for column, pattern in (check.regex or {}).items():
                yield from wrong_pattern(("checks", number, "regex", column), pattern)
            if check.expression is not None and _is_volatile(check.expression):
                hint = "give `derive` the random or current value, and check that column"
                yield Mistake(("checks", number, "expression"), "a check must come out the same each time", hint=hint)

    def queries(self, params: AssertRowsParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:
        flagged = self._flagged(params, inputs["input"])
        return {"main": flagged.passed(), "reject": flagged.failed()}

    def bound_here(self, params: AssertRowsParams, inputs: Known, call: PlanCall) -> str | None:
        return None  # It asks for counts and a few rows.

    def run(self, params: AssertRowsParams, call: Call) -> JsonMap:
        rows = call.input()
        refuse(self.wrong(params, {"input": rows.schema}))
        flagged = self._flagged(params, rows.schema)
        inputs = {"input": rows}
        counts = next(iter(call.engine.rows(select.sql(flagged.counts()), inputs)))[0]
        total = int(counts[0])
        failed = [
            _failure(rule.code, rule.says, count, total, _sample(call, flagged, number, inputs))
            for number, (rule, count) in enumerate(zip(flagged.rules, counts[1:], strict=False))
            if count
        ]
        whole = [failure for check in params.checks for failure in _of_the_whole(check, rows, total, call)]
        call.after["ASSERT_FAILED"] = len(failed) + len(whole)
        self._end(params, call, failed, whole, flagged)
        return {"rows": total, "failed": [*failed, *whole]}

    def _flagged(self, params: AssertRowsParams, schema: Schema) -> Flagged:
        return Flagged(schema, rules(params.checks, schema))

    def _end(
        self, params: AssertRowsParams, call: Call, failed: list[JsonMap], whole: list[JsonMap], flagged: Flagged
    ) -> None:
        fatal = whole if params.on_fail == "reject" else [*failed, *whole]
        if fatal and params.on_fail != "warn":
            raise ComponentFailure("assertion", _sentence(fatal), checks=[*failed, *whole])
        inputs = {"input": call.input()}
        if params.on_fail == "warn":
            for each in fatal:
                call.say(f"warning: {_summary(each)}")
        rejects = params.on_fail == "reject" and bool(failed)
        if "main" in call.connected:
            call.put("main", call.engine.select(select.sql(flagged.passed()), inputs) if rejects else inputs["input"])
        if "reject" in call.connected and rejects:
            call.put("reject", call.engine.select(select.sql(flagged.failed()), inputs))


def _is_volatile(expression: str) -> bool:
    try:
        return volatile(select.expression(expression))
    except select.SqlMistake:
        return False  # what is wrong with it is said elsewhere


def _failure(code: str, says: str, count: int, total: int, sample: list[str]) -> JsonMap:
    shown = f", such as {', '.join(sample)}" if sample else ""
    message = f"{says}: {count:,} of {total:,} rows{shown}"
    return {"check": code, "message": message, "failed": count, "rows": total, "sample": list(sample)}


def _sentence(failed: list[JsonMap]) -> str:
    count = len(failed)
    summaries = "; ".join(map(_summary, failed[:10]))
    more = f"; and {count - 10} more" if count > 10 else ""
    return f"{count} check{'s' if count > 1 else ''} failed: {summaries}{more}"


def _summary(failed: JsonMap) -> str:
    """Under the name that the author gave the check; a message without one says itself what was checked."""
    is_named = failed["check"] not in {kind.rstrip("_") for kind in KINDS}
    return f"{failed['check']}: {failed['message']}" if is_named else str(failed["message"])


def _sample(call: Call, flagged: Flagged, number: int, inputs: Mapping[str, Relation]) -> list[str]:
    query = flagged.sample(number, SHOWN)
    if query is None:
        return []
    found = next(iter(call.engine.rows(select.sql(query), inputs)), [])
    return ["`" + ", ".join(str(value)[:80] for value in row) + "`" for row in found]


def _of_the_whole(check: Check, rows: Relation, total: int, call: Call) -> Iterable[JsonMap]:
    """What no single row can be blamed for."""
    if check.row_count is not None:
        low, high = check.row_count.min, check.row_count.max
        if low is not None and total < low:
            yield _whole(check, "row_count", f"there are {total:,} rows, and at least {low:,} are needed")
        if high is not None and total > high:
            yield _whole(check, "row_count", f"there are {total:,} rows, and at most {high:,} are allowed")
    if check.freshness is not None:
        stale = _stale(check, rows, call)
        if stale is not None:
            yield _whole(check, "freshness", stale)


def _whole(check: Check, kind: str, message: str) -> JsonMap:
    return {"check": check.name or kind, "message": message}


def _stale(check: Check, rows: Relation, call: Call) -> str | None:
    assert check.freshness is not None
    name, age = check.freshness.column, check.freshness.max_age
    query = select.sql(picked([exp.Max(this=select.column(name))], "input"))
    newest = next(iter(call.engine.rows(query, {"input": rows})))[0][0]
    if newest is None:
        return f"`{name}` has no values, so nothing says how fresh the rows are"
    now = datetime.fromtimestamp(call.clock.now(), UTC)
    if _moment(newest) < now - timedelta(seconds=check.freshness.seconds()):
        return f"the newest `{name}` is `{newest}`, older than {age if isinstance(age, str) else f'{age:g} s'}"
    return None


def _moment(value: date) -> datetime:
    """A date counts to its end; a timestamp without a zone is in UTC."""
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC) + timedelta(days=1)
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
