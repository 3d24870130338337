"""State on disk: private, kept out of repositories, and never believed when it is damaged."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.support import call, write

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]

PLAYBOOK = """
- step: start
  tool: {kind: python, code: "print('said'); result = 'A result of some length'"}
  next: {arcs: [{step: fails}]}
- step: fails
  tool: {kind: python, code: "assert False"}
"""
LARGE = """
- step: start
  tool: {kind: python, code: "result = ['x' * 100] * 30000"}
"""
FIRST_RELEASE = """ALTER TABLE event DROP COLUMN checksum; DELETE FROM schema_version WHERE version > 2;
DROP INDEX execution_status; DROP INDEX execution_name; DROP INDEX execution_label; DROP INDEX execution_started; DROP TABLE kept;
DROP TABLE snapshot;"""


@pytest.fixture(params=[0o000, 0o022, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(home: Path) -> dict[str, int]:
    return {str(path.relative_to(home)): stat.S_IMODE(path.stat().st_mode) for path in [home, *sorted(home.rglob("*"))]}


def change(query: str, *values: object) -> None:
    with closing(sqlite3.connect(".penstock/penstock.db")) as database, database:
        database.execute(query, values)


def flip(kind: str, old: str, new: str) -> None:
    """As a bad disk does: one character of one payload becomes another."""
    find = "UPDATE event SET payload = CAST(replace(CAST(payload AS TEXT), ?, ?) AS BLOB) WHERE type = ?"
    change(find, old, new, kind)


@pytest.mark.usefixtures("umask")
def test_what_a_run_leaves_is_its_owner_s_alone(capsys: Capture) -> None:
    assert call(capsys, "run", write("p.yaml", PLAYBOOK)).code == 1
    assert call(capsys, "run", write("large.yaml", LARGE)).code == 0
    found = modes(Path(".penstock"))
    assert {"penstock.db", "logs", "locks", "blobs", ".gitignore"} <= set(found)
    assert {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}
    assert Path(".penstock/.gitignore").read_text().splitlines()[-1] == "*"


def test_a_folder_of_the_first_release_is_closed_when_it_is_opened(capsys: Capture) -> None:
    call(capsys, "run", write("p.yaml", PLAYBOOK))
    home = Path(".penstock")
    home.chmod(0o755)
    (home / "penstock.db").chmod(0o644)
    (home / ".gitignore").unlink()
    assert call(capsys, "runs").code == 0
    assert (modes(home)["."], modes(home)["penstock.db"]) == (0o700, 0o600)
    assert (home / ".gitignore").exists()


def test_a_folder_with_other_things_in_it_is_not_closed_and_no_gitignore_hides_them(capsys: Capture) -> None:
    Path("shared").mkdir()
    Path("shared").chmod(0o755)
    Path("shared/report.csv").touch()
    assert call(capsys, "run", write("p.yaml", PLAYBOOK), "--store", "shared").code == 1
    assert not Path("shared/.gitignore").exists()
    found = modes(Path("shared"))
    assert (found["."], found["penstock.db"]) == (0o755, 0o600)


@pytest.mark.parametrize("command", ["show", "events", "explain", "resume", "replay"])
def test_a_flipped_bit_is_told_and_never_taken_for_history(capsys: Capture, command: str) -> None:
    call(capsys, "run", write("p.yaml", PLAYBOOK), "--name", "mine")
    flip("task.done", "A result", "B result")
    done = call(capsys, command, "mine", *(["start"] if command == "explain" else []))
    assert done.code == 4
    assert "the log is damaged: event 6 of run " in done.err
    assert "hint: put a backup in its place; `penstock doctor --log` lists" in done.err
    assert "mistake in penstock" not in done.err
    told = call(capsys, command, "mine", *(["start"] if command == "explain" else []), "--json")
    assert '"damaged"' in told.out + told.err


def test_doctor_lists_what_is_damaged(capsys: Capture) -> None:
    call(capsys, "run", write("p.yaml", PLAYBOOK))
    call(capsys, "run", write("large.yaml", LARGE))
    whole = call(capsys, "doctor", "--log")
    assert (whole.code, "2 runs, " in whole.out, "1 results are as they were written" in whole.out) == (0, True, True)
    flip("task.done", "A result", "B result")
    (blob,) = [path for path in Path(".penstock/blobs").rglob("*") if path.is_file() and path.stat().st_size > 1000]
    data = bytearray(blob.read_bytes())
    data[100] ^= 1
    blob.chmod(0o600)
    blob.write_bytes(data)
    damaged = call(capsys, "doctor", "--log", "--json")
    assert damaged.code == 4
    texts = [one["text"] for one in damaged.json["checks"] if one["what"] == "log"]
    assert len(texts) == 2
    assert "a result of run" in texts[0]
    assert "SHA-256" in texts[0]
    assert "the log is damaged: event 6 of run" in texts[1]


def test_a_log_of_the_first_release_is_read_resumed_and_goes_on_with_checksums(capsys: Capture) -> None:
    text = PLAYBOOK.replace("assert False", "import pathlib; assert pathlib.Path('flag').exists()")
    assert call(capsys, "run", write("p.yaml", text), "--name", "mine").code == 1
    with closing(sqlite3.connect(".penstock/penstock.db")) as database:
        database.executescript(FIRST_RELEASE)
    assert call(capsys, "show", "mine").code == 0
    Path("flag").touch()
    assert call(capsys, "resume", "mine").code == 0
    with closing(sqlite3.connect(".penstock/penstock.db")) as database:
        known = [one is not None for (one,) in database.execute("SELECT checksum FROM event ORDER BY place")]
    assert known == sorted(known)
    assert known[0] is False
    assert known[-1] is True
    assert call(capsys, "doctor", "--log").code == 0
