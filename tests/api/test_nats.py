"""A fleet whose workers hold no database connection: they and the server speak over NATS, and results go there too."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.kernel.errors import Refused
from tests.api.service import GATED, QUICK, SLOW, Api, Crew, serving
from tests.engine import document
from tests.servers import nats_url, postgres_server, postgres_url

__all__ = ["nats_url", "postgres_server", "postgres_url"]


def test_workers_without_a_database_run_what_a_server_hands_out(
    tmp_path: Path, postgres_url: str, nats_url: str
) -> None:
    results = f"{nats_url}/results-{tmp_path.name}"
    far = {"dispatch": nats_url, "results": results}
    with (
        serving(tmp_path / "server", postgres_url, lease_s=3.0, **far) as running,
        Crew(tmp_path / "w1", None, name="w1", beat_s=1.0, **far),
    ):
        api = Api(running.url)
        run = api.done(QUICK)
        assert api.get(f"/api/executions/{run}").json()["result"] == "hello"
        large = document("- step: start\n  tool: [{name: n, kind: python, code: \"result = 'x' * 3_000_000\"}]\n")
        run = api.done(large)
        assert len(api.get(f"/api/executions/{run}").json()["result"]) == 3_000_000
        gate = tmp_path / "gate"
        counted = api.submit(GATED.replace("GATE", str(gate)))
        api.counted(counted, "slow", {"main": 2})
        gate.touch()
        assert api.ended(counted) == "completed"
        slow = api.submit(SLOW)
        api.post(f"/api/executions/{slow}/cancel")
        assert api.ended(slow) == "cancelled"
        assert [one["name"] for one in api.get("/api/workers").json()["workers"]] == ["w1"]
        families = {family.name for family in text_string_to_metric_families(api.get("/metrics").text)}
        assert "penstock_broker_tickets_sent" in families
        api.close()


def test_a_worker_without_a_database_is_asked_where_results_shall_go(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="nowhere to put"):
        _opened(tmp_path)


def test_a_server_without_a_database_has_no_workers_elsewhere(tmp_path: Path) -> None:
    with (
        pytest.raises(Refused, match="need a server with a database"),
        serving(tmp_path, dispatch="nats://127.0.0.1:9"),
    ):
        pass


def test_a_url_that_is_no_broker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not a NATS URL"), serving(tmp_path, dispatch="amqp://127.0.0.1"):
        pass


def _opened(home: Path) -> None:
    from penstock.app.stores import StoreLocations
    from penstock.app.worker import open_worker

    open_worker(StoreLocations(home, None, None, "nats://127.0.0.1:9"))
