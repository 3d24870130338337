"""Playbooks in today's words: what is rewritten, what is left to the author, and that nothing else changes."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from penstock.dialects.convert.frame import Became
from penstock.dialects.convert.playbooks import PlaybookConverter
from penstock.dialects.playbook import compile_text
from penstock.tools.registry import Registry
from tests.cases import cases
from tests.dialects.playbook.support import HEAD, steps, tasks
from tests.dialects.playbook.test_public_words import ALIASES, HINTS, IGNORED, REFUSED

CATALOG = Registry()
CONVERTER = PlaybookConverter(CATALOG)
WORDS = {"P0218", "P0219", "P0220"}


def converted(text: str) -> str:
    return CONVERTER.convert(Path("test.yaml"), text).text


def remarks(text: str) -> list[tuple[Became, int]]:
    return [(one.became, one.line) for one in CONVERTER.convert(Path("test.yaml"), text).remarks]


def net(text: str):
    found = compile_text(text, "test.yaml", CATALOG)
    assert found.net is not None, [(one.code, one.message) for one in found.problems]
    return found.net


LEFT = (
    ("shell", "exports"),
    ("python", "auth"),
    ("python", "iterator"),
    ("duckdb", "gcs_credential"),
)
BOTH = [pair for table in (ALIASES, HINTS, IGNORED) for pair in table.values() if pair is not None]


@cases("public, today", BOTH)
def test_a_word_of_another_engine_becomes_todays(public, today):
    text = converted(public)
    assert net(text).digest == net(today).digest
    assert compile_text(text, "test.yaml", CATALOG).problems == compile_text(text, "test.yaml", CATALOG).problems
    assert converted(text) == text
    assert text != public


@cases("text, remedy", [pair for word, pair in REFUSED.items() if word not in LEFT])
def test_a_refused_word_with_a_mechanical_rewrite_becomes_todays(text, remedy):
    found = compile_text(converted(text), "test.yaml", CATALOG)
    assert not {one.code for one in found.problems} & WORDS, converted(text)


@cases("text", [REFUSED[word][0] for word in LEFT])
def test_a_refused_word_without_one_is_left_to_the_author(text):
    assert converted(text) == text
    assert [became for became, _ in remarks(text)] == [Became.DECIDE]


OLD = [
    ("- step: a\n  next: [b]\n- step: b\n", "- step: a\n  next: {arcs: [{step: b}]}\n- step: b\n"),
    ("- step: a\n  next: b\n- step: b\n", "- step: a\n  next: {arcs: [{step: b}]}\n- step: b\n"),
    ("- step: a\n  next: {step: b}\n- step: b\n", "- step: a\n  next: {arcs: [{step: b}]}\n- step: b\n"),
    (
        "- step: a\n  next: [b, c]\n- step: b\n- step: c\n",
        "- step: a\n  next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: c}]}\n- step: b\n- step: c\n",
    ),
    (
        '- step: a\n  case:\n    - {when: "{{ workload.go }}", then: {next: [{step: b}]}}\n- step: b\n',
        '- step: a\n  next: {arcs: [{step: b, when: "{{ workload.go }}"}]}\n- step: b\n',
    ),
    (
        '- step: a\n  tool: {kind: noop, value: {n: 1}}\n  vars: {n: "{{ result.n }}"}\n  next: [b]\n'
        '- step: b\n  tool: {kind: noop, value: "{{ vars.n }}"}\n',
        '- step: a\n  tool: {kind: noop, value: {n: 1}}\n  set: {ctx.n: "{{ output.n }}"}\n  next: {arcs: [{step: b}]}\n'
        '- step: b\n  tool: {kind: noop, value: "{{ ctx.n }}"}\n',
    ),
    ("- step: a\n  type: http\n  url: http://localhost\n", "- step: a\n  tool: {kind: http, url: http://localhost}\n"),
    (
        "- step: a\n  type: http\n  url: http://localhost\n  case: [{when: '{{ workload.go }}', then: {next: [{step: b}]}}]\n- step: b\n",
        "- step: a\n  tool: {kind: http, url: http://localhost}\n  next: {arcs: [{step: b, when: '{{ workload.go }}'}]}\n- step: b\n",
    ),
    ("- step: a\n  pipe: [{name: t, kind: noop}]\n", "- step: a\n  tool: [{name: t, kind: noop}]\n"),
    ("- step: a\n  tool: [{t: {kind: noop}}, {u: {kind: noop}}]\n", "- step: a\n  tool: [{name: t, kind: noop}, {name: u, kind: noop}]\n"),
    ("- step: a\n  tool: noop\n", "- step: a\n  tool: {kind: noop}\n"),
    ("- step: a\n  tool: [{name: t, tool: {kind: noop}}]\n", "- step: a\n  tool: [{name: t, kind: noop}]\n"),
    (
        "- step: a\n  tool:\n    - {name: t, kind: noop, retry: {max_attempts: 5, delay: 2}}\n",
        "- step: a\n  tool:\n    - {name: t, kind: noop, spec: {policy: {rules: [{when: \"{{ outcome.status == 'error' }}\","
        " then: {do: retry, attempts: 5, delay: 2}}]}}}\n",
    ),
    (
        '- step: a\n  when: "{{ workload.go }}"\n',
        '- step: a\n  spec: {policy: {admit: {rules: [{when: "{{ workload.go }}", then: {allow: true}},'
        " {else: {then: {allow: false}}}]}}}\n",
    ),
    (
        "- step: a\n  loop: {in: [1], iterator: x, mode: parallel}\n  tool: {kind: noop}\n",
        "- step: a\n  loop: {in: [1], iterator: x, spec: {mode: parallel}}\n  tool: {kind: noop}\n",
    ),
    (
        "- step: a\n  tool:\n    - {name: t, kind: noop, spec: {policy: [{else: {do: continue}}]}}\n",
        "- step: a\n  tool:\n    - {name: t, kind: noop, spec: {policy: {rules: [{else: {do: continue}}]}}}\n",
    ),
]  # fmt: skip


@cases("old, today", OLD)
def test_an_older_form_becomes_todays(old, today):
    text = converted(steps(old))
    assert net(text).digest == net(steps(today)).digest, text
    assert converted(text) == text


def test_the_kind_of_a_keychain_entry_has_its_name_of_today():
    text = HEAD + "keychain:\n  - {name: a, type: env, var: A}   # ours\n" + steps("- step: a\n", head="")
    assert "  - {name: a, var: A, kind: env}   # ours\n" in converted(text)
    assert net(converted(text)).keychain == net(text).keychain


def test_inputs_that_stood_in_vars_are_the_workload():
    text = HEAD + "vars: {city: Oslo}\n" + steps("- step: a\n  tool: {kind: noop, value: '{{ vars.city }}'}\n", head="")
    assert net(converted(text)).workload == {"city": "Oslo"}
    assert net(converted(text)).nodes["a"].tasks[0].params["value"] == "{{ workload.city }}"


def test_modules_that_another_engine_brings_are_imported():
    text = tasks(
        "- name: a\n  kind: python\n  code: |\n    result = json.dumps({'n': os.getpid(), 'd': given})\n  args: {given: 1}\n"
    )
    code = yaml.safe_load(converted(text))["workflow"][0]["tool"][0]["code"]
    assert code == "import json\nimport os\nresult = json.dumps({'n': os.getpid(), 'd': given})\n"
    imported = tasks("- name: a\n  kind: python\n  code: |\n    import json\n    result = json.dumps(1)\n")
    assert converted(imported) == imported


def test_braces_of_another_language_are_let_alone():
    text = tasks("- name: a\n  kind: shell\n  command: docker ps --format '{{.ID}} {{ .Names }}'\n")
    command = yaml.safe_load(converted(text))["workflow"][0]["tool"][0]["command"]
    assert command == "docker ps --format '{% raw %}{{.ID}}{% endraw %} {% raw %}{{ .Names }}{% endraw %}'"
    assert net(converted(text)) is not None
    assert converted(converted(text)) == converted(text)


def test_what_cannot_be_carried_over_is_named_with_its_line():
    text = tasks("- name: a\n  kind: rhai\n  code: x\n- name: b\n  kind: shell\n  command: x\n  exports: [y]\n")
    assert remarks(text) == [(Became.LOST, 9), (Became.DECIDE, 14)]


def test_what_means_something_else_here_needs_a_decision():
    text = tasks(
        "- name: a\n  kind: http\n  url: http://localhost\n  spec:\n    policy:\n      rules:\n"
        "        - {when: \"{{ outcome.status == 'ok' }}\", then: {do: continue}}\n"
    )
    assert [became for became, _ in remarks(text)] == [Became.DECIDE]


DOCUMENT = dedent("""\
    # Loads a day.
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: { name: load,  path: team/load }   # its name

    workload:
      url: http://localhost   # the service

      # how many
      count: 3

    workflow:
      # first
      - step: start
        tool:
          - fetch:   # by label
              kind: http
              endpoint: "{{ workload.url }}"   # where
              # patience
              timeout: 8
              verify_ssl: false   # at home

          # then
          - name: count
            kind: python
            input: { n: "{{ workload.count }}" }   # how many
            code: |
              # a comment of the code
              result = n

        # on we go
        next:
          - step: end   # the last

      # the end
      - step: end
        tool: { kind: noop }   # nothing
    # that is all
""")


def test_comments_order_and_layout_stay():
    text = converted(DOCUMENT)
    comments = [part.strip() for line in DOCUMENT.splitlines() if "#" in line for part in [line[line.index("#") :]]]
    assert [one for one in comments if one not in text] == []
    same = [line for line in DOCUMENT.splitlines() if line in text.splitlines()]
    assert len(same) >= len(DOCUMENT.splitlines()) - 10
    assert list(yaml.safe_load(text)) == list(yaml.safe_load(DOCUMENT))
    assert net(text).nodes["start"].tasks[0].params["verify"] is False


@pytest.mark.parametrize("text", ["", "just words\n", "a: [\n", "kind: Playbook\n", "- 1\n", "workflow: 5\n"])
def test_what_is_no_playbook_is_left_as_it_is(text):
    assert converted(text) == text


@given(st.lists(st.sampled_from(sorted(dict(enumerate(OLD)))), min_size=1, max_size=4, unique=True))
def test_any_of_the_older_forms_together_come_to_a_document_that_stays(chosen):
    # Each in steps of its own names, so that they do not meet.
    def of(which: int) -> str:
        parts = []
        for number in chosen:
            part = OLD[number][which]
            for name in ("a", "b", "c"):
                for before, after in (
                    (f"step: {name}", f"step: {name}{number}"),
                    (f"next: {name}", f"next: {name}{number}"),
                ):
                    part = (
                        part.replace(f"{before}\n", f"{after}\n")
                        .replace(f"{before}}}", f"{after}}}")
                        .replace(f"{before},", f"{after},")
                    )
            parts.append(part.replace("[b]", f"[b{number}]").replace("[b, c]", f"[b{number}, c{number}]"))
        return steps("".join(parts))

    text = converted(of(0))
    assert net(text).digest == net(of(1)).digest
    assert converted(text) == text


def test_comments_beside_the_vars_of_a_step_stay_with_what_is_written():
    text = steps("- step: a\n  vars:\n    # the first\n    n: 1   # one\n    m: 2\n  tool: {kind: noop}\n")
    assert "# the first" in converted(text)
    assert "ctx.n: 1" in converted(text)
    assert "# one" in converted(text)


def test_a_comment_that_is_lost_is_named_with_its_line():
    text = steps(
        '- step: a\n  case:\n    - when: "{{ workload.go }}"   # go on\n      then: {next: [{step: b}]}\n- step: b\n'
    )
    assert (Became.LOST, 8) in remarks(text)
    assert [one for one in remarks(text) if one[0] is Became.LOST and "# go on" in converted(text)] == []
