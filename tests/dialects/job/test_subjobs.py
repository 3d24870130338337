"""Order, cycles, roles and what the net says of each component."""

import pytest

from penstock.kernel.net import Gate, On
from tests.cases import cases
from tests.dialects.job.support import errors, job, net_of, problems, subjobs


def part(net, name):
    found = net.nodes[name].part
    assert found is not None
    return found


def test_members_are_ranked_topologically_and_ties_keep_the_order_of_the_document():
    net = net_of(job("d (ok) b", "d (ok) a", "a (ok) c", "b (ok) c", types=dict.fromkeys("abcd", "noop")))
    assert subjobs(net) == [("d", "a", "b", "c")]
    assert [part(net, name).rank for name in "dabc"] == [0, 1, 2, 3]
    assert net.containers[""].regions[0].name == "a"


def test_sub_jobs_are_numbered_by_their_first_member_in_the_document():
    net = net_of(job("z (ok) y", types=dict.fromkeys("xyz", "noop")))
    assert [(region.index, region.name, region.members) for region in net.containers[""].regions] == [
        (0, "x", ("x",)),
        (1, "y", ("z", "y")),
    ]
    assert part(net, "z").region == 1


def test_a_link_into_a_fork_target_or_a_join_does_not_merge():
    net = net_of(
        job(
            "a (parallelise) b, c",
            "src -> b",
            "b, c (synchronise) j",
            "b.main -> j.input",
            "c (error) j",
            types={"a": "noop", "src": "fixed_rows", "b": "filter", "c": "noop", "j": "log_rows"},
        )
    )
    assert subjobs(net) == [("a",), ("src",), ("b",), ("c",), ("j",)]
    assert net.nodes["j"].gate is Gate.BARRIER
    assert net.nodes["j"].joins == ("b", "c")
    assert net.nodes["b"].gate is Gate.GREEN
    assert [link.crosses for link in net.links if link.on is On.DATA] == [True, True]


@cases(
    "lines, said",
    [
        (["a (ok) a"], "`a` -> `a`"),
        (["a (ok) b", "b (error) a"], "`a` -> `b` -> `a`"),
        (["a -> b", "b -> c", "c.main -> b.input"], "`b` -> `c` -> `b`"),
        (["a (ok) b", "a (subjob_ok) b"], "`b` -> the end of the sub-job `a` -> `b`"),
        (
            ["a (subjob_ok) b", "b (subjob_error) a"],
            "`a` -> the end of the sub-job `a` -> `b` -> the end of the sub-job `b` -> `a`",
        ),
        (
            ["a (ok) b", "b (subjob_ok) c", "c (ok) d", "d (subjob_ok) b"],
            "`b` -> the end of the sub-job `a` -> `c` -> the end of the sub-job `c` -> `b`",
        ),
    ],
)
def test_a_circle_names_what_is_on_it_in_order(lines, said):
    types = {"a": "fixed_rows", "b": "filter", "c": "filter"} if "c.main" in lines[-1] else None
    found = problems(job(*lines, types=types), "J0306")
    assert len(found) == 1
    assert found[0].message.startswith("CYCLE_DETECTED: the links lead in a circle: ")
    assert said in found[0].message


def test_an_iteration_that_waits_for_what_comes_after_the_iterator_is_a_circle():
    (found,) = problems(
        job(
            "it (iterate) j",
            "it.item -> j.main",
            "it (ok) late",
            "late -> j.lookup",
            "j -> show",
            types={"it": "iterate_list", "j": "join", "late": "fixed_rows", "show": "log_rows"},
        ),
        "J0306",
    )
    assert "the end of `it`" in found.message


def test_two_circles_are_both_reported():
    assert errors(job("a (ok) b", "b (ok) a", "c (ok) d", "d (ok) c")) == ["J0306", "J0306"]


# ---- startable, pre-job, post-job


def test_what_no_control_link_leads_to_may_start():
    net = net_of(job("a (ok) b", "x -> y", "b (subjob_ok) x"))
    assert {name: part(net, name).startable for name in net.nodes} == {"a": True, "b": False, "x": False, "y": True}


def test_a_component_may_be_marked_startable_by_the_document_or_by_its_type():
    text = job("a (ok) b", "a (ok) t", types={"a": "noop", "t": "timer"})
    assert part(net_of(text), "t").startable
    assert not part(net_of(text), "b").startable
    assert part(net_of(text.replace("- name: b\n", "- name: b\n    startable: true\n")), "b").startable


def test_a_pre_job_lets_every_other_sub_job_start():
    net = net_of(job("pre (ok) setup", "a (ok) b", "c -> d", "b (subjob_ok) e", types={"pre": "pre_job"}))
    hidden = [(link.source, link.target, link.on) for link in net.links if link.hidden]
    assert hidden == [("pre", "a", On.SUBJOB_OK), ("pre", "c", On.SUBJOB_OK)]
    assert {name for name in net.nodes if part(net, name).startable} == {"pre", "d"}
    assert part(net, "d").required == ("input",)


def test_a_post_job_waits_for_every_other_sub_job_and_always_runs():
    net = net_of(job("a (ok) b", "a (subjob_error) c", "post (ok) tidy", types={"a": "noop", "post": "post_job"}))
    hidden = [(link.source, link.target, link.on) for link in net.links if link.hidden]
    assert hidden == [("a", "post", On.SUBJOB_DONE), ("c", "post", On.SUBJOB_DONE)]
    assert net.nodes["post"].gate is Gate.BARRIER
    assert {name for name in net.nodes if part(net, name).always} == {"post", "tidy"}
    assert not part(net, "post").startable


def test_a_post_job_does_not_wait_for_the_pre_job_to_be_ok():
    net = net_of(job("a (ok) b", types={"pre": "pre_job", "post": "post_job", "a": "noop"}))
    assert {(link.source, link.target, link.on) for link in net.links if link.hidden} == {
        ("pre", "a", On.SUBJOB_OK),
        ("pre", "post", On.SUBJOB_DONE),
        ("a", "post", On.SUBJOB_DONE),
    }


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["a (ok) post"],
            "`a (ok) post` leads into the post-job `post`, which starts by itself when everything else has ended",
        ),
        (["a (subjob_error) post"], "`a (subjob_error) post` leads into the post-job `post`"),
        (["a (parallelise) post, b"], "`a (parallelise) post` leads into the post-job `post`"),
        (["a (ok) pre"], "`a (ok) pre` leads into the pre-job `pre`, which starts by itself before everything else"),
    ],
)
def test_no_control_link_leads_into_a_pre_job_or_a_post_job(lines, said):
    text = job(*lines, types={"a": "noop", "pre": "pre_job", "post": "post_job"})
    (problem,) = problems(text, "J0313")
    assert problem.message.removeprefix("ROLE_LINK: ").startswith(said)
    assert text.splitlines()[problem.position.line - 1].strip() == lines[0]
    assert "take this link away" in problem.hint


def test_a_post_job_alone_may_start():
    assert part(net_of(job(types={"post": "post_job"})), "post").startable


@pytest.mark.parametrize(
    "text",
    [
        job(types={"a": "pre_job", "b": "pre_job"}),
        job("it (iterate) p", types={"it": "iterate_list", "p": "post_job"}),
    ],
)
def test_a_pre_job_and_a_post_job_stand_in_the_job_itself_and_once(text):
    assert errors(text) == ["J0206"]


def test_marks_of_a_component_reach_the_net():
    text = "components: [{name: a, type: noop, die_on_error: true, global_export: [x, y]}, {name: b, type: noop, global_export: z}]\n"
    net = net_of(text)
    assert part(net, "a").die_on_error
    assert part(net, "a").exports == ("x", "y")
    assert part(net, "b").exports == ("z",)
    assert net.nodes["a"].tasks[0].kind == "noop"
    assert net.nodes["a"].tasks[0].label == "a"
