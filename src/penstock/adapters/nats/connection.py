"""The link to NATS: one connection, which is watched, and made again whenever it is lost.

Law: a caller gets a connection that was alive a moment ago, or an error within its patience. What
was under way when a connection was lost fails at once, and the sender repeats it: nothing is resent silently.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from nats import errors
from nats.aio.client import Client

from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.undoing import unless_done_async

CONNECT_SECONDS = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
# How often the connection is tried, and how long it may take to answer.
TRY_SECONDS = 2.0
ANSWER_SECONDS = 3.0
NEVER = 86_400
CLOSING_SECONDS, ENDING_SECONDS = 2.0, 0.2
AGAIN_SECONDS = 0.5

T = TypeVar("T")
NATS_ERRORS = (errors.Error, OSError, TimeoutError)


class Link:
    """`greet` is called with every new connection before anybody gets it, `up` when it can be had, `lost` after it has gone."""

    def __init__(
        self,
        url: str,
        purpose: str,
        greet: Callable[[Client], Awaitable[None]],
        up: Callable[[], None] = lambda: None,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.place = without_secrets(url)
        self._url = url
        self._purpose = purpose
        self._greet = greet
        self._up = up
        self._lost = lost
        self._client: Client | None = None
        self._gone: asyncio.Future[None] | None = None
        self._was_up = False
        self._error: BaseException | None = None
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stop: asyncio.Future[None] | None = None
        self._trial: asyncio.Task[float] | None = None
        self._is_closed = False
        self.connections = 0
        self.dropped = 0
        """Messages that came faster than they were read."""

    def start(self) -> None:
        """Within a running loop; any number of times."""
        if self._task is None and not self._is_closed:
            self._stop = asyncio.get_running_loop().create_future()
            self._task = asyncio.ensure_future(self._keep(self._stop))

    @property
    def current(self) -> Client | None:
        client = self._client
        return client if client is not None and client.is_connected else None

    def check_open(self) -> None:
        if self._is_closed:
            raise Refused(f"the connection to NATS at `{self.place}` is closed here", "open it again first")

    async def client(self, deadline: float) -> Client:
        """The connection, by the loop's time `deadline`."""
        while True:
            self.check_open()
            self.start()
            if (client := self.current) is not None:
                return client
            # A server that never answered is more likely named wrongly than about to come back.
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or (self._error is not None and not self._was_up):
                raise self.unavailable()
            news = self._news
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await news.wait()

    async def carry(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of `work`, which asks something over the connection: when that is lost, no answer will come."""
        task = asyncio.ensure_future(work)
        ends: set[asyncio.Future[Any]] = {task} if self._gone is None else {task, self._gone}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise errors.ConnectionClosedError
            return task.result()
        finally:
            await end({task})

    def unavailable(self, error: BaseException | None = None) -> Unavailable:
        error = error or self._error
        reason = str(error or "").removeprefix("nats: ").strip() or (type(error).__name__ if error else "no connection")
        return Unavailable(
            f"NATS at `{self.place}` cannot be used for {self._purpose}: {reason}",
            "see that the server runs, that the URL is right, and that its user may use the subjects of the fleet",
        )

    async def close(self) -> None:
        """The task is asked to stop and not cancelled: a connection that is half made or half ended would be left open."""
        self._is_closed = True
        if self._task is not None and self._stop is not None:
            _happened(self._stop)
            await asyncio.wait({self._task})
        self._tell()

    async def _keep(self, stop: asyncio.Future[None]) -> None:
        pause = FIRST_PAUSE
        while not self._is_closed:
            try:
                client, gone, ended = await self._connect()
                try:
                    await self._greet(client)
                    self._client, self._gone, self._error, self._was_up = client, gone, None, True
                    self.connections += 1
                    self._tell()
                    self._up()
                    pause = FIRST_PAUSE
                    await self._watch(client, gone, stop)
                finally:
                    self._client = None
                    self._lost()
                    await _hang_up(client)
                    if self._trial is not None:
                        await end({self._trial})
                    # The client may be hanging up by itself. (It does not always tell when it has done so.)
                    await asyncio.wait({ended}, timeout=ENDING_SECONDS)
            except NATS_ERRORS as error:
                self._error = error
            self._tell()
            await asyncio.wait({stop}, timeout=pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _connect(self) -> tuple[Client, asyncio.Future[None], asyncio.Future[None]]:
        """The connection, when it is lost, and when the client has ended. It is not left to the client to connect again: what it
        had not sent would go out late, unnoticed."""
        reported: list[Exception] = []
        loop = asyncio.get_running_loop()
        gone: asyncio.Future[None] = loop.create_future()
        ended: asyncio.Future[None] = loop.create_future()

        async def listen(error: Exception) -> None:
            reported[:] = [error]
            if client.is_connected and isinstance(error, (errors.UnexpectedEOF, OSError)):
                _happened(gone)
            self.dropped += isinstance(error, errors.SlowConsumerError)
            if not isinstance(error, NATS_ERRORS):  # A fault of ours, in what is called with a message.
                loop.call_exception_handler({"message": f"a message for {self._purpose} broke it", "exception": error})

        async def closed() -> None:
            _happened(gone)
            _happened(ended)

        client = Client()
        async with unless_done_async(lambda: _hang_up(client)), asyncio.timeout(2 * CONNECT_SECONDS):
            try:
                await client.connect(
                    self._url.split(","),
                    name=f"penstock: {self._purpose}",
                    allow_reconnect=False,
                    max_reconnect_attempts=1,  # For each server; 0 would be for ever.
                    reconnect_time_wait=0,
                    connect_timeout=CONNECT_SECONDS,
                    error_cb=listen,
                    closed_cb=closed,
                )
            except errors.NoServersError:
                if reported and isinstance(reported[0], NATS_ERRORS):
                    raise reported[0] from None
                raise
        return client, gone, ended

    async def _watch(self, client: Client, gone: asyncio.Future[None], stop: asyncio.Future[None]) -> None:
        """Until it is to stop, or the connection is dead: one that is cut off without a word does not know it."""
        ends: set[asyncio.Future[Any]] = {gone, stop}
        while True:
            await asyncio.wait(ends, timeout=TRY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                return
            if gone.done():
                raise errors.ConnectionClosedError
            # It is given up only with the connection: an answer that arrives after its request was given up breaks the client.
            self._trial = asyncio.ensure_future(client.rtt(NEVER))
            await asyncio.wait({self._trial, *ends}, timeout=ANSWER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if self._trial.done():
                self._trial.result()
            elif not gone.done() and not stop.done():
                raise errors.TimeoutError

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def _happened(event: asyncio.Future[None]) -> None:
    if not event.done():
        event.set_result(None)


async def send(client: Client, subject: str, data: bytes = b"", reply: str = "") -> None:
    await client.publish(subject, data, reply=reply)
    check_cancelled()


def check_cancelled() -> None:
    """Raises the cancellation of the current task, which the NATS client sometimes swallows."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def end(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel these, and more than once if need be, until they have ended."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
    for task in tasks:
        if not task.cancelled():
            task.exception()


async def _hang_up(client: Client) -> None:
    with suppress(*NATS_ERRORS):
        async with asyncio.timeout(CLOSING_SECONDS):
            await client.close()


def without_secrets(url: str) -> str:
    """Servers without users and passwords."""
    return ",".join(one.rpartition("@")[2].rpartition("//")[2] for one in url.split(","))
