"""Ports: those that are left out, wild-cards, and how many links may end at one."""

from tests.cases import cases
from tests.dialects.job.support import errors, job, links, net_of, problems

JOIN = {"a": "fixed_rows", "b": "fixed_rows", "j": "join", "out": "log_rows"}


def test_a_port_that_is_left_out_is_the_main_one():
    net = net_of(job("a -> j", "b -> j.lookup", "j -> out", types=JOIN))
    assert links(net) == ["a.main -> j.main", "b.main -> j.lookup", "j.main -> out.input"]


def test_without_a_main_port_the_only_one_is_meant():
    types = {"a": "fixed_rows", "each": "iterate_rows", "b": "filter", "c": "log_rows"}
    assert links(net_of(job("a -> each", "each -> b", "b -> c", types=types))) == [
        "a.main -> each.input",
        "each.item -> b.input",
        "b.main -> c.input",
    ]


@cases(
    "line, said, hint",
    [
        ("a -> u", "which input of `u` is meant? it has `input_*`", "such as `u.input_a`"),
        ("r -> b", "which output of `r` is meant? it has `output_*`", "such as `r.output_1`"),
        ("a.man -> b", "`a` has no output `man`", "its outputs are `main`"),
        ("b.input -> c", "`b` has no output `input`", "it is an input"),
        ("a -> b.main", "`b` has no input `main`", "it is an output"),
        ("n -> b", "`n` of type `noop` gives no rows", "join it by a control link, such as `a (ok) b`"),
        ("a -> n", "`n` of type `noop` takes no rows", "join it by a control link, such as `a (ok) b`"),
        ("a -> n.x", "`n` has no input `x`", "it has no inputs"),
    ],
)
def test_a_port_that_is_not_there_is_reported_with_those_that_are(line, said, hint):
    types = {"a": "fixed_rows", "b": "filter", "c": "log_rows", "u": "union", "r": "replicate", "n": "noop"}
    (found,) = problems(job(line, types=types), "J0303")
    assert found.message == f"UNKNOWN_PORT: {said}"
    assert found.hint == hint


def test_an_unknown_component_is_reported_at_its_own_end_of_the_link():
    (found,) = problems("components: [{name: abc, type: noop}]\nconnections: {control: 'abc (ok) abd'}\n", "J0302")
    assert (found.position.column, found.position.end_column) == (34, 37)
    assert found.label == "did you mean `abc`?"


def test_ports_of_an_unknown_type_raise_no_further_complaint():
    assert errors(
        "components: [{name: a, type: nope}, {name: b, type: log_rows}]\nconnections: {data: a.x -> b}\n"
    ) == ["J0203"]


def test_rows_from_many_links_may_meet_where_a_port_takes_many():
    types = {"a": "fixed_rows", "b": "fixed_rows", "g": "gather", "c": "log_rows"}
    net = net_of(job("a -> g", "b -> g", "g -> c", types=types))
    assert net.nodes["g"].part.required == ("input",)


def test_a_required_input_that_nothing_feeds_is_named():
    (found,) = problems(job("a -> j", "j -> out", types={"a": "fixed_rows", "j": "join", "out": "log_rows"}), "J0305")
    assert found.message == "PORT_ARITY: nothing feeds the input `lookup` of `j`"


def test_a_second_link_to_an_input_is_reported_where_it_stands():
    (found,) = problems(job("a -> c", "b -> c"), "J0305")
    assert "2 links end at the input `input` of `c`" in found.message
    assert "`a.main`, `b.main`" in found.message
    assert found.position.line == 13


def test_an_optional_input_may_stay_open():
    assert errors("components: [{name: p, type: python, params: {code: pass}}]\n") == []


def test_only_iterators_have_iterations():
    (found,) = problems(job("a (iterate) b"), "J0311")
    assert found.message == "NOT_AN_ITERATOR: `a` is not an iterator, so nothing fires on `iterate`"


def test_required_ports_are_those_that_are_connected():
    types = {"a": "fixed_rows", "b": "fixed_rows", "u": "union", "p": "python"}
    net = net_of(job("a -> u.input_b", "b -> u.input_a", "u -> p", types=types))
    assert net.nodes["u"].part.required == ("input_a", "input_b")
    assert net.nodes["p"].part.required == ("input",)
