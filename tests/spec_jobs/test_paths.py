"""D56: relative paths in parameters begin at the folder of the document that they are written in, a joblet's at the joblet's."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from penstock.components.registry import ComponentRegistry
from penstock.dialects.job.compile import compile_file
from tests.jobs import run_job
from tests.spec_jobs.support import job, python


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A job's folder and the folder of its joblets; a file of the same name in both says where it lies."""
    for folder in (tmp_path, tmp_path / "joblets"):
        folder.mkdir(exist_ok=True)
        (folder / "in.csv").write_text(f"where\n{'joblet' if folder.name == 'joblets' else 'job'}\n")
    return tmp_path


def joblet(home: Path, name: str, **components: Any) -> None:
    _write(home, name, job(**components), {"main": "read.main"})


def _write(home: Path, name: str, text: str, outputs: dict[str, str]) -> None:
    document = {"kind": "Joblet", "outputs": outputs, **json.loads(text)}
    (home / "joblets" / f"{name}.yaml").write_text(json.dumps(document, indent=1))


def reads(path: str) -> dict[str, Any]:
    return {"type": "read_csv", "params": {"path": path}}


def seen(home: Path, type_: str, **params: Any) -> str:
    """What the one row says that comes out of a call."""
    text = job(data=("call.main -> tell.input",), call={"type": type_, "params": params}, tell=_TELL)
    run = run_job(text, home, _CONTEXT)
    assert run.status == "completed", run.error
    return next(str(one["result"]) for one in run.payloads("component.ok") if one["component"] == "tell")


def planned(home: Path) -> list[str]:
    """The columns that the plan of the same job knows: it must have looked at the same file."""
    plan = compile_file(home / "job.yaml", ComponentRegistry(), context=_CONTEXT)
    assert not [problem for problem in plan.problems if "MISSING_FILE" in problem.message]
    return [column.name for column in plan.schemas["call", "main"] or ()]


_URL = "sqlite:///shop.db"
_CONTEXT = {"file": "in.csv", "folder": "."}
_TELL = python("result = inputs['input'][0]['where']")


def test_a_path_that_a_joblet_writes_begins_at_the_joblets_folder(home: Path) -> None:
    joblet(home, "near", read=reads("in.csv"))
    (home / "in.csv").unlink()
    assert seen(home, "@near") == "joblet"
    assert planned(home) == ["where"]


@pytest.mark.parametrize("path", ["{{ params.file }}", "{{ file }}"])
def test_so_does_a_default_of_the_joblet_and_what_it_makes_of_the_context(home: Path, path: str) -> None:
    joblet(home, "near", read=reads(path))
    file = home / "joblets" / "near.yaml"
    file.write_text(json.dumps({**json.loads(file.read_text()), "params": {"file": "in.csv"}}))
    assert seen(home, "@near") == "joblet"


@pytest.mark.parametrize("given", ["in.csv", "./in.csv", "{{ context.folder }}/in.csv", "{{ file }}"])
def test_a_path_that_the_caller_gives_begins_at_the_callers_folder(home: Path, given: str) -> None:
    joblet(home, "near", read=reads("{{ params.file }}"))
    (home / "joblets" / "in.csv").unlink()
    assert seen(home, "@near", file=given) == "job"
    assert planned(home) == ["where"]


def test_so_does_a_path_that_only_begins_with_what_the_caller_gives(home: Path) -> None:
    joblet(home, "near", read=reads("{{ params.folder }}/in.csv"))
    assert seen(home, "@near", folder="../" + home.name) == "job"


@pytest.mark.parametrize(
    ("handed_on", "given", "where"),
    [("{{ params.given }}", {"given": "in.csv"}, "job"), ("in.csv", {}, "joblet")],
)
def test_a_path_keeps_its_document_through_joblets_that_hand_it_on(
    home: Path, handed_on: str, given: dict[str, str], where: str
) -> None:
    joblet(home, "inner", read=reads("{{ params.file }}"))
    outer = job(read={"type": "@inner", "params": {"file": handed_on}})
    _write(home, "outer", outer, {"main": "read.main"})
    assert seen(home, "@outer", **given) == where
    assert planned(home) == ["where"]


def test_the_two_kinds_of_paths_may_stand_in_one_component(home: Path) -> None:
    copy = {"type": "file_copy", "params": {"path": "{{ params.file }}", "to": "copied.csv"}}
    _write(home, "copy", job(copy=copy), {})
    run = run_job(job(call={"type": "@copy", "params": {"file": "in.csv"}}), home)
    assert run.status == "completed", run.error
    assert (home / "joblets" / "copied.csv").read_text() == "where\njob\n"


@pytest.mark.parametrize(("given", "url"), [({"db": _URL}, "{{ params.db }}"), ({}, _URL)])
def test_the_file_in_the_url_of_a_database_begins_where_the_url_is_written(
    home: Path, given: dict[str, str], url: str
) -> None:
    for folder in (home, home / "joblets"):
        with sqlite3.connect(folder / "shop.db") as database:
            database.execute("CREATE TABLE places AS SELECT ? AS 'where'", [folder.name])
        database.close()
    params = {"query": 'SELECT "where" FROM places', "connection": url}
    joblet(home, "shop", read={"type": "read_sql", "params": params})
    assert seen(home, "@shop", **given) == (home.name if given else "joblets")


@pytest.mark.parametrize(
    ("path", "given", "where"), [("child", {}, "joblet"), ("{{ params.path }}", {"path": "child"}, "job")]
)
def test_a_job_that_a_joblet_runs_is_found_in_the_same_way(
    home: Path, path: str, given: dict[str, str], where: str
) -> None:
    for folder, name in ((home, "job"), (home / "joblets", "joblet")):
        (folder / "child.yaml").write_text(job(told={"type": "set_global", "params": {"values": {"where": name}}}))
    _write(home, "runs", job(run={"type": "run_job", "params": {"path": path}}), {})
    run = run_job(job(call={"type": "@runs", "params": given}), home)
    child = next(one["result"] for one in run.payloads("component.ok") if one["component"] == "call.__run")
    assert child["globals"] == {"where": where}
