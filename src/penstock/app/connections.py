"""Connections of a server: how many there may be, and how long one may take to ask for something.

Law: whoever holds a connection without asking for anything loses it. A client gets a few seconds for the headers of a request,
counted from its first byte (or from the opening of the connection), however slowly they trickle in; bodies and readers are
bounded by the guard (`api.guard`, `api.streamed`). What comes above the limit of connections is closed at once: those inside go
on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    headers_s: float = 15.0
    """So long the headers of a request may take."""
    connections: int = 2000


def bounded(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The protocol of connections with these limits. h11 bounds the size of headers to 64 KiB by itself."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class BoundedConnection(H11Protocol):
        _expiry: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.abort()
            else:
                self._expect_headers()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is None or self.cycle.response_complete:
                self._expect_headers()
            else:
                self._stop_expecting()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_expecting()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            self._stop_expecting()
            super().on_response_complete()

        def _expect_headers(self) -> None:
            if self._expiry is None:
                self._expiry = self.loop.call_later(limits.headers_s, self._expire)

        def _stop_expecting(self) -> None:
            if self._expiry is not None:
                self._expiry.cancel()
                self._expiry = None

        def _expire(self) -> None:
            self._expiry = None
            if not self.transport.is_closing():
                self.transport.write(_TIMEOUT)
                self.transport.close()

    return BoundedConnection


_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
