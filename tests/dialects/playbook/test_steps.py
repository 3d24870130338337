"""Steps, loops, routers and keychain entries."""

import pytest

from penstock.kernel.net import Arc, FailureMode, Fan, LoopMode
from tests.cases import cases
from tests.dialects.playbook.support import HEAD, codes, errors, net_of, node_of, problems, steps


def loop(text: str, step: str = "desc: x") -> str:
    return steps(f"- step: start\n  {step}\n  loop: {text}\n  tool: {{ kind: noop }}\n")


@cases(
    "text, expected",
    [
        ('{ in: "{{ workload.items }}", iterator: n }', Fan("{{ workload.items }}", "n")),
        ("{ in: [1, 2], iterator: n, spec: { mode: sequential } }", Fan([1, 2], "n")),
        ("{ in: [1], iterator: n, spec: { mode: parallel } }", Fan([1], "n", LoopMode.PARALLEL, 10)),
        ("{ in: [1], iterator: n, spec: { mode: parallel, max_in_flight: 3 } }", Fan([1], "n", LoopMode.PARALLEL, 3)),
        (
            "{ in: [1], iterator: n, spec: { policy: { mode: parallel, max_in_flight: 4, exec: distributed } } }",
            Fan([1], "n", LoopMode.PARALLEL, 4),
        ),
        (
            "{ in: [1], iterator: n, spec: { policy: { failure: { mode: best_effort } } } }",
            Fan([1], "n", failure=FailureMode.BEST_EFFORT),
        ),
        ("{ in: { range: 5 }, iterator: n }", Fan({"range": 5}, "n")),
        (
            "{ in: { range: { start: 2, stop: '{{ workload.x }}', step: -1 } }, iterator: n }",
            Fan({"range": {"start": 2, "stop": "{{ workload.x }}", "step": -1}}, "n"),
        ),
    ],
)
def test_a_loop_says_over_what_and_how_it_runs(text, expected):
    assert node_of(loop(text)).fan == expected


@cases(
    "text, expected",
    [
        ("{ iterator: n }", ["P0105"]),
        ("{ in: [1] }", ["P0105"]),
        ("{ in: 10, iterator: n }", ["P0603"]),
        ("{ in: items, iterator: n }", ["P0603"]),
        ("{ in: { a: 1 }, iterator: n }", ["P0603"]),
        ("{ in: [1], iterator: index }", ["P0602"]),
        ("{ in: [1], iterator: 'a b' }", ["P0301"]),
        ("{ in: { range: many }, iterator: n }", ["P0101"]),
        ("{ in: { range: { start: 1 } }, iterator: n }", ["P0604"]),
        ("{ in: { range: { stop: 1, step: 0 } }, iterator: n }", ["P0604"]),
        ("{ in: { range: { stop: 1, by: 2 } }, iterator: n }", ["P0604"]),
        ("{ in: [1], iterator: n, spec: { mode: paralel } }", ["P0106"]),
        ("{ in: [1], iterator: n, spec: { mode: parallel, max_in_flight: 0 } }", ["P0107"]),
        ("{ in: [1], iterator: n, spec: { max_in_flight: 3 } }", ["P0605"]),
        ("{ in: [1], iterator: n, spec: { policy: { exec: moon } } }", ["P0106"]),
        ("{ in: [1], iterator: n, spec: { policy: { colour: red } } }", ["P0104"]),
        ("{ in: [1], iterator: n, spec: { mod: parallel } }", ["P0103"]),
    ],
)
def test_a_loop_that_cannot_run_is_reported(text, expected):
    assert codes(loop(text)) == expected


def test_where_a_loop_runs_is_one_of_two_places():
    assert codes(loop("{ in: [1], iterator: n }", "spec: { loop_mode: fanout }")) == []
    assert codes(loop("{ in: [1], iterator: n }", "spec: { loop_mode: moon }")) == ["P0106"]


def test_arcs_are_read_in_the_order_of_the_file():
    text = """
        - step: start
          next:
            spec: { mode: inclusive, policy: {} }
            arcs:
              - { step: a, when: "{{ event.name == 'step.done' }}", args: { n: 1 }, desc: on }
              - { step: b, when: true }
              - { step: c, when: }
        - step: a
        - step: b
        - step: c
        """
    node = node_of(steps(text))
    assert node.first_only is False
    assert node.edges == (
        Arc(0, "a", "{{ event.name == 'step.done' }}", {"n": 1}, reads_event=True),
        Arc(1, "b", "{{ true }}"),
        Arc(2, "c", None),
    )


def test_a_router_is_exclusive_unless_told_otherwise():
    assert node_of(steps("- step: start\n  next: { arcs: [] }\n")).first_only is True


@cases(
    "text, expected",
    [
        ("next: {}", ["P0105"]),
        ("next: { arcs: [end] }", ["P0101"]),
        ("next: { arcs: [{ when: true }] }", ["P0105"]),
        ("next: { arcs: [{ step: end, args: [1] }] }", ["P0101"]),
        ("next: { arcs: [{ step: end, when: [1] }] }", ["P0101"]),
        ("next: { arcs: [{ step: end, wen: true }] }", ["P0102"]),
        ("next: { spec: { mode: both }, arcs: [] }", ["P0106"]),
        ("next: { mode: inclusive, arcs: [] }", ["P0213"]),
        ("desc: [1]", ["P0101"]),
        ("set: 3", ["P0101"]),
        ("spec: { join: a }", ["P0101"]),
        ("spec: { policy: { lifecycle: { timeout_s: soon } } }", ["P0101"]),
    ],
)
def test_a_step_with_a_part_of_the_wrong_shape_is_reported(text, expected):
    assert [code for code in codes(steps(f"- step: start\n  {text}\n- step: end\n")) if code != "P0801"] == expected


@cases("name", ["a b", "1st", "a.b", "a/b", "''", "[]"])
def test_a_step_needs_a_name_that_ids_and_expressions_can_carry(name):
    assert errors(steps(f"- step: {name}\n"))[0] in ("P0301", "P0101")


@pytest.mark.parametrize("name", ["load-orders", "größe", "a1", "_x"])
def test_letters_digits_dashes_and_underscores_make_names(name):
    assert codes(steps(f"- step: {name}\n")) == []


def keychain(entries: str) -> str:
    return HEAD + f"keychain: {entries}\nworkflow:\n  - step: start\n"


@cases(
    "entries, expected",
    [
        ("[{ name: a, kind: env, var: A }, { name: b, kind: file, path: x }]", []),
        ("[{ name: pg, kind: postgres_credential }, { name: t, kind: secret_manager }]", []),
        ("[{ name: a, kind: static, value: x }]", ["P0903"]),
        ("[{ name: a }]", ["P0901"]),
        ("[{ kind: env, var: A }]", ["P0901"]),
        ("[{ name: a, kind: envv, var: A }]", ["P0902"]),
        ("[{ name: a, kind: env }]", ["P0905"]),
        ("[{ name: a, kind: env, vra: A, var: A }]", ["P0103"]),
        ("[{ name: a, kind: env, var: A }, { name: a, kind: env, var: B }]", ["P0904"]),
        ("[a]", ["P0101"]),
        ("{ a: 1 }", ["P0101"]),
        ("[{ name: a, kind: env, var: '{{ keychain.b }}' }]", ["P0908"]),
        ("[{ name: a, kind: env, var: '{{ ctx.b }}' }]", ["P0703"]),
    ],
)
def test_keychain_entries_name_a_secret_and_how_it_is_found(entries, expected):
    assert codes(keychain(entries)) == expected


def test_an_unknown_kind_of_secret_is_shown_the_closest():
    (problem,) = problems(keychain("[{ name: a, kind: envv, var: A }]"))
    assert problem.label == "did you mean `env`?"


def test_keychain_entries_reach_the_net_as_they_are_written():
    assert net_of(keychain("[{ name: a, kind: env, var: A }]")).keychain == ({"name": "a", "kind": "env", "var": "A"},)
