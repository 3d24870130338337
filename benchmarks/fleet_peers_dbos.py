"""A worker of DBOS: it runs what is put into the queue, until it is told to stop."""

from __future__ import annotations

import os
import signal
from typing import Any

QUEUE = "benchmark"
JOB = "job"


def main() -> None:
    from dbos import DBOS

    url = os.environ["BENCHMARK_DATABASE"]
    config: Any = {
        "name": "benchmark",
        "system_database_url": url,
        "application_version": "benchmark",  # The same for all: a queue gives work to those of its own version only.
        "executor_id": str(os.getpid()),
        "run_admin_server": False,
        "log_level": "ERROR",
    }
    DBOS(config=config)

    @DBOS.workflow(name=JOB)
    def job(index: int) -> int:
        return index

    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    DBOS.launch()
    DBOS.register_queue(QUEUE)
    print("ready", flush=True)
    signal.sigwait(stop)
    DBOS.destroy()


if __name__ == "__main__":
    main()
