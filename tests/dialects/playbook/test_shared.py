"""`set_shared`: how it is written, when it is allowed, and the reducers it comes to."""

from __future__ import annotations

import pytest

from penstock.kernel.net import Fan, Node
from tests.cases import cases
from tests.dialects.playbook.support import HEAD, WORKLOAD, codes, node_of, problems, steps
from tests.dialects.playbook.test_pictures import complaints

RULE = "  tool: {{ kind: noop, spec: {{ policy: {{ rules: [{{ else: {{ do: continue, {writes} }} }}] }} }} }}\n"
TASK = "  tool: {{ kind: noop, {writes} }}\n"


def document(writes: str, spec: str = "{ reducers: true }", tool: str = RULE, executor: str = "") -> str:
    head = HEAD + WORKLOAD + (f"executor: {{ spec: {executor} }}\n" if executor else "")
    loop = "  loop: { in: [1, 2], iterator: n }\n"
    return steps(f"- step: start\n  spec: {spec}\n{loop}{tool.format(writes=writes) if writes else tool}", head)


def looped(text: str) -> tuple[Node, Fan]:
    node = node_of(text)
    assert node.fan is not None
    return node, node.fan


ONE = '"{{ iter.n }}"'


@pytest.mark.clause("F5.1")
@cases(
    "writes",
    [
        f"set_shared: {{ total: {{ sum: {ONE} }} }}",
        f"set_shared: {{ total: {{ op: sum, value: {ONE} }} }}",
        f"set_shared: {{ total: {{ reduce: sum, value: {ONE} }} }}",
        f"set_shared: [{{ key: total, op: sum, value: {ONE} }}]",
        f"set_shared: [{{ key: total, reduce: sum, value: {ONE} }}]",
        f"set: {{ shared.total: {{ sum: {ONE} }} }}",
        f"set: {{ shared.total: {{ op: sum, value: {ONE} }} }}",
    ],
)
def test_all_spellings_come_to_one_write_and_one_reducer(writes):
    assert complaints(document(writes)) == complaints(document(writes, tool=TASK)) == []
    node, fan = looped(document(writes))
    assert node.tasks[0].rules is not None
    assert node.tasks[0].rules[0].then.writes.shared == {"total": "{{ iter.n }}"}
    assert fan.reducers == {"total": "sum"}
    on_task, same = looped(document(writes, tool=TASK))
    assert on_task.tasks[0].on_ok.shared == {"total": "{{ iter.n }}"}
    assert same.reducers == {"total": "sum"}


@pytest.mark.clause("F5.1")
@cases(
    "spec",
    [
        "{ reducers: { total: max } }",
        "{ fanout: { reducers: { total: max } } }",
        "{ fanout.reducers: { total: max } }",
        "{ policy: { fanout: { reducers: { total: max } } } }",
        "{ loop_mode: fanout, reducers: { total: max } }",
    ],
)
def test_a_declared_reducer_takes_the_plain_value(spec):
    for writes in (f"set_shared: {{ total: {ONE} }}", f"set: {{ shared.total: {ONE} }}"):
        node, fan = looped(document(writes, spec, TASK))
        assert node.tasks[0].on_ok.shared == {"total": "{{ iter.n }}"}
        assert fan.reducers == {"total": "max"}


def test_a_mapping_is_a_value_where_it_does_not_name_a_reducer():
    node, _ = looped(document("set_shared: { seen: { city: 1, count: 2 } }", "{ reducers: { seen: merge } }", TASK))
    assert node.tasks[0].on_ok.shared == {"seen": {"city": 1, "count": 2}}
    node, _ = looped(
        document("set_shared: { seen: { op: merge, value: { sum: 1 } } }", "{ reducers: { seen: merge } }", TASK)
    )
    assert node.tasks[0].on_ok.shared == {"seen": {"sum": 1}}


def test_counting_takes_true():
    node, fan = looped(document("set_shared: { n: { count: true } }", tool=TASK))
    assert (node.tasks[0].on_ok.shared, fan.reducers) == ({"n": True}, {"n": "count"})


@pytest.mark.clause("F5.1")
@pytest.mark.parametrize("spec", ["{ join: [] }", "{ reducers: false }", "{ shared: false }", "{ loop_mode: fanout }"])
def test_without_being_enabled_it_is_an_error_that_shows_what_to_write(spec):
    (problem,) = problems(document("set_shared: { total: { sum: 1 }, most: { max: 2 } }", spec))
    assert problem.code == "P0611"
    assert problem.rewrite == "spec:\n  reducers:\n    total: sum\n    most: max"


@pytest.mark.clause("F5.1")
@pytest.mark.parametrize(
    "spec",
    ["{ reducers: true }", "{ shared: true }", "{ fanout: { shared: true } }", "{ fanout: { reducers: true } }"],
)
def test_it_is_enabled_on_the_step_on_the_executor_or_in_the_loops_policy(spec):
    writes = "set_shared: { total: { sum: 1 } }"
    assert codes(document(writes, spec)) == []
    assert codes(document(writes, "{ join: [] }", executor=spec)) == []
    in_loop = document(writes, "{ join: [] }").replace(
        "iterator: n }", "iterator: n, spec: { policy: { reducers: true } } }"
    )
    assert codes(in_loop) == []
    assert codes(document(writes, "{ reducers: false }", executor="{ reducers: true }")) == ["P0611"]


def test_what_the_executor_declares_is_for_the_loops_that_use_it():
    _, fan = looped(
        document("set_shared: { total: 1 }", "{ join: [] }", TASK, "{ reducers: { total: sum, other: max } }")
    )
    assert fan.reducers == {"total": "sum"}


@cases(
    "writes, spec, expected",
    [
        ("set_shared: { total: { sum: 1 } }, set: { shared.total: 1 }", "{ reducers: { total: sum } }", ["P0108"]),
        ("set_shared: { total: { sum: 1 } }", "{ reducers: { total: max } }", ["P0612"]),
        ("set_shared: { total: 1 }", "{ reducers: true }", ["P0615"]),
        ("set_shared: { total: { op: average, value: 1 } }", "{ reducers: true }", ["P0610", "P0615"]),
        ("set_shared: [{ key: total, op: average, value: 1 }]", "{ reducers: true }", ["P0610", "P0615"]),
        ("set_shared: [{ key: total, op: sum }]", "{ reducers: true }", ["P0105"]),
        ("set_shared: [{ key: total, op: sum, reduce: sum, value: 1 }]", "{ reducers: true }", ["P0108"]),
        ("set_shared: [{ key: total, opp: sum, value: 1 }]", "{ reducers: true }", ["P0102", "P0615"]),
        ("set_shared: total", "{ reducers: true }", ["P0101"]),
        ("set_shared: { '{{ iter.n }}': { sum: 1 } }", "{ reducers: true }", ["P0408"]),
        ("set_shared: [total]", "{ reducers: true }", ["P0101"]),
    ],
)
def test_what_cannot_be_shared_is_reported(writes, spec, expected):
    assert sorted(codes(document(writes, spec, TASK))) == sorted(expected)


def test_one_key_has_one_reducer_in_all_tasks_of_the_loop():
    tool = "  tool:\n    - { name: a, kind: noop, set_shared: { x: { sum: 1 } } }\n    - { name: b, kind: noop, set_shared: { x: { max: 1 } } }\n"
    (problem,) = problems(document("", tool=tool))
    assert problem.code == "P0612"
    assert "`sum`" in problem.message
    assert "`max`" in problem.message


@pytest.mark.clause("F5.1")
@cases(
    "step",
    [
        "tool: { kind: noop, set_shared: { total: { sum: 1 } } }",
        "tool: { kind: noop, set: { shared.total: { sum: 1 } } }",
        "set: { shared.total: 1 }",
        "set_shared: { total: { sum: 1 } }",
        "next: { arcs: [{ step: start, when: '{{ workload.more }}', set: { shared.total: 1 } }] }",
        "spec: { reducers: true }\n  loop: { in: [1], iterator: n }\n  set: { shared.total: 1 }",
    ],
)
def test_only_a_task_of_a_loop_shares(step):
    assert codes(steps(f"- step: start\n  {step}\n")) == ["P0613"]


def test_what_a_loop_shares_is_known_in_ctx():
    arcs = "  next: { arcs: [{ step: end }] }\n- step: end\n  tool: { kind: noop, value: '{{ ctx.total }} {{ ctx.totl }}' }\n"
    (problem,) = problems(
        document("set_shared: { total: { sum: 1 } }", tool=TASK + arcs.replace("{", "{{").replace("}", "}}"))
    )
    assert (problem.code, problem.label) == ("P0702", "did you mean `total`?")


def test_expressions_in_it_are_checked_like_any_other():
    assert codes(document("set_shared: { total: { sum: '{{ iter.m }}' } }")) == ["P0702"]
    assert codes(document("set_shared: [{ key: total, op: sum, value: '{{ keychain.x }}' }]")) == ["P0704"]


def test_a_workbook_task_brings_what_it_shares_along():
    text = steps(
        """
        - step: start
          spec: { reducers: true }
          loop: { in: [1], iterator: n }
          tool: { kind: workbook, name: add }
        """,
        HEAD + "workbook:\n  - { name: add, kind: noop, set_shared: { total: { sum: 1 } } }\n",
    )
    node, fan = looped(text)
    assert (node.tasks[0].on_ok.shared, fan.reducers) == ({"total": 1}, {"total": "sum"})


def test_what_sugar_makes_keeps_what_its_tasks_share():
    text = document(
        "",
        tool="  tool:\n    - name: route\n      choose:\n        - { else: , then: [{ name: a, kind: noop, set_shared: { x: { sum: 1 } } }] }\n",
    )
    node, fan = looped(text)
    assert {task.label: task.on_ok.shared for task in node.tasks}["route.1.a"] == {"x": 1}
    assert fan.reducers == {"x": "sum"}
