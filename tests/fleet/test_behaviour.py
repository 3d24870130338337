"""What a fleet does on its good and bad days, in virtual time."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock.kernel.errors import Refused
from penstock.kernel.facts import ExecutionEnded
from penstock.ports.log import Entry, NotOwner
from penstock.ports.results import decode
from penstock.server.execution_owner import Submission
from penstock.server.server_runs import ServerRun
from penstock.views.bars import Bar
from penstock.views.run_view import RunView
from penstock.views.timeline import GOES_ON, Holder, open_bars, window_of
from penstock.worker.workforce import StepWork
from tests.engine import document
from tests.fleet.scene import Fleet, on_fleet


def filed(tmp_path: Path, text: str, name: str = "p.yaml") -> Path:
    file = tmp_path / name
    file.write_text(document(text), encoding="utf-8")
    return file


def payload(entry: Entry) -> Any:
    return decode(entry.payload)


SLEEP = """
- step: start
  tool:
  - {name: wait, kind: sleep, seconds: 60}
"""


REFERENCES = """
- step: start
  tool:
  - {name: big, kind: python, code: "result = {'rows': ['x' * 100] * 20000}"}
  - {name: wait, kind: sleep, seconds: 1}
  next: {arcs: [{step: read, args: {big: "{{ start._ref }}"}}]}
- step: read
  loop: {in: [1, 2, 3], iterator: n}
  spec: {loop_mode: fanout, fanout: {range_size: 1}}
  tool:
  - {name: again, kind: artifact, result_ref: "{{ args.big }}"}
  - {name: stored, kind: artifact, action: put, data: {n: "{{ iter.n }}", rows: "{{ again.slept }}"}}
  - {name: read, kind: artifact, result_ref: "{{ stored.ref }}"}
  next: {arcs: [{step: told, args: {all: "{{ read._ref }}"}}]}
- step: told
  tool: {kind: artifact, result_ref: "{{ args.all }}"}
"""


MARKS = """
workload: {at: ""}
workflow:
- step: start
  tool:
  - {name: mark, kind: python, args: {at: "{{ workload.at }}"}, code: "import pathlib; pathlib.Path(at).touch()"}
"""


def test_every_worker_reads_results_by_their_references(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> Any:
        await scene.serve()
        for name in ("w1", "w2", "w3"):
            scene.work(name)
        run = await scene.submit(filed(tmp_path, REFERENCES))
        ended = await scene.ended(run)
        assert ended.status == "completed", ended
        await scene.check_replay(run)
        done = [payload(one) for one in scene.entries(run) if one.type == "step.done"]
        return done[-1]["result"]["results"]

    assert on_fleet(tmp_path, scenario) == [{"n": n, "rows": 1.0} for n in (1, 2, 3)]


# ---- leases, as the log tells of them


def shown_leases(entries: list[Entry], lane: str) -> list[tuple[str | None, str, str]]:
    """The lease bars of a lane, in their order; each has begun when the one before it was over."""
    bars = [bar for bar in RunView.of(entries).executions[""].lanes[lane].bars if bar.kind == "lease"]
    assert all(one.since <= one.until <= other.since for one, other in pairwise(bars))
    return [(bar.worker, bar.status, bar.label) for bar in bars]


@pytest.mark.parametrize("is_killed", [True, False])
def test_the_timeline_has_both_leases_of_a_step_run_whose_worker_left_and_another_went_on(
    tmp_path: Path, is_killed: bool
) -> None:
    async def scenario(scene: Fleet) -> list[Entry]:
        await scene.serve()
        first = scene.work("w1")
        run = await scene.submit(filed(tmp_path, SLEEP))
        await scene.until(lambda: any(one.type == "task.started" for one in scene.entries(run)))
        if is_killed:
            await scene.kill_worker("w1")
        else:
            await first.worker.drain(0.0)
        scene.work("w2")
        assert (await scene.ended(run)).status == "completed"
        return scene.entries(run)

    entries = on_fleet(tmp_path, scenario)
    assert shown_leases(entries, "start") == [("w1", "failed", "start, lost or given back"), ("w2", "ok", "start")]
    (lease,) = [bar for bar in RunView.of(entries).workers["w2"].bars if bar.kind == "lease"]
    # It began the task anew; that it had begun is told by the end of the task only.
    assert lease.until - lease.since == pytest.approx(60, abs=1)
    # Until then the log knows the first one only; who holds the lease now is known to those who hand it out.
    begun = next(at for at, one in enumerate(entries, 1) if one.type == "task.started")
    assert [(bar.worker, bar.label, bar.until) for bar in open_leases(entries[:begun], {})] == [
        ("w1", "start", GOES_ON)
    ]
    now = {"start@0": Holder("w2", entries[begun - 1].ts + 20)}
    assert [(bar.worker, bar.label, bar.until) for bar in open_leases(entries[:begun], now)] == [
        ("w1", "start, lost or given back", now["start@0"].since),
        ("w2", "start", GOES_ON),
    ]


def open_leases(entries: list[Entry], holders: dict[str, Holder]) -> list[Bar]:
    view = RunView.of(entries)
    window = window_of(view, view.executions[""], None, None, 5000, entries[-1].ts + 30, holders)
    return [bar for _, bar in open_bars(view.executions[""], window) if bar.kind == "lease"]


def test_a_run_that_is_cancelled_while_a_worker_has_it_ends_as_cancelled(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> list[Entry]:
        server = await scene.serve()
        scene.work("w1")
        run = await scene.submit(filed(tmp_path, SLEEP))
        await scene.until(lambda: any(one.type == "task.started" for one in scene.entries(run)))
        await server.hosting.ask(run, "cancel", {"reason": "enough"})
        assert (await scene.ended(run, 30)).status == "cancelled"
        await scene.check_replay(run)
        assert not await server.dispatch.leases()
        return scene.entries(run)

    types = [entry.type for entry in on_fleet(tmp_path, scenario)]
    assert types.count("task.started") == types.count("task.done") == 1


def test_a_run_that_is_cancelled_before_any_worker_takes_it_ends_as_cancelled(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        server = await scene.serve()
        run = await scene.submit(filed(tmp_path, SLEEP))
        await asyncio.sleep(1)
        await server.hosting.ask(run, "cancel", {})
        assert (await scene.ended(run, 30)).status == "cancelled"
        await scene.check_replay(run)

    on_fleet(tmp_path, scenario)


def test_a_cancelled_run_whose_worker_is_dead_ends_all_the_same(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        server = await scene.serve()
        scene.work("w1")
        run = await scene.submit(filed(tmp_path, SLEEP))
        await scene.until(lambda: any(one.type == "task.started" for one in scene.entries(run)))
        await scene.kill_worker("w1")
        await server.hosting.ask(run, "cancel", {})
        assert (await scene.ended(run, 60)).status == "cancelled"
        await scene.check_replay(run)

    on_fleet(tmp_path, scenario)


def test_a_fanned_out_loop_that_is_cancelled_has_all_its_ranges_back(tmp_path: Path) -> None:
    text = """
    - step: start
      spec: {loop_mode: fanout, fanout: {range_size: 3}}
      loop: {in: {range: 100}, iterator: i}
      tool:
      - {name: wait, kind: sleep, seconds: 2}
    """

    async def scenario(scene: Fleet) -> None:
        server = await scene.serve()
        scene.work("w1")
        scene.work("w2")
        run = await scene.submit(filed(tmp_path, text))
        await asyncio.sleep(9)
        await server.hosting.ask(run, "cancel", {})
        assert (await scene.ended(run, 30)).status == "cancelled"
        types = [one.type for one in scene.entries(run)]
        assert types.count("loop.shard.done") >= 1
        assert not await server.dispatch.leases()
        await scene.check_replay(run)

    on_fleet(tmp_path, scenario)


@pytest.mark.clause("F3.1")
def test_a_step_whose_workers_die_again_and_again_fails_and_says_so(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> Any:
        await scene.serve()
        run = await scene.submit(filed(tmp_path, SLEEP))
        for number in range(4):
            scene.work(f"w{number}")
            await scene.until(lambda number=number: scene.workers[f"w{number}"].worker.lease_runs != {})  # type: ignore[misc]
            await scene.kill_worker(f"w{number}")
        assert (await scene.ended(run, 120)).status == "failed"
        await scene.check_replay(run)
        return payload(scene.entries(run)[-1])

    error = on_fleet(tmp_path, scenario)["error"]
    assert error["kind"] == "worker_lost"
    assert "given to workers 4 times" in error["message"]
    assert ExecutionEnded  # The last entry is the end of the execution.


@pytest.mark.clause("F3.1")
def test_elements_whose_worker_died_are_done_by_another_and_each_counts_once(tmp_path: Path) -> None:
    text = """
    - step: start
      spec: {loop_mode: fanout, fanout: {range_size: 10}}
      loop: {in: {range: 60}, iterator: i}
      tool:
      - {name: wait, kind: sleep, seconds: 1}
      - {name: out, kind: noop, value: "{{ iter.shard_id }}"}
    """

    async def scenario(scene: Fleet) -> Any:
        await scene.serve()
        scene.work("w1")
        scene.work("w2")
        run = await scene.submit(filed(tmp_path, text))
        await asyncio.sleep(6)
        await scene.kill_worker("w1")
        assert (await scene.ended(run, 300)).status == "completed"
        await scene.check_replay(run)
        ends = [payload(one) for one in scene.entries(run) if one.type == "loop.done"]
        returned = [payload(one) for one in scene.entries(run) if one.type == "loop.shard.returned"]
        assert {one["reason"] for one in returned} == {"lost"}
        return ends[0]["result"]

    result = on_fleet(tmp_path, scenario)
    assert (result["total"], result["done"], result["failed"]) == (60, 60, 0)
    assert result["results"] == [f"start@0[{index}]" for index in range(60)]


def test_a_worker_that_is_drained_gives_back_what_it_cannot_finish_and_nothing_is_lost(tmp_path: Path) -> None:
    text = """
    - step: start
      spec: {loop_mode: fanout, fanout: {range_size: 50}}
      loop: {in: {range: 50}, iterator: i}
      tool:
      - {name: wait, kind: sleep, seconds: 1}
    """

    async def scenario(scene: Fleet) -> None:
        await scene.serve()
        first = scene.work("w1")
        run = await scene.submit(filed(tmp_path, text))
        await asyncio.sleep(10)
        await first.worker.drain(0.0)
        await first.task
        scene.workers.pop("w1")
        scene.work("w2")
        assert (await scene.ended(run, 300)).status == "completed"
        returned = [payload(one) for one in scene.entries(run) if one.type == "loop.shard.returned"]
        assert {(one["reason"], one["counts"]) for one in returned} == {("returned", False)}
        done = [payload(one) for one in scene.entries(run) if one.type == "loop.shard.done"]
        assert sum(one["done"] for one in done) == 50
        first.factory.close()

    on_fleet(tmp_path, scenario)


def test_a_huge_loop_delays_the_step_of_another_run_by_less_than_a_second(tmp_path: Path) -> None:
    huge = """
    - step: start
      spec: {loop_mode: fanout}
      loop: {in: {range: 100000}, iterator: i}
      tool:
      - {name: wait, kind: sleep, seconds: 0.2}
    """
    small = """
    - step: start
      tool:
      - {name: out, kind: noop}
    """

    async def scenario(scene: Fleet) -> float:
        await scene.serve()
        scene.work("w1", slots=1)
        big = await scene.submit(filed(tmp_path, huge))
        await asyncio.sleep(60)
        loop = asyncio.get_running_loop()
        began = loop.time()
        other = await scene.submit(filed(tmp_path, small, "other.yaml"))
        await scene.until(lambda: any(one.type == "task.started" for one in scene.entries(other)))
        took = loop.time() - began
        await next(iter(scene.servers.values())).hosting.ask(big, "cancel", {})
        await scene.ended(big)
        return took

    assert on_fleet(tmp_path, scenario) < 1.0


def test_nothing_new_is_started_before_what_was_done_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should the new work bring the worker down, the old is not lost with it."""

    async def scenario(scene: Fleet) -> None:
        await scene.serve("s1")
        working = scene.work("w1", slots=1)
        intake, stored = working.worker.intake, asyncio.Event()
        say = intake.say

        async def slowly(*said: Any) -> bool:
            await stored.wait()
            return await say(*said)

        monkeypatch.setattr(intake, "say", slowly)
        file = filed(tmp_path, MARKS)
        marks = [tmp_path / "first", tmp_path / "second"]
        runs = [await scene.submit(file, {"at": str(mark)}) for mark in marks]
        try:
            await scene.until(lambda: any(mark.exists() for mark in marks), 60)
            await scene.until(
                lambda: len(working.worker.lease_runs) == 2, 60
            )  # The slot is free, and the next work taken,
            await asyncio.sleep(5)
            assert sum(mark.exists() for mark in marks) == 1  # but not begun.
        finally:
            stored.set()
        for run in runs:
            assert (await scene.ended(run, 60)).status == "completed"

    on_fleet(tmp_path, scenario)


def test_submitting_twice_with_one_key_makes_one_run(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        server = await scene.serve("s1")
        scene.work("w1")
        pinned = server.documents.open(filed(tmp_path, SLEEP))
        runs = await asyncio.gather(
            *(server.hosting.submit(Submission(pinned, {"event": number}, key="once")) for number in range(8))
        )
        assert len(set(runs)) == 1
        assert (await scene.ended(runs[0])).status == "completed"
        assert len(scene.log.headers()) == 1

    on_fleet(tmp_path, scenario)


def test_two_servers_share_the_runs_and_the_one_that_is_left_takes_them_all(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        first = await scene.serve("s1")
        second = await scene.serve("s2")
        scene.work("w1", slots=20)
        await scene.until(lambda: len(first.hosting.owned) == len(second.hosting.owned) == 128, 60)
        pinned = first.documents.open(filed(tmp_path, SLEEP))
        runs = [await server.hosting.submit(Submission(pinned, {})) for server in (first, second) for _ in range(4)]
        await asyncio.sleep(5)
        assert len(first.hosting.hosted) == len(second.hosting.hosted) == 4
        await scene.kill_server("s1")
        for run in runs:
            assert (await scene.ended(run, 300)).status == "completed"
            starts = [one for one in scene.entries(run) if one.type == "task.started"]
            assert len(starts) == 1  # The worker went on, and nothing was done twice.
            await scene.check_replay(run)

    on_fleet(tmp_path, scenario)


def test_a_failed_run_is_resumed_where_it_failed(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    text = f"""
    - step: start
      tool:
      - {{name: once, kind: noop, value: 1}}
      - name: fails
        kind: python
        code: |
          import os
          if not os.path.exists({str(flag)!r}):
              raise RuntimeError("not yet")
          result = 2
    """

    async def scenario(scene: Fleet) -> None:
        server = await scene.serve()
        scene.work("w1")
        run = await scene.submit(filed(tmp_path, text))
        assert (await scene.ended(run)).status == "failed"
        flag.write_text("")
        await server.hosting.ask(run, "resume", {})
        await scene.until(lambda: scene.header(run).status == "completed", 60)
        tasks = [payload(one)["task"] for one in scene.entries(run) if one.type == "task.done"]
        assert tasks == ["once", "fails", "fails"]
        await scene.check_replay(run)

    on_fleet(tmp_path, scenario)


def test_work_goes_to_the_pool_that_the_step_names(tmp_path: Path) -> None:
    text = """
    executor: {kind: distributed, spec: {pool: big}}
    workflow:
    - step: start
      tool: [{name: a, kind: noop}]
      next: {arcs: [{step: other}]}
    - step: other
      spec: {pool: small}
      tool: [{name: b, kind: noop}]
    """

    async def scenario(scene: Fleet) -> list[str | None]:
        await scene.serve()
        scene.work("b1", pool="big")
        scene.work("s1", pool="small")
        run = await scene.submit(filed(tmp_path, text))
        assert (await scene.ended(run)).status == "completed"
        return [one.worker for one in scene.entries(run) if one.type == "task.done"]

    assert on_fleet(tmp_path, scenario) == ["b1", "s1"]


def test_a_step_goes_only_to_a_worker_that_has_the_labels_it_needs(tmp_path: Path) -> None:
    text = """
    - step: start
      spec: {needs: [gpu]}
      tool: [{name: a, kind: noop}]
    """

    async def scenario(scene: Fleet) -> list[str | None]:
        await scene.serve()
        scene.work("plain")
        run = await scene.submit(filed(tmp_path, text))
        await asyncio.sleep(30)
        assert scene.header(run).status == "running"
        scene.work("able", labels=frozenset({"gpu"}))
        assert (await scene.ended(run)).status == "completed"
        return [one.worker for one in scene.entries(run) if one.type == "task.done"]

    assert on_fleet(tmp_path, scenario) == ["able"]


def test_no_more_steps_are_worked_on_at_a_time_than_their_limit_allows(tmp_path: Path) -> None:
    text = """
    - step: start
      spec: {concurrency: {warehouse: 2}}
      tool: [{name: a, kind: sleep, seconds: 3}]
    """

    async def scenario(scene: Fleet) -> list[tuple[float, float]]:
        await scene.serve()
        scene.work("w1", slots=8)
        file = filed(tmp_path, text)
        runs = [await scene.submit(file) for _ in range(6)]
        spans = []
        for run in runs:
            assert (await scene.ended(run)).status == "completed"
            times = {one.type: one.ts for one in scene.entries(run)}
            spans.append((times["task.started"], times["task.done"]))
        return spans

    spans = on_fleet(tmp_path, scenario)
    for begun, _ in spans:
        assert sum(other <= begun < end for other, end in spans) <= 2


def test_a_worker_that_lives_and_makes_no_progress_loses_the_step(tmp_path: Path) -> None:
    text = """
    - step: start
      spec: {policy: {lifecycle: {stall_s: 20}}}
      tool: [{name: a, kind: sleep, seconds: 1000}]
    """

    async def scenario(scene: Fleet) -> Any:
        await scene.serve()
        scene.work("w1")
        run = await scene.submit(filed(tmp_path, text))
        assert (await scene.ended(run, 400)).status == "failed"
        return payload(scene.entries(run)[-1])

    assert on_fleet(tmp_path, scenario)["error"]["kind"] == "worker_lost"


POISON = """
- step: start
  spec: {loop_mode: fanout, fanout: {range_size: 1, allow_partial: true}}
  loop: {in: {range: 3}, iterator: n}
  tool:
  - {name: wait, kind: sleep, seconds: 60}
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_an_element_that_brings_down_its_worker_every_time_takes_no_other_with_it(tmp_path: Path, workers: int) -> None:
    """Whoever has element 0 for half a second dies, and is replaced."""

    async def scenario(scene: Fleet) -> Any:
        await scene.serve()
        for number in range(workers):
            scene.work(f"w{number}", slots=4)
        run = await scene.submit(filed(tmp_path, POISON))
        born = workers
        while scene.header(run).status == "running":
            await asyncio.sleep(0.5)
            for name, one in list(scene.workers.items()):
                poisoned = [h for h in one.worker.lease_runs.values() if _first(h) == 0]
                if poisoned:
                    await scene.kill_worker(name)
                    scene.work(f"w{born}", slots=4)
                    born += 1
        return [payload(entry) for entry in scene.entries(run) if entry.type == "loop.fanin.completed"]

    (fanin,) = on_fleet(tmp_path, scenario)
    assert (fanin["succeeded"], fanin["failed"]) == (2, 1)


def _first(holding: Any) -> int | None:
    shards = decode(holding.held.payload).get("shards")  # type: ignore[union-attr]
    return shards["lo"] if shards else None  # type: ignore[index,call-overload,return-value]


STEPS_THAT_END = {
    "pipeline": """
- step: start
  tool: [{name: a, kind: noop, value: 1}, {name: b, kind: noop, value: 2}]
""",
    "loop": """
- step: start
  loop: {in: [1, 2], iterator: n, spec: {mode: sequential}}
  tool: [{name: a, kind: noop, value: "{{ iter.n }}"}]
""",
}


@pytest.mark.parametrize("kind", sorted(STEPS_THAT_END))
def test_a_step_whose_holder_was_lost_before_its_last_word_and_was_cancelled_then_replays(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its tasks have ended, and that was said; only the end of the step was not."""

    usual = StepWork._body

    async def silent(self: StepWork) -> Any:
        await usual(self)
        await self.reports.durable()
        await asyncio.sleep(3600)

    monkeypatch.setattr(StepWork, "_body", silent)

    async def scenario(scene: Fleet) -> None:
        server = await scene.serve()
        scene.work("w1")
        run = await scene.submit(filed(tmp_path, STEPS_THAT_END[kind]))
        await asyncio.sleep(5)
        await scene.kill_worker("w1")
        await server.hosting.ask(run, "cancel", {})
        assert (await scene.ended(run, 120)).status == "cancelled"
        monkeypatch.undo()
        await scene.check_replay(run)

    on_fleet(tmp_path, scenario)


@pytest.mark.parametrize("errors", [[Refused], [NotOwner, NotOwner, NotOwner], [NotOwner, Refused, NotOwner]])
def test_a_run_that_was_another_s_or_is_refused_once_is_taken_up_again_and_not_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: list[type[Refused]]
) -> None:
    """A server that was fenced out in the middle of a run is refused; it cannot know whether anybody has the run now."""
    tries = list(errors)
    go_on = ServerRun.go_on

    async def often_refused(self: ServerRun, *arguments: Any, **more: Any) -> Any:
        if tries:
            raise tries.pop(0)("not now")
        return await go_on(self, *arguments, **more)

    monkeypatch.setattr(ServerRun, "go_on", often_refused)

    async def scenario(scene: Fleet) -> None:
        await scene.serve()
        scene.work("w1")
        run = await scene.submit(filed(tmp_path, SLEEP))
        assert (await scene.ended(run, 120)).status == "completed"

    on_fleet(tmp_path, scenario)
    assert not tries


SLEEPING_JOB = """
apiVersion: penstock/v1
kind: Job
components:
  wait: {type: sleep, params: {seconds: 60}}
"""


@pytest.mark.parametrize("kind", ["playbook", "job"])
def test_a_cancel_that_was_lost_with_its_server_is_told_to_nobody(tmp_path: Path, kind: str) -> None:
    """Whoever stops says so, and who hears that must know why."""
    file = filed(tmp_path, SLEEP)
    if kind == "job":
        file.write_text(SLEEPING_JOB.lstrip("\n"), encoding="utf-8")

    async def scenario(scene: Fleet) -> None:
        first = await scene.serve("s1")
        scene.work("w1")
        run = await scene.submit(file)
        await scene.until(lambda: any(one.type in ("task.started", "component.started") for one in scene.entries(run)))
        await asyncio.sleep(5)

        async def never(ticket: int) -> None:
            await asyncio.sleep(3600)

        first.log.append = lambda *what: 0  # type: ignore[method-assign]
        first.log.durable = never  # type: ignore[method-assign]
        await first.hosting.ask(run, "cancel", {})
        await asyncio.sleep(5)
        await scene.kill_server("s1")
        requests, scene.store.requests = scene.store.requests, {}
        await scene.serve("s2")
        assert (await scene.ended(run, 300)).status == "completed"
        assert requests, "the request outlives its server"
        await scene.check_replay(run)

    on_fleet(tmp_path, scenario)


def test_a_run_that_is_cancelled_before_it_has_begun_has_a_beginning_and_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(scene: Fleet) -> None:
        server = await scene.serve()
        hosting = server.hosting
        with monkeypatch.context() as patched:
            patched.setattr(hosting, "_host", lambda *_, **__: None)
            run = await scene.submit(filed(tmp_path, SLEEP))
            await hosting.ask(run, "cancel", {})
            assert (scene.header(run).status, scene.entries(run)) == ("running", [])
        assert (await scene.ended(run, 30)).status == "cancelled"
        await scene.check_replay(run)
        assert scene.entries(run)[0].type == "playbook.started"

    on_fleet(tmp_path, scenario)


def test_a_run_whose_log_is_damaged_is_set_aside_and_the_others_go_on(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        await scene.serve("s1")
        file = filed(tmp_path, SLEEP)
        hurt, whole = await scene.submit(file), await scene.submit(file)
        await scene.until(lambda: all(scene.header(run).last_seq > 3 for run in (hurt, whole)))
        await scene.kill_server("s1")
        kept = scene.store.executions[hurt].entries
        kept[1] = kept[1]._replace(payload=kept[1].payload.replace(b"start", b"tsart"))
        server = await scene.serve("s2")
        scene.work("w1")
        await scene.until(lambda: scene.header(hurt).status == "interrupted", 120)
        assert (await scene.ended(whole, 300)).status == "completed"
        told = [str(error) for _, error in server.problems]
        assert any(f"the log is damaged: event 2 of run `{hurt}`" in text for text in told), told
        kept[1] = kept[1]._replace(payload=kept[1].payload.replace(b"tsart", b"start"))

    on_fleet(tmp_path, scenario)
