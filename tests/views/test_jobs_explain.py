"""Why a component ran, waits, was skipped or failed; and sub-jobs and iterations."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from penstock.kernel.decide import Cancel
from penstock.kernel.errors import Refused
from penstock.kernel.judge import Ended
from penstock.kernel.net import Net
from penstock.views.explain import Explanation, Log, explain
from penstock.views.model import Execution
from tests.views.jobs import Played, job, play
from tests.views.support import text_of


def _nothing(ref: object) -> None:
    raise AssertionError("nothing is stored outside this log")


def explained(played: Played, node: str, *, is_live: bool = False, with_net: bool = True) -> str:
    return text_of(answered(played, node, is_live=is_live, with_net=with_net))


class Book:
    def __init__(self, net: Net | None) -> None:
        self._net = net

    def net(self, execution: Execution) -> Net | None:
        return self._net

    def where(self, execution: Execution, step: str, arc: int | None = None, task: str | None = None) -> str:
        return f"job.yaml:{len(step)}"


def answered(played: Played, node: str, *, is_live: bool = False, with_net: bool = True) -> Explanation:
    log = Log(lambda: played.entries, _nothing, is_live)
    return explain(node, log, Book(played.net if with_net else None))


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def test_the_chain_goes_from_the_start_of_the_job_through_links_and_sub_jobs() -> None:
    net = job("a.main -> b.input", "a (ok) b", 'b (if 1: "n > 1") c', "c (subjob_ok) d")
    text = explained(play(net, {"a": {"main": 10}}, true=frozenset({"n > 1"})), "d")
    assert lines(text) == [
        "`d` (t_d) ended OK after 2 ms  (job.yaml:1)",
        "why it ran",
        "the job started, and `a` waits for nothing  (job.yaml:1)",
        "`a` ended OK after 2 ms; its `ok` link fired → `b`  (job.yaml:1)",
        "`b` ended OK after 2 ms; its `if` link fired, as `n > 1` was true → `c`  (job.yaml:1)",
        "sub-job `a` ended OK; its `subjob_ok` link fired → `d`  (job.yaml:1)",
    ]


def test_it_says_what_a_component_was_given_and_what_followed_from_it() -> None:
    net = job("a.main -> b.input", "a (ok) b", "b.main -> c.input", 'b (if 1: "n > 1") d', "b (error) e")
    text = explained(play(net, {"a": {"main": 10}, "b": {"main": 3}}), "b")
    assert "`input` from `a.main`: 10 rows" in text
    assert "rows out: 3" in text
    assert "`main` → `input` → `c`: 3 rows" in text
    assert "`if 1` → `d`: did not fire: `n > 1` was not true" in text
    assert "`error` → `e`: did not fire: `b` ended OK" in text


def test_a_skip_is_followed_back_to_what_was_not_one() -> None:
    net = job("a (ok) b", 'b (if 1: "n > 1") c', "c (ok) d", "d (ok) e")
    text = explained(play(net), "e")
    assert lines(text)[:6] == [
        "`e` was SKIPPED  (job.yaml:1)",
        "why it was skipped",
        "`e` was skipped: `d` was skipped",
        "`d` was skipped: `c` was skipped",
        "`c` was skipped: the condition `n > 1` of the `if` link from `b` was not true",
        "its ways in",
    ]


def test_a_dead_data_port_names_the_component_that_failed() -> None:
    net = job("a.main -> b.input", "x (ok) b")
    text = explained(play(net, {"a": ValueError("no rows")}), "b")
    assert "its input `input` cannot be fed: `a` ended in ERROR" in text
    assert "`a` ended in ERROR: exception: no rows  (job.yaml:1)" in text
    assert "`main` → `input` from `a`: dead: `a` ended in ERROR: exception: no rows" in text
    assert "`ok` from `x`: fired" in text


def test_of_several_links_into_one_port_each_tells_its_own_rows() -> None:
    net = job("a.main -> c.input", "b.main -> c.input")
    text = explained(play(net, {"a": {"main": 4}, "b": {"main": 6}}), "c")
    assert "`input` from `a.main`: 4 rows" in text
    assert "`input` from `b.main`: 6 rows" in text


def test_a_join_names_the_branch_that_failed() -> None:
    net = job("a (parallelise) b, c", "b, c (synchronise) d")
    text = explained(play(net, {"c": ValueError("no luck")}), "d")
    assert "`d` was skipped: of the branches that it joins, sub-job `c` ended in ERROR at `c`" in text
    assert "`c` ended in ERROR: exception: no luck" in text
    assert "`synchronise` from `b`: did not fire: sub-job `b` ended OK, and not all of the branches did" in text


def test_a_join_that_ran_names_its_branches() -> None:
    text = explained(play(job("a (parallelise) b, c", "b, c (synchronise) d")), "d")
    assert "the branches of `b` and `c` had all ended, so they joined in `d`" in text


def test_a_dying_job_is_why_nothing_else_starts() -> None:
    net = job("a (ok) b", "a (error) h", "c (ok) d", die=("a",))
    played = Played(net, {"a": ValueError("fatal")}).run()
    assert "`d` was skipped: the job is ending" in explained(played, "d")
    assert "`a` ended in ERROR and the job died with it: exception: fatal" in explained(played, "d")
    died = explained(played, "a")
    assert "its `error` link led to `h`: `h` ended OK" in died
    assert "the job died with it, once its error path had run" in died


def test_an_error_says_who_took_it_and_what_it_meant_for_the_sub_job() -> None:
    handled = explained(play(job("a (error) h"), {"a": ValueError("no")}), "a")
    assert "why it failed\n  exception: no" in handled
    assert "its `error` link led to `h`: `h` ended OK" in handled
    assert "sub-job `a` ended OK all the same" in handled
    alone = explained(play(job("a (ok) b"), {"a": ValueError("no")}), "a")
    assert "it has no `error` link" in alone
    assert "sub-job `a` ended in ERROR" in alone


def test_a_component_that_waits_says_for_what_and_what_it_has() -> None:
    net = job("a.main -> c.input", "b (ok) c")
    played = Played(net).run(until=lambda one: not any(state.place.id == "a" for state in one.ready))
    text = explained(played, "c", is_live=True)
    assert lines(text) == [
        "`c` waits  (job.yaml:1)",
        "what it waits for",
        "`ok` from `b`: not yet: `b` is running",
        "what it has",
        "`main` → `input` from `a`: 1 row",
    ]
    assert "was running when the job stopped" in explained(played, "c")


def test_a_component_under_way_is_running_or_was_when_the_job_stopped() -> None:
    played = Played(job("a (ok) b")).run(until=lambda one: True)
    assert "`a` (t_a) is RUNNING" in explained(played, "a", is_live=True)
    assert "a resume starts it anew" in explained(played, "a")


def test_globals_that_a_component_wrote_are_told_with_their_old_values() -> None:
    net = job("a (ok) b")
    played = play(net, {"a": Ended(writes={"x": 1}), "b": Ended(writes={"x": 2})})
    assert "global `x`: 1 → 2" in explained(played, "b")


# ---- iterations, sub-jobs, joblets

BODY = ("it (iterate) x", "x (ok) y", "it (iteration_error) h", "it (iterator_complete) z")
INSIDE = {"it": ["x", "y", "h"]}


@pytest.fixture
def halted() -> Played:
    return play(job(*BODY, inside=INSIDE), {"it": ["p", "q", "r"], "it[#1].x": ValueError("bad q")})


@pytest.mark.parametrize("name", ["it[#1]", "it[1]", " it[1] "])
def test_an_iteration_has_its_element_its_members_and_its_handlers(halted: Played, name: str) -> None:
    text = explained(halted, name)
    assert text.startswith("iteration `it[#1]` ended in ERROR")
    assert '`it` opened `it[#1]` for "q"' in text
    assert "`it[#1].x` ERROR after 2 ms: bad q" in text
    assert "`it[#1].y` SKIPPED" in text
    assert "`iteration_error` → `h`: `it[#1].h` ended OK" in text


def test_a_member_of_an_iteration_is_led_back_to_the_iterator(halted: Played) -> None:
    text = explained(halted, "it[#0].y")
    assert '`it` opened iteration `it[#0]` for "p", which begins with `it[#0].x`' in text
    assert "`it[#0].x` ended OK after 2 ms; its `ok` link fired → `it[#0].y`" in text
    assert "iteration `it[#1]` was over; its `iteration_error` link fired" in explained(halted, "it[#1].h")


def test_a_bare_name_of_a_body_is_answered_for_all_its_runs(halted: Played) -> None:
    text = explained(halted, "x")
    assert text.startswith("`x` ran in 2 iterations: 1 OK, 1 ERROR")
    assert "ask for one of them, such as `it[#1].x`" in text


def test_an_iteration_that_never_began_says_why(halted: Played) -> None:
    text = explained(halted, "it[#2]")
    assert "`it[#1]` failed and `fail_strategy` is halt, so no more were started" in text
    with pytest.raises(Refused, match="`it` has 3 iterations, numbered from 0"):
        explained(halted, "it[#3]")
    with pytest.raises(Refused, match="`z` has no iterations"):
        explained(halted, "z[#0]")


def test_an_iterator_tells_its_counts_and_its_failures(halted: Played) -> None:
    text = explained(halted, "it")
    assert "2 iterations of 3: 1 OK, 1 in ERROR" in text
    assert "`it[#1]`: exception: bad q" in text


def test_a_sub_job_is_asked_for_by_its_first_component_in_brackets() -> None:
    net = job("a (ok) b", "a (error) h", "b (subjob_ok) c")
    text = explained(play(net, {"b": ValueError("no")}), "<a>")
    assert text.startswith("sub-job `a` ended in ERROR")
    assert "why it began\n  the job started" in text
    assert "`b` ERROR after 2 ms: no" in text
    assert "why it failed\n  exception: no" in text
    assert "`subjob_ok` → `c`: did not fire: sub-job `a` ended in ERROR" in text
    assert "a checkpoint of" in text


def test_the_inside_of_a_joblet_is_led_back_to_its_call() -> None:
    net = job("a (ok) j", "j.__x (ok) j.__y", alone=("a", "j"), inside={"j": ["j.__x", "j.__y"]})
    text = explained(play(net), "j.__y")
    assert "`a` ended OK after 2 ms; its `ok` link fired → `j`" in text
    assert "`j` was called, and `j.__x` is where its inside begins" in text


def test_what_was_kept_by_a_resume_is_said_to_be() -> None:
    played = play(job("a (subjob_ok) b", "b (ok) c"), {"c": ValueError("no")})
    played.resume(c=None)
    assert "in an earlier run, and a resume kept it" in explained(played, "a")
    assert "sub-job `a` ended OK; its `subjob_ok` link fired → `b`" in explained(played, "c")


def test_a_cancelled_run_is_why_a_component_was_skipped() -> None:
    played = Played(job("a (ok) b")).run(until=lambda one: True)
    played.when(Cancel("enough"))
    played.go_on()
    text = explained(played, "b")
    assert "`b` was skipped: the run was cancelled" in text
    assert "the run was cancelled: enough" in text


def test_a_name_that_is_not_there_is_refused_with_the_names_that_are() -> None:
    played = play(job("load (ok) clean"))
    with pytest.raises(Refused) as refused:
        explained(played, "claen")
    assert refused.value.message == "the job has no component, sub-job or iteration `claen`; did you mean `clean`?"
    assert "`load`, `clean`" in str(refused.value.hint)


def test_without_the_document_the_log_alone_still_answers() -> None:
    text = explained(play(job("a (ok) b")), "b", with_net=False)
    assert "`a` ended OK after 2 ms; its `ok` link fired → `b`" in text


def test_a_long_chain_is_cut_in_the_middle() -> None:
    names = [f"c{number}" for number in range(40)]
    net = job(*(f"{one} (ok) {other}" for one, other in pairwise(names)))
    text = explained(play(net), "c39")
    assert "… 27 more, each led to by the one before …" in text
    assert len(text.splitlines()) < 20


def test_the_answer_is_there_as_json_too() -> None:
    played = play(job("a (ok) b"))
    answer: Any = answered(played, "b").as_json()
    assert (answer["node"], answer["status"]) == ("b", "OK")
    assert answer["because"][0]["title"] == "why it ran"


def test_what_a_condition_read_is_told_with_its_values() -> None:
    net = job(
        "a.main -> b.input", 'a (if 1: "NB_LINE > 99 and global.a.NB_LINES > 0 and global.other > context.limit") c'
    )
    text = explained(play(net, {"a": {"main": 10}}), "c")
    assert "was not true (NB_LINE = 10, global.a.NB_LINES = undefined" in text
