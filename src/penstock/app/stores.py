"""Where a fleet keeps what it keeps, and opening it: the only place that picks the adapters of a fleet.

With a database, PostgreSQL holds the log, the leases, the shares of the servers and the catalog, and any number of processes on
any number of machines work together. Without one, a single process has it all: log and catalog in SQLite, the rest in memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.adapters.project_folders import base_folder
from penstock.adapters.watched_log import WatchedLog
from penstock.app.clock import FleetClock
from penstock.app.server import Server, WorkBench, host_name, worker
from penstock.kernel.errors import Refused
from penstock.ports.blobs import KeptBlobs
from penstock.ports.control import ControlStore
from penstock.ports.dispatch import Dispatch, Intake
from penstock.ports.lines import LineStore
from penstock.ports.log import EventLog
from penstock.ports.partitions import Partitions
from penstock.tools.addresses import PUBLIC_ONLY, Addresses
from penstock.tools.base import Settings

if TYPE_CHECKING:
    from penstock.adapters.memory_dispatch_hall import MemoryHall
    from penstock.worker.fleet import FleetWorker

DATABASE = "PENSTOCK_DATABASE"
RESULTS = "PENSTOCK_RESULTS"
DISPATCH = "PENSTOCK_DISPATCH"
LEASE_S = 10.0
POSTGRES = ("postgres://", "postgresql://")
NATS = ("nats://", "tls://", "ws://", "wss://")


@dataclass(frozen=True, slots=True)
class Places:
    """`database`: a PostgreSQL URL, or None for one process alone. `results`: where large results go. `dispatch`: a NATS URL,
    over which workers and servers speak, so that workers need no database; its path keeps fleets on one NATS apart."""

    home: Path
    database: str | None = None
    results: str | None = None
    dispatch: str | None = None
    base: Path | None = None
    """Of workers: where relative paths of documents of the catalog lead that are no files of a project."""

    def __post_init__(self) -> None:
        if self.database is not None and not self.database.startswith(POSTGRES):
            shown = self.database.partition("@")[2] or self.database.partition(":")[0]
            raise Refused(
                f"the database `{shown}` is not a PostgreSQL URL",
                f"write `--database postgresql://USER@HOST/NAME`, or set `{DATABASE}`",
            )
        if self.dispatch is not None and not self.dispatch.startswith(NATS):
            raise Refused(
                f"`--dispatch {self.dispatch.partition(':')[0]}:` is not a NATS URL",
                f"write `--dispatch nats://HOST:4222/PREFIX`, or set `{DISPATCH}`; without it, the database does it",
            )

    @staticmethod
    def said(
        home: Path,
        database: str | None,
        results: str | None = None,
        dispatch: str | None = None,
        environ: Mapping[str, str] | None = None,
        base: str | None = None,
    ) -> Places:
        """What the command line says, else what the environment does."""
        values = os.environ if environ is None else environ

        def given(said: str | None, variable: str) -> str | None:
            return said or values.get(variable) or None

        return Places(
            home,
            given(database, DATABASE),
            given(results, RESULTS),
            given(dispatch, DISPATCH),
            base_folder(values, base),
        )


def open_log(places: Places, name: str, lease_s: float = LEASE_S) -> EventLog:
    if places.database is None:
        from penstock.adapters.sqlite_log import SqliteLog

        return SqliteLog(places.home)
    _want_postgres()
    from penstock.adapters.postgres_log import PostgresLog

    return PostgresLog(places.database, name=name, lease_s=lease_s)


def open_results(places: Places) -> KeptBlobs:
    from penstock.adapters.blob_stores import open_blobs

    return open_blobs(places.results or places.database or f"file:{places.home}", places.home)


def open_control(places: Places) -> ControlStore:
    if places.database is None:
        from penstock.adapters.sqlite_control import SqliteControl

        return SqliteControl(places.home)
    _want_postgres()
    from penstock.adapters.postgres_control import PostgresControl

    return PostgresControl(places.database)


def open_lines(places: Places) -> LineStore:
    if places.database is None:
        from penstock.adapters.file_lines import FileLines

        return FileLines(places.home)
    _want_postgres()
    from penstock.adapters.postgres_lines import PostgresLines

    return PostgresLines(places.database)


def _partitions(places: Places, name: str, lease_s: float) -> Partitions:
    if places.database is None:
        from penstock.adapters.memory_partitions import MemoryPartitions, MemoryPartitionStore

        return MemoryPartitions(MemoryPartitionStore(time.time), name=name, lease_s=lease_s)
    from penstock.adapters.postgres_partitions import PostgresPartitions

    return PostgresPartitions(places.database, name=name, lease_s=lease_s)


def open_dispatch(places: Places, hall: MemoryHall | None) -> Dispatch:
    if places.database is None:
        from penstock.adapters.memory_dispatch import MemoryDispatch

        if places.dispatch is not None or hall is None:
            raise Refused(
                "workers elsewhere need a server with a database",
                f"give it `--database URL` or `{DATABASE}`; without one, `penstock serve` works by itself",
            )
        return MemoryDispatch(hall)
    from penstock.adapters.postgres_dispatch import PostgresDispatch

    if places.dispatch is None:
        return PostgresDispatch(places.database)
    _want("nats", "a NATS server", "penstock[nats]")
    from penstock.adapters.nats_dispatch import NatsDispatch
    from penstock.adapters.postgres_dispatch_intake import PostgresIntake

    return NatsDispatch(PostgresDispatch(places.database), PostgresIntake(places.database), *_broker(places.dispatch))


def _intake(places: Places, hall: MemoryHall | None) -> Intake:
    if places.dispatch is not None:
        _want("nats", "a NATS server", "penstock[nats]")
        from penstock.adapters.nats_dispatch_intake import NatsIntake

        if places.results is None and places.database is None:
            raise Refused(
                "a worker without a database has nowhere to put large results",
                f"name a place that servers can read with `--results` or `{RESULTS}`: `nats://…`, `s3://…`, a shared folder",
            )
        return NatsIntake(*_broker(places.dispatch))
    if places.database is None:
        from penstock.adapters.memory_dispatch import MemoryIntake

        if hall is None:
            raise Refused(
                "a worker needs a database, in which it meets its server",
                f"give it `--database URL` or `{DATABASE}`; without one, `penstock serve` works by itself",
            )
        return MemoryIntake(hall)
    _want_postgres()
    from penstock.adapters.postgres_dispatch_intake import PostgresIntake

    return PostgresIntake(places.database)


def _broker(url: str) -> tuple[str, str]:
    """The servers of NATS, and what the names of this fleet there begin with."""
    from penstock.adapters.nats_dispatch_wire import PREFIX

    servers, slash, prefix = url.rpartition("/")
    has_prefix = slash and not servers.endswith("/")
    return (servers, prefix or PREFIX) if has_prefix else (url, PREFIX)


def hall_of_one_process() -> MemoryHall:
    from penstock.adapters.memory_dispatch_hall import MemoryHall
    from penstock.ports.ambient import SystemClock

    return MemoryHall(SystemClock())


def open_server(
    places: Places, *, name: str | None = None, lease_s: float = LEASE_S, hall: MemoryHall | None = None
) -> Server:
    """A server that has not started yet. `hall`: where it meets the workers of its own process, when there is no database."""
    shown = name or host_name()
    log = WatchedLog(open_log(places, shown, lease_s), is_shared=places.database is None)
    dispatch = open_dispatch(places, hall)
    return Server(
        places.home,
        log,
        open_results(places),
        dispatch,
        _partitions(places, shown, lease_s),
        shown,
        FleetClock(dispatch.now),
        lease_s=lease_s,
        renew_s=lease_s / 3,
        control=open_control(places),
        said=open_lines(places),
    )


@dataclass(frozen=True, slots=True)
class Station:
    """A worker of this process and what it works with."""

    worker: FleetWorker
    bench: WorkBench
    blobs: KeptBlobs
    clock: FleetClock

    async def run(self) -> None:
        """Work until the worker is drained, or this is cancelled."""
        import asyncio

        following = asyncio.ensure_future(self.clock.follow())
        try:
            await self.clock.look()
            await self.worker.run()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await self.worker.intake.close()
            self.bench.close()
            await asyncio.to_thread(self.blobs.close)


def open_worker(
    places: Places,
    *,
    name: str | None = None,
    pool: str = "default",
    slots: int = 4,
    labels: frozenset[str] = frozenset(),
    hall: MemoryHall | None = None,
    beat_s: float = LEASE_S / 3,
    addresses: Addresses = PUBLIC_ONLY,
) -> Station:
    """`addresses`: which ones its tasks may reach."""
    intake = _intake(places, hall)
    clock = FleetClock(intake.now)
    blobs = open_results(places)
    bench = WorkBench(places.home, blobs, clock, base=places.base, settings=Settings(addresses))
    crew = worker(intake, bench, name=name, pool=pool, slots=slots, labels=labels, beat_s=beat_s)
    return Station(crew, bench, blobs, clock)


def _want_postgres() -> None:
    _want("psycopg", "a PostgreSQL database", "psycopg[binary]")


def _want(package: str, what: str, install: str) -> None:
    if find_spec(package) is None:
        raise Refused(
            f"{what} needs the package `{package}`, which is not installed",
            f"install it with `pip install '{install}'`",
        )
