"""What the page asks for beside runs: files of a project, the reference, times of schedules, and schedules fired by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.api.sessions import Local
from tests.api.service import GATED, QUICK, Api, asking, serving
from tests.cases import cases
from tests.engine import document

JOB = """apiVersion: penstock/v1
kind: Job
metadata:
  # a comment
  name: numbers
components:
  - name: read
    type: read_csv
    params: {path: numbers.csv}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "quick.yaml").write_text(QUICK)
    (root / "sub").mkdir()
    (root / "sub" / "numbers.yml").write_text(JOB)
    (root / "data.yaml").write_text("some: data\n")
    for hidden in (".git", "node_modules", ".venv"):
        (root / hidden).mkdir()
        (root / hidden / "quick.yaml").write_text(QUICK)
    outside = root.with_name("outside")
    outside.mkdir()
    (outside / "other.yaml").write_text(QUICK)
    (root / "link.yaml").symlink_to(outside / "other.yaml")
    (root / "folder").symlink_to(outside)
    (root / "notes.txt").write_text("a secret")
    return root


@pytest.fixture(scope="module")
def local(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    project = Local(root)
    with serving(tmp_path_factory.mktemp("home"), local=project) as running:
        api = Api(running.url, project.secret)
        yield api
        api.close()


# ---- files


def test_the_documents_of_the_folder_are_listed_with_kind_and_name(local: Api, root: Path) -> None:
    found = local.get("/api/files").json()
    assert found["root"] == str(root)
    shown = {
        one["path"]: (one["kind"], one["name"])
        for one in found["files"]
        if one["path"] in ("quick.yaml", "sub/numbers.yml")
    }
    assert shown == {"quick.yaml": ("playbook", "test"), "sub/numbers.yml": ("job", "numbers")}
    paths = {one["path"] for one in found["files"]}
    assert not {"data.yaml", "link.yaml", ".git/quick.yaml", "node_modules/quick.yaml", "folder/other.yaml"} & paths


def test_a_document_is_read_changed_and_saved(local: Api, root: Path) -> None:
    (root / "mine.yaml").write_text(QUICK)
    (root / "mine.yaml").chmod(0o640)
    before = local.get("/api/files/mine.yaml").json()
    assert (before["text"], before["file"], before["kind"]) == (QUICK, str(root / "mine.yaml"), "playbook")
    changed = QUICK.replace("hello", "good day")
    after = local.http.put("/api/files/mine.yaml", json={"text": changed, "digest": before["digest"]})
    assert after.status_code == 200
    assert (root / "mine.yaml").read_text() == changed
    assert (root / "mine.yaml").stat().st_mode & 0o777 == 0o640
    assert after.json()["digest"] != before["digest"]
    assert sorted(one.name for one in root.iterdir() if one.name.startswith(".mine")) == []


def test_a_file_that_changed_in_the_meantime_is_not_overwritten(local: Api, root: Path) -> None:
    (root / "theirs.yaml").write_text(QUICK)
    digest = local.get("/api/files/theirs.yaml").json()["digest"]
    (root / "theirs.yaml").write_text("theirs")
    answer = local.http.put("/api/files/theirs.yaml", json={"text": "mine", "digest": digest})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "file_changed")
    assert (root / "theirs.yaml").read_text() == "theirs"
    (root / "theirs.yaml").unlink()
    assert local.http.put("/api/files/theirs.yaml", json={"text": "mine", "digest": digest}).status_code == 409
    assert not (root / "theirs.yaml").exists()


def test_a_new_file_is_made_and_never_replaces_one(local: Api, root: Path) -> None:
    assert local.http.put("/api/files/new/folder/one.yaml", json={"text": QUICK}).status_code == 200
    assert (root / "new" / "folder" / "one.yaml").read_text() == QUICK
    assert local.http.put("/api/files/new/folder/one.yaml", json={"text": "x", "digest": None}).status_code == 409
    assert (root / "new" / "folder" / "one.yaml").read_text() == QUICK


@cases(
    "path",
    [
        "../outside/other.yaml",
        "sub/../../outside/other.yaml",
        "%2e%2e/outside/other.yaml",
        "link.yaml",
        "folder/other.yaml",
        "/etc/hosts.yaml",
        "notes.txt",
        ".git/quick.yaml",
        "quick.yaml%00.yaml",
        "sub\\numbers.yml",
        "nothing.yaml",
        "a" * 300 + ".yaml",
    ],
)
def test_a_path_that_leads_elsewhere_is_neither_read_nor_written(local: Api, root: Path, path: str) -> None:
    outside = root.with_name("outside")
    before = {one.name: one.read_bytes() for one in outside.iterdir()}
    assert local.http.get(f"/api/files/{path}").status_code == 404
    wanted = (200, 404, 409) if path == "nothing.yaml" else (404, 409, 503)
    assert local.http.put(f"/api/files/{path}", json={"text": "x"}).status_code in wanted
    assert {one.name: one.read_bytes() for one in outside.iterdir()} == before
    assert (root / "notes.txt").read_text() == "a secret"
    (root / "nothing.yaml").unlink(missing_ok=True)


def test_a_server_for_others_shows_no_files(api: Api) -> None:
    for answer in (
        api.get("/api/files"),
        api.get("/api/files/pyproject.yaml"),
        api.http.put("/api/files/x.yaml", json={"text": "x"}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_project")


# ---- runs of files


def test_a_document_of_the_folder_runs_with_what_lies_beside_it(local: Api, root: Path) -> None:
    (root / "calls.yaml").write_text(
        document("""
- step: start
  tool: [{name: call, kind: playbook, path: called}]
  next: {arcs: [{step: read}]}
- step: read
  tool: [{name: read, kind: files, action: read, path: beside.txt}]
""")
    )
    (root / "called.yaml").write_text(QUICK)
    (root / "beside.txt").write_text("beside")
    text = local.get("/api/files/calls.yaml").json()
    run = local.post("/api/executions", {"document": {"text": text["text"], "file": text["file"]}}).json()[
        "execution_id"
    ]
    assert local.ended(run) == "completed"
    shown = local.get(f"/api/executions/{run}").json()
    assert shown["file"] == str(root / "calls.yaml")
    assert shown["result"]["data"] == "beside"


def test_a_relative_name_is_one_of_the_folder(local: Api, root: Path) -> None:
    run = local.done(QUICK)
    assert local.get(f"/api/executions/{run}/header").json()["file"] == str(root / "p.yaml")


# ---- the reference


def test_tools_and_components_are_listed_and_each_has_a_page(api: Api) -> None:
    entries = api.get("/api/reference").json()["entries"]
    names = {(one["kind"], one["name"]) for one in entries}
    assert {("tool", "http"), ("tool", "workbook"), ("component", "read_csv")} <= names
    tool = api.get("/api/reference/tool/http").json()
    assert tool["output"].startswith("The result is `{data, status, headers")
    assert any(one["name"] == "url" and one["required"] for one in tool["params"])
    assert "kind: http" in tool["example"]
    component = api.get("/api/reference/component/read_csv").json()
    assert component["outputs"][0]["name"] == "main"
    assert component["family"] == "read"
    assert api.get("/api/reference/tool/nothing").status_code == 404
    assert api.get("/api/reference/other/http").status_code == 422


def test_every_entry_of_the_reference_has_a_page(api: Api) -> None:
    for one in api.get("/api/reference").json()["entries"]:
        page = api.get(f"/api/reference/{one['kind']}/{one['name']}").json()
        assert page["summary"] == one["summary"]
        assert page["text"]


def test_the_schema_is_what_the_command_prints(api: Api) -> None:
    from penstock.dialects.playbook.schema import json_schema
    from penstock.tools.registry import Registry

    assert api.get("/api/schema/playbook").json() == json.loads(json.dumps(json_schema(Registry())))
    assert "read_csv" in api.get("/api/schema/job").text
    assert api.get("/api/schema/other").status_code == 422


# ---- schedules


def test_the_next_times_are_in_their_zone(api: Api) -> None:
    found = api.post("/api/times", {"cron": "30 6 * * *", "zone": "Europe/Berlin", "count": 3}).json()["times"]
    assert len(found) == 3
    assert all(one[10:19] == "T06:30:00" and one[19:] in ("+01:00", "+02:00") for one in found)
    assert len(api.post("/api/times", {"cron": "@hourly"}).json()["times"]) == 10


@cases("cron, zone", [("61 * * * *", "UTC"), ("nonsense", "UTC"), ("@daily", "Mars/Olympus")])
def test_a_wrong_time_is_told(api: Api, cron: str, zone: str) -> None:
    answer = api.post("/api/times", {"cron": cron, "zone": zone})
    assert answer.status_code == 422
    assert answer.json()["error"]["hint"]


def test_a_schedule_is_fired_by_hand_also_while_it_is_paused(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        api.http.put("/api/documents/quick", json={"text": QUICK})
        made = api.http.put("/api/schedules/nightly", json={"cron": "@daily", "path": "quick", "is_on": False})
        assert made.status_code in (200, 201), made.text
        answer = api.post("/api/schedules/nightly/fire")
        assert answer.status_code == 201
        run = answer.json()["execution_id"]
        assert api.ended(run) == "completed"
        assert api.get(f"/api/executions/{run}/header").json()["label"] == "nightly by hand"
        assert api.post("/api/schedules/nobody/fire").status_code == 404


# ---- workers


def test_the_worker_inside_a_server_is_not_drained(api: Api) -> None:
    (worker,) = api.get("/api/workers").json()["workers"]
    assert worker["is_inside"]
    assert api.post(f"/api/workers/{worker['id'].replace('#', '%23')}/drain").status_code == 409
    assert api.post("/api/workers/nobody/drain").status_code == 404
    assert api.get("/api/losses").json() == {"losses": []}


# ---- rows so far


def test_the_rows_of_a_component_that_is_running_are_counted(api: Api, tmp_path: Path) -> None:
    run = api.submit(GATED.replace("GATE", str(tmp_path / "gate")))
    api.counted(run, "slow", {"main": 2})
    (tmp_path / "gate").touch()
    assert api.ended(run) == "completed"
    assert api.get(f"/api/executions/{run}/moment").json()["nodes"]["slow"]["rows_out"] == {"main": 3}
