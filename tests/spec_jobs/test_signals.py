"""Section 8, forced stops: a signal or a kill in the middle of a job, and what a resume makes of it. Real processes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from penstock.adapters.sqlite.log import SqliteLog
from tests.cli.support import PATIENCE_S, ended, process, started, until_there
from tests.spec_jobs.support import each, job, python, rows


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def marks(name: str, code: str = "") -> dict[str, object]:
    return python(f"with open('ran', 'a') as file:\n    file.write({name} + '\\n')\n{code}\n")


def ran() -> Counter[str]:
    return Counter(Path("ran").read_text().split())


WAITS = (
    "import pathlib, time\npathlib.Path('waiting').touch()\n"
    "while not pathlib.Path('gate').exists():\n    time.sleep(0.01)\n"
)

BRANCHES = job(
    "first (parallelise) quick, slow",
    "slow (ok) after",
    "quick, slow (synchronise) met",
    data=("quick.main -> met.input_a", "met.main -> last.input"),
    first=marks("'first'", "globals['x'] = 1"),
    quick=marks("'quick'", "output = [{'id': 1}, {'id': 2}]"),
    slow=marks("'slow'", WAITS),
    after=marks("'after'"),
    met={"type": "union"},
    last=marks("'last'", "globals['n'] = len(inputs['input']) + globals['x']"),
)

ITERATOR = job(
    "it (iterate) body",
    "it (ok) last",
    it=each(*range(6)),
    body=marks(
        "str(iteration['index'])",
        f"globals['seen'] = [iteration['index']]\nif iteration['index'] == 3:\n{WAITS.replace(chr(10), chr(10) + '    ').replace('import', '    import', 1)}",
    ),
    last=marks("'last'"),
)


def begun(text: str, sign: str, *more: str) -> subprocess.Popen[str]:
    """A job under way: it waits for the file `gate`, and `sign` (type and scope of an event) is on disk."""
    Path("job.yaml").write_text(text)
    running = started("run", "job.yaml", *more)
    until_there(Path("waiting"), running)
    until_logged(sign, running)
    return running


def until_logged(sign: str, running: subprocess.Popen[str]) -> None:
    log = SqliteLog(Path(".penstock"))
    try:
        deadline = time.monotonic() + PATIENCE_S
        while sign not in (
            f"{entry.type} {entry.scope}" for header in log.headers(1) for entry in log.read(header.execution_id)
        ):
            assert running.poll() is None, ended(running)
            assert time.monotonic() < deadline, f"{sign} was never logged"
            time.sleep(0.01)
    finally:
        asyncio.run(log.close())


@pytest.mark.clause("J8.5")
def test_sigterm_leaves_checkpoints_and_a_run_that_goes_on_where_it_stopped() -> None:
    running = begun(BRANCHES, "checkpoint.saved <quick>", "--grace", "0")
    running.send_signal(signal.SIGTERM)
    stopped = ended(running)
    assert stopped.code == 3
    assert "penstock resume" in stopped.err
    shown = process("show", "@last", "--json").json
    assert shown["status"] == "interrupted"
    assert shown["components"]["quick"]["state"] == "OK"
    events = [one["event_type"] for one in process("events", "@last", "--json").lines]
    assert "checkpoint.saved" in events
    assert events[-1] == "job.interrupted"
    Path("gate").touch()
    resumed = process("resume", "@last", "--json")
    assert (resumed.code, resumed.json["status"]) == (0, "completed"), resumed.err
    assert resumed.json["globals"] == {"x": 1, "n": 3}
    assert ran() == {"first": 1, "quick": 1, "slow": 2, "after": 1, "last": 1}
    assert resumed.json["components"]["quick"]["kept"] is True


@pytest.mark.clause("J8.5")
def test_within_its_grace_a_component_may_end_by_itself() -> None:
    """And with the sub-job that closes thereby its checkpoint is saved; nothing else starts."""
    text = BRANCHES.replace('"slow (ok) after",', "")  # `after` is a root now, and `slow` a sub-job of one.
    running = begun(text, "checkpoint.saved <quick>", "--grace", "30")
    running.send_signal(signal.SIGTERM)
    Path("gate").touch()
    assert ended(running).code == 3
    shown = process("show", "@last", "--json").json
    assert {one["name"]: one["state"] for one in shown["subjobs"]}.items() >= {"slow": "OK", "quick": "OK"}.items()
    assert ran() == {"first": 1, "quick": 1, "slow": 1, "after": 1}
    resumed = process("resume", "@last", "--json")
    assert resumed.json["status"] == "completed", resumed.err
    assert resumed.json["globals"] == {"x": 1, "n": 3}
    assert ran() == {"first": 1, "quick": 1, "slow": 1, "after": 1, "last": 1}
    assert process("replay", "@last").code == 0


@pytest.mark.clause("J8.5")
@pytest.mark.clause("J7.3")
def test_a_killed_job_is_resumed_without_repeating_a_finished_branch() -> None:
    running = begun(BRANCHES, "checkpoint.saved <quick>")
    running.kill()
    ended(running)
    Path("gate").touch()
    resumed = process("resume", "@last", "--json")
    assert (resumed.code, resumed.json["globals"]) == (0, {"x": 1, "n": 3}), resumed.err
    assert ran() == {"first": 1, "quick": 1, "slow": 2, "after": 1, "last": 1}
    assert process("replay", "@last").code == 0


@pytest.mark.clause("J8.5")
@pytest.mark.clause("J12.6")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_iterator_goes_on_with_the_iteration_that_was_under_way(how: signal.Signals) -> None:
    running = begun(ITERATOR, "iteration.ok it[#2]", "--grace", "0")
    running.send_signal(how)
    ended(running)
    Path("gate").touch()
    resumed = process("resume", "@last", "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["globals"] == {"seen": [0, 1, 2, 3, 4, 5]}
    counted = ran()
    assert [counted[str(index)] for index in range(6)] == [1, 1, 1, 2, 1, 1]


@pytest.mark.clause("J8.2")
@pytest.mark.clause("J2.2")
def test_exit_codes_and_the_shape_of_the_json() -> None:
    Path("job.yaml").write_text(
        job(
            "a (error) b",
            "k (ok) a",
            data=("s.main -> k.input",),
            s=rows(1, 2),
            k={"type": "log_rows"},
            a={"type": "die", "params": {"code": 7, "message": "no"}},
        )
    )
    called = process("run", "job.yaml", "--json")
    assert called.code == 7
    told = called.json
    assert (told["status"], told["exit_code"]) == ("failed", 7)
    assert told["components"]["a"]["state"] == "ERROR"
    assert told["components"]["k"]["rows_in"] == {"input": 2}
    assert set(told["components"]["s"]) >= {"state", "cause", "rows_in", "rows_out", "ms"}
    assert {"from": "a", "to": "b", "on": "error", "fired": 1}.items() <= next(
        one for one in told["edges"] if one["on"] == "error"
    ).items()
    assert [set(one) >= {"name", "state", "members"} for one in told["subjobs"]] == [True]
