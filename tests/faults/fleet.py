"""A fleet of real processes over a PostgreSQL of its own. Whoever is dead can be started again under the name it had."""

from __future__ import annotations

import http.client
import json
import re
import signal
import textwrap
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from penstock.app.stores import StoreLocations, open_log, open_results
from penstock.ports.blobs import KeptBlobs
from penstock.ports.log import Entry, EventLog
from tests.adapters.postgres_cluster import Cluster, own_cluster
from tests.engine import document as playbook
from tests.faults.logs import check_log
from tests.faults.points import Point
from tests.faults.processes import SKEW_S, Nursery, Process
from tests.faults.wire import Wire

LEASE_S = 1.0
NOT_THERE = re.compile("cannot be reached|is stopping or starting")
ENDED = ("completed", "failed", "cancelled", "interrupted")


class AlreadyOver(Exception):
    """What is asked of a run comes too late."""


class Fleet:
    """`wired`: the names of those that reach PostgreSQL over a wire of their own, which can be cut."""

    def __init__(self, nursery: Nursery, cluster: Cluster, folder: Path, wired: tuple[str, ...] = ()) -> None:
        self.nursery = nursery
        self.cluster = cluster
        self.folder = folder
        self.wires = {name: Wire(cluster.url) for name in wired}
        self.servers: dict[str, Process] = {}
        self.workers: dict[str, Process] = {}
        self.locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        """One thing at a time happens to each of them, by its name; `postgres` is one of the names."""
        self._arguments: dict[str, list[str]] = {}
        self._connection: psycopg.Connection[Any] | None = None
        self._asking = threading.Lock()

    # ---- its processes

    def serve(self, name: str, *, skew_s: float = 0.0, point: Point | None = None) -> Process:
        self._arguments[name] = ["serve", "--listen", "127.0.0.1:0", "--name", name, *self._common(name)]
        self.servers[name] = self._start(name, skew_s, point)
        return self.servers[name]

    def work(
        self,
        name: str,
        *,
        slots: int = 4,
        pool: str = "default",
        grace_s: float = 1.0,
        skew_s: float = 0.0,
        point: Point | None = None,
    ) -> Process:
        options = ["--slots", str(slots), "--pool", pool, "--grace", f"{grace_s:g}", "--allow-address", "loopback"]
        self._arguments[name] = ["worker", "--name", name, *options, *self._common(name)]
        self.workers[name] = self._start(name, skew_s, point)
        return self.workers[name]

    def restart(self, name: str, skew_s: float = 0.0) -> Process:
        """Another process under the name of one that has ended."""
        group = self.servers if name in self.servers else self.workers
        group[name].close()
        group[name] = self._start(name, skew_s)
        return group[name]

    def _start(self, name: str, skew_s: float, point: Point | None = None) -> Process:
        return self.nursery.start(name, self.folder / name, self._arguments[name], skew_s=skew_s, point=point)

    def _common(self, name: str) -> list[str]:
        url = self.wires[name].url if name in self.wires else self.cluster.url
        return ["--database", url, "--lease", f"{LEASE_S:g}", "--store", str(self.folder / name / "home")]

    @property
    def processes(self) -> dict[str, Process]:
        return {**self.servers, **self.workers}

    def url(self, name: str) -> str:
        """Where a server listens; ConnectionRefusedError as long as it has not said so."""
        for line in self.servers[name].said().splitlines():
            if line.startswith("serving "):
                return line.split()[-1]
        raise ConnectionRefusedError(name)

    def until_all_are_there(self) -> None:
        for name, process in self.processes.items():
            if not process.is_killed:
                process.until_said("serving " if name in self.servers else "in pool")

    @contextmanager
    def guest(self, process: Process) -> Iterator[Process]:
        """One more process, for as long as this lasts."""
        try:
            process.until_said("serving " if process.name in self.servers else "in pool")
            yield process
        finally:
            for group in (self.servers, self.workers):
                if group.get(process.name) is process:
                    del group[process.name]
            process.close()

    def close(self) -> None:
        for wire in self.wires.values():
            wire.heal()
        for process in self.processes.values():
            process.close()
        for wire in self.wires.values():
            wire.close()
        self._hang_up()

    # ---- its runs

    def submit(self, name: str, document: dict[str, Any], payload: dict[str, Any], key: str) -> str:
        """Ask one server for a run. Raises OSError when it gives no answer, and then nobody knows whether there is one."""
        body = {"document": document, "payload": payload, "idempotency_key": key}
        return str(self.post(name, "/api/executions", body)["execution_id"])

    def run(self, name: str, text: str, key: str | None = None, **payload: Any) -> str:
        """A run of a playbook or job that is written here, submitted to this server."""
        whole = textwrap.dedent(text).lstrip("\n") if "kind: Job" in text else playbook(text)
        document = {"text": whole, "file": "here.yaml", "sources": {}}
        return self.submit(name, document, payload, key or uuid.uuid4().hex)

    def cancel(self, name: str, run: str) -> None:
        self.post(name, f"/api/executions/{run}/cancel", {})

    def post(self, name: str, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            self.url(name) + path, json.dumps(body).encode(), {"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return json.load(response)
        except http.client.HTTPException as error:  # It died in the middle of its answer.
            raise OSError(str(error)) from error
        except urllib.error.HTTPError as error:
            with error:
                said = error.read().decode()
            if error.code >= 500:
                raise OSError(said) from None
            if error.code == 409:
                raise AlreadyOver(said) from None
            raise AssertionError(f"{path}: {error.code} {said}") from None

    def rows(self, statement: str, *values: object) -> list[Any]:
        """What PostgreSQL has to say, once it is there to say it."""
        end = time.monotonic() + 30
        with self._asking:
            while True:
                try:
                    if self._connection is None:
                        self._connection = psycopg.connect(self.cluster.url, autocommit=True)
                    cursor = self._connection.execute(statement, values or None)
                    return cursor.fetchall() if cursor.description else []
                except psycopg.OperationalError as error:
                    self._hang_up()
                    if time.monotonic() > end:
                        raise AssertionError(f"PostgreSQL does not come back\n{self._postgres_said()}") from error
                    time.sleep(0.05)

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def sever(self) -> None:
        """Every connection of the fleet to PostgreSQL ends, at the other side."""
        self.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )

    def _postgres_said(self) -> str:
        return Path(str(self.cluster._server.log)).read_text(errors="replace")[-3000:]

    def until_it_has_partitions(self, name: str) -> None:
        """From then on, what is submitted to this server is its own. It knows of them when it renews them."""
        seen: set[object] = set()

        def is_so() -> bool:
            asked = (
                "SELECT DISTINCT s.until FROM partition_lease AS p JOIN server AS s ON s.id = p.owner "
                "WHERE s.name = %s AND s.until > clock_timestamp()"
            )
            seen.update(until for (until,) in self.rows(asked, name))
            return len(seen) > 1

        self.until(is_so, 20.0, f"{name} has partitions")

    def holders(self, run: str) -> list[str]:
        """Who holds leases of this run."""
        rows = self.rows("SELECT holder FROM dispatch_lease WHERE execution_id = %s AND state = 'held'", run)
        return [holder for (holder,) in rows]

    def statuses(self, runs: list[str]) -> dict[str, str]:
        return dict(self.rows("SELECT execution_id, status FROM execution WHERE execution_id = ANY(%s)", runs))

    def ended(self, run: str, status: str = "completed") -> list[Entry]:
        """The log of a run, once it has come to this end."""
        self.until_ended([run], 30.0)
        with self.stores() as (log, blobs):
            return check_log(log, blobs, run, status)

    def log_of(self, run: str) -> list[Entry]:
        with self.stores() as (log, _):
            return list(log.read(run))

    def until_ended(self, runs: list[str], most_s: float) -> dict[str, str]:
        found: dict[str, str] = {}

        def is_so() -> bool:
            nonlocal found
            found = self.statuses(runs)
            return all(found.get(run) in ENDED for run in runs)

        self.until(is_so, most_s, "every run has ended")
        return found

    def until(self, is_so: Callable[[], bool], most_s: float, what: str) -> None:
        end = time.monotonic() + most_s
        while not is_so():
            self.check_processes()
            if time.monotonic() > end:
                for process in self.processes.values():
                    process.send(signal.SIGUSR1)
                time.sleep(0.5)
                raise AssertionError(f"it did not come to that within {most_s:g} s: {what}")
            time.sleep(0.03)

    def check_processes(self) -> None:
        """Nobody has died but those who were killed. Whoever finds no PostgreSQL when it starts ends as well, and is started
        again, as those who look after processes do."""
        for name in self.processes:
            if not self.locks[name].acquire(blocking=False):
                continue  # Something is just happening to it.
            try:
                process = self.processes.get(name)
                if process is not None and not process.is_alive and not process.is_killed:
                    is_no_wonder = process.is_young and NOT_THERE.search(process.said())
                    assert is_no_wonder, f"{name} has ended:\n{process.said()[-4000:]}"
                    self.restart(name)
            finally:
                self.locks[name].release()

    def state(self) -> str:
        parts = [
            f"{title}:\n  " + "\n  ".join(map(str, self.rows(statement)))
            for title, statement in {
                "runs": "SELECT execution_id, name, status, epoch, owner, partition, last_seq FROM execution "
                "WHERE status NOT IN ('completed')",
                "leases": "SELECT key, state, attempt, holder, until - clock_timestamp() FROM dispatch_lease",
                "notes": "SELECT number, partition, key, attempt, worker, kind FROM dispatch_note",
                "workers": "SELECT id, clock_timestamp() - seen FROM dispatch_worker",
                "servers": "SELECT s.name, s.until, count(p.partition) FROM server AS s "
                "LEFT JOIN partition_lease AS p ON p.owner = s.id GROUP BY 1, 2",
                "last": "SELECT execution_id, seq, type, scope, worker FROM entry "
                "WHERE execution_id IN (SELECT execution_id FROM execution WHERE status = 'running') "
                "ORDER BY execution_id, seq DESC LIMIT 30",
            }.items()
        ]
        alive = {name: process.is_alive for name, process in self.processes.items()}
        said = [f"{name} said:\n{process.said()[-20_000:]}" for name, process in self.processes.items()]
        return "\n".join([*parts, f"alive: {alive}", *said])

    # ---- what it leaves behind

    @contextmanager
    def stores(self) -> Iterator[tuple[EventLog, KeptBlobs]]:
        import asyncio

        locations = StoreLocations(self.folder / "reader", self.cluster.url)
        log = open_log(locations, "reader")
        blobs = open_results(locations)
        try:
            yield log, blobs
        finally:
            blobs.close()
            asyncio.run(log.close())


@contextmanager
def own_fleet(
    nursery: Nursery, folder: Path, servers: int = 2, workers: int = 3, wired: tuple[str, ...] = ()
) -> Iterator[Fleet]:
    """All of it alive. What a crash of PostgreSQL may lose is what a crash of the machine would: so nothing waits for disks."""
    with own_cluster() as cluster:
        for setting in ("fsync", "full_page_writes"):
            cluster.execute(f"ALTER SYSTEM SET {setting} = off")
        cluster.execute("SELECT pg_reload_conf()")
        fleet = Fleet(nursery, cluster, folder, wired)
        try:
            fleet.serve("s0").until_said("serving ")  # It makes the tables; the others find them.
            for number in range(1, servers):
                fleet.serve(f"s{number}", skew_s=-SKEW_S)
            for number in range(workers):
                fleet.work(f"w{number}", skew_s=SKEW_S if number == 1 else 0.0)
            fleet.until_all_are_there()
            yield fleet
        finally:
            fleet.close()
