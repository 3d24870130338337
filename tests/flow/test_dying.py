"""Jobs that die: given a death, what still starts; and that a stop in the middle of dying changes nothing (D38)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.kernel.net import Net
from tests.flow.nets import Play, error, job

DIES = replace(error("die"), dies=True, exit_code=42)

DEATHS: dict[str, tuple[Net, dict[str, Any], dict[str, str]]] = {
    # What: net, outcomes, states at the end. What lies in another sub-job and has not begun is skipped.
    "with an error link": (
        job("a (error) help", "help (ok) more", "a (ok) after", alone="a"),
        {"a": DIES},
        {"a": "ERROR", "help": "OK", "more": "OK", "after": "SKIPPED"},
    ),
    "with a sub-job that mended itself": (
        job("a (error) help", "a (subjob_ok) next", "a (subjob_error) sorry"),
        {"a": DIES},
        {"a": "ERROR", "help": "OK", "next": "SKIPPED", "sorry": "SKIPPED"},
    ),
    "with a handler of its sub-job": (
        job("a (ok) b", "b (subjob_error) sorry", "sorry (subjob_ok) told", "b (subjob_ok) next"),
        {"b": DIES},
        {"a": "OK", "b": "ERROR", "sorry": "OK", "told": "OK", "next": "SKIPPED"},
    ),
    "in a branch of a fork": (
        job("f (parallelise) a, b", "a (error) help", "b (ok) c", "a, b (synchronise) j"),
        {"a": DIES},
        {"f": "OK", "a": "ERROR", "help": "OK", "b": "OK", "c": "SKIPPED", "j": "SKIPPED"},
    ),
    "in an iteration": (
        job("it (iterate) x", "x (ok) y", "it (error) help", "it (ok) after", "it (subjob_ok) next"),
        {"it[#1].x": DIES},
        {
            "it": "ERROR",
            "it[#0].x": "OK",
            "it[#0].y": "OK",
            "it[#1].x": "ERROR",
            "it[#1].y": "SKIPPED",
            "help": "OK",
            "after": "SKIPPED",
            "next": "SKIPPED",
        },
    ),
    "in an iteration that mended itself": (
        job("it (iterate) x", "x (error) mend", "it (ok) after", iterations={"it": {"halts": False}}),
        {"it[#2].x": DIES},
        {
            "it": "ERROR",
            **{f"it[#{index}].x": "OK" for index in (0, 1)},
            **{f"it[#{index}].mend": "SKIPPED" for index in (0, 1)},
            "it[#2].x": "ERROR",
            "it[#2].mend": "OK",
            "after": "SKIPPED",
        },
    ),
    "by the policy of the job": (
        job("a (subjob_error) sorry", "b (ok) c", "c (subjob_ok) d", alone="a b", aborts=True),
        {"a": error()},
        {"a": "ERROR", "b": "OK", "c": "SKIPPED", "sorry": "OK", "d": "SKIPPED"},
    ),
}


@pytest.mark.clause("J2.2")
@pytest.mark.parametrize("what", DEATHS)
def test_of_a_dying_job_only_the_error_path_starts(what: str) -> None:
    net, outcomes, states = DEATHS[what]
    play = Play(net, outcomes).run()
    assert play.states() == states


@pytest.mark.clause("J2.2")
@pytest.mark.parametrize("what", [what for what in DEATHS if "policy" not in what])
def test_a_job_that_died_has_failed_with_the_exit_code_of_what_it_died_of(what: str) -> None:
    net, outcomes, _ = DEATHS[what]
    play = Play(net, outcomes).run()
    assert (play.status, play.tree.root.exit_code) == ("failed", 42)


@pytest.mark.clause("J7.2")
@pytest.mark.parametrize("what", DEATHS)
def test_a_job_cut_off_while_it_died_goes_on_dying_when_it_is_resumed(what: str) -> None:
    """But for what was running when it stopped: in a dying job that does not start anew."""
    net, outcomes, states = DEATHS[what]
    whole = Play(net, outcomes).run()
    for cut in whole.boundaries:
        stopped = Play(net, outcomes, log=whole.facts[:cut])
        running = {name for name, state in stopped.states().items() if state == "RUNNING"}
        again = stopped.resume()
        assert again.status == whole.status
        assert again.tree.root.exit_code == whole.tree.root.exit_code
        assert {name: state for name, state in again.states().items() if name not in running} == {
            name: state for name, state in states.items() if name not in running
        }


@pytest.mark.clause("J7.2")
@pytest.mark.parametrize("what", DEATHS)
def test_a_job_that_died_and_is_mended_comes_to_its_end(what: str) -> None:
    net, outcomes, _ = DEATHS[what]
    dead = Play(net, outcomes).run()
    if dead.status != "failed":
        return
    again = Play(net, log=dead.facts).resume()
    assert again.status == "completed"
    assert [name for name, state in again.states().items() if state == "ERROR" and "[#" not in name] == []
