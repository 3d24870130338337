"""A run that kills server after server, with real processes: it is set aside, listed and cancelled without any server."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from penstock.server.take_overs import MOST_IDLE
from tests.adapters.postgres_cluster import own_cluster
from tests.engine import document as playbook
from tests.faults.fleet import Fleet
from tests.faults.points import Point
from tests.faults.processes import Nursery

WAITS = """
- step: start
  tool: [{name: a, kind: noop}]
"""
TAKES_UP = Point("penstock.server.server_runs:ServerRun._take_up", "kill")
"""What kills its server as soon as it is taken up."""


def penstock(nursery: Nursery, folder: Path, *arguments: str) -> Any:
    done = nursery.start("command", folder, [*arguments, "--json"])
    done.wait()
    said, exit, code = done.said().rpartition("[exit ")
    assert (exit, code) == ("[exit ", "0]\n"), done.said()
    return json.loads(said)


def test_a_run_that_kills_server_after_server_is_set_aside_and_cancelled_in_the_database(
    nursery: Nursery, tmp_path: Path
) -> None:
    with own_cluster() as cluster:
        fleet = Fleet(nursery, cluster, tmp_path)
        try:
            first = fleet.serve("first")
            first.until_said("serving ")
            fleet.until_it_has_partitions("first")
            # There is no worker: it has begun, and waits.
            run = fleet.submit("first", {"file": "waits.yaml", "text": playbook(WAITS)}, {}, uuid.uuid4().hex)
            fleet.until(lambda: _header(fleet, run)[1] >= 3, 30.0, "it has begun")
            _kill(fleet, "first")
            for number in range(MOST_IDLE):
                server = fleet.serve(f"victim{number}", point=TAKES_UP)
                server.is_killed = True
                server.wait()
                del fleet.servers[f"victim{number}"]
            database = ("--database", cluster.url)
            survivor = fleet.serve("survivor")
            survivor.until_said("did not outlive it")
            fleet.until(lambda: _header(fleet, run)[0] == "interrupted", 30.0, "it is set aside")
            _kill(fleet, "survivor")
            assert penstock(nursery, tmp_path, "runs", *database)["runs"][0]["status"] == "interrupted"
            assert penstock(nursery, tmp_path, "cancel", run, *database)["status"] == "cancelled"
            assert _header(fleet, run)[0] == "cancelled"
        finally:
            fleet.close()


def _kill(fleet: Fleet, name: str) -> None:
    server = fleet.servers.pop(name)
    server.kill()
    server.close()


def _header(fleet: Fleet, run: str) -> tuple[str, int]:
    ((status, last_seq),) = fleet.rows("SELECT status, last_seq FROM execution WHERE execution_id = %s", run)
    return str(status), int(last_seq)
