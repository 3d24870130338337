"""Properties that hold for every job: seeded random nets, played by the kernel alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from penstock.kernel.evolve import evolve
from penstock.kernel.facts import ExecutionStarted, event_type
from penstock.kernel.net import Net, On
from penstock.kernel.state import Scope, State, values_of
from penstock.ports.wire import to_entry, to_fact
from penstock.views.canonical import canonical
from tests.cases import cases
from tests.depth import times
from tests.flow.kept import ended_with_their_iterations
from tests.flow.nets import Play, Told
from tests.flow.random_jobs import random_job

SEEDS = range(times(20))
JUDGE = Told({"t": True})
ENDS = {"component.ok", "component.error", "component.skipped"}


@cache
def unbroken(seed: int) -> tuple[Net, dict[str, Any], Play]:
    net, outcomes = random_job(seed)
    return net, outcomes, Play(net, outcomes, judge=JUDGE).run()


def is_chancy(outcomes: dict[str, Any]) -> bool:
    """With several iterations at a time, how many had begun when one failed is chance."""
    return any(key.startswith("how of") and value[0] > 1 for key, value in outcomes.items())


def timeline(play: Play) -> list[Any]:
    return list(canonical([to_entry(fact, at + 1, 0.0, "w") for at, fact in enumerate(play.facts)], "no-such-id"))


@pytest.mark.clause("J1.3")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_canonical_timeline_does_not_depend_on_what_runs_faster(seed: int) -> None:
    net, outcomes, play = unbroken(seed)
    if is_chancy(outcomes):
        outcomes = {key: (1, value[1]) if key.startswith("how of") else value for key, value in outcomes.items()}
        play = Play(net, outcomes, judge=JUDGE).run()
    expected = timeline(play)
    for order in range(8):
        assert timeline(Play(net, outcomes, seed=order, judge=JUDGE).run()) == expected


@pytest.mark.clause("J1.4")
@cases("seed", SEEDS)
def test_every_component_goes_from_wait_through_running_to_one_end(seed: int) -> None:
    _, _, play = unbroken(seed)
    states: dict[str, str] = {}
    for fact in play.facts:
        kind = event_type(fact.body)
        before = states.get(fact.scope, "WAIT")
        if kind == "component.started":
            assert before == "WAIT"
            states[fact.scope] = "RUNNING"
        elif kind in ("component.ok", "component.error"):
            assert before == "RUNNING"
            states[fact.scope] = kind
        elif kind == "component.skipped":
            assert before == "WAIT"
            states[fact.scope] = kind
    assert play.status in ("completed", "failed")
    assert set(states.values()) <= ENDS


@pytest.mark.clause("J1.1")
@pytest.mark.clause("J1.5")
@pytest.mark.clause("J1.7")
@cases("seed", SEEDS)
def test_nothing_starts_before_its_links_have_settled_and_all_links_fire_before_anything_starts(seed: int) -> None:
    net, _, play = unbroken(seed)
    ended: dict[str, int] = {}
    for at, fact in enumerate(play.facts):
        kind = event_type(fact.body)
        if kind in ENDS:
            ended[fact.scope] = at
        elif kind == "edge.fired" and fact.scope in ended:
            between = [event_type(one.body) for one in play.facts[ended[fact.scope] + 1 : at]]
            assert set(between) <= {"edge.fired", "global.set"}
        elif kind == "component.started" and fact.scope in net.nodes:
            for link in net.links:
                if link.target == fact.scope and link.on in (On.OK, On.ERROR, On.IF, On.DATA, On.PARALLELISE):
                    assert link.source in ended


@pytest.mark.clause("J2.1")
@pytest.mark.clause("J2.2")
@pytest.mark.clause("J2.9")
@cases("seed", SEEDS)
def test_ok_and_error_exclude_each_other_and_a_skipped_component_fires_nothing(seed: int) -> None:
    _, _, play = unbroken(seed)
    ends = {fact.scope: event_type(fact.body) for fact in play.facts if event_type(fact.body) in ENDS}
    fired: dict[str, list[tuple[str, str]]] = {}
    for fact in play.facts:
        if event_type(fact.body) == "edge.fired" and fact.scope in ends and fact.body.on != "synchronise":  # type: ignore[union-attr]
            fired.setdefault(fact.scope, []).append((fact.body.on, fact.body.target))  # type: ignore[union-attr]
    for scope, links in fired.items():
        assert len(set(links)) == len(links)
        kinds = {on for on, _ in links}
        assert not {"ok", "error"} <= kinds
        assert ends[scope] != "component.skipped"
        assert "ok" not in kinds or ends[scope] == "component.ok"
        assert "error" not in kinds or ends[scope] == "component.error"


@cases("seed", SEEDS)
def test_the_fold_of_the_log_equals_the_live_state_through_the_wire_too(seed: int) -> None:
    _, _, play = unbroken(seed)
    tree, wired = State(), State()
    for at, fact in enumerate(play.facts):
        evolve(tree, fact, 0.0)
        evolve(wired, to_fact(to_entry(fact, at + 1, 0.0, "w"), None), 0.0)
    assert tree == play.tree
    assert wired == play.tree


@pytest.mark.clause("J7.2")
@pytest.mark.clause("J7.3")
@cases("seed", SEEDS)
def test_a_job_cut_after_any_decision_and_resumed_ends_as_if_nothing_had_happened(seed: int) -> None:
    net, outcomes, play = unbroken(seed)
    if is_chancy(outcomes):
        return
    expected, globals_ = timeline(play), values_of(play.tree.root)
    for cut in sorted(set(play.boundaries)):
        again = Play(net, outcomes, judge=JUDGE, log=play.facts[:cut]).resume()
        assert again.status == play.status
        assert values_of(again.tree.root) == globals_
        assert timeline(again) == expected
        # An iteration inside another one counts from the beginning when the one around it does.
        names = [(fact.scope, fact.clock[-1]) for fact in again.facts if fact.scope.count("[#") < 2]
        assert len(set(names)) == len(names)


@pytest.mark.clause("J7.2")
@pytest.mark.clause("J12.6")
@cases("seed", SEEDS)
def test_a_resume_repeats_no_sub_job_that_has_closed_and_nothing_of_an_iteration_that_has_ended(seed: int) -> None:
    net, outcomes, play = unbroken(seed)
    for cut in sorted(set(play.boundaries))[::3]:
        before = play.facts[:cut]
        ends = [fact for fact in before if event_type(fact.body) in ("subjob.ok", "subjob.error")]
        closed = {fact.scope for fact in ends if not fact.body.container}  # type: ignore[union-attr]
        members = {f.scope for f in before if event_type(f.body) == "component.started" and f.body.subjob in closed}  # type: ignore[union-attr]
        again = Play(net, outcomes, judge=JUDGE, log=before).resume()
        assert not (members | ended_with_their_iterations(before)) & set(again.ran)


@cases("seed", SEEDS)
def test_a_failed_job_that_is_mended_and_resumed_completes(seed: int) -> None:
    net, outcomes, play = unbroken(seed)
    if play.status != "failed":
        return
    mended = {key: value for key, value in outcomes.items() if not getattr(value, "error", None)}
    again = Play(net, mended, judge=JUDGE, log=play.facts).resume()
    assert again.status == "completed"


def without_old(events: list[Any]) -> list[Any]:
    """An iteration that runs again may find other globals than the first time: what later ones have left by then."""
    return [
        {**one, "payload": {key: value for key, value in one["payload"].items() if key != "old"}}
        if one["event_type"] == "global.set"
        else one
        for one in events
    ]


def failed_in(container: Scope) -> Iterator[str]:
    """The iterations of a job that failed, outermost or not: what the names in them begin with."""
    for one in container.runs.values():
        if one.inside is not None:
            yield from failed_in(one.inside)
        if one.fan is not None:
            yield from (f"{one.place.id}[#{index}]." for index in one.fan.failures)
            for iteration in one.fan.partial.values():
                yield from failed_in(iteration)


@cases("seed", range(times(30)))
def test_failed_iterations_that_run_again_and_fail_again_change_nothing(seed: int) -> None:
    """D60: only they run again, with what follows from them, and the job ends as it did."""
    net, outcomes = random_job(seed)
    outcomes = {key: (1, value[1]) if key.startswith("how of") else value for key, value in outcomes.items()}
    goes_on = {
        name: replace(node, iterates=replace(node.iterates, halts=False)) if node.iterates is not None else node
        for name, node in net.nodes.items()
    }
    net = replace(net, nodes=goes_on)
    play = Play(net, outcomes, judge=JUDGE).run()
    if play.status != "completed" or not play.tree.root.failed_iterations:
        return
    failed = list(failed_in(play.tree.root))
    again = Play(net, outcomes, judge=JUDGE, log=play.facts).resume(failed_only=True)
    assert again.status == "completed"
    assert again.tree.root.failed_iterations == play.tree.root.failed_iterations
    (start,) = [one.body for one in again.facts[len(play.facts) :] if isinstance(one.body, ExecutionStarted)]
    stems = [*failed, *(f"{scope}." for scope in start.reopened)]
    assert all(any(name.startswith(stem) for stem in stems) for name in again.ran if "[#" in name)
    assert not {*start.kept_components} & {*again.ran}
    assert without_old(timeline(again)) == without_old(timeline(play))
