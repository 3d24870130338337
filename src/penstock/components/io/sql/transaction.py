"""One transaction for several components of a sub-job: what they write is committed together when it is over, or not at all.

Law: the first member of a sub-job that writes begins the transaction and claims its name in a table of the same database
(`Effect`). The component `shared_commit`, which runs last, commits it, or rolls it back if something failed. A member that fails
rolls it back at once, and none can join after that. A sub-job that is run again although it was committed, because the process
died before it could say so, finds the name, changes nothing, and gives what it gave then. A process that dies takes its
connection with it, and the database rolls back.

One member at a time has the connection.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import msgspec

from penstock.components.base import Action, Call, ComponentFailure
from penstock.components.flow.tool_calls import tool_failures
from penstock.components.io.sql.database import Endpoint, Files, interrupting
from penstock.components.io.sql.load import Pauses
from penstock.kernel.values import JsonMap
from penstock.ports.components import SHARED_COMMIT
from penstock.tools.base import Resources, ToolFailure
from penstock.tools.sql import mysql as mysql_connection
from penstock.tools.sql import postgres_connection
from penstock.tools.sql.connection import Session, Stop, claimed, failures_at, in_a_thread
from penstock.tools.sql.duckdb import DuckdbSession
from penstock.tools.sql.mysql import MysqlParams, MysqlSession
from penstock.tools.sql.plan import COMMITS_BY_ITSELF, TABLE, Effect
from penstock.tools.sql.postgres_connection import PostgresSession
from penstock.tools.sql.results import RunningCommand, Table
from penstock.tools.sql.sqlite import SqliteSession
from penstock.tools.sql.text import Bound, Dialect

_COMMIT = RunningCommand(0, 1, "COMMIT")
MAX_ROWS = 100_000


@dataclass(slots=True)
class Opened:
    """A connection that members use one after the other. `close` ends it, and with it what was not committed."""

    session: Session
    connection: Any
    interrupt: Callable[[], None]
    close: Callable[[], None]


def _opened(endpoint: Endpoint, files: Files, stop: Stop) -> Opened:
    match endpoint.driver:
        case "postgres":
            server = postgres_connection.connect_blocking(endpoint.conninfo(), endpoint.address())
            cancel = in_a_thread(lambda: postgres_connection.cancel(server))
            return Opened(PostgresSession(server, MAX_ROWS), server, cancel, server.close)
        case "mysql":
            login = endpoint.login()
            connection = mysql_connection.connect(login, offers_rows=True)
            number = mysql_connection.thread_of(connection)
            kill = in_a_thread(lambda: mysql_connection.kill_query(login, number))
            return Opened(MysqlSession(connection, login, MysqlParams()), connection, kill, connection.close)
        case "sqlite":
            shared = files.sqlite
            assert shared is not None
            file = shared.take()
            return Opened(SqliteSession(file, MAX_ROWS), file, file.interrupt, lambda: shared.give_back(file))
        case "duckdb":
            assert files.duckdb is not None
            cursor = files.duckdb(stop)
            return Opened(DuckdbSession(cursor, MAX_ROWS), cursor, cursor.interrupt, cursor.close)
        case "adbc" | "dbapi":
            hint = "`transaction: own`"
            raise ToolFailure(
                "parameters", f"a connection of the kind `{endpoint.driver}` cannot be shared; hint: {hint}"
            )


@dataclass
class SharedTransaction:
    """The transaction of one sub-job in one database."""

    endpoint: Endpoint
    files: Files
    effect: Effect
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    members: list[str] = field(default_factory=list)
    results: JsonMap = field(default_factory=dict)
    """What each member came to: a sub-job that is run again after its commit gives the same."""
    ended: str | None = None
    """Why it can no longer be written in."""
    _earlier: JsonMap | None = None
    _opened: Opened | None = None

    # ---- members, in a thread

    def open(self, stop: Stop, call: Call) -> Opened | None:
        """The connection, inside the transaction; None when an earlier start of the sub-job has committed it."""
        stop.check()
        if self._earlier is None and self._opened is None:
            opened = _opened(self.endpoint, self.files, stop)
            try:
                with interrupting(stop, opened.interrupt):
                    self._earlier = self._claimed(opened.session, stop)
            except BaseException:
                opened.close()
                raise
            if self._earlier is None:
                self._opened = opened
            else:
                opened.close()
        self.members.append(call.component)
        return self._opened

    def _claimed(self, session: Session, stop: Stop) -> JsonMap | None:
        pauses = Pauses(stop, self.endpoint.call.say)
        while True:
            try:
                return claimed(session, self.effect)
            except ToolFailure as failure:
                if not pauses.allow(failure):
                    raise

    def earlier(self, call: Call) -> Any:
        """What a member came to in the start that has committed. Raises ToolFailure."""
        assert self._earlier is not None
        component = call.component
        if call.subjob.is_reopened():
            raise ToolFailure(
                "transaction",
                f"`{component}` is to run again because failed iterations did, and its transaction has been committed; "
                "hint: put what follows from the iterator into a sub-job of its own: `subjob_ok`",
            )
        if component not in self._earlier:
            raise ToolFailure(
                "transaction",
                f"this sub-job was committed by an earlier start, in which `{component}` did not run: what it would write now "
                "cannot be part of that",
            )
        return self._earlier[component]

    def run(self, statements: Iterable[Bound], opened: Opened, stop: Stop, max_rows: int) -> list[Table]:
        """Statements of the author's. Raises ToolFailure."""
        done: list[Table] = []
        every = list(statements)
        check_verbs(every, self.endpoint.dialect)
        opened.session.max_rows = max_rows
        with interrupting(stop, opened.interrupt):
            for index, statement in enumerate(every):
                stop.check()
                with failures_at(opened.session, RunningCommand(index, len(every), statement.excerpt)):
                    done.append(opened.session.execute(statement))
        return done

    # ---- its end, in a thread

    def commit(self) -> None:
        """Raises ToolFailure; then nothing is committed, unless the connection was lost on the way: its name will tell."""
        opened, self._opened = self._opened, None
        self.ended = "it has been committed"
        if opened is None:
            return
        try:
            with failures_at(opened.session, _COMMIT):
                opened.session.execute(self.effect.keep(self.results))
                opened.session.commit()
        finally:
            _close(opened)

    def roll_back(self, reason: str) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            self.ended = reason
            with suppress(*opened.session.errors):
                opened.session.rollback()
            _close(opened)

    @property
    def is_open(self) -> bool:
        return self._opened is not None

    @property
    def was_committed(self) -> bool:
        return self._earlier is not None


def _close(opened: Opened) -> None:
    with suppress(*opened.session.errors):
        opened.close()


def check_verbs(statements: Iterable[Bound], dialect: Dialect) -> None:
    """Raises ToolFailure for what would commit the transaction on its way."""
    for statement in statements:
        if dialect is Dialect.MYSQL and statement.verb in COMMITS_BY_ITSELF:
            raise ToolFailure(
                "parameters",
                f"`{statement.verb.upper()}` commits by itself in MySQL, so it cannot be part of a shared transaction: "
                f"`{statement.excerpt}`; hint: run it before, in a `run_sql` of its own sub-job",
            )


class Transactions:
    """Those of one execution in this process, by their sub-jobs."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, SharedTransaction]] = {}

    def of(self, call: Call, endpoint: Endpoint, files: Files) -> SharedTransaction:
        key = _digest(endpoint)
        there = self._open.setdefault(call.subjob.name, {})
        if key not in there:
            named = replace(
                endpoint.call,
                task=call.subjob.name,
                idempotency_key="\0".join((call.execution_id, call.subjob.name, "shared transaction", key)),
            )
            there[key] = SharedTransaction(endpoint, files, Effect(named, TABLE, endpoint.dialect))
        return there[key]

    def take(self, subjob: str) -> list[SharedTransaction]:
        return list(self._open.pop(subjob, {}).values())

    async def roll_back(self, is_over: Callable[[str], bool]) -> None:
        """What was not committed in sub-jobs that are over: in a job that dies, what would commit it does not start."""
        for subjob in [name for name in self._open if is_over(name)]:
            for transaction in self.take(subjob):
                await asyncio.to_thread(transaction.roll_back, "the sub-job was stopped")

    async def close(self) -> None:
        """The run is over, or this process gives it up."""
        await self.roll_back(lambda subjob: True)


def _digest(endpoint: Endpoint) -> str:
    text = json.dumps([endpoint.driver, endpoint.url, endpoint.auth], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


async def transactions_of(resources: Resources, execution_id: str) -> Transactions:
    async def make() -> tuple[Transactions, Callable[[], Awaitable[None]]]:
        made = Transactions()
        return made, made.close

    found: Transactions = await resources.get(("shared transactions", execution_id), make)
    return found


@asynccontextmanager
async def joined(call: Call, endpoint: Endpoint, files: Files) -> AsyncIterator[SharedTransaction]:
    """The transaction of the caller's sub-job, for the caller alone while the block runs. If that fails, it is rolled back."""
    if not call.subjob.commits:
        hint = "write `transaction: shared` as it is, not as a template"
        raise ComponentFailure(
            "parameters", f"nothing would commit the shared transaction of `{call.component}`; {hint}"
        )
    if files.sqlite is not None and files.sqlite.turn is not None:
        raise ComponentFailure(
            "parameters", "a database in memory has no transactions to share; hint: `transaction: own`"
        )
    shared = (await transactions_of(call.resources, call.execution_id)).of(call, endpoint, files)
    async with shared.turn:
        if shared.ended is not None:
            raise ComponentFailure("transaction", f"the shared transaction has ended: {shared.ended}")
        try:
            yield shared
        except BaseException:
            await call.threads.run(shared.roll_back, f"`{call.component}` failed")
            raise


class SharedCommitParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class SharedCommit(Action[SharedCommitParams]):
    """Commit what the components of a sub-job wrote with `transaction: shared`, or roll it back if one of them failed.

    The result is `{committed}`. It is OK when it rolled back because of a failure that has been told already.
    """

    type: ClassVar[str] = SHARED_COMMIT
    family: ClassVar[str] = "write"

    async def run(self, params: SharedCommitParams, call: Call) -> JsonMap:

        open_ones = (await transactions_of(call.resources, call.execution_id)).take(call.subjob.name)
        reason = _reason(open_ones, call)
        if reason is not None:
            for shared in open_ones:
                await call.threads.run(shared.roll_back, reason)
            call.say(f"rolled back what {_names(open_ones)} wrote: {reason}")
            return {"committed": False}
        for index, shared in enumerate(open_ones):
            try:
                with tool_failures():
                    await call.threads.run(shared.commit)
            except ComponentFailure as failure:
                for other in open_ones[index + 1 :]:
                    await call.threads.run(other.roll_back, "another transaction of the sub-job could not be committed")
                if index:  # Two databases have no transaction in common.
                    failure.message += f" (what {_names(open_ones[:index])} wrote to another database is committed)"
                raise
        if any(shared.was_committed for shared in open_ones):
            call.say("an earlier start of this sub-job had been committed: nothing was written again")
        return {"committed": True}


def _reason(open_ones: list[SharedTransaction], call: Call) -> str | None:
    failed = call.subjob.failed()
    members = {name for shared in open_ones for name in shared.members}
    for shared in open_ones:
        if shared.ended is not None:
            return shared.ended
    guilty = next((name for name, is_handled in failed.items() if not is_handled or name in members), None)
    return None if guilty is None else f"`{guilty}` failed"


def _names(shared: list[SharedTransaction]) -> str:
    return ", ".join(dict.fromkeys(f"`{name}`" for one in shared for name in one.members)) or "nobody"
