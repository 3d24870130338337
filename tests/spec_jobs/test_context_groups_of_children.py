"""A context group of a job that another document calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.server.documents import DocumentInvalid
from tests.engine import play
from tests.jobs import run_job

CHILD = """
context: {where: nowhere, what: rows, groups: {prod: {where: there, what: all}}}
components:
  - name: told
    type: set_global
    params: {values: {told: "{{ context.where }} {{ context.what }}"}}
"""


def test_a_playbook_calls_a_job_with_a_group_and_its_args_go_over_it(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(CHILD, encoding="utf-8")
    call = "- step: start\n  tool: {kind: job, path: child, context_group: GROUP, args: {what: some}}\n"
    assert play(call.replace("GROUP", "prod"), tmp_path).result["globals"] == {"told": "there some"}
    with pytest.raises(DocumentInvalid, match="no context group `prd`"):
        play(call.replace("GROUP", "prd"), tmp_path, execution_id="run-2")
    wrong = play(call.replace("GROUP", "\"{{ 'prd' }}\""), tmp_path, execution_id="run-3")
    assert (wrong.status, "no context group `prd`" in str(wrong.error)) == ("failed", True)


def test_a_job_calls_a_job_with_a_group(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(CHILD, encoding="utf-8")
    ran = run_job(
        """
        components:
          - name: load
            type: run_job
            params: {path: child.yaml, context_group: prod}
        """,
        tmp_path,
    )
    assert ran.status == "completed", ran.error
    (ended,) = [one for one in ran.payloads("component.ok") if one["component"] == "load"]
    assert ended["result"]["globals"] == {"told": "there all"}
