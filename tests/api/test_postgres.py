"""Two servers and two workers on one PostgreSQL: it does not matter which server is asked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.api.service import GATED, PATIENCE_S, QUICK, SLOW, Api, Crew, serving
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


@pytest.fixture
def pair(tmp_path: Path, postgres_url: str) -> Iterator[tuple[Api, Api]]:
    home = [tmp_path / name for name in ("a", "b", "w1", "w2")]
    with (
        serving(home[0], postgres_url, name="a", lease_s=3.0) as first,
        serving(home[1], postgres_url, name="b", lease_s=3.0) as second,
        Crew(home[2], postgres_url, name="w1", beat_s=1.0),
        Crew(home[3], postgres_url, name="w2", beat_s=1.0),
    ):
        apis = Api(first.url), Api(second.url)
        deadline = time.monotonic() + PATIENCE_S
        while [one["partitions"] for one in apis[0].get("/api/servers").json()["servers"]] != [128, 128]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield apis
        for api in apis:
            api.close()


def test_a_run_is_the_same_at_every_server(pair: tuple[Api, Api]) -> None:
    a, b = pair
    runs = [api.submit(QUICK) for api in (a, b, a, b)]
    for run in runs:
        assert b.ended(run) == "completed"
        shown = [api.get(f"/api/executions/{run}").json() for api in pair]
        assert shown[0] == shown[1]
        assert shown[0]["result"] == "hello"
        assert a.events(run) == b.events(run)
        for api in pair:  # Whichever server heard the worker, and whichever is asked.
            deadline = time.monotonic() + PATIENCE_S
            while (said := api.get(f"/api/executions/{run}/logs").text) == "" and time.monotonic() < deadline:
                time.sleep(0.05)
            assert [json.loads(line)["line"] for line in said.splitlines()] == ["greeting"]
    assert {one["name"] for one in a.get("/api/workers").json()["workers"]} == {"w1", "w2"}


def test_a_stream_at_one_server_follows_what_another_one_drives(pair: tuple[Api, Api]) -> None:
    for here, there in (pair, pair[::-1]):
        run = here.submit(QUICK)
        seen = []
        with there.http.stream("GET", "/api/stream", params={"execution": run}) as response:
            text = b""
            for piece in response.iter_bytes():
                text += piece
                if b'"status":"completed","seq"' in text:
                    break
        for block in text.split(b"\n\n"):
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
            if fields.get(b"event") == b"entry":
                seen.append(json.loads(fields[b"data"]))
        assert seen == here.events(run)


def test_a_run_is_cancelled_by_whichever_server_is_asked(pair: tuple[Api, Api]) -> None:
    a, b = pair
    for api in (a, b):
        run = a.submit(SLOW)
        assert api.post(f"/api/executions/{run}/cancel", {"reason": "enough"}).status_code == 202
        assert b.ended(run) == "cancelled"


def test_one_key_at_two_servers_at_once_makes_one_run(pair: tuple[Api, Api]) -> None:
    body = {"document": {"text": QUICK, "file": "p.yaml"}, "idempotency_key": "once"}

    def submit(number: int) -> str:
        api = Api(pair[number % 2].url)
        try:
            return str(api.post("/api/executions", body).json()["execution_id"])
        finally:
            api.close()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(submit, range(8)))) == 1


def test_the_rows_of_a_component_that_is_running_are_counted_at_every_server(
    pair: tuple[Api, Api], tmp_path: Path
) -> None:
    """Whichever server drives the run, and whichever is asked."""
    for here in pair:
        gate = tmp_path / f"gate-{pair.index(here)}"
        run = here.submit(GATED.replace("GATE", str(gate)))
        for api in pair:
            moment = api.counted(run, "slow", {"main": 2})
            (edge,) = [one for one in moment["edges"].values() if one["rows"] == 2]
            assert edge["rate"] > 0
        gate.touch()
        assert here.ended(run) == "completed"
        for api in pair:
            node = api.get(f"/api/executions/{run}/moment").json()["nodes"]["slow"]
            assert (node["rows_so_far"], node["rows_out"]) == ({}, {"main": 3})


def test_tokens_documents_and_schedules_are_everybodys(pair: tuple[Api, Api]) -> None:
    a, b = pair
    assert a.http.put("/api/documents/shared", json={"text": QUICK}).status_code == 201
    assert b.get("/api/documents/shared").json()["text"] == QUICK
    a.http.put("/api/schedules/s", json={"cron": "@yearly", "path": "shared"})
    assert [one["name"] for one in b.get("/api/schedules").json()["schedules"]] == ["s"]
    secret = a.post("/api/tokens", {"name": "t", "scope": "admin"}).json()["secret"]
    assert b.get("/api/executions").status_code == 401
    other = Api(b.url, secret)
    assert other.get("/api/executions").status_code == 200
    other.close()
