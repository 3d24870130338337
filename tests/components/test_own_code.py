"""An exception in one's own component names the file and the line of that code, in the failure, in `explain` and in `logs`."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from penstock.components.function import component
from penstock.components.runner import failure_of
from tests.cli.support import call
from tests.jobs import run_job

MODULE = """
def main(values):
    return deeper(values)


def deeper(values):
    return values["nope"]
"""
JOB = """
components:
  - name: own
    type: python
    params:
      code: |
        import own_module_of_a_test
        result = own_module_of_a_test.main({"a": 1})
"""


def module(folder: Path, name: str, text: str) -> ModuleType:
    file = folder / f"{name}.py"
    file.write_text(textwrap.dedent(text))
    made = ModuleType(name)
    made.__file__ = str(file)
    exec(compile(file.read_text(), str(file), "exec"), made.__dict__)
    return made


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = module(tmp_path, "own_module_of_a_test", MODULE)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return tmp_path


def test_an_exception_in_a_module_beside_the_job_names_its_line(own: Path) -> None:
    run = run_job(JOB, own)
    at = f"{own / 'own_module_of_a_test.py'}:7 in deeper"
    assert run.error["raised_at"] == at
    assert run.error["message"].startswith("KeyError: 'nope' (line 2 of `code`, ")
    assert run.error["message"].endswith(f"; raised at {at})")


def test_explain_and_logs_name_it_too(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own)
    Path("job.yaml").write_text(JOB)
    assert call(capsys, "run", "job.yaml").code == 1
    at = f"{own / 'own_module_of_a_test.py'}:7 in deeper"
    explained = call(capsys, "explain", "@last", "own").out
    assert f'raised at: "{at}"' in explained
    assert 'return values["nope"]' in explained
    assert at in call(capsys, "logs", "@last").out


def test_an_exception_in_the_code_itself_names_no_other_file(tmp_path: Path) -> None:
    run = run_job(
        JOB.replace("import own_module_of_a_test", "pass").replace("own_module_of_a_test.main", "int"), tmp_path
    )
    assert "raised_at" not in run.error
    assert "line 2 of `code`" in run.error["message"]


def failure(made: Any) -> ComponentFailure:
    try:
        made.function(2)
    except ZeroDivisionError as error:
        return failure_of(error, made(), None, None)
    raise AssertionError("it did not fail")


def test_an_exception_in_a_component_of_ones_own_names_its_line_and_not_ours(tmp_path: Path) -> None:
    text = "def parts(n: int = 1) -> None:\n    return helper(n)\n\n\ndef helper(n):\n    return 1 / (n - 2)\n"
    made = component("parts")(module(tmp_path, "own_component_of_a_test", text).parts)
    failed = failure(made)
    file = tmp_path / "own_component_of_a_test.py"
    assert failed.detail["raised_at"] == f"{file}:6 in helper"
    assert failed.message == f"ZeroDivisionError: division by zero (raised at {file}:6 in helper)"
    assert failed.detail["traceback"] == [f"{file}:2 in parts", f"{file}:6 in helper"]
