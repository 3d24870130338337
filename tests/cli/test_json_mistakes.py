"""JSON that cannot be read: line, column and the line itself, wherever it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.inputs import workload
from penstock.cli.parser import CommandLineError
from penstock.ports.json_text import json_mistake, unwritable
from penstock.ports.results import encode
from tests.engine import play

WRONG = '{\n  "a": 1,\n  "b": 2 "c"\n}\n'
WHERE = 'line 3, column 10: expecting \',\' delimiter: `"b": 2 "c"`'


def test_the_payload_names_the_line_whether_it_is_text_or_a_file(tmp_path: Path) -> None:
    with pytest.raises(CommandLineError, match="`--payload` is not JSON: line 1, column 6: expecting value"):
        workload('{"a":}', [])
    file = tmp_path / "in.json"
    file.write_text(WRONG, encoding="utf-8")
    with pytest.raises(CommandLineError) as caught:
        workload(f"@{file}", [])
    assert WHERE in str(caught.value)


@pytest.mark.parametrize(
    "tool",
    ["{kind: files, action: read, path: in.json, format: json}", "{kind: shell, command: cat in.json, output: json}"],
)
def test_a_tool_that_reads_json_names_the_line(tool: str, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(WRONG, encoding="utf-8")
    run = play(f"- step: start\n  tool: {tool}", tmp_path)
    assert WHERE in run.error["message"]


def test_what_is_not_json_for_other_reasons_is_said_too() -> None:
    error = ValueError("odd")
    assert json_mistake(b"\xff", error) == "it is not UTF-8: byte 0 is 0xff"
    assert json_mistake("[NaN]", error) == "`NaN` is not a value of JSON"
    assert json_mistake("[1]", error) == "odd"
    assert json_mistake('{"password": hunter2}', error, quoted=False) == "line 1, column 14: expecting value"
    assert len(json_mistake("[" + "1," * 500 + "]", error)) < 160


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"files": [{"name": "ok"}, {"name": "a\udcffb"}]},
            "`result.files[1].name`: character 2 of the text `a\\udcffb`",
        ),
        (["é" * 100 + "\ud800"], "`result[0]`: character 101 of the text"),
        ({"\ud800": 1}, "`a key of result`: character 1 of the text `\\ud800`"),
    ],
)
def test_a_text_that_cannot_be_written_is_told_with_its_place(value, message):
    with pytest.raises(UnicodeEncodeError) as caught:
        encode(value)
    assert unwritable(value, "result", caught.value).startswith(message)
