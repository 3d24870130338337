"""`penstock watch`: a run of another process or of a server, shown as `run` shows it, with its exit code."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.service import Running, serving
from tests.cli.support import FAILS, HELLO, WAITS, Called, call, ended, process, started, until_there, write

SAYS = WAITS.replace("        import time\n", '        import time\n        print("waiting for the gate")\n')

JOB = """
apiVersion: penstock/v1
kind: Job
metadata: { name: slow }
components:
  - name: rows
    type: generate_rows
    params: { count: 5, columns: { n: i } }
  - name: hold
    type: python
    params:
      code: |
        import time
        from pathlib import Path
        Path("waiting").touch()
        while not Path("gate").exists():
            time.sleep(0.01)
  - name: out
    type: write_csv
    params: { path: out.csv }
connections:
  data: |
    rows.main -> hold.input
    hold.main -> out.input
"""


def first_line(watching: subprocess.Popen[str]) -> str:
    assert watching.stderr is not None
    return watching.stderr.readline()


def rest(watching: subprocess.Popen[str]) -> Called:
    """`communicate` would lose what came with the first line."""
    assert watching.stderr is not None
    assert watching.stdout is not None
    with watching.stderr, watching.stdout:
        err, out = watching.stderr.read(), watching.stdout.read()
    return Called(watching.wait(60), out, err)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


def test_a_run_of_another_process_is_shown_until_it_ends(folder: Path) -> None:
    running = started("run", write("p.yaml", SAYS))
    until_there(Path("waiting"), running)
    watching = started("watch", "@last")
    assert "p.yaml  run " in first_line(watching)
    Path("gate").touch()
    theirs, mine = ended(running), rest(watching)
    assert (theirs.code, mine.code, mine.out) == (0, 0, '"finished"\n')
    for words in ("start: done", "wait | waiting for the gate", "fin: done", "completed after"):
        assert words in mine.err, mine.err


def test_a_job_of_another_process_is_shown_until_it_ends(folder: Path) -> None:
    Path("slow.yaml").write_text(JOB)
    running = started("run", "slow.yaml")
    until_there(Path("waiting"), running)
    watching = started("watch", "@last")
    assert "slow.yaml  run " in first_line(watching)
    Path("gate").touch()
    assert ended(running).code == 0
    mine = rest(watching)
    assert mine.code == 0
    assert "write_csv" in mine.err
    assert "completed after" in mine.err


def test_whoever_stops_watching_stops_nothing(folder: Path) -> None:
    running = started("run", write("p.yaml", WAITS))
    until_there(Path("waiting"), running)
    watching = started("watch", "@last")
    assert "run " in first_line(watching)
    watching.send_signal(signal.SIGINT)
    left = rest(watching)
    assert left.code == 3
    assert "goes on" in left.err
    assert "penstock watch " in left.err
    Path("gate").touch()
    assert ended(running).code == 0


def test_a_watched_run_that_is_killed_is_told_of_as_interrupted(folder: Path) -> None:
    running = started("run", write("p.yaml", WAITS))
    until_there(Path("waiting"), running)
    watching = started("watch", "@last", "--json")
    running.kill()
    running.communicate()
    said = ended(watching)
    assert (said.code, said.json["status"]) == (3, "interrupted")
    Path("gate").touch()


@pytest.mark.parametrize(("text", "code"), [(HELLO, 0), (FAILS, 1)])
def test_an_ended_run_prints_its_summary_and_has_its_exit_code(
    capsys: pytest.CaptureFixture[str], folder: Path, text: str, code: int
) -> None:
    file = write("p.yaml", text)
    ran = call(capsys, "run", file)
    said = call(capsys, "watch", "@last")
    assert (ran.code, said.code, said.out) == (code, code, ran.out)
    assert ": started" not in said.err

    def last_words(text: str) -> str:
        """The place is that of the pinned file, which has its whole path."""
        return text[text.rindex(" after ") :].split(": ", 1)[1].replace(str(folder / file), file)

    assert last_words(said.err) == last_words(ran.err)
    shown = call(capsys, "watch", "@last", "--json")
    assert (shown.code, shown.json["exit_code"]) == (code, code)


def test_a_run_at_a_server_is_shown_until_it_ends(
    capsys: pytest.CaptureFixture[str], folder: Path, server: Running
) -> None:
    gate, waiting = folder / "gate", folder / "waiting"
    text = WAITS.replace('Path("gate")', f"Path({str(gate)!r})").replace('Path("waiting")', f"Path({str(waiting)!r})")
    text = text.replace('open("marks", "a")', f"open({str(folder / 'marks')!r}, 'a')")
    run = call(capsys, "run", write("p.yaml", text), "--detach", "--server", server.url).out.strip()
    watching = started("watch", run, "--server", server.url)
    assert "p.yaml  run " in first_line(watching)
    gate.touch()
    said = rest(watching)
    assert (said.code, said.out) == (0, '"finished"\n')
    assert "wait: done" in said.err
    again = process("watch", run, "--server", server.url)
    assert (again.code, again.out, ": started" in again.err) == (0, '"finished"\n', False)


def test_watching_a_run_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert call(capsys, "run", write("p.yaml", HELLO)).code == 0
    said = call(capsys, "watch", "nobody")
    assert (said.code, "there is no run `nobody`" in said.err) == (2, True)
