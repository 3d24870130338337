"""Projects on a fleet: workers on other machines have their files from where results are kept."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from pathlib import Path

import pytest

from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.files.projects import FILES as UNPACKED
from penstock.adapters.files.projects import USED, UnpackedProjects
from penstock.adapters.memory.log import MemoryLog
from penstock.adapters.sqlite.control import SqliteControl
from penstock.app.maintenance import prune
from penstock.kernel.errors import Unavailable
from penstock.ports.blobs import ResultRef
from penstock.ports.folders import CATALOG
from penstock.ports.projects import KIND, MEDIA, File, Manifest, packed
from tests.api.service import Api, Crew, asking, serving
from tests.api.test_projects import FILES, put, ran
from tests.cli.support import process
from tests.engine import document
from tests.servers import nats_url, postgres_server, postgres_url

__all__ = ["nats_url", "postgres_server", "postgres_url"]


def test_workers_have_the_files_of_a_project_from_postgresql(tmp_path: Path, postgres_url: str) -> None:
    with (
        serving(tmp_path / "server", postgres_url, lease_s=3.0) as running,
        Crew(tmp_path / "w1", postgres_url, name="w1", beat_s=1.0, base=tmp_path / "shared"),
        Crew(tmp_path / "w2", postgres_url, name="w2", beat_s=1.0, base=tmp_path / "shared"),
    ):
        _runs_there(running.url, tmp_path)


def test_workers_have_the_files_of_a_project_over_nats(tmp_path: Path, postgres_url: str, nats_url: str) -> None:
    far = {"dispatch": nats_url, "results": f"{nats_url}/projects-{tmp_path.name}"}
    with (
        serving(tmp_path / "server", postgres_url, lease_s=3.0, **far) as running,
        Crew(tmp_path / "w1", None, name="w1", beat_s=1.0, base=tmp_path / "shared", **far),
    ):
        _runs_there(running.url, tmp_path)


def _runs_there(url: str, folder: Path) -> None:
    api = Api(url)
    plugin = 'import penstock\n\n\n@penstock.tool("greet")\ndef greet(who: str) -> str:\n    return f"hello {who}"\n'
    greets = document(
        """
        - step: start
          loop: {in: "{{ range(20) }}", iterator: n, spec: {mode: parallel, max_in_flight: 4}}
          spec: {loop_mode: fanout}
          tool: [{name: g, kind: greet, who: "{{ iter.n }}"}]
        """
    )
    put(api, "shop", {**FILES, "plugins/greet.py": plugin, "greets.yaml": greets})
    shown = ran(api, "shop/main")
    assert (shown["status"], shown["error"]) == ("completed", None)
    assert (folder / "shared" / "shop" / "out" / "rows.csv").read_text() == "n\n2\n3\n"
    assert ran(api, "shop/greets")["status"] == "completed"
    assert not list(folder.rglob(CATALOG))
    api.close()


def test_a_run_of_a_project_that_a_server_left_is_gone_on_with_in_one_process(tmp_path: Path) -> None:
    fails = document(
        f"""
        - step: start
          tool: [{{name: look, kind: files, action: read, path: {tmp_path}/there, format: text}}]
          next: {{arcs: [{{step: part}}]}}
        - step: part
          tool: [{{name: call, kind: playbook, path: parts/part}}]
        """
    )
    with asking(tmp_path / "home") as api:
        put(api, "shop", {**FILES, "main.yaml": fails})
        assert ran(api, "shop/main")["status"] == "failed"
    (tmp_path / "there").write_text("now")
    done = process("resume", "@last", "--json", "--store", str(tmp_path / "home"))
    assert (done.code, done.json["status"]) == (0, "completed"), done.err
    assert done.json["result"]["data"] == "n\n1\n2\n3\n"
    assert process("replay", "@last", "--store", str(tmp_path / "home")).code == 0
    assert not Path(CATALOG).exists()


# ---- the files on one machine


def unpacked(home: Path, **more: float) -> tuple[UnpackedProjects, FileBlobs]:
    blobs = FileBlobs(home)
    return UnpackedProjects(home, blobs, **more), blobs


def archived(blobs: FileBlobs, text: str = "n\n") -> ResultRef:
    return blobs.put([packed({"a/rows.csv": File(text.encode()), "run.sh": File(b"#!/bin/sh\n", True)})], MEDIA)


def test_files_are_unpacked_once_read_only_and_whole(tmp_path: Path) -> None:
    projects, blobs = unpacked(tmp_path)
    folder = projects.folder(archived(blobs))
    assert (folder / "a" / "rows.csv").read_text() == "n\n"
    assert stat.S_IMODE((folder / "a" / "rows.csv").stat().st_mode) == 0o444
    assert os.access(folder / "run.sh", os.X_OK)
    assert projects.folder(archived(blobs)) == folder
    assert [one.name for one in (tmp_path / "projects").iterdir()] == [archived(blobs).checksum]


@pytest.mark.parametrize("change", ["written", "added", "removed"])
def test_files_that_somebody_has_changed_are_unpacked_anew(tmp_path: Path, change: str) -> None:
    projects, blobs = unpacked(tmp_path)
    ref = archived(blobs)
    folder = projects.folder(ref)
    for one in (folder, folder / "a"):
        one.chmod(0o700)
    file = folder / "a" / "rows.csv"
    file.chmod(0o600)
    match change:
        case "written":
            file.write_text("x\n")
        case "added":
            (folder / "more").write_text("")
        case "removed":
            file.unlink()
    again = UnpackedProjects(tmp_path, blobs).folder(ref)
    assert (again / "a" / "rows.csv").read_text() == "n\n"
    assert not (again / "more").exists()


def test_what_has_not_been_used_for_long_is_removed_and_what_is_damaged_is_told_of(tmp_path: Path) -> None:
    projects, blobs = unpacked(tmp_path)
    old, new = archived(blobs), archived(blobs, "other\n")
    left = projects.folder(old).parent
    os.utime(left / USED, (time.time() - 100, time.time() - 100))
    later, _ = unpacked(tmp_path, kept_s=50.0)
    later.folder(new)
    assert not left.exists()
    blob = Path(blobs.path(old))
    blob.chmod(0o600)
    blob.write_bytes(bytes(blob.stat().st_size))
    with pytest.raises(Unavailable):
        later.folder(old)
    assert not (tmp_path / "projects" / old.checksum / UNPACKED).exists()


def test_pruning_keeps_the_files_of_projects_in_the_catalog(tmp_path: Path) -> None:
    blobs, control = FileBlobs(tmp_path), SqliteControl(tmp_path)
    files = {"main.yaml": File(b"x")}
    kept, gone = blobs.put([packed(files)], MEDIA), blobs.put([packed({"b": File(b"y")})], MEDIA)
    control.file("shop", Manifest.of(files, kept).text(), KIND, "d", {})
    control.file("shop", "later", KIND, "d", {})
    for ref in (kept, gone):
        os.utime(blobs.path(ref), (1, 1))
    try:
        swept = asyncio.run(prune(MemoryLog(), blobs, lambda _: None, 0.0, catalog=control, grace_s=3600.0))
    finally:
        control.close()
    assert swept.results == 1
    assert blobs.get(kept) == packed(files)
