"""The streams: the events of one run as lines of JSON, and one stream of server-sent events for all that a client watches.

Messages of the SSE stream:

    entry    an event of a watched execution, as `penstock events --json` prints it
    line     what a tool said, of a watched execution (with `lines=true`)
    status   a watched execution has this status now; comes when the stream has caught up, and after each change
    run      a run as the list has it, when it is new or has changed (with `runs=true`)

`id` is the place in every watched execution, in the order in which they were asked for: `SEQ` or `SEQ-LINE`, joined by dots. Who
comes back with the same executions and the last id (`Last-Event-ID`) misses nothing and gets nothing twice.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from penstock.api.backend import Backend, apart
from penstock.api.errors import ApiError, from_refusal
from penstock.api.tail import Tail, Watcher
from penstock.kernel.errors import Damaged
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry, Header
from penstock.ports.results import encode
from penstock.ports.wire import envelope
from penstock.server.views import listed

PAGE = 500
LINES_S = 0.5
RETRY_MS = 1000
_PLACE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


# ---- the events of one run


async def ndjson(backend: Backend, tail: Tail, header: Header, after: int, *, follow: bool) -> AsyncIterator[bytes]:
    """One envelope a line; an empty line now and then while nothing happens. Ends when all is told and the run is over, or with
    an error when the log cannot be read any further: asking again would not help."""
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
            # Asked first: what was written before the run was over is then read for certain.
            header = await apart(lambda: _header(backend, run))
            async for page in _pages(backend, run, after):
                after = page[-1].seq
                yield b"".join(encode(envelope(entry, header)) + b"\n" for entry in page)
            if header.status != "running":
                return
            if not await watcher.wait(backend.limits.heartbeat_s):
                yield b"\n"


async def _pages(backend: Backend, run: str, after: int) -> AsyncIterator[list[Entry]]:
    """The entries after a place, as they are now, in pages; read in threads."""
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
    """One execution in a stream, and how much of it has been told."""

    execution_id: str
    seq: int = 0
    line: int = 0
    told: str | None = None
    """The status that was told last."""


def asked(executions: Sequence[str], last_id: str | None) -> list[Followed]:
    """From `ID` or `ID@SEQ`, and from the id of the last message that the client has got."""
    found: dict[str, Followed] = {}
    for text in executions:
        name, at, seq = text.rpartition("@")
        is_placed = bool(at) and seq.isdigit() and len(seq) < 19 and bool(name)
        one = Followed(name, int(seq)) if is_placed else Followed(text)
        found.setdefault(one.execution_id, one)
    followed = list(found.values())
    if last_id:
        places = [_PLACE.fullmatch(part) for part in last_id.split(".")]
        if len(places) != len(followed) or None in places:
            raise ApiError(
                400,
                f"`Last-Event-ID: {last_id[:100]}` does not fit the {len(followed)} executions of this stream",
                "come back with the same executions in the same order, or without it",
            )
        for one, place in zip(followed, places, strict=True):
            assert place is not None
            one.seq, one.line = int(place[1]), int(place[2] or 0)
    return followed


class EventStream:
    def __init__(self, backend: Backend, tail: Tail, followed: list[Followed], *, lines: bool, runs: bool) -> None:
        self._backend = backend
        self._tail = tail
        self._followed = followed
        self._with_lines = lines
        self._with_runs = runs
        self._runs_told: dict[str, Header] = {}

    async def messages(self) -> AsyncIterator[bytes]:
        names = [one.execution_id for one in self._followed]
        with self._tail.watching(names, sees_all=self._with_runs) as watcher:
            yield f"retry: {RETRY_MS}\n\n".encode()
            while not self._tail.is_closed:
                for one in self._followed:
                    async for piece in self._news_of(one):
                        yield piece
                for piece in self._runs():
                    yield piece
                if not await self._wait(watcher):
                    yield b": still here\n\n"

    async def _wait(self, watcher: Watcher) -> bool:
        """Lines are not told of by the log, so they are looked for while somebody runs."""
        beat = self._backend.limits.heartbeat_s
        if not self._with_lines or all(one.told != "running" for one in self._followed):
            return await watcher.wait(beat)
        for _ in range(max(1, round(beat / LINES_S))):
            if await watcher.wait(LINES_S):
                return True
            for one in self._followed:
                if await apart(partial(self._backend.lines.read, one.execution_id, one.line, 1)):
                    return True
        return False

    async def _news_of(self, one: Followed) -> AsyncIterator[bytes]:
        header = await apart(partial(self._backend.log.header, one.execution_id))
        if header is None:
            if one.told != "deleted":
                one.told = "deleted"
                yield self._message("status", {"execution_id": one.execution_id, "status": "deleted", "seq": one.seq})
            return
        if one.seq < header.last_seq:
            async for page in _pages(self._backend, one.execution_id, one.seq):
                out = []
                for entry in page:
                    one.seq = entry.seq
                    out.append(self._message("entry", envelope(entry, header)))
                yield b"".join(out)
        async for piece in self._lines_of(one):
            yield piece
        if header.status != one.told:
            one.told = header.status
            yield self._message("status", {"execution_id": one.execution_id, "status": one.told, "seq": one.seq})

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
        told, self._runs_told = self._runs_told, self._tail.newest
        for name, header in reversed(self._runs_told.items()):
            if told.get(name) != header:
                yield self._message("run", listed(header, header.status))

    def _message(self, event: str, data: JsonMap) -> bytes:
        place = f"id: {self._place()}\n" if self._followed else ""
        return f"{place}event: {event}\ndata: {encode(data).decode()}\n\n".encode()

    def _place(self) -> str:
        if self._with_lines:
            return ".".join(f"{one.seq}-{one.line}" for one in self._followed)
        return ".".join(str(one.seq) for one in self._followed)
