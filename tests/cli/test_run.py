"""`penstock run` and `penstock resume`: inputs, outputs, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import FAILS, HELLO, PATIENCE_S, call, environment, process, write
from tests.warm import starting

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]


def test_a_completed_run_exits_0_with_the_result_on_stdout_and_words_on_stderr(capsys: Capture) -> None:
    done = call(capsys, "run", write("hello.yaml", HELLO))
    assert done.code == 0
    assert json.loads(done.out) == "hello world"
    assert "start: started" in done.err
    assert "start: done in" in done.err
    assert "start | greeting world" in done.err
    assert "completed after" in done.err


def test_the_lines_come_in_the_order_in_which_things_happened(capsys: Capture) -> None:
    said = call(capsys, "run", write("hello.yaml", HELLO)).err
    order = [
        said.index(text) for text in ("start: started", "start | greeting", "start: done", "fin: started", "fin: done")
    ]
    assert order == sorted(order)


def test_json_is_exactly_one_object_with_the_fields_scripts_read(capsys: Capture) -> None:
    done = call(capsys, "run", write("hello.yaml", HELLO), "--json")
    assert done.err == ""
    assert list(done.json) == [
        "execution_id", "kind", "name", "status", "exit_code", "error", "ctx", "result", "counts", "duration_ms",
    ]  # fmt: skip
    assert (done.json["status"], done.json["exit_code"], done.json["result"]) == ("completed", 0, "hello world")
    assert done.json["counts"] == {"steps": 2, "tasks": 2, "iterations": 0, "events": 17}


@pytest.mark.clause("P8.4")
def test_a_failed_run_exits_1_and_says_what_failed_where_and_what_to_try(capsys: Capture) -> None:
    failed = call(capsys, "run", write("fails.yaml", FAILS))
    assert (failed.code, failed.out) == (1, "")
    assert "error in step `bad`, task `boom`: exception" in failed.err
    assert "ValueError: no luck" in failed.err
    assert "fails.yaml:" in failed.err
    assert "done before it: start" in failed.err
    assert "penstock explain " in failed.err
    assert "penstock resume " in failed.err


def test_a_failed_run_in_json_has_its_error(capsys: Capture) -> None:
    failed = call(capsys, "run", write("fails.yaml", FAILS), "--json")
    assert (failed.code, failed.json["exit_code"], failed.json["status"]) == (1, 1, "failed")
    assert (failed.json["error"]["kind"], failed.json["error"]["step"]) == ("exception", "bad")


@pytest.mark.clause("P2.1")
def test_payload_goes_over_the_defaults_and_set_over_both(capsys: Capture) -> None:
    text = """
    workload: {who: world, deep: {a: 1, b: 2}, list: [1]}
    workflow:
      - step: start
        tool: [{name: n, kind: noop, value: "{{ workload }}"}]
    """
    file = write("w.yaml", text)
    Path("in.json").write_text('{"deep": {"b": 3, "c": 4}, "who": "you"}')
    done = call(
        capsys, "run", file, "--payload", "@in.json", "--set", "deep.c=[5, six]", "--set", "new.key=no", "--json"
    )
    assert done.json["result"] == {
        "who": "you",
        "deep": {"a": 1, "b": 3, "c": [5, "six"]},
        "list": [1],
        "new": {"key": "no"},
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("5.5", 5.5),
        ("true", True),
        ("", None),
        ("null", None),
        ("'5'", "5"),
        ("a b", "a b"),
        ("{a: 1}", {"a": 1}),
    ],
)
def test_the_value_of_set_is_read_as_yaml(capsys: Capture, text: str, value: object) -> None:
    file = write("w.yaml", "- step: start\n  tool: [{name: n, kind: noop, value: '{{ workload.x }}'}]")
    assert call(capsys, "run", file, "--set", f"x={text}", "--json").json["result"] == value


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "novalue"], "has no `=`"),
        (["--set", "=5"], "has no key"),
        (["--set", "a..b=5"], "empty name"),
        (["--set", "a=[1"], "cannot be read as YAML"),
        (["--payload", "[1]"], "not a JSON object but a list"),
        (["--payload", "{"], "is not JSON"),
        (["--payload", "@missing.json"], "cannot be read"),
        (["--jsno"], "did you mean `--json`"),
        (["--grace", "soon"], "--grace"),
    ],
)
def test_a_wrong_command_line_exits_2_and_starts_nothing(capsys: Capture, arguments: list[str], said: str) -> None:
    wrong = call(capsys, "run", write("hello.yaml", HELLO), *arguments)
    assert wrong.code == 2
    assert said in wrong.err
    assert not Path(".penstock").exists()


def test_a_wrong_command_line_is_one_json_object_too(capsys: Capture) -> None:
    wrong = call(capsys, "run", write("hello.yaml", HELLO), "--payload", "[1]", "--json")
    assert wrong.json["status"] == "error"
    assert wrong.json["exit_code"] == 2
    assert set(wrong.json["error"]) == {"kind", "message", "hint"}


@pytest.mark.parametrize(
    "arguments", [[], ["rnu"], ["--nope"], ["run"], ["explain", "@last"], ["keychain"], ["keychain", "get"]]
)
def test_what_is_no_command_exits_2(capsys: Capture, arguments: list[str]) -> None:
    assert call(capsys, *arguments).code == 2


def test_a_mistyped_command_is_recognised(capsys: Capture) -> None:
    assert "did you mean `run`?" in call(capsys, "rnu").err
    assert "penstock run hello.yaml" in call(capsys, "hello.yaml").err


def test_state_lies_beside_the_file_unless_it_is_said_where(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("sub").mkdir()
    file = write("sub/hello.yaml", HELLO)
    call(capsys, "run", file)
    assert Path("sub/.penstock/penstock.db").exists()
    call(capsys, "run", file, "--store", "elsewhere")
    assert Path("elsewhere/penstock.db").exists()
    monkeypatch.setenv("PENSTOCK_HOME", "by-variable")
    call(capsys, "run", file)
    assert Path("by-variable/penstock.db").exists()
    assert len(call(capsys, "runs", "--json").json["runs"]) == 1


def test_warnings_are_counted_and_strict_makes_them_errors(capsys: Capture) -> None:
    file = write("labels.yaml", "- step: start\n  tool:\n    - greet: {kind: noop, value: 1}")
    lenient = call(capsys, "run", file)
    assert lenient.code == 0
    assert f"1 warning in {file}; `penstock lint {file}` shows them" in lenient.err
    strict = call(capsys, "run", file, "--strict", "--json")
    assert strict.code == 2
    assert strict.json["problems"][0]["severity"] == "error"


def test_quiet_leaves_only_the_summary_and_the_result(capsys: Capture) -> None:
    done = call(capsys, "run", write("hello.yaml", HELLO), "--quiet")
    assert json.loads(done.out) == "hello world"
    assert "started" not in done.err


def test_a_missing_secret_stops_a_run_before_there_is_one(capsys: Capture) -> None:
    text = """
    keychain: [{name: key, kind: env, var: PENSTOCK_TEST_NOT_SET}]
    workflow:
      - step: start
        tool: [{name: n, kind: noop}]
    """
    refused = call(capsys, "run", write("k.yaml", text), "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (2, "refused")
    assert call(capsys, "runs", "--json").json["runs"] == []


def test_resume_after_a_failure_runs_only_what_failed(capsys: Capture) -> None:
    text = """
    - step: start
      tool: [{name: mark, kind: shell, command: "printf x >> marks"}]
      next: {arcs: [{step: gate}]}
    - step: gate
      tool: [{name: r, kind: files, action: read, path: gate.txt}]
      next: {arcs: [{step: fin}]}
    - step: fin
      tool: [{name: n, kind: noop, value: through}]
    """
    assert call(capsys, "run", write("gate.yaml", text)).code == 1
    Path("gate.txt").write_text("open")
    resumed = call(capsys, "resume", "@last", "--json")
    assert (resumed.code, resumed.json["status"], resumed.json["result"]) == (0, "completed", "through")
    assert Path("marks").read_text() == "x"


def test_resuming_a_completed_run_is_refused(capsys: Capture) -> None:
    call(capsys, "run", write("hello.yaml", HELLO))
    refused = call(capsys, "resume", "@last")
    assert refused.code == 2
    assert "the run is completed; there is nothing to resume" in refused.err


def test_a_failure_that_would_come_again_is_not_offered_a_resume(capsys: Capture) -> None:
    text = """
    - step: start
      tool: [{name: n, kind: noop}]
      next: {arcs: [{step: a}]}
    - step: a
      tool: [{name: n, kind: noop}]
      next: {arcs: [{step: both}, {step: b, when: "{{ workload.b }}"}]}
    - step: b
      tool: [{name: n, kind: noop}]
      next: {arcs: [{step: both}]}
    - step: both
      spec: {join: [a, b]}
      tool: [{name: n, kind: noop}]
    """
    failed = call(capsys, "run", write("s.yaml", text), "--set", "b=false")
    assert failed.code == 1
    assert "none came from `b`" in failed.err
    assert "penstock resume" not in failed.err


def test_a_large_text_as_the_result_is_printed_whole(capsys: Capture) -> None:
    file = write("big.yaml", "- step: start\n  tool: [{name: n, kind: python, code: \"result = 'x' * 3_000_000\"}]")
    done = call(capsys, "run", file, "--json")
    assert done.json["result"] == "x" * 3_000_000
    assert call(capsys, "show", "@last", "--json").json["result"] == "x" * 3_000_000


def test_what_a_tool_prints_cannot_write_to_the_terminal(capsys: Capture) -> None:
    code = "print('\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07 \\x08bell\\x07 \\u202eback')"
    file = write(
        "esc.yaml", f"- step: start\n  tool:\n    - name: p\n      kind: python\n      code: {json.dumps(code)}"
    )
    said = call(capsys, "run", file).err
    assert "start | red" in said
    assert not set("\x1b\x07\x08\u202e") & set(said)


def _piped(command: str) -> subprocess.CompletedProcess[str]:
    line = f"{sys.executable} -m penstock {command}; echo ${{PIPESTATUS[0]}} >&2"
    return subprocess.run(
        ["bash", "-c", line], check=False, capture_output=True, text=True, env=environment(), timeout=PATIENCE_S
    )


def test_a_reader_that_leaves_early_is_not_an_error() -> None:
    write(
        "many.yaml", "- step: start\n  loop: {in: '{{ range(0, 600) }}', iterator: x}\n  tool: [{name: n, kind: noop}]"
    )
    assert process("run", "many.yaml", "--json").code == 0
    reader = _piped("events @last --json | head -n 1")
    assert json.loads(reader.stdout)["event_type"] == "playbook.started"
    assert reader.stderr == "0\n"


def test_words_that_nobody_reads_do_not_change_what_becomes_of_a_run() -> None:
    write("fails.yaml", FAILS)
    assert _piped("run fails.yaml 2>&1 | true").stderr == "1\n"
    write("hello.yaml", HELLO)
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as nobody:
        assert starting("run", "hello.yaml", stdout=nobody, stderr=nobody, env=environment()).wait(PATIENCE_S) == 0
    statuses = [run["status"] for run in process("runs", "--json").json["runs"]]
    assert statuses == ["completed", "failed"]


def test_a_run_that_was_killed_before_its_first_event_is_resumed_with_its_inputs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    monkeypatch.setenv("TOKEN_OF_IT", "t0ken-of-it")

    text = """\
keychain: [{name: k, kind: env, var: TOKEN_OF_IT}]
workload: {word: default, other: 1}
workflow:
  - step: start
    tool: [{name: n, kind: noop, value: "{{ workload.word }} {{ workload.other }}"}]
"""
    file = write("late.yaml", text)
    ran = process("run", file, "--set", "word=mine", "--json")
    run = ran.json["execution_id"]
    with sqlite3.connect(folder / ".penstock" / "penstock.db") as database:
        database.execute("DELETE FROM event")
        database.execute("UPDATE execution SET status = 'running', ended_at = NULL")
    resumed = process("resume", run, "--json")
    assert (resumed.code, resumed.json["status"]) == (0, "completed"), resumed.err
    assert resumed.json["result"] == "mine 1"
    assert process("replay", run).code == 0


def test_an_error_that_no_rule_matches_has_a_line_of_its_own(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    rule = "{ when: \"{{ outcome.error.kind == 'other' }}\", then: { do: retry, attempts: 2 } }"
    text = f"- step: start\n  tool: {{ kind: python, code: 1/0, spec: {{ policy: {{ rules: [{rule}] }} }} }}\n"
    said = call(capsys, "run", write("p.yaml", text))
    assert said.code == 0
    assert "attempt 1: no rule of its policy matches, so it goes on: ZeroDivisionError: division by zero" in said.err
