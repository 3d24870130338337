"""Whichever ends first: many orders of the same ends have one timeline and one outcome (J1.3, D22)."""

from __future__ import annotations

import random

import pytest

from penstock.kernel import facts
from tests.depth import times
from tests.rules.notation import (
    Case,
    begun,
    document,
    elements,
    expanded,
    failed,
    given,
    ok,
    steps,
)

ORDERS = times(50)

RICH = document(
    "begin (ok) fork",
    "fork (parallelise) left, right, bad",
    "left (ok) left2",
    "right (ok) right2",
    "right2 (error) mend",
    "bad (ok) never",
    "bad (subjob_error) told",
    "left, right (synchronise) met",
    "met (ok) groups",
    "groups (iterate) first",
    "first (ok) second",
    "groups (iteration_ok) handled",
    "met (ok) numbers",
    "numbers (iterate) each",
    "numbers (iteration_error) sorry",
    "numbers (iterator_complete) ended",
    "groups (ok) call",
    "ended (ok) last",
    "call (ok) last",
    groups={"type": "iterate_list", "params": {"items": [1, 2, 3], "parallel": 3}},
    numbers={"type": "iterate_range", "params": {"start": 0, "stop": 5, "parallel": 2}},
    call={"type": "@inner"},
    config={"fail_strategy": "continue"},
)
INNER = document("a (parallelise) b, c")
FAILS = ("right2", "bad", "numbers[#3].each")


def open_components(case: Case) -> list[str]:
    """Those that somebody works on: neither ended, nor open because of what goes on inside of them."""
    found: dict[str, None] = {}
    for fact in case.facts:
        if isinstance(fact.body, facts.ComponentStarted) and fact.body.opens is None:
            found[fact.scope] = None
        elif isinstance(fact.body, facts.ComponentEnded | facts.IteratorStarted):
            found.pop(fact.scope, None)
    return list(found)


def played(seed: int) -> Case:
    case, chance = given(NET).then(begun()), random.Random(seed)
    while running := open_components(case):
        scope = chance.choice(running)
        if scope in ("groups", "numbers"):
            case.then(
                elements(scope, [1, 2, 3] if scope == "groups" else list(range(5)), 3 if scope == "groups" else 2)
            )
        elif scope in FAILS:
            case.then(failed(scope, k=scope))
        else:
            case.then(ok(scope, k=scope, seen=[scope]))
    return case


NET = expanded(RICH, inner=INNER)


@pytest.mark.clause("J1.3", "J4.2", "P9.3")
def test_many_orders_of_ends_have_one_timeline() -> None:
    first = played(0)
    wanted = [(fact.scope, fact.clock, fact.body) for fact in sorted(first.facts, key=lambda fact: fact.clock)]
    orders = {tuple(first.lines())}
    for seed in range(1, ORDERS):
        case = played(seed)
        orders.add(tuple(case.lines()))
        found = [(fact.scope, fact.clock, fact.body) for fact in sorted(case.facts, key=lambda fact: fact.clock)]
        assert found == wanted, seed
    assert first.status == "completed"
    assert len(orders) > ORDERS / 2, "the ends were not shuffled"


@pytest.mark.clause("P1.2", "P2.2", "P9.3")
def test_orders_of_steps_have_one_timeline_and_one_ctx() -> None:
    net = steps(
        "start -> a, b, c",
        "a -> d",
        "b -> e on failure",
        "c -> j",
        "d -> j",
        inclusive={"start"},
        joins={"j": ("c", "d")},
    )
    found, orders = set(), set()
    for seed in range(ORDERS):
        case, chance = given(net).then(begun()), random.Random(seed)
        while running := sorted(case.state.root.runs):
            scope = chance.choice(running)
            case.then(failed(scope) if scope.startswith("b") else ok(scope, k=scope))
        orders.add(tuple(case.lines()))
        found.add((tuple(case.timeline()), str(case.ctx), case.status))
    assert len(found) == 1
    assert len(orders) > 5
