"""A schema that a document declares for an output is known before the run, to the component and to what comes after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.dialects.problems import Problem
from tests.components.harness import REGISTRY, schema
from tests.jobs import problems


def _found(source: str, where: str, folder: Path) -> list[Problem]:
    text = f"""\
    components:
      - name: source
        {source}
        schema: [{{name: id, type: integer}}, {{name: day, type: date}}]
      - {{name: kept, type: filter, params: {{where: "{where}"}}}}
      - {{name: show, type: log_rows}}
    connections:
      data: |
        source.main -> kept.input
        kept.main -> show.input
    """
    return [one for one in problems(text, folder) if one.severity.value == "error"]


_UNKNOWN = pytest.mark.parametrize(
    "source",
    [
        "{type: python, params: {code: 'output = []'}}",
        "{type: read_csv, params: {path: 'later.csv'}}",
        "{type: read_json, params: {path: '{{ global.path }}'}}",
        "{type: http_rows, params: {url: 'http://localhost:1/'}}",
        "{type: read_xml, params: {path: later.xml, rows: order}}",
    ],
)


@_UNKNOWN
def test_columns_are_checked_against_what_a_source_of_unknown_columns_declares(source: str, tmp_path: Path):
    fields = source[1:-1].replace(", params:", "\n        params:")
    assert _found(fields, "year(day) > 2000 AND id > 1", tmp_path) == []
    assert ["no column `idd`" in one.message for one in _found(fields, "idd > 1", tmp_path)] == [True]


def test_a_reader_is_told_before_the_run_what_is_declared(tmp_path: Path):
    (tmp_path / "in.csv").write_text("id,name\n1,a\n", encoding="utf-8")
    declared = {"main": schema(id="BIGINT", nme="VARCHAR")}
    found = REGISTRY.infer("read_csv", {"path": "in.csv"}, {}, ("main",), tmp_path, declared)
    assert [one.message for one in found.mistakes if one.kind == "column"]
    good = {"main": schema(name="VARCHAR", id="DOUBLE")}
    found = REGISTRY.infer("read_csv", {"path": "in.csv"}, {}, ("main",), tmp_path, good)
    assert (found.mistakes, found.outputs["main"]) == ((), schema(name="VARCHAR", id="DOUBLE"))
