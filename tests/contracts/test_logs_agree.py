"""Random stories told to all logs at once, in memory, in SQLite and in PostgreSQL: they must answer alike at every step."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.adapters.memory.log import MemoryLog, MemoryStore
from penstock.adapters.postgres.log import PostgresLog
from penstock.adapters.sqlite.log import SqliteLog
from penstock.kernel.errors import Refused
from penstock.ports.log import EventLog
from tests.contracts.entries import entry, header
from tests.depth import times
from tests.servers import postgres_server

__all__ = ["postgres_server"]

NAMES = st.sampled_from(["a", "b"])
STATUSES = st.sampled_from([None, "running", "completed", "failed"])
STEPS = st.one_of(
    st.tuples(st.just("create"), NAMES, st.sampled_from([None, None, "k"])),
    st.tuples(st.just("prune"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("claim"), NAMES),
    st.tuples(st.just("release"), NAMES),
    st.tuples(st.just("forget"), NAMES),
    st.tuples(st.just("ask"), NAMES),
    st.tuples(st.just("answer"), NAMES),
    st.tuples(st.just("reopen"), NAMES),
    # How far the first number is from the right one, how many entries, how stale the epoch is.
    st.tuples(
        st.just("append"), NAMES, st.sampled_from([0, 0, 0, 0, -1, 1]), st.integers(0, 4), st.sampled_from([0, 0, 0, 1]), STATUSES
    ),
)  # fmt: skip


class Teller:
    """Tells one log the story and notes what it answers."""

    def __init__(self, open_log: Callable[[], EventLog]) -> None:
        self.open = open_log
        self.log = open_log()
        self.epochs: dict[str, int] = {}

    async def tell(self, step: tuple[object, ...]) -> object:
        try:
            return await self.act(*step)  # type: ignore[arg-type]
        except Refused as refused:
            # Who holds an execution is told in each adapter's own words.
            return refused.message.partition(" by ")[0]

    async def act(self, what: str, name: str, *more: object) -> object:
        match what:
            case "create":
                return await self.log.create(header(name), name.encode(), *more)  # type: ignore[arg-type]
            case "prune":
                return await self.log.prune(1000.0 + more[0])  # type: ignore[operator]
            case "claim":
                self.epochs[name] = await self.log.claim(name, "me")
            case "release":
                await self.log.release(name)
            case "forget":
                await self.log.forget(name)
            case "ask":
                self.log.ask(name, "cancel")
            case "answer":
                for request in self.log.asked(name):
                    self.log.answered(request.number)
            case "reopen":
                await self.log.close()
                self.log = self.open()
            case "append":
                await self.append(name, *more)  # type: ignore[arg-type]
        return "done"

    async def append(self, name: str, off: int, count: int, stale: int, status: str | None) -> None:
        found = self.log.header(name)
        first = (found.last_seq if found else 0) + 1 + off
        epoch = self.epochs.get(name, 0) - stale
        given = [entry(first + index) for index in range(count)]
        await self.log.durable(self.log.append(name, epoch, given, status))  # type: ignore[arg-type]

    def view(self) -> object:
        found = self.log.headers()
        entries = [(list(self.log.read(one.execution_id)), self.log.has_owner(one.execution_id)) for one in found]
        asked = [(request.execution_id, request.what) for request in self.log.asked()]
        return found, entries, asked, self.log.unfinished()


@contextmanager
def new_schema(server: str) -> Iterator[str]:
    schema = f"story_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        mark = "&" if "?" in server else "?"
        try:
            yield f"{server}{mark}options={quote(f'-csearch_path={schema}')}"
        finally:
            connection.execute("SET client_min_messages = warning")
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


def agree(story: list[tuple[object, ...]], open_log: Callable[[], EventLog]) -> None:
    async def tell() -> None:
        store = MemoryStore()
        memory, other = Teller(lambda: MemoryLog(store)), Teller(open_log)
        try:
            for step in [("create", "a"), ("claim", "a"), *story]:
                assert await other.tell(step) == await memory.tell(step), step
                assert other.view() == memory.view(), step
        finally:
            await other.log.close()

    asyncio.run(tell())


@settings(max_examples=times(20), deadline=None, derandomize=True)
@given(st.lists(STEPS, max_size=30))
def test_the_memory_log_and_the_sqlite_log_answer_alike(story: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        agree(story, lambda: SqliteLog(folder))


@settings(max_examples=times(12), deadline=None, derandomize=True)
@given(story=st.lists(STEPS, max_size=30))
def test_the_memory_log_and_the_postgres_log_answer_alike(
    postgres_server: str,
    story: list[tuple[object, ...]],
) -> None:
    with new_schema(postgres_server) as url:
        agree(story, lambda: PostgresLog(url, name="a server"))
