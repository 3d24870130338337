"""runs, show, events, logs, explain, replay: reading what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import FAILS, HELLO, call, write

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]


def test_runs_lists_the_newest_first_with_labels_and_states(capsys: Capture) -> None:
    call(capsys, "run", write("hello.yaml", HELLO), "--name", "first")
    call(capsys, "run", write("fails.yaml", FAILS))
    runs = call(capsys, "runs", "--json").json["runs"]
    assert [(run["status"], run["label"], run["crashed"]) for run in runs] == [
        ("failed", None, False),
        ("completed", "first", False),
    ]
    assert len(call(capsys, "runs", "--json", "--limit", "1").json["runs"]) == 1
    listed = call(capsys, "runs").out.splitlines()
    assert listed[0].split() == ["RUN", "KIND", "NAME", "LABEL", "STATUS", "STARTED", "DURATION", "EVENTS"]
    assert "failed" in listed[1]
    assert "first" in listed[2]


def test_a_run_is_named_by_its_id_a_beginning_of_it_its_label_or_last(capsys: Capture) -> None:
    file = write("hello.yaml", HELLO)
    first = call(capsys, "run", file, "--json", "--name", "monday").json["execution_id"]
    last = call(capsys, "run", file, "--json").json["execution_id"]
    found = [
        call(capsys, "show", name, "--json").json["execution_id"]
        for name in (first, first[:8], "monday", "@last", last)
    ]
    assert found == [first, first, first, last, last]


def test_a_run_that_is_not_there_is_refused_with_those_that_are(capsys: Capture) -> None:
    run = call(capsys, "run", write("hello.yaml", HELLO), "--json").json["execution_id"]
    refused = call(capsys, "show", "nonesuch")
    assert refused.code == 2
    assert run in refused.err
    ambiguous = call(capsys, "show", "")
    assert ambiguous.code == 2


def test_without_a_state_folder_the_message_says_where_was_looked(capsys: Capture) -> None:
    refused = call(capsys, "runs")
    assert refused.code == 2
    assert str(Path.cwd() / ".penstock") in refused.err
    assert "--store" in refused.err


def test_the_state_folder_used_last_below_here_is_found_again(capsys: Capture) -> None:
    for name in ("a", "b"):
        Path(name).mkdir()
        call(capsys, "run", write(f"{name}/{name}.yaml", HELLO), "--name", name)
    assert call(capsys, "runs", "--json").json["runs"][0]["label"] == "b"
    call(capsys, "run", "a/a.yaml", "--name", "again")
    assert call(capsys, "runs", "--json").json["runs"][0]["label"] == "again"


def test_remembering_where_state_lies_may_fail(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("in-the-way").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("in-the-way").absolute()))
    assert call(capsys, "run", write("hello.yaml", HELLO)).code == 0
    assert call(capsys, "runs").code == 0


def test_show_in_json_is_the_run_and_its_steps(capsys: Capture) -> None:
    ran = call(capsys, "run", write("fails.yaml", FAILS), "--json").json
    shown = call(capsys, "show", "@last", "--json").json
    assert {key: shown[key] for key in ran} == ran
    assert [(step["step"], step["visit"], step["status"]) for step in shown["steps"]] == [
        ("start", 1, "done"),
        ("bad", 1, "failed"),
    ]
    (task,) = shown["steps"][1]["tasks"]
    assert (task["name"], task["attempts"], task["status"], task["error"]["kind"]) == ("boom", 1, "error", "exception")


def test_show_for_people_has_steps_tasks_error_and_result(capsys: Capture) -> None:
    call(capsys, "run", write("hello.yaml", HELLO))
    shown = call(capsys, "show", "@last").out
    assert "completed after" in shown
    assert "start@0" in shown
    assert "greet (python) ok" in shown
    assert "hello world" in shown
    call(capsys, "run", write("fails.yaml", FAILS))
    assert "no luck" in call(capsys, "show", "@last").out


def test_events_as_json_are_envelopes_one_a_line(capsys: Capture) -> None:
    run = call(capsys, "run", write("hello.yaml", HELLO), "--json").json
    events = call(capsys, "events", "@last", "--json").lines
    assert len(events) == run["counts"]["events"]
    wanted = {
        "event_id",
        "event_type",
        "ts",
        "execution_id",
        "step_run_id",
        "task_run_id",
        "trace_id",
        "parent_id",
        "payload",
    }
    assert all(wanted <= set(event) for event in events)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_events_for_people_are_one_line_each(capsys: Capture) -> None:
    call(capsys, "run", write("fails.yaml", FAILS))
    lines = call(capsys, "events", "@last").out.splitlines()
    assert any("task.done" in line and "no luck" in line for line in lines)
    assert any("next.selected" in line and "(unhandled)" in line for line in lines)


def test_canonical_events_of_equal_runs_are_equal(capsys: Capture) -> None:
    file = write("hello.yaml", HELLO)
    printed, hashes = [], []
    for _ in range(2):
        call(capsys, "run", file)
        printed.append(call(capsys, "events", "@last", "--canonical").out)
        hashes.append(call(capsys, "events", "@last", "--canonical", "--hash").out)
    assert printed[0] == printed[1]
    assert hashes[0] == hashes[1]
    assert call(capsys, "events", "@last", "--canonical", "--follow").code == 2
    assert call(capsys, "events", "@last", "--hash").code == 2


def test_logs_have_what_the_tools_said_and_where(capsys: Capture) -> None:
    call(capsys, "run", write("hello.yaml", HELLO))
    assert call(capsys, "logs", "@last").out.endswith("start@0 | greeting world\n")
    assert call(capsys, "logs", "@last", "--json").lines[0]["line"] == "greeting world"
    assert call(capsys, "logs", "@last", "--step", "fin").out == ""
    call(capsys, "run", write("fails.yaml", FAILS))
    silent = call(capsys, "logs", "@last")
    assert (silent.code, "said nothing" in silent.err) == (0, True)


def test_explain_tells_why_in_words_and_in_json(capsys: Capture) -> None:
    call(capsys, "run", write("fails.yaml", FAILS))
    why = call(capsys, "explain", "@last", "after")
    assert why.code == 0
    assert "`after` never ran  (fails.yaml:" in why.out
    assert "`bad@1` failed: an arc without `when` does not take a failure" in why.out
    answer = call(capsys, "explain", "@last", "bad", "--json").json
    assert answer["status"] == "failed"
    assert answer["because"][0]["title"] == "why it ran"
    assert call(capsys, "explain", "@last", "nonesuch").code == 2


def test_explain_speaks_of_the_document_as_it_was_when_the_run_started(capsys: Capture) -> None:
    call(capsys, "run", write("fails.yaml", FAILS))
    Path("fails.yaml").unlink()
    assert "an arc without `when`" in call(capsys, "explain", "@last", "after").out


@pytest.mark.clause("P9.3")
def test_replay_decides_the_same_again(capsys: Capture) -> None:
    for text in (HELLO, FAILS):
        call(capsys, "run", write("p.yaml", text))
        same = call(capsys, "replay", "@last", "--json")
        assert (same.code, same.json["status"], same.json["difference"]) == (0, "same", None)
    assert "every decision is the same" in call(capsys, "replay", "@last").err


def test_a_run_of_many_steps_is_shown_without_flooding(capsys: Capture) -> None:
    text = """
    - step: start
      tool:
        - name: n
          kind: noop
          spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {n: "{{ (ctx.n | default(0)) + 1 }}"}}}}]}}
      next: {arcs: [{step: start, when: "{{ ctx.n < 300 }}"}]}
    """
    call(capsys, "run", write("many.yaml", text), "--json")
    assert "100 earlier step runs" in call(capsys, "show", "@last").out
    assert len(call(capsys, "show", "@last", "--json").json["steps"]) == 300


def test_show_tells_what_the_engine_warned_of(capsys: Capture) -> None:
    step = "- step: start\n  tool: [{name: a, kind: python, code: \"print('warning: own'); result = {}\"}]\n  set: {ctx.y: '{{ a.nope }}'}"
    call(capsys, "run", write("undefined.yaml", step), "--quiet")
    shown = call(capsys, "show", "@last")
    assert "warnings\n  start@0: `ctx.y`, written by `set` of step `start`, is null: `a.nope` is undefined" in shown.out
    assert "own" not in shown.out.partition("warnings\n")[2]
    (told,) = call(capsys, "show", "@last", "--json").json["warnings"]
    assert (told["scope"], told["count"]) == ("start@0", 1)
    call(capsys, "run", write("plain.yaml", HELLO), "--quiet")
    assert "warnings" not in call(capsys, "show", "@last").out
    assert call(capsys, "show", "@last", "--json").json["warnings"] == []
