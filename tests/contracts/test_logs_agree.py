"""Random stories told to the memory log and to the SQLite log at once: both must answer alike at every step."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.adapters.memory_log import MemoryLog, MemoryStore
from penstock.adapters.sqlite_log import SqliteLog
from penstock.kernel.errors import Refused
from penstock.ports.log import EventLog
from tests.contracts.entries import entry, header

NAMES = st.sampled_from(["a", "b"])
STATUSES = st.sampled_from([None, "running", "completed", "failed"])
STEPS = st.one_of(
    st.tuples(st.just("create"), NAMES),
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

    def __init__(self, home: Path | None) -> None:
        self.home = home
        self.store = MemoryStore()
        self.log = self.open()
        self.epochs: dict[str, int] = {}

    def open(self) -> EventLog:
        return SqliteLog(self.home) if self.home else MemoryLog(self.store)

    async def tell(self, step: tuple[object, ...]) -> object:
        try:
            return await self.act(*step)  # type: ignore[arg-type]
        except Refused as refused:
            # Who holds an execution is told in each adapter's own words.
            return refused.message.partition(" by ")[0]

    async def act(self, what: str, name: str, *more: object) -> object:
        match what:
            case "create":
                await self.log.create(header(name), name.encode())
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

    def view(self) -> list[object]:
        return [
            (found, list(self.log.read(found.execution_id)), self.log.has_owner(found.execution_id))
            for found in self.log.headers()
        ]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(STEPS, max_size=30))
def test_the_memory_log_and_the_sqlite_log_answer_alike(story: list[tuple[object, ...]]) -> None:
    async def tell(folder: Path) -> None:
        memory, sqlite = Teller(None), Teller(folder)
        try:
            for step in [("create", "a"), ("claim", "a"), *story]:
                assert await sqlite.tell(step) == await memory.tell(step), step
                assert sqlite.view() == memory.view(), step
        finally:
            await sqlite.log.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(tell(Path(folder)))
