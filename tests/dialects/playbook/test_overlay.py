"""Spec layers: kind defaults < executor < step < loop < task."""

import pytest

from penstock.dialects.playbook.drafts import effective
from penstock.kernel.values import merge_deeply
from tests.cases import cases
from tests.dialects.playbook.support import HEAD, net_of

LAYERS = ("kind", "executor", "step", "loop", "task")


@pytest.mark.clause("P3.1")
@cases("innermost", range(5))
def test_the_innermost_layer_that_says_something_wins(innermost):
    layers = [{"knob": name} if index <= innermost else {} for index, name in enumerate(LAYERS)]
    assert effective(*layers) == {"knob": LAYERS[innermost]}


@pytest.mark.clause("P3.1")
@cases(
    "outer, inner, expected",
    [
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}, {"a": {"x": 1, "y": 3}}),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"d": 2}}}, {"a": {"b": {"c": 1, "d": 2}}}),
        ({"a": {"x": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": [1]}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": 1}, {"a": None}, {"a": None}),
    ],
)
def test_scalars_and_lists_replace_and_mappings_merge_deeply(outer, inner, expected):
    before = repr((outer, inner))
    assert merge_deeply(outer, inner) == expected
    assert repr((outer, inner)) == before


@pytest.mark.clause("P3.1")
def test_a_task_runs_with_the_overlay_of_all_five_layers():
    document = (
        HEAD
        + """\
executor: { spec: { pool: wide, timeout: { read: 20 }, from: executor, tags: [1, 2] } }
workflow:
  - step: start
    spec: { timeout: { total: 60 }, from: step, tags: [3] }
    loop: { in: [1], iterator: n, spec: { from: loop } }
    tool:
      - { name: a, kind: http, url: x, spec: { timeout: { read: 5 }, from: task } }
      - { name: b, kind: http, url: x }
"""
    )
    first, second = net_of(document).nodes["start"].tasks
    assert first.spec == {
        "timeout": {"connect": 5, "read": 5, "total": 60},
        "pool": "wide",
        "from": "task",
        "tags": [3],
    }
    assert second.spec == {
        "timeout": {"connect": 5, "read": 20, "total": 60},
        "pool": "wide",
        "from": "loop",
        "tags": [3],
    }


@pytest.mark.clause("P3.1")
def test_policies_are_not_inherited():
    document = (
        HEAD
        + """\
executor: { spec: { policy: { limits: { max_step_visits: 5 } } } }
workflow:
  - step: start
    spec: { policy: { failure: { mode: best_effort } } }
    loop: { in: [1], iterator: n, spec: { policy: { exec: local } } }
    tool: { kind: noop }
"""
    )
    (task,) = net_of(document).nodes["start"].tasks
    assert task.spec == {}
    assert task.rules is None
