"""Templates in keychain entries: what they see, and what becomes of what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.keychain.errors import KeychainError
from penstock.keychain.resolution import rendered_entries
from tests.jobs import problems, run_job

JOB = """
context: { env: dev, groups: { prod: { env: prod } } }
keychain:
  - { name: token, kind: file, path: "%s.txt" }
components:
  - { name: keep, type: python, params: { code: "result = None", env: { TOKEN: "{{ keychain.token }}" } } }
"""


@pytest.mark.parametrize("template", ["{{ context.env }}/x", "{{ env }}/x"])
def test_the_entries_of_a_job_see_its_context(template: str) -> None:
    entries = [{"name": "token", "kind": "file", "path": template}]
    assert rendered_entries(entries, "job", {"env": "dev"}) == [{"name": "token", "kind": "file", "path": "dev/x"}]


@pytest.mark.parametrize("template", ["{{ workload.env }}/x", "{{ env }}/x"])
def test_the_entries_of_a_playbook_see_its_workload(template: str) -> None:
    (entry,) = rendered_entries([{"name": "t", "kind": "file", "path": template}], "playbook", {"env": "dev"})
    assert entry["path"] == "dev/x"


def test_what_is_undefined_in_any_field_is_an_error_that_names_it() -> None:
    entries = [
        {"name": "a", "kind": "file", "path": "{{ context.evn }}"},
        {"name": "b", "kind": "env", "var": {"deep": ["x{{ nothing }}"]}},
    ]
    with pytest.raises(KeychainError) as caught:
        rendered_entries(entries, "job", {"env": "dev"})
    assert [str(problem) for problem in caught.value.problems] == [
        "keychain entry `a`: `path`: `context.evn` is undefined; did you mean `env`?",
        "keychain entry `b`: `var`: `nothing` is undefined",
    ]


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
