"""Answers that have no end yet. A reader that takes nothing for too long is cut off, not waited for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.api.errors import ApiError
from penstock.kernel.errors import PenstockError

CHUNK = 1 << 16
"""More is not handed over at once: what a reader does not take waits here, and not in memory of the connection."""


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
            # An answer that has no end is closed by the server that sees it abandoned: the reader knows that it is not whole.
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
