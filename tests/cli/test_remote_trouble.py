"""Servers that go away while somebody follows a run: it is looked for at the others, and gone on from the last event."""

from __future__ import annotations

import select
import socket
import subprocess
import threading
from contextlib import suppress
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


class Relay:
    """A way to a server that one connection gets through, and none after it until it is opened."""

    def __init__(self, url: str, *, is_answered: bool) -> None:
        self._target = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
        self._is_answered = is_answered
        self._is_open = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._address = self._listener.getsockname()
        self.url = f"http://127.0.0.1:{self._address[1]}"
        self._threads = [threading.Thread(target=self._pass_on)]
        self._threads[0].start()

    def open(self) -> None:
        self._is_open = self._is_answered = True
        self._listener = socket.create_server(self._address)
        self._threads.append(threading.Thread(target=self._pass_on))
        self._threads[-1].start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _pass_on(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                thread = threading.Thread(target=self._carry, args=(client,))
                self._threads.append(thread)
                thread.start()
                if not self._is_open:
                    self._listener.close()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server, suppress(OSError):
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65_536)
                    if not data or (source is server and not self._is_answered):
                        return
                    (client if source is server else server).sendall(data)


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


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_server_that_goes_away_as_soon_as_it_was_asked_is_waited_for(folder: Path, is_answered: bool) -> None:
    with serving(folder / "home") as running:
        relay = Relay(running.url, is_answered=is_answered)
        following = started("run", write("p.yaml", WAITS), "--server", relay.url)
        before = until_said("trying for 60 s", following)
        relay.open()
        until_there(folder / "waiting", following)
        (folder / "gate").touch()
        said = ended(following)
        relay.close()
        api = Api(running.url)
        (_,) = api.get("/api/executions").json()["runs"]
        api.close()
    assert (said.code, said.out) == (0, '"finished"\n')
    err = before + said.err
    for words in ("trying for 60 s", "following the run again", " start: done", " fin: done"):
        assert len(lines_of(err, words)) == 1, err


def test_a_server_that_never_was_there_is_not_waited_for(folder: Path) -> None:
    said = ended(started("run", write("p.yaml", HELLO), "--server", NOWHERE))
    assert said.code == 4
    assert "no server answers" in said.err
    assert "trying" not in said.err


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
    assert f"hint: `penstock watch {run} --server {url}` looks again" in said.err


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
