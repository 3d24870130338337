"""choose, while and until: the tasks they are compiled to, and that those do what was written."""

from dataclasses import dataclass, field

import pytest

from penstock.dialects.playbook.plan import plan
from penstock.dialects.playbook.sugar import author_name
from penstock.expr.scope import Names
from penstock.expr.template import render_lenient, truth
from penstock.kernel.net import Do, Node, Then
from penstock.kernel.pipeline import END, Verdict, advance
from tests.cases import cases
from tests.dialects.playbook.support import codes, errors, net_of, node_of, tasks

CHOOSE = """
- { name: first, kind: noop }
- name: route
  choose:
    - when: "{{ workload.x == 1 }}"
      then:
        - { name: a, kind: noop }
        - { name: b, kind: log, message: hello }
    - when: "{{ workload.x == 2 }}"
      then: []
    - else:
      then:
        - { name: c, kind: noop }
- { name: last, kind: noop }
"""

WHILE = """
- { name: init, kind: noop, set: { iter.page: 0 } }
- name: pages
  while:
    when: "{{ iter.page < workload.x }}"
    do:
      - name: fetch
        kind: noop
        spec: { policy: { rules: [{ else: { set_iter: { page: "{{ iter.page + 1 }}" } } }] } }
    max: 3
- { name: last, kind: noop }
"""

UNTIL = """
- { name: init, kind: noop, set: { iter.page: 0 } }
- name: poll
  until:
    do:
      - name: ask
        kind: noop
        spec: { policy: { rules: [{ else: { set_iter: { page: "{{ iter.page + 1 }}" } } }] } }
    when: "{{ iter.page >= workload.x }}"
    max: 3
- { name: last, kind: noop }
"""


@dataclass
class Walk:
    """Which tasks ran, in order, and how the pipeline ended. Every task ends ok."""

    ran: list[str] = field(default_factory=list)
    end: Do = Do.CONTINUE


def walked(node: Node, x: int) -> Walk:
    """Run a pipeline of noops with the kernel's own `advance`, so that only what the plan says decides."""
    positions = {task.label: index for index, task in enumerate(node.tasks)}
    scope = Names({"workload": {"x": x, "items": [1, 2]}, "iter": {}, "outcome": {"status": "ok"}})
    walk, cursor = Walk(), 0
    while cursor != END:
        assert len(walk.ran) < 100, walk.ran
        task = node.tasks[cursor]
        walk.ran.append(task.label)
        scope["iter"].update({key: render_lenient(value, scope) for key, value in task.on_ok.iter.items()})
        matched = None
        if task.rules is not None:
            matched = next((rule.then for rule in task.rules if rule.when is None or truth(rule.when, scope)), Then())
            scope["iter"].update({key: render_lenient(value, scope) for key, value in matched.writes.iter.items()})
        verdict = None if matched is None else Verdict(0, matched.do, to=positions.get(matched.to or "", END))
        directive = advance(cursor, len(node.tasks), 1, None, verdict)
        walk.end, cursor = directive.do, directive.next
    return walk


@pytest.mark.clause("P14.1")
def test_choose_becomes_a_noop_with_jumps_and_a_merge_point():
    steps = plan(net_of(tasks(CHOOSE)))["steps"]
    jump_to_end = [
        {"when": "{{ outcome.status == 'error' }}", "then": {"do": "fail"}},
        {"else": None, "then": {"do": "jump", "to": "route.end"}},
    ]
    assert steps[0]["tool"] == [
        {"name": "first", "kind": "noop"},
        {
            "name": "route.choose",
            "kind": "noop",
            "value": "{{ _prev | default(none) }}",
            "spec": {
                "policy": {
                    "rules": [
                        {"when": "{{ workload.x == 1 }}", "then": {"do": "jump", "to": "route.1.a"}},
                        {"when": "{{ workload.x == 2 }}", "then": {"do": "jump", "to": "route.end"}},
                        {"else": None, "then": {"do": "jump", "to": "route.3.c"}},
                    ]
                }
            },
        },
        {"name": "route.1.a", "kind": "noop"},
        {"name": "route.1.b", "kind": "log", "message": "hello", "spec": {"policy": {"rules": jump_to_end}}},
        {"name": "route.3.c", "kind": "noop", "spec": {"policy": {"rules": jump_to_end}}},
        {"name": "route.end", "kind": "noop", "value": "{{ _prev | default(none) }}"},
        {"name": "last", "kind": "noop"},
    ]


@pytest.mark.clause("P14.1")
@pytest.mark.parametrize(
    ("x", "ran"),
    [
        (1, ["first", "route.choose", "route.1.a", "route.1.b", "route.end", "last"]),
        (2, ["first", "route.choose", "route.end", "last"]),
        (3, ["first", "route.choose", "route.3.c", "route.end", "last"]),
    ],
)
def test_one_branch_runs_and_never_falls_through_into_the_next(x, ran):
    assert walked(node_of(tasks(CHOOSE)), x) == Walk(ran)


@pytest.mark.clause("P14.1")
def test_a_choice_without_else_goes_on_when_nothing_matches():
    text = """
        - { name: route, choose: [{ when: "{{ workload.x == 1 }}", then: [{ name: a, kind: noop }] }] }
        - { name: last, kind: noop }
        """
    assert walked(node_of(tasks(text)), 5) == Walk(["route.choose", "route.end", "last"])


@pytest.mark.clause("P14.1")
def test_while_checks_before_each_round():
    labels = [task.label for task in node_of(tasks(WHILE)).tasks]
    assert labels == ["init", "pages.begin", "pages.while", "pages.max", "pages.do.fetch", "pages.end", "last"]
    assert walked(node_of(tasks(WHILE)), 0).ran == ["init", "pages.begin", "pages.while", "pages.end", "last"]
    rounds = ["pages.while", "pages.max", "pages.do.fetch"]
    assert walked(node_of(tasks(WHILE)), 2).ran == [
        "init",
        "pages.begin",
        *rounds,
        *rounds,
        "pages.while",
        "pages.end",
        "last",
    ]


@pytest.mark.clause("P14.1")
def test_until_checks_after_each_round():
    labels = [task.label for task in node_of(tasks(UNTIL)).tasks]
    assert labels == ["init", "poll.begin", "poll.do.ask", "poll.until", "poll.max", "poll.end", "last"]
    assert walked(node_of(tasks(UNTIL)), 0).ran == [
        "init",
        "poll.begin",
        "poll.do.ask",
        "poll.until",
        "poll.end",
        "last",
    ]
    assert walked(node_of(tasks(UNTIL)), 2).ran == [
        "init", "poll.begin", "poll.do.ask", "poll.until", "poll.max", "poll.do.ask", "poll.until", "poll.end", "last",
    ]  # fmt: skip


@pytest.mark.clause("P14.1")
@pytest.mark.parametrize(
    ("text", "body", "bound"), [(WHILE, "pages.do.fetch", "pages.max"), (UNTIL, "poll.do.ask", "poll.max")]
)
def test_the_bound_allows_so_many_rounds_and_then_the_pipeline_fails(text, body, bound):
    exactly = walked(node_of(tasks(text)), 3)
    assert (exactly.ran.count(body), exactly.ran[-1]) == (3, "last")
    over = walked(node_of(tasks(text)), 4)
    assert (over.ran.count(body), over.ran[-1], over.end) == (3, bound, Do.FAIL)


def test_without_a_bound_there_is_no_counter():
    text = WHILE.replace("    max: 3\n", "")
    assert [task.label for task in node_of(tasks(text)).tasks] == [
        "init",
        "pages.while",
        "pages.do.fetch",
        "pages.end",
        "last",
    ]
    assert walked(node_of(tasks(text)), 5).ran.count("pages.do.fetch") == 5


@pytest.mark.clause("P14.1")
def test_sugar_nests_and_an_inner_bound_starts_over_with_each_outer_round():
    text = """
        - { name: init, kind: noop, set: { iter.page: 0, iter.k: 0 } }
        - name: outer
          while:
            when: "{{ iter.page < workload.x }}"
            do:
              - { name: reset, kind: noop, set: { iter.k: 0 } }
              - name: inner
                while:
                  when: "{{ iter.k < 2 }}"
                  do:
                    - name: route
                      choose:
                        - when: "{{ iter.k == 0 }}"
                          then: [{ name: even, kind: noop, set: { iter.k: "{{ iter.k + 1 }}" } }]
                        - else: [{ name: odd, kind: noop, set: { iter.k: "{{ iter.k + 1 }}" } }]
                  max: 2
              - { name: step, kind: noop, set: { iter.page: "{{ iter.page + 1 }}" } }
        """
    node = node_of(tasks(text))
    walk = walked(node, 3)
    assert walk.end is Do.CONTINUE
    assert walk.ran.count("outer.do.inner.do.route.1.even") == 3
    assert walk.ran.count("outer.do.inner.do.route.2.odd") == 3
    assert [author_name(task.label) for task in node.tasks if author_name(task.label)] == [
        "init", "reset", "even", "odd", "step",
    ]  # fmt: skip


def test_a_jump_finds_its_target_in_the_nearest_list_and_sugar_by_its_name():
    text = """
        - { name: a, kind: noop }
        - name: route
          choose:
            - when: "{{ workload.go }}"
              then:
                - { name: a, kind: noop }
                - name: b
                  kind: noop
                  spec:
                    policy:
                      rules:
                        - { when: "{{ workload.x == 1 }}", then: { do: jump, to: a } }
                        - { when: "{{ workload.x == 2 }}", then: { do: jump, to: last } }
                        - { when: "{{ workload.x == 3 }}", then: { do: jump, to: route } }
                        - { when: "{{ workload.x == 4 }}", then: { do: jump, to: route.1.a } }
        - { name: last, kind: noop }
        """
    (task,) = [task for task in node_of(tasks(text)).tasks if task.label == "route.1.b"]
    assert [rule.then.to for rule in task.rules or ()] == [
        "route.1.a",
        "last",
        "route.choose",
        "route.1.a",
        "route.end",
    ]


def test_a_task_outside_cannot_jump_into_a_branch_by_its_bare_name():
    text = """
        - name: route
          choose:
            - { when: "{{ workload.go }}", then: [{ name: inside, kind: noop }] }
        - name: out
          kind: noop
          spec: { policy: { rules: [{ when: "{{ workload.x == 1 }}", then: { do: jump, to: inside } }] } }
        """
    assert errors(tasks(text)) == ["P0414"]


def test_break_in_a_branch_still_ends_the_whole_pipeline():
    text = """
        - name: route
          choose:
            - when: "{{ workload.x == 1 }}"
              then: [{ name: a, kind: noop, spec: { policy: { rules: [{ else: { do: break } }] } } }]
        - { name: last, kind: noop }
        """
    assert walked(node_of(tasks(text)), 1) == Walk(["route.choose", "route.1.a"], Do.BREAK)


@cases(
    "text, expected",
    [
        ("- { name: r, choose: [] }\n", ["P0515"]),
        ("- { name: r, choose: 3 }\n", ["P0101", "P0515"]),
        ("- { name: r, choose: [{ when: '{{ workload.go }}' }] }\n", ["P0515"]),
        ("- { name: r, choose: [{ then: [{ kind: noop }] }] }\n", ["P0403"]),
        ("- { name: r, choose: [{ expr: 'x', then: [{ kind: noop }] }] }\n", ["P0206"]),
        ("- { name: r, while: {} }\n", ["P0105", "P0105"]),
        ("- { name: r, while: }\n", ["P0101"]),
        ("- { name: r, while: { when: '{{ workload.go }}', do: [] } }\n", ["P0515"]),
        ("- { name: r, while: { when: '{{ workload.go }}', do: [{ kind: noop }], max: 0 } }\n", ["P0107"]),
        ("- { name: r, until: { when: '{{ workload.go }}', tasks: [{ kind: noop }] } }\n", ["P0105", "P0102"]),
        ("- { name: r, while: { when: '{{ workload.go }}', do: [{ kind: noop }] }, choose: [] }\n", ["P0515"]),
        ("- { name: r, chose: [] }\n", ["P0503"]),
    ],
)
def test_sugar_that_is_not_complete_is_reported(text, expected):
    assert codes(tasks(text)) == expected


def test_an_endless_while_is_reported_as_a_circle():
    text = "- { name: r, while: { when: true, do: [{ name: a, kind: noop }] } }\n"
    assert errors(tasks(text)) == ["P0803"]
