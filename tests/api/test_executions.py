"""Runs over HTTP: asked for once, listed, shown, cancelled and gone on with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.api.service import FAILS, QUICK, SLOW, Api, asking
from tests.engine import document

ECHOES = "workload: {a: 1}\n" + document("- step: start\n  tool: [{name: n, kind: noop, value: '{{ workload.a }}'}]\n")


def test_a_run_is_submitted_and_comes_to_its_end(api: Api) -> None:
    answer = api.post("/api/executions", {"document": {"text": QUICK, "file": "p.yaml"}, "label": "first"})
    assert answer.status_code == 201
    run = answer.json()["execution_id"]
    assert answer.json() == {"execution_id": run, "created": True}
    assert answer.headers["location"] == f"/api/executions/{run}"
    assert api.ended(run) == "completed"
    shown = api.get(f"/api/executions/{run}").json()
    assert (shown["status"], shown["result"], shown["exit_code"]) == ("completed", "hello", 0)
    assert (shown["label"], shown["crashed"], shown["file"]) == ("first", False, "p.yaml")
    assert [step["step"] for step in shown["steps"]] == ["start", "fin"]


def test_a_payload_goes_over_the_defaults(api: Api) -> None:
    text = "workload: {a: 1, b: 2}\n" + document(
        "- step: start\n  tool: [{name: n, kind: noop, value: '{{ workload.a + workload.b }}'}]\n"
    )
    run = api.done(text, payload={"b": 40})
    assert api.get(f"/api/executions/{run}").json()["result"] == 41


@pytest.mark.parametrize("where", ["header", "body"])
def test_the_same_key_again_is_the_same_run(api: Api, where: str) -> None:
    body = {"document": {"text": QUICK, "file": "p.yaml"}}
    key = f"key-{where}"
    headers = {"Idempotency-Key": key} if where == "header" else {}
    asked = {**body, "idempotency_key": key} if where == "body" else body
    first = api.post("/api/executions", asked, headers=headers)
    again = api.post("/api/executions", asked, headers=headers)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {"execution_id": first.json()["execution_id"], "created": False}


def test_eight_clients_with_one_key_make_one_run(api: Api) -> None:
    body = {"document": {"text": QUICK, "file": "p.yaml"}, "idempotency_key": "eight", "label": "eight"}

    def submit(number: int) -> tuple[int, str]:
        one = Api(api.url)
        try:
            answer = one.post("/api/executions", body)
            return answer.status_code, answer.json()["execution_id"]
        finally:
            one.close()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(submit, range(8)))
    assert sorted(status for status, _ in answers) == [200] * 7 + [201]
    assert len({run for _, run in answers}) == 1
    runs = api.get("/api/executions", limit=1000).json()["runs"]
    assert sum(run["label"] == "eight" for run in runs) == 1


def test_a_key_that_was_used_for_something_else_is_refused(api: Api) -> None:
    api.submit(QUICK, idempotency_key="mine")
    for other in (
        {"document": {"text": FAILS, "file": "p.yaml"}},
        {"document": {"text": QUICK}, "payload": {"event": 1}},
    ):
        answer = api.post("/api/executions", {**other, "idempotency_key": "mine"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "key_reused")


def test_two_keys_that_differ_are_refused(api: Api) -> None:
    body = {"document": {"text": QUICK}, "idempotency_key": "a"}
    answer = api.post("/api/executions", body, headers={"Idempotency-Key": "b"})
    assert answer.status_code == 422


def test_many_runs_are_started_by_one_request(api: Api) -> None:
    many = [{"payload": {"a": number}, "label": f"many-{number}"} for number in range(20)]
    answer = api.post("/api/executions/batch", {"document": {"text": ECHOES}, "runs": many})
    assert answer.status_code == 201, answer.text
    made = answer.json()["runs"]
    assert [one["created"] for one in made] == [True] * 20
    for number, one in enumerate(made):
        assert api.ended(one["execution_id"]) == "completed"
        run = api.get(f"/api/executions/{one['execution_id']}").json()
        assert (run["result"], run["label"]) == (number, f"many-{number}")


def test_of_many_runs_none_starts_when_one_is_wrong(api: Api) -> None:
    before = len(api.get("/api/executions", limit=1000).json()["runs"])
    many = [{"payload": {"a": 1}}, {"payload": {"nonsense": 1}}]
    answer = api.post("/api/executions/batch", {"document": {"text": ECHOES}, "runs": many})
    assert answer.status_code == 422
    assert "nonsense" in answer.json()["error"]["message"]
    for runs in ([], [{}] * 1001):
        assert api.post("/api/executions/batch", {"document": {"text": QUICK}, "runs": runs}).status_code == 422
    assert len(api.get("/api/executions", limit=1000).json()["runs"]) == before


def test_keys_hold_among_many_runs_as_for_one(api: Api) -> None:
    one = api.submit(QUICK, idempotency_key="batch-1")
    body = {"document": {"text": QUICK, "file": "p.yaml"}}
    keys = ["batch-1", "batch-2", "batch-2"]
    answer = api.post("/api/executions/batch", {**body, "runs": [{"idempotency_key": key} for key in keys]})
    first, second, third = answer.json()["runs"]
    assert first == {"execution_id": one, "created": False}
    assert second["created"]
    assert third == {"execution_id": second["execution_id"], "created": False}
    changed = {**body, "runs": [{"idempotency_key": "batch-1", "payload": {"event": 1}}]}
    answer = api.post("/api/executions/batch", changed)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "key_reused")


def test_runs_are_listed_newest_first_page_by_page_and_by_what_is_asked_for(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        runs = [api.done(QUICK), api.done(FAILS), api.done(QUICK)]
        first = api.get("/api/executions", limit=2).json()
        assert [run["execution_id"] for run in first["runs"]] == [runs[2], runs[1]]
        second = api.get("/api/executions", limit=2, after=first["next"]).json()
        assert [run["execution_id"] for run in second["runs"]] == [runs[0]]
        assert second["next"] is None
        failed = api.get("/api/executions", status="failed").json()["runs"]
        assert [run["execution_id"] for run in failed] == [runs[1]]
        assert api.get("/api/executions", name="nothing").json()["runs"] == []
        assert api.get("/api/executions", after="nobody").status_code == 404


def test_runs_are_chosen_by_kind_label_text_and_time_and_say_why_they_failed(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        good, bad = api.done(QUICK, label="Nightly load"), api.done(FAILS, label="other")

        def found(**wanted: str) -> list[str]:
            answer = api.get("/api/executions", **wanted)
            assert answer.status_code == 200, answer.text
            return [run["execution_id"] for run in answer.json()["runs"]]

        assert found(kind="playbook") == [bad, good]
        assert found(kind="job") == []
        assert found(label="other") == [bad]
        assert found(q="NIGHTLY") == [good]
        assert found(q=bad[:10]) == [bad]
        assert found(q="p.yaml", status="failed") == [bad]
        assert found(q="") == [bad, good]
        assert found(until="2001-01-01") == []
        assert found(until="0s", since="1h") == [bad, good]
        assert found(status="crashed") == []
        reasons = {run["execution_id"]: run["reason"] for run in api.get("/api/executions").json()["runs"]}
        assert reasons[good] is None
        assert "no luck" in reasons[bad]
        assert api.get(f"/api/executions/{bad}/header").json()["reason"] == reasons[bad]
        assert api.get("/api/executions", until="whenever").status_code == 422
        assert api.get("/api/executions", kind="joblet").status_code == 422


def test_a_run_goes_by_its_id_its_beginning_its_label_and_last(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        old = api.done(QUICK, label="nightly")
        new = api.done(QUICK, label="nightly")
        for name, meant in ((old, old), (old[:20], old), ("nightly", new), ("@last", new)):
            assert api.get(f"/api/executions/{name}/header").json()["execution_id"] == meant
        shared = next((length for length in range(1, 20) if old[:length] != new[:length]), 1) - 1
        if shared:
            answer = api.get(f"/api/executions/{old[:shared]}/header")
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "ambiguous")
        assert api.get("/api/executions/nobody").status_code == 404


def test_a_running_run_is_cancelled(api: Api) -> None:
    run = api.submit(SLOW)
    assert api.get(f"/api/executions/{run}").json()["exit_code"] is None
    answer = api.post(f"/api/executions/{run}/cancel", {"reason": "enough"})
    assert answer.status_code == 202
    assert api.ended(run) == "cancelled"
    assert any(event["payload"].get("reason") == "enough" for event in api.events(run))
    assert api.post(f"/api/executions/{run}/cancel").status_code == 409


def test_a_failed_run_goes_on_where_it_failed(api: Api, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    text = document(f"""
- step: start
  tool: [{{name: n, kind: noop, value: 1}}]
  next: {{arcs: [{{step: second}}]}}
- step: second
  tool:
    - name: look
      kind: python
      code: |
        from pathlib import Path
        if not Path({str(flag)!r}).exists():
            raise ValueError("not yet")
        result = "now"
""")
    run = api.done(text)
    assert api.get(f"/api/executions/{run}/header").json()["status"] == "failed"
    before = len(api.events(run))
    flag.touch()
    answer = api.post(f"/api/executions/{run}/resume")
    assert (answer.status_code, answer.json()["seq"]) == (202, before)
    assert api.until(run, lambda status: status not in ("running", "failed")) == "completed"
    assert api.get(f"/api/executions/{run}").json()["result"] == "now"
    assert api.post(f"/api/executions/{run}/resume").status_code == 409


def test_the_document_of_a_run_is_the_text_it_started_with(api: Api) -> None:
    run = api.done(QUICK, payload={"event": 1})
    kept = api.get(f"/api/executions/{run}/document").json()
    assert (kept["text"], kept["file"], kept["inputs"]["payload"]) == (QUICK, "p.yaml", {"event": 1})


def test_an_input_that_the_document_does_not_have_is_refused_and_makes_no_run(api: Api) -> None:
    reads = document(
        "workload: {limit: 1}\nworkflow:\n  - step: start\n    tool: {kind: noop, value: '{{ workload.limit }}'}"
    )
    answer = api.post("/api/executions", {"document": {"text": reads, "file": "p.yaml"}, "payload": {"limt": 2}})
    assert answer.status_code == 422
    assert "the workload has no `limt`" in answer.json()["error"]["message"]
    assert answer.json()["error"]["hint"] == "did you mean `limit`?"


def test_a_document_with_errors_is_refused_with_all_of_them(api: Api) -> None:
    bad = QUICK.replace("kind: noop", "kind: nop").replace("kind: python", "kind: pyton")
    answer = api.post("/api/executions", {"document": {"text": bad, "file": "bad.yaml"}})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] == "document_invalid"
    assert [one["code"] for one in error["problems"]] == ["P0504", "P0504"]
    assert all(one["file"] == "bad.yaml" and one["line"] > 1 for one in error["problems"])


def test_what_a_run_calls_comes_along_with_it(api: Api) -> None:
    child = document("- step: start\n  tool: [{name: n, kind: noop, value: from the child}]\n")
    caller = document("- step: start\n  tool: [{name: c, kind: playbook, path: parts/child.yaml}]\n")
    sources = {"/nowhere/parts/child.yaml": child}
    answer = api.post("/api/executions", {"document": {"text": caller, "file": "/nowhere/p.yaml", "sources": sources}})
    run = answer.json()["execution_id"]
    assert api.ended(run) == "completed"
    assert api.get(f"/api/executions/{run}").json()["result"] == "from the child"


def test_the_views_of_a_run_are_there(api: Api) -> None:
    run = api.done(QUICK)
    base = f"/api/executions/{run}"
    assert api.get(f"{base}/plan").json()["steps"][0]["step"] == "start"
    assert api.get(f"{base}/graph").text.startswith("flowchart")
    svg = api.get(f"{base}/graph", format="svg")
    assert svg.headers["content-type"] == "image/svg+xml"
    assert svg.text.startswith("<svg")
    assert "why it ran" in api.get(f"{base}/explain", node="fin").text
    assert api.get(f"{base}/explain", node="nothing").status_code == 404
    assert api.get(f"{base}/fanin").json() == {"execution_id": run, "fanin": {}}
    assert [line["line"] for line in map(_json, api.get(f"{base}/logs").text.splitlines())] == ["greeting"]


def test_the_tracker_of_a_fanned_out_loop_is_shown(api: Api) -> None:
    text = document("""
- step: start
  spec: {loop_mode: fanout, fanout: {range_size: 10}}
  loop: {in: {range: 50}, iterator: i}
  tool: [{name: n, kind: noop, value: "{{ iter.i }}"}]
""")
    run = api.done(text)
    (tracker,) = api.get(f"/api/executions/{run}/fanin").json()["fanin"].values()
    assert (tracker["total"], tracker["succeeded"], tracker["failed"]) == (50, 50, 0)


def _json(line: str) -> dict[str, str]:
    import json

    found: dict[str, str] = json.loads(line)
    return found
