"""After-variables are there for every link that may ask: of ports that nobody reads, and of components that failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.components.harness import run
from tests.jobs import Ran, run_job

_ROWS = "{name: rows, type: fixed_rows, params: {columns: [id, kind], rows: [[1, a], [2, b], [2, a], [4, c]]}}"


def _job(component: str, port: str, folder: Path, *, when: str, source: str = "rows.main -> used.input") -> Ran:
    text = f"""\
    components:
      - {_ROWS}
      - {{name: used, {component}}}
      - {{name: show, type: log_rows}}
      - {{name: told, type: warn, params: {{message: "{{{{ global.used.{port} }}}} refused"}}}}
    connections:
      data: |
        {source}
        used.{"unique" if "unique" in component else "main"} -> show.input
      control: |
        used (if 1: "{when}") told
    """
    return run_job(text, folder)


@pytest.mark.clause("J2.4")
@pytest.mark.parametrize(
    ("component", "port", "count"),
    [
        ("type: filter, params: {where: id > 1}", "reject", 1),
        ("type: unique, params: {by: [id]}", "duplicate", 1),
        ("type: convert_types, params: {columns: {kind: integer}, on_error: skip}", "reject", 4),
        ("type: lookup, params: {on: {kind: k}, how: inner, rows: [{k: a, name: one}]}", "reject", 2),
        ("type: python, params: {mode: row, code: \"emit('reject', row)\"}", "reject", 4),
    ],
)
def test_a_link_may_ask_for_the_rows_of_a_port_that_nobody_reads(component: str, port: str, count: int, tmp_path: Path):
    name = f"NB_LINE_OUT_{port}"
    ran = _job(component, name, tmp_path, when=f"{name} == {count}")
    assert ran.status == "completed", ran.error
    assert ran.states()["told"] == "OK"


def test_a_port_that_nobody_reads_or_asks_for_has_sent_no_rows(tmp_path: Path):
    assert run("filter", {"where": "id > 1"}, {"input": [{"id": 1}]}, connected=["main"]).after == {
        "NB_LINE_OUT_reject": 0
    }
    ran = _job("type: filter, params: {where: id > 1}", "NB_LINE", tmp_path, when="NB_LINE > 0")
    assert ran.payloads("component.ok")[1]["after"]["NB_LINE_OUT_reject"] == 0


def test_a_reader_whose_reject_port_is_only_asked_about_still_fails_on_a_bad_line(tmp_path: Path):
    (tmp_path / "in.csv").write_text("id\n1\nx\n", encoding="utf-8")
    component = "type: read_csv, params: {path: in.csv, types: {id: integer}}"
    ran = _job(component, "NB_LINE_OUT_reject", tmp_path, when="NB_LINE_OUT_reject > 0", source="")
    assert ran.states()["used"] == "ERROR"


_CHILDREN = {
    "run_job": "components: [{name: d, type: die, params: {message: no, code: 7}}]",
    "playbook": "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p}\nworkflow:\n"
    "  - {step: start, tool: [{name: t, kind: python, code: 'raise ValueError(1)'}]}",
}


@pytest.mark.parametrize(("type", "code"), [("run_job", 7), ("playbook", 1)])
def test_how_a_child_failed_is_known_on_the_error_path(type: str, code: int, tmp_path: Path):
    (tmp_path / "child.yaml").write_text(_CHILDREN[type], encoding="utf-8")
    text = f"""\
    components:
      - {{name: child, type: {type}, params: {{path: child.yaml}}}}
      - name: told
        type: set_global
        params: {{values: {{how: "{{{{ global.child.CHILD_STATUS }}}} {{{{ global.child.CHILD_EXIT_CODE }}}}"}}}}
    connections:
      control: child (error) told
    """
    ran = run_job(text, tmp_path)
    assert ran.globals["how"] == f"failed {code}"


def test_what_a_command_exited_with_is_known_on_the_error_path(tmp_path: Path):
    text = """\
    components:
      - {name: command, type: shell, params: {command: "echo why >&2; exit 5"}}
      - name: told
        type: set_global
        params: {values: {how: "{{ global.command.EXIT_CODE }} {{ global.command.STDERR | trim }}"}}
    connections:
      control: command (error) told
    """
    assert run_job(text, tmp_path).globals["how"] == "5 why"
