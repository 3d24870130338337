"""The events and lines of a run at a server while it goes: one stream, which is resumed after a lost connection.

Law: any server of the fleet can continue the stream after the event that was seen last. A lost connection is reported once, and
so is its recovery; after the patience has run out the error is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx2

from penstock.cli.show.watched import Line
from penstock.kernel.errors import Unavailable
from penstock.ports.log import Entry
from penstock.remote.client import CONNECT_S, Client, decoded, error_of, tls_for
from penstock.remote.log import RemoteLog, entry_of

SILENCE_S = 45.0
"""A server sends a heartbeat every few seconds; one that is silent for this long is gone."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0


class Message:
    __slots__ = ("data", "event", "id")

    def __init__(self, event: str, data: Any, id: str | None) -> None:
        self.event, self.data, self.id = event, data, id


class ServerFeed:
    def __init__(self, client: Client, run_id: str, after: int = 0) -> None:
        """`after`: the last event that is known already."""
        self._client = client
        self._run = run_id
        self._after = after
        self._last_id: str | None = None

    @property
    def note(self) -> Callable[[str], None]:
        return self._client.note

    @note.setter
    def note(self, note: Callable[[str], None]) -> None:
        self._client.note = note

    def earlier(self) -> Iterator[Entry]:
        if not self._after:
            return
        for entry in RemoteLog(self._client).read(self._run):
            if entry.seq > self._after:
                return
            yield entry

    async def news(self) -> AsyncIterator[Entry | Line]:
        pause = FIRST_PAUSE_S
        while True:
            try:
                async for message in self._messages():
                    pause = FIRST_PAUSE_S
                    self._client.found()
                    self._last_id = message.id or self._last_id
                    data = message.data
                    if message.event == "entry":
                        yield entry_of(data)
                    elif message.event == "line":
                        yield Line(data["scope"], data["task_run_id"], data["line"])
                    elif message.event == "status" and self._is_end(data):
                        return
            except Unavailable as error:
                if not self._client.lost(error):
                    raise
            self._client.turn()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def _is_end(self, data: Any) -> bool:
        return data["status"] != "running" and int(data["seq"]) > self._after

    async def _messages(self) -> AsyncIterator[Message]:
        params = {"execution": f"{self._run}@{self._after}", "lines": "true"}
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
            reason = (str(error) or type(error).__name__).lower()
            raise Unavailable(f"the connection to `{self._client.url}` broke off: {reason}") from error


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
