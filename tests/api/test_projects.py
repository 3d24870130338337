"""Projects in the catalog: a folder as one version, its documents by path, its files on whichever worker runs it."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.ports.folders import CATALOG
from penstock.ports.projects import LARGEST, MOST_FILES, File, compressed, packed
from tests.api.service import QUICK, Api, asking
from tests.engine import document

JOB = """\
components:
  rows: {type: read_csv, params: {path: ../data/rows.csv}}
  kept: {type: "@keep", params: {least: 2}}
  written: {type: write_csv, params: {path: "../out/{{ context.name }}.csv"}}
context: {name: rows}
connections:
  data: [rows.main -> kept.rows, kept.kept -> written.input]
"""
JOBLET = """\
kind: Joblet
params: {least: 0}
inputs: {rows: large.input}
outputs: {kept: large.main}
components:
  large: {type: filter, params: {where: "n >= {{ params.least }}"}}
"""
PLAYBOOK = document(
    """
    - step: start
      tool:
        - {name: load, kind: job, path: jobs/load.yaml}
      next: {arcs: [{step: part}]}
    - step: part
      tool: [{name: call, kind: playbook, path: parts/part}]
    """
)
PART = document(
    """
    - step: start
      tool:
        - {name: read, kind: files, action: read, path: ../data/rows.csv, format: text}
    """
)
FILES = {
    "main.yaml": PLAYBOOK,
    "parts/part.yaml": PART,
    "jobs/load.yaml": JOB,
    "jobs/joblets/keep.yaml": JOBLET,
    "data/rows.csv": "n\n1\n2\n3\n",
    "compose.yaml": "services: {web: {image: nothing of ours}}\n",
}


def archive(files: dict[str, str]) -> dict[str, str]:
    data = packed({path: File(text.encode()) for path, text in files.items()})
    return {"archive": base64.b64encode(compressed(data)).decode()}


def put(api: Api, name: str, files: dict[str, str]) -> int:
    answer = api.http.put(f"/api/documents/{name}", json=archive(files))
    assert answer.status_code in (200, 201), answer.text
    return int(answer.json()["version"])


def ran(api: Api, path: str, version: int | None = None, **more: Any) -> Any:
    body = {"document": {"path": path, **({} if version is None else {"version": version})}, **more}
    answer = api.post("/api/executions", body)
    assert answer.status_code == 201, answer.text
    run = answer.json()["execution_id"]
    api.ended(run)
    return api.get(f"/api/executions/{run}").json()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("projects")


@pytest.fixture(scope="module")
def based(folder: Path) -> Iterator[Api]:
    """A server whose worker has a base folder."""
    with asking(folder / "home", base=folder / "base") as api:
        yield api


def test_a_folder_is_one_version_and_unchanged_content_is_none(based: Api) -> None:
    assert put(based, "shop", FILES) == 1
    assert put(based, "shop", dict(reversed(FILES.items()))) == 1
    assert put(based, "shop", {**FILES, "data/rows.csv": "n\n7\n"}) == 2
    (listed,) = based.get("/api/documents", prefix="shop").json()["documents"]
    assert (listed["path"], listed["version"], listed["kind"]) == ("shop", 2, "project")
    for path in ("shop/jobs/load", "shop/jobs/load.yaml"):
        assert based.get(f"/api/documents/{path}", version=1).json()["text"] == JOB
    assert [one["version"] for one in based.get("/api/versions/shop/jobs/load").json()["documents"]] == [2, 1]
    assert based.get("/api/documents/shop/compose").status_code == 404
    assert based.get("/api/documents/shop/data/rows.csv").status_code == 404


def test_documents_jobs_joblets_and_data_of_a_project_run_together_and_write_below_the_base(
    based: Api, folder: Path
) -> None:
    put(based, "whole", FILES)
    shown = ran(based, "whole/main")
    assert (shown["status"], shown["error"]) == ("completed", None)
    assert shown["result"]["data"] == "n\n1\n2\n3\n"
    assert (folder / "base" / "whole" / "out" / "rows.csv").read_text() == "n\n2\n3\n"
    assert not list(folder.rglob(CATALOG))
    assert not Path(CATALOG).exists()


def test_runs_are_pinned_to_the_version_they_started_with(based: Api) -> None:
    first = put(based, "pinned", FILES)
    second = put(based, "pinned", {**FILES, "data/rows.csv": "n\n9\n"})
    assert ran(based, "pinned/parts/part", first)["result"]["data"] == "n\n1\n2\n3\n"
    assert ran(based, "pinned/parts/part", second)["result"]["data"] == "n\n9\n"
    assert ran(based, "pinned/parts/part")["result"]["data"] == "n\n9\n"


def test_a_run_that_failed_goes_on_with_the_files_it_started_with(based: Api, folder: Path) -> None:
    waits = document(
        f"""
        - step: start
          tool: [{{name: read, kind: files, action: read, path: data/rows.csv, format: text}}]
          next: {{arcs: [{{step: wait}}]}}
        - step: wait
          tool: [{{name: look, kind: files, action: read, path: {folder}/there, format: text}}]
          next: {{arcs: [{{step: part}}]}}
        - step: part
          tool: [{{name: call, kind: playbook, path: parts/part}}]
        """
    )
    put(based, "resumed", {**FILES, "main.yaml": waits})
    run = based.post("/api/executions", {"document": {"path": "resumed/main"}}).json()["execution_id"]
    assert based.ended(run) == "failed"
    put(based, "resumed", {**FILES, "data/rows.csv": "n\nother\n", "parts/part.yaml": QUICK})
    assert based.http.delete("/api/documents/resumed").status_code == 204
    (folder / "there").write_text("now")
    based.post(f"/api/executions/{run}/resume")
    assert based.until(run, lambda status: status == "completed") == "completed"
    assert based.get(f"/api/executions/{run}").json()["result"]["data"] == "n\n1\n2\n3\n"


def test_schedules_and_hooks_start_jobs_with_joblets_and_may_pin_a_version(based: Api) -> None:
    version = put(based, "hooked", FILES)
    answer = based.http.put("/api/hooks/load", json={"path": "hooked/jobs/load", "version": version})
    assert answer.status_code == 200, answer.text
    made = based.http.put("/api/schedules/load", json={"cron": "@daily", "path": "hooked/jobs/load"})
    assert made.status_code == 200, made.text
    run = based.http.post("/hooks/load", json={}).json()["execution_id"]
    assert based.ended(run) == "completed"
    missing = based.http.put("/api/hooks/none", json={"path": "hooked"})
    assert (missing.status_code, "is a project, and not a document of one" in missing.text) == (422, True)


def test_plug_ins_of_a_project_are_its_own_and_of_its_version(based: Api) -> None:
    plugin = 'import penstock\n\n\n@penstock.tool("greet")\ndef greet(who: str) -> str:\n    return f"WORD {who}"\n'
    uses = document("- step: start\n  tool: [{name: g, kind: greet, who: you}]\n")
    for number, word in enumerate(("hello", "goodbye"), 1):
        assert put(based, "plugged", {"main.yaml": uses, "plugins/greet.py": plugin.replace("WORD", word)}) == number
    assert [ran(based, "plugged/main", version)["result"] for version in (1, 2, 1)] == [
        "hello you",
        "goodbye you",
        "hello you",
    ]
    alone = based.http.put("/api/documents/alone", json={"text": uses})
    assert (alone.status_code, "there is no tool `greet`" in alone.text) == (422, True)


def test_a_broken_plug_in_breaks_only_the_documents_that_use_it(based: Api) -> None:
    broken = (
        'import penstock\nimport nothing_of_the_kind\n\n\n@penstock.tool("bad")\ndef bad() -> str:\n    return ""\n'
    )
    files = {"main.yaml": QUICK, "plugins/bad.py": broken, "plugins/worse.py": "def ("}
    put(based, "sound", files)
    assert ran(based, "sound/main")["status"] == "completed"
    uses = document("- step: start\n  tool: [{name: b, kind: bad}]\n")
    refused = based.http.put("/api/documents/unsound", json=archive({**files, "main.yaml": uses}))
    assert refused.status_code == 422
    (problem,) = refused.json()["error"]["problems"]
    assert problem["file"] == "main.yaml"
    assert "plugins/bad.py:2: ModuleNotFoundError" in problem["message"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"data.csv": "a\n"}, "no playbook or job"),
        ({"main.yaml": QUICK.replace("kind: noop", "kind: nop")}, "main.yaml:"),
        ({"main.yaml": QUICK + "keychain: [{name: a, kind: static, value: secret}]\n"}, "has secrets written into"),
        ({"main.yaml": PLAYBOOK, "jobs/load.yaml": JOB}, "there is no joblet `keep`"),
    ],
)
def test_a_project_that_cannot_run_is_refused(based: Api, files: dict[str, str], message: str) -> None:
    answer = based.http.put("/api/documents/refused", json=archive(files))
    assert (answer.status_code, message in answer.text) == (422, True), answer.text
    assert based.get("/api/documents/refused").status_code == 404


def odd(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> str:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, link
        tar.addfile(entry, io.BytesIO(b""))
    return base64.b64encode(gzip.compress(made.getvalue())).decode()


def zipped(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, compresslevel=1, mtime=0)).decode()


def many(files: int) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for number in range(files):
            tar.addfile(tarfile.TarInfo(f"f{number}"))
    return made.getvalue()


ODD = {
    "no base64": lambda: "not base64!",
    "no ASCII": lambda: "\u00fd\U0001f600",
    "too many files": lambda: zipped(many(MOST_FILES + 1)),
    "nothing": lambda: zipped(many(0)),
    "no gzip": lambda: base64.b64encode(b"not gzip").decode(),
    "no tar": lambda: zipped(b"no tar"),
    "a bomb": lambda: zipped(bytes(LARGEST + MOST_FILES * 2048 + 1)),
    "outside": lambda: odd("../outside.yaml"),
    "absolute": lambda: odd("/etc/absolute.yaml"),
    "dots": lambda: odd("a/../../b.yaml"),
    "a link": lambda: odd("link.yaml", tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": lambda: odd("hard.yaml", tarfile.LNKTYPE, "/etc/passwd"),
    "a device": lambda: odd("device", tarfile.CHRTYPE),
    "a backslash": lambda: odd("a\\b.yaml"),
}


@pytest.mark.parametrize("what", ODD)
def test_an_archive_that_is_none_is_refused(based: Api, what: str) -> None:
    answer = based.http.put("/api/documents/odd", json={"archive": ODD[what]()})
    assert answer.status_code == 422, answer.text
    assert what != "a bomb" or f"more than {LARGEST:,} bytes" in answer.text
    assert based.get("/api/documents/odd").status_code == 404


def test_names_within_a_project_are_the_projects(based: Api) -> None:
    put(based, "names", FILES)
    assert based.http.put("/api/documents/names/more", json={"text": QUICK}).status_code == 409
    assert based.http.put("/api/documents/names/more", json=archive(FILES)).status_code == 409
    based.http.put("/api/documents/taken/one", json={"text": QUICK})
    assert based.http.put("/api/documents/taken", json=archive(FILES)).status_code == 409
    based.http.put("/api/documents/single", json={"text": QUICK})
    assert based.http.put("/api/documents/single", json=archive(FILES)).status_code == 409


def test_only_an_administrator_puts_projects(tmp_path: Path) -> None:
    with asking(tmp_path) as open_api:
        admin = Api(open_api.url, open_api.post("/api/tokens", {"name": "admin", "scope": "admin"}).json()["secret"])
        runner = Api(open_api.url, admin.post("/api/tokens", {"name": "run", "scope": "run"}).json()["secret"])
        try:
            assert runner.http.put("/api/documents/a", json={"text": QUICK}).status_code == 201
            assert runner.http.put("/api/documents/shop", json=archive(FILES)).status_code == 403
            assert admin.http.put("/api/documents/shop", json=archive(FILES)).status_code == 201
        finally:
            runner.close()
            admin.close()


def test_a_document_by_itself_reads_and_writes_below_the_base_beside_its_name(based: Api, folder: Path) -> None:
    text = document("- step: start\n  tool: [{name: w, kind: files, action: write, path: out/a.txt, content: hello}]\n")
    based.http.put("/api/documents/team/alone", json={"text": text})
    assert ran(based, "team/alone")["status"] == "completed"
    assert (folder / "base" / "team" / "out" / "a.txt").read_text() == "hello"
    escapes = text.replace("out/a.txt", "../../../outside.txt")
    based.http.put("/api/documents/team/escapes", json={"text": escapes})
    shown = ran(based, "team/escapes")
    assert (shown["status"], "leads out of the base folder" in str(shown["error"])) == ("failed", True)


def test_without_a_base_relative_paths_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    """A9: they led into a folder called `catalog:` in the worker's working directory, and the run said OK."""
    text = document("- step: start\n  tool: [{name: w, kind: files, action: write, path: out/a.txt, content: hello}]\n")
    with asking(tmp_path / "home") as api:
        api.http.put("/api/documents/team/alone", json={"text": text})
        put(api, "shop", FILES)
        alone, project = ran(api, "team/alone"), ran(api, "shop/jobs/load")
        assert alone["status"] == project["status"] == "failed"
        for shown, why in ((alone, "the document has no folder"), (project, "is no file of the project")):
            assert why in str(shown["error"])
            assert "--base DIR" in str(shown["error"])
        assert ran(api, "shop/parts/part")["status"] == "completed"
    assert not list(tmp_path.rglob(CATALOG))
    assert not Path(CATALOG).exists()


def test_files_of_a_project_are_never_written(based: Api) -> None:
    write = document(
        "- step: start\n  tool: [{name: w, kind: files, action: write, path: data/rows.csv, content: x}]\n"
    )
    over = JOB.replace('"../out/{{ context.name }}.csv"', "../data/rows.csv")
    put(based, "kept", {**FILES, "write.yaml": write, "jobs/over.yaml": over})
    for path in ("kept/write", "kept/jobs/over"):
        shown = ran(based, path)
        assert (shown["status"], "these are only read" in str(shown["error"])) == ("failed", True)
    assert ran(based, "kept/parts/part")["result"]["data"] == "n\n1\n2\n3\n"


def test_modules_beside_a_document_are_those_of_its_version_and_project(based: Api) -> None:
    text = document(
        """
        - step: start
          tool: [{name: word, kind: python, code: "import words_of_ours\\nresult = words_of_ours.WORD"}]
        """
    )
    for name, word in (("one", "a"), ("one", "b"), ("two", "c")):
        put(based, f"modules-{name}", {"main.yaml": text, "words_of_ours.py": f"WORD = {word!r}\n"})
    runs = [("one", 1), ("one", 2), ("two", 1), ("one", 1), ("one", 2)]
    assert [ran(based, f"modules-{name}/main", version)["result"] for name, version in runs] == [
        "a",
        "b",
        "c",
        "a",
        "b",
    ]


def test_a_text_without_a_whole_path_stays_below_the_base_whatever_it_calls_itself(based: Api, folder: Path) -> None:
    text = document(
        "- step: start\n  tool: [{name: w, kind: files, action: write, path: below-the-base.txt, content: hello}]\n"
    )
    names = ("catalog:/../../outside/p.yaml", "catalog:/../p.yaml", "p.yaml", "../p.yaml")
    for named in ({}, *({"file": name} for name in names)):
        run = based.post("/api/executions", {"document": {"text": text, **named}}).json()["execution_id"]
        based.ended(run)
    refused = based.post("/api/executions", {"document": {"text": text, "file": "catalog:p.yaml"}})
    assert refused.status_code == 422
    assert "an address in the catalog begins with `catalog:/`" in refused.text
    written = [one.relative_to(folder.parent) for one in folder.parent.rglob("below-the-base.txt")]
    assert all(one.parts[:2] == (folder.name, "base") for one in written), written
    assert not list(folder.parent.rglob(CATALOG))
    assert not Path("below-the-base.txt").exists()
    assert not Path("../below-the-base.txt").exists()


def test_duckdb_finds_files_of_the_project_and_then_those_below_the_base(based: Api, folder: Path) -> None:
    (folder / "base" / "ducks" / "in").mkdir(parents=True)
    (folder / "base" / "ducks" / "in" / "more.csv").write_text("n\n40\n")
    text = document(
        """
        - step: start
          tool:
            - name: sum
              kind: duckdb
              command: select (select sum(n) from 'data/rows.csv') + (select sum(n) from 'in/more.csv') as total
        """
    )
    put(based, "ducks", {**FILES, "ducks.yaml": text})
    assert ran(based, "ducks/ducks")["result"]["rows"] == [{"total": 46}]


def test_shell_starts_in_the_folder_of_the_document(based: Api) -> None:
    text = document("- step: start\n  tool: [{name: s, kind: shell, command: [sh, ../scripts/say.sh]}]\n")
    put(based, "shells", {**FILES, "parts/shell.yaml": text, "scripts/say.sh": "cat ../data/rows.csv\n"})
    assert "1\n2\n3" in str(ran(based, "shells/parts/shell")["result"]["stdout"])


def test_a_job_by_itself_keeps_the_joblets_it_takes_in(based: Api) -> None:
    text = JOB.replace("../data/rows.csv", "rows.csv").replace('"../out/{{ context.name }}.csv"', "out.csv")
    answer = based.http.put("/api/documents/by/itself", json={"text": text, "sources": {"joblets/keep.yaml": JOBLET}})
    assert answer.status_code == 201, answer.text
    shown = ran(based, "by/itself")
    assert "rows.csv" in str(shown["error"])  # It has got as far as reading the file, which is not there.
