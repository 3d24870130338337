"""A fleet on this machine: a PostgreSQL of its own that waits for the disk, servers and workers as processes of their own.

Law: nothing is left behind. Every process is a child of the probe and in its group, and every wait has an end.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers import NotInstalled

WORKERS = 2
SLOTS = 4
CLIENTS = 8
LEASE_S = 10.0
START_S = 60.0
POLL_S = 0.005
IDLE_S = 2.0
"""A connection that was not used for longer may have been closed by the server."""
TICKS = os.sysconf("SC_CLK_TCK")
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The URL of a PostgreSQL in this folder, as durable as it comes."""
    from penstock.app.stores import private_postgres
    from penstock.kernel.errors import Refused

    try:
        import psycopg

        with private_postgres(folder) as url:
            with psycopg.connect(url, autocommit=True) as connection:
                for name, wanted in DURABLE.items():
                    (found,) = connection.execute(f"SHOW {name}").fetchone() or ("",)
                    if found != wanted:
                        raise RuntimeError(f"PostgreSQL has `{name}` {found}: its figures would say nothing")
            yield url
    except (ImportError, Refused) as missing:
        raise NotInstalled(str(missing)) from missing


@dataclass
class Process:
    """One `penstock` process, and what it said."""

    name: str
    process: subprocess.Popen[bytes]
    said: Path

    def until_said(self, words: str) -> str:
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            for line in self.said.read_text(encoding="utf-8", errors="replace").splitlines():
                if words in line:
                    return line
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError(f"{self.name} did not say `{words}`: {self.said.read_text(errors='replace')[-300:]}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    @property
    def rss_mb(self) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) / 1024

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@dataclass
class Ended:
    """One run that has completed: when it was asked for and how long it took, by the clock of whoever asked."""

    execution_id: str
    asked_at: float
    s: float


@dataclass
class Fleet:
    folder: Path
    url: str
    lease_s: float = LEASE_S
    nats: str | None = None
    servers: dict[str, Process] = field(default_factory=dict)
    workers: dict[str, Process] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    log: Any = None
    _kept: threading.local = field(default_factory=threading.local)

    # ---- its processes

    def serve(self, name: str) -> Process:
        process = self._start(name, "serve", "--listen", "127.0.0.1:0", "--database", self.url)
        self.servers[name] = process
        self.addresses[name] = process.until_said("serving ").split()[-1]
        return process

    def work(self, name: str, slots: int = SLOTS) -> Process:
        # Over NATS it holds no connection to the database.
        place = ["--database", self.url] if self.nats is None else []
        process = self._start(name, "worker", "--slots", str(slots), *place)
        self.workers[name] = process
        process.until_said("in pool")
        return process

    def _start(self, name: str, command: str, *words: str) -> Process:
        said = self.folder / f"{name}-{time.monotonic_ns()}.said"
        line = [sys.executable, "-m", "penstock", command, *words, "--name", name, "--lease", f"{self.lease_s:g}"]
        line += ["--store", str(self.folder / name), "--grace", "1"]
        if self.nats is not None:
            line += ["--dispatch", self.nats, "--results", f"file:{self.folder / 'results'}"]
        with said.open("wb") as file:
            process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        return Process(name, process, said)

    @property
    def processes(self) -> list[Process]:
        return [*self.servers.values(), *self.workers.values()]

    @property
    def cpu_s(self) -> float:
        """Of servers and workers; PostgreSQL is not in it."""
        return sum(process.cpu_s for process in self.processes)

    # ---- its runs

    def ask(self, path: str, body: dict[str, Any] | None = None, *, server: str = "s0") -> Any:
        """On a connection that each thread keeps, as the clients of the others do."""
        data = None if body is None else json.dumps(body).encode()
        address = self.addresses[server]
        connection, used_at = self._kept.__dict__.pop(address, (None, 0.0))
        if connection is None or time.monotonic() - used_at > IDLE_S:
            connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)
        connection.request("GET" if data is None else "POST", path, data, {"content-type": "application/json"})
        response = connection.getresponse()
        found = json.load(response)
        self._kept.__dict__[address] = (connection, time.monotonic())
        if response.status >= 400:
            raise RuntimeError(f"{path} answers {response.status}: {found}")
        return found

    def submit(self, text: str, *, server: str = "s0") -> str:
        answer = self.ask("/api/executions", {"document": {"text": text, "file": "benchmark.yaml"}}, server=server)
        return str(answer["execution_id"])

    def submit_many(self, text: str, count: int, *, server: str = "s0") -> list[str]:
        body = {"document": {"text": text, "file": "benchmark.yaml"}, "runs": [{}] * count}
        answer = self.ask("/api/executions/batch", body, server=server)
        return [str(one["execution_id"]) for one in answer["runs"]]

    def run(self, text: str, most_s: float, watch: Callable[[float], None] = lambda since_s: None) -> Ended:
        """From before it is submitted until its end is in the log. `watch` is called now and then with the seconds since."""
        asked_at, began = time.time(), time.perf_counter()
        execution_id = self.submit(text)
        end = began + most_s
        while (status := self.header(execution_id).status) == "running":
            now = time.perf_counter()
            if now > end:
                raise RuntimeError(f"the run has not ended after {most_s:g} s")
            watch(now - began)
            time.sleep(POLL_S)
        took = time.perf_counter() - began
        if status != "completed":
            raise RuntimeError(f"the run is {status}")
        return Ended(execution_id, asked_at, took)

    def cancel(self, execution_id: str, *, server: str = "s0") -> None:
        self.ask(f"/api/executions/{execution_id}/cancel", {"reason": "the benchmark has seen enough"}, server=server)

    def header(self, execution_id: str) -> Any:
        found = self.log.header(execution_id)
        if found is None:
            raise RuntimeError(f"the log does not know `{execution_id}`")
        return found

    def times(self, execution_id: str, event_type: str) -> list[float]:
        return [entry.ts for entry in self.log.read(execution_id) if entry.type == event_type]

    def until(self, is_so: Callable[[], bool], most_s: float, what: str, every_s: float = POLL_S) -> None:
        end = time.perf_counter() + most_s
        while not is_so():
            if time.perf_counter() > end:
                raise RuntimeError(f"not within {most_s:g} s: {what}")
            time.sleep(every_s)


@contextmanager
def fleet(
    folder: Path,
    *,
    servers: int = 1,
    workers: int = WORKERS,
    slots: int = SLOTS,
    lease_s: float = LEASE_S,
    nats: bool = False,
) -> Iterator[Fleet]:
    """All of it awake: one server and two workers of four slots, unless told otherwise."""
    import asyncio

    from penstock.app.stores import StoreLocations, open_log

    with postgres(folder / "pg") as url, _broker(folder, wanted=nats) as broker:
        made = Fleet(folder, url, lease_s, broker)
        try:
            for number in range(servers):
                made.serve(f"s{number}")
            for number in range(workers):
                made.work(f"w{number}", slots)
            made.log = open_log(StoreLocations(folder / "reader", url), "benchmark")
            yield made
        finally:
            if made.log is not None:
                asyncio.run(made.log.close())
            # Workers first: one whose server has gone would wait for it.
            for process in [*made.workers.values(), *made.servers.values()]:
                process.stop()


@contextmanager
def _broker(folder: Path, *, wanted: bool) -> Iterator[str | None]:
    if not wanted:
        yield None
        return
    from benchmarks.fleet_broker import broker

    with broker(folder / "nats") as url:
        yield url


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
