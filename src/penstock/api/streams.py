"""The streams: the events of one run as lines of JSON, and one stream of server-sent events for all that a client watches.

Messages of the SSE stream:

    start    comes first and at once: who answers
    entry    an event of a watched execution, as `penstock events --json` prints it
    line     what a tool said, of a watched execution (with `lines=true`)
    tick     in place of both, with `ticks=true`: how far a watched execution is; at most four a second however fast it is
    status   a watched execution has this status now; comes when the stream has caught up, and after each change
    run      a run as the list has it, when it is new or has changed (with `runs=true`)

`id` is the position in every watched execution, in the order in which they were asked for: `SEQ` or `SEQ-LINE`, joined by dots. A
client that reconnects with the same executions and the last id (`Last-Event-ID`) misses nothing and gets nothing twice.
A `status` is one of the log, or `crashed`.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.api.backend import Backend, apart
from penstock.api.errors import ApiError, from_refusal
from penstock.kernel.errors import Damaged, PenstockError
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry, EventLog, Header
from penstock.ports.results import encode
from penstock.ports.wire import envelope
from penstock.views.headers import listed

# ---- Notifying streams of new entries. Law: watching does not slow down execution. A watcher reads new entries by itself, at its
# own pace, and keeps nothing but its position; here it is only notified that there is something to read.

TICK_S = 0.25
"""The least time between two ticks of a run, and between two looks at the list of runs."""
LOOK_S = 0.5
"""The interval at which entries of other servers are polled for."""
LEAST_S = 0.02
LISTED = 200


class Seen(NamedTuple):
    """A run as last seen. `status` is as people read it: it may be `crashed`."""

    header: Header
    status: str


Look = Callable[[Header], Seen]


@dataclass(slots=True, eq=False)
class Watcher:
    """The subscription of one stream. `is_new` is set when one of its executions has new entries."""

    executions: frozenset[str]
    sees_all: bool
    is_new: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, most_s: float) -> bool:
        """Waits for news; False after the timeout."""
        try:
            async with asyncio.timeout(most_s):
                await self.is_new.wait()
        except TimeoutError:
            return False
        self.is_new.clear()
        return True


class Tail:
    def __init__(self, log: EventLog, most: int, look: Look) -> None:
        """`look` says what a run with this header is now; it is called in threads."""
        self.log = log
        self.look = look
        self.is_closed = False
        self.heads: dict[str, Seen] = {}
        """The executions that are watched."""
        self.newest: dict[str, Seen] = {}
        """The newest runs and those that are going, newest first, while a client watches all runs."""
        self._listed_at = float("-inf")
        self.most = most
        self._watchers: set[Watcher] = set()
        self._moved: set[str] = set()
        self._has_moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def check_room(self) -> None:
        """Must be called before an answer begins: after that no error can be reported."""
        if self.is_closed:
            raise ApiError(503, "the server is about to stop", headers={"Retry-After": "1"})
        if len(self._watchers) >= self.most:
            raise ApiError(429, f"{self.most:,} streams are open, which is all there is room for", "close some of them")

    @contextmanager
    def watching(self, executions: Iterable[str], *, sees_all: bool = False) -> Iterator[Watcher]:
        self.check_room()
        watcher = Watcher(frozenset(executions), sees_all)
        watcher.is_new.set()
        self._watchers.add(watcher)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._look_again())
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def moved(self, execution_id: str) -> None:
        """Called on the event loop when more entries of an execution are durable."""
        if self._watchers:
            self._moved.add(execution_id)
            self._has_moved.set()

    async def close(self) -> None:
        """Ends all streams."""
        self.is_closed = True
        for watcher in self._watchers:
            watcher.is_new.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # ---- looking

    async def _look_again(self) -> None:
        while self._watchers:
            with contextlib.suppress(PenstockError):
                await self._look(None)
            await self._wait()
        self.heads, self.newest, self._task = {}, {}, None

    async def _wait(self) -> None:
        """Waits until the next poll; entries of this process are handled meanwhile."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LOOK_S
        while (left := end - loop.time()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._has_moved.wait()
            self._has_moved.clear()
            moved, self._moved = self._moved, set()
            if moved:
                with contextlib.suppress(PenstockError):
                    await self._look(moved)
                await asyncio.sleep(LEAST_S)

    async def _look(self, only: set[str] | None) -> None:
        watched = {one for watcher in self._watchers for one in watcher.executions}
        wanted = watched if only is None else watched & only
        now = asyncio.get_running_loop().time()
        sees_all = any(watcher.sees_all for watcher in self._watchers)
        with_all = sees_all and (only is None or now - self._listed_at >= TICK_S)
        if with_all:
            self._listed_at = now
        found, newest = await apart(lambda: self._read(wanted, with_all))
        changed = {name for name in wanted if self.heads.get(name) != found.get(name)}
        kept = {name: head for name, head in self.heads.items() if name in watched - wanted}
        self.heads = {**kept, **found}
        changed_list = {name for name, seen in newest.items() if self.newest.get(name) != seen}
        if with_all or not sees_all:
            self.newest = newest
        for watcher in self._watchers:
            if (watcher.executions & changed) or (watcher.sees_all and changed_list):
                watcher.is_new.set()

    def _read(self, names: Iterable[str], with_all: bool) -> tuple[dict[str, Seen], dict[str, Seen]]:
        headers = (self.log.header(name) for name in names)
        found = {header.execution_id: self.look(header) for header in headers if header is not None}
        return found, self._list() if with_all else {}

    def _list(self) -> dict[str, Seen]:
        found = {header.execution_id: header for header in self.log.headers(LISTED)}
        for header in self.log.headers(LISTED, status="running"):
            found.setdefault(header.execution_id, header)
        for name, before in self.newest.items():  # A long run that has ended just now may be in neither list.
            if before.header.status == "running" and name not in found:
                ended = self.log.header(name)
                if ended is not None:
                    found[name] = ended
        seen = {name: self.look(header) for name, header in found.items()}
        return dict(sorted(seen.items(), key=lambda one: one[1].header.started_at, reverse=True))


PAGE = 500
LINES_S = 0.5
RETRY_MS = 1000
_POSITION = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


# ---- the events of one run


async def ndjson(backend: Backend, tail: Tail, header: Header, after: int, *, follow: bool) -> AsyncIterator[bytes]:
    """One envelope per line; an empty line as heartbeat while nothing happens. Ends when the run is over and everything was sent,
    or with an error when the log cannot be read any further: a retry would not help."""
    try:
        async for lines in _envelopes(backend, tail, header, after, follow=follow):
            yield lines
    except Damaged as error:
        yield from_refusal(error).body() + b"\n"


async def _envelopes(backend: Backend, tail: Tail, header: Header, after: int, *, follow: bool) -> AsyncIterator[bytes]:
    run = header.execution_id
    if not follow:
        async for page in _pages(backend, run, after):
            yield b"".join(encode(envelope(entry, header)) + b"\n" for entry in page)
        return
    with tail.watching([run]) as watcher:
        while not tail.is_closed:
            # Asked first: what was written before the run was over is then certainly read.
            header = await apart(lambda: _header(backend, run))
            async for page in _pages(backend, run, after):
                after = page[-1].seq
                yield b"".join(encode(envelope(entry, header)) + b"\n" for entry in page)
            if header.status != "running":
                return
            if not await watcher.wait(backend.limits.heartbeat_s):
                yield b"\n"


async def _pages(backend: Backend, run: str, after: int) -> AsyncIterator[list[Entry]]:
    """The entries after a position, as they are now, in pages; read in threads."""
    entries: Iterator[Entry] = await apart(lambda: backend.log.read(run, after))
    while page := await apart(lambda: list(islice(entries, PAGE))):
        yield page


def _header(backend: Backend, run: str) -> Header:
    header = backend.log.header(run)
    if header is None:
        raise ApiError(404, f"the run `{run}` was deleted")
    return header


async def log_lines(backend: Backend, tail: Tail, run: str, after: int, *, follow: bool) -> AsyncIterator[bytes]:
    with tail.watching([run]) as watcher:
        while True:
            header = await apart(lambda: _header(backend, run))
            while lines := await apart(partial(backend.lines.read, run, after, PAGE)):
                after += len(lines)
                yield b"".join(encode(line) + b"\n" for line in lines)
            if not follow or header.status != "running" or tail.is_closed:
                return
            await watcher.wait(LINES_S)


# ---- one stream for everything


@dataclass(slots=True)
class Followed:
    """One execution in a stream, and how much of it has been sent."""

    execution_id: str
    seq: int = 0
    line: int = 0
    sent_status: str | None = None
    """The status that was sent last."""
    next_tick: float = 0.0
    """When its next tick may be sent, by the clock of the event loop."""


def asked(executions: Sequence[str], last_id: str | None) -> list[Followed]:
    """Parses `ID` or `ID@SEQ`, and the id of the last message that the client received."""
    found: dict[str, Followed] = {}
    for text in executions:
        name, at, seq = text.rpartition("@")
        is_placed = bool(at) and seq.isdigit() and len(seq) < 19 and bool(name)
        one = Followed(name, int(seq)) if is_placed else Followed(text)
        found.setdefault(one.execution_id, one)
    followed = list(found.values())
    if last_id:
        positions = [_POSITION.fullmatch(part) for part in last_id.split(".")]
        if len(positions) != len(followed) or None in positions:
            raise ApiError(
                400,
                f"`Last-Event-ID: {last_id[:100]}` does not fit the {len(followed)} executions of this stream",
                "come back with the same executions in the same order, or without it",
            )
        for one, position in zip(followed, positions, strict=True):
            assert position is not None
            one.seq, one.line = int(position[1]), int(position[2] or 0)
    return followed


class EventStream:
    def __init__(
        self, backend: Backend, tail: Tail, followed: list[Followed], *, lines: bool, runs: bool, ticks: bool = False
    ) -> None:
        self._backend = backend
        self._tail = tail
        self._followed = followed
        self._with_lines = lines or ticks
        self._with_ticks = ticks
        self._with_runs = runs
        self._runs_sent: dict[str, Seen] = {}
        self._owed_at: float | None = None
        """When a tick that was held back is due."""

    async def messages(self) -> AsyncIterator[bytes]:
        names = [one.execution_id for one in self._followed]
        with self._tail.watching(names, sees_all=self._with_runs) as watcher:
            yield f"retry: {RETRY_MS}\n\n".encode()
            yield _message("start", {"server": self._backend.name, "version": self._backend.version})
            while not self._tail.is_closed:
                self._owed_at = None
                for one in self._followed:
                    async for piece in self._tick_of(one) if self._with_ticks else self._news_of(one):
                        yield piece
                for piece in self._runs():
                    yield piece
                if not await self._wait(watcher):
                    yield b": still here\n\n"

    async def _wait(self, watcher: Watcher) -> bool:
        """The log does not announce printed lines, so they are polled for while a run is active."""
        if self._owed_at is not None:
            await asyncio.sleep(max(0.0, self._owed_at - asyncio.get_running_loop().time()))
            return True
        beat = self._backend.limits.heartbeat_s
        if not self._with_lines or all(one.sent_status != "running" for one in self._followed):
            return await watcher.wait(beat)
        for _ in range(max(1, round(beat / LINES_S))):
            if await watcher.wait(LINES_S):
                return True
            for one in self._followed:
                if await apart(partial(self._backend.lines.read, one.execution_id, one.line, 1)):
                    return True
        return False

    async def _tick_of(self, one: Followed) -> AsyncIterator[bytes]:
        """However much has happened, one message says how far the run is now."""
        seen = await apart(partial(self._seen, one.execution_id))
        if seen is None:
            for piece in self._deleted(one):
                yield piece
            return
        now = asyncio.get_running_loop().time()
        if now < one.next_tick:
            if seen.header.last_seq > one.seq or seen.status != one.sent_status or seen.status == "running":
                self._owed_at = min(one.next_tick, self._owed_at or one.next_tick)
            return
        lines = await apart(partial(self._backend.lines.count, one.execution_id, one.line))
        has_changed = one.sent_status not in (None, seen.status)
        if seen.header.last_seq > one.seq or lines > one.line or has_changed:
            one.seq, one.line, one.next_tick = max(one.seq, seen.header.last_seq), lines, now + TICK_S
            tick: JsonMap = {"execution_id": one.execution_id, "seq": one.seq, "status": seen.status, "lines": lines}
            yield self._message("tick", tick)
        for piece in self._status(one, seen.status):
            yield piece

    def _seen(self, run: str) -> Seen | None:
        header = self._backend.log.header(run)
        return None if header is None else self._tail.look(header)

    def _status(self, one: Followed, status: str) -> Iterator[bytes]:
        if status != one.sent_status:
            one.sent_status = status
            yield self._message("status", {"execution_id": one.execution_id, "status": status, "seq": one.seq})

    def _deleted(self, one: Followed) -> Iterator[bytes]:
        return self._status(one, "deleted")

    async def _news_of(self, one: Followed) -> AsyncIterator[bytes]:
        seen = await apart(partial(self._seen, one.execution_id))
        if seen is None:
            for piece in self._deleted(one):
                yield piece
            return
        header = seen.header
        if one.seq < header.last_seq:
            async for page in _pages(self._backend, one.execution_id, one.seq):
                out = []
                for entry in page:
                    one.seq = entry.seq
                    out.append(self._message("entry", envelope(entry, header)))
                yield b"".join(out)
        async for piece in self._lines_of(one):
            yield piece
        for piece in self._status(one, seen.status):
            yield piece

    async def _lines_of(self, one: Followed) -> AsyncIterator[bytes]:
        while self._with_lines:
            lines = await apart(partial(self._backend.lines.read, one.execution_id, one.line, PAGE))
            if not lines:
                return
            out = []
            for line in lines:
                one.line += 1
                out.append(self._message("line", {"execution_id": one.execution_id, **line}))
            yield b"".join(out)

    def _runs(self) -> Iterator[bytes]:
        if not self._with_runs:
            return
        sent, self._runs_sent = self._runs_sent, self._tail.newest
        for name, seen in reversed(self._runs_sent.items()):
            if sent.get(name) != seen:
                yield self._message("run", listed(seen.header, seen.status))

    def _message(self, event: str, data: JsonMap) -> bytes:
        return _message(event, data, self._position())

    def _position(self) -> str:
        if self._with_lines:
            return ".".join(f"{one.seq}-{one.line}" for one in self._followed)
        return ".".join(str(one.seq) for one in self._followed)


def _message(event: str, data: JsonMap, position: str = "") -> bytes:
    at = f"id: {position}\n" if position else ""
    return f"{at}event: {event}\ndata: {encode(data).decode()}\n\n".encode()


# ---- Streaming responses. A reader that takes nothing for too long is disconnected.

CHUNK = 1 << 16
"""The most that is handed over at once: what a reader does not take waits here, not in the buffer of the connection."""


class Streamed(Response):
    def __init__(
        self, pieces: AsyncIterator[bytes], media: str, stall_s: float, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(None, 200, dict(headers or {}), media)
        del self.headers["content-length"]
        self._pieces = pieces
        self._stall_s = stall_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        writing = asyncio.ensure_future(self._write(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
        finally:
            for task in (writing, leaving):
                task.cancel()
            await asyncio.gather(writing, leaving, return_exceptions=True)

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async for piece in self._pieces:
                for start in range(0, len(piece), CHUNK):
                    chunk = piece[start : start + CHUNK]
                    message = {"type": "http.response.body", "body": chunk, "more_body": True}
                    async with asyncio.timeout(self._stall_s):
                        await send(message)
            async with asyncio.timeout(self._stall_s):
                await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            # uvicorn closes the connection of an abandoned response: the reader knows that it is incomplete.
            print(
                f"penstock: a reader took nothing for {self._stall_s:g} s and is cut off", file=sys.stderr, flush=True
            )
        except (PenstockError, ApiError) as error:
            print(f"penstock: a stream broke off: {error.message}", file=sys.stderr, flush=True)
        finally:
            await self._pieces.aclose()  # type: ignore[attr-defined]  # They come from generators.


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
