"""`resume` says when the files of a run have changed since it was started, and goes on with what they said then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.service import Running, serving
from tests.cli.support import call, write

NEEDS = """
- step: start
  tool: [{name: look, kind: python, code: "__import__('os').stat('flag')\\nresult = 'old'"}]
"""

JOB = """
apiVersion: penstock/v1
kind: Job
metadata: { name: j }
components:
  - name: rows
    type: "@part"
  - name: need
    type: python
    params: { code: "__import__('os').stat('flag')" }
connections:
  control: rows (subjob_ok) need
"""
JOBLET = """
apiVersion: penstock/v1
kind: Joblet
metadata: { name: part }
components:
  - name: rows
    type: generate_rows
    params: { count: 5, columns: { n: i } }
  - name: out
    type: log_rows
connections:
  data: rows.main -> out.input
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


def test_a_changed_file_is_told_of_with_both_texts_and_the_pinned_one_is_used(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    file = Path(write("p.yaml", NEEDS))
    assert call(capsys, "run", str(file)).code == 1
    file.write_text(file.read_text().replace("'old'", "'new'"))
    failed_again = call(capsys, "resume", "@last", "--json")
    (change,) = failed_again.json["changed"]
    assert change["file"] == str(file.resolve())
    assert "-" in change["diff"]
    Path("flag").touch()
    said = call(capsys, "resume", "@last")
    assert (said.code, said.out) == (0, '"old"\n')
    assert "`p.yaml` has changed since the run started" in said.err
    removed = [line for line in said.err.splitlines() if line.startswith("  -") and "'old'" in line]
    added = [line for line in said.err.splitlines() if line.startswith("  +") and "'new'" in line]
    assert (len(removed), len(added)) == (1, 1)
    assert "penstock run p.yaml" in said.err
    refused = call(capsys, "resume", "@last")
    assert (refused.code, "has changed" in refused.err) == (2, False)


def test_a_file_that_is_as_it_was_is_not_spoken_of(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert call(capsys, "run", write("p.yaml", NEEDS)).code == 1
    Path("flag").touch()
    said = call(capsys, "resume", "@last", "--json")
    assert (said.json["status"], said.json["changed"]) == ("completed", [])


def test_a_removed_file_does_not_hinder_a_resume(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert call(capsys, "run", write("p.yaml", NEEDS)).code == 1
    Path("p.yaml").unlink()
    Path("flag").touch()
    assert call(capsys, "resume", "@last").code == 0


def test_a_secret_that_was_written_into_a_file_is_in_no_diff(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    text = "keychain: [{name: t, kind: static, value: s3cret-one}]\nworkflow:" + NEEDS
    file = Path(write("p.yaml", text))
    assert call(capsys, "run", str(file)).code == 1
    file.write_text(file.read_text().replace("s3cret-one", "s3cret-two").replace("'old'", "'new'"))
    Path("flag").touch()
    said = call(capsys, "resume", "@last")
    assert "has changed" in said.err
    assert "s3cret" not in said.err


def test_a_changed_joblet_is_told_of(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    Path("part.yaml").write_text(JOBLET)
    Path("j.yaml").write_text(JOB)
    assert call(capsys, "run", "j.yaml").code == 1
    Path("part.yaml").write_text(JOBLET.replace("count: 5", "count: 6"))
    Path("flag").touch()
    said = call(capsys, "resume", "@last", "--json")
    assert (said.code, [Path(one["file"]).name for one in said.json["changed"]]) == (0, ["part.yaml"])
    assert "+    params: { count: 6, columns: { n: i } }" in said.json["changed"][0]["diff"]


def test_a_run_at_a_server_is_compared_with_the_file_here(
    capsys: pytest.CaptureFixture[str], folder: Path, server: Running
) -> None:
    flag = folder / "flag"
    file = Path(write("p.yaml", NEEDS.replace("'flag'", repr(str(flag)))))
    assert call(capsys, "run", str(file), "--server", server.url).code == 1
    file.write_text(file.read_text().replace("'old'", "'new'"))
    flag.touch()
    said = call(capsys, "resume", "@last", "--server", server.url)
    assert (said.code, said.out) == (0, '"old"\n')
    assert "`p.yaml` has changed since the run started" in said.err


def test_a_run_of_the_catalog_is_compared_with_its_newest_version(
    capsys: pytest.CaptureFixture[str], folder: Path, server: Running
) -> None:
    flag = folder / "flag"
    file = Path(write("p.yaml", NEEDS.replace("'flag'", repr(str(flag)))))
    at = ("--server", server.url)
    assert call(capsys, "catalog", "put", "changed/p", str(file), *at).code == 0
    assert call(capsys, "run", "changed/p", *at).code == 1
    file.write_text(file.read_text().replace("'old'", "'new'"))
    assert call(capsys, "catalog", "put", "changed/p", str(file), *at).code == 0
    flag.touch()
    said = call(capsys, "resume", "@last", "--json", *at)
    (change,) = said.json["changed"]
    assert (said.json["result"], "catalog:/changed/p@1" in change["file"], "'new'" in change["diff"]) == (
        "old",
        True,
        True,
    )


def test_a_run_of_a_project_is_compared_with_the_same_file_of_its_newest_version(
    capsys: pytest.CaptureFixture[str], folder: Path, server: Running
) -> None:
    flag, at = folder / "flag", ("--server", server.url)
    project = folder / "parts"
    (project / "jobs").mkdir(parents=True)
    (project / "jobs" / "j.yaml").write_text(JOB.replace("'flag'", repr(str(flag))))
    (project / "jobs" / "part.yaml").write_text(JOBLET)
    assert call(capsys, "catalog", "put", str(project), *at).code == 0
    assert call(capsys, "run", "parts/jobs/j", *at).code == 1
    assert call(capsys, "resume", "@last", "--json", *at).json["changed"] == []
    (project / "jobs" / "part.yaml").write_text(JOBLET.replace("count: 5", "count: 6"))
    assert call(capsys, "catalog", "put", str(project), *at).code == 0
    flag.touch()
    said = call(capsys, "resume", "@last", *at)
    assert (said.code, "count: 6" in said.err) == (0, True)
    assert "penstock run parts/jobs/j.yaml" in said.err
