"""The readers that both languages share: the same mistake is told in the same words in a playbook and in a job."""

from __future__ import annotations

import re
from pathlib import Path

from penstock import dialects
from penstock.dialects.problems import Problem
from penstock.dialects.source.loader import load_text
from tests.cases import cases
from tests.dialects.job.support import problems as job_problems
from tests.dialects.playbook.support import HEAD
from tests.dialects.playbook.support import problems as playbook_problems

ROOM = Path(dialects.__file__).parent


def in_a_playbook(head: str) -> list[Problem]:
    return playbook_problems(f"{HEAD}{head}\nworkflow:\n- step: a\n  tool: {{kind: noop}}\n")


def in_a_job(head: str) -> list[Problem]:
    return job_problems(f"{head}\ncomponents:\n- {{name: a, type: noop}}\n")


@cases(
    "keychain",
    [
        "keychain: {a: b}",
        "keychain: [text]",
        "keychain: [{kind: env, var: X}]",
        "keychain: [{name: a b, kind: env, var: X}]",
        "keychain: [{name: a, kind: [env]}]",
        "keychain: [{name: a, kind: emv, var: X}]",
        "keychain: [{name: a, kind: env}]",
        "keychain: [{name: a, kind: static, value: 1}]",
        "keychain: [{name: a, kind: env, var: X}, {name: a, kind: env, var: X}]",
    ],
)
def test_a_mistake_in_a_keychain_is_told_in_the_same_words_in_both_languages(keychain: str) -> None:
    def said(found: list[Problem]) -> list[tuple[str, str, int]]:
        bare = [each.message.removeprefix("BAD_NAME: ") for each in found]
        return [(text, each.label, each.position.column) for text, each in zip(bare, found, strict=True)]

    here, there = said(in_a_playbook(keychain)), said(in_a_job(keychain))
    assert here
    assert here == there


def test_a_kind_of_secret_that_is_a_list_is_called_a_list() -> None:
    (found,) = in_a_playbook("keychain: [{name: a, kind: [env]}]")
    assert found.message == "a list is not a kind of secret"


def test_the_shape_of_a_keychain_of_a_job_has_a_code_of_jobs() -> None:
    assert [each.code for each in in_a_job("keychain: {a: b}")] == ["J0101"]


def test_a_name_that_playbooks_have_taken_is_free_for_a_secret_of_a_job() -> None:
    assert in_a_job("keychain: [{name: ctx, kind: env, var: X}]") == []


def test_an_empty_kind_of_document_is_not_called_none() -> None:
    (found,) = [each for each in playbook_problems("kind:\nworkflow:\n- step: a\n") if each.code == "P0005"]
    assert found.message == "nothing is not a kind of document"


def test_a_template_under_a_key_called_policy_of_the_workload_is_warned_of() -> None:
    assert "P0109" in [each.code for each in in_a_playbook("workload: {policy: '{{ ctx.x }}'}")]


@cases(
    "text, shown",
    [("5", "`5`"), ("true", "`true`"), ("", "nothing"), ("a b", "`a b`"), ("[1]", "a list"), ("{}", "a mapping")],
)
def test_a_value_is_shown_itself_where_that_is_short_and_named_otherwise(text: str, shown: str) -> None:
    root = load_text(f"key: {text}\n").root
    assert root is not None
    assert root.entries["key"].shown == shown


def test_neither_language_imports_the_other() -> None:
    """What both need lies beside them."""
    found = {
        (path.name, name)
        for here, there in (("job", "playbook"), ("playbook", "job"))
        for path in (ROOM / here).rglob("*.py")
        for name in _imports(path)
        if name.startswith(f"penstock.dialects.{there}")
    }
    assert found == set()


def _imports(path: Path) -> list[str]:
    return re.findall(r"^\s*(?:from|import) (penstock\.dialects\.\w+)", path.read_text(encoding="utf-8"), re.M)
