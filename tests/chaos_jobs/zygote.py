"""The zygote of the chaos tests with everything imported that a job needs, DuckDB included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

from tests.chaos.zygote import ROOT, Ended, Zygote, _serve


class JobZygote(Zygote):
    def __enter__(self) -> JobZygote:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos_jobs.zygote"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._alive: set[int] = set()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for pid in self._alive:  # Of a test that failed: they would work on for days.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        super().__exit__(kind, error, at)

    def spawn(self, function: Callable[..., Any], **arguments: Any) -> int:
        pid = super().spawn(function, **arguments)
        self._alive.add(pid)
        return pid

    def wait(self, pid: int) -> Ended:
        ended = super().wait(pid)
        self._alive.discard(pid)
        return ended


if __name__ == "__main__":
    _serve(
        "penstock.app.embedded",
        "penstock.dialects.job.compile",
        "penstock.worker.subjob_runner",
        "penstock.data.duckdb_engine",
        "penstock.components.code.python",
        "penstock.components.code.block",
        "penstock.components.files.listing",
        "penstock.components.flow.context_load",
        "penstock.components.flow.iterate",
        "penstock.components.io.csv",
        "penstock.components.io.generate_rows",
        "penstock.components.io.sql.database",
        "penstock.components.registry",
        "penstock.components.transform.aggregate",
        "penstock.components.transform.filter",
        "penstock.components.transform.sort",
        "penstock.components.transform.union",
        "penstock.tools.sql.duckdb",
        "penstock.tools.sql.postgres",
        "sqlglot",
        "tests.chaos_jobs.trials",
    )
