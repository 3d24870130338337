"""Servers that go away while somebody follows a run: it is looked for at the others, and gone on from the last event."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.api.service import Api, Crew, serving
from tests.cli.support import HELLO, WAITS, call, ended, started, until_there, write
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

NOWHERE = "http://127.0.0.1:1"


def until_said(words: str, following: subprocess.Popen[str]) -> str:
    """What it has said up to these words."""
    assert following.stderr is not None
    said = ""
    while words not in said:
        line = following.stderr.readline()
        assert line, f"it ended, and said:\n{said}"
        said += line
    return said


def lines_of(err: str, words: str) -> list[str]:
    return [line for line in err.splitlines() if words in line]


def test_a_server_that_starts_again_is_followed_again_from_the_last_event(folder: Path) -> None:
    home = folder / "home"
    with serving(home) as running:
        url = running.url
        following = started("run", write("p.yaml", WAITS), "--server", url)
        until_there(folder / "waiting", following)
    (folder / "waiting").unlink()
    before = until_said("trying for 60 s", following)
    with serving(home, listen=url.removeprefix("http://")):
        until_there(folder / "waiting", following)
        (folder / "gate").touch()
        said = ended(following)
    assert (said.code, said.out) == (0, '"finished"\n')
    err = before + said.err
    for words in ("trying for 60 s", "following the run again", " start: done", " fin: done"):
        assert len(lines_of(err, words)) == 1, err


def test_a_run_is_followed_at_the_next_server_when_its_own_has_gone(folder: Path, postgres_url: str) -> None:
    with (
        serving(folder / "b", postgres_url, name="b", lease_s=2.0) as second,
        Crew(folder / "w", postgres_url, beat_s=0.5),
    ):
        with serving(folder / "a", postgres_url, name="a", lease_s=2.0) as first:
            servers = f"{first.url},{second.url}"
            following = started("run", write("p.yaml", WAITS), "--server", servers)
            until_there(folder / "waiting", following)
        (folder / "gate").touch()
        said = ended(following)
    assert (said.code, said.out) == (0, '"finished"\n')
    assert len(lines_of(said.err, " start: done")) == 1
    assert len(lines_of(said.err, " fin: done")) == 1
    assert (folder / "marks").read_text() == "x"


def test_when_nobody_answers_any_more_it_says_how_to_look_again(folder: Path) -> None:
    with serving(folder / "home") as running:
        words = ("run", write("p.yaml", WAITS), "--server", running.url, "--patience", "0.5")
        following = started(*words)
        until_there(folder / "waiting", following)
        api = Api(running.url)
        (run,) = (one["execution_id"] for one in api.get("/api/executions").json()["runs"])
        api.close()
        (folder / "waiting").unlink()
        url = running.url
    said = ended(following)
    assert said.code == 4
    assert f"run {run} was not followed to its end" in said.err
    assert f"hint: `penstock show {run} --server {url}` looks again" in said.err


def test_a_server_that_refuses_the_connection_is_passed_over(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    with serving(folder / "home") as running:
        both = ("--server", f"{NOWHERE}, {running.url}/")
        assert call(capsys, "run", write("p.yaml", HELLO), "--name", "mine", *both).code == 0
        for words in (
            ("runs",),
            ("show", "mine"),
            ("events", "mine"),
            ("events", "mine", "--follow"),
            ("logs", "mine"),
            ("explain", "mine", "fin"),
            ("workers",),
            ("validate", "p.yaml"),
            ("plan", "p.yaml"),
            ("token", "list"),
        ):
            assert call(capsys, *words, *both).code == 0, words
    said = call(capsys, "runs", "--server", f"{NOWHERE},http://127.0.0.1:2")
    assert said.code == 4
    assert "no server answers at `http://127.0.0.1:" in said.err
    assert call(capsys, "runs", "--server", " , ").code == 2


def test_a_stream_whose_store_fails_ends_without_a_mistake_and_is_taken_up_again(
    capsys: pytest.CaptureFixture[str], folder: Path, postgres_url: str
) -> None:
    with serving(folder / "a", postgres_url) as server, Crew(folder / "w", postgres_url):
        following = started("run", write("p.yaml", WAITS), "--server", server.url)
        until_there(folder / "waiting", following)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            while not connection.execute("SELECT to_regclass('run_line')").fetchone()[0]:  # type: ignore[index]
                pass
            connection.execute("ALTER TABLE run_line RENAME TO elsewhere")
            until_said("trying for 60 s", following)
            connection.execute("ALTER TABLE elsewhere RENAME TO run_line")
        (folder / "gate").touch()
        said = ended(following)
    assert (said.code, said.out) == (0, '"finished"\n')
    assert len(lines_of(said.err, "following the run again")) == 1
    told = capsys.readouterr().err
    assert "a stream broke off" in told
    assert "Traceback" not in told
