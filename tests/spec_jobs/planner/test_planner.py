"""What the planner promises, clause by clause: order, boundaries, ports, joblets, and what it refuses."""

import pytest

from penstock.dialects.job.plan import plan
from penstock.kernel.net import On, Opening
from tests.dialects.job.support import compiled, errors, job, links, net_of, problems, subjobs

# ---- J1.1, J8.1: an acyclic graph, walked in topological order

TWELVE = job(
    "a -> b", "b -> c", "x -> d.main", "c -> d.lookup", "d -> e", "e (ok) f", "f (ok) g", "f (error) h", 'g (if "NB_LINE > 0") i',
    "i (subjob_ok) k", "k (ok) l", "e (ok) j", "j (ok) f",
    types={"l": "noop", "k": "noop", "j": "noop", "i": "noop", "h": "noop", "g": "noop", "f": "noop", "e": "log_rows", "d": "join", "x": "fixed_rows"},
)  # fmt: skip


@pytest.mark.clause("J1.1")
def test_members_of_every_sub_job_are_in_an_order_that_respects_the_links():
    net = net_of(TWELVE)
    assert len(net.nodes) == 13
    for region in net.containers[""].regions:
        place = {name: rank for rank, name in enumerate(region.members)}
        inside = [link for link in net.links if link.source in place and link.target in place]
        assert all(place[link.source] < place[link.target] for link in inside)
    assert subjobs(net)[1] == ("x", "a", "b", "c", "d", "e", "j", "f", "h", "g", "i")


@pytest.mark.clause("J1.1", "J8.1")
@pytest.mark.parametrize(
    ("lines", "circle"),
    [
        (["a (ok) b", "b (ok) c", "c (ok) a"], "`a` -> `b` -> `c` -> `a`"),
        (["b.main -> c.input", "c.main -> b.input", "a (ok) b"], "`b` -> `c` -> `b`"),
        (["a (ok) b", "b (error) a"], "`a` -> `b` -> `a`"),
        (
            ["a (subjob_ok) b", "b (subjob_ok) a"],
            "`a` -> the end of the sub-job `a` -> `b` -> the end of the sub-job `b` -> `a`",
        ),
    ],
)
def test_a_cycle_is_an_error_that_names_the_components_on_it(lines, circle):
    types = {"b": "filter", "c": "filter"} if "->" in lines[0] else None
    (found,) = problems(job(*lines, types=types), "J0306")
    assert found.message == f"CYCLE_DETECTED: the links lead in a circle: {circle}"
    assert found.position.line > 0
    assert compiled(job(*lines, types=types)).net is None


# ---- J2.5: forks


@pytest.mark.clause("J2.5")
def test_parallelise_needs_two_targets():
    (found,) = problems(job("a (parallelise) b"), "J0307")
    assert found.message == "PARALLELISE_ARITY: `a` forks into one branch only, `b`"
    assert errors(job("a (parallelise) b, b")) == ["J0307"]
    assert errors(job("a (parallelise) b, c")) == []
    assert errors(job("a (parallelise) b", "a (parallelise) c")) == []


@pytest.mark.clause("J2.5")
def test_each_target_of_a_fork_is_the_root_of_a_new_sub_job():
    net = net_of(job("a (parallelise) b, c", "b (ok) d", "c (error) e"))
    assert subjobs(net) == [("a",), ("b", "d"), ("c", "e")]


# ---- J3.1: boundaries of five drawn topologies

TOPOLOGIES = {
    "a chain of rows and triggers is one sub-job": (
        ["a -> b", "b -> c", "a (ok) d", "d (error) e", 'e (if "x") f'],
        [("a", "b", "c", "d", "e", "f")],
    ),
    "a fork gives each target its own, and a join does not merge them": (
        ["a (parallelise) b, c", "b (ok) d", "d, c (synchronise) e", "e (ok) f"],
        [("a",), ("b", "d"), ("c",), ("e", "f")],
    ),
    "links of sub-jobs lie outside": (
        ["a (ok) b", "b (subjob_ok) c", "a (subjob_error) d", "c (ok) e"],
        [("a", "b"), ("c", "e"), ("d",)],
    ),
    "forks nest": (
        ["a (parallelise) b, c", "b (parallelise) d, e", "d, e (synchronise) f", "f, c (synchronise) g"],
        [("a",), ("b",), ("c",), ("d",), ("e",), ("f",), ("g",)],
    ),
    "rows and errors into a branch or a join are cuts": (
        ["a (parallelise) b, c", "s -> b", "b, c (synchronise) j", "b -> j", "c (error) j", "j (ok) k"],
        [("a",), ("b",), ("c",), ("s",), ("j", "k")],
    ),
}


@pytest.mark.clause("J3.1")
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_boundaries_of_sub_jobs(name):
    lines, expected = TOPOLOGIES[name]
    assert subjobs(net_of(job(*lines))) == expected


# ---- J3.4


@pytest.mark.clause("J3.4")
def test_a_component_without_inbound_control_link_belongs_to_the_sub_job_of_its_rows():
    net = net_of(job("a (ok) b", "b -> c", types={"a": "noop", "b": "fixed_rows", "c": "log_rows"}))
    assert subjobs(net) == [("a", "b", "c")]


@pytest.mark.clause("J3.4")
def test_a_component_that_nothing_reaches_is_an_error_at_its_place():
    text = job("a -> b", types={"a": "fixed_rows", "b": "log_rows", "load_dw": "log_rows"})
    (found,) = problems(text, "J0304")
    assert found.message.startswith("UNCONNECTED_NODE: `load_dw` cannot be reached from any startable component")
    line = text.splitlines()[found.position.line - 1]
    assert line[found.position.column - 1 : found.position.end_column - 1] == "load_dw"
    assert found.hint


# ---- J4.4: joins


@pytest.mark.clause("J4.4")
def test_several_joins_each_with_its_own_branches_are_allowed():
    net = net_of(
        job("a (parallelise) b, c, d", "b, c (synchronise) e", "c, d (synchronise) f", "b, c, d (synchronise) g")
    )
    assert {name: net.nodes[name].joins for name in "efg"} == {"e": ("b", "c"), "f": ("c", "d"), "g": ("b", "c", "d")}


@pytest.mark.clause("J4.4")
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a (parallelise) b, c", "b (synchronise) d", "c (synchronise) d"], "two synchronise links"),
        (["a (parallelise) b, c", "b, c, b (synchronise) d"], "is listed twice"),
        (["a (parallelise) b, c", "b (ok) e", "b, c, e (synchronise) d"], "lies in the same branch as `b`"),
        (["a (parallelise) b, c", "x (parallelise) y, z", "b, y (synchronise) d"], "do not stem from one parallelise"),
        (["a (ok) b", "c (ok) d", "b, d (synchronise) e"], "do not stem from one parallelise"),
    ],
)
def test_an_ambiguous_join_is_an_error(lines, said):
    (found,) = problems(job(*lines), "J0308")
    assert found.message.startswith("AMBIGUOUS_JOIN: ")
    assert said in found.message


# ---- J8.4: malformed documents


@pytest.mark.clause("J8.4")
@pytest.mark.parametrize(
    ("text", "line", "column", "path"),
    [
        ("components:\n  - name: a\n    type: noop\n   bad: 1\n", 4, 4, "components[1]"),
        ("components:\n  - {name: a, type: noop\n", 2, 0, "components[0]"),
        ("components:\n  - {name: a, type: noop, params: 3}\n", 2, 35, "components[0].params"),
        (
            "components:\n  - {name: a, type: noop}\njob_config: {limits: {max_reevaluations: x}}\n",
            3,
            42,
            "job_config.limits.max_reevaluations",
        ),
        ("components:\n  - {name: a, type: noop, parms: {}}\n", 2, 27, "components[0].parms"),
    ],
)
def test_a_malformed_document_is_an_error_with_its_place_and_path(text, line, column, path):
    found = compiled(text, file="jobs/orders.yaml")
    assert found.net is None
    problem = found.problems[0]
    assert (problem.position.file, problem.position.line) == ("jobs/orders.yaml", line)
    assert column in (0, problem.position.column)
    assert problem.path == path


# ---- J10.2, J10.4: ports


@pytest.mark.clause("J10.2")
def test_an_input_that_takes_one_link_must_have_exactly_one():
    assert errors(job("a -> c", "b -> c")) == ["J0305"]
    assert errors(job("a -> j", "j -> c", types={"j": "join", "c": "log_rows"})) == ["J0305"]
    assert errors(job("a -> j.main", "b -> j.lookup", "j -> c", types={"j": "join", "c": "log_rows"})) == []


@pytest.mark.clause("J10.2")
def test_an_input_that_takes_many_collects_them():
    net = net_of(job("a -> g", "b -> g", "g -> c", types={"g": "gather"}))
    assert [link.to_port for link in net.links if link.target == "g"] == ["input", "input"]


FANOUT = """
components:
  - {name: src, type: fixed_rows, params: {columns: [id]}}
  - {name: fanout, type: replicate}
  - {name: split, type: union}
  - {name: show, type: log_rows}
connections:
  data:
    src -> fanout
    split -> show
    fanout.output_1 -> split.input_orders
    fanout.output_0 -> split.input_inventory
"""


@pytest.mark.clause("J10.4")
def test_wild_card_ports_accept_any_name_with_their_prefix_and_are_sorted():
    net = net_of(FANOUT)
    assert links(net)[1:3] == ["fanout.output_0 -> split.input_inventory", "fanout.output_1 -> split.input_orders"]
    part = net.nodes["split"].part
    assert part is not None
    assert part.required == ("input_inventory", "input_orders")
    lines = FANOUT.splitlines()
    swapped = "\n".join([*lines[:-2], lines[-1], lines[-2]]) + "\n"
    assert net_of(swapped).digest == net.digest
    assert errors(FANOUT.replace("output_1", "out_1")) == ["J0303"]


# ---- J11: joblets

ADDRESS = """
kind: Joblet
inputs: {input_customers: trim.input}
outputs: {output_clean: check.main}
components:
  - {name: trim, type: filter, params: {where: id > 0}}
  - {name: check, type: filter, params: {where: id > 1}}
connections:
  data: trim.main -> check.input
  control: trim (ok) check
"""
ADDRESSES = """
components:
  - {name: extract, type: fixed_rows, params: {columns: [id]}}
  - {name: go, type: noop}
  - {name: normalise_addr, type: "@normalize_address", params: {}}
  - {name: load_wh, type: log_rows}
connections:
  data:
    extract.main -> normalise_addr.input_customers
    normalise_addr.output_clean -> load_wh.input
  control: |
    go (ok) normalise_addr
"""


@pytest.mark.clause("J11.1")
def test_a_joblet_is_expanded_in_place_and_its_components_carry_the_name_of_the_call():
    net = net_of(ADDRESSES, {"normalize_address": ADDRESS})
    assert list(net.nodes) == [
        "extract", "go", "normalise_addr", "normalise_addr.__trim", "normalise_addr.__check", "load_wh",
    ]  # fmt: skip
    assert net.nodes["normalise_addr.__trim"].tasks[0].kind == "filter"


@pytest.mark.clause("J11.2")
def test_a_call_is_a_scope_of_its_own_that_is_wired_through_proxies():
    result = compiled(ADDRESSES, {"normalize_address": ADDRESS})
    net = result.net
    assert net is not None
    assert net.containers["normalise_addr"].opening is Opening.JOBLET
    assert subjobs(net, "normalise_addr") == [("normalise_addr.__trim", "normalise_addr.__check")]
    control = [link for link in net.links if link.on is On.OK and link.target == "normalise_addr"]
    assert [link.source for link in control] == ["go"]
    trim = net.nodes["normalise_addr.__trim"].part
    assert trim is not None
    assert trim.startable
    shown = [(link["from"], link["to"]) for link in plan(result)["links"] if link["on"] == "data"]
    assert shown == [
        ("extract", "normalise_addr.__proxy_in"),
        ("normalise_addr.__proxy_in", "normalise_addr.__trim"),
        ("normalise_addr.__proxy_out", "load_wh"),
        ("normalise_addr.__trim", "normalise_addr.__check"),
        ("normalise_addr.__check", "normalise_addr.__proxy_out"),
    ]


def nested(depth: int) -> dict[str, str]:
    joblets = {f"j{n}": f'kind: Joblet\ncomponents: [{{name: c, type: "@j{n + 1}"}}]\n' for n in range(1, depth)}
    return {**joblets, f"j{depth}": "kind: Joblet\ncomponents: [{name: c, type: noop}]\n"}


@pytest.mark.clause("J11.3")
def test_joblets_nest_twenty_deep_and_no_deeper():
    call = 'components: [{name: c, type: "@j1"}]\n'
    net = net_of(call, nested(20))
    assert "c" + ".__c" * 20 in net.nodes
    (found,) = problems(call, None, nested(21))
    said, _, chain = found.message.partition(" here: ")
    assert said == "JOBLET_RECURSION_DEPTH: joblets are nested more than 20 deep"
    assert chain == "`test` -> `j1` -> `j2` -> … -> `j19` -> `j20` -> …"
    assert found.position.file == "j20.yaml"


@pytest.mark.clause("J11.3")
def test_depth_is_counted_on_the_longest_way_whichever_is_read_first():
    joblets = nested(20)
    call = 'components: [{name: a, type: "@j2"}, {name: b, type: "@outer"}]\n'
    joblets["outer"] = 'kind: Joblet\ncomponents: [{name: c, type: "@j1"}]\n'
    assert errors(call, joblets) == ["J0903"]


@pytest.mark.clause("J11.3")
@pytest.mark.parametrize(
    ("joblets", "circle"),
    [
        ({"x": 'kind: Joblet\ncomponents: [{name: c, type: "@x"}]\n'}, "`x` -> `x`"),
        (
            {
                "x": 'kind: Joblet\ncomponents: [{name: c, type: "@y"}]\n',
                "y": "kind: Joblet\ncomponents: [{name: it, type: iterate_list, params: {items: [1], body: x}}]\n",
            },
            "`x` -> `y` -> `x`",
        ),
    ],
)
def test_a_joblet_that_calls_itself_is_caught(joblets, circle):
    (found,) = problems('components: [{name: c, type: "@x"}]\n', "J0903", joblets)
    assert found.message == f"JOBLET_RECURSION_DEPTH: `x` calls itself: {circle}"


# ---- J13.1: STARTABLE


@pytest.mark.clause("J13.1")
def test_what_is_startable():
    text = job("a (ok) b", "a (ok) marked", "a (ok) t", "s -> r", types={"a": "noop", "t": "timer"})
    text = text.replace("- name: marked\n", "- name: marked\n    startable: true\n")
    net = net_of(text)
    startable = {name for name, node in net.nodes.items() if node.part is not None and node.part.startable}
    assert startable == {"a", "marked", "t", "s", "r"}
    at_once = {name for name in startable if not net.nodes[name].part.required}
    assert at_once == {"a", "marked", "t", "s"}


@pytest.mark.clause("J13.1")
def test_startable_is_judged_after_expansion():
    net = net_of(ADDRESSES, {"normalize_address": ADDRESS})
    parts = {name: node.part for name, node in net.nodes.items()}
    assert parts["normalise_addr.__trim"].startable
    assert not parts["normalise_addr.__check"].startable
    assert not parts["normalise_addr"].startable
