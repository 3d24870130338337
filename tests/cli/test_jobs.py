"""Jobs through the command line: run, show, explain, resume and the rest, as for playbooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.jobs import FAILS, LOOP, ORDERS, WAITS, write_job
from tests.cli.support import call, ended, process, started, until_there, write

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]


def test_run_json_has_globals_components_sub_jobs_and_edges_instead_of_ctx(capsys: Capture) -> None:
    shown = call(capsys, "run", write_job("orders.yaml", ORDERS), "--json")
    assert shown.code == 0
    view = shown.json
    assert "ctx" not in view
    assert (view["kind"], view["name"], view["status"], view["exit_code"]) == ("job", "orders", "completed", 0)
    assert view["globals"] == {"customers": 2}
    large = view["components"]["large"]
    assert (large["state"], large["rows_in"], large["rows_out"]) == ("OK", {"input": 4}, {"main": 3, "reject": 1})
    assert large["ms"] >= 0
    assert [(one["name"], one["state"], one["members"]) for one in view["subjobs"]] == [
        ("orders", "OK", ["orders", "large", "totals", "show", "small"]),
        ("done", "OK", ["done"]),
    ]
    assert {(one["from"], one["to"], one["on"]): one["fired"] for one in view["edges"]} == {
        ("orders", "large", "data"): 1,
        ("large", "totals", "data"): 1,
        ("totals", "show", "data"): 1,
        ("large", "small", "data"): 1,
        ("totals", "done", "subjob_ok"): 1,
    }
    assert view["counts"]["components"] == 6


@pytest.mark.clause("J9.1")
def test_the_figures_are_there_after_a_run(capsys: Capture) -> None:
    metrics: Any = call(capsys, "run", write_job("orders.yaml", ORDERS), "--json").json["metrics"]
    assert set(metrics["component_ms"]) == {"orders", "large", "totals", "show", "small", "done"}
    assert metrics["edge_fires"]["totals (subjob_ok) done"] == 1
    assert metrics["global_writes"] == {"done": 1}
    assert metrics["checkpoints"]["count"] == 2
    assert metrics["checkpoints"]["bytes"] > 0
    assert metrics["time_to_resume_ms"] is None


def test_show_json_says_what_run_json_said(capsys: Capture) -> None:
    ran = call(capsys, "run", write_job("orders.yaml", ORDERS), "--json").json
    shown = call(capsys, "show", "@last", "--json").json
    assert shown["file"] == str(Path("orders.yaml").resolve())
    assert {key: shown[key] for key in ran if key != "duration_ms"} == {
        key: value for key, value in ran.items() if key != "duration_ms"
    }


def test_a_run_ends_with_a_table_of_components_on_stderr(capsys: Capture) -> None:
    shown = call(capsys, "run", write_job("orders.yaml", ORDERS))
    assert (shown.code, shown.out) == (0, "")
    assert "large: OK in" in shown.err
    assert "small | | ben      |      7 |" in shown.err
    table = shown.err[shown.err.index("COMPONENT") :].splitlines()
    assert table[0].split() == ["COMPONENT", "TYPE", "STATE", "ROWS", "IN", "ROWS", "OUT", "TIME"]
    assert table[2].startswith("large      filter      OK     4        main 3, reject 1")
    assert "sub-job done: OK  done" in table
    assert table[-1].startswith("completed after")
    assert "6 components, 2 sub-jobs" in table[-1]


def test_context_groups_and_settings_lie_over_the_defaults(capsys: Capture) -> None:
    write_job("orders.yaml", ORDERS)
    rows = [
        call(capsys, "run", "orders.yaml", "--json", *more).json["components"]["large"]["rows_out"]["main"]
        for more in ([], ["--context", "strict"], ["--set", "least=20"], ["--context", "strict", "--set", "least=0"])
    ]
    assert rows == [3, 1, 2, 4]


def test_a_setting_that_the_job_neither_declares_nor_reads_is_refused_before_anything_runs(capsys: Capture) -> None:
    told = call(capsys, "run", write_job("orders.yaml", ORDERS), "--set", "leest=20")
    assert told.code == 2
    assert "the context has no `leest`, and nothing in the job reads it" in told.err
    assert "did you mean `least`?" in told.err
    for payload in (["--set", "leest=20"], ["--payload", '{"leest": 20}']):
        assert call(capsys, "preview", "orders.yaml", "large", *payload).err == told.err
        assert call(capsys, "run", "orders.yaml", *payload).err == told.err
    far = call(capsys, "run", "orders.yaml", "--set", "colour.of=red")
    assert (far.code, "the context has no `colour`" in far.err, "the context has `least`" in far.err) == (2, True, True)
    assert not Path(".penstock").exists()


def test_a_setting_may_bring_what_the_job_reads_without_declaring_it(capsys: Capture) -> None:
    tell = "components: [{name: tell, type: set_global, params: {values: {said: '{{ context.word }} {{ other }}'}}}]\n"
    for head in ("", "context: {other: x}\n"):
        ran = call(capsys, "run", write_job("tell.yaml", head + tell), "--json", "--set", "word=a", "--set", "other=b")
        assert ran.json["globals"] == {"said": "a b"}
    whole = tell.replace("{{ context.word }} {{ other }}", "{{ context }}")
    ran = call(capsys, "run", write_job("whole.yaml", "context: {other: x}\n" + whole), "--json", "--set", "word=a")
    assert ran.json["globals"] == {"said": {"other": "x", "word": "a"}}
    bare = write_job("bare.yaml", "components: [{name: tell, type: warn, params: {message: hello}}]\n")
    assert "it has no `context`" in call(capsys, "run", bare, "--set", "unread=1").err
    opened = write_job("open.yaml", "job_config: {inputs: open}\n" + Path(bare).read_text())
    assert call(capsys, "run", opened, "--set", "unread=1").code == 0


def test_an_unknown_context_group_names_those_there_are(capsys: Capture) -> None:
    told = call(capsys, "run", write_job("orders.yaml", ORDERS), "--context", "strikt")
    assert told.code == 2
    assert "the job has no context group `strikt`" in told.err
    assert "its groups are `strict`" in told.err
    refused = call(capsys, "run", write("one.yaml", "- step: start\n  tool: [{name: n, kind: noop}]"), "--context", "x")
    assert (refused.code, "a playbook has no context groups" in refused.err) == (2, True)


def test_a_failure_names_the_component_its_place_and_what_to_try(capsys: Capture) -> None:
    shown = call(capsys, "run", write_job("fails.yaml", FAILS))
    assert shown.code == 1
    assert "error in component `second`: exception" in shown.err
    assert "ValueError: no luck" in shown.err
    assert "at fails.yaml:5" in shown.err
    assert "penstock explain" in shown.err
    assert "to try again from there: penstock resume" in shown.err


def test_a_resume_keeps_what_was_ok_and_says_so(capsys: Capture) -> None:
    call(capsys, "run", write_job("fails.yaml", FAILS))
    Path("fix").touch()
    shown = call(capsys, "resume", "@last", "--json")
    assert (shown.code, shown.json["status"]) == (0, "completed")
    components = shown.json["components"]
    assert {name: (one["state"], one.get("kept", False)) for name, one in components.items()} == {
        "first": ("OK", True),
        "second": ("OK", False),
        "third": ("OK", False),
    }
    assert shown.json["metrics"]["time_to_resume_ms"] >= 0
    page = call(capsys, "show", "@last").out
    assert "resumed 1 time, with 1 sub-job kept from before" in page
    assert "first      set_global  OK (kept)" in page
    assert Path("marks").read_text(encoding="utf-8") == "xx"


def test_iterations_that_failed_under_continue_are_told_of(capsys: Capture) -> None:
    shown = call(capsys, "run", write_job("loop.yaml", LOOP))
    assert shown.code == 0
    assert "3 of 3 iterations, 1 failed" in shown.err
    assert "1 iteration failed:\n  each[#1]: exception: ValueError: bad b" in shown.err
    assert "3 iterations (1 failed)" in shown.err
    view = call(capsys, "show", "@last", "--json").json
    assert (view["status"], view["result"]) == ("completed", {"iterations": 3, "failed_iterations": 1})
    assert view["components"]["each[#1].work"]["state"] == "ERROR"
    assert view["components"]["each[#2].work"]["state"] == "OK"
    assert {(one["from"], one["to"], one["on"]): one["fired"] for one in view["edges"]}["each", "work", "iterate"] == 3


def test_explain_answers_for_components_iterations_and_sub_jobs(capsys: Capture) -> None:
    call(capsys, "run", write_job("fails.yaml", FAILS))
    told = call(capsys, "explain", "@last", "third").out
    assert told.startswith("`third` was SKIPPED  (fails.yaml:14)")
    assert "`second` ended in ERROR: exception: ValueError: no luck" in told
    assert "sub-job `first` ended OK" in call(capsys, "explain", "@last", "<first>").out
    call(capsys, "run", write_job("loop.yaml", LOOP))
    assert 'for "b"' in call(capsys, "explain", "@last", "each[1]").out
    answer = call(capsys, "explain", "@last", "each[#1].work", "--json").json
    assert (answer["node"], answer["status"]) == ("each[#1].work", "ERROR")
    refused = call(capsys, "explain", "@last", "wrk")
    assert (refused.code, "did you mean `work`?" in refused.err) == (2, True)


def test_events_logs_and_runs_speak_of_jobs(capsys: Capture) -> None:
    call(capsys, "run", write_job("orders.yaml", ORDERS), "--quiet")
    events = call(capsys, "events", "@last").out
    assert "component.started       large  filter, rows in 4" in events
    assert "rows out main 3, reject 1" in events
    assert "edge.fired              <orders>  totals (subjob_ok) done" in events
    assert "global.set              done  customers: null → 2" in events
    logs = call(capsys, "logs", "@last", "--component", "small").out
    assert "| ben" in logs
    assert "| anna" not in logs
    assert call(capsys, "logs", "@last", "--step", "nobody").out == ""
    listed = call(capsys, "runs").out
    assert listed.splitlines()[0].split()[:3] == ["RUN", "KIND", "NAME"]
    assert listed.splitlines()[1].split()[1:3] == ["job", "orders"]


def test_a_quiet_run_says_only_how_it_ended(capsys: Capture) -> None:
    shown = call(capsys, "run", write_job("orders.yaml", ORDERS), "--quiet")
    assert len(shown.err.splitlines()) == 1
    assert shown.err.startswith("completed after")


def test_a_joblet_is_not_run_by_itself(capsys: Capture) -> None:
    text = "kind: Joblet\ncomponents: [{name: a, type: noop}]\n"
    told = call(capsys, "run", write_job("part.yaml", text))
    assert told.code == 2
    assert "`part.yaml` is a joblet" in told.err
    assert not Path(".penstock").exists()


def test_problems_of_a_job_are_told_with_their_lines(capsys: Capture) -> None:
    text = "kind: Job\ncomponents:\n  - {name: a, type: fitler}\n"
    told = call(capsys, "run", write_job("bad.yaml", text))
    assert told.code == 2
    assert "bad.yaml:3:" in told.err
    assert "did you mean `filter`" in told.err
    assert not Path(".penstock").exists()


def test_a_problem_in_a_joblet_shows_the_line_of_the_joblet(capsys: Capture) -> None:
    write_job("part.yaml", "kind: Joblet\ncomponents:\n  - {name: inner, type: nopp}\n")
    write_job("job.yaml", 'kind: Job\ncomponents:\n  - {name: call, type: "@part"}\n')
    for command in (("run", "job.yaml"), ("validate", "job.yaml")):
        told = call(capsys, *command)
        assert told.code == 2
        assert "part.yaml:3:" in told.err
        assert "{name: inner, type: nopp}" in told.err


# ---- stopping


def test_an_interrupted_job_can_be_resumed() -> None:
    running = started("run", write_job("waits.yaml", WAITS), "--grace", "0")
    until_there(Path("waiting"), running)
    running.terminate()
    told = ended(running)
    assert told.code == 3
    assert "SIGTERM: stopping" in told.err
    assert "to go on where it stopped: penstock resume" in told.err
    assert process("show", "@last", "--json").json["status"] == "interrupted"
    Path("gate").touch()
    resumed = process("resume", "@last", "--json")
    assert (resumed.code, resumed.json["components"]["first"]["kept"]) == (0, True)


def test_a_job_that_is_killed_shows_as_crashed_and_goes_on() -> None:
    running = started("run", write_job("waits.yaml", WAITS))
    until_there(Path("waiting"), running)
    live = process("show", "@last", "--json").json
    assert (live["status"], live["exit_code"], live["components"]["wait"]["state"]) == ("running", None, "RUNNING")
    assert live["components"]["last"]["state"] == "WAIT"
    waits = process("explain", "@last", "last")
    assert waits.out.startswith("`last` waits")
    running.kill()
    running.communicate()
    assert "interrupted (crashed)" in process("runs").out
    assert "interrupted (crashed)" in process("show", "@last").out
    Path("gate").touch()
    assert process("resume", "@last", "--quiet").code == 0


def test_a_job_is_cancelled_on_request() -> None:
    running = started("run", write_job("waits.yaml", WAITS))
    until_there(Path("waiting"), running)
    cancelled = process("cancel", "@last", "--json")
    assert cancelled.json["status"] == "cancelled"
    Path("gate").touch()
    assert ended(running).code == 1
    assert process("show", "@last", "--json").json["components"]["last"]["state"] == "SKIPPED"


def test_a_job_that_dies_exits_with_its_own_code(capsys: Capture) -> None:
    text = "kind: Job\ncomponents:\n  - {name: end, type: die, params: {message: enough, code: 42}}\n"
    shown = call(capsys, "run", write_job("dies.yaml", text), "--json")
    assert (shown.code, shown.json["exit_code"], shown.json["status"]) == (42, 42, "failed")
    assert call(capsys, "show", "@last", "--json").json["exit_code"] == 42


# ---- one tree


def test_a_job_inside_a_playbook_is_explained_by_its_scope(capsys: Capture) -> None:
    write_job("fails.yaml", FAILS)
    write("outer.yaml", "- step: start\n  tool: [{name: load, kind: job, path: fails.yaml}]")
    assert call(capsys, "run", "outer.yaml").code == 1
    told = call(capsys, "explain", "@last", "start").out
    assert "ran the job `fails`: failed, in `start@0/load#1/second`" in told
    inner = call(capsys, "explain", "@last", "start@0/load#1/second").out
    assert "ValueError: no luck" in inner
    assert "sub-job `first` ended OK; its `subjob_ok` link fired → `second`" in inner


def test_a_playbook_inside_a_job_is_explained_by_its_component_and_step(capsys: Capture) -> None:
    write("inner.yaml", "- step: start\n  tool: [{name: boom, kind: python, code: \"raise ValueError('in')\"}]")
    write_job("job.yaml", "kind: Job\ncomponents:\n  - {name: call, type: playbook, params: {path: inner.yaml}}\n")
    assert call(capsys, "run", "job.yaml").code == 1
    told = call(capsys, "explain", "@last", "call/start").out
    assert "component `call` runs the playbook `test`" in told
    assert "ValueError: in" in told
