"""A request names files of the machine it comes from. The server's own files are none of its business: they are not read, and no
answer differs by whether there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.service import Api, serving
from tests.engine import document

JOB = """\
components:
  - {name: part, type: "@inner"}
"""
INNER = """\
kind: Joblet
components:
  - {name: rows, type: fixed_rows, params: {rows: [{marked: CANARY}]}}
"""
CALLS = "- step: start\n  tool: [{{name: c, kind: {kind}, path: {path}}}]\n"
LEAF = document("- step: start\n  tool: [{name: n, kind: noop, value: CANARY}]\n")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path / "home") as running:
        boss = Api(running.url)
        made = boss.post("/api/tokens", {"name": "boss", "scope": "admin"}).json()["secret"]
        boss.http.headers["Authorization"] = f"Bearer {made}"
        secret = boss.post("/api/tokens", {"name": "reader", "scope": "read"}).json()["secret"]
        client = Api(running.url, secret)
        yield client
        boss.close()
        client.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """On the server's disk: a joblet, a playbook, and a link to their folder."""
    folder = tmp_path / "private"
    (folder / "joblets").mkdir(parents=True)
    (folder / "joblets" / "inner.yaml").write_text(INNER)
    (folder / "inner.yaml").write_text(INNER)
    (folder / "leaf.yaml").write_text(LEAF)
    (folder / "job.yaml").write_text(JOB)
    (tmp_path / "link").symlink_to(folder)
    return folder


def planned(api: Api, file: str, text: str = JOB, **more: Any) -> str:
    answers = [
        api.post("/api/plan", {"document": {"text": text, "file": file, **more}}),
        api.post("/api/plan", {"document": {"text": text, "file": file, **more}, "format": "text"}),
        api.post("/api/graph", {"document": {"text": text, "file": file, **more}, "format": "dot"}),
        api.post("/api/validate", {"document": {"text": text, "file": file, **more}}),
    ]
    return "\n".join(answer.text for answer in answers)


@pytest.mark.parametrize("place", ["{}/job.yaml", "{}/../link/job.yaml", "{}/joblets/job.yaml", "{}/nobody.yaml"])
def test_a_joblet_on_the_servers_disk_is_not_read(reader: Api, folder: Path, place: str) -> None:
    said = planned(reader, place.format(folder))
    assert "CANARY" not in said
    assert "JOBLET_NOT_FOUND" in said


def test_a_relative_name_does_not_lead_to_the_servers_working_folder(
    reader: Api, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    said = planned(reader, "job.yaml")
    assert "CANARY" not in said
    assert "JOBLET_NOT_FOUND" in said


def test_answers_do_not_tell_which_files_there_are(reader: Api, folder: Path) -> None:
    for text in (JOB, document(CALLS.format(kind="playbook", path="leaf")), JOB.replace("@inner", "@inn")):
        there = planned(reader, f"{folder}/job.yaml", text).replace(str(folder), "X")
        elsewhere = planned(reader, f"{folder}-is-not-there/job.yaml", text).replace(f"{folder}-is-not-there", "X")
        assert there == elsewhere
        assert "P0513" not in there


def test_links_on_the_servers_disk_are_not_followed(reader: Api, folder: Path) -> None:
    link = folder.parent / "link"
    real = {f"{os.path.realpath(folder)}/inner.yaml": INNER}
    assert "JOBLET_NOT_FOUND" in planned(reader, f"{link}/job.yaml", sources=real)


def test_joblets_that_come_along_are_found_by_the_names_they_came_under(reader: Api) -> None:
    for file, source in (
        ("/srv/a/job.yaml", "/srv/a/inner.yaml"),
        ("/srv/a/job.yaml", "/srv/a/./joblets/inner.yaml"),
        ("job.yaml", "inner.yaml"),
        ("job.yaml", "./joblets/inner.yaml"),
    ):
        assert "CANARY" in planned(reader, file, sources={source: INNER})


@pytest.mark.parametrize("kind", ["playbook", "job"])
def test_a_run_calls_no_document_of_the_servers_disk(tmp_path: Path, folder: Path, kind: str) -> None:
    name = "leaf" if kind == "playbook" else "job"
    with serving(tmp_path / "home") as running:
        api = Api(running.url)
        for path in (name, f"{folder}/{name}.yaml", f"../private/{name}"):
            text = document(CALLS.format(kind=kind, path=path))
            body = {"document": {"text": text, "file": f"{folder}/main.yaml"}}
            refused = api.post("/api/executions", body)
            assert refused.status_code == 422
            assert "there is no document" in refused.text
            assert "came along with the run" in refused.text
            body["document"]["text"] = text.replace(f"path: {path}", f"path: \"{{{{ '{path}' }}}}\"")
            run = api.post("/api/executions", body).json()["execution_id"]
            assert api.ended(run) == "failed"
            error = api.get(f"/api/executions/{run}").json()["error"]
            assert "there is no document" in str(error)
            assert "came along with the run" in str(error)
        sent = {f"{folder}/{name}.yaml": LEAF if kind == "playbook" else INNER.replace("kind: Joblet\n", "")}
        body = {"document": {"text": text, "file": f"{folder}/main.yaml", "sources": sent}}
        run = api.post("/api/executions", body).json()["execution_id"]
        assert api.ended(run) == "completed"
        api.close()


def test_a_worker_reads_no_joblet_of_its_own_disk(tmp_path: Path, folder: Path) -> None:
    """It compiles what it is handed; what is not in there, it does not look for."""
    from penstock.adapters.memory.blobs import MemoryBlobs
    from penstock.app.worker import WorkerFactory
    from penstock.kernel.errors import Refused
    from penstock.ports.ambient import SystemClock

    bench = WorkerFactory(tmp_path / "home", MemoryBlobs(), SystemClock())
    try:
        with pytest.raises(Refused, match="there is no joblet `inner`"):
            bench.compile({"file": f"{folder}/job.yaml", "text": JOB})
    finally:
        bench.close()


@pytest.mark.parametrize(
    "component",
    [
        "{name: q, type: sql, params: {query: \"SELECT * FROM read_csv('FILE')\"}}",
        "{name: q, type: read_csv, params: {path: FILE}}",
        "{name: q, type: read_json, params: {path: FILE}}",
    ],
)
def test_columns_are_not_inferred_from_the_servers_files(reader: Api, tmp_path: Path, component: str) -> None:
    file = tmp_path / "rows.csv"
    job = f"components:\n  - {component.replace('FILE', str(file))}\n"
    without = planned(reader, "job.yaml", job)
    file.write_text("canary_column\n1\n")
    assert planned(reader, "job.yaml", job) == without
    assert "canary_column" not in without
