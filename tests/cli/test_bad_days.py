"""Bad input and bad days: a clear message, the right exit code, nothing lost, never a traceback."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.adapters.sqlite.log import SqliteLog
from tests.cases import cases
from tests.cli.support import HELLO, call, environment, process, write

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]

BAD_FILES: dict[str, bytes] = {
    "not YAML": b"a: [1, 2",
    "binary": bytes(range(256)) * 20,
    "no UTF-8": b"name: caf\xe9\n",
    "empty": b"",
    "only a comment": b"# nothing\n",
    "a wrong kind": b"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n",
    "a list": b"- 1\n- 2\n",
    "a text": b"hello\n",
    "a mess": b"workflow: 5\nfoo: {bar: [baz]}\n",
    "steps that are no steps": b"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: x}\nworkflow: [1, null, {}]\n",
    "a bomb": b"a: &a [x, x]\n"
    + b"".join(b"%c: &%c [*%c, *%c]\n" % (98 + i, 98 + i, 97 + i, 97 + i) for i in range(24)),
}


@cases("what, command", [(what, command) for what in BAD_FILES for command in ("run", "validate", "plan")])
def test_a_file_that_is_no_playbook_exits_2_with_a_diagnostic(capsys: Capture, what: str, command: str) -> None:
    Path("bad.yaml").write_bytes(BAD_FILES[what])
    told = call(capsys, command, "bad.yaml")
    assert told.code == 2
    assert "bad.yaml" in told.err
    assert "error[" in told.err
    assert told.out == ""
    assert not Path(".penstock").exists()


@pytest.mark.parametrize("what", BAD_FILES)
def test_json_has_the_problems_of_a_bad_file(capsys: Capture, what: str) -> None:
    Path("bad.yaml").write_bytes(BAD_FILES[what])
    told = call(capsys, "run", "bad.yaml", "--json")
    assert (told.code, told.err) == (2, "")
    assert (told.json["status"], told.json["exit_code"]) == ("invalid", 2)
    assert {"code", "message", "file", "line", "column", "hint"} <= set(told.json["problems"][0])


def test_a_file_of_100_mb_a_folder_and_no_file_exit_2(capsys: Capture) -> None:
    with Path("big.yaml").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    Path("folder.yaml").mkdir()
    for name, said in (
        ("big.yaml", "104,857,600 bytes"),
        ("folder.yaml", "is a folder"),
        ("missing.yaml", "there is no file"),
    ):
        told = call(capsys, "run", name)
        assert told.code == 2
        assert said in told.err


def test_a_file_name_that_is_not_text_is_reported(capsys: Capture) -> None:
    told = process("run", os.fsdecode(b"caf\xe9.yaml"))
    assert told.code == 2


def test_a_corrupt_database_exits_4_and_is_left_alone(capsys: Capture) -> None:
    Path("home").mkdir()
    Path("home/penstock.db").write_text("this is no database, only some text, and more of it\n" * 20)
    before = Path("home/penstock.db").read_bytes()
    file = write("hello.yaml", HELLO)
    for arguments in (["run", file], ["runs"], ["show", "@last"], ["resume", "@last"]):
        told = call(capsys, *arguments, "--store", "home")
        assert told.code == 4
        assert "is damaged" in told.err
        assert "hint:" in told.err
    assert Path("home/penstock.db").read_bytes() == before
    assert call(capsys, "run", file, "--store", "home", "--json").json["error"]["kind"] == "unavailable"
    assert call(capsys, "doctor", "--store", "home").code == 4


def test_a_database_of_another_program_exits_4(capsys: Capture) -> None:
    Path("home").mkdir()
    with sqlite3.connect("home/penstock.db") as connection:
        connection.execute("CREATE TABLE customers (id)")
    connection.close()
    told = call(capsys, "run", write("hello.yaml", HELLO), "--store", "home")
    assert told.code == 4
    assert "another program" in told.err


def test_a_locked_database_exits_4_and_says_so(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteLog.__init__, "__defaults__", (0.2,))  # Seconds of patience; half a minute otherwise.
    file = write("hello.yaml", HELLO)
    assert call(capsys, "run", file).code == 0
    holder = sqlite3.connect(".penstock/penstock.db", isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    try:
        told = call(capsys, "run", file)
    finally:
        holder.close()
    assert told.code == 4
    assert "locked by another program" in told.err
    assert call(capsys, "run", file).code == 0
    assert [run["status"] for run in call(capsys, "runs", "--json").json["runs"]] == ["completed", "completed"]


def test_a_state_folder_that_cannot_be_made_exits_4(capsys: Capture) -> None:
    Path("file").write_text("in the way")
    for store in ("file", "file/inside", "/proc/nope", "/sys/kernel/nope"):
        told = call(capsys, "run", write("hello.yaml", HELLO), "--store", store)
        assert told.code == 4
        assert "hint:" in told.err


def test_an_error_nobody_thought_of_is_a_short_report(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.app import state_folder

    def broken(*_: object) -> Path:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(state_folder, "home_for", broken)
    told = call(capsys, "run", write("hello.yaml", HELLO))
    assert told.code == 4
    assert "ZeroDivisionError: a mistake of ours" in told.err
    assert "PENSTOCK_DEBUG=1" in told.err
    monkeypatch.setenv("PENSTOCK_DEBUG", "1")
    from penstock.cli.main import main

    assert main(["run", "hello.yaml"]) == 4
    assert "Traceback" in capsys.readouterr().err


def test_a_closed_stdout_changes_nothing_about_the_run() -> None:
    write("hello.yaml", HELLO)
    script = 'exec "$0" -m penstock run hello.yaml --json >&-'
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable], check=False, stderr=subprocess.PIPE, text=True, env=environment()
    )
    assert (done.returncode, done.stderr) == (0, "")


INTERRUPTED = """
from penstock.cli import main
def interrupted(arguments):
    exec("raise KeyboardInterrupt")
main._dispatched = interrupted
"""


def test_an_interrupt_while_something_is_being_defined_exits_3_like_any_other(folder: Path) -> None:
    """Methods of a dataclass are made by `exec`, and of an interrupt in there Python would die at its end."""
    (folder / "sitecustomize.py").write_text(INTERRUPTED)
    path = os.pathsep.join([str(folder), environment()["PYTHONPATH"]])
    command = [sys.executable, "-m", "penstock", "runs"]
    done = subprocess.run(command, check=False, capture_output=True, env={**environment(), "PYTHONPATH": path})
    assert (done.returncode, done.stderr) == (3, b"\ninterrupted\n")


def test_a_file_that_is_there_but_whose_name_is_not_utf_8_is_refused() -> None:
    Path(write("hello.yaml", HELLO)).rename(os.fsdecode(b"caf\xe9.yaml"))
    told = process("run", os.fsdecode(b"caf\xe9.yaml"))
    assert (told.code, "is not UTF-8" in told.err) == (2, True)


def test_options_after_two_dashes_are_told_where_they_belong(capsys: Capture) -> None:
    told = call(capsys, "run", "--", "-x.yaml", "--set", "a=1")
    assert (told.code, "put the options before `--`" in told.err) == (2, True)


def test_a_name_that_begins_with_a_dash_is_told_how_to_be_written(capsys: Capture) -> None:
    told = call(capsys, "run", "-x.yaml")
    assert (told.code, "`./-name`" in told.err) == (2, True)


def test_a_playbook_from_a_pipe_keeps_its_state_in_the_current_folder() -> None:
    text = Path(write("hello.yaml", HELLO)).read_text(encoding="utf-8")
    told = process("run", "/dev/stdin", "--quiet", input=text)
    assert (told.code, Path(".penstock/penstock.db").exists()) == (0, True)
    assert not Path("/dev/.penstock").exists()


def test_a_current_folder_that_is_gone_is_told(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Path("gone").absolute()
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    told = call(capsys, "runs")
    assert (told.code, "the current folder is gone" in told.err) == (2, True)


def test_a_run_that_could_not_begin_is_not_offered_to_be_resumed(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteLog.__init__, "__defaults__", (0.2,))
    write("hello.yaml", HELLO)
    assert call(capsys, "run", "hello.yaml").code == 0
    holder = sqlite3.connect(".penstock/penstock.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        told = call(capsys, "run", "hello.yaml")
    finally:
        holder.close()
    assert (told.code, "locked" in told.err, "penstock resume" in told.err) == (4, True, False)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("run hello.yaml --grace -1", "`-1` is not a number of seconds"),
        ("run hello.yaml --grace inf", "`inf` is not a number of seconds"),
        ("run hello.yaml --name @last", "does not begin with `@`"),
        ("runs --limit 0", "`0` is not a whole number from 1 on"),
    ],
)
def test_a_value_that_means_nothing_is_refused(capsys: Capture, line: str, says: str) -> None:
    told = call(capsys, *line.split())
    assert (told.code, says in told.err) == (2, True)
