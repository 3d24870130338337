"""Bodies of iterators: what runs once per element, and what may cross the border."""

import pytest

from penstock.kernel.net import On, Opening
from tests.cases import cases
from tests.dialects.job.support import errors, job, links, net_of, problems, subjobs

IT = {"it": "iterate_list"}


def part(net, name):
    found = net.nodes[name].part
    assert found is not None
    return found


def test_a_body_is_what_the_iterate_link_reaches():
    net = net_of(job("it (iterate) a", "a (ok) b", "a (error) c", 'b (if "x") d', "it (ok) after", types=IT))
    assert net.containers["it"].opening is Opening.BODY
    assert subjobs(net, "it") == [("a", "b", "c", "d")]
    assert subjobs(net) == [("it", "after")]
    assert part(net, "it").opens == "it"
    assert (part(net, "b").container, part(net, "b").local, part(net, "b").rank) == ("it", "b", 1)


def test_a_body_is_also_what_the_item_port_reaches():
    net = net_of(job("it.item -> f", "f -> show", types=IT))
    assert subjobs(net, "it") == [("f", "show")]
    assert part(net, "f").startable
    assert not any(link.crosses for link in net.links)


def test_an_iterator_knows_whether_it_halts_and_whether_it_asks():
    net = net_of(job("it (iterate) a", "w (iterate) b", types={"it": "iterate_list", "w": "iterate_while"}))
    assert net.nodes["it"].iterates.halts
    assert not net.nodes["it"].iterates.while_
    assert net.nodes["w"].iterates.while_
    assert net.nodes["a"].iterates is None


def test_what_handles_the_end_of_an_iteration_is_a_region_of_its_own_behind_the_body():
    net = net_of(
        job(
            "it (iteration_error) bad",
            "it (iteration_ok) good",
            "good (ok) better",
            "it (iterate) a",
            "a.main -> good.input",
            types={"it": "iterate_list", "bad": "noop", "good": "log_rows", "a": "fixed_rows"},
        )
    )
    regions = net.containers["it"].regions
    assert [(region.members, region.handles) for region in regions] == [
        (("a",), None),
        (("bad",), On.ITERATION_ERROR),
        (("good", "better"), On.ITERATION_OK),
    ]
    (rows,) = [link for link in net.links if link.on is On.DATA]
    assert rows.crosses


def test_one_component_may_handle_both_ends():
    net = net_of(job("it (iterate) a", "it (iteration_ok) log", "it (iteration_error) log", types=IT))
    assert subjobs(net, "it") == [("a",), ("log",)]


def test_rows_may_come_into_a_body_from_outside():
    net = net_of(
        job(
            "it (iterate) j",
            "it.item -> j.main",
            "rates -> j.lookup",
            "j -> show",
            types={"rates": "fixed_rows", "it": "iterate_list", "j": "join", "show": "log_rows"},
        )
    )
    assert subjobs(net, "it") == [("j", "show")]
    assert {f"{link.source}.{link.port}": link.crosses for link in net.links if link.on is On.DATA} == {
        "rates.main": True,
        "it.item": False,
        "j.main": False,
    }


def test_iterators_nest():
    net = net_of(
        job(
            "outer (iterate) a",
            "a (ok) inner",
            "inner (iterate) b",
            "inner (iteration_ok) note",
            "inner (iterator_complete) c",
            "outer (iterator_complete) end",
            types={"outer": "iterate_list", "inner": "iterate_list"},
        )
    )
    assert subjobs(net) == [("outer", "end")]
    assert subjobs(net, "outer") == [("a", "inner", "c")]
    assert subjobs(net, "inner") == [("b",), ("note",)]
    assert (
        errors(
            job("outer (iterate) inner", "inner (iterate) b", types={"outer": "iterate_list", "inner": "iterate_list"})
        )
        == []
    )


def test_a_body_may_have_several_sub_jobs():
    net = net_of(job("it (iterate) a, b", "a (subjob_ok) b", types=IT))
    assert subjobs(net, "it") == [("a",), ("b",)]


@cases(
    "lines, said",
    [
        (["it (iterate) a", "a (subjob_ok) b"], "`a (subjob_ok) b` leads out of the body of `it`"),
        (["it (iterate) a", "a (parallelise) b, c"], "`a (parallelise) b` leads out of the body of `it`"),
        (["it (iterate) a", "a (ok) b", "x (ok) b"], "`x (ok) b` leads into the body of `it` from outside"),
        (["it (iterate) a", "a (ok) b", "it (ok) b"], "`it (ok) b` leads into the body of `it` from outside"),
        (["it (iterate) a", "a (ok) b", "it (iterator_complete) b"], "`it (iterator_complete) b` leads into the body"),
    ],
)
def test_nothing_but_rows_crosses_the_border(lines, said):
    found = problems(job(*lines, types=IT), "J0309")
    assert found
    assert found[0].message.startswith(f"BODY_ESCAPE: {said}")
    assert "iterator_complete" in found[0].hint


def test_a_component_lies_in_one_body_only():
    (found,) = problems(
        job("one (iterate) a", "two (iterate) a", types={"one": "iterate_list", "two": "iterate_list"}), "J0309"
    )[:1]
    assert "`a` lies in the bodies of" in found.message


def test_an_iterator_without_a_body_is_warned_of():
    text = job(types=IT) + "  - {name: a, type: noop}\n"
    assert [problem.severity.value for problem in problems(text, "J0312")] == ["warning"]
    assert net_of(text).containers["it"].regions == ()


# ---- a joblet as body

BODY = """
kind: Joblet
inputs: {item: f.input}
components:
  - {name: f, type: filter, params: {where: id > 0}}
  - {name: show, type: log_rows}
  - {name: more, type: noop}
connections: {data: f -> show, control: "show (subjob_ok) more"}
"""


def with_body(name: str) -> str:
    return f"components: [{{name: it, type: iterate_list, params: {{items: [1], body: '{name}'}}}}]\n"


@pytest.mark.parametrize("name", ["work", "@work"])
def test_a_joblet_may_be_the_body(name):
    net = net_of(with_body(name), {"work": BODY})
    assert list(net.nodes) == ["it", "it.__f", "it.__show", "it.__more"]
    assert subjobs(net, "it") == [("it.__f", "it.__show"), ("it.__more",)]
    assert net.containers["it"].opening is Opening.BODY
    assert part(net, "it.__f").local == "__f"
    assert part(net, "it.__f").prefix == ("it",)
    assert links(net)[0] == "it.item -> it.__f.input"


def test_the_body_joblet_may_take_rows_from_outside():
    body = BODY.replace("inputs: {item: f.input}", "inputs: {item: f.input, rates: j.lookup}").replace(
        "  - {name: show,", "  - {name: j, type: join}\n  - {name: show,"
    )
    body = body.replace("data: f -> show", "data: f -> j -> show")
    text = (
        "components:\n"
        "  - {name: rates, type: fixed_rows, params: {columns: [id]}}\n"
        "  - {name: it, type: iterate_list, params: {items: [1], body: work}}\n"
        "connections: {data: rates -> it.rates}\n"
    )
    net = net_of(text, {"work": body})
    (rates,) = [link for link in net.links if link.source == "rates"]
    assert (rates.target, rates.to_port, rates.crosses) == ("it.__j", "lookup", True)
    assert "J0304" in errors(text.replace("connections: {data: rates -> it.rates}\n", ""), {"work": body})


def test_a_body_with_a_name_that_is_not_known_yet_is_refused():
    assert errors("components: [{name: it, type: iterate_list, params: {items: [1], body: '{{ x }}'}}]\n")[0] == "J0501"


def test_a_body_and_a_handler_outside_of_it_go_together():
    text = (
        "components:\n"
        "  - {name: it, type: iterate_list, params: {items: [1], body: work}}\n"
        "  - {name: note, type: noop}\n"
        "connections: {control: it (iteration_error) note}\n"
    )
    net = net_of(text, {"work": BODY})
    assert subjobs(net, "it") == [("it.__f", "it.__show"), ("it.__more",), ("note",)]
    assert [region.handles for region in net.containers["it"].regions] == [None, None, On.ITERATION_ERROR]
    assert part(net, "note").region == 2
