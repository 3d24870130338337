"""Races around a lease: who holds it, what a holder that was given up may still say, and what becomes of those who die with it."""

from __future__ import annotations

import random
import threading
import time
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from penstock.ports.log import Entry
from penstock.ports.results import decode
from tests.faults.documents import Effects
from tests.faults.fleet import AlreadyOver, Fleet
from tests.faults.oracle import check_nothing_is_left
from tests.faults.points import Point
from tests.faults.processes import Process

SAY = "penstock.adapters.postgres.intake:PostgresIntake.say"
DONE = "MessageKind.DONE"


def effects_in(pool: str) -> str:
    """A step that leaves something behind, for workers of one pool."""
    return f"""
    workload: {{effects: ""}}
    workflow:
    - step: start
      spec: {{pool: {pool}}}
      tool:
      - name: unkeyed
        kind: postgres
        url: "{{{{ workload.effects }}}}"
        command: INSERT INTO unkeyed VALUES (:run, 'it')
        params: {{run: "{{{{ execution_id }}}}"}}
    """


def sleeping_in(pool: str, seconds: float, spec: str = "") -> str:
    return f"""
    - step: start
      spec: {{pool: {pool}{spec}}}
      tool: [{{name: a, kind: sleep, seconds: {seconds}}}]
    """


def of_type(entries: list[Entry], type: str) -> list[Any]:
    return [decode(entry.payload) for entry in entries if entry.type == type]


@pytest.mark.clause("F3.1")
def test_the_late_end_of_a_lease_that_ran_out_is_refused_also_where_its_worker_has_a_successor_of_its_name(
    fleet: Fleet, effects: Effects
) -> None:
    """It is frozen when it has done all and is about to say so. Its successor is another worker, whatever its name."""
    with fleet.guest(fleet.work("twin", pool="late", point=Point(SAY, "stop", words=DONE))) as late:
        run = fleet.run("s0", effects_in("late"), effects=effects.url)
        fleet.until(lambda: late.is_stopped, 20.0, "it is about to say that it is done")
        with fleet.guest(fleet.work("twin", pool="late")) as successor:
            entries = fleet.ended(run)
            late.thaw()
            successor.freeze()  # So it is the late one who does what comes next: it lives, and is a worker like any other.
            again = fleet.run("s0", effects_in("late"), effects=effects.url)
            fleet.ended(again)
            assert fleet.log_of(run) == entries
            assert len(of_type(entries, "task.done")) == 1
            assert effects.counts("unkeyed", run) == {"it": 2}
            assert effects.counts("unkeyed", again) == {"it": 1}
            successor.thaw()


def test_a_worker_killed_after_its_end_was_kept_and_before_it_knew_has_done_its_work(
    fleet: Fleet, effects: Effects
) -> None:
    with fleet.guest(fleet.work("dying", pool="last", point=Point(SAY, "kill", is_after=True, words=DONE))) as worker:
        worker.is_killed = True
        run = fleet.run("s0", effects_in("last"), effects=effects.url)
        fleet.ended(run)  # There is nobody else in its pool who could have done it.
        worker.wait()
        assert effects.counts("unkeyed", run) == {"it": 1}


@pytest.mark.clause("F5.1")
def test_of_the_last_two_shards_that_end_at_once_one_completes_the_loop(fleet: Fleet) -> None:
    text = """
    - step: start
      spec: {loop_mode: fanout, reducers: {total: sum}, fanout: {range_size: 1}}
      loop: {in: [5, 7], iterator: i}
      tool: [{name: a, kind: sleep, seconds: 0.1, set_shared: {total: "{{ iter.i }}"}}]
    """
    runs = [fleet.run(f"s{number % 2}", text) for number in range(20)]
    for run in runs:
        entries = fleet.ended(run)
        assert sorted(one["lo"] for one in of_type(entries, "loop.shard.done")) == [0, 1]
        (fanin,) = of_type(entries, "loop.fanin.completed")
        assert (fanin["succeeded"], fanin["shared"]) == (2, {"total": 12})


def test_a_run_that_is_cancelled_when_it_completes_comes_to_one_of_both_ends(fleet: Fleet) -> None:
    text = """
    - step: start
      tool: [{name: a, kind: sleep, seconds: 0.1}]
      next: {arcs: [{step: fan}]}
    - step: fan
      spec: {loop_mode: fanout, fanout: {range_size: 2}}
      loop: {in: {range: 8}, iterator: i}
      tool: [{name: b, kind: noop}]
    """
    chance = random.Random(1)

    def run_and_cancel(number: int, wait_s: float) -> None:
        run = fleet.run(f"s{number % 2}", text)
        time.sleep(wait_s)
        with suppress(AlreadyOver):
            fleet.cancel(f"s{chance.randrange(2)}", run)
        runs.append(run)

    runs: list[str] = []
    threads = [threading.Thread(target=run_and_cancel, args=(n, chance.uniform(0.05, 0.6))) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended = fleet.until_ended(runs, 30.0)
    assert len(ended) == 16
    for run, status in ended.items():
        assert status in ("completed", "cancelled")
        fleet.ended(run, status)
    check_nothing_is_left(fleet)


def test_a_full_pool_is_full_after_a_restart_of_all_servers_and_no_longer_than_its_work(fleet: Fleet) -> None:
    """Places come from leases and not from what a server remembers: those of the dead are free again, too."""
    with ExitStack() as stack:
        holders = [stack.enter_context(fleet.guest(fleet.work(f"full{n}", slots=2, pool="full"))) for n in range(2)]
        text = sleeping_in("full", 0.4, ", concurrency: {narrow: 3}")
        runs = [fleet.run("s0", text) for _ in range(6)]
        held = "SELECT count(*) FROM dispatch_lease WHERE state = 'held' AND execution_id = ANY(%s)"
        fleet.until(lambda: fleet.rows(held, runs) == [(3,)], 20.0, "all places are taken")
        for name in ("s0", "s1"):
            fleet.servers[name].kill()
        holders[0].kill()
        for name in ("s0", "s1"):
            fleet.restart(name)
        fleet.until_all_are_there()
        for run in runs:
            fleet.ended(run)


def test_a_holder_that_is_paused_for_about_as_long_as_its_lease_keeps_it_or_loses_it(
    fleet: Fleet, effects: Effects
) -> None:
    """Reaper and heartbeat meet at the end of the lease. Whichever is first, the work ends once in the log."""
    chance = random.Random(2)
    text = effects_in("paused").replace(
        "- name: unkeyed", "- {name: a, kind: sleep, seconds: 0.9}\n      - name: unkeyed"
    )
    with fleet.guest(fleet.work("paused", slots=8, pool="paused")) as worker:
        runs = [fleet.run(f"s{number % 2}", text, effects=effects.url) for number in range(6)]
        fleet.until(lambda: all(fleet.holders(run) for run in runs), 20.0, "all are held")
        for _ in range(2):
            worker.freeze()
            time.sleep(chance.uniform(0.8, 1.2))
            worker.thaw()
            time.sleep(0.05)
        for run in runs:
            entries = fleet.ended(run)
            assert len(of_type(entries, "step.done")) == 1
            assert effects.counts("unkeyed", run)["it"] >= 1


def test_a_worker_that_drains_finishes_what_it_has_and_takes_nothing_more(fleet: Fleet) -> None:
    with fleet.guest(fleet.work("drained", pool="drain", grace_s=10)) as worker:
        first = fleet.run("s0", sleeping_in("drain", 0.6))
        fleet.until(lambda: bool(fleet.holders(first)), 20.0, "it is held")
        (incarnation,) = fleet.holders(first)
        worker.stop()
        fleet.until(
            lambda: (
                fleet.rows("SELECT 1 FROM dispatch_worker WHERE id = %s AND is_draining", incarnation) != []
                or not worker.is_alive
            ),
            20.0,
            "it drains",
        )
        second = fleet.run("s0", sleeping_in("drain", 0.0))
        worker.wait()
        assert fleet.statuses([second]) == {second: "running"}
        fleet.ended(first)
        with fleet.guest(fleet.work("fresh", pool="drain")):
            (done,) = [one for one in fleet.ended(second) if one.type == "task.done"]
        assert done.worker == "fresh"


@pytest.mark.clause("F3.1")
def test_an_element_that_kills_its_worker_every_time_fails_and_all_others_are_done(fleet: Fleet) -> None:
    text = """
    - step: start
      spec:
        pool: poison
        loop_mode: fanout
        fanout: {range_size: 1, allow_partial: true, max_job_retries: 1}
      loop: {in: {range: 6}, iterator: i}
      tool:
      - {name: a, kind: python, code: "import os\\nif i == 2: os.kill(os.getpid(), 9)", args: {i: "{{ iter.i }}"}}
    """
    with ExitStack() as stack:
        for number in range(2):
            stack.enter_context(fleet.guest(fleet.work(f"poisoned{number}", slots=1, pool="poison")))
            fleet.workers[f"poisoned{number}"].is_killed = True  # It will be.
        run = fleet.run("s0", text)
        deaths = 0

        def is_over() -> bool:
            nonlocal deaths
            for name in ("poisoned0", "poisoned1"):
                if not fleet.workers[name].is_alive:
                    deaths += 1
                    fleet.restart(name).is_killed = True
                    stack.callback(_close_workforce, fleet, name)
            return fleet.statuses([run])[run] != "running"

        fleet.until(is_over, 60.0, "the loop has ended")
        entries = fleet.ended(run)
    assert deaths == 2
    (fanin,) = of_type(entries, "loop.fanin.completed")
    assert (fanin["succeeded"], fanin["failed"]) == (5, 1)
    last = of_type(entries, "loop.shard.failed")[-1]
    assert last["error"]["kind"] == "worker_lost"


def _close_workforce(fleet: Fleet, name: str) -> None:
    process: Process | None = fleet.workers.pop(name, None)
    if process is not None:
        process.close()


@pytest.mark.clause("F7.2")
def test_rows_that_are_written_with_a_key_are_there_once_after_forced_retries(fleet: Fleet, effects: Effects) -> None:
    """Each element fails when it has written, until it has been tried twice; and a worker dies meanwhile."""
    text = """
    workload: {effects: ""}
    workflow:
    - step: start
      spec: {loop_mode: fanout, fanout: {range_size: 8, max_job_retries: 6}}
      loop: {in: {range: 64}, iterator: i}
      tool:
      - name: keyed
        kind: postgres
        url: "{{ workload.effects }}"
        idempotency: true
        command: INSERT INTO keyed VALUES (:run, :shard)
        params: {run: "{{ execution_id }}", shard: "{{ iter.shard_id }}"}
      - name: unkeyed
        kind: postgres
        url: "{{ workload.effects }}"
        command: INSERT INTO unkeyed VALUES (:run, :shard)
        params: {run: "{{ execution_id }}", shard: "{{ iter.shard_id }}"}
      - name: forced
        kind: postgres
        url: "{{ workload.effects }}"
        command: SELECT 1 / (count(*) - 1) FROM unkeyed WHERE run = :run AND shard = :shard
        params: {run: "{{ execution_id }}", shard: "{{ iter.shard_id }}"}
    """
    run = fleet.run("s0", text, effects=effects.url)
    fleet.until(lambda: len(effects.counts("keyed", run)) > 10, 20.0, "some elements have been tried")
    fleet.workers["w1"].kill()
    fleet.restart("w1")
    entries = fleet.ended(run)
    (fanin,) = of_type(entries, "loop.fanin.completed")
    assert fanin["succeeded"] == 64
    shards = {f"start@0[{index}]" for index in range(64)}
    assert effects.counts("keyed", run) == dict.fromkeys(shards, 1)
    assert min(effects.counts("unkeyed", run).values()) >= 2


def test_a_worker_whose_disk_is_full_says_so_and_when_there_is_room_the_run_goes_on(fleet: Fleet) -> None:
    text = """
    - step: start
      spec: {pool: tight}
      tool: [{name: a, kind: python, code: "result = {'text': 'x' * 3000000}"}]
      next: {arcs: [{step: second, args: {text: "{{ event.result.text }}"}}]}
    - step: second
      spec: {pool: tight}
      tool: [{name: b, kind: noop, value: "{{ args.text | length }}"}]
    """
    with fleet.guest(fleet.work("tight", pool="tight")) as worker:
        worker.fill_disk()
        run = fleet.run("s0", text)
        (failed,) = of_type(fleet.ended(run, "failed"), "playbook.failed")
        assert "the disk is full" in failed["error"]["message"]
        worker.clear_disk()
        fleet.post("s1", f"/api/executions/{run}/resume", {})
        fleet.until(lambda: fleet.statuses([run]) == {run: "completed"}, 30.0, "it has gone on to its end")
        assert of_type(fleet.log_of(run), "task.done")[-1]["outcome"]["result"] == 3_000_000
