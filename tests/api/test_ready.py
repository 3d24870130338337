"""`GET /ready`: yes when a server can do its work; else no, soon, and with the reason."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest

from penstock.adapters.postgres.database import SHARED, PostgresProbe
from penstock.kernel.errors import Unavailable
from tests import warm
from tests.api.service import PATIENCE_S, Api, serving
from tests.faults.wire import Wire
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

# Twice what the server promises, for a machine that has much to do.
SOON_S = 4.0


def asked(api: Api) -> tuple[int, str]:
    answer = api.http.get("/ready", timeout=SOON_S)
    body = answer.json()
    return answer.status_code, body["status"] if answer.is_success else body["error"]["message"]


def until(api: Api, status: int, words: str = "") -> None:
    """What was found out a moment ago may still be told."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := asked(api))[0] != status or words not in found[1]:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


@pytest.fixture
def wire(postgres_url: str) -> Iterator[Wire]:
    between = Wire(postgres_url)
    try:
        yield between
    finally:
        between.heal()
        between.close()


def test_a_server_without_its_database_says_so_soon_and_is_ready_when_it_is_back(tmp_path: Path, wire: Wire) -> None:
    with serving(tmp_path, wire.url, lease_s=3.0) as running:
        api = Api(running.url)
        assert asked(api) == (200, "ready")
        wire.cut()
        until(api, 503, "cannot be reached")
        wire.heal()
        until(api, 200)
        wire.stall()
        until(api, 503, "the database did not answer within 1.5 s")
        wire.heal()
        until(api, 200)
        api.close()


def test_a_server_on_a_full_disk_is_not_ready(tmp_path: Path) -> None:
    words = ("serve", "--listen", "127.0.0.1:0", "--store", str(tmp_path))
    with warm.starting(*words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        api = Api(process.stderr.readline().split()[1])
        assert asked(api) == (200, "ready")
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1024, most))
        until(api, 503, "the disk is full")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
        until(api, 200)
        api.close()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


def test_a_server_whose_results_have_no_place_is_not_ready(tmp_path: Path) -> None:
    with serving(tmp_path / "home", results=f"file:{tmp_path / 'results'}") as running:
        api = Api(running.url)
        assert asked(api) == (200, "ready")
        (tmp_path / "results").rename(tmp_path / "elsewhere")
        (tmp_path / "results").write_text("in the way")
        until(api, 503, str(tmp_path / "results"))
        api.close()


def test_a_database_that_is_read_only_cannot_be_worked_with(postgres_url: str) -> None:
    url = postgres_url.replace("options=", "options=-cdefault_transaction_read_only%3Don%20")
    probe = PostgresProbe(url)
    with pytest.raises(Unavailable, match="is read-only"):
        probe.check()
    probe.close()


def test_whether_there_is_room_is_found_out_by_writing_a_file(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(SHARED["spill_soon"])
        plan = connection.execute("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) " + SHARED["spill"]).fetchall()
    pages = max(int(found[1]) for (line,) in plan if (found := re.search(r"temp read=\d+ written=(\d+)", line)))
    assert pages * 8192 > 200_000


def test_a_database_that_allows_no_such_file_is_not_taken_for_a_full_one(postgres_url: str) -> None:
    probe = PostgresProbe(postgres_url.replace("options=", "options=-ctemp_file_limit%3D64%20"))
    probe.check()
    probe.close()


def test_the_connection_of_the_probe_may_break(postgres_url: str) -> None:
    probe = PostgresProbe(postgres_url)
    probe.check()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'penstock ready'"
        ).fetchall()
    assert ended
    probe.check()
    probe.close()


def test_health_is_told_without_looking_at_anything(tmp_path: Path, wire: Wire) -> None:
    with serving(tmp_path, wire.url, lease_s=3.0) as running:
        wire.cut()
        assert httpx2.get(f"{running.url}/health", timeout=SOON_S).json()["status"] == "ok"
        wire.heal()
