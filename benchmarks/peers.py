"""Others, doing the same with SQLite on the same disk, each in the way its own documentation recommends.

DBOS: a workflow of steps, and workflows started side by side. Huey: a task that enqueues the next one, and a queue with workers.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

HUEY_WORKERS = 4


class NotInstalled(Exception):
    """The peer is not there. The benchmark says so and goes on."""


def dbos_chain(folder: Path, count: int) -> dict[str, float]:
    dbos = _dbos(folder)

    @dbos.step()
    def noop() -> None: ...

    @dbos.workflow()
    def chain(length: int) -> None:
        for _ in range(length):
            noop()

    dbos.launch()
    began = time.perf_counter()
    chain(count)
    took = time.perf_counter() - began
    dbos.destroy()
    return {"ms": took * 1000 / count}


def dbos_fan(folder: Path, count: int) -> dict[str, float]:
    dbos = _dbos(folder)

    @dbos.workflow()
    def item(index: int) -> int:
        return index

    dbos.launch()
    began = time.perf_counter()
    for handle in [dbos.start_workflow(item, index) for index in range(count)]:
        handle.get_result()
    took = time.perf_counter() - began
    dbos.destroy()
    return {"ms": took * 1000 / count}


def huey_chain(folder: Path, count: int) -> dict[str, float]:
    huey = _huey(folder)
    done = threading.Event()

    @huey.task()
    def hop(left: int) -> None:
        if left:
            hop(left - 1)
        else:
            done.set()

    return _consumed(huey, 1, lambda: hop(count - 1), done, count)


def huey_fan(folder: Path, count: int) -> dict[str, float]:
    huey = _huey(folder)
    done, lock, ended = threading.Event(), threading.Lock(), []

    @huey.task()
    def item(index: int) -> int:
        with lock:
            ended.append(index)
            if len(ended) == count:
                done.set()
        return index

    def start() -> None:
        for index in range(count):
            item(index)

    return _consumed(huey, HUEY_WORKERS, start, done, count)


def _consumed(huey: Any, workers: int, start: Any, done: threading.Event, count: int) -> dict[str, float]:
    consumer = huey.create_consumer(workers=workers, periodic=False, initial_delay=0.01)
    logging.getLogger("huey").setLevel(logging.ERROR)
    consumer.start()
    began = time.perf_counter()
    start()
    done.wait()
    took = time.perf_counter() - began
    consumer.stop()
    return {"ms": took * 1000 / count}


def _dbos(folder: Path) -> Any:
    try:
        from dbos import DBOS
    except ImportError:
        raise NotInstalled("dbos") from None
    url = f"sqlite:///{folder / 'dbos.db'}"
    DBOS(config={"name": "benchmark", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"})
    return DBOS


def _huey(folder: Path) -> Any:
    try:
        from huey import SqliteHuey
    except ImportError:
        raise NotInstalled("huey") from None
    return SqliteHuey("benchmark", filename=str(folder / "huey.db"))
