"""Templates in keychain entries: what they see, and what becomes of what is not there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.keychain import Inputs, Keychain, KeychainError, resolve
from penstock.ports.ambient import SystemClock
from tests.jobs import problems, run_job

JOB = """
context: { env: dev, groups: { prod: { env: prod } } }
keychain:
  - { name: token, kind: file, path: "%s.txt" }
components:
  - { name: keep, type: python, params: { code: "result = None", env: { TOKEN: "{{ keychain.token }}" } } }
"""


def resolved_with(entries: list[dict[str, Any]], inputs: Inputs, folder: Path) -> Keychain:
    return asyncio.run(
        resolve(entries, inputs=inputs, folder=folder, home=folder / "home", environ={}, clock=SystemClock())
    )


@pytest.mark.parametrize(
    ("kind", "template"),
    [
        ("job", "{{ context.env }}.txt"),
        ("job", "{{ env }}.txt"),
        ("playbook", "{{ workload.env }}.txt"),
        ("playbook", "{{ env }}.txt"),
    ],
)
def test_entries_see_a_jobs_context_or_a_playbooks_workload(kind: str, template: str, tmp_path: Path) -> None:
    (tmp_path / "dev.txt").write_text("s3cr3t-of-dev")
    keys = resolved_with([{"name": "t", "kind": "file", "path": template}], Inputs({"env": "dev"}, kind), tmp_path)
    assert keys.credential("t") == {"value": "s3cr3t-of-dev"}


@pytest.mark.parametrize(("kind", "space"), [("job", "context"), ("playbook", "workload")])
def test_what_is_undefined_in_any_field_is_an_error_that_names_it(kind: str, space: str, tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = [
        {"name": "a", "kind": "file", "path": f"{{{{ {space}.evn }}}}"},
        {"name": "b", "kind": "env", "var": {"deep": ["x{{ nothing }}"]}},
    ]
    with pytest.raises(KeychainError) as caught:
        resolved_with(entries, Inputs({"env": "dev"}, kind), tmp_path)
    assert [str(problem) for problem in caught.value.problems] == [
        f"keychain entry `a`: `path`: `{space}.evn` is undefined; did you mean `env`?",
        "keychain entry `b`: `var`: `nothing` is undefined",
    ]
    assert caught.value.problems[0].hint == f"give it a default in `{space}`"


def test_a_name_that_the_context_has_not_is_an_error_before_the_run(tmp_path: Path) -> None:
    found = [problem for problem in problems(JOB % "{{ context.evn }}", tmp_path) if problem.code == "J0701"]
    assert [(problem.message, problem.label) for problem in found] == [
        ("UNKNOWN_NAME: `context` has no `evn`", "did you mean `env`?")
    ]


def test_a_secret_is_found_where_the_context_says(tmp_path: Path) -> None:
    (tmp_path / "dev.txt").write_text("s3cr3t-of-dev", encoding="utf-8")
    text = """
    context: { env: dev }
    keychain:
      - { name: token, kind: file, path: "{{ context.env }}.txt" }
    components:
      - { name: tell, type: warn, params: { message: "{{ keychain.token }}" } }
    """
    assert run_job(text, tmp_path).status == "completed"
