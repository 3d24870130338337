"""Following a run at a server while it goes: one stream of events, which is taken up again where it broke off.

Law: whichever server of the fleet answers can tell, from the event that was seen last. That nothing is heard is said once, and
that something is heard again, too; nobody waits for longer than the patience allows.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from penstock.cli.output import say
from penstock.cli.remote import CONNECT_S, Client, decoded, error_of, tls_for
from penstock.cli.remote_engine import RemoteLog, entry_of
from penstock.cli.watching import TICK_S, Nobody
from penstock.kernel.errors import PenstockError, Unavailable
from penstock.kernel.evolve import Execution, evolve
from penstock.ports.log import Entry
from penstock.ports.wire import to_fact

SILENCE_S = 45.0
"""A server says every few seconds that it is still there; one that does not is gone."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Message:
    __slots__ = ("data", "event", "id")

    def __init__(self, event: str, data: Any, id: str | None) -> None:
        self.event, self.data, self.id = event, data, id


class Following:
    def __init__(self, client: Client, run_id: str, progress: Any, watcher: Any) -> None:
        self._client = client
        self._run = run_id
        self._progress = progress
        self._watcher = watcher
        self._see = progress.observer()
        self._hear = progress.line_observer()
        self._tree = None if isinstance(watcher, Nobody) else Execution()
        self._last_id: str | None = None

    async def to_the_end(self, after: int) -> bool:
        """Whether the run was followed to its end: False when somebody would rather leave. `after`: what was before is known."""
        if after and self._tree is not None:
            await asyncio.to_thread(self._catch_up, after)
        self._client.note = self._watcher.note
        loop, leave = asyncio.get_running_loop(), asyncio.Event()
        for number in SIGNALS:
            loop.add_signal_handler(number, leave.set)
        tasks = {
            asyncio.ensure_future(self._follow(after)),
            asyncio.ensure_future(leave.wait()),
            asyncio.ensure_future(self._tick()),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            return not leave.is_set()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._look()
            self._client.note = say
            self._watcher.close(self._progress)
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _catch_up(self, upto: int) -> None:
        for entry in RemoteLog(self._client).read(self._run):
            if entry.seq > upto:
                break
            self._fold(entry)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._look()
            self._watcher.show(self._progress)

    def _look(self) -> None:
        if isinstance(self._watcher, Nobody):
            return
        self._progress.fold(time.time())
        if self._tree is not None and self._tree.executions:
            self._progress.look_at(self._tree)

    # ---- the stream

    async def _follow(self, after: int) -> None:
        pause = FIRST_PAUSE_S
        while True:
            try:
                async for message in self._messages(after):
                    pause = FIRST_PAUSE_S
                    self._client.found()
                    if self._take(message, after):
                        return
            except Unavailable as error:
                if not self._client.lost(error):
                    raise
            self._client.turn()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def _take(self, message: Message, after: int) -> bool:
        """Whether that was the end."""
        self._last_id = message.id or self._last_id
        data = message.data
        if message.event == "entry":
            entry = entry_of(data)
            self._see(entry)
            self._fold(entry)
        elif message.event == "line":
            self._hear(data["scope"], data["task_run_id"], data["line"])
        elif message.event == "status":
            return data["status"] != "running" and int(data["seq"]) > after
        return False

    def _fold(self, entry: Entry) -> None:
        if self._tree is None:
            return
        try:
            evolve(self._tree, to_fact(entry, None), entry.ts)
        except (PenstockError, LookupError, AssertionError):
            self._tree = None  # A newer server knows more than we do: then loops are not counted here.

    async def _messages(self, after: int) -> AsyncIterator[Message]:
        import httpx2

        params = {"execution": f"{self._run}@{after}", "lines": "true"}
        headers = {**self._client.headers, **({"Last-Event-ID": self._last_id} if self._last_id else {})}
        timeout, url = httpx2.Timeout(SILENCE_S, connect=CONNECT_S), self._client.url
        try:
            async with (
                httpx2.AsyncClient(base_url=url, timeout=timeout, verify=tls_for(url)) as client,
                client.stream("GET", "/api/stream", params=params, headers=headers) as response,
            ):
                if not response.is_success:
                    raise error_of(response.status_code, decoded(await response.aread()), self._client.url)
                async for message in _parsed(response.aiter_bytes()):
                    yield message
        except httpx2.TransportError as error:
            said = (str(error) or type(error).__name__).lower()
            raise Unavailable(f"the connection to `{self._client.url}` broke off: {said}") from error


async def _parsed(pieces: AsyncIterator[bytes]) -> AsyncIterator[Message]:
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n\n")
        for block in whole:
            message = _message(block)
            if message is not None:
                yield message


def _message(block: bytes) -> Message | None:
    fields: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").split("\n"):
        name, colon, value = line.partition(":")
        if name and colon:
            fields[name] = value.removeprefix(" ")
    if "data" not in fields:
        return None
    data = None
    with suppress(ValueError):
        data = decoded(fields["data"].encode())
    return Message(fields.get("event", "message"), data, fields.get("id"))
