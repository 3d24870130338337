"""`penstock ui` and `run --ui`: the page of a folder as a process, what it takes up and what it leaves alone."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.service import GATED, Api
from tests.cli.children import Child, running
from tests.cli.support import FAILS, HELLO, WAITS, ended, process, started, until_there, write
from tests.engine import document

pytestmark = pytest.mark.usefixtures("folder")
ADDRESS = r"the page: (http://127\.0\.0\.1:\d+)(\S*)/?#token=(\S+)"


@contextmanager
def page(*words: str) -> Iterator[tuple[Child, Api]]:
    with running("ui", *words, "--no-open") as child:
        found = child.until_said(ADDRESS)
        api = Api(found[1], found[3])
        try:
            yield child, api
        finally:
            api.close()


def header(api: Api, run: str) -> Any:
    return api.get(f"/api/executions/{run}/header").json()


def only_run(child: Child, api: Api) -> str:
    found = child.until(lambda: api.get("/api/executions").json()["runs"])
    return str(found[0]["execution_id"])


def submitted(api: Api, file: str) -> str:
    whole = str(Path(file).resolve())
    return str(
        api.post("/api/executions", {"document": {"text": Path(file).read_text(), "file": whole}}).json()[
            "execution_id"
        ]
    )


def test_it_needs_no_state_folder_and_shows_what_runs_in_it_later() -> None:
    with page() as (child, api):
        assert api.get("/api/executions").json() == {"runs": [], "next": None}
        assert api.get("/").headers["content-type"].startswith("text/html")
        process("run", write("hello.yaml", HELLO))
        run = only_run(child, api)
        assert header(api, run)["status"] == "completed"
        assert child.stop(signal.SIGINT) == 0


def test_without_the_token_of_its_address_it_answers_nobody() -> None:
    with page() as (_, api):
        assert httpx2.get(f"{api.url}/api/executions").status_code == 401
        assert httpx2.get(f"{api.url}/api/executions", headers={"Host": "evil.example"}).status_code == 403


def test_it_listens_on_this_machine_only() -> None:
    refused = process("ui", "--no-open", "--listen", "0.0.0.0:0")
    assert (refused.code, "for this machine alone" in refused.err) == (2, True)


def test_the_address_of_the_page_of_a_folder_is_given_again() -> None:
    with page() as (_, api):
        again = process("ui", "--no-open")
        assert again.code == 0
        found = re.search(ADDRESS, again.err)
        assert found is not None
        assert found[1] == api.url
        other = Api(found[1], found[3])
        assert other.get("/api/executions").status_code == 200
        other.close()
    with page("--store", "elsewhere") as (_, api), page() as (_, other):
        assert api.url != other.url


def test_the_browser_is_opened_at_the_address_and_not_waited_for(folder: Path) -> None:
    browser = folder / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {folder}/opened.new && mv {folder}/opened.new {folder}/opened\nexit 1\n'
    )
    browser.chmod(0o755)
    with running("ui", BROWSER=str(browser)) as child:
        found = child.until_said(ADDRESS)
        child.until((folder / "opened").exists)
        assert (folder / "opened").read_text().strip() == f"{found[1]}/#token={found[3]}"


def test_the_folder_of_the_project_is_this_one_or_the_one_that_is_named() -> None:
    write("hello.yaml", HELLO)
    Path("other").mkdir()
    with page() as (_, api):
        assert [one["path"] for one in api.get("/api/files").json()["files"]] == ["hello.yaml"]
    with page("--project", "other", "--store", "elsewhere") as (_, api):
        assert api.get("/api/session").json()["root"] == str(Path("other").resolve())
        assert api.get("/api/files").json()["files"] == []
    assert process("ui", "--project", "nothing").code == 2


# ---- runs of other processes


def test_a_run_of_another_process_is_only_watched_and_can_be_cancelled() -> None:
    going = started("run", write("waits.yaml", WAITS), "--json")
    until_there(Path("waiting"), going)
    with page() as (child, api):
        run = only_run(child, api)
        assert header(api, run)["status"] == "running"
        assert api.post(f"/api/executions/{run}/resume").status_code == 409
        api.post(f"/api/executions/{run}/cancel")
        child.until(lambda: header(api, run)["status"] == "cancelled")
    assert ended(going).json["status"] == "cancelled"


def test_a_run_that_crashed_is_shown_as_such_and_goes_on_when_somebody_resumes_it() -> None:
    going = started("run", write("waits.yaml", WAITS))
    until_there(Path("waiting"), going)
    with page() as (child, api):
        run = only_run(child, api)
        with api.http.stream("GET", "/api/stream", params={"execution": run, "ticks": "true"}) as stream:
            lines = stream.iter_lines()
            next(line for line in lines if '"status":"running"' in line)
            going.kill()
            next(line for line in lines if '"status":"crashed"' in line)
        seen = header(api, run)
        assert (seen["status"], seen["crashed"]) == ("interrupted", True)
        assert "resumed" in seen["reason"]
        assert [one["execution_id"] for one in api.get("/api/executions", status="crashed").json()["runs"]] == [run]
        assert api.get("/api/executions", status="running").json()["runs"] == []
        Path("gate").touch()
        assert api.post(f"/api/executions/{run}/resume").status_code == 202
        child.until(lambda: header(api, run)["status"] == "completed")
        assert api.get(f"/api/executions/{run}").json()["result"] == "finished"
    going.communicate()
    assert Path("marks").read_text() == "x"


def test_a_run_that_crashed_can_be_cancelled_without_going_on() -> None:
    going = started("run", write("waits.yaml", WAITS))
    until_there(Path("waiting"), going)
    going.kill()
    going.communicate()
    with page() as (child, api):
        run = only_run(child, api)
        api.post(f"/api/executions/{run}/cancel")
        child.until(lambda: header(api, run)["status"] == "cancelled")
        assert "playbook.resumed" not in {one["event_type"] for one in api.events(run)}


def test_a_server_goes_on_with_a_run_that_crashed_by_itself() -> None:
    going = started("run", write("waits.yaml", WAITS))
    until_there(Path("waiting"), going)
    going.kill()
    going.communicate()
    Path("gate").touch()
    with running("serve", "--listen", "127.0.0.1:0") as child:
        api = Api(child.url)
        run = only_run(child, api)
        child.until(lambda: header(api, run)["status"] == "completed")
        api.close()


# ---- its own runs


def test_what_it_runs_when_it_is_stopped_is_interrupted_and_can_be_resumed() -> None:
    with page() as (child, api):
        run = submitted(api, write("waits.yaml", WAITS))
        until_there(Path("waiting"), child.process)
        assert child.stop(signal.SIGINT) == 0
    shown = process("show", run, "--json").json
    assert (shown["status"], shown["crashed"]) == ("interrupted", False)
    Path("gate").touch()
    with page() as (child, api):
        assert header(api, run)["status"] == "interrupted"
        api.post(f"/api/executions/{run}/resume")
        child.until(lambda: header(api, run)["status"] == "completed")


def test_when_it_is_killed_its_runs_have_crashed_and_the_command_line_resumes_them() -> None:
    with page() as (child, api):
        run = submitted(api, write("waits.yaml", WAITS))
        until_there(Path("waiting"), child.process)
        child.process.kill()
        child.process.wait()
    Path("gate").touch()
    with page() as (_, api):
        assert header(api, run)["crashed"]
        resumed = process("resume", run, "--json")
        assert (resumed.code, resumed.json["result"]) == (0, "finished")
        assert header(api, run)["status"] == "completed"


ALL = """
keychain:
  - {name: word, kind: bearer, token: {env: WORD}}
workflow:
  - step: start
    tool:
      - name: plugged
        kind: shout
        text: hello
      - name: ask
        kind: http
        url: URL
      - name: job
        kind: job
        path: sub/job
      - name: leak
        kind: python
        args: {word: "{{ keychain.word }}", said: "{{ plugged }}", status: "{{ ask.status }}", job: "{{ job.status }}"}
        code: |
          print("the word is", word)
          result = [said, status, job, len(word)]
"""
SHOUT = """
import penstock


@penstock.tool("shout")
def shout(text: str) -> str:
    return text.upper()
"""
JOB = """
kind: Job
metadata: {name: inner}
components:
  - {name: call, type: "@twice"}
"""
JOBLET = """
kind: Joblet
metadata: {name: twice}
components:
  - {name: read, type: read_csv, params: {path: rows.csv}}
  - {name: show, type: log_rows}
connections:
  data: read.main -> show.input
"""


def test_documents_run_as_they_do_without_a_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With plug-ins, jobs, joblets, secrets and files beside the document, and addresses of this machine."""
    monkeypatch.setenv("WORD", "open sesame")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "shout.py").write_text(SHOUT)
    (folder / "sub").mkdir()
    for name, text in (("job.yaml", JOB), ("twice.yaml", JOBLET), ("rows.csv", "a,b\n1,2\n")):
        (folder / "sub" / name).write_text(text)
    with page() as (child, api):
        Path("all.yaml").write_text(document(ALL).replace("URL", f"{api.url}/health"))
        plain = process("run", "all.yaml", "--json")
        assert (plain.code, plain.json["result"]) == (0, ["HELLO", 200, "completed", 11]), plain.err
        run = submitted(api, "all.yaml")
        child.until(lambda: header(api, run)["status"] != "running")
        shown = api.get(f"/api/executions/{run}").json()
        assert (shown["status"], shown["result"], shown["error"]) == ("completed", plain.json["result"], None)
        assert "the word is ***" in api.get(f"/api/executions/{run}/logs").text
        assert "open sesame" not in api.get(f"/api/executions/{run}/events").text


# ---- beside a run


def test_a_run_with_the_page_ends_with_the_code_of_the_run() -> None:
    for name, text, code in (("hello", HELLO, 0), ("fails", FAILS, 1)):
        with running("run", write(f"{name}.yaml", text), "--ui", "--no-open") as child:
            found = child.until_said(ADDRESS)
            run = found[2].removeprefix("/runs/")
            child.until_said("the page stays open")
            api = Api(found[1], found[3])
            assert header(api, run)["name"] == "test"
            assert api.get("/api/session").json()["root"] == str(Path.cwd())
            api.close()
            assert child.stop(signal.SIGINT) == code


def test_the_rows_of_a_component_of_the_run_beside_the_page_are_counted_while_it_runs() -> None:
    Path("gated.yaml").write_text(GATED.replace("GATE", str(Path("gate").resolve())), encoding="utf-8")
    with running("run", "gated.yaml", "--ui", "--no-open") as child:
        found = child.until_said(ADDRESS)
        run, api = found[2].removeprefix("/runs/"), Api(found[1], found[3])
        child.until(lambda: api.get(f"/api/executions/{run}/moment").status_code == 200)
        api.counted(run, "slow", {"main": 2})
        Path("gate").touch()
        child.until_said("the page stays open")
        assert api.get(f"/api/executions/{run}/moment").json()["nodes"]["slow"]["rows_out"] == {"main": 3}
        api.close()
        assert child.stop(signal.SIGINT) == 0


def test_a_run_beside_a_page_that_is_served_already_is_shown_there() -> None:
    with page() as (_, api):
        done = process("run", write("hello.yaml", HELLO), "--ui", "--no-open")
        assert done.code == 0
        found = re.search(ADDRESS, done.err)
        assert found is not None
        assert found[1] == api.url
        assert header(api, found[2].removeprefix("/runs/"))["status"] == "completed"


def test_a_document_that_cannot_run_opens_no_page() -> None:
    Path("bad.yaml").write_text(document("- step: start\n  tool: [{name: n, kind: nothing}]\n"))
    refused = process("run", "bad.yaml", "--ui", "--no-open")
    assert refused.code == 2
    assert "the page" not in refused.err
    assert not Path(".penstock").exists()


def test_a_signal_while_it_runs_interrupts_the_run_and_leaves_the_page() -> None:
    with running("run", write("waits.yaml", WAITS), "--ui", "--no-open", "--grace", "0") as child:
        until_there(Path("waiting"), child.process)
        found = child.until_said(ADDRESS)
        child.process.send_signal(signal.SIGINT)
        child.until_said("the page stays open")
        api = Api(found[1], found[3])
        run = found[2].removeprefix("/runs/")
        assert header(api, run)["status"] == "interrupted"
        api.close()
        assert child.stop(signal.SIGINT) == 3


def test_a_run_at_a_server_is_shown_on_the_page_of_the_server() -> None:
    with running("serve", "--listen", "127.0.0.1:0") as server:
        done = process("run", write("hello.yaml", HELLO), "--ui", "--no-open", "--server", server.url)
        assert done.code == 0
        assert re.search(rf"the page: {server.url}/runs/\w+$", done.err, re.MULTILINE)
