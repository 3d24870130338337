"""The reasons of skips: each names what decided it, in words that read well."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.kernel.facts import ComponentSkipped
from tests.cases import cases
from tests.flow.nets import Play, error, job

BAD = error()

SKIPS: dict[str, tuple[Any, dict[str, Any], str, str]] = {
    # What: net, outcomes, the component that is skipped, why.
    "an ok link from an error": (
        job("a (ok) b"),
        {"a": BAD},
        "b",
        "`a` ended in ERROR, so its `ok` link did not fire",
    ),
    "an error link from an ok": (job("a (error) b"), {}, "b", "`a` ended OK, so its `error` link did not fire"),
    "a condition": (
        job('a (if 1: "n > 5") b'),
        {},
        "b",
        "the condition `n > 5` of the `if` link from `a` was not true",
    ),
    "a condition that was not looked at": (
        job('a (if 1: "n > 5") b'),
        {"a": BAD},
        "b",
        "`a` ended in ERROR, so its `if` link did not fire",
    ),
    "a skip before it": (job("a (error) b", "b (ok) c"), {}, "c", "`b` was skipped"),
    "the sub-job of another component": (
        job("a (ok) b", "b (subjob_error) c"),
        {},
        "c",
        "sub-job `a` (with `b`) ended OK, so its `subjob_error` link did not fire",
    ),
    "a sub-job that was skipped": (
        job("a (subjob_error) b", "b (subjob_ok) c"),
        {},
        "c",
        "sub-job `b` was skipped",
    ),
    "a branch that failed": (
        job("f (parallelise) a, b", "b (ok) b2", "b2 (ok) b3", "a, b3 (synchronise) j"),
        {"b2": BAD},
        "j",
        "of the branches that it joins, sub-job `b` ended in ERROR at `b2`",
    ),
    "two branches that failed": (
        job("f (parallelise) a, b, c", "a, b, c (synchronise) j"),
        {"a": BAD, "c": BAD},
        "j",
        "of the branches that it joins, sub-job `a` ended in ERROR at `a` and sub-job `c` ended in ERROR at `c`",
    ),
    "branches that were skipped": (
        job("f (parallelise) a, b", "b (ok) b2", "a, b2 (synchronise) j"),
        {"f": BAD},
        "j",
        "all of the branches that it joins were skipped: sub-job `a` and sub-job `b` (with `b2`)",
    ),
    "rows that do not come": (
        job("a -> b", "x (ok) b"),
        {"a": BAD},
        "b",
        "its input `input` cannot be fed: `a` ended in ERROR",
    ),
    "several links of one kind": (
        job("a (error) h", "b (error) h", "c (error) h"),
        {},
        "h",
        "`a`, `b` and `c` ended OK, so their `error` links did not fire",
    ),
    "several links of which each says something else": (
        job("a (ok) h", "b (error) h", "x (error) y", "y (ok) h"),
        {"a": BAD},
        "h",
        "none of the links to it fired: `a` ended in ERROR, so its `ok` link did not fire; "
        "`b` ended OK, so its `error` link did not fire; `y` was skipped",
    ),
    "a member of an iteration": (
        job("it (iterate) x", "x (ok) y"),
        {"it[#1].x": BAD},
        "it[#1].y",
        "`x` ended in ERROR, so its `ok` link did not fire",
    ),
}


@pytest.mark.clause("J2.9")
@cases("case", SKIPS)
def test_a_skip_says_what_decided_it(case: str) -> None:
    net, outcomes, name, why = SKIPS[case]
    play = Play(net, outcomes).run()
    skipped = {fact.scope: fact.body for fact in play.facts if isinstance(fact.body, ComponentSkipped)}
    assert skipped[name].cause == why
