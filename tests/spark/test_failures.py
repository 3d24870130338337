"""What becomes of a job when a part of Spark, or the way to it, is lost in the middle of a query."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

import penstock
from penstock.data.spark.server import LocalSpark
from tests.packages import java

ROWS = 1000
HEAVY = (
    "SELECT id, n FROM input, (SELECT range AS n FROM range(0, 6000)) AS t WHERE sha256(concat(id, '-', n)) < '0003'"
)
"""Takes Spark some seconds in its last stage, and DuckDB one."""
JOB = """
job_config: {{ engine: {{ kind: spark, remote: "{spark}", conf: {{ spark.sql.shuffle.partitions: 2 }} }} }}
components:
  - {{ name: early, type: read_parquet, params: {{ path: orders.parquet }} }}
  - {{ name: kept, type: write_csv, params: {{ path: kept.csv }} }}
  - {{ name: orders, type: read_parquet, params: {{ path: orders.parquet }} }}
  - {{ name: paid, type: filter, params: {{ where: amount > 10 }} }}
  - {{ name: each, type: aggregate, params: {{ by: [id], measures: {{ total: sum(amount) }} }} }}
  - {{ name: heavy, type: sql, params: {{ query: "{heavy}" }} }}
  - {{ name: out, type: write_parquet, params: {{ path: out.parquet }} }}
connections:
  data: |
    early.main -> kept.input
    orders.main -> paid.input
    paid.main -> each.input
    each.main -> heavy.input
    heavy.main -> out.input
  control: kept (subjob_ok) orders
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    duckdb.sql(
        f"COPY (SELECT i AS id, CAST(i AS DECIMAL(10,2)) AS amount FROM range({ROWS}) t(i)) "
        f"TO '{tmp_path}/orders.parquet'"
    )
    return tmp_path


def expected() -> list[tuple[Any, ...]]:
    return sorted(duckdb.sql(f"WITH input AS (SELECT range AS id FROM range(11, {ROWS})) {HEAVY}").fetchall())


def written(folder: Path) -> list[tuple[Any, ...]]:
    return sorted(duckdb.sql(f"FROM read_parquet('{folder}/out.parquet/*.parquet')").fetchall())


def rows_out(run: Any) -> dict[str, dict[str, int]]:
    ends = [event for event in run.events() if event["event_type"] == "component.ok"]
    return {end["scope"]: {port: one["rows"] for port, one in end["payload"]["outputs"].items()} for end in ends}


@contextmanager
def in_the_middle(folder: Path, act: Callable[[], None]) -> Iterator[None]:
    """While the block runs: what is to happen once the first task of the last stage has begun to write."""
    over = threading.Event()
    happened: list[bool] = []

    def wait() -> None:
        while not over.is_set():
            if any(folder.glob(".out.parquet.*.part/_temporary/0/_temporary/*")):
                happened.append(True)
                act()
                return
            time.sleep(0.01)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert happened


def run(folder: Path, remote: str) -> Any:
    path = folder / "job.yaml"
    path.write_text(JOB.format(spark=remote, heavy=HEAVY), encoding="utf-8")
    return penstock.run(path, home=folder / ".penstock")


def check(run: Any, folder: Path) -> None:
    assert run.status == "completed", run.error
    found = expected()
    assert written(folder) == found
    counts = rows_out(run)
    one_of_each = {"orders": ROWS, "paid": ROWS - 11, "each": ROWS - 11, "heavy": len(found)}
    assert {name: counts[name]["main"] for name in one_of_each} == one_of_each
    assert not list(folder.glob(".out.parquet.*"))


def test_a_server_killed_in_the_middle_of_a_query_fails_the_job_and_a_resume_goes_on(folder: Path) -> None:
    java()
    server = LocalSpark("local[1]", {"spark.driver.memory": "512m"})
    try:
        with in_the_middle(folder, lambda: os.kill(server.pid, signal.SIGKILL)):
            lost = run(folder, server.remote)
    finally:
        server.stop()
    assert lost.status == "failed"
    assert lost.error["kind"] == "connection"
    assert lost.error["retryable"] is True
    assert not list(folder.glob("*out.parquet*"))
    first = (folder / "kept.csv").stat()
    again = LocalSpark("local[1]", {"spark.driver.memory": "512m"}, port=server.port)
    try:
        done = penstock.resume(lost)
    finally:
        again.stop()
    check(done, folder)
    kept = (folder / "kept.csv").stat()
    assert (kept.st_ino, kept.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)


class Wire:
    """A way to a server that can be cut: whatever goes over it is dropped, and for a while nobody answers."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._ends: list[socket.socket] = []
        self._is_cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def remote(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._is_cut:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()

    def cut(self, seconds: float) -> None:
        self._is_cut = True
        ends, self._ends = self._ends, []
        self.cuts += bool(ends)
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        time.sleep(seconds)
        self._is_cut = False

    def close(self) -> None:
        self._listener.close()
        self.cut(0)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def test_a_connection_that_is_cut_and_comes_back_is_not_noticed(folder: Path, spark: str) -> None:
    wire = Wire(int(spark.rpartition(":")[2]))

    def cut_twice() -> None:
        wire.cut(0.3)
        time.sleep(0.7)
        wire.cut(0.3)

    try:
        with in_the_middle(folder, cut_twice):
            done = run(folder, wire.remote)
    finally:
        wire.close()
    check(done, folder)
    assert wire.cuts
    assert [event["event_type"] for event in done.events() if "error" in event["event_type"]] == []


def executors(of: int) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            number = int(process.name)
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == of and "CoarseGrainedExecutorBackend" in (process / "cmdline").read_text():
                found.append(number)
    return found


def test_an_executor_that_is_lost_costs_no_row_and_counts_none_twice(folder: Path) -> None:
    java()
    memory = {"spark.driver.memory": "512m", "spark.executor.memory": "512m"}
    server = LocalSpark("local-cluster[1,1,1024]", memory)
    killed: list[int] = []

    def kill() -> None:
        killed.extend(executors(server.pid))
        for number in killed:
            os.kill(number, signal.SIGKILL)

    try:
        with in_the_middle(folder, kill):
            done = run(folder, server.remote)
    finally:
        server.stop()
    check(done, folder)
    assert killed
