"""Where processes are born: everything is imported once, and each process is a fork of that, ready in a moment.

`python -m tests.faults.nursery` reads orders from standard input, a line of JSON each, and answers with the id of the process.
When its input ends it kills all it has started: no process outlives the tests.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import json
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.faults.points import Point, arm
from tests.faults.processes import BACK, FORWARD, SKEW_S

BEFOREHAND = (
    "penstock.adapters.blob_stores",
    "penstock.adapters.postgres.blobs",
    "penstock.adapters.postgres.control",
    "penstock.adapters.postgres.intake",
    "penstock.adapters.postgres.lines",
    "penstock.adapters.postgres.log",
    "penstock.adapters.postgres.executions",
    "penstock.api.app",
    "penstock.cli.commands.processes",
    "penstock.cli.commands.processes",
    "penstock.cli.main",
    "penstock.components.flow.iterate",
    "penstock.components.flow.context_load",
    "penstock.components.flow.wait",
    "penstock.components.io.fixed_rows",
    "penstock.components.io.scans",
    "penstock.components.registry",
    "penstock.components.transform.derive",
    "penstock.components.transform.aggregate",
    "penstock.components.transform.sql",
    "penstock.data.duckdb_engine",
    "penstock.data.duckdb_engine",
    "penstock.data.fusion",
    "penstock.data.sql_rules",
    "penstock.dialects.job.compile",
    "penstock.server.fleet_jobs",
    "penstock.app.server_process",
    "penstock.tools.flow",
    "penstock.tools.sql.postgres",
    "penstock.worker.holder",
    "penstock.worker.subjob_runner",
    "sqlglot.dialects.duckdb",
    "sqlglot.optimizer.scope",
    "uvicorn",
    "uvicorn.protocols.http.h11_impl",
)


class Clock:
    """What a process believes the time to be; its monotonic clock goes on as ever."""

    def __init__(self) -> None:
        self.skew_s = 0.0
        real, real_ns = time.time, time.time_ns
        time.time = lambda: real() + self.skew_s
        time.time_ns = lambda: real_ns() + round(self.skew_s * 1e9)

    def moves(self, seconds: float) -> None:
        self.skew_s += seconds


clock = Clock()


def main() -> None:
    from importlib import import_module

    for name in BEFOREHAND:
        import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "a fork of several threads is no whole process"
    gc.collect()
    gc.freeze()  # So that the processes share these pages.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Set here, they are there from a process's first moment on.
    signal.signal(signal.SIGUSR1, lambda *_: _show_tasks())
    signal.signal(FORWARD, lambda *_: clock.moves(SKEW_S))
    signal.signal(BACK, lambda *_: clock.moves(-SKEW_S))
    born: list[int] = []
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        order = json.loads(line)
        _bury()  # Not earlier: whoever ordered one that died at once has taken hold of it by now.
        pid = os.fork()
        if pid == 0:
            _live(order)
        born.append(pid)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    for pid in born:
        _end(pid)


def _bury() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end(pid: int) -> None:
    try:
        # Ids are given anew; only what is still a child of this process is one of ours.
        is_ours = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid())
        if is_ours:
            os.kill(pid, signal.SIGKILL)
    except OSError:
        return


def _live(order: dict[str, Any]) -> None:
    """Be the process that was ordered, to its end."""
    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        said = os.open(order["said"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, source in ((0, nothing), (1, said), (2, said)):
            os.dup2(source, number)
        os.chdir(order["folder"])
        clock.moves(order["skew_s"])
        if order["point"]:
            arm(Point(**order["point"]))
        _tell_of_bugs()
        from penstock.cli.main import main as penstock

        code = penstock(order["arguments"])
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os.write(2, f"[exit {code}]\n".encode())
        os._exit(code)


def _tell_of_bugs() -> None:
    """A server says in one line what stopped a run; whoever looks for a bug wants all of it."""
    from penstock.app.server import Server
    from penstock.kernel.errors import PenstockError

    usual = Server._report

    def report(self: Server, execution_id: str, error: BaseException) -> None:
        usual(self, execution_id, error)
        if not isinstance(error, PenstockError):
            traceback.print_exception(error)

    Server._report = report  # type: ignore[method-assign]


def _show_tasks() -> None:
    """What everything on the event loop is waiting for, for people who look for the reason."""
    for task in asyncio.all_tasks():
        task.print_stack(limit=4)
    faulthandler.dump_traceback(all_threads=True)


if __name__ == "__main__":
    main()
