"""After a failure a resume runs again what failed, and only that; what it may not resume it refuses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.app.embedded import Embedded
from penstock.kernel.errors import Refused
from penstock.tools.base import Call
from tests.chaos.engines import MemoryHome, Told, resumed, started, virtually, write
from tests.chaos.workshop import Workshop, behaving, marks
from tests.replaying import assert_engine_replays


class House:
    """A folder with playbooks, where `mark` with `until: there` fails until `mend` is called."""

    def __init__(self, folder: Path, text: str, **files: str) -> None:
        self.folder = folder
        self.home = MemoryHome.at(folder)
        for name, other in files.items():
            write(folder, other, f"{name}.yaml")
        self.file = write(folder, text)

    def start(self) -> Told:
        return self._with(lambda engine: started(engine, self.file))

    def resume(self) -> Told:
        return self._with(resumed)

    def _with(self, body: Any) -> Told:
        told: Told = virtually(self.home.open, body)
        return told

    def mend(self) -> None:
        (self.folder / "there").touch()

    def marks(self) -> Counter[str]:
        return marks(self.folder / "marks")


@pytest.fixture(autouse=True)
def _in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


STEP = """
- step: start
  tool:
    - {name: a, kind: mark, file: marks, value: 1, spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {seen: a}}}}]}}}
    - {name: b, kind: mark, file: marks, value: "{{ a + 1 }}", until: there}
    - {name: c, kind: mark, file: marks, value: "{{ a + b }}", spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {seen: c}}}}]}}}
  next: {arcs: [{step: after, args: {n: "{{ event.result }}"}}]}
- step: after
  tool: {name: d, kind: mark, file: marks, value: "{{ args.n * 10 }}"}
"""


def test_a_failed_step_goes_on_at_the_task_that_failed(tmp_path: Path) -> None:
    house = House(tmp_path, STEP)
    assert house.start().status == "failed"
    assert house.resume().status == "failed"
    house.mend()
    told = house.resume()
    assert (told.status, told.summary.result) == ("completed", 30)
    assert told.summary.ctx == {"seen": ["a", "c"]}
    assert house.marks() == {
        "start@0/a#1": 1,
        "start@0/b#1": 1,
        "start@1/b#2": 1,
        "start@2/b#3": 1,
        "start@2/c#1": 1,
        "after@3/d#1": 1,
    }


def test_a_resumed_task_gets_all_its_attempts_again(tmp_path: Path) -> None:
    retry = '{policy: {rules: [{when: "{{ outcome.error }}", then: {do: retry, attempts: 3}}]}}'
    house = House(tmp_path, f"- step: start\n  tool: {{name: a, kind: mark, file: marks, until: there, spec: {retry}}}")
    house.start()
    house.resume()
    assert sum(house.marks().values()) == 6


LOOP = """
- step: start
  loop: {in: [10, 20, 30, 40], iterator: n, spec: {mode: MODE, max_in_flight: 2}}
  tool:
    - {name: a, kind: mark, file: marks, spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {all: "{{ iter.n }}"}}}}]}}}
    - name: b
      kind: mark
      file: marks
      value: "{{ iter.n + 1 }}"
      until: "{{ 'there' if iter.n == 20 else 'playbook.yaml' }}"
  next: {arcs: [{step: after}]}
- step: after
  tool: {name: c, kind: mark, file: marks, value: "{{ ctx['all'] | sum }}"}
"""


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_of_a_failed_loop_only_the_iterations_that_did_not_end_run_again(tmp_path: Path, mode: str) -> None:
    house = House(tmp_path, LOOP.replace("MODE", mode))
    first = house.start()
    assert (first.status, first.summary.error["iteration"]) == ("failed", 1)  # type: ignore[index,call-overload]
    before = house.marks()
    house.mend()
    told = house.resume()
    assert (told.status, told.summary.result) == ("completed", 100)
    assert told.summary.ctx == {"all": [10, 20, 30, 40]}
    loop = next(entry for entry in told.entries if entry.type == "loop.done")
    assert b'"results":[11,21,31,41]' in loop.payload
    assert b'"done":4,"failed":0' in loop.payload
    after = house.marks()
    assert {run: after[run] for run in before} == before
    assert "start@1[1]/b#2" in after
    assert "start@1[1]/a#2" not in after
    assert "start@1[0]/a#1" not in after


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_loop_that_fails_and_is_resumed_again_and_again_ends_as_one_that_never_failed(
    tmp_path: Path, mode: str
) -> None:
    text = LOOP.replace("MODE", mode).replace("'there' if iter.n == 20 else 'playbook.yaml'", "'there-' ~ iter.n")
    house = House(tmp_path, text)
    assert house.start().status == "failed"
    for n in (30, 10, 40):
        (tmp_path / f"there-{n}").touch()
        assert house.resume().status == "failed"
    (tmp_path / "there-20").touch()
    told = house.resume()
    assert (told.status, told.summary.result, told.summary.ctx) == ("completed", 100, {"all": [10, 20, 30, 40]})
    loop = next(entry for entry in told.entries if entry.type == "loop.done")
    assert b'"results":[11,21,31,41]' in loop.payload
    assert sum(1 for run in house.marks() if "/a#" in run) == 4


SUB = """
workload: {n: 1}
workflow:
  - step: start
    tool: {name: once, kind: mark, file: marks, value: "{{ workload.n }}", set: {ctx.n: "{{ outcome.result }}"}}
    next: {spec: {mode: inclusive}, arcs: [{step: good}, {step: bad}]}
  - step: good
    tool: {name: good, kind: mark, file: marks}
  - step: bad
    tool:
      - {name: before, kind: mark, file: marks}
      - {name: not_yet, kind: mark, file: marks, until: there}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {name: end, kind: mark, file: marks, value: "{{ ctx.n + 1 }}"}
"""


def test_a_failed_sub_playbook_goes_on_inside(tmp_path: Path) -> None:
    house = House(
        tmp_path, "- step: start\n  tool: {name: call, kind: playbook, path: sub.yaml, args: {n: 5}}", sub=SUB
    )
    assert house.start().status == "failed"
    before = house.marks()
    house.mend()
    told = house.resume()
    assert (told.status, told.summary.result) == ("completed", 6)
    fresh = house.marks() - before
    assert sorted(run.rpartition("/")[2] for run in fresh) == ["end#1", "not_yet#2"]


def test_a_failed_sub_playbook_of_a_sub_playbook_goes_on_inside(tmp_path: Path) -> None:
    middle = "- step: start\n  tool: [{name: first, kind: mark, file: marks}, {name: call, kind: playbook, path: sub.yaml, args: {n: 5}}]"
    house = House(
        tmp_path,
        "- step: start\n  loop: {in: [1, 2], iterator: x}\n  tool: {name: call, kind: playbook, path: middle.yaml}",
        middle=middle,
        sub=SUB,
    )
    assert house.start().status == "failed"
    before = house.marks()
    house.mend()
    told = house.resume()
    assert told.status == "completed"
    assert told.summary.result == {"total": 2, "done": 2, "failed": 0, "results": [6, 6]}
    again = [run.rpartition("/")[2] for run in house.marks() - before if run.startswith("start@1[0]")]
    assert sorted(again) == ["end#1", "not_yet#2"]


def test_a_sub_playbook_that_went_well_and_whose_task_failed_is_run_anew(tmp_path: Path) -> None:
    fail = '{policy: {rules: [{when: "{{ not ctx.fine }}", then: {do: fail}}]}}'
    house = House(
        tmp_path,
        f"- step: start\n  tool: {{name: call, kind: playbook, path: one.yaml, spec: {fail}}}",
        one="- step: start\n  tool: {name: only, kind: mark, file: marks, spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {x: 1}}}}]}}}\n  next: {arcs: [{step: b}]}\n- step: b\n  tool: {kind: noop, value: '{{ ctx.x }}'}",
    )
    assert house.start().status == "failed"
    told = house.resume()
    assert told.status == "failed"
    assert house.marks() == {"start@0/call#1/start@0/only#1": 1, "start@1/call#2/start@0/only#1": 1}
    results = [entry.payload for entry in told.entries if entry.type == "step.done" and "b@" in entry.scope]
    assert all(b'"result":[1]' in payload for payload in results)


async def _when_there(call: Call) -> str:
    await call.clock.sleep(0.0 if Path("there").exists() else 1000.0)
    return "there"


def test_a_sub_playbook_whose_callers_time_was_over_goes_on_inside(tmp_path: Path) -> None:
    text = """
    - step: start
      spec: {policy: {lifecycle: {timeout_s: 10}}}
      loop: {in: [1, 2], iterator: n, spec: {mode: parallel, max_in_flight: 2}}
      tool: {name: call, kind: playbook, path: sub.yaml, args: {n: "{{ iter.n }}"}}
    """
    sub = """
    workload: {n: 0}
    workflow:
      - step: start
        tool: {name: first, kind: mark, file: marks}
        next: {arcs: [{step: second}]}
      - step: second
        tool: [{name: before, kind: mark, file: marks}, {name: slow, kind: when_there}, {name: after, kind: mark, file: marks, value: "{{ workload.n }}"}]
    """
    house = House(tmp_path, text, sub=sub)
    house.home.tools = Workshop(behaving("when_there", _when_there))
    first = house.start()
    assert (first.status, first.summary.error["kind"]) == ("failed", "timeout")  # type: ignore[index,call-overload]
    house.mend()
    told = house.resume()
    assert told.status == "completed"
    assert told.summary.result == {"total": 2, "done": 2, "failed": 0, "results": [1, 2]}
    ran = Counter(run.rpartition("/")[2].partition("#")[0] for run in house.marks().elements())
    assert ran == {"first": 2, "before": 2, "after": 2}
    virtually(house.home.open, assert_engine_replays)


ABORT = """
executor: {spec: {policy: {failure: {mode: fail_fast}}}}
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: bad}, {step: slow}, {step: same}]}
  - step: bad
    tool: [{kind: sleep, seconds: 3}, {name: bad, kind: mark, file: marks, until: there}]
    next: {arcs: [{step: all}]}
  - step: slow
    tool: [{name: s1, kind: mark, file: marks}, {kind: sleep, seconds: 9}, {name: s2, kind: mark, file: marks}]
    next: {arcs: [{step: all}]}
  - step: same
    tool: [{kind: sleep, seconds: 3}, {name: same, kind: mark, file: marks}]
    next: {arcs: [{step: next}]}
  - step: next
    tool: {name: next, kind: mark, file: marks}
    next: {arcs: [{step: all}]}
  - step: all
    spec: {join: [bad, slow, next]}
    tool: {name: all, kind: mark, file: marks, value: fine}
"""


def test_what_another_steps_failure_stopped_is_taken_up_and_what_ended_meanwhile_is_not_lost(tmp_path: Path) -> None:
    house = House(tmp_path, ABORT)
    first = house.start()
    assert first.status == "failed"
    assert first.summary.error["step"] == "bad"  # type: ignore[index,call-overload]
    assert not [entry for entry in first.entries if entry.type == "token.stranded"]
    house.mend()
    told = house.resume()
    assert (told.status, told.summary.result) == ("completed", "fine")
    ran = Counter(run.rpartition("/")[2].partition("#")[0] for run in house.marks().elements())
    assert ran == {"bad": 2, "s1": 1, "s2": 1, "same": 1, "next": 1, "all": 1}


def test_a_run_that_was_killed_while_it_stopped_because_of_a_failure_ends_failed_without_a_single_tool(
    tmp_path: Path,
) -> None:
    house = House(tmp_path, ABORT)
    whole = house.start()
    aborted = next(
        entry.seq for entry in whole.entries if entry.type == "next.selected" and b'"abort":true' in entry.payload
    )
    decided = next(entry.seq for entry in whole.entries[aborted:] if entry.source == "worker") - 1
    before = house.marks()
    house.home = house.home.cut(decided)
    told = house.resume()
    assert told.status == "failed"
    assert told.summary.error["step"] == "bad"  # type: ignore[index,call-overload]
    assert house.marks() == before
    house.mend()
    assert house.resume().status == "completed"


def test_a_run_that_was_killed_after_a_branch_failed_still_ends_failed_and_only_then_reopens_it(tmp_path: Path) -> None:
    text = """
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: bad}, {step: slow}]}
    - step: bad
      tool: {name: bad, kind: mark, file: marks, until: there}
    - step: slow
      tool: [{kind: sleep, seconds: 9}, {name: slow, kind: mark, file: marks}]
    """
    house = House(tmp_path, text)
    whole = house.start()
    failed_at = next(entry.seq for entry in whole.entries if entry.type == "step.failed")
    routed_at = next(entry.seq for entry in whole.entries if entry.type == "next.selected" and entry.seq > failed_at)
    house.home = house.home.cut(routed_at)
    house.mend()
    told = house.resume()
    assert told.outcome == whole.outcome
    again = house.resume()
    assert again.status == "completed"


@pytest.mark.parametrize(
    ("text", "status"),
    [("- step: start", "completed"), ("- step: start\n  tool: {kind: sleep, seconds: 9}", "cancelled")],
)
def test_a_run_that_is_over_is_not_resumed(tmp_path: Path, text: str, status: str) -> None:
    file = write(tmp_path, text)
    home = MemoryHome.at(tmp_path)

    async def cancel(run: Any) -> None:
        import asyncio

        await asyncio.sleep(1)
        await run.cancel("enough")

    async def body(engine: Embedded) -> Told:
        return await started(engine, file, None, cancel)

    told: Told = virtually(home.open, body)
    assert told.status == status
    with pytest.raises(Refused, match=f"the run is {status}"):
        virtually(home.open, resumed)
    assert home.entries() == told.entries
    assert not home.open().log.has_owner("run-1")


def test_a_failure_that_would_come_again_is_not_resumed(tmp_path: Path) -> None:
    text = """
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
    - {step: a, next: {arcs: [{step: both}]}}
    - {step: b, next: {arcs: [{step: both, when: "{{ ctx.never }}"}]}}
    - {step: both, spec: {join: [a, b]}}
    """
    house = House(tmp_path, text)
    assert house.start().status == "failed"
    with pytest.raises(Refused, match="would come again"):
        house.resume()


def test_an_unknown_run_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no run"):
        virtually(MemoryHome.at(tmp_path).open, resumed)
