"""`active: false`: rows pass through, triggers are spliced, and what can never run is left out."""

import pytest

from tests.dialects.job.support import errors, job, links, net_of, problems, subjobs


def without(name: str, text: str) -> str:
    return text.replace(f"  - name: {name}\n", f"  - name: {name}\n    active: false\n")


def left_out(text: str) -> list[str]:
    return [problem.message for problem in problems(text, "J0802")]


def test_rows_pass_through_a_component_that_is_left_out():
    net = net_of(without("b", job("a -> b", "b -> c")))
    assert links(net) == ["a.main -> c.input"]
    assert list(net.nodes) == ["a", "c"]


def test_triggers_are_spliced_through_it():
    net = net_of(without("b", job("a (ok) b", "b (ok) c")))
    assert links(net) == ["a (ok) c"]
    net = net_of(without("b", job("a (error) b", "b (ok) c")))
    assert links(net) == ["a (error) c"]
    net = net_of(without("b", job('a (if 3: "x > 1") b', "b (ok) c")))
    assert links(net) == ["a (if 3: x > 1) c"]


def test_what_came_after_a_component_that_only_rows_gated_comes_after_the_source_of_the_rows():
    net = net_of(without("b", job("a -> b", "b -> c", "b (ok) d")))
    assert links(net) == ["a.main -> c.input", "a (ok) d"]


def test_what_the_first_component_let_start_may_start_at_once():
    net = net_of(without("a", job("a (ok) b", "b (ok) c")))
    assert links(net) == ["b (ok) c"]
    assert net.nodes["b"].part.startable


def test_two_in_a_row_may_be_left_out():
    net = net_of(without("c", without("b", job("a -> b", "b -> c", "c -> d", types={"c": "filter"}))))
    assert links(net) == ["a.main -> d.input"]


def test_a_fork_stays_a_fork():
    text = without("b", job("a (ok) b", "b (parallelise) c, d", "c, d (synchronise) e"))
    assert links(net_of(text)) == ["a (parallelise) c", "a (parallelise) d", "c (synchronise) e", "d (synchronise) e"]


@pytest.mark.parametrize(
    ("trigger", "left"),
    [
        ([], []),
        (["x (error) a"], ["x (error) b", "x (error) c"]),
        (['x (if 1: "NB_LINE > 0") a'], ["x (if 1: NB_LINE > 0) b", "x (if 1: NB_LINE > 0) c"]),
        (["x (subjob_ok) a"], ["x (subjob_ok) b", "x (subjob_ok) c"]),
    ],
)
def test_branches_stay_branches_whatever_had_started_the_fork_that_is_left_out(trigger, left):
    text = without("a", job(*trigger, "a (parallelise) b, c", "b (ok) more", "more, c (synchronise) d"))
    net = net_of(text)
    assert sorted(links(net)) == sorted([*left, "b (ok) more", "more (synchronise) d", "c (synchronise) d"])
    assert subjobs(net) == [*([("x",)] if trigger else []), ("b", "more"), ("c",), ("d",)]


def test_a_branch_begins_later_when_its_root_is_left_out_as_well_as_the_fork():
    text = without("b", without("a", job("a (parallelise) b, c", "b (ok) more", "more, c (synchronise) d")))
    assert subjobs(net_of(text)) == [("c",), ("more",), ("d",)]


def test_a_branch_is_not_taken_for_the_one_that_feeds_its_root():
    types = {"a": "noop", "b": "fixed_rows", "c": "filter", "more": "log_rows", "d": "noop"}
    lines = ("a (parallelise) b, c", "b -> c", "c -> more", "b, c (synchronise) d")
    net = net_of(without("c", job(*lines, types=types)))
    assert [link for link in links(net) if "synchronise" in link] == ["b (synchronise) d", "more (synchronise) d"]


def test_a_join_waits_for_all_that_is_left_of_a_branch_without_its_root():
    lines = ("a (parallelise) b, c", "b (ok) x", "b (ok) y", "b, c (synchronise) d")
    net = net_of(without("b", job(*lines)))
    assert sorted(net.nodes["d"].joins) == ["c", "x", "y"]
    net = net_of(without("b", job(*lines, "x -> y", types={"x": "fixed_rows", "y": "log_rows"})))
    assert sorted(net.nodes["d"].joins) == ["c", "x", "y"]
    net = net_of(without("b", job(*lines, "x (ok) z", "y (ok) z")))
    assert sorted(net.nodes["d"].joins) == ["c", "x"]


def test_a_branch_of_a_fork_may_be_left_out():
    text = without("b", job("a (parallelise) b, c", "b (ok) x", "b, c (synchronise) d"))
    assert sorted(links(net_of(text))) == [
        "a (parallelise) c",
        "a (parallelise) x",
        "c (synchronise) d",
        "x (synchronise) d",
    ]


def test_links_of_a_sub_job_move_to_a_neighbour():
    text = without("b", job("a (ok) b", "b (subjob_ok) c"))
    assert links(net_of(text)) == ["a (subjob_ok) c"]


def test_what_reads_a_source_that_is_left_out_is_left_out_too():
    text = without("a", job("a -> b", "b -> c", "x (ok) y"))
    assert list(net_of(text).nodes) == ["x", "y"]
    assert left_out(text) == [
        "LEFT_OUT: `b` is left out too: it needs `a`, which is inactive",
        "LEFT_OUT: `c` is left out too: it needs `b`, which is left out because `a` is inactive",
    ]


def test_what_reads_the_rejects_of_a_component_that_is_left_out_is_left_out_too():
    text = without("b", job("a -> b", "b -> c", "b.reject -> d"))
    net = net_of(text)
    assert list(net.nodes) == ["a", "c"]
    assert len(left_out(text)) == 1


def test_what_only_an_error_or_a_condition_would_have_started_is_left_out_too():
    text = without("a", job("a (error) b", "b (ok) c", 'a (if "x") d', "e (ok) d"))
    assert set(net_of(text).nodes) == {"d", "e"}


def test_what_an_inactive_component_would_have_started_is_left_out_when_that_never_could():
    text = without("b", without("a", job("a (error) b", "b (ok) c", "x (ok) y")))
    assert set(net_of(text).nodes) == {"x", "y"}
    assert left_out(text) == ["LEFT_OUT: `c` is left out too: it needs `b`, which is left out because `a` is inactive"]


def test_the_body_of_an_iterator_that_is_left_out_is_left_out_too():
    text = without(
        "it", job("x (ok) it", "it (iterate) a", "a (ok) b", "it (iterator_complete) c", types={"it": "iterate_list"})
    )
    net = net_of(text)
    assert list(net.nodes) == ["x", "c"]
    assert links(net) == ["x (ok) c"]


def test_an_optional_input_may_lose_its_rows():
    types = {"a": "fixed_rows", "b": "fixed_rows", "u": "union", "c": "log_rows"}
    net = net_of(without("a", job("a -> u.input_1", "b -> u.input_2", "u -> c", types=types)))
    assert links(net) == ["b.main -> u.input_2", "u.main -> c.input"]


def test_mistakes_in_a_component_that_is_left_out_do_not_matter():
    text = "components:\n  - {name: a, type: noop}\n  - {name: b, type: warn, active: false, params: {mesage: '{{ x | uper }}'}}\n"
    assert errors(text) == []


def test_a_joblet_call_may_be_left_out():
    joblet = "kind: Joblet\ninputs: {rows: keep.input}\noutputs: {kept: keep.main}\ncomponents: [{name: keep, type: filter, params: {where: id > 0}}]\n"
    text = job("a -> j.rows", "j.kept -> b", types={"a": "fixed_rows", "j": "@clean", "b": "log_rows"})
    assert links(net_of(without("j", text), {"clean": joblet})) == ["a.main -> b.input"]
