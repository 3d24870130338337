"""The application that procrastinate's workers load."""

from __future__ import annotations

import os

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

URL = os.environ["BENCHMARK_DATABASE"]
# Its workers are asynchronous; whoever defers jobs here is not.
_is_worker = os.environ.get("BENCHMARK_ROLE") == "worker"
app = App(connector=PsycopgConnector(conninfo=URL) if _is_worker else SyncPsycopgConnector(conninfo=URL))


@app.task(name="job")
async def job(index: int) -> int:
    return index
