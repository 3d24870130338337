"""One measurement in a process of its own: `python -m benchmarks.probe NAME FOLDER [COUNT]` prints one JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import (
    commands,
    databases,
    engine,
    fleet,
    fleet_floors,
    fleet_peers,
    floors,
    http,
    jobs,
    moments,
    mysql,
    page,
    peers,
    spark,
)

PROBES: dict[str, Callable[..., dict[str, float]]] = {
    "floor-fsync": floors.chain_with_fsync,
    "floor-no-fsync": floors.chain_without_fsync,
    "floor-grouped": floors.grouped,
    "chain": engine.chain,
    "strict": engine.strict_chain,
    "hops": engine.hops,
    "fan": engine.fan,
    "compiling": engine.compiling,
    "interrupted": engine.interrupted,
    "resume": engine.resume,
    "moments": moments.moments,
    "help": commands.help_text,
    "one-task": commands.one_task,
    "python": commands.python_alone,
    "one-huey-task": commands.one_huey_task,
    "one-dbos-task": commands.one_dbos_task,
    "dbos-chain": peers.dbos_chain,
    "dbos-fan": peers.dbos_fan,
    "huey-chain": peers.huey_chain,
    "huey-fan": peers.huey_fan,
    "job-etl": jobs.etl,
    "job-unfused": jobs.unfused,
    "duckdb-by-hand": jobs.by_hand,
    "polars": jobs.polars,
    "pandas": jobs.pandas,
    "petl": jobs.petl,
    "job-large": jobs.large,
    "job-python": jobs.per_row,
    "job-chain": jobs.chain,
    "job-iterator": jobs.iterator,
    **http.PROBES,
    **databases.PROBES,
    **mysql.PROBES,
    **fleet_floors.PROBES,
    **fleet.PROBES,
    **fleet_peers.PROBES,
    **page.PROBES,
    **spark.PROBES,
}


def main() -> None:
    name, folder, *counts = sys.argv[1:]
    said: dict[str, Any]
    try:
        said = dict(PROBES[name](Path(folder), *map(int, counts)))
    except peers.NotInstalled as missing:
        said = {"missing": str(missing)}
    sys.stdout.write(f"\n{json.dumps(said)}\n")


if __name__ == "__main__":
    main()
