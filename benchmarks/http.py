"""Many small requests to one server: by hand with two clients, and as a loop of `http` tasks.

The server is a process of its own that looks for the end of a request and answers with the same bytes, so that what is measured
is who asks.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import engine, playbooks
from benchmarks.peers import NotInstalled

IN_FLIGHT = 20
BODY = json.dumps({"id": 7, "name": "an order", "amount": 12.5, "lines": [{"sku": f"s{n}", "n": n} for n in range(5)]})
ANSWER = (
    "HTTP/1.1 200 OK\r\nserver: benchmark\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\ncontent-type: application/json\r\n"
    f"content-length: {len(BODY)}\r\n\r\n{BODY}"
).encode()
END = b"\r\n\r\n"


class _Answering(asyncio.Protocol):
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.rest = transport, b""

    def data_received(self, data: bytes) -> None:
        *whole, self.rest = (self.rest + data).split(END)
        self.transport.write(ANSWER * len(whole))


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


@contextmanager
def _server() -> Iterator[str]:
    words = [sys.executable, "-m", "benchmarks.http"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def by_aiohttp(folder: Path, count: int) -> dict[str, float]:
    import aiohttp

    async def asked(url: str) -> dict[str, float]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def ask(number: int) -> None:
                async with session.get(f"{url}/orders/{number}") as response:
                    response.raise_for_status()
                    await response.json()

            return await _timed(ask, count)

    with _server() as url:
        return asyncio.run(asked(url))


def by_httpx(folder: Path, count: int) -> dict[str, float]:
    try:
        import httpx2
    except ImportError:
        raise NotInstalled("httpx2") from None

    async def asked(url: str) -> dict[str, float]:
        async with httpx2.AsyncClient() as client:

            async def ask(number: int) -> None:
                response = await client.get(f"{url}/orders/{number}")
                response.raise_for_status()
                response.json()

            return await _timed(ask, count)

    with _server() as url:
        return asyncio.run(asked(url))


async def _timed(ask: Callable[[int], Awaitable[None]], count: int) -> dict[str, float]:
    numbers = iter(range(count))

    async def lane() -> None:
        for number in numbers:
            await ask(number)

    await ask(0)
    began, busy = time.perf_counter(), time.process_time()
    await asyncio.gather(*(lane() for _ in range(IN_FLIGHT)))
    return {
        "ms": (time.perf_counter() - began) * 1000 / count,
        "cpu_ms": (time.process_time() - busy) * 1000 / count,
    }


def loop(folder: Path, count: int, *, computes: bool = False) -> dict[str, float]:
    # Loading the client is not measured here either.
    from penstock.tools.http import exchange  # noqa: F401

    with _server() as url:
        return engine.timed(folder, playbooks.requests(url, count, IN_FLIGHT, computes=computes), count)


def loop_with_python(folder: Path, count: int) -> dict[str, float]:
    return loop(folder, count, computes=True)


PROBES = {
    "http-aiohttp": by_aiohttp,
    "http-httpx": by_httpx,
    "http-loop": loop,
    "http-python": loop_with_python,
}


if __name__ == "__main__":
    asyncio.run(_serve())
