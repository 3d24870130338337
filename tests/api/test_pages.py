"""What the web page asks about runs: answers that fit their types, at any event, for playbooks and jobs."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from penstock.api import page_answers
from tests.api.service import PATIENCE_S, SLOW, Api, asking
from tests.engine import document

PLAYBOOK = document("""
workload: {size: 4, password: hush}
workflow:
  - step: start
    tool:
      - name: many
        kind: python
        args: {size: "{{ workload.size }}"}
        code: |
          print("counting")
          result = {"n": size, "rows": [{"n": n, "text": "x" * 60} for n in range(1000)]}
    next:
      arcs:
        - {step: each, when: "{{ start.n == 4 }}", set: {ctx.seen: "{{ start.n }}"}}
        - {step: never, when: "{{ start.n == 5 }}"}
  - step: each
    loop: {in: "{{ range(0, 5) }}", iterator: x, spec: {policy: {failure: {mode: best_effort}}}}
    spec: {policy: {failure: {mode: best_effort}}}
    tool:
      - name: check
        kind: python
        args: {x: "{{ iter.x }}"}
        code: |
          print(f"element {x}")
          if x == 3:
              raise ValueError("three")
          result = x
    next: {arcs: [{step: bad, when: "{{ event.result.failed == 1 }}"}]}
  - step: bad
    tool:
      - name: boom
        kind: python
        code: "raise ValueError('no luck')"
        spec:
          policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3, delay: 0.01}}]}
  - step: never
    tool: [{name: n, kind: noop}]
""")

JOB = """\
apiVersion: penstock/v1
kind: Job
metadata: { name: sales }
context: { least: 2, groups: { all: { least: 0 } } }
components:
  - name: orders
    type: generate_rows
    params: { count: 10, columns: { id: i, amount: "i * 2", who: "'c' || i % 3" } }
  - name: large
    type: filter
    params: { where: "amount >= {{ context.least }}" }
  - name: totals
    type: aggregate
    params: { by: [who], measures: { total: sum(amount) } }
  - name: show
    type: log_rows
  - name: each
    type: iterate_list
    params: { items: [1, 2, 3] }
  - name: count
    type: set_global
    params: { values: { last: "{{ iteration.item }}" } }
  - name: give_up
    type: die
    params: { message: "enough" }
connections:
  data: |
    orders.main -> large.input
    large.main -> totals.input
    totals.main -> show.input
  control: |
    show (subjob_ok) each
    each (iterate) count
    each (subjob_error) give_up
"""

ROUTES: dict[str, type[BaseModel]] = {
    "net": page_answers.GraphOut,
    "moment": page_answers.MomentOut,
    "marks": page_answers.MarksOut,
    "timeline": page_answers.TimelineOut,
    "event-page": page_answers.EventPageOut,
    "lines": page_answers.LinePageOut,
    "why": page_answers.WhyOut,
    "values": page_answers.ValuesOut,
    "ports": page_answers.PortsOut,
    "rows": page_answers.RowsOut,
    "lineage": page_answers.LineageOut,
}


class Run:
    """One run, as its page asks about it: every answer fits its type."""

    def __init__(self, api: Api, run: str) -> None:
        self.api, self.run = api, run

    def __call__(self, route: str, **asked: Any) -> Any:
        answer = self.api.http.get(f"/api/executions/{self.run}/{route}", params=asked)
        assert answer.status_code == 200, answer.text
        ROUTES[route].model_validate(answer.json(), strict=True)
        return answer.json()

    def refused(self, route: str, **asked: Any) -> tuple[int, str]:
        answer = self.api.get(f"/api/executions/{self.run}/{route}", **asked)
        return answer.status_code, str(answer.json()["error"]["message"])


@pytest.fixture(scope="module")
def playbook(api: Api) -> Run:
    return Run(api, api.done(PLAYBOOK))


@pytest.fixture(scope="module")
def job(api: Api) -> Run:
    return Run(api, api.done(JOB, keep=["large"]))


@pytest.fixture(scope="module", params=["playbook", "job"])
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(request.param)
    return found


# ---- graph and moments


def test_the_graph_of_a_playbook_has_its_lines_arcs_and_loops(playbook: Run) -> None:
    graph = playbook("net")
    lines = PLAYBOOK.splitlines()
    for node in graph["nodes"]:
        assert lines[node["line"] - 1].strip() == f"- step: {node['id']}"
        following = lines[node["end_line"]] if node["end_line"] < len(lines) else "  - step:"
        assert following.startswith("  - step:")
    assert [(edge["id"], edge["source"], edge["target"]) for edge in graph["edges"]] == [
        ("start:0", "start", "each"),
        ("start:1", "start", "never"),
        ("each:0", "each", "bad"),
    ]
    assert all("when" in lines[edge["line"] - 1] for edge in graph["edges"])
    assert [node["loop"] for node in graph["nodes"]] == [None, "for each x", None, None]
    assert graph["entry"] == "start"


def test_the_graph_of_a_job_has_frames_for_its_subjobs_and_bodies(job: Run) -> None:
    graph = job("net")
    frames = {frame["id"]: (frame["kind"], frame["parent"], frame["opener"]) for frame in graph["frames"]}
    assert frames == {
        "<orders>": ("subjob", None, None),
        "<each>": ("subjob", None, None),
        "<give_up>": ("subjob", None, None),
        "each": ("body", "<each>", "each"),
    }
    assert {node["id"]: node["frame"] for node in graph["nodes"]} == {
        "orders": "<orders>",
        "large": "<orders>",
        "totals": "<orders>",
        "show": "<orders>",
        "each": "<each>",
        "count": "each",
        "give_up": "<give_up>",
    }
    assert {node["id"]: node["kind"] for node in graph["nodes"]}["each"] == "iterator"
    lines = JOB.splitlines()
    assert [lines[edge["line"] - 1].strip() for edge in graph["edges"][:3]] == [
        "orders.main -> large.input",
        "large.main -> totals.input",
        "totals.main -> show.input",
    ]


def test_a_graph_and_a_moment_speak_of_the_same_nodes_edges_and_frames(run: Run) -> None:
    graph, moment = run("net"), run("moment")
    assert {node["id"] for node in graph["nodes"]} == set(moment["nodes"])
    assert {edge["id"] for edge in graph["edges"]} <= set(moment["edges"])
    assert {frame["id"] for frame in graph["frames"]} == set(moment["frames"])
    assert graph["digest"] == moment["digest"]


def test_a_playbook_at_its_end(playbook: Run) -> None:
    moment = playbook("moment")
    assert (moment["status"], moment["exit_code"], moment["is_live"]) == ("failed", 1, False)
    assert moment["folded_to"] == moment["seq"] == moment["last_seq"]
    nodes = moment["nodes"]
    assert {name: node["status"] for name, node in nodes.items()} == {
        "start": "ok",
        "each": "ok",
        "bad": "failed",
        "never": "not_run",
    }
    fan = {"total": 5, "ok": 4, "failed": 1, "open": 0, "mode": "sequential", "failures": [3]}
    assert nodes["each"]["fan"] == fan
    assert (nodes["bad"]["task"], nodes["bad"]["attempt"]) == ("boom", 3)
    assert "no luck" in nodes["bad"]["error"]
    assert nodes["never"]["reason"] == "no token came to it"
    assert {name: edge["state"] for name, edge in moment["edges"].items()} == {
        "start:0": "fired",
        "start:1": "dead",
        "each:0": "fired",
    }


def test_a_job_at_its_end(job: Run) -> None:
    moment = job("moment")
    assert moment["status"] == "completed"
    assert {name: node["status"] for name, node in moment["nodes"].items()} == {
        "orders": "ok",
        "large": "ok",
        "totals": "ok",
        "show": "ok",
        "each": "ok",
        "count": "ok",
        "give_up": "skipped",
    }
    data = [moment["edges"][str(index)] for index in range(3)]
    assert [edge["rows"] for edge in data] == [10, 9, 3]
    assert all(edge["rate"] > 0 for edge in data)
    assert moment["nodes"]["count"]["runs"] == 3
    assert moment["nodes"]["each"]["fan"]["total"] == 3
    assert {frame["status"] for frame in moment["frames"].values()} == {"ok", "skipped"}


def test_every_moment_can_be_asked_for_and_states_only_go_forward(run: Run) -> None:
    last = run("moment")["last_seq"]
    ended = 0
    for seq in range(last + 1):
        moment = run("moment", at=seq)
        assert moment["seq"] == seq
        now = sum(sum(node["ended"].values()) for node in moment["nodes"].values())
        assert now >= ended
        ended = now
    assert run("moment", at=last + 100)["seq"] == last


def test_a_retry_that_is_waited_for_has_its_time(playbook: Run) -> None:
    marks = playbook("marks")
    first = next(mark for mark in marks["marks"] if mark["kind"] == "retry")
    bad = playbook("moment", at=first["seq"])["nodes"]["bad"]
    assert bad["status"] == "retrying"
    assert bad["retry_at"] == pytest.approx(first["ts"] + 0.01)
    assert playbook("moment", at=first["seq"] + 1)["nodes"]["bad"]["status"] == "running"


def test_marks_begin_with_the_start_and_name_the_first_error(playbook: Run, job: Run) -> None:
    marks = playbook("marks")
    assert [mark["kind"] for mark in marks["marks"]] == ["start", "failure", "retry", "retry", "failure", "end"]
    assert marks["first_error"] == marks["marks"][1]["seq"]
    assert marks["marks"][1]["node"] == "each"
    assert sum(marks["types"].values()) == marks["last_seq"]
    assert [mark["kind"] for mark in job("marks")["marks"]] == ["start", "end"]
    assert job("marks")["first_error"] is None


# ---- timeline


def test_a_timeline_has_runs_attempts_waits_and_the_critical_path(playbook: Run, job: Run) -> None:
    timeline = playbook("timeline", pixels=5000)
    lanes = {lane["id"]: lane["bars"] for lane in timeline["lanes"]}
    assert list(lanes) == ["start", "each", "bad", "never"]
    assert sum(bar["count"] for bar in lanes["each"] if bar["kind"] == "attempt") == 5
    assert sum(bar["failed"] for bar in lanes["each"] if bar["kind"] == "attempt") == 1
    assert sum(bar["count"] for bar in lanes["bad"] if bar["label"] == "for a retry") == 2
    assert timeline["critical"] == ["start", "each", "bad"]
    assert [bar["is_critical"] for bar in lanes["bad"] if bar["kind"] == "run"] == [True]
    assert job("timeline")["critical"] == ["orders", "large", "totals", "show", "each"]


def test_a_timeline_has_the_leases_of_step_runs_and_of_sub_jobs(playbook: Run, job: Run) -> None:
    for run, kind in ((playbook, "node"), (job, "subjob")):
        (worker,) = run("timeline", workers=True)["lanes"]
        leased = [lane for lane in run("timeline")["lanes"] if any(bar["kind"] == "lease" for bar in lane["bars"])]
        assert {lane["kind"] for lane in leased} == {kind}
        leases = [bar for lane in leased for bar in lane["bars"] if bar["kind"] == "lease"]
        assert {(bar["worker"], bar["status"]) for bar in leases} == {(worker["id"], "ok")}
    lanes = [lane["id"] for lane in job("timeline")["lanes"]]
    assert lanes.index("<orders>") == lanes.index("orders") - 1


def test_a_timeline_at_a_moment_shows_what_had_happened_by_then(run: Run) -> None:
    last = run("moment")["last_seq"]
    for seq in range(0, last, 5):
        moment, timeline = run("moment", at=seq), run("timeline", at=seq)
        bars = [bar for lane in timeline["lanes"] for bar in lane["bars"]]
        assert all(bar["until"] is None or bar["until"] <= moment["ts"] for bar in bars)
        going = {lane["id"] for lane in timeline["lanes"] for bar in lane["bars"] if bar["until"] is None}
        assert {name for name, node in moment["nodes"].items() if node["status"] == "running"} <= going


def test_workers_have_lanes_of_their_own(run: Run) -> None:
    (lane,) = run("timeline", workers=True)["lanes"]
    assert lane["kind"] == "worker"
    assert lane["bars"]


# ---- events, lines, why


def test_event_pages_have_every_event_once(run: Run) -> None:
    found: list[int] = []
    after: int | None = 0
    while after is not None:
        page = run("event-page", after=after, limit=7)
        found += [event["seq"] for event in page["events"]]
        after = page["next"]
    assert found == list(range(1, run("moment")["last_seq"] + 1))


def test_events_are_filtered_by_type_place_and_text(playbook: Run) -> None:
    failed = playbook("event-page", type=["loop.iteration.failed", "step.failed"])
    assert [event["event_type"] for event in failed["events"]] == ["loop.iteration.failed", "step.failed"]
    assert len(playbook("event-page", place="each[3]")["events"]) == 4
    assert {event["step"] for event in playbook("event-page", place="bad")["events"]} == {"bad"}
    assert all("luck" in str(event) for event in playbook("event-page", text="NO LUCK")["events"])


def test_a_cause_leads_to_its_event(run: Run) -> None:
    events = run("event-page", limit=1000)["events"]
    names = {event["event_id"]: event["seq"] for event in events}
    caused = [event for event in events if event["cause"] is not None][:10]
    assert caused
    for event in caused:
        (found,) = run("event-page", cause_of=event["seq"])["events"]
        assert found["seq"] == names[event["cause"]]


def test_lines_are_those_of_a_node_by_a_time(playbook: Run) -> None:
    lines = playbook("lines")["lines"]
    assert [line["line"] for line in lines] == ["counting", *(f"element {x}" for x in range(5))]
    assert [line["line"] for line in playbook("lines", node="each[2]")["lines"]] == ["element 2"]
    assert {line["node"] for line in playbook("lines", node="each")["lines"]} == {"each"}
    assert len(playbook("lines", until=lines[2]["ts"])["lines"]) == 3
    page = playbook("lines", limit=2)
    assert [line["number"] for line in playbook("lines", after=page["next"])["lines"]] == [3, 4, 5, 6]


CHAINS = re.compile("why it|why the step ran|where its token came from|what it did|what followed")


def test_every_sentence_of_a_chain_has_its_event_and_its_line(run: Run) -> None:
    last = run("moment")["last_seq"]
    for node, state in run("moment")["nodes"].items():
        why = run("why", node=node)
        assert why["headline"]["line"], node
        for section in why["because"]:
            for line in section["lines"] if CHAINS.match(section["title"]) else ():
                assert 1 <= line["seq"] <= last, line
                assert line["file"] == "p.yaml", line
                assert "  (p.yaml" not in line["text"], line
        assert state["status"] == "not_run" or why["headline"]["seq"]


def test_why_is_about_that_moment(playbook: Run) -> None:
    begun = next(e["seq"] for e in playbook("event-page", place="bad")["events"] if e["event_type"] == "step.started")
    why = playbook("why", node="bad", at=begun)
    assert why["status"] == "running"
    assert all(line["seq"] is None or line["seq"] <= begun for one in why["because"] for line in one["lines"])
    assert playbook("why", node="bad", at=2)["status"] == "never ran"
    assert playbook("why", node="bad", at=2)["because"][0]["title"] == "tokens may still come from"
    assert playbook.refused("why", node="nobody")[0] == 404


# ---- values


def values(found: Any) -> dict[str, Any]:
    return {value["id"]: value["value"] for value in found["values"]}


def test_the_values_of_a_step_are_its_inputs_results_and_outcomes(playbook: Run) -> None:
    found = playbook("values", node="start")
    assert found["run"] == "start@0"
    ids = [value["id"] for value in found["values"]]
    assert ids == ["args", "attempt:0", "result", "workload", "ctx", "results", "execution_error"]
    assert values(found)["ctx"] == {"seen": 4}
    assert [v["title"] for v in playbook("values", node="bad")["values"] if v["id"].startswith("attempt")] == [
        "boom, attempt 1",
        "boom, attempt 2",
        "boom, attempt 3",
    ]
    assert values(playbook("values", node="each[3]"))["item"] == 3


def test_values_are_those_of_the_moment(playbook: Run) -> None:
    assert "ctx" in values(playbook("values", at=3))
    assert values(playbook("values", at=3))["ctx"] == {}
    assert "result" not in values(playbook("values", node="start", at=5))


def test_a_large_result_is_paged_by_path_and_offset(playbook: Run) -> None:
    found = playbook("values", node="start")
    result = next(value for value in found["values"] if value["id"] == "result")
    assert result["is_whole"] is False
    pieces: list[Any] = []
    while len(pieces) < 1000:
        asked = {"value": "result", "path": "/rows", "offset": len(pieces), "limit": 400}
        (value,) = playbook("values", node="start", **asked)["values"]
        assert value["total"] == 1000
        pieces += value["value"]
    assert [row["n"] for row in pieces] == list(range(1000))
    assert playbook.refused("values", node="start", value="nothing")[0] == 404


def test_the_values_of_components_and_iterations(job: Run) -> None:
    found = values(job("values", node="large"))
    assert found["rows"] == {"in": {"input": 10}, "out": {"main": 9}}
    assert found["workload"]["least"] == 2
    assert values(job("values", node="count"))["item"] == 3
    assert values(job("values", node="each[#1].count"))["item"] == 2


def test_the_values_of_a_sub_job_are_those_of_the_job_and_its_error(api: Api, job: Run) -> None:
    whole = values(job("values", node="<orders>"))
    assert "error" not in whole
    assert whole["workload"]["least"] == 2
    stops = "apiVersion: penstock/v1\nkind: Job\ncomponents: [{ name: stop, type: die, params: { message: enough } }]\n"
    stopped = Run(api, api.done(stops))
    assert "enough" in values(stopped("values", node="<stop>"))["error"]["message"]


# ---- rows


def test_kept_rows_are_paged_and_others_say_how_to_keep_them(job: Run) -> None:
    ports = {(port["component"], port["port"]): port for port in job("ports")["ports"]}
    assert ports["large", "main"] == {
        "component": "large",
        "port": "main",
        "rows": 9,
        "is_kept": True,
        "is_reject": False,
    }
    assert ports["orders", "main"]["is_kept"] is False
    first = job("rows", component="large", limit=4)
    rest = job("rows", component="large", offset=4)
    assert (first["total"], len(first["rows"]), len(rest["rows"])) == (9, 4, 5)
    assert [row[0] for row in [*first["rows"], *rest["rows"]]] == list(range(1, 10))
    assert [column["name"] for column in first["columns"]] == ["id", "amount", "who"]
    status, message = job.refused("rows", component="orders")
    assert status == 404
    assert "were not kept" in message


def test_a_preview_makes_rows_again_with_the_inputs_of_the_run(api: Api) -> None:
    run = api.done(JOB, payload={"least": 10})
    answer = api.post(f"/api/executions/{run}/preview", {"component": "large", "rows": 2})
    assert answer.status_code == 200, answer.text
    page_answers.RowsOut.model_validate(answer.json(), strict=True)
    assert (answer.json()["total"], answer.json()["rows"]) == (5, [[5, 10, "c2"], [6, 12, "c0"]])
    assert api.post(f"/api/executions/{run}/preview", {"component": "nobody"}).status_code == 409


def test_a_run_is_decided_again(run: Run) -> None:
    answer = run.api.post(f"/api/executions/{run.run}/replay")
    assert answer.status_code == 200, answer.text
    page_answers.ReplayOut.model_validate(answer.json(), strict=True)
    assert answer.json()["status"] == "same"


def test_the_lineage_of_a_job_is_steps_from_column_to_column(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,amount\n1,2\n")
    file = tmp_path / "job.yaml"
    file.write_text(
        """\
apiVersion: penstock/v1
kind: Job
metadata: { name: j }
components:
  - { name: orders, type: read_csv, params: { path: orders.csv } }
  - { name: twice, type: derive, params: { columns: { double: amount * 2 } } }
  - { name: show, type: log_rows }
connections:
  data: |
    orders.main -> twice.input
    twice.main -> show.input
"""
    )
    with asking(tmp_path / "server") as api:
        answer = api.post("/api/executions", {"document": {"text": file.read_text(), "file": str(file)}})
        run = Run(api, answer.json()["execution_id"])
        api.ended(run.run)
        found = run("lineage")
    assert [column["name"] for column in found["columns"]["twice.main"]] == ["id", "amount", "double"]
    steps = {(s["component"], s["column"], s["into_component"], s["into_column"]) for s in found["steps"]}
    assert ("orders", "amount", "twice", "double") in steps
    assert ("twice", "double", "show", "double") in steps


def test_a_playbook_has_no_rows_and_no_columns(playbook: Run) -> None:
    assert playbook("ports") == {"ports": []}
    assert playbook.refused("lineage") == (409, "a playbook has no columns")
    assert playbook.refused("rows", component="start")[0] == 404


# ---- executions inside


INSIDE = document("""
- step: start
  tool: [{name: call, kind: playbook, path: child.yaml}]
""")
CHILD = document("""
- step: inner
  tool: [{name: fail, kind: python, code: "raise ValueError('inside')"}]
""")


def test_an_execution_inside_a_run_can_be_stepped_into(api: Api) -> None:
    sent = {"document": {"text": INSIDE, "file": "p.yaml", "sources": {"child.yaml": CHILD}}}
    run = Run(api, api.post("/api/executions", sent).json()["execution_id"])
    api.ended(run.run)
    moment = run("moment")
    (inside,) = moment["executions"]
    assert (inside["node"], inside["parent"], inside["status"]) == ("start", "", "failed")
    assert moment["nodes"]["start"]["children"] == [inside["scope"]]
    scope = inside["scope"]
    assert [node["id"] for node in run("net", scope=scope)["nodes"]] == ["inner"]
    assert run("moment", scope=scope)["nodes"]["inner"]["status"] == "failed"
    assert [lane["id"] for lane in run("timeline", scope=scope)["lanes"]] == ["inner"]
    chain = run("why", node="inner", scope=scope)["because"][0]["lines"]
    assert [line["scope"] for line in chain] == ["", scope]
    assert "error" in values(run("values", node="inner", scope=scope))
    assert run.refused("moment", scope="nobody/")[0] == 404


# ---- a run that goes on


@pytest.fixture
def going(api: Api) -> Iterator[Run]:
    run = Run(api, api.submit(SLOW))
    until = time.monotonic() + PATIENCE_S
    while not run("moment")["nodes"]["start"]["task"]:
        assert time.monotonic() < until
        time.sleep(0.02)
    yield run
    api.post(f"/api/executions/{run.run}/cancel", {})
    api.ended(run.run)


def test_a_run_that_goes_on_is_live_at_its_latest_moment_only(going: Run) -> None:
    moment = going("moment")
    assert (moment["status"], moment["is_live"], moment["ended_at"], moment["exit_code"]) == (
        "running",
        True,
        None,
        None,
    )
    assert moment["now"] >= moment["ts"]
    assert going("moment", at=1)["is_live"] is False
    bars = [bar for lane in going("timeline")["lanes"] for bar in lane["bars"]]
    assert {(bar["kind"], bar["until"]) for bar in bars} >= {("run", None), ("attempt", None), ("lease", None)}
    assert going("why", node="start")["status"] == "running"


# ---- two runs, all runs, documents


def test_two_runs_are_compared_by_inputs_states_rows_and_the_first_difference(api: Api, job: Run) -> None:
    other = api.done(JOB, payload={"least": 10})
    answer = api.get("/api/compare", left=job.run, right=other)
    assert answer.status_code == 200, answer.text
    page_answers.CompareOut.model_validate(answer.json(), strict=True)
    found = answer.json()
    assert found["same_document"]
    assert found["is_complete"]
    assert found["inputs"] == [{"path": "least", "left": 2, "right": 10}]
    assert {node["node"] for node in found["nodes"] if "rows" in node["differs"]} >= {"large", "totals"}
    rows = {edge["label"]: (edge["left"]["rows"], edge["right"]["rows"]) for edge in found["edges"] if edge["differs"]}
    assert rows["large.main → totals.input"] == (9, 5)
    assert found["first"]["node"] == "large", found["first"]
    assert found["first"]["left"] == "`component.ok` of `large`: rows_out.main = 9"
    same = api.get("/api/compare", left=job.run, right=api.done(JOB)).json()
    assert same["first"] is None
    assert not any(edge["differs"] for edge in same["edges"])


def test_runs_of_two_documents_are_compared_by_names(api: Api, job: Run, playbook: Run) -> None:
    found = api.get("/api/compare", left=playbook.run, right=job.run).json()
    page_answers.CompareOut.model_validate(found, strict=True)
    assert not found["same_document"]
    assert {node["node"] for node in found["nodes"]} >= {"start", "orders"}


def test_figures_are_the_latest_of_each_document_the_oldest_first(api: Api, playbook: Run) -> None:
    later = api.done(PLAYBOOK.replace("name: test", "name: figures"), payload={"size": 3})
    last = api.done(PLAYBOOK.replace("name: test", "name: figures"))
    answer = api.get("/api/stats", limit=2).json()
    page_answers.StatList.model_validate(answer, strict=True)
    (found,) = [one for one in answer["documents"] if one["name"] == "figures"]
    assert (found["runs"], found["statuses"]) == ([later, last], ["completed", "failed"])
    assert all(duration > 0 for duration in found["durations_ms"])


def test_a_document_that_is_being_written_has_problems_a_graph_and_a_form(api: Api) -> None:
    answer = api.post("/api/examine", {"document": {"text": PLAYBOOK, "file": "p.yaml"}}).json()
    page_answers.ExaminedOut.model_validate(answer, strict=True)
    assert answer["status"] == "valid"
    assert [node["id"] for node in answer["graph"]["nodes"]] == ["start", "each", "bad", "never"]
    assert answer["form"]["fields"] == [
        {"name": "size", "type": "integer", "default": 4, "is_secret": False},
        {"name": "password", "type": "string", "default": "***", "is_secret": True},
    ]
    job = api.post("/api/examine", {"document": {"text": JOB, "file": "j.yaml"}}).json()
    assert (job["form"]["contexts"], job["form"]["is_open"]) == (["all"], False)
    broken = {"document": {"text": PLAYBOOK.replace("step: each, when", "step: nowhere, when"), "file": "p.yaml"}}
    found = api.post("/api/examine", broken).json()
    page_answers.ExaminedOut.model_validate(found, strict=True)
    assert (found["status"], found["graph"], found["form"]) == ("invalid", None, None)
    assert found["problems"] == api.post("/api/validate", broken).json()["problems"]


def test_secrets_stay_hidden(api: Api, tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("s3cr3t-value")
    text = document(f"""
    keychain: [{{name: key, kind: file, path: {tmp_path}/key.txt}}]
    workflow:
      - step: start
        tool: [{{name: t, kind: python, args: {{k: "{{{{ keychain.key }}}}"}}, code: "print(k); result = [k]"}}]
    """)
    run = Run(api, api.done(text))
    said = [run("values", node="start"), run("lines"), run("event-page"), run("why", node="start"), run("net")]
    assert "s3cr3t-value" not in str(said)
    assert "***" in str(said[0])
