"""A run has one owner among all processes: a second one is refused while the first lives, and only then."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.chaos import trials
from tests.chaos.engines import RUN, entries_on_disk, write
from tests.chaos.zygote import HANGS_AFTER_S, Zygote

WAITS = "- {step: start, tool: [{name: a, kind: mark, file: marks}, {name: long, kind: sleep, seconds: 600}]}"


def wait_for(home: Path, event_type: str, task: str | None = None) -> None:
    deadline = time.monotonic() + HANGS_AFTER_S
    while (event_type, task) not in {(entry.type, entry.task) for entry in entries_on_disk(home)}:
        assert time.monotonic() < deadline, f"there is no {event_type}"
        time.sleep(0.005)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_second_process_is_refused_while_the_first_one_lives(
    zygote: Zygote, tmp_path: Path, end: signal.Signals
) -> None:
    file = write(tmp_path, WAITS)
    home = tmp_path / "home"
    home.mkdir()
    first = zygote.spawn(trials.start, home=str(home), file=str(file))
    wait_for(home, "task.started", "start@0/long#1")
    before = entries_on_disk(home)
    second = zygote.call(trials.resume, home=str(home))
    assert second.value["refused"] == "NotOwner"
    assert f"`{RUN}` is already being worked on by process {first}" in second.value["message"]
    assert "resumed once nobody works on it" in second.value["hint"]
    anew = zygote.call(trials.start, home=str(home), file=str(file))
    assert "there is already an execution" in anew.value["message"]
    assert entries_on_disk(home) == before
    os.kill(first, end)
    zygote.wait(first)
    file.write_text("nonsense", encoding="utf-8")  # It is pinned to the text it began with.
    again = zygote.spawn(trials.resume, home=str(home))
    wait_for(home, "playbook.resumed")
    os.kill(again, signal.SIGTERM)
    assert zygote.wait(again).value["status"] == "interrupted"


def test_two_runs_of_one_home_do_not_disturb_each_other(zygote: Zygote, tmp_path: Path) -> None:
    text = "- {step: start, loop: {in: {range: 200}, iterator: n, spec: {mode: parallel, max_in_flight: 5}}, tool: {kind: mark, file: marks, value: 1}}"
    file = write(tmp_path, text)
    home = tmp_path / "home"
    home.mkdir()
    names = [f"run-{number}" for number in range(4)]
    running = [zygote.spawn(trials.start, home=str(home), file=str(file), execution_id=name) for name in names]
    for pid in running:
        ended = zygote.wait(pid)
        assert ended.code == 0, ended.error
        assert ended.value["status"] == "completed"
    for name in names:
        entries = entries_on_disk(home, name)
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        assert entries[-1].type == "playbook.completed"
