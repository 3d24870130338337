"""The link to NATS: one connection, which is watched, and made again whenever it is lost.

Law: whoever asks for the connection gets one that was alive a moment ago, or hears within its patience that there is none. What
was under way when a connection was lost is told at once, and is for its sender to repeat: nothing is sent again behind his back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from nats import errors
from nats.aio.client import Client

from penstock.kernel.errors import Refused, Unavailable

CONNECT_SECONDS = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
# How often the connection is tried, and how long it may take to answer.
TRY_SECONDS = 2.0
ANSWER_SECONDS = 3
CLOSING_SECONDS = 2.0

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
        self._was_up = False
        self._error: BaseException | None = None
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self.connections = 0
        self.dropped = 0
        """Messages that came faster than they were read."""

    def start(self) -> None:
        """Within a running loop; any number of times."""
        if self._task is None and not self._is_closed:
            self._task = asyncio.ensure_future(self._keep())

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
                raise self.unavailable(self._error)
            news = self._news
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), left)

    def unavailable(self, error: BaseException | None) -> Unavailable:
        said = str(error or "").removeprefix("nats: ").strip() or (type(error).__name__ if error else "no connection")
        return Unavailable(
            f"NATS at `{self.place}` cannot be used for {self._purpose}: {said}",
            "see that the server runs, that the URL is right, and that its user may use the subjects of the fleet",
        )

    async def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._tell()

    async def _keep(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                client, gone = await self._connected()
                try:
                    await self._greet(client)
                    self._client, self._error, self._was_up = client, None, True
                    self.connections += 1
                    self._tell()
                    self._up()
                    pause = FIRST_PAUSE
                    await self._watch(client, gone)
                finally:
                    self._client = None
                    self._lost()
                    await _hang_up(client)
                    # The client may have been hanging up by itself already.
                    await asyncio.wait({gone}, timeout=CLOSING_SECONDS)
            except NATS_ERRORS as error:
                self._error = error
            self._tell()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _connected(self) -> tuple[Client, asyncio.Future[None]]:
        """A connection that is half made is not cut off, since it would be left open."""
        connecting = asyncio.ensure_future(self._connect())
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            await asyncio.wait({connecting}, timeout=CLOSING_SECONDS)
            connecting.cancel()
            for made in await asyncio.gather(connecting, return_exceptions=True):
                if isinstance(made, tuple):
                    await _hang_up(made[0])
            raise

    async def _connect(self) -> tuple[Client, asyncio.Future[None]]:
        """It is not left to the client to connect again: what it had not sent would go out late, and nobody would know."""
        said: list[Exception] = []
        loop = asyncio.get_running_loop()
        gone: asyncio.Future[None] = loop.create_future()

        async def listen(error: Exception) -> None:
            said[:] = [error]
            self.dropped += isinstance(error, errors.SlowConsumerError)
            if not isinstance(error, NATS_ERRORS):  # A fault of ours, in what is called with a message.
                loop.call_exception_handler({"message": f"a message for {self._purpose} broke it", "exception": error})

        async def closed() -> None:
            if not gone.done():
                gone.set_result(None)

        client = Client()
        connecting = client.connect(
            self._url.split(","),
            name=f"penstock: {self._purpose}",
            allow_reconnect=False,
            max_reconnect_attempts=1,  # For each server; 0 would be for ever.
            reconnect_time_wait=0,
            connect_timeout=CONNECT_SECONDS,
            error_cb=listen,
            closed_cb=closed,
        )
        try:
            await asyncio.wait_for(connecting, 2 * CONNECT_SECONDS)
        except BaseException as error:
            await _hang_up(client)
            if isinstance(error, errors.NoServersError) and said and isinstance(said[0], NATS_ERRORS):
                raise said[0] from None
            raise
        return client, gone

    async def _watch(self, client: Client, gone: asyncio.Future[None]) -> None:
        """Until the connection is dead: one that is cut off without a word does not know it."""
        while True:
            await asyncio.wait({gone}, timeout=TRY_SECONDS)
            if gone.done():
                raise errors.ConnectionClosedError
            await client.rtt(ANSWER_SECONDS)

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


async def _hang_up(client: Client) -> None:
    with suppress(*NATS_ERRORS):
        await asyncio.wait_for(client.close(), CLOSING_SECONDS)


def without_secrets(url: str) -> str:
    """Servers without users and passwords."""
    return ",".join(one.rpartition("@")[2].rpartition("//")[2] for one in url.split(","))
