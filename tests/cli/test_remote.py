"""The command line against a server says what it says without one: the same words, the same JSON, the same exit codes."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.examples import EXAMPLES, LEFT_BY_RUNS
from tests.api.service import Running, serving
from tests.cli.support import FAILS, HELLO, WAITS, Called, call, ended, process, started, until_there, write

PLAYBOOKS = ["hello/hello.yaml", "sub-playbooks/cities.yaml"]
JOBS = ["fork-join/fork-join.yaml"]
"""Their timelines, and those of all others, are compared in tests/acceptance; here it is what the commands print."""
CHANCE = {"execution_id", "duration_ms", "ms", "metrics"}
"""What differs between two runs of one document, wherever they run."""
LOOKED_AT = {"inputs", "outputs"}
"""Of the plan of a job: what was seen in its files, which a server does not look into."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def asks(folder: Path, server: Running, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands ask the server, because the environment says so."""
    monkeypatch.setenv("PENSTOCK_SERVER", server.url)
    return folder


def certain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: certain(inner) for key, inner in value.items() if key not in CHANCE | LOOKED_AT}
    return [certain(inner) for inner in value] if isinstance(value, list) else value


def copied(example: str, into: Path) -> Path:
    source = EXAMPLES / Path(example).parent
    shutil.copytree(source, into, ignore=shutil.ignore_patterns(*LEFT_BY_RUNS))
    return into / Path(example).name


@pytest.mark.parametrize("example", [*PLAYBOOKS, *JOBS])
def test_an_example_says_the_same_at_a_server_as_without_one(
    capsys: pytest.CaptureFixture[str], folder: Path, server: Running, example: str
) -> None:
    """Twice in the same folder, which is as new each time: only where it runs differs."""
    both: list[dict[str, Called]] = []
    for place in (["--store", str(folder / "home")], ["--server", server.url]):
        file = str(copied(example, folder / "example"))
        asked = place if place[0] == "--server" else []
        both.append(
            {
                "run": call(capsys, "run", file, "--json", *place),
                "show": call(capsys, "show", "@last", "--json", *place),
                "canonical": call(capsys, "events", "@last", "--canonical", *place),
                "events": call(capsys, "events", "@last", "--json", *place),
                "replay": call(capsys, "replay", "@last", *place),
                "plan": call(capsys, "plan", file, "--json", *asked),
                "graph": call(capsys, "graph", file, *asked),
                "validate": call(capsys, "validate", file, "--json", *asked),
            }
        )
        shutil.rmtree(folder / "example")
    here, there = both
    assert {name: said.code for name, said in there.items()} == dict.fromkeys(here, 0), there["run"].err
    assert {name: said.code for name, said in here.items()} == dict.fromkeys(here, 0)
    assert there["canonical"].out == here["canonical"].out
    assert there["graph"].out == here["graph"].out
    assert there["validate"].json == here["validate"].json
    for name in ("run", "show", "plan"):
        assert certain(there[name].json) == certain(here[name].json)
    assert [sorted(event) for event in there["events"].lines] == [sorted(event) for event in here["events"].lines]


def test_a_run_is_shown_while_it_goes_and_its_result_printed(capsys: pytest.CaptureFixture[str], asks: Path) -> None:
    said = call(capsys, "run", write("p.yaml", HELLO), "--name", "mine", "--set", "who=you")
    assert (said.code, said.out) == (0, '"hello you"\n')
    for words in ("p.yaml  run ", "start: started", "start | greeting you", "fin: done", "completed after"):
        assert words in said.err
    assert "mine" in call(capsys, "runs").out
    assert call(capsys, "logs", "mine").out.endswith("start@0 | greeting you\n")
    assert call(capsys, "logs", "mine", "--json").lines[0]["line"] == "greeting you"
    assert call(capsys, "logs", "mine", "--step", "nobody").code == 2
    assert "greet (python) ok" in call(capsys, "show", "mine").out
    assert "why it ran" in call(capsys, "explain", "mine", "fin").out
    assert "playbook.completed" in call(capsys, "events", "mine", "--follow").out


def test_a_run_that_fails_fails_in_the_same_words(
    capsys: pytest.CaptureFixture[str], asks: Path, server: Running
) -> None:
    file = write("p.yaml", FAILS)
    there = call(capsys, "run", file)
    here = call(capsys, "run", file, "--store", "home")
    assert (there.code, here.code) == (1, 1)
    assert "error in step `bad`, task `boom`" in there.err
    assert "at p.yaml:" in there.err
    assert "to see why:              penstock explain" in there.err
    told = [line for line in there.err.splitlines() if line.startswith(("  ", "error"))]
    assert told == [line for line in here.err.splitlines() if line.startswith(("  ", "error"))]


def test_a_failed_run_is_resumed_at_the_server(capsys: pytest.CaptureFixture[str], asks: Path) -> None:
    flag = asks / "flag"
    text = f"""
- step: start
  tool: [{{name: n, kind: noop, value: 1}}]
  next: {{arcs: [{{step: second}}]}}
- step: second
  loop: {{in: [1, 2, 3], iterator: x, spec: {{mode: sequential}}}}
  tool:
    - name: look
      kind: python
      code: |
        from pathlib import Path
        if not Path({str(flag)!r}).exists():
            raise ValueError("not yet")
        result = "now"
"""
    assert call(capsys, "run", write("p.yaml", text)).code == 1
    flag.touch()
    said = call(capsys, "resume", "@last")
    assert said.code == 0, said.err
    assert "second: done" in said.err
    assert "3 of 3 iterations" in said.err
    again = call(capsys, "resume", "@last")
    assert (again.code, "there is nothing to resume" in again.err) == (2, True)


def test_a_detached_run_is_left_to_the_server(capsys: pytest.CaptureFixture[str], asks: Path) -> None:
    said = call(capsys, "run", write("p.yaml", WAITS.replace('"gate"', f'"{asks}/gate"')), "--detach")
    run = said.out.strip()
    assert (said.code, f"penstock watch {run}" in said.err) == (0, True)
    assert call(capsys, "show", run, "--json").json["status"] == "running"
    shown = call(capsys, "cancel", run, "--json")
    assert shown.json == {"execution_id": run, "status": "cancelled", "exit_code": 0}
    assert call(capsys, "cancel", run).code == 0


def test_detaching_without_a_server_is_refused(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    said = call(capsys, "run", write("p.yaml", HELLO), "--detach")
    assert (said.code, "--server" in said.err) == (2, True)


def test_an_interrupt_leaves_the_run_running_and_says_so(folder: Path, server: Running) -> None:
    gate, waiting = folder / "gate", folder / "waiting"
    text = WAITS.replace('Path("gate")', f"Path({str(gate)!r})").replace('Path("waiting")', f"Path({str(waiting)!r})")
    text = text.replace('open("marks", "a")', f"open({str(folder / 'marks')!r}, 'a')")
    running = started("run", write("p.yaml", text), "--server", server.url)
    until_there(waiting, running)
    running.send_signal(signal.SIGINT)
    said = ended(running)
    assert said.code == 3
    assert "goes on at the server" in said.err
    gate.touch()
    run = said.err.split("run ")[1].split()[0]
    seen = process("events", run, "--follow", "--json", "--server", server.url)
    assert seen.lines[-1]["event_type"] == "playbook.completed"


@pytest.mark.parametrize("command", ["run", "validate", "lint", "plan", "graph"])
def test_problems_of_a_document_look_the_same(
    capsys: pytest.CaptureFixture[str], folder: Path, server: Running, command: str
) -> None:
    file = write("p.yaml", HELLO.replace("kind: noop", "kind: nop"))
    here, there = call(capsys, command, file), call(capsys, command, file, "--server", server.url)
    assert (there.code, there.out, there.err) == (here.code, here.out, here.err)
    assert (there.code, "did you mean `noop`?" in there.err) == (2, True)


def test_a_document_of_the_catalog_is_run_by_its_path(capsys: pytest.CaptureFixture[str], asks: Path) -> None:
    file = write("p.yaml", HELLO)
    assert call(capsys, "catalog", "put", "cli/hello", file).code == 0
    assert call(capsys, "run", "cli/hello", "--quiet").out == '"hello world"\n'
    missing = call(capsys, "run", "cli/nothing")
    assert (missing.code, "catalog" in missing.err) == (2, True)


def test_what_a_playbook_calls_goes_along(capsys: pytest.CaptureFixture[str], asks: Path) -> None:
    Path("parts").mkdir()
    write("parts/leaf.yaml", "- step: start\n  tool: [{name: n, kind: noop, value: leaf}]\n")
    write("parts/child.yaml", "- step: start\n  tool: [{name: c, kind: playbook, path: leaf}]\n")
    file = write("p.yaml", "- step: start\n  tool: [{name: c, kind: playbook, path: parts/child.yaml}]\n")
    said = call(capsys, "run", file, "--detach")
    shutil.rmtree("parts")
    Path(file).unlink()
    run = said.out.strip()
    deadline = time.monotonic() + 30
    while (shown := call(capsys, "show", run, "--json").json)["status"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (shown["status"], shown["result"]) == ("completed", "leaf")


# ---- servers that are not there, or not what they seem


def test_a_server_that_is_not_there_is_told_of(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    for words in (["runs", "--json"], ["run", write("p.yaml", HELLO)]):
        said = call(capsys, *words, "--server", "http://127.0.0.1:9")
        assert said.code == 4
        assert "no server answers" in (said.err or said.out)


@pytest.mark.parametrize("url", ["127.0.0.1:8470", "ftp://x", "http://", "nonsense"])
def test_a_url_that_is_none_is_told_of(capsys: pytest.CaptureFixture[str], folder: Path, url: str) -> None:
    said = call(capsys, "runs", "--server", url)
    assert (said.code, "is not the URL of a server" in said.err) == (2, True)


def test_a_server_of_another_kind_is_told_of(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    import http.server
    import threading

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as other:
        other.RequestHandlerClass.log_message = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        said = call(capsys, "show", "x", "--server", f"http://127.0.0.1:{other.server_port}")
        other.shutdown()
        thread.join()
    assert (said.code, "not as a Penstock server does" in said.err) == (4, True)


def test_two_places_to_look_are_one_too_many(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    said = call(capsys, "runs", "--server", "http://127.0.0.1:9", "--store", "home")
    assert (said.code, "two places" in said.err) == (2, True)


def test_a_state_folder_that_is_named_is_meant_whatever_the_environment_says(
    capsys: pytest.CaptureFixture[str], asks: Path
) -> None:
    assert call(capsys, "run", write("p.yaml", HELLO), "--store", "home", "--quiet").code == 0
    assert len(call(capsys, "runs", "--store", "home", "--json").json["runs"]) == 1


def test_a_submit_that_is_repeated_runs_once(folder: Path, server: Running) -> None:
    """The first answer is lost on its way: the client asks again with the same key, and gets the same run."""
    import socket
    import threading

    host, port = server.url.removeprefix("http://").split(":")
    lost = []

    def proxy(listener: socket.socket) -> None:
        while True:
            try:
                inside, _ = listener.accept()
            except OSError:
                return
            with inside, socket.create_connection((host, int(port))) as outside:
                head = inside.recv(1 << 20)
                while b"\r\n\r\n" not in head or len(head.split(b"\r\n\r\n", 1)[1]) < _length(head):
                    head += inside.recv(1 << 20)
                outside.sendall(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
                answer = b""
                while piece := outside.recv(1 << 20):
                    answer += piece
                if head.startswith(b"POST /api/executions ") and not lost:
                    lost.append(answer)
                    continue
                inside.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=proxy, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        said = process("run", write("p.yaml", HELLO), "--detach", "--name", "once", "--server", url)
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    assert said.code == 0, said.err
    assert said.out.strip() in lost[0].decode()
    runs = process("runs", "--json", "--limit", "1000", "--server", server.url).json["runs"]
    assert sum(run["label"] == "once" for run in runs) == 1


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


def test_failed_iterations_are_run_again_at_the_server(capsys: pytest.CaptureFixture[str], asks: Path) -> None:
    flag = asks / "flag"
    code = f"import pathlib\nif iteration['item'] % 2 and not pathlib.Path({str(flag)!r}).exists(): raise ValueError('odd')"
    parts = {"it": {"type": "iterate_list", "params": {"items": [0, 1, 2, 3], "parallel": 2}}}
    parts["x"] = {"type": "python", "params": {"code": code}}
    links = {"control": ["it (iterate) x"]}
    (asks / "each.yaml").write_text(
        json.dumps({"job_config": {"fail_strategy": "continue"}, "components": parts, "connections": links})
    )
    first = call(capsys, "run", "each.yaml")
    assert (first.code, "completed, 2 iterations failed" in first.err, "resume --failed" in first.err) == (
        0,
        True,
        True,
    )
    assert "completed, 2 iterations failed" in call(capsys, "runs").out
    refused = call(capsys, "resume", "@last")
    assert (refused.code, "2 iterations of it failed" in refused.err) == (2, True)
    flag.touch()
    again = call(capsys, "resume", "--failed", "@last")
    assert (again.code, "4 of 4 iterations" in again.err) == (0, True)
    assert call(capsys, "show", "@last", "--json").json["failed_iterations"] == 0
    assert call(capsys, "replay", "@last").code == 0
    assert call(capsys, "resume", "--failed", "@last").code == 2
