"""Jobs inside a playbook: what they say reaches the terminal, and `show` and `explain` look into them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.jobs import write_job
from tests.cli.support import call, write

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]

BOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: book}
workflow:
  - step: start
    loop: {in: [1, 2], iterator: n}
    tool:
      - {name: load, kind: job, path: leaf.yaml, args: {n: "{{ iter.n }}"}}
    next: {arcs: [{step: again}]}
  - step: again
    tool: {name: more, kind: playbook, path: other.yaml}
"""
OTHER = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: other}
workflow:
  - step: only
    tool: {name: load, kind: job, path: leaf.yaml}
"""
LEAF = """
context: {n: 7}
components:
  - {name: some, type: fixed_rows, params: {columns: [id], rows: [[1], [2]]}}
  - {name: shown, type: log_rows}
  - {name: odd, type: noop}
  - name: check
    type: python
    params:
      code: |
        import os
        if context['n'] == 7 and not os.path.exists('there'):
            raise ValueError('not there')
connections:
  data: some.main -> shown.input
  control: |
    some (error) odd
    shown (subjob_ok) check
"""


@pytest.fixture
def failed(capsys: Capture) -> str:
    """The run of a playbook whose third job failed; what it said."""
    write_job("leaf.yaml", LEAF)
    write("other.yaml", OTHER)
    run = call(capsys, "run", write("book.yaml", BOOK))
    assert run.code == 1
    return run.err


def test_what_the_components_of_a_job_say_is_told_under_the_step_that_runs_it(failed: str) -> None:
    assert failed.count("start | shown | 2 rows") == 2
    assert "only | shown | 2 rows" in failed


def test_show_lists_what_runs_inside_with_its_components(capsys: Capture, failed: str) -> None:
    shown = call(capsys, "show", "@last", "--json").json
    run = shown["execution_id"]
    inside = [(one["kind"], one["name"], one["path"], one["status"]) for one in shown["children"]]
    assert inside == [
        ("job", "leaf", "start@0[0]/load#1", "completed"),
        ("job", "leaf", "start@0[1]/load#1", "completed"),
        ("playbook", "other", "again@1/more#1", "failed"),
        ("job", "leaf", "again@1/more#1/only@0/load#1", "failed"),
    ]
    assert [one["execution_id"] for one in shown["children"]] == [f"{run}/{path}" for _, _, path, _ in inside]
    states = {name: one["state"] for name, one in shown["children"][-1]["components"].items()}
    assert states == {"some": "OK", "shown": "OK", "odd": "SKIPPED", "check": "ERROR"}
    page = call(capsys, "show", "@last").out
    assert page.index("start@0 ") < page.index("job leaf at start@0[0]/load#1: completed") < page.index("again@1 ")
    assert "                 shown (log_rows) OK, rows in 2" in page
    assert "odd (noop) SKIPPED: `some` ended OK, so its `error` link did not fire" in page
    assert "check (python) ERROR" in page


def test_a_job_that_goes_on_after_a_resume_shows_and_explains_what_it_kept(capsys: Capture, failed: str) -> None:
    Path("there").touch()
    assert call(capsys, "resume", "@last").code == 0
    last = call(capsys, "show", "@last", "--json").json["children"][-1]
    assert (last["path"], last["continues"]) == ("again@2/more#2/only@1/load#2", "again@1/more#1/only@0/load#1")
    kept = {name: (one["state"], one.get("kept", False)) for name, one in last["components"].items()}
    assert kept == {
        "some": ("OK", True),
        "shown": ("OK", True),
        "odd": ("SKIPPED", True),
        "check": ("OK", False),
    }
    told = call(capsys, "explain", "@last", f"{last['path']}/check").out
    assert "sub-job `some` ended OK; its `subjob_ok` link fired" in told
    assert "ended OK" in call(capsys, "explain", "@last", f"{last['path']}/shown").out
    assert call(capsys, "replay", "@last").code == 0


def test_the_causes_of_a_component_in_a_job_inside_begin_at_the_start_of_the_run(capsys: Capture, failed: str) -> None:
    told = call(capsys, "explain", "@last", "again@1/more#1/only@0/load#1/check", "--json").json
    why = next(section["lines"] for section in told["because"] if section["title"] == "why it ran")
    begins = [
        "the run of `book` began with its entry step, as `start@0`",
        "`start@0` was done after",
        "task `again@1/more#1` runs the playbook `other`, which began with `only`",
        "task `again@1/more#1/only@0/load#1` runs the job `leaf`, in which `some` waits for nothing",
        "`some` ended OK after",
        "sub-job `some` ended OK; its `subjob_ok` link fired → `check`",
    ]
    assert len(why) == len(begins)
    assert all(line.startswith(begin) for line, begin in zip(why, begins, strict=True))
