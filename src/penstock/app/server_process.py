"""A server process: the server itself, the API in front of it, its schedules, and without a database its own workers.

Law: it announces that it is ready when it is. On `stop`, the API takes no more requests, streams end, and executions are released
as they stand, so that another server can continue them.

Law of connections: a connection that asks for nothing is closed. A client gets a few seconds for the headers of a request,
counted from its first byte (or from the opening of the connection), however slowly they trickle in; bodies and readers are
bounded by the guard (`api.app`, `api.streams`). Connections above the limit are closed at once: those inside go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import socket
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.adapters.files.folders import make_folder, unavailable_file
from penstock.adapters.watched_log import WatchedLog
from penstock.api.app import build, guarded
from penstock.api.backend import Backend, Limits
from penstock.api.sessions import Local
from penstock.api.triggers import submit_filed
from penstock.app.alert_channels import Channels
from penstock.app.in_process_api import pruner
from penstock.app.inspection import Inspection, kept_rows
from penstock.app.server import Server, one_line, open_server
from penstock.app.state_folder import recorded
from penstock.app.stores import LEASE_S, StoreLocations, memory_dispatch, release
from penstock.app.worker import OpenWorker, open_worker
from penstock.kernel.errors import PenstockError, Refused
from penstock.ports.blobs import BlobStore
from penstock.ports.log import EventLog
from penstock.ports.meters import RowCounts, RowsSoFar
from penstock.server.alerts import Alerts
from penstock.server.catalog import CatalogDocuments
from penstock.server.schedules import Scheduler
from penstock.tools.addresses import PUBLIC_ONLY, Addresses

if TYPE_CHECKING:
    from fastapi import FastAPI

    from penstock.api.backend import Backend


PORT = 8470
LISTEN = f"127.0.0.1:{PORT}"
GRACE_S = 10.0
STOP_S = 10
BEAT_S = 0.5
"""Of the worker in this process: its heartbeats cost nothing, and say how far its components are."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    headers_s: float = 15.0
    """The time limit for the headers of a request."""
    connections: int = 2000


@dataclass(frozen=True, slots=True)
class ServeSettings:
    locations: StoreLocations
    listen: str = LISTEN
    lease_s: float = LEASE_S
    slots: int = 4
    """Of the worker in this process, when there is no database."""
    name: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    no_auth: bool = False
    max_body: int | None = None
    grace_s: float = GRACE_S
    addresses: Addresses = PUBLIC_ONLY
    """Which ones alerts, and tasks of the worker in this process, may reach."""
    hosts: frozenset[str] = frozenset()
    """Names by which the server may be asked without a token, beside its own."""
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    local: Local | None = None
    """It serves the page of a folder on this machine (`penstock ui`): documents are files, and runs of other processes are
    only watched."""


@dataclass(slots=True)
class Service:
    """One server process from its start to its end."""

    settings: ServeSettings
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)
    server: Server | None = None
    backend: Backend | None = None
    app: FastAPI | None = None
    url: str = ""
    is_ready: asyncio.Event = field(default_factory=asyncio.Event)
    beside: defaultdict[str, RowCounts] = field(default_factory=lambda: defaultdict(RowCounts))
    """Run that this process runs without leases -> the rows of its components."""
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self) -> None:
        """Must be called on the event loop, as a signal handler does."""
        self._stop.set()

    async def run(self) -> None:
        """Serves until `stop`, or until something that it depends on has failed."""
        settings = self.settings
        _want_packages()
        sockets = _bound(settings.listen)
        async with AsyncExitStack() as stack:
            for one in sockets:
                stack.callback(one.close)
            dispatch_store = memory_dispatch() if settings.locations.database is None else None
            server = open_server(
                settings.locations,
                name=settings.name,
                lease_s=settings.lease_s,
                dispatch_store=dispatch_store,
                root=None if settings.local is None else settings.local.root,
            )
            stack.callback(cast(Any, server.blobs).close)
            stack.push_async_callback(server.close)
            self.server = server
            needs = Needs(settings.locations, server.log, cast(Any, server.blobs))
            self.backend = backend = self._backend(server, sockets, needs)
            stack.push_async_callback(asyncio.to_thread, needs.close)
            self._check_access(backend)
            await server.start()
            if dispatch_store is not None:
                is_local = settings.local is not None
                inspection = Inspection(settings.locations, server.log, server.blobs, settings.addresses, is_local)
                inspection.give_to(backend)
                worker = open_worker(
                    settings.locations,
                    slots=settings.slots,
                    dispatch_store=dispatch_store,
                    beat_s=BEAT_S,
                    name=server.name,
                    addresses=settings.addresses,
                    reads_files=settings.local is not None,
                )
                await stack.enter_async_context(_working(worker, settings.grace_s))
            await stack.enter_async_context(_scheduling(backend))
            await stack.enter_async_context(_alerting(backend, settings.locations.home, settings.addresses))
            self.app = app = build(backend)
            await self._serve(app, guarded(app), sockets)

    async def _serve(self, app: FastAPI, guarded: Any, sockets: list[socket.socket]) -> None:
        settings = self.settings
        http = _http_server(guarded, settings)
        scheme = "https" if settings.tls_cert is not None else "http"
        self.url = f"{scheme}://{_shown(sockets[0])}"
        token = None if settings.local is None else settings.local.secret
        with recorded(settings.locations.home, self.url, settings.locations.database, token):
            await self._serve_until_stopped(app, http, sockets)

    async def _serve_until_stopped(self, app: FastAPI, http: Any, sockets: list[socket.socket]) -> None:
        serving = asyncio.ensure_future(http.serve(sockets))
        stopping = asyncio.ensure_future(self._stop.wait())
        watching = asyncio.ensure_future(self._watch())
        waiting = {serving, stopping, watching}
        try:
            while not http.started and not serving.done():  # noqa: ASYNC110  uvicorn has no event for it
                await asyncio.sleep(0.01)
            self.is_ready.set()
            self.say(f"serving {self.url}")
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            self.say("stopping")
        finally:
            http.should_exit = True
            await app.state.tail.close()
            for task in (stopping, watching):
                task.cancel()
            results = await asyncio.gather(*waiting, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result

    async def _watch(self) -> None:
        """Fails when a loop of the dispatcher has ended: the server would go on running and do nothing."""
        assert self.server is not None
        while True:
            await asyncio.sleep(1.0)
            self.server.dispatch_loop.check()

    def _backend(self, server: Server, sockets: list[socket.socket], needs: Needs) -> Backend:
        assert isinstance(server.log, WatchedLog)
        assert isinstance(server.documents, CatalogDocuments)
        assert server.control is not None
        settings = self.settings
        limits = Limits() if settings.max_body is None else Limits(body_bytes=settings.max_body)
        return Backend(
            hosting=server.hosting,
            log=server.log,
            watched=server.log,
            blobs=cast(Any, server.blobs),
            documents=server.documents,
            dispatch=server.dispatch,
            partitions=server.partitions,
            control=server.control,
            lines=server.lines,
            clock=server.clock,
            name=server.name,
            version=release(),
            prune=pruner(server.log, server.blobs, server.lines, server.clock, server.control),
            is_loopback=all(_is_loopback(one) for one in sockets),
            no_auth=settings.no_auth,
            hosts=settings.hosts,
            is_tls=settings.tls_cert is not None,
            is_folder=settings.locations.database is None,
            local=settings.local,
            rows_beside=self._rows_beside,
            limits=limits,
            checks=needs.checks,
            rows=partial(kept_rows, server.blobs),
        )

    def _rows_beside(self, execution_id: str) -> RowsSoFar:
        counts = self.beside.get(execution_id)
        return counts.report(time.time(), lambda component: True) if counts is not None else RowsSoFar()

    def _check_access(self, backend: Backend) -> None:
        if not backend.is_loopback and backend.local is not None:
            raise Refused(
                f"others could reach this page at `{self.settings.listen}`, and it is for this machine alone",
                "listen on `127.0.0.1`; `penstock serve` is for others, too",
            )
        if not backend.is_loopback and not backend.no_auth and not backend.control.tokens():
            raise Refused(
                f"others could reach this server at `{self.settings.listen}`, and it has no token to know them by",
                "make one with `penstock token add NAME --scope admin`, listen on `127.0.0.1`, or write `--no-auth`",
            )


@contextlib.asynccontextmanager
async def _working(worker: OpenWorker, grace_s: float) -> AsyncIterator[None]:
    task = asyncio.ensure_future(worker.run())
    try:
        yield
    finally:
        with contextlib.suppress(PenstockError):
            await worker.worker.drain(grace_s)
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def _scheduling(backend: Backend) -> AsyncIterator[None]:
    """Every server checks all schedules; each slot starts one run."""

    def report(name: str, error: BaseException) -> None:
        print(f"penstock: schedule {name}: {type(error).__name__}: {one_line(error)}", file=sys.stderr, flush=True)

    assert backend.control is not None
    scheduler = Scheduler(
        backend.control, partial(submit_filed, backend), backend.clock.now, backend.log, report=report
    )
    backend.wake_scheduler = scheduler.wake
    task = asyncio.ensure_future(scheduler.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def _alerting(backend: Backend, home: Path, addresses: Addresses) -> AsyncIterator[None]:
    """Every server checks for alerts to send; each is sent once."""
    channels = Channels(home, addresses)
    backend.send_alert = channels.send
    task = asyncio.ensure_future(Alerts(backend.control, backend.log, backend.clock.now, channels.send).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _http_server(app: Any, settings: ServeSettings) -> Any:
    class Quiet(uvicorn.Server):
        """Signals are for the whole process, and are handled there."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    logging.getLogger("uvicorn.error").addFilter(_is_news)
    for file in (settings.tls_cert, settings.tls_key):
        if file is not None and not file.is_file():
            raise Refused(f"there is no file `{file}`", "`--tls-cert` and `--tls-key` name files in PEM form")
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        http=cast(Any, bounded(settings.connections)),
        timeout_graceful_shutdown=STOP_S,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    try:
        config.load()
    except OSError as error:  # ssl.SSLError is one.
        raise Refused(f"the certificate cannot be used: {error}", "is the key the one of this certificate?") from error
    return Quiet(config)


def _is_news(record: logging.LogRecord) -> bool:
    """A stream that was cut off has been reported already."""
    return "without completing response" not in record.getMessage()


def _bound(listen: str) -> list[socket.socket]:
    """Sockets for every address of the name; with port 0, all of them use the port that the first one was assigned."""
    host, port = address(listen)
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise Refused(f"`--listen {listen}`: there is no address `{host}`", "write HOST:PORT") from error
    sockets: list[socket.socket] = []
    for family, kind, protocol, _, place in dict.fromkeys(found):
        one = socket.socket(family, kind, protocol)
        sockets.append(one)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((place[0], sockets[0].getsockname()[1] if len(sockets) > 1 else port, *place[2:]))
        except OSError as error:
            for other in sockets:
                other.close()
            reason = (error.strerror or str(error)).lower()
            raise Refused(
                f"cannot listen at `{listen}`: {reason}", "is a server running there already? `--listen` names another"
            ) from error
    return sockets


def address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise Refused(f"`--listen {listen}` is not HOST:PORT", f"such as `{LISTEN}`, or `0.0.0.0:{PORT}` for all")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _is_loopback(one: socket.socket) -> bool:
    return ipaddress.ip_address(one.getsockname()[0].partition("%")[0]).is_loopback


def _shown(one: socket.socket) -> str:
    host, port = one.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _want_packages() -> None:
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise Refused(
            f"a server needs {' and '.join(f'`{name}`' for name in missing)}, which this installation does not have",
            "`pip install penstock` installs all that a server needs",
        )


# Always the same bytes, so that there is one such result, however often it is tried.
PROBE = b"penstock: can results be put here? ".ljust(4096, b".")


# ---- readiness


class Needs:
    """What a server needs in order to work, each as a check that raises: database, results, state folder."""

    def __init__(self, locations: StoreLocations, log: EventLog, blobs: BlobStore) -> None:
        self._log, self._blobs, self._home = log, blobs, locations.home
        self.checks: dict[str, Callable[[], None]] = {"the result store": self._results}
        self.close: Callable[[], None] = lambda: None
        if locations.database is None:
            self.checks["the state folder"] = self._folder
        else:
            from penstock.adapters.postgres.database import PostgresProbe  # Loads the driver.

            probe = PostgresProbe(locations.database)
            self.checks = {"the database": probe.check, **self.checks}
            self.close = probe.close

    def _results(self) -> None:
        self._blobs.put([PROBE], "text/plain")

    def _folder(self) -> None:
        self._log.headers(1)
        write_to(self._home)


def write_to(folder: Path) -> None:
    """Raises Unavailable when no file can be written there."""
    make_folder(folder)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(PROBE)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise unavailable_file(error, folder) from error


# ---- connections


def bounded(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The protocol of connections with these limits. h11 bounds the size of headers to 64 KiB by itself."""

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
