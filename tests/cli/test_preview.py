"""preview: the rows of one port, in and around joblets, without any effect; and what it says when there are none to show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.cli.jobs import write_job
from tests.cli.support import call, process

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]

CLEAN = """
kind: Joblet
params: {least: 10}
inputs: {rows: keep.input}
outputs: {kept: inner.big, left: keep.reject}
components:
  - {name: keep, type: filter, params: {where: "n >= {{ params.least }}"}}
  - {name: aside, type: write_csv, params: {path: aside.csv}}
  - {name: inner, type: "@double"}
connections:
  data: [keep.main -> inner.rows, keep.main -> aside.input]
"""
DOUBLE = """
kind: Joblet
inputs: {rows: twice.input}
outputs: {big: twice.main}
components:
  - {name: twice, type: derive, params: {columns: {n: n * 2}}}
"""
JOB = """
kind: Job
components:
  - {name: numbers, type: fixed_rows, params: {columns: [n], rows: [[5], [10], [20]]}}
  - {name: orders, type: "@clean"}
  - {name: last, type: derive, params: {columns: {n: n + 1}}}
  - {name: load, type: write_csv, params: {path: out.csv}}
connections:
  data: [numbers.main -> orders.rows, orders.kept -> last.input, last.main -> load.input]
"""


@pytest.fixture
def job() -> str:
    write_job("double.yaml", DOUBLE)
    write_job("clean.yaml", CLEAN)
    return write_job("job.yaml", JOB)


def numbers(capsys: Capture, job: str, wanted: str) -> tuple[list[int], str]:
    found = call(capsys, "preview", job, wanted, "--json").json
    assert found["exit_code"] == 0, found
    return [row["n"] for row in found["rows"]], found["made_by"]


@cases(
    "wanted, rows, made_by",
    [
        ("orders", [20, 40], "orders.__inner.__twice.main"),
        ("orders.kept", [20, 40], "orders.__inner.__twice.main"),
        ("orders.left", [5], "orders.__keep.reject"),
        ("orders.__keep", [10, 20], "orders.__keep.main"),
        ("orders.__keep.reject", [5], "orders.__keep.reject"),
        ("orders.__inner", [20, 40], "orders.__inner.__twice.main"),
        ("orders.__inner.__twice", [20, 40], "orders.__inner.__twice.main"),
        ("orders.__aside", [10, 20], "orders.__keep.main"),
        ("last", [21, 41], "last.main"),
        ("load", [21, 41], "last.main"),
        ("load.input", [21, 41], "last.main"),
    ],
)
def test_a_joblet_call_and_what_lies_in_it_can_be_previewed(
    capsys: Capture, job: str, wanted: str, rows: list[int], made_by: str
) -> None:
    assert numbers(capsys, job, wanted) == (rows, made_by)
    assert not Path("aside.csv").exists(), "what a joblet writes beside the rows is not written"
    assert not Path("out.csv").exists()
    assert not Path(".penstock").exists(), "looking leaves nothing behind"


def test_a_preview_says_who_has_made_the_rows_when_it_was_somebody_else(capsys: Capture, job: str) -> None:
    assert call(capsys, "preview", job, "orders").err == "2 rows of orders, made by orders.__inner.__twice.main\n"
    assert call(capsys, "preview", job, "last", "--rows", "1").err == "1 of 2 rows of last\n"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("orders.__kep", "the job has no component `orders.__kep`; did you mean `orders.__keep`?"),
        ("orders.kep", "`orders` has no output `kep`; did you mean `kept`?"),
        ("numbers.__x", "`numbers` has none inside it"),
        ("last.left", "`last` has no output `left`"),
        ("load.reject", "only what it reads can be shown, and it has no input `reject`"),
    ],
)
def test_a_preview_of_what_is_not_there_is_refused_with_what_there_is(
    capsys: Capture, job: str, wanted: str, said: str
) -> None:
    told = call(capsys, "preview", job, wanted)
    assert (told.code, said in told.err) == (2, True), told.err


BODIES = """
context: {n: 3}
components:
  - {name: src, type: fixed_rows, params: {columns: [id, name], rows: [[1, a], [2, b]]}}
  - {name: other, type: fixed_rows, params: {columns: [id, more], rows: [[1, x], [2, y]]}}
  - {name: it, type: iterate_rows}
  - {name: begin, type: generate_rows, params: {count: "{{ context.n }}", columns: {k: "i * {{ iteration.item.id }}"}}}
  - {name: deep, type: iterate_list, params: {items: [p, q]}}
  - {name: rows, type: fixed_rows, params: {columns: [v], rows: [["{{ iteration.item }}-{{ iteration.parent.item.name }}"]]}}
  - {name: kept, type: filter, params: {where: "v is not null"}}
  - {name: joined, type: join, params: {on: [id]}}
  - {name: written, type: write_csv, params: {path: never.csv}}
  - {name: none, type: iterate_list, params: {items: []}}
  - {name: nothing, type: fixed_rows, params: {columns: [v], rows: [[1]]}}
connections:
  data: |
    src -> it
    it.item -> joined.main
    other -> joined.lookup
    joined.main -> written
    rows -> kept
  control: |
    it (iterate) begin
    it (iterate) deep
    deep (iterate) rows
    none (iterate) nothing
"""


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        ("begin", [{"k": 0}, {"k": 1}, {"k": 2}]),
        ("kept", [{"v": "p-a"}]),
        ("joined", [{"id": 1, "name": "a", "more": "x"}]),
        ("written", [{"id": 1, "name": "a", "more": "x"}]),
    ],
)
def test_a_component_of_a_body_is_previewed_with_the_first_element(
    capsys: Capture, wanted: str, rows: list[Any]
) -> None:
    told = call(capsys, "preview", write_job("bodies.yaml", BODIES), wanted, "--json")
    assert told.code == 0, told.err
    assert told.json["rows"] == rows
    assert not Path("never.csv").exists()


def test_an_iterator_has_no_rows_and_a_body_none_without_elements(capsys: Capture) -> None:
    file = write_job("bodies.yaml", BODIES)
    told = call(capsys, "preview", file, "it")
    assert (told.code, "has no rows of its own outside its iterations" in told.err) == (2, True)
    empty = call(capsys, "preview", file, "nothing")
    assert (empty.code, "has no elements" in empty.err) == (2, True)


def test_a_preview_that_fails_names_the_component_and_its_place_and_is_a_failed_run(capsys: Capture, job: str) -> None:
    write_job("double.yaml", DOUBLE.replace("n * 2", "CAST('x' || n AS INTEGER)"))
    told = call(capsys, "preview", job, "last")
    assert told.code == 1
    first, *rest = told.err.splitlines()
    assert first.startswith("double.yaml:6:12: error in component `orders.__inner.__twice`: ")
    assert "x10" in "\n".join(rest)
    found = call(capsys, "preview", job, "last", "--json")
    assert (found.code, found.json["status"], found.json["exit_code"]) == (1, "failed", 1)
    error = found.json["error"]
    assert (error["component"], error["file"], error["line"], error["column"]) == (
        "orders.__inner.__twice",
        "double.yaml",
        6,
        12,
    )


def test_a_preview_finds_the_secrets_of_the_state_folder(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("hunter2\n"))
    call(capsys, "keychain", "set", "door")
    text = """
    kind: Job
    keychain: [{name: word, kind: secret_manager, provider: local, key: door}]
    components:
      - name: rows
        type: python
        params: {code: "output = [{'n': len('{{ keychain.word }}')}]"}
    """
    assert numbers(capsys, write_job("job.yaml", text), "rows")[0] == [7]


def test_a_preview_reads_a_job_from_a_pipe_once() -> None:
    text = "components: [{name: a, type: fixed_rows, params: {columns: [n], rows: [[1]]}}]"
    found = process("preview", "/dev/stdin", "a", "--json", input=text)
    assert (found.code, found.json["rows"]) == (0, [{"n": 1}])
