"""Fused groups: which components may run as one query."""

from tests.cases import cases
from tests.dialects.job.support import job, net_of

CHAIN = ["src -> f", "f -> d", "d -> out"]
TYPES = {"src": "fixed_rows", "f": "filter", "d": "derive", "out": "write_csv"}


def groups(*lines: str, types: dict[str, str] | None = None, **more: object) -> dict[str, tuple[str, ...]]:
    return net_of(job(*lines, types=types or TYPES, **more)).groups  # type: ignore[arg-type]


def test_a_chain_with_its_sink_is_one_group():
    net = net_of(job(*CHAIN, types=TYPES))
    assert net.groups == {"out": ("src", "f", "d", "out")}
    assert {node.part.group for node in net.nodes.values()} == {"out"}


def test_ok_links_along_the_rows_do_not_matter():
    assert groups(*CHAIN, "src (ok) f", "f (ok) d", "src (ok) out") == {"out": ("src", "f", "d", "out")}


def test_the_engine_may_be_told_not_to_fuse():
    assert net_of(job(*CHAIN, types=TYPES, head="job_config: {engine: {fuse: false}}\n")).groups == {}


def test_a_tree_of_sources_that_nothing_gates_is_one_group():
    types = {"a": "fixed_rows", "b": "fixed_rows", "g": "filter", "j": "join", "out": "write_csv"}
    assert groups("a -> g", "g -> j.main", "b -> j.lookup", "j -> out", types=types) == {
        "out": ("a", "b", "g", "j", "out")
    }


def test_a_tree_with_a_source_that_is_gated_is_cut_where_it_meets_the_others():
    types = {"s": "noop", "a": "fixed_rows", "b": "fixed_rows", "g": "filter", "j": "join", "out": "write_csv"}
    assert groups("s (ok) a", "a -> g", "g -> j.main", "b -> j.lookup", "j -> out", types=types) == {
        "g": ("a", "g"),
        "out": ("j", "out"),
    }


def test_a_chain_whose_one_head_is_gated_is_a_group():
    assert groups(*CHAIN, 's (if "x") src', types={"s": "noop", **TYPES}) == {"out": ("src", "f", "d", "out")}


def test_rows_from_outside_make_their_reader_the_head():
    types = {"src": "fixed_rows", "p": "python", "j": "join", "f": "filter", "out": "write_csv"}
    assert groups("src -> j.main", "p -> j.lookup", "j -> f", "f -> out", types=types) == {"out": ("j", "f", "out")}


def test_what_two_components_read_ends_a_group():
    types = {**TYPES, "e": "derive", "more": "write_csv"}
    assert groups(*CHAIN, "f -> e", "e -> more", types=types) == {
        "f": ("src", "f"),
        "out": ("d", "out"),
        "more": ("e", "more"),
    }


def test_a_reject_that_is_read_elsewhere_ends_a_group():
    assert groups(*CHAIN, "f.reject -> bad", types={**TYPES, "bad": "write_csv"}) == {
        "f": ("src", "f"),
        "out": ("d", "out"),
    }


def test_both_outputs_may_lead_to_the_same_member():
    types = {"src": "fixed_rows", "f": "filter", "u": "union", "out": "write_csv"}
    assert groups("src -> f", "f.main -> u.input_1", "f.reject -> u.input_2", "u -> out", types=types) == {
        "out": ("src", "f", "u", "out")
    }


@cases("gate", ["s (ok) d", "s (error) d", "src (error) d", 'src (if "x") d', "s (subjob_ok) d"])
def test_a_member_that_something_gates_begins_a_group(gate):
    assert groups(*CHAIN, gate, types={"s": "noop", **TYPES}) == {"f": ("src", "f"), "out": ("d", "out")}


def test_a_member_that_reads_globals_begins_a_group():
    found = groups(*CHAIN, d={"columns": {"x": "{{ global.n | default(1) }}"}})
    assert found == {"f": ("src", "f"), "out": ("d", "out")}
    assert groups(*CHAIN, src={"columns": ["{{ global.n | default('a') }}"]}) == {"out": ("src", "f", "d", "out")}


def test_sources_that_read_globals_do_not_share_a_group():
    types = {"a": "fixed_rows", "b": "fixed_rows", "j": "join", "out": "write_csv"}
    found = groups(
        "a -> j.main", "b -> j.lookup", "j -> out", types=types, a={"columns": ["{{ global.n | default('a') }}"]}
    )
    assert found == {"out": ("j", "out")}


def test_what_is_not_relational_is_in_no_group():
    assert groups("src -> p", "p -> f", "f -> out", types={**TYPES, "d": "noop", "p": "python"}) == {
        "out": ("f", "out")
    }


def test_a_body_has_groups_of_its_own():
    types = {"it": "iterate_list", "a": "fixed_rows", "b": "fixed_rows", "j": "join", "out": "write_csv"}
    assert groups("it (iterate) a, b", "a -> j.main", "b -> j.lookup", "j -> out", types=types) == {
        "out": ("a", "b", "j", "out")
    }
    assert groups(
        "it.item -> f",
        "f -> d",
        "d -> out",
        types={"it": "iterate_list", **{n: TYPES[n] for n in "fd"}, "out": "write_csv"},
    ) == {"out": ("f", "d", "out")}


def test_a_group_does_not_cross_sub_jobs():
    types = {"s": "noop", "t": "noop", **TYPES}
    assert groups(*CHAIN, "s (parallelise) d, t", types=types) == {"f": ("src", "f"), "out": ("d", "out")}


def test_sources_behind_a_pre_job_may_share_a_group():
    types = {"pre": "pre_job", "a": "fixed_rows", "b": "fixed_rows", "j": "join", "out": "write_csv"}
    assert groups("a -> j.main", "b -> j.lookup", "j -> out", types=types) == {"out": ("a", "b", "j", "out")}
