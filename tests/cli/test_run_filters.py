"""`penstock runs` with its filters, in a state folder and at a server."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.ports.moments import moment_of
from tests.api.service import Api, Running, serving
from tests.cli.support import FAILS, HELLO, WAITS, Called, call, started, until_there, write

HOUR = 3600.0
JOB = """apiVersion: penstock/v1
kind: Job
metadata: {name: rows}
components: [{name: rows, type: fixed_rows, params: {columns: [n], rows: [[1]]}}]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


def names(said: Called) -> list[str]:
    assert said.code == 0, said.err
    return [run["label"] or run["name"] for run in said.json["runs"]]


@pytest.mark.parametrize("is_remote", [False, True], ids=["here", "at a server"])
def test_runs_are_chosen_by_status_name_and_label(
    capsys: pytest.CaptureFixture[str], folder: Path, server: Running, is_remote: bool
) -> None:
    at = ("--server", server.url) if is_remote else ("--store", "home")
    good, bad = write("good.yaml", HELLO), write("bad.yaml", FAILS)
    for file, label in ((good, "first"), (bad, "second"), (good, "third")):
        call(capsys, "run", file, "--name", label, *at)
    listed = call(capsys, "runs", "--json", *at).json["runs"]
    assert [run["label"] for run in listed] == ["third", "second", "first"]
    assert names(call(capsys, "runs", "--failed", "--json", *at)) == ["second"]
    assert names(call(capsys, "runs", "--status", "completed", "--json", *at)) == ["third", "first"]
    assert names(call(capsys, "runs", "--name", listed[0]["name"], "--limit", "1", "--json", *at)) == ["third"]
    assert names(call(capsys, "runs", "--name", "first", "--json", *at)) == ["first"]
    assert names(call(capsys, "runs", "--name", "nobody", "--json", *at)) == []
    assert names(call(capsys, "runs", "--since", "1h", "--failed", "--json", *at)) == ["second"]
    assert names(call(capsys, "runs", "--since", "2999-01-01", "--json", *at)) == []
    assert "no such runs" in call(capsys, "runs", "--since", "2999-01-01", *at).err
    assert "second" in call(capsys, "runs", "--failed", *at).out


@pytest.mark.parametrize("is_remote", [False, True], ids=["here", "at a server"])
def test_runs_are_chosen_by_label_kind_text_and_end_of_time_as_on_the_page(
    capsys: pytest.CaptureFixture[str], folder: Path, server: Running, is_remote: bool
) -> None:
    at = ("--server", server.url) if is_remote else ("--store", "home")
    Path("job-zebra.yaml").write_text(JOB, encoding="utf-8")
    for file, label in ((write("playbook-zebra.yaml", HELLO), "by-label"), ("job-zebra.yaml", "by-kind")):
        assert call(capsys, "run", file, "--name", label, *at).code == 0
    ids = [run["execution_id"] for run in call(capsys, "runs", "--text", "ZEBRA.yaml", "--json", *at).json["runs"]]
    assert names(call(capsys, "runs", "--label", "by-label", "--json", *at)) == ["by-label"]
    assert names(call(capsys, "runs", "--label", "by", "--json", *at)) == []
    assert names(call(capsys, "runs", "--kind", "job", "--text", "zebra", "--json", *at)) == ["by-kind"]
    assert names(call(capsys, "runs", "--kind", "playbook", "--text", "zebra", "--json", *at)) == ["by-label"]
    assert names(call(capsys, "runs", "--text", ids[0][:10].upper(), "--json", *at)) == ["by-kind"]
    assert names(call(capsys, "runs", "--text", "zebra", "--until", "2999-01-01", "--json", *at)) == [
        "by-kind",
        "by-label",
    ]
    assert names(call(capsys, "runs", "--text", "zebra", "--until", "1h", "--json", *at)) == []
    assert "no such runs" in call(capsys, "runs", "--text", "nothing-like-it", *at).err


def test_since_counts_back_from_now_or_from_a_date_of_this_machine(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("p.yaml", HELLO)
    for label in ("old", "new"):
        call(capsys, "run", file, "--name", label, "--store", "home")
    with closing(sqlite3.connect("home/penstock.db")) as connection, connection:
        connection.execute("UPDATE execution SET started_at = ? WHERE label = 'old'", (time.time() - 5 * HOUR,))
    assert names(call(capsys, "runs", "--since", "6h", "--json", "--store", "home")) == ["new", "old"]
    assert names(call(capsys, "runs", "--since", "2h", "--json", "--store", "home")) == ["new"]
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert moment_of("2026-01-31", 0.0, zone=None) == 1769785200.0
        assert moment_of("2026-01-31", 0.0) == 1769817600.0
        assert moment_of("2026-01-31T00:00:00Z", 0.0, zone=None) == 1769817600.0
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["yesterday", "", "h", "-3h", "nan", "2026-13-01", "5"])
def test_what_is_no_time_is_refused(
    capsys: pytest.CaptureFixture[str], folder: Path, server: Running, text: str
) -> None:
    said = call(capsys, "runs", f"--since={text}", "--store", "home")
    assert (said.code, "is not a time such as" in said.err) == (2, True)
    api = Api(server.url)
    assert api.get("/api/executions", since=text).status_code == 422
    api.close()


def test_a_run_that_was_killed_is_chosen_as_interrupted_and_not_as_running(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    file = write("p.yaml", WAITS)
    for label in ("killed", "going"):
        running = started("run", file, "--name", label)
        until_there(Path("waiting"), running)
        os.remove("waiting")
        if label == "killed":
            running.kill()
            running.communicate()
    assert names(call(capsys, "runs", "--status", "interrupted", "--json")) == ["killed"]
    assert names(call(capsys, "runs", "--status", "crashed", "--json")) == ["killed"]
    assert names(call(capsys, "runs", "--status", "running", "--json")) == ["going"]
    Path("gate").touch()
    running.communicate()


def test_two_statuses_are_refused(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert call(capsys, "runs", "--failed", "--status", "completed").code == 2
