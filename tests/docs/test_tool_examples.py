"""Every example that a tool shows is valid: as one step of a playbook it compiles without a problem."""

from __future__ import annotations

import textwrap

from docs.generator.tool_pages import WORKBOOK_EXAMPLE
from penstock.dialects.playbook import compile_text
from penstock.tools.registry import BUILT_IN, Registry, example_of
from tests.cases import cases

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: example }\nworkflow:\n  - step: start\n    tool:\n"
# What an example may read without having written it: names of tasks and of values that come before it in a real playbook.
BEFORE = "      - { name: fetch, kind: noop, value: { data: 1 }, set: { ctx.count: 1 } }\n"


def in_a_playbook(example: str) -> str:
    task = textwrap.dedent(example)
    listed = task if task.lstrip().startswith("-") else "- " + textwrap.indent(task, "  ").lstrip()
    return HEADER + BEFORE + textwrap.indent(listed, "      ")


@cases("kind", BUILT_IN)
def test_the_example_of_a_tool_is_valid_and_uses_it(kind: str) -> None:
    example = example_of(type(Registry().get(kind)))
    assert example, f"`{kind}` has no example"
    compiled = compile_text(
        in_a_playbook(example.replace("- name: fetch\n", "- name: fetched\n")), "e.yaml", Registry()
    )
    # A snippet of tasks has no place to declare what `auth` names.
    assert [one for one in compiled.problems if one.code != "P0708"] == []
    assert compiled.net is not None
    assert kind in {task.kind for task in compiled.net.nodes["start"].tasks[1:]}


def test_the_example_of_the_workbook_is_valid() -> None:
    compiled = compile_text(WORKBOOK_EXAMPLE, "e.yaml", Registry())
    assert compiled.problems == ()
