"""Scripts that a task names: files of the document and of the caller, text in the document, web servers."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.tools import scripts
from penstock.tools.addresses import PUBLIC_ONLY
from penstock.tools.base import Settings, ToolFailure
from penstock.tools.scripts import Script, ScriptSource, text_of
from tests.cases import cases
from tests.tools.running import PATIENCE, Runner
from tests.tools.support import Reply, Request, make_call, serve


@pytest.fixture(params=["thread", "process"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    for folder in ("document/lib", "caller/lib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "document/lib/own.py").write_text("result = [a, 'document']\n")
    (tmp_path / "caller/lib/own.py").write_text("result = [a, 'caller']\n")
    (tmp_path / "caller/lib/theirs.py").write_text("result = [a, __file__]\n")
    return Runner("python", tmp_path / "document", isolation=request.param, args={"a": 1})


# ---- files


def test_a_mapping_names_a_file_as_text_does(run: Runner):
    assert run({"script": {"uri": "lib/own.py", "source": {"type": "file"}}}).result == [1, "document"]
    assert run({"script": {"uri": "lib/own.py"}}).result == [1, "document"]


def test_a_file_may_be_a_url(run: Runner, tmp_path: Path):
    assert run({"script": {"uri": f"file://{tmp_path}/document/lib/own.py"}}).result == [1, "document"]
    ended = run({"script": "s3://bucket/own.py"})
    assert (ended.kind, ended.message) == (
        "unsupported_scheme",
        "`s3://` is not supported here: give a local path or a `file://` URL",
    )


def test_a_file_that_is_not_beside_the_document_is_read_in_the_callers_folder_and_that_is_said(
    run: Runner, tmp_path: Path
):
    caller = tmp_path / "caller"
    for script in ("lib/theirs.py", {"uri": "lib/theirs.py", "source": {"type": "file"}}):
        ended = run({"script": script}, caller=caller)
        assert ended.result == [1, f"{caller}/lib/theirs.py"]
        line = f"the script is read in `{caller}`: `lib/theirs.py` is there, and not beside the document"
        assert ended.said == [line]


def test_a_file_beside_the_document_comes_before_one_of_the_caller(run: Runner, tmp_path: Path):
    ended = run({"script": {"uri": "lib/own.py"}}, caller=tmp_path / "caller")
    assert (ended.result, ended.said) == ([1, "document"], [])


def test_a_file_that_is_nowhere_is_named_with_both_places(run: Runner, tmp_path: Path):
    ended = run({"script": {"uri": "none.py"}}, caller=tmp_path / "caller")
    assert ended.kind == "not_found"
    assert ended.message == (
        f"there is no script `none.py` (looked for `{tmp_path}/document/none.py` and `{tmp_path}/caller/none.py`)"
    )


def test_a_folder_is_no_script(run: Runner):
    ended = run({"script": {"uri": "lib"}})
    assert (ended.kind, ended.message) == ("not_found", "the script `lib` cannot be read: Is a directory")


# ---- text


def test_a_script_can_be_text_of_the_document(run: Runner):
    code = "def main(a):\n    return a + 1"
    assert run({"script": {"source": {"type": "inline", "code": code}}}).result == 2
    assert run({"script": {"uri": "ignored", "code": code, "source": {"type": "inline"}}}).result == 2


def test_an_error_in_text_of_the_document_names_its_line(run: Runner):
    ended = run({"script": {"source": {"type": "inline", "code": "x = 1\n1 / 0"}}})
    assert ended.message == "ZeroDivisionError: division by zero (line 2 of `code`)"


# ---- web servers


def _served(request: Request) -> Reply:
    if request.path == "/moved.py":
        return Reply(302, headers={"location": "/lib/x.py?token=s3cr3t"})
    if request.path == "/gone.py":
        return Reply(404, "not here")
    if request.path == "/empty.py":
        return Reply(204)
    if request.path == "/latin.py":
        return Reply(200, "# coding: latin-1\nresult = 'é'\n".encode("latin-1"))
    if request.path == "/long.py":
        return Reply(200, iter([b"#" * 100] * 100))
    return Reply(200, f"result = [a, {request.method!r}, {request.headers.get('x-key')!r}]\n1 / zero\n")


def test_a_script_can_come_from_a_web_server(run: Runner):
    with serve(_served) as server:
        source = {"type": "http", "endpoint": f"{server.url}/x.py", "method": "POST", "headers": {"x-key": "k"}}
        args = {"a": 1, "zero": 1}
        assert run({"script": {"source": source}, "args": args}).result == [1, "POST", "k"]
        assert (
            run({"script": {"uri": f"{server.url}/x.py", "source": {"type": "http"}}, "args": args}).result[1] == "GET"
        )
        assert run({"script": {"uri": f"{server.url}/empty.py", "source": {"type": "http"}}}).result is None
        assert run({"script": {"uri": f"{server.url}/latin.py", "source": {"type": "http"}}}).result == "é"


def test_an_error_in_a_script_of_a_web_server_names_it_without_its_query(run: Runner):
    with serve(_served) as server:
        ended = run(
            {"script": {"uri": f"{server.url}/moved.py", "source": {"type": "http"}}, "args": {"a": 1, "zero": 0}}
        )
    assert ended.kind == "exception"
    assert f"(line 2 of `{server.url}/lib/x.py" in ended.message
    assert "s3cr3t" not in f"{ended.message}{ended.detail}"


def test_a_web_server_that_does_not_give_the_script_is_a_failure_and_nothing_runs(
    run: Runner, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scripts, "MAX_BYTES", 5000)
    with serve(_served) as server:
        gone = run({"script": {"uri": f"{server.url}/gone.py", "source": {"type": "http"}}})
        assert (gone.kind, gone.message) == (
            "http_status",
            f"the script cannot be fetched: GET {server.url}/gone.py answered 404 Not Found: not here",
        )
        long = run({"script": {"uri": f"{server.url}/long.py", "source": {"type": "http"}}})
        assert (long.kind, long.message) == ("too_large", "the script cannot be fetched: it has more than 5,000 bytes")


def test_a_web_server_is_asked_for_no_longer_than_the_source_says(run: Runner):
    is_over = threading.Event()

    def silent(request: Request) -> Reply:
        is_over.wait(PATIENCE)
        return Reply(200, "result = 1")

    with serve(silent) as server:
        ended = run({"script": {"source": {"type": "http", "endpoint": f"{server.url}/x.py", "timeout": 0.2}}})
        is_over.set()
    assert ended.kind == "timeout"
    assert ended.message.startswith("the script cannot be fetched: GET request: not done within 0.2 s")


def test_addresses_that_tasks_may_not_reach_give_no_script(run: Runner):
    with serve(_served) as server:
        source = {"type": "http", "endpoint": f"{server.url}/x.py"}
        ended = run({"script": {"source": source}}, settings=Settings(addresses=PUBLIC_ONLY))
        assert (ended.kind, server.requests) == ("address_refused", [])


# ---- the mapping


@cases(
    "script, says",
    [
        ({"source": {"type": "file"}}, "a script of the type `file` needs its path in `uri`"),
        ({}, "a script of the type `file` needs its path in `uri`"),
        ({"uri": "x", "source": {"type": "inline"}}, "a script of the type `inline` needs its text in `source.code`"),
        ({"source": {"type": "http"}}, "a script of the type `http` needs its URL in `source.endpoint`"),
        ({"uri": "x", "source": {"type": "gcs"}}, "gcs"),
        ({"uri": "x", "source": {"kind": "file"}}, "kind"),
    ],
)
def test_a_mapping_that_names_no_script_is_refused(run: Runner, script: dict[str, Any], says: str):
    ended = run({"script": script})
    assert ended.kind == "parameters"
    assert says in ended.message


def test_other_tools_have_the_text_in_utf_8(tmp_path: Path):
    call = make_call(tmp_path)
    (tmp_path / "some.sql").write_text("\ufeffSELECT 'é'", encoding="utf-8")
    (tmp_path / "latin.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    read = asyncio.run(text_of(Script(uri="some.sql"), call))
    assert (read.text, read.name, read.place) == ("SELECT 'é'", "some.sql", str(tmp_path / "some.sql"))
    inline = Script(source=ScriptSource(type="inline", code="SELECT 1"))
    assert asyncio.run(text_of(inline, call)).text == "SELECT 1"
    with pytest.raises(ToolFailure, match=r"the script `latin\.sql` is not UTF-8"):
        asyncio.run(text_of("latin.sql", call))
