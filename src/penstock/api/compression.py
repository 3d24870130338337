"""Large answers in JSON are compressed, for callers who take that.

Law: only an answer whose length is known beforehand is touched. A stream has none, so nothing of it is ever held back.

Compression tells whoever sees the length of an answer how much it repeats itself; with text of their own in it, asked for again
and again by somebody's browser, they could guess a secret beside that text (BREACH). Pages of other sites get no answer with a
cookie (`routing.admit`), and a secret is only in the answer that sets the cookie of a session, which is left as it is, and in
that to the POST of a new token, which is too small.
"""

from __future__ import annotations

import gzip
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.api.backend import apart

SMALL: Final = 1000
"""In bytes. What is smaller fits into one packet anyway."""
_LONG: Final = 1 << 16
"""What is larger is compressed in a thread: the event loop never waits."""
_LEVEL: Final = 4


class Compressed:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not takes_gzip(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        held: Message | None = None

        async def sending(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and _is_worth_it(Headers(raw=message["headers"])):
                held = message
                return
            if held is not None:
                start, held = held, None
                body = message.get("body", b"")
                if body and not message.get("more_body", False):
                    message = {**message, "body": await _compressed(body)}
                    headers = MutableHeaders(scope=start)
                    headers["content-encoding"] = "gzip"
                    headers["content-length"] = str(len(message["body"]))
                    headers.add_vary_header("accept-encoding")
                await send(start)
            await send(message)

        await self._app(scope, receive, sending)


def _is_worth_it(headers: Headers) -> bool:
    return (
        headers.get("content-type", "").startswith("application/json")
        and int(headers.get("content-length", "0")) >= SMALL
        and "content-encoding" not in headers
        and "set-cookie" not in headers
    )


async def _compressed(body: bytes) -> bytes:
    def pack() -> bytes:
        return gzip.compress(body, _LEVEL, mtime=0)

    return pack() if len(body) < _LONG else await apart(pack)


def takes_gzip(asked: Headers) -> bool:
    for part in asked.get("accept-encoding", "").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
