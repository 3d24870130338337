"""Health, readiness, figures and the fleet, as those who look after a server see them."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.api.service import FAILS, QUICK, SLOW, Api, asking


def figures(api: Api) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {}
    for family in text_string_to_metric_families(answer.text):
        assert family.documentation
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_figures_are_there_for_prometheus(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        for text in (QUICK, QUICK, FAILS):
            api.done(text)
        slow = api.submit(SLOW)
        while not api.get("/api/leases").json()["leases"]:
            pass
        seen = figures(api)
        assert seen["penstock_executions", (("status", "completed"),)] == 2
        assert seen["penstock_executions", (("status", "failed"),)] == 1
        assert seen["penstock_executions", (("status", "running"),)] == 1
        assert seen["penstock_workers_alive", (("pool", "default"),)] == 1
        assert seen["penstock_worker_slots", (("pool", "default"),)] == 4
        assert seen["penstock_executions", (("status", "interrupted"),)] == 0
        assert seen["penstock_leases_waiting", (("pool", "default"),)] == 0
        assert seen["penstock_queue_age_seconds", (("pool", "default"),)] == 0
        assert seen["penstock_partitions_owned", ()] == 256
        assert seen["penstock_notes_heard_total", ()] > 0
        assert seen["penstock_append_seconds_bucket", (("le", "+Inf"),)] == seen["penstock_append_seconds_count", ()]
        assert seen["penstock_append_seconds_count", ()] > 0
        api.post(f"/api/executions/{slow}/cancel")
        api.ended(slow)
        events = sum(len(api.events(run["execution_id"])) for run in api.get("/api/executions").json()["runs"])
        assert figures(api)["penstock_events_appended_total", ()] == events


def test_the_server_says_how_it_is_and_what_it_is(api: Api) -> None:
    assert api.get("/health").json()["status"] == "ok"
    ready = api.get("/ready").json()
    assert (ready["status"], ready["partitions"]) == ("ready", 256)
    about = api.get("/api/version").json()
    assert (about["api"], about["stores"]) == (1, ["file"])


def test_who_works_and_on_what_is_shown(api: Api) -> None:
    run = api.submit(SLOW)
    while not (held := [one for one in api.get("/api/leases").json()["leases"] if one["worker"]]):
        pass
    (worker,) = api.get("/api/workers").json()["workers"]
    assert (worker["pool"], worker["slots"], worker["is_alive"]) == ("default", 4, True)
    assert "python" in worker["can"]
    assert (held[0]["execution_id"], held[0]["worker"], held[0]["attempt"]) == (run, worker["id"], 1)
    assert api.get("/api/leases", execution="nobody").json() == {"leases": []}
    (server,) = api.get("/api/servers").json()["servers"]
    assert server["partitions"] == 256
    (pool,) = api.get("/api/pools").json()["pools"]
    assert (pool["name"], pool["workers"], pool["slots"], pool["waiting"]) == ("default", 1, 4, 0)
    api.post(f"/api/executions/{run}/cancel")
    api.ended(run)


def test_large_results_are_fetched_by_reference(api: Api) -> None:
    from tests.engine import document

    text = document("- step: start\n  tool: [{name: n, kind: python, code: \"result = 'x' * 3_000_000\"}]\n")
    run = api.done(text)
    refs = [ref for event in api.events(run) for ref in _refs(event["payload"])]
    ref = next(ref for ref in refs if ref["size"] > 3_000_000)
    answer = api.get(f"/api/results/{ref['store']}/{ref['checksum']}")
    assert (answer.status_code, len(answer.content)) == (200, ref["size"])
    assert api.get(f"/api/results/{ref['store']}/{'0' * 64}").status_code == 404
    assert api.get(f"/api/results/nowhere/{ref['checksum']}").status_code == 404
    assert api.get(f"/api/results/{ref['store']}/..%2f..").status_code in (404, 422)


def _refs(value: object) -> list[dict[str, object]]:
    if isinstance(value, dict):
        found = [value] if value.get("$ref") == "result" else []
        return found + [ref for inner in value.values() for ref in _refs(inner)]
    return [ref for inner in value for ref in _refs(inner)] if isinstance(value, list) else []


def test_old_runs_are_pruned(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        good, bad = api.done(QUICK), api.done(FAILS)
        running = api.submit(SLOW)
        dry = api.post("/api/prune", {"older_than_s": 0, "dry_run": True}).json()
        assert (dry["runs"], dry["dry_run"]) == (2, True)
        assert api.post("/api/prune", {"older_than_s": 3600}).json()["runs"] == 0
        api.pruned(1, keep_failed=True)
        left = [run["execution_id"] for run in api.get("/api/executions").json()["runs"]]
        assert left == [running, bad]
        assert api.get(f"/api/executions/{good}").status_code == 404
        assert api.get(f"/api/executions/{good}/logs").status_code == 404
        assert not (tmp_path / "logs" / f"{good}.ndjson").exists()
        api.pruned(1)
        api.post(f"/api/executions/{running}/cancel")
        api.ended(running)
