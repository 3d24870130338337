"""`penstock.connect`: a real server from Python, with the same methods and the same answers as without one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import penstock
from tests.api.service import Running, serving
from tests.cli.support import FAILS, HELLO, WAITS, write
from tests.docs.pages import DOCS, blocks
from tests.engine import document

ECHO = """
workload: { a: 1 }
workflow:
  - step: start
    tool: [{ name: n, kind: noop, value: "{{ workload.a }}" }]
"""
JOB = """
apiVersion: penstock/v1
kind: Job
metadata: { name: j }
components:
  - name: rows
    type: generate_rows
    params: { count: 3000, columns: { n: i, price: "(i / 4)::DECIMAL(10,2)" } }
  - name: few
    type: filter
    params: { where: n < 3 }
  - name: out
    type: log_rows
connections:
  data: |
    rows.main -> few.input
    few.main -> out.input
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def server(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> penstock.Server:
    monkeypatch.delenv("PENSTOCK_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    return penstock.connect(running.url)


def test_a_run_at_a_server_gives_what_a_run_here_gives(server: penstock.Server) -> None:
    file = write("hello.yaml", HELLO)
    there, here = server.run(file, {"who": "Ada"}, name="ada"), penstock.run(file, {"who": "Ada"})
    for name in ("name", "status", "ok", "result", "ctx", "error", "kind"):
        assert getattr(there, name) == getattr(here, name), name
    assert {**there.counts, "events": 0} == {**here.counts, "events": 0}
    assert (there.server, there.home) == (server.url, None)
    assert [event["event_type"] for event in there.events()][-1] == "playbook.completed"
    assert server.show("ada")["execution_id"] == there.execution_id
    assert server.replay(there).ok
    with pytest.raises(penstock.Refused, match="is one of the server"):
        penstock.resume(there)


def test_it_works_inside_a_running_event_loop_as_in_a_notebook(server: penstock.Server) -> None:
    file = write("hello.yaml", HELLO)

    async def cell() -> tuple[object, bool, int]:
        run = server.run(file)
        return run.result, server.replay(run).ok, len(list(server.events(run, follow=True)))

    result, is_same, events = asyncio.run(cell())
    assert (result, is_same, events > 10) == ("hello world", True, True)


def test_a_bad_document_raises_with_its_problems_under_the_name_it_has_here(server: penstock.Server) -> None:
    file = write("bad.yaml", HELLO.replace("kind: noop", "kind: nop"))
    with pytest.raises(penstock.DocumentInvalid) as caught:
        server.run(file)
    here = penstock.validate(file)
    assert [str(one) for one in caught.value.problems] == [str(one) for one in here.problems]
    there = server.validate(file)
    assert (there.ok, there.problems, str(there)) == (False, here.problems, str(here))
    assert server.validate(write("good.yaml", HELLO)).ok


def test_a_failed_run_does_not_raise_and_can_be_resumed(server: penstock.Server, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    code = f"__import__('os').stat({str(flag)!r})"
    text = f'- step: start\n  tool: [{{name: n, kind: python, code: "{code}"}}]\n'
    failed = server.run(write("p.yaml", text))
    assert (failed.status, failed.error["kind"]) == ("failed", "exception")
    flag.touch()
    done = server.resume(failed, timeout=60)
    assert (done.status, done.execution_id) == ("completed", failed.execution_id)
    with pytest.raises(penstock.Refused, match="nothing to resume"):
        server.resume(done)


def test_many_runs_are_submitted_at_once_and_again_with_the_same_keys(server: penstock.Server) -> None:
    path = write("echoes.yaml", ECHO)
    inputs = [{"a": number} for number in range(5)]
    keys = [f"echo-{number}" for number in range(5)]
    made = server.submit_many(path, inputs, keys=keys)
    assert [server.wait(run).result for run in made] == [0, 1, 2, 3, 4]
    assert server.submit_many(path, inputs, keys=keys) == made
    assert len({*server.submit_many(path, inputs)} - {*made}) == 5
    with pytest.raises(penstock.Refused, match="4 keys for 5 runs"):
        server.submit_many(path, inputs, keys=keys[1:])
    with pytest.raises(penstock.Refused, match="nonsense"):
        server.submit_many(path, [{"a": 1}, {"nonsense": 1}])


def test_a_submitted_run_is_waited_for_and_cancelled(server: penstock.Server) -> None:
    run = server.submit(write("waits.yaml", WAITS), name="slow", key="once")
    assert server.submit("waits.yaml", name="slow", key="once") == run
    with pytest.raises(penstock.Unavailable, match="has not ended within"):
        server.wait("slow", timeout=0.1)
    assert server.cancel("slow", reason="enough").status == "cancelled"
    assert server.wait(run).status == "cancelled"


def test_runs_are_listed_and_chosen(server: penstock.Server) -> None:
    server.run(write("fails.yaml", FAILS), name="chosen")
    assert [run["label"] for run in server.runs(name="chosen", status="failed", since="1h")] == ["chosen"]
    assert server.runs(name="chosen", status="completed") == []
    assert [run["label"] for run in server.runs(kind="playbook", label="chosen", text="FAILS.yaml", until="0m")] == [
        "chosen"
    ]
    assert server.runs(label="chosen", kind="job") == []
    assert server.runs(name="chosen", since=datetime.now(UTC) + timedelta(hours=1)) == []
    with pytest.raises(penstock.Refused, match="is no time"):
        server.runs(since="yesterday")


def test_rows_that_a_server_kept_are_read_here(server: penstock.Server) -> None:
    Path("j.yaml").write_text(JOB)
    run = server.run("j.yaml", keep=["rows", "few"])
    assert run.ok, run.error
    assert run.rows("rows").arrow().num_rows == 3000
    assert [(row["n"], str(row["price"])) for row in server.rows(run, "few.main")] == [
        (0, "0.00"),
        (1, "0.25"),
        (2, "0.50"),
    ]
    with pytest.raises(penstock.Refused, match="the job has no component `nobody`"):
        server.run("j.yaml", keep=["nobody"])
    with pytest.raises(penstock.Refused, match="were not kept"):
        server.run("j.yaml").rows("few")


def test_a_document_of_the_catalog_is_run_by_its_path(server: penstock.Server, running: Running) -> None:
    from penstock.remote.client import Client, at

    body = {"text": document(HELLO)}
    Client(running.url).ask("PUT", at("documents", "from", "python"), body=body, is_safe=True)
    assert server.run("from/python").result == "hello world"


def test_what_is_no_server_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(penstock.Refused, match="is not the URL of a server"):
        penstock.connect("localhost:8470")
    with pytest.raises(penstock.Unavailable, match="no server answers"):
        penstock.connect("http://127.0.0.1:9").runs()


def test_the_code_about_a_server_on_the_page_is_true(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = DOCS / "how-to" / "embedding.md"
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "yaml"):
        assert block.file is not None
        Path(block.file).write_text(block.text, encoding="utf-8")
    (code,) = (block.text for block in blocks(page, "py"))
    with serving(tmp_path_factory.mktemp("page")) as running:
        address = 'penstock.connect("http://127.0.0.1:8470", token="pen_…")'
        assert address in code
        exec(code.replace(address, f"penstock.connect({running.url!r})"), {"penstock": penstock})
