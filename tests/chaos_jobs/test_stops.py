"""kill -9 and signals while a job is busy: nothing half done is seen, nothing finished is repeated, and a resume completes it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.engines import entries_on_disk
from tests.chaos_jobs import jobs, trials
from tests.chaos_jobs.homes import leftovers
from tests.chaos_jobs.processes import CROSSED, begun, command, grow, has_started, lengthy, resumed, shrink, until
from tests.chaos_jobs.zygote import JobZygote
from tests.cli.support import ended, process
from tests.replaying import assert_replays
from tests.spec_jobs.support import job, python

KILLED = -9


def kill(zygote: JobZygote, pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    assert zygote.wait(pid).code == KILLED


@pytest.mark.clause("J8.5")
@pytest.mark.clause("J7.2")
def test_a_job_that_is_killed_twice_in_the_middle_of_a_long_query_is_resumed(zygote: JobZygote, folder: Path) -> None:
    file = lengthy(folder, {"type": "write_csv", "params": {"path": "out.csv"}})
    pid = begun(zygote, folder, file)
    until(has_started(folder, "read"), "the query")
    kill(zygote, pid)
    pid = zygote.spawn(trials.resume, home=str(folder))
    until(lambda: _starts(folder) == 2 and _count(folder, "component.started", "read") == 2, "the query, again")
    kill(zygote, pid)
    shrink(folder)
    told = resumed(zygote, folder)
    assert told["status"] == "completed", told
    assert (folder / "out.csv").read_text() == "v\n15\n"
    assert jobs.marks(folder) == {"before": 1, "after": 1}
    assert leftovers(folder / ".penstock") == []
    assert_replays(folder)


def _starts(folder: Path) -> int:
    return _count(folder, "job.started", "")


def _count(folder: Path, event: str, scope: str) -> int:
    return sum((entry.type, entry.scope) == (event, scope) for entry in entries_on_disk(folder))


@pytest.mark.clause("J8.5")
def test_a_job_that_is_killed_in_the_middle_of_python_code_runs_it_again(zygote: JobZygote, folder: Path) -> None:
    waits = "import time, pathlib\nwhile not pathlib.Path('gate').exists():\n    time.sleep(0.005)\n"
    text = job(
        "before (subjob_ok) code",
        before=jobs.marking("before"),
        code=jobs.marking("code", f"globals['x'] = 1\n{waits}"),
    )
    (folder / "job.yaml").write_text(text)
    pid = begun(zygote, folder, folder / "job.yaml")
    until(lambda: jobs.marks(folder)["code"], "the code")
    kill(zygote, pid)
    (folder / "gate").touch()
    told = resumed(zygote, folder)
    assert (told["status"], told["ctx"]) == ("completed", {"x": 1})
    assert jobs.marks(folder) == {"before": 1, "code": 2}


@pytest.mark.clause("J8.5")
@pytest.mark.parametrize("kind", ["write_parquet", "write_csv", "write_json"])
def test_a_job_that_is_killed_while_it_writes_a_file_leaves_the_old_one_whole(
    zygote: JobZygote, folder: Path, kind: str
) -> None:
    out = folder / "out"
    out.mkdir()
    file = lengthy(folder, {"type": kind, "params": {"path": "out/rows"}}, CROSSED)
    (out / "rows").write_text("the old one")
    pid = begun(zygote, folder, file)
    until(lambda: any(one.suffix == ".part" for one in out.iterdir()), "a new file")
    kill(zygote, pid)
    assert [one.name for one in out.iterdir() if not one.name.startswith(".")] == ["rows"]
    assert (out / "rows").read_text() == "the old one"
    shrink(folder)
    told = resumed(zygote, folder)
    assert told["status"] == "completed", told
    assert [one.name for one in out.iterdir()] == ["rows"], "what the killed process left is swept away"
    assert (out / "rows").read_bytes() != b"the old one"
    assert leftovers(folder / ".penstock") == []


@pytest.mark.clause("J8.5")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_interrupts_a_long_query_at_once_and_leaves_a_job_that_can_be_resumed(
    zygote: JobZygote, folder: Path, how: signal.Signals
) -> None:
    lengthy(folder, {"type": "write_csv", "params": {"path": "out.csv"}})
    with command("run", "job.yaml", "--grace", "0") as running:
        until(has_started(folder, "read"), "the query")
        running.send_signal(how)
        stopped = ended(running)
    assert stopped.code == 3, stopped.err
    assert "penstock resume" in stopped.err
    assert leftovers(folder / ".penstock") == []
    assert sorted(path.name for path in folder.iterdir()) == [".penstock", "job.yaml", "marks", "rows.csv"]
    shrink(folder)
    again = process("resume", "@last", "--json")
    assert (again.code, again.json["status"]) == (0, "completed"), again.err
    assert jobs.marks(folder) == {"before": 1, "after": 1}


@pytest.mark.clause("J8.5")
def test_a_second_signal_does_not_wait_for_code_that_will_not_end(folder: Path) -> None:
    stubborn = (
        "import time, pathlib\npathlib.Path('waiting').touch()\nwhile not pathlib.Path('gate').exists():\n"
        "    try:\n        time.sleep(0.01)\n    except BaseException:\n        pass\n"
    )
    (folder / "job.yaml").write_text(job("a (ok) b", a=python(stubborn), b=jobs.marking("b")))
    with command("run", "job.yaml", "--grace", "60") as running:
        until((folder / "waiting").exists, "the code")
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        while "stopping" not in running.stderr.readline():
            pass
        running.send_signal(signal.SIGINT)
        assert ended(running).code == 3
    (folder / "gate").touch()
    again = process("resume", "@last", "--json")
    assert again.json["status"] == "completed"
    assert jobs.marks(folder) == {"b": 1}


def test_the_query_that_is_stopped_in_these_tests_does_not_end_by_itself(folder: Path) -> None:
    """Otherwise they would prove nothing: three thousand rows, crossed with themselves three times."""
    grow(folder)
    rows: Any = (folder / "rows.csv").read_text().splitlines()
    assert (len(rows) - 1) ** 4 > 10**13
