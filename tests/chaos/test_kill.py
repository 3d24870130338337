"""kill -9 at every event of a small run: resuming gives what an unbroken run would have given."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import decode
from penstock.ports.wire import step_run_of
from penstock.views.canonical import canonical
from tests.chaos import playbooks, trials
from tests.chaos.engines import RUN, entries_on_disk, write
from tests.chaos.workshop import Workshop, marks
from tests.chaos.zygote import HANGS_AFTER_S, Zygote
from tests.depth import times
from tests.replaying import assert_replays

KILLED = -9
STRIDE = max(1, 16 // times(1))
"""Every so manyth event, and every one with PENSTOCK_TEST_DEPTH=16."""
ITERATIONS = times(1_000)


class Trial:
    """One run in a folder of its own. All of them run the same file, as its path is part of what is compared."""

    def __init__(self, zygote: Zygote, folder: Path, file: Path) -> None:
        folder.mkdir()
        self.zygote = zygote
        self.folder = folder
        self.file = file

    def start(self, **death: int) -> Any:
        return self.zygote.call(trials.start, home=str(self.folder), file=str(self.file), **death)

    def resume(self, **death: int) -> Any:
        return self.zygote.call(trials.resume, home=str(self.folder), **death)

    def entries(self) -> list[Entry]:
        return entries_on_disk(self.folder)

    def marks(self) -> Counter[str]:
        return marks(self.folder / "marks")

    def timeline(self) -> list[JsonMap]:
        return list(canonical(self.entries(), RUN))


def ended_ok(entries: list[Entry]) -> set[str]:
    return {
        str(entry.task)
        for entry in entries
        if entry.type == "task.done" and decode(entry.payload)["outcome"]["status"] == "ok"  # type: ignore[index,call-overload]
    }


def leaves(timeline: list[JsonMap]) -> set[str]:
    """The task runs that mark: all but those of sub-playbooks."""
    return {
        str(line["task_run_id"])
        for line in timeline
        if line["event_type"] == "task.started" and line["payload"]["kind"] != "playbook"  # type: ignore[index,call-overload]
    }


@pytest.mark.parametrize(("moment", "durability"), [("recorded", "grouped"), ("durable", "strict")])
def test_a_run_that_is_killed_at_any_event_and_resumed_ends_as_if_nothing_had_happened(
    zygote: Zygote, tmp_path: Path, moment: str, durability: str
) -> None:
    file = playbooks.small(tmp_path, durability)
    whole = Trial(zygote, tmp_path / "whole", file)
    unbroken = whole.start()
    assert unbroken.code == 0, unbroken.error
    assert unbroken.value["status"] == "completed"
    timeline, events = whole.timeline(), len(whole.entries())
    seen: set[int] = set()
    for at in range(1 if moment == "recorded" else 1 + STRIDE // 2, 1 + events, STRIDE):
        trial = Trial(zygote, tmp_path / f"killed-{at}", file)
        first = trial.start(**{moment: at})
        assert first.code == KILLED, first.error
        kept, before = trial.entries(), trial.marks()
        scheduled = {entry.scope for entry in kept if entry.type == "step.scheduled"}
        assert {step_run_of(run.rpartition("/")[0]) for run in before} <= scheduled, (
            "an effect before its cause was safe"
        )
        if not kept or (kept[-1].type, kept[-1].scope) == ("playbook.completed", ""):
            continue  # Nothing was acknowledged, or everything: there is nothing to go on with.
        if moment == "durable" and len(kept) in seen:
            continue  # Acknowledged together with the one before.
        seen.add(len(kept))
        again = trial.resume()
        assert again.code == 0, (at, again.error)
        assert again.value == unbroken.value, at
        assert trial.timeline() == timeline, at
        after = trial.marks()
        assert {run: after[run] for run in ended_ok(kept) if run in after} == {
            run: before[run] for run in ended_ok(kept) if run in before
        }
        assert set(after) == leaves(timeline)
        assert max(after.values()) <= 2
        if at % 8 == 0:
            assert_replays(trial.folder, tools=Workshop())


LOOP = f"""
- step: start
  loop: {{in: {{range: {ITERATIONS}}}, iterator: n, spec: {{mode: parallel, max_in_flight: 20}}}}
  tool:
    - name: work
      kind: mark
      file: marks
      value: "{{{{ iter.n * 2 }}}}"
      spec: {{policy: {{rules: [{{else: {{then: {{do: continue, append_ctx: {{seen: "{{{{ iter.n }}}}"}}}}}}}}]}}}}
    - {{name: more, kind: noop, value: "{{{{ _prev + 1 }}}}"}}
  next: {{arcs: [{{step: end, args: {{results: "{{{{ event.result.results }}}}"}}}}]}}
- step: end
  tool: {{kind: noop, value: "{{{{ args.results | sum }}}}"}}
"""


@pytest.mark.parametrize("seed", range(times(1)))
def test_a_large_run_that_is_killed_again_and_again_loses_nothing_and_repeats_only_what_was_under_way(
    zygote: Zygote, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    trial = Trial(zygote, tmp_path / "home", write(tmp_path, LOOP))
    kept: list[dict[str, int]] = []
    for number in range(4):
        if number == 0:
            pid = zygote.spawn(trials.start, home=str(trial.folder), file=str(trial.file))
        else:
            pid = zygote.spawn(trials.resume, home=str(trial.folder))
        wait_for_owner(trial.folder)
        time.sleep(chance.uniform(0.01, 0.05))
        os.kill(pid, signal.SIGKILL)
        last = zygote.wait(pid)
        if last.code != KILLED:
            break  # It was too fast for us.
        done, traces = ended_ok(trial.entries()), trial.marks()
        kept.append({run: traces[run] for run in done if run in traces})
    else:
        last = trial.resume()
    assert last.code == 0, last.error
    assert (last.value["status"], last.value["result"]) == ("completed", sum(2 * n + 1 for n in range(ITERATIONS)))
    assert last.value["ctx"] == {"seen": list(range(ITERATIONS))}
    traces = trial.marks()
    assert len(traces) == ITERATIONS
    for before in kept:
        assert {run: traces[run] for run in before} == before
    ends = [entry.scope for entry in trial.entries() if entry.type == "loop.iteration.done"]
    assert len(set(ends)) == len(ends) == ITERATIONS


def wait_for_owner(folder: Path) -> None:
    lock = folder / ".penstock" / "locks" / f"{RUN}.lock"
    deadline = time.monotonic() + HANGS_AFTER_S
    while not lock.exists():
        assert time.monotonic() < deadline, "nobody took the run"
        time.sleep(0.002)
