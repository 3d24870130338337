"""Properties that hold for every net, every outcome and every physical order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernel.decide import RunOver
from penstock.kernel.errors import Refused
from penstock.kernel.facts import ArcsSelected, RunEnded, RunScheduled, TokenCreated, TokenRefused, TokenStranded
from penstock.kernel.places import ROOT, Place
from penstock.kernel.state import StepRun, Subjob
from tests.depth import times
from tests.kernel.simulation import DrawnJudge, Simulation, canonical, ends, folded, random_net, timeless

seeds = st.integers(0, 2**32)
sizes = st.integers(1, 9)


def simulate(net_seed: int, size: int, seed: int, order: int, joins: bool = False) -> Simulation:
    simulation = Simulation(random_net(net_seed, size, joins), DrawnJudge(seed))
    simulation.run(random.Random(order))
    return simulation


@given(seeds, sizes, seeds, seeds)
@settings(max_examples=times(25), deadline=None)
@pytest.mark.clause("P2.2", "P9.3")
def test_the_fold_of_the_log_equals_the_live_state(net: int, size: int, seed: int, order: int) -> None:
    simulation = simulate(net, size, seed, order)
    assert folded(simulation.facts) == timeless(simulation.tree)


@given(seeds, sizes, seeds, seeds, seeds)
@settings(max_examples=times(25), deadline=None)
def test_the_canonical_timeline_does_not_depend_on_the_physical_order(
    net: int, size: int, seed: int, one: int, other: int
) -> None:
    first, second = simulate(net, size, seed, one), simulate(net, size, seed, other)
    assert canonical(first.facts) == canonical(second.facts)
    assert first.state.ctx.values == second.state.ctx.values
    assert first.state.result == second.state.result


@given(seeds, sizes, seeds, seeds, st.booleans())
@settings(max_examples=times(25), deadline=None)
def test_every_run_settles_once_and_the_execution_has_one_end(
    net: int, size: int, seed: int, order: int, joins: bool
) -> None:
    simulation = simulate(net, size, seed, order, joins)
    facts = simulation.facts
    started = [fact.scope for fact in facts if isinstance(fact.body, RunScheduled)]
    settled = [fact.scope for fact in facts if isinstance(fact.body, RunEnded)]
    assert sorted(started) == sorted(settled)
    assert len(set(settled)) == len(settled)
    assert ends(facts) == [facts[-1]]


@given(seeds, sizes, seeds, seeds, st.booleans())
@settings(max_examples=times(25), deadline=None)
def test_every_token_is_consumed_refused_or_stranded(net: int, size: int, seed: int, order: int, joins: bool) -> None:
    simulation = simulate(net, size, seed, order, joins)
    made = {fact.scope for fact in simulation.facts if isinstance(fact.body, TokenCreated)}
    gone: set[str] = set()
    for fact in simulation.facts:
        body = fact.body
        if isinstance(body, (TokenRefused, TokenStranded)):
            gone.add(fact.scope)
        elif isinstance(body, RunScheduled):
            gone |= {f"{body.step}@{'.'.join(map(str, path))}" for path in body.tokens or [body.path]}
    assert made == gone


@given(seeds, sizes, seeds, seeds)
@settings(max_examples=times(25), deadline=None)
def test_no_two_facts_share_a_clock_and_causes_come_first(net: int, size: int, seed: int, order: int) -> None:
    simulation = simulate(net, size, seed, order)
    clocks = [fact.clock for fact in simulation.facts]
    assert len(set(clocks)) == len(clocks)
    seen: set[str] = set()
    for fact in simulation.facts:
        assert fact.cause is None or fact.cause in seen
        seen.add(f"{fact.scope}:{fact.clock[-1]}")


@given(seeds, sizes, seeds, seeds)
@settings(max_examples=times(25), deadline=None)
def test_a_late_or_double_report_is_refused_and_nothing_happens(net: int, size: int, seed: int, order: int) -> None:
    simulation = simulate(net, size, seed, order)
    ended = [fact for fact in simulation.facts if isinstance(fact.body, RunEnded)]
    before = len(simulation.facts)
    for fact in ended:
        assert isinstance(fact.body, RunEnded)
        with pytest.raises(Refused):
            simulation.when(RunOver(StepRun(Place(fact.scope, ()), Subjob("", 0, ROOT, simulation.state)), fact.body))
    assert len(simulation.facts) == before


@given(seeds, sizes, seeds, seeds, st.integers(1, 40))
@settings(max_examples=times(25), deadline=None)
def test_a_run_cut_anywhere_and_folded_goes_on_to_the_same_end(
    net: int, size: int, seed: int, order: int, cut: int
) -> None:
    whole = simulate(net, size, seed, order)
    # A decision is appended whole, so a crash can only fall between the ends of runs.
    borders = [n for n, fact in enumerate(whole.facts) if isinstance(fact.body, RunEnded)] or [len(whole.facts)]
    kept = whole.facts[: borders[cut % len(borders)]]
    again = Simulation(whole.net, whole.judge)
    again.tree = folded(kept)
    again.facts = list(kept)
    rest = random.Random(order + 1)
    while again.state.status == "running":
        again.end(again.state.runs[rest.choice(sorted(again.state.runs))])
    assert canonical(again.facts) == canonical(whole.facts)


@given(seeds, sizes, seeds, seeds)
@settings(max_examples=times(25), deadline=None)
def test_a_failed_execution_that_is_resumed_keeps_what_was_done(net: int, size: int, seed: int, order: int) -> None:
    simulation = simulate(net, size, seed, order)
    if simulation.state.status != "failed":
        return
    done = {fact.scope for fact in simulation.facts if isinstance(fact.body, RunEnded) and fact.body.status == "done"}
    at = len(simulation.facts)
    simulation.resume()
    while simulation.state.status == "running":
        simulation.end(simulation.state.runs[min(simulation.state.runs)], "done")
    assert simulation.state.status == "completed"
    again = {fact.scope for fact in simulation.facts[at:] if isinstance(fact.body, RunScheduled)}
    assert not (again & done)
    assert folded(simulation.facts) == timeless(simulation.tree)


@given(seeds, sizes, seeds, seeds)
@settings(max_examples=times(25), deadline=None)
def test_a_cancelled_execution_starts_nothing_more_and_ends_cancelled(
    net: int, size: int, seed: int, order: int
) -> None:
    simulation = Simulation(random_net(net, size, False), DrawnJudge(seed, refusals=0.0))
    simulation.start()
    shuffle = random.Random(order)
    for _ in range(3):
        if simulation.state.runs:
            simulation.end(simulation.state.runs[shuffle.choice(sorted(simulation.state.runs))])
    if simulation.state.status != "running":
        return
    simulation.cancel()
    at = len(simulation.facts)
    while simulation.state.status == "running":
        simulation.end(simulation.state.runs[shuffle.choice(sorted(simulation.state.runs))])
    assert simulation.state.status == "cancelled"
    assert not [fact for fact in simulation.facts[at:] if isinstance(fact.body, RunScheduled)]
    assert all(not fact.body.arcs for fact in simulation.facts[at:] if isinstance(fact.body, ArcsSelected))
