"""Others that hand out work through PostgreSQL, each in the way its own documentation recommends, with two worker processes.

A job of theirs is put beside both of what Penstock has: a run of one task, and an element of a loop with an event of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.fleet_scene import CLIENTS, SLOTS, WORKERS, postgres
from benchmarks.peers import NotInstalled

URL = "BENCHMARK_DATABASE"
LIMIT_S = 600.0
READY_S = 60.0
# procrastinate's own batch call; more in one call is no faster.
BATCH = 500


def procrastinate(folder: Path, count: int) -> dict[str, float]:
    if find_spec("procrastinate") is None:
        raise NotInstalled("procrastinate")
    with postgres(folder / "pg") as url:
        os.environ[URL] = url
        from benchmarks.fleet_peers_procrastinate import app, job

        def done() -> int:
            return _count(url, "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'")

        def put(wanted: int) -> None:
            for first in range(0, wanted, BATCH):
                batch: list[Any] = [{"index": index} for index in range(first, min(first + BATCH, wanted))]
                job.batch_defer(*batch)

        def is_ready(number: int) -> bool:
            return _count(url, "SELECT count(*) FROM procrastinate_workers") > number

        command = ["procrastinate", "--app=benchmarks.fleet_peers_procrastinate.app", "--log-level=error"]
        command += ["worker", "--concurrency", str(SLOTS)]
        with app.open():
            app.schema_manager.apply_schema()
            with _workers(folder, command, is_ready):
                return _timed(put, done, count)


def dbos(folder: Path, count: int) -> dict[str, float]:
    if find_spec("dbos") is None:
        raise NotInstalled("dbos")
    with postgres(folder / "pg") as url:
        os.environ[URL] = url
        from dbos import DBOSClient

        from benchmarks.fleet_peers_dbos import JOB, QUEUE

        def is_ready(number: int) -> bool:
            return "ready" in (folder / f"worker{number}.said").read_text(encoding="utf-8")

        with _workers(folder, ["benchmarks.fleet_peers_dbos"], is_ready):
            client = DBOSClient(system_database_url=url)

            def done() -> int:
                return _count(url, "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'")

            def put(wanted: int) -> None:
                """Each is a commit, so several put them in at once, as they do for Penstock's runs."""
                with ThreadPoolExecutor(CLIENTS) as clients:
                    list(
                        clients.map(partial(client.enqueue, {"queue_name": QUEUE, "workflow_name": JOB}), range(wanted))
                    )

            try:
                return _timed(put, done, count)
            finally:
                client.destroy()


def _timed(put: Callable[[int], None], done: Callable[[], int], count: int) -> dict[str, float]:
    """From before the first is put in until the last has been done."""
    put(10)
    _until(lambda: done() >= 10, READY_S)
    began = time.perf_counter()
    put(count)
    _until(lambda: done() >= 10 + count, LIMIT_S)
    took = time.perf_counter() - began
    return {"ms": took * 1000 / count, "per_s": count / took}


def _until(is_so: Callable[[], bool], most_s: float) -> None:
    end = time.monotonic() + most_s
    while not is_so():
        if time.monotonic() > end:
            raise RuntimeError(f"the workers were not ready, or the jobs not done, after {most_s:g} s")
        time.sleep(0.02)


def _count(url: str, statement: str) -> int:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        (found,) = connection.execute(statement).fetchone() or (0,)
    return int(found)


@contextmanager
def _workers(folder: Path, command: list[str], is_ready: Callable[[int], bool]) -> Iterator[None]:
    """One after the other: the first may have tables to make."""
    environ = {**os.environ, "BENCHMARK_ROLE": "worker"}
    processes: list[subprocess.Popen[Any]] = []
    try:
        for number in range(WORKERS):
            with (folder / f"worker{number}.said").open("wb") as said:
                line = [sys.executable, "-m", *command]
                processes.append(subprocess.Popen(line, stdout=said, stderr=said, env=environ))
            _until(partial(is_ready, number), READY_S)
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


PROBES: dict[str, Callable[..., dict[str, float]]] = {
    "procrastinate-jobs": procrastinate,
    "dbos-jobs": dbos,
}
