"""validate, lint, plan, graph, new, schema, tools: all about documents, nothing is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import HELLO, call, write

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]


def test_validate_reports_all_files_and_exits_2_when_one_is_wrong(capsys: Capture) -> None:
    good = write("good.yaml", HELLO)
    Path("bad.yaml").write_text("kind: Pod\n")
    assert call(capsys, "validate", good).code == 0
    both = call(capsys, "validate", good, "bad.yaml", "missing.yaml")
    assert both.code == 2
    assert "good.yaml: valid" in both.err
    assert "bad.yaml:1:7: error[" in both.err
    assert "there is no file `missing.yaml`" in both.err
    told = call(capsys, "validate", good, "bad.yaml", "--json").json
    assert [(one["file"], one["status"]) for one in told["files"]] == [("good.yaml", "valid"), ("bad.yaml", "invalid")]
    assert told["exit_code"] == 2
    assert not Path(".penstock").exists()


def test_validate_shows_warnings_unless_it_is_to_be_quiet(capsys: Capture) -> None:
    file = write("labels.yaml", "- step: start\n  tool:\n    - greet: {kind: noop}")
    validated = call(capsys, "validate", file)
    assert (validated.code, "warning[" in validated.err) == (0, True)
    quiet = call(capsys, "validate", file, "--quiet")
    assert (quiet.code, "warning[" in quiet.err, "1 warning not shown" in quiet.err) == (0, False, True)
    linted = call(capsys, "lint", file)
    assert (linted.code, "warning[" in linted.err) == (0, True)
    assert call(capsys, "lint", file, "--strict").code == 2


@pytest.mark.clause("P5.1")
def test_plan_prints_the_lowered_form(capsys: Capture) -> None:
    file = write("one.yaml", "- step: start\n  tool: {kind: noop, value: 1}")
    planned = call(capsys, "plan", file, "--json")
    assert planned.json["steps"][0]["tool"][0]["name"] == "start_task"
    assert "name: start_task" in call(capsys, "plan", file).out


def test_graph_draws_mermaid_dot_and_svg(capsys: Capture) -> None:
    file = write("hello.yaml", HELLO)
    assert call(capsys, "graph", file).out.startswith("flowchart")
    assert call(capsys, "graph", file, "--format", "dot").out.startswith("digraph")
    assert "<svg" in call(capsys, "graph", file, "--format", "svg").out
    assert call(capsys, "graph", file, "-o", "picture.svg").code == 0
    assert "<svg" in Path("picture.svg").read_text()
    assert call(capsys, "graph", file, "-o", "no/such/folder.svg").code == 2
    assert call(capsys, "graph", file, "--format", "png").code == 2


def test_new_writes_a_playbook_that_is_free_of_warnings_and_runs(capsys: Capture) -> None:
    assert call(capsys, "new", "first").code == 0
    linted = call(capsys, "lint", "first.yaml", "--strict", "--json")
    assert linted.json["problems"] == []
    done = call(capsys, "run", "first.yaml", "--set", "who=you", "--json")
    assert done.json["result"] == {"text": "Hello, you!", "squares": [9, 1, 4], "sum": 14}


def test_new_replaces_nothing_unless_it_is_told_to(capsys: Capture) -> None:
    Path("mine.yaml").write_text("precious")
    refused = call(capsys, "new", "mine")
    assert (refused.code, "--force" in refused.err) == (2, True)
    assert Path("mine.yaml").read_text() == "precious"
    assert call(capsys, "new", "mine", "--force").code == 0
    assert call(capsys, "new", "../bad name").code == 2
    assert call(capsys, "new", "no/such/folder").code == 2


def test_schema_is_a_json_schema_with_descriptions(capsys: Capture) -> None:
    schema = call(capsys, "schema")
    assert schema.code == 0
    assert json.loads(schema.out)["$schema"].startswith("https://json-schema.org/")


def test_tools_lists_every_kind(capsys: Capture) -> None:
    listed = call(capsys, "tools").out
    assert all(kind in listed for kind in ("http", "python", "postgres", "shell", "noop"))
    kinds = [tool["kind"] for tool in call(capsys, "tools", "--json").json["tools"]]
    assert kinds[:2] == ["http", "python"]


def test_a_tool_is_shown_with_its_parameters_and_an_example(capsys: Capture) -> None:
    shown = call(capsys, "tools", "http").out
    assert "url" in shown
    assert "(string, required)" in shown
    assert "example" in shown
    described = call(capsys, "tools", "http", "--json").json
    url = next(param for param in described["params"] if param["name"] == "url")
    assert (url["required"], url["types"]) == (True, ["string"])
    assert "\n  - name: fetch\n    kind: http\n" in shown  # as it can be pasted
    mistyped = call(capsys, "tools", "htp")
    assert (mistyped.code, "did you mean `http`" in mistyped.err) == (2, True)


def test_the_fields_of_structured_parameters_are_shown(capsys: Capture) -> None:
    shown = call(capsys, "tools", "python").out
    assert "limits     (Limits)" in shown
    assert "\n  cpu_s      (number)  CPU seconds" in shown
    assert "PostgresTarget" in call(capsys, "tools", "transfer").out


def test_the_workbook_is_among_the_tools(capsys: Capture) -> None:
    assert "workbook" in call(capsys, "tools").out
    shown = call(capsys, "tools", "workbook")
    assert (shown.code, "task: greet" in shown.out) == (0, True)
    assert call(capsys, "tools", "workbook", "--json").json["kind"] == "workbook"


def test_validate_follows_calls_and_takes_inputs_as_run_does(capsys: Capture) -> None:
    Path("sub").mkdir()
    write("sub/child.yaml", "- step: start\n  tool: [{name: a, kind: nopo}]")
    parent = write("parent.yaml", "- step: start\n  tool: [{name: c, kind: playbook, path: sub/child}]")
    validated = call(capsys, "validate", parent)
    assert validated.code == 2
    assert "sub/child.yaml:" in validated.err
    assert "- step: start" in validated.err or "kind: nopo" in validated.err
    assert "called: parent.yaml → start → sub/child.yaml" in validated.err
    told = call(capsys, "validate", parent, "--json").json["problems"]
    assert [one["calls"] for one in told] == ["parent.yaml → start → sub/child.yaml"]
    good = write("good.yaml", HELLO)
    refused = call(capsys, "lint", good, "--set", "zzz=1")
    assert (refused.code, "has no `zzz`" in refused.err) == (2, True)


def test_validate_warns_of_a_secret_that_a_run_here_would_miss(capsys: Capture) -> None:
    file = write("secret.yaml", "- step: start\n  tool: [{name: c, kind: http, url: 'http://x/', auth: tokn}]")
    validated = call(capsys, "validate", file)
    assert validated.code == 0
    assert "warning[Y0505]: keychain entry `tokn`: no such secret" in validated.err
    ran = call(capsys, "run", file)
    assert (ran.code, "keychain entry `tokn` (secret.yaml:" in ran.err) == (2, True)
    assert call(capsys, "validate", file, "--strict").code == 2
