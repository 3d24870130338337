"""Races between servers: who owns a run, what a server that was thought dead may still say, and what lies between two of its steps."""

from __future__ import annotations

import threading
import uuid
from contextlib import suppress

import pytest

from tests.engine import document as playbook
from tests.faults.documents import Effects
from tests.faults.fleet import LEASE_S, Fleet
from tests.faults.oracle import check_nothing_is_left
from tests.faults.points import Point
from tests.faults.trial import Trials

STEPS = """
- step: start
  tool: [{name: a, kind: sleep, seconds: 0.1}]
  next: {arcs: [{step: second}]}
- step: second
  tool: [{name: b, kind: noop, value: 2}]
"""
HEAR = "penstock.server.execution_owner:ExecutionOwner.receive"
DEAF = Point("penstock.adapters.postgres.intake:PostgresIntake.commands", "hang")
"""A worker that lives, and does not hear what servers tell it."""
OFFER = "penstock.adapters.postgres.dispatch:PostgresDispatch.offer"


@pytest.mark.clause("F3.1")
def test_of_two_owners_after_a_pause_the_one_who_slept_is_refused_and_leaves_nothing(fleet: Fleet) -> None:
    """It sleeps with what its worker said already in its hands."""
    with fleet.guest(fleet.serve("zombie", point=Point(HEAR, "stop"))) as zombie:
        fleet.until_it_has_partitions("zombie")
        run = fleet.run("zombie", STEPS)
        fleet.until(lambda: zombie.is_stopped, 20.0, "it sleeps")
        entries = fleet.ended(run)
        zombie.thaw()
        again = fleet.run("zombie", STEPS)  # It answers: it is awake, and goes on as a server.
        fleet.ended(again)
        assert fleet.log_of(run) == entries
        ((owner,),) = fleet.rows("SELECT owner FROM execution WHERE execution_id = %s", run)
        assert owner != "zombie"


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_a_server_killed_between_the_log_and_the_hand_out_leaves_a_run_that_goes_on(
    fleet: Fleet, is_after: bool
) -> None:
    with fleet.guest(fleet.serve("offering", point=Point(OFFER, "kill", is_after, "second@"))) as server:
        server.is_killed = True
        fleet.until_it_has_partitions("offering")
        run = fleet.run("offering", STEPS)
        server.wait()
        types = [entry.type for entry in fleet.ended(run)]
        assert types.count("step.started") == types.count("step.done") == types.count("task.done") == 2


@pytest.mark.parametrize(
    "point",
    [
        Point("penstock.server.fleet:FleetForce.start", "raise", words="poison@"),
        Point(OFFER, "refuse", words="poison@"),
    ],
    ids=["a bug", "refused"],
)
def test_a_document_that_breaks_its_server_is_set_aside_and_others_go_on(fleet: Fleet, point: Point) -> None:
    poison = STEPS.replace("step: second", "step: poison")
    with fleet.guest(fleet.serve("sound", point=point)) as server:
        fleet.until_it_has_partitions("sound")
        bad, good = (fleet.run("sound", text) for text in (poison, STEPS))
        assert fleet.until_ended([bad, good], 30.0) == {bad: "interrupted", good: "completed"}
        assert server.is_alive


def test_submitting_with_one_key_to_two_servers_at_once_makes_one_run(fleet: Fleet) -> None:
    found: list[tuple[int, str]] = []

    def submit(key: int, name: str) -> None:
        found.append((key, fleet.run(name, STEPS, f"one-{key}")))

    threads = [threading.Thread(target=submit, args=(key, name)) for key in range(8) for name in ("s0", "s1", "s0")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 24
    assert len(set(found)) == 8
    for _, run in set(found):
        fleet.ended(run)


def test_a_commit_of_which_nobody_knows_whether_it_happened_happens_once(
    fleet: Fleet, trials: Trials, effects: Effects
) -> None:
    """What `s0` and `w0` say reaches PostgreSQL, the answers are lost with the connections; and so four times."""
    runs = {
        trials.submit(work, name="s0"): work for work in trials.works if work.name in ("mixed", "effects") for _ in "12"
    }
    for _ in range(4):
        for wire in fleet.wires.values():
            wire.deafen()
        threading.Event().wait(0.1)
        for wire in fleet.wires.values():
            wire.cut()
            wire.heal()
        threading.Event().wait(0.15)
    trials.check(runs)


def test_calls_that_are_lost_again_and_again_cost_time_and_never_work(fleet: Fleet, trials: Trials) -> None:
    """The connections on which notifications come are ended all the time."""
    runs = {trials.submit(work): work for work in trials.works}
    is_over = threading.Event()
    ended = 0

    def end_listeners() -> None:
        nonlocal ended
        while not is_over.wait(0.03):
            ended += len(
                fleet.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'LISTEN %%'")
            )

    thread = threading.Thread(target=end_listeners)
    thread.start()
    try:
        trials.check(runs)
    finally:
        is_over.set()
        thread.join()
    assert ended > 5


def test_a_holder_that_does_not_stop_holds_up_nobody_but_its_own_run(fleet: Fleet) -> None:
    """It lives, and hears nothing. Its job is cancelled; what is asked of other runs of the same server is done meanwhile."""
    job = """
    apiVersion: penstock/v1
    kind: Job
    metadata: {name: long}
    components: {wait: {type: sleep, params: {seconds: 600}}}
    """
    waiting = STEPS.replace("- step: start", "- step: start\n  spec: {pool: empty}")
    usual = list(fleet.workers.values())
    with fleet.guest(fleet.work("deaf", point=DEAF)) as worker, fleet.guest(fleet.serve("asked")):
        fleet.until_it_has_partitions("asked")
        for process in usual:
            process.freeze()
        try:
            stuck = fleet.run("asked", job)
            other = fleet.run("asked", waiting)
            fleet.until(lambda: bool(fleet.holders(stuck)), 20.0, "the job is held")
        finally:
            for process in usual:
                process.thaw()
        for run in (stuck, other):
            fleet.cancel("s0", run)
        fleet.ended(other, "cancelled")
        assert fleet.statuses([stuck]) == {stuck: "running"}
        worker.kill()
        fleet.ended(stuck, "cancelled")


def test_a_database_that_is_away_for_longer_than_every_lease_is_only_a_delay(fleet: Fleet, trials: Trials) -> None:
    runs = {trials.submit(work): work for work in trials.works}
    fleet.cluster.stop("immediate")
    threading.Event().wait(1.5 * LEASE_S)
    fleet.cluster.start()
    trials.check(runs)


@pytest.mark.parametrize("does", ["hang", "kill"])
def test_nothing_is_left_of_a_cancelled_run_whose_child_did_not_stop(fleet: Fleet, does: str) -> None:
    """Whoever holds the child lives and hears nothing, whoever holds the parent dies, and in one case the server dies as well when
    it has ended the run and is about to clear it away."""
    parent = """
    - step: start
      spec: {pool: parents}
      tool: [{name: call, kind: playbook, path: child}]
    """
    child = """
    - step: start
      spec: {pool: children}
      tool: [{name: a, kind: sleep, seconds: 600}]
    """
    kept = {"text": playbook(parent), "file": "parent.yaml", "sources": {"child.yaml": playbook(child)}}
    point = Point("penstock.adapters.postgres.dispatch:PostgresDispatch.forget", "kill") if does == "kill" else None
    with (
        fleet.guest(fleet.serve("clearing", point=point)) as server,
        fleet.guest(fleet.work("parent", pool="parents")) as holder,
        fleet.guest(fleet.work("child", pool="children", point=DEAF)) as deaf_one,
    ):
        server.is_killed = does == "kill"
        fleet.until_it_has_partitions("clearing")
        run = fleet.submit("clearing", kept, {}, uuid.uuid4().hex)
        fleet.until(lambda: len(fleet.holders(run)) == 2, 20.0, "parent and child are held")
        with suppress(*([OSError] if does == "kill" else [])):  # Its last answer.
            fleet.cancel("clearing", run)
        holder.kill()
        fleet.ended(run, "cancelled")
        if does == "kill":
            server.wait()
            deaf_one.kill()
        check_nothing_is_left(fleet)
        owner = "SELECT 1 FROM execution WHERE execution_id = %s AND owner IS NOT NULL"
        fleet.until(lambda: not fleet.rows(owner, run) or does == "kill", 20.0, "nobody owns it")


def test_a_loop_whose_server_dies_while_it_is_being_cancelled_is_ended_by_the_next_one(fleet: Fleet) -> None:
    """The server dies when it has recorded that the run is being cancelled, and is about to have the ranges back."""
    text = """
    - step: fan
      spec: {loop_mode: fanout, pool: slow, fanout: {range_size: 1}}
      loop: {in: {range: 3}, iterator: i}
      tool: [{name: a, kind: sleep, seconds: 600}]
    """
    dies = Point("penstock.server.leases_out:LeasesOut.stop", "kill")
    with fleet.guest(fleet.serve("ending", point=dies)) as server, fleet.guest(fleet.work("slow", pool="slow")):
        server.is_killed = True
        fleet.until_it_has_partitions("ending")
        run = fleet.run("ending", text)
        fleet.until(lambda: bool(fleet.holders(run)), 20.0, "it is held")
        with suppress(OSError):  # Its last answer.
            fleet.cancel("ending", run)
        server.wait()
        fleet.ended(run, "cancelled")
        check_nothing_is_left(fleet)
