"""A connection to NATS for callers that do not run an event loop: it lives on a loop in a thread of its own.

Law: what is done here can be done twice with the same end, so that a connection which dies, and a stream which is gone, are
answered by doing it once more. That goes on for as long as the store is patient; then it is Unavailable. No request waits
without a limit.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, TypeVar

import nats
from nats import errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js import errors as js_errors

from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import JsonMap

T = TypeVar("T")

REQUEST_SECONDS = 10.0
CONNECT_SECONDS = 5.0
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
PASSING = (
    errors.TimeoutError,
    errors.NoRespondersError,
    errors.ConnectionClosedError,
    errors.ConnectionReconnectingError,
    errors.ConnectionDrainingError,
    errors.NoServersError,
    errors.OutboundBufferLimitError,
    errors.StaleConnectionError,
    js_errors.NoStreamResponseError,
    js_errors.ServerError,
    js_errors.ServiceUnavailableError,
    OSError,
)


class NatsConnection:
    """`prepare` is called with every new connection, and again when its stream is found to be gone."""

    def __init__(
        self, url: str, patience_s: float, prepare: Callable[[JetStreamContext], Awaitable[None]], purpose: str
    ) -> None:
        self._url = url
        self._patience_s = patience_s
        self._prepare = prepare
        self._purpose = purpose
        self._client: Client | None = None
        self._connecting: asyncio.Lock | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._was_ready = False
        self._is_ready = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._mutex = threading.Lock()
        self._is_closed = False

    def run(self, act: Callable[[JetStreamContext], Coroutine[Any, Any, T]]) -> T:
        """Do it on the loop, from any thread but the loop's own."""
        with self._mutex:
            loop = self._running_loop()
            future: Future[T] = asyncio.run_coroutine_threadsafe(self._patiently(act), loop)
        try:
            return future.result()
        except CancelledError:
            raise self._closed() from None
        finally:
            future.cancel()

    @property
    def largest_message(self) -> int:
        """What the server takes at most, inside `run`."""
        assert self._client is not None
        return self._client.max_payload

    async def ask(self, what: str, body: JsonMap) -> dict[str, Any]:
        """A request to the JetStream API for which the client has no method; on the loop, inside `run`."""
        assert self._client is not None
        answer = await self._client.request(f"$JS.API.{what}", json.dumps(body).encode(), timeout=REQUEST_SECONDS)
        said: dict[str, Any] = json.loads(answer.data)
        if "error" in said:
            js_errors.APIError.from_error(said["error"])
        return said

    def close(self) -> None:
        with self._mutex:
            self._is_closed = True
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    async def _patiently(self, act: Callable[[JetStreamContext], Coroutine[Any, Any, T]]) -> T:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await self._try_until(time.monotonic() + self._patience_s, act)
        finally:
            self._tasks.discard(task)

    async def _try_until(self, deadline: float, act: Callable[[JetStreamContext], Coroutine[Any, Any, T]]) -> T:
        pause = FIRST_PAUSE
        while True:
            try:
                return await act(await self._stream())
            except (errors.Error, OSError) as error:
                self._is_ready = self._is_ready and not isinstance(error, js_errors.NoStreamResponseError)
                # A server that never answered is more likely named wrongly than about to come back.
                is_hopeful = self._was_ready and isinstance(error, PASSING)
                if not is_hopeful or time.monotonic() + pause > deadline:
                    raise self._unavailable(error) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _stream(self) -> JetStreamContext:
        if self._connecting is None:
            self._connecting = asyncio.Lock()
        async with self._connecting:
            if self._client is None or self._client.is_closed:
                self._is_ready = False
                self._client = await self._connect()
            stream = self._client.jetstream(timeout=REQUEST_SECONDS)
            if not self._is_ready:
                await self._prepare(stream)
                self._is_ready = self._was_ready = True
            return stream

    async def _connect(self) -> Client:
        """It is not left to the client to connect again: its requests would wait for that without saying so."""
        said: list[Exception] = []

        async def listen(error: Exception) -> None:
            said.append(error)

        try:
            async with asyncio.timeout(3 * CONNECT_SECONDS):
                return await nats.connect(
                    self._url,
                    name=self._purpose,
                    allow_reconnect=False,
                    max_reconnect_attempts=1,  # For each server; 0 would be for ever.
                    reconnect_time_wait=0,
                    connect_timeout=int(CONNECT_SECONDS),
                    error_cb=listen,
                )
        except errors.NoServersError as error:
            raise (said[-1] if said and isinstance(said[-1], PASSING) else error) from None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._is_closed:
            raise self._closed()
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name=self._purpose, daemon=True)
            self._thread.start()
        return self._loop

    async def _end(self) -> None:
        """What callers are waiting for is given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            with suppress(errors.Error, OSError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self._client.close()

    def _closed(self) -> Refused:
        return Refused(f"the connection to NATS for {self._purpose} has been closed")

    def _unavailable(self, error: Exception) -> Unavailable:
        said = str(error).removeprefix("nats: ").strip() or type(error).__name__
        return Unavailable(
            f"NATS at `{without_secrets(self._url)}` cannot be used for {self._purpose}: {said}",
            "see that the server runs with JetStream, that the URL is right, and that its user may use the bucket",
        )


def without_secrets(url: str) -> str:
    """Servers without users and passwords."""
    return ",".join(one.rpartition("@")[2].rpartition("//")[2] for one in url.split(","))
