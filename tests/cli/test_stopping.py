"""Signals, kill -9, cancel: what stops a run, and what can be done with it afterwards. Real processes."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import WAITS, call, ended, process, started, until_there, write

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]


def _waiting(*more: str) -> subprocess.Popen[str]:
    running = started("run", write("waits.yaml", WAITS), *more)
    until_there(Path("waiting"), running)
    return running


def _until_stopping(running: subprocess.Popen[str]) -> None:
    assert running.stderr is not None
    while "stopping" not in running.stderr.readline():
        assert running.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_a_run_that_can_be_resumed(number: signal.Signals) -> None:
    running = _waiting("--grace", "0")
    running.send_signal(number)
    stopped = ended(running)
    assert stopped.code == 3
    assert f"{number.name}: stopping" in stopped.err
    assert "to go on where it stopped: penstock resume " in stopped.err
    assert process("show", "@last", "--json").json["status"] == "interrupted"
    Path("gate").touch()
    resumed = process("resume", "@last", "--json")
    assert (resumed.code, resumed.json["result"]) == (0, "finished")
    assert Path("marks").read_text() == "x"


def test_an_interrupted_run_in_json_is_still_one_object() -> None:
    running = _waiting("--json", "--grace", "0")
    running.send_signal(signal.SIGTERM)
    stopped = ended(running)
    assert (stopped.code, stopped.json["status"], stopped.json["exit_code"]) == (3, "interrupted", 3)


def test_within_its_grace_a_task_may_end_by_itself() -> None:
    running = _waiting("--grace", "30")
    running.send_signal(signal.SIGTERM)
    _until_stopping(running)
    Path("gate").touch()
    assert ended(running).code == 3
    tasks = process("show", "@last", "--json").json["steps"][1]["tasks"]
    assert [(task["name"], task["status"]) for task in tasks] == [("mark", "ok"), ("poll", "ok")]
    assert process("resume", "@last", "--json").json["result"] == "finished"


def test_a_second_signal_ends_it_at_once() -> None:
    running = _waiting("--grace", "60")
    running.send_signal(signal.SIGINT)
    _until_stopping(running)
    running.send_signal(signal.SIGINT)
    assert ended(running).code == 3
    Path("gate").touch()
    assert process("resume", "@last", "--json").json["result"] == "finished"


def test_a_killed_run_is_shown_as_crashed_and_can_be_resumed() -> None:
    running = _waiting()
    while "task.done" not in process("events", "@last").out.partition("wait@")[2]:
        assert running.poll() is None  # What is not on disk yet would be done again.
    running.kill()
    ended(running)
    assert "interrupted (crashed)" in process("runs").out
    shown = process("show", "@last", "--json").json
    assert (shown["status"], shown["exit_code"], shown["crashed"]) == ("interrupted", 3, True)
    assert [step["status"] for step in shown["steps"]] == ["done", "interrupted"]
    assert "was under way when the run stopped" in process("explain", "@last", "wait").out
    Path("gate").touch()
    resumed = process("resume", "@last")
    assert resumed.code == 0
    assert json.loads(resumed.out) == "finished"
    assert "wait: done in" in resumed.err
    assert Path("marks").read_text() == "x"
    assert process("replay", "@last").code == 0


def test_a_second_process_on_the_same_run_is_refused_and_harms_nothing() -> None:
    running = _waiting()
    second = process("resume", "@last")
    assert second.code == 2
    assert "is already being worked on by process" in second.err
    Path("gate").touch()
    assert ended(running).code == 0


def test_a_running_run_can_be_looked_at() -> None:
    running = _waiting()
    shown = process("show", "@last", "--json").json
    assert (shown["status"], shown["exit_code"]) == ("running", None)
    assert [step["status"] for step in shown["steps"]] == ["done", "running"]
    assert "so far" in process("runs").out
    following = started("events", "@last", "--follow", "--json")
    lines = started("logs", "@last", "--follow")
    Path("gate").touch()
    assert ended(running).code == 0
    followed = ended(following)
    assert followed.code == 0
    assert followed.lines[-1]["event_type"] == "playbook.completed"
    assert [line["seq"] for line in followed.lines] == list(range(1, len(followed.lines) + 1))
    assert ended(lines).code == 0


def test_cancel_asks_the_owner_and_waits_for_the_end() -> None:
    running = _waiting()
    cancelled = process("cancel", "@last", "--reason", "enough", "--json")
    assert (cancelled.code, cancelled.json["status"]) == (0, "cancelled")
    assert ended(running).code == 1
    events = process("events", "@last", "--json").lines
    cancelling = next(one for one in events if one["event_type"] == "playbook.cancelling")
    assert cancelling["payload"]["reason"] == "enough"
    assert process("resume", "@last").code == 2


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_cancel_closes_a_run_that_nobody_works_on(capsys: Capture, how: str) -> None:
    running = _waiting("--grace", "0")
    running.send_signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
    ended(running)
    assert call(capsys, "cancel", "@last").code == 0
    shown = call(capsys, "show", "@last", "--json").json
    assert shown["status"] == "cancelled"
    assert [step["status"] for step in shown["steps"]] == ["done", "failed"]
    assert shown["steps"][1]["error"]["kind"] == "cancelled"
    types = [event["event_type"] for event in call(capsys, "events", "@last", "--json").lines]
    assert types.count("task.started") == types.count("task.done")
    assert types[-1] == "playbook.cancelled"
    again = call(capsys, "cancel", "@last")
    assert (again.code, "is cancelled" in again.err) == (0, True)


def _has_written(count: int, event_type: str, capsys: Capture) -> bool:
    """Work begins a moment before its start is on the disk; a kill in between would lose the start."""
    types = [event["event_type"] for event in call(capsys, "events", "@last", "--json").lines]
    return types.count(event_type) >= count


def test_cancel_closes_the_iterations_of_a_loop_too(capsys: Capture) -> None:
    text = """
    - step: start
      loop: {in: [1, 2, 3, 4], iterator: x, spec: {mode: parallel, max_in_flight: 2}}
      tool:
        - name: poll
          kind: python
          args: {x: "{{ iter.x }}"}
          code: |
            import time
            from pathlib import Path
            if x > 1:
                Path(f"waiting{x}").touch()
                while not Path("gate").exists():
                    time.sleep(0.01)
    """
    running = started("run", write("loop.yaml", text))
    until_there(Path("waiting2"), running)
    until_there(Path("waiting3"), running)
    while not _has_written(3, "loop.iteration.started", capsys):
        assert running.poll() is None
    running.kill()
    ended(running)
    assert call(capsys, "cancel", "@last").code == 0
    (step,) = call(capsys, "show", "@last", "--json").json["steps"]
    assert (step["status"], step["iterations"]) == ("failed", {"total": 4, "done": 1, "failed": 2})
    types = [event["event_type"] for event in call(capsys, "events", "@last", "--json").lines]
    assert types.count("loop.iteration.started") == types.count("loop.iteration.done") + types.count(
        "loop.iteration.failed"
    )


def test_what_is_over_cannot_be_cancelled(capsys: Capture) -> None:
    call(capsys, "run", write("one.yaml", "- step: start\n  tool: [{name: n, kind: noop}]"))
    refused = call(capsys, "cancel", "@last")
    assert (refused.code, "is completed; there is nothing to cancel" in refused.err) == (2, True)


def test_a_parallel_loop_that_is_interrupted_goes_on_with_the_iterations_it_had_not_done() -> None:
    text = """
    - step: start
      loop: {in: "{{ range(0, 40) }}", iterator: x, spec: {mode: parallel, max_in_flight: 4}}
      tool:
        - name: mark
          kind: python
          args: {x: "{{ iter.x }}"}
          code: |
            import time
            from pathlib import Path
            if x >= 10:
                Path("waiting").touch()
                while not Path("gate").exists():
                    time.sleep(0.01)
            with open(f"mark{x}", "a") as file:
                file.write("x")
            result = x
    """
    running = started("run", write("loop.yaml", text), "--grace", "30")
    until_there(Path("waiting"), running)
    running.send_signal(signal.SIGTERM)
    assert running.stderr is not None
    while "stopping" not in running.stderr.readline():
        pass
    Path("gate").touch()
    assert ended(running).code == 3
    before = process("show", "@last", "--json").json["steps"][0]["iterations"]
    assert 10 <= before["done"] < 40
    resumed = process("resume", "@last", "--json").json
    assert resumed["result"] == {"total": 40, "done": 40, "failed": 0, "results": list(range(40))}
    assert [Path(f"mark{number}").read_text() for number in range(40)] == ["x"] * 40
