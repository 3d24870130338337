"""`sleep`, `wait_for_file` and `wait_for_rows`: components that wait.

Law: every wait ends. Time is the run's own clock; what is waited for is looked at in a thread, never on the event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

import msgspec
import sqlglot
from sqlglot import errors, exp

from penstock.components.base import Action, Call, ComponentFailure, Known, PlanCall
from penstock.components.files.listing import Found, OptionalPatterns, facts, find
from penstock.components.flow.tool_calls import file_failures, local_file, require, tool_call
from penstock.components.io.sql.database import Auth, Bindings, Connection, Question, ask
from penstock.kernel.values import JsonMap
from penstock.ports.components import Mistake
from penstock.tools.parameters import Positive, about

T = TypeVar("T")

Timeout = Annotated[Positive | None, about("Seconds until it is a failure, of kind `timeout`; null waits for ever.")]
Poll = Annotated[float, about("Seconds between two looks.", ge=0.01)]


class SleepParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    seconds: Annotated[float, about("How long to wait; fractions are allowed.", ge=0)]


class Sleep(Action[SleepParams]):
    """Wait for some time. The result is `{slept}`, in seconds."""

    type: ClassVar[str] = "sleep"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False

    async def run(self, params: SleepParams, call: Call) -> JsonMap:
        await call.clock.sleep(params.seconds)
        return {"slept": params.seconds}


async def until(
    look: Callable[[], Awaitable[T | None]], call: Call, timeout: float | None, poll: float, what: str
) -> T:
    """Look again and again until there is an answer. `what` says what was not there when the time was up."""
    began = call.clock.now()
    while (answer := await look()) is None:
        waited = max(0.0, call.clock.now() - began)
        if timeout is not None and waited >= timeout:
            call.after["FOUND"] = False
            raise ComponentFailure("timeout", f"after {timeout:g} s {what}", retryable=True)
        await call.clock.sleep(poll if timeout is None else min(poll, timeout - waited))
    call.after["FOUND"] = True
    call.after["WAITED"] = round(max(0.0, call.clock.now() - began), 3)
    return answer


class WaitForFileParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("The file; or the folder in which `pattern` is looked for.")]
    pattern: OptionalPatterns = None
    count: Annotated[int, about("With `pattern`: how many files must be there.", ge=1)] = 1
    min_size: Annotated[int, about("Bytes; a smaller file does not count yet.", ge=0)] = 0
    settled: Annotated[
        float, about("Seconds for which size and time of the files must have stayed the same.", ge=0)
    ] = 0
    timeout: Timeout = 3600.0
    poll: Poll = 1.0


class WaitForFile(Action[WaitForFileParams]):
    """Wait until a file is there.

    A file that somebody is still writing has a growing size: `settled: 5` waits until it has not changed for five seconds,
    `min_size: 1` does not take an empty one. A folder that does not exist yet is waited for as well.

    The result is `{count, files}`, with what `iterate_files` knows of each. After-variables: `FOUND`, `FILENAME` (the path
    of the first), `COUNT`, `WAITED` in seconds. If nothing came in time, that is a failure of kind `timeout`; an `error`
    link goes on from there.
    """

    type: ClassVar[str] = "wait_for_file"
    family: ClassVar[str] = "orchestrate"

    async def run(self, params: WaitForFileParams, call: Call) -> JsonMap:
        path = local_file(params.path, call)
        settling = _Settling(params, call)

        async def look() -> list[Found] | None:
            return settling.judge(await call.threads.run(_there, params, path))

        what = f"`{params.pattern}` in `{path}`" if params.pattern else f"`{path}`"
        found = await until(look, call, params.timeout, params.poll, f"{what} was not there yet, or not complete")
        call.after.update({"FILENAME": str(found[0].path), "COUNT": len(found)})
        return {"count": len(found), "files": [each.as_json() for each in found]}


class _Settling:
    """Remembers since when the files have looked as they do."""

    def __init__(self, params: WaitForFileParams, call: Call) -> None:
        self._params = params
        self._call = call
        self._last: list[Found] = []
        self._since = 0.0

    def judge(self, found: list[Found]) -> list[Found] | None:
        now = self._call.clock.now()
        if found != self._last:
            self._last, self._since = found, now
        enough = len(found) >= (self._params.count if self._params.pattern is not None else 1)
        return found if enough and now - self._since >= self._params.settled else None


def _there(params: WaitForFileParams, path: Path) -> list[Found]:
    with file_failures(path):
        try:
            found = [facts(path)] if params.pattern is None else find(path, params.pattern)
        except (FileNotFoundError, NotADirectoryError):
            return []
    return [each for each in found if each.size >= params.min_size or each.is_folder]


class WaitForRowsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    table: Annotated[str | None, about("Count the rows of this table; `schema.table` is understood.")] = None
    query: Annotated[str | None, about("Count the rows that this query gives.")] = None
    value: Annotated[str | None, about("A query that gives one number, such as `SELECT count(*) FROM orders`.")] = None
    connection: Connection = None
    auth: Auth = None
    params: Bindings = None
    count: Annotated[int, about("The number to wait for.", ge=0)] = 1
    compare: Annotated[
        Literal["at_least", "at_most", "exactly"], about("How the number found must stand to `count`.")
    ] = "at_least"
    timeout: Timeout = 3600.0
    poll: Poll = 1.0


class WaitForRows(Action[WaitForRowsParams]):
    """Wait until a database has so many rows.

    Exactly one of `table`, `query` and `value` says what is counted. While the database cannot be reached, that counts as
    not yet; any other error of the query is a failure at once. Each look is a transaction of its own.

    The result is `{count}`, what was found. After-variables: `FOUND`, `COUNT`, `WAITED` in seconds.
    """

    type: ClassVar[str] = "wait_for_rows"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False

    def check(self, params: WaitForRowsParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        return _mistakes(params)

    async def run(self, params: WaitForRowsParams, call: Call) -> JsonMap:
        require(_mistakes(params))
        question = Question(
            connection=params.connection,
            auth=params.auth,
            query=_counting(params),
            table=params.table,
            bindings=params.params,
            max_rows=2,
        )
        patient = tool_call(call, {"timeout": {"total": max(params.poll, 30.0), "connect": 10}})
        last = "no look has succeeded yet"

        async def look() -> int | None:
            nonlocal last
            try:
                answer = await ask(question, patient)
            except ComponentFailure as failed:
                # A file that is not there yet cannot be opened, and no driver calls that passing.
                if not failed.retryable and failed.kind != "connect":
                    raise
                if last != failed.message:
                    call.say(f"still waiting: {failed.message}")
                last = failed.message
                return None
            number = _number(answer)
            last = f"the last look found {number:,}"
            return number if _ENOUGH[params.compare](number, params.count) else None

        wanted = f"{params.compare.replace('_', ' ')} {params.count:,} rows were waited for"
        try:
            found = await until(look, call, params.timeout, params.poll, wanted)
        except ComponentFailure as failed:
            if failed.kind != "timeout":
                raise
            raise ComponentFailure("timeout", f"{failed.message}; {last}", retryable=True) from None
        call.after["COUNT"] = found
        return {"count": found}


_ENOUGH: dict[str, Callable[[int, int], bool]] = {
    "at_least": lambda found, wanted: found >= wanted,
    "at_most": lambda found, wanted: found <= wanted,
    "exactly": lambda found, wanted: found == wanted,
}


def _mistakes(params: WaitForRowsParams) -> list[Mistake]:
    given = [name for name in ("table", "query", "value") if getattr(params, name) is not None]
    if len(given) != 1:
        had = f"`{'` and `'.join(given)}` are given" if given else "none is"
        return [Mistake((), f"what is counted is said by exactly one of `table`, `query` and `value`; {had}")]
    if params.query is not None and _is_one_number(params.query):
        hint = "give it as `value`, or leave the counting to the component: `SELECT id FROM …`"
        return [Mistake(("query",), f"`query` always gives one row, the number itself; {hint}", hint=hint)]
    return []


def _is_one_number(text: str) -> bool:
    """Is this a lone aggregate over everything, such as `SELECT count(*) FROM orders`?"""
    try:
        query = sqlglot.parse_one(text)
    except errors.SqlglotError:
        return False  # the database's own dialect; it will say itself what is wrong
    return (
        isinstance(query, exp.Select)
        and len(query.expressions) == 1
        and isinstance(query.expressions[0].unalias(), exp.AggFunc)
        and query.args.get("group") is None
    )


def _counting(params: WaitForRowsParams) -> str | None:
    if params.query is None:
        return params.value
    # The query stays in its database's own words, so it is wrapped as text; the line end closes a comment in it.
    return f"SELECT count(*) AS n FROM ({params.query.rstrip().rstrip(';')}\n) AS counted"


def _number(answer: JsonMap) -> int:
    rows = answer["rows"]
    first = rows[0] if isinstance(rows, list) and len(rows) == 1 else None
    values = list(first.values()) if isinstance(first, dict) else []
    if len(values) != 1 or not isinstance(values[0], int) or isinstance(values[0], bool):
        raise ComponentFailure("parameters", "`value` must be a query that gives one row with one whole number")
    return values[0]
