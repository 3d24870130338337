"""The transfer tool with files and an HTTP server at its ends."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernel.errors import Refused
from penstock.tools.sql.types import EXACT, infer
from tests.cases import cases
from tests.tools.asking import failed
from tests.tools.moving import Move, asked, lines, move, rows
from tests.tools.support import Reply, serve

__all__ = ["move"]


def test_a_file_appears_only_when_it_is_complete(move: Move, tmp_path: Path) -> None:
    source = {"kind": "jsonl", "path": "in.jsonl"}
    (tmp_path / "in.jsonl").write_text('{"a": 1}\n{"a": 2}\nnonsense\n')
    for kind in ("csv", "jsonl", "json", "parquet"):
        (tmp_path / f"out.{kind}").write_text("before")
        failure = failed(move, source, {"kind": kind, "path": f"out.{kind}"}, chunk_rows=1)
        assert (failure.kind, "line 3" in failure.message) == ("decode", True)
        assert (tmp_path / f"out.{kind}").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == [".blobs"]


def test_lines_can_be_added_to_a_file_and_a_failure_takes_them_back(move: Move, tmp_path: Path) -> None:
    target = {"kind": "csv", "path": "out/log.csv", "mode": "append", "null": "-"}
    move(rows((1, "x")), target)
    move(rows((2, None)), target)
    text = "a,b\n1,x\n2,-\n"
    assert (tmp_path / "out" / "log.csv").read_text() == text
    (tmp_path / "in.jsonl").write_text('{"a": 1, "b": 2}\nnonsense\n')
    failed(move, {"kind": "jsonl", "path": "in.jsonl"}, target, chunk_rows=1)
    assert (tmp_path / "out" / "log.csv").read_text() == text


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "parquet"])
def test_a_file_of_a_project_is_not_written(kind: str, move: Move, tmp_path: Path) -> None:
    file = tmp_path / "projects" / ("0" * 64) / "files" / f"shared.{kind}"
    file.parent.mkdir(parents=True)
    file.write_text("before")
    with pytest.raises(Refused, match="is a file of the project"):
        move(rows((1, "x")), {"kind": kind, "path": str(file)})
    assert file.read_text() == "before"


def test_csv_is_read_with_its_quirks(move: Move, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes('\ufeffid;name\n007;"a;""b""\nc"\n\n8;\n9\n'.encode())
    target = {"kind": "sqlite", "path": "t.db", "table": "t", "create": True}
    move({"kind": "csv", "path": "in.csv", "delimiter": ";"}, target)
    assert asked(tmp_path / "t.db", "SELECT * FROM t") == [("007", 'a;"b"\nc'), ("8", None), ("9", None)]
    (tmp_path / "bare.csv").write_text("1,x\n2,NULL\n")
    move({"kind": "csv", "path": "bare.csv", "header": False, "null": "NULL"}, {"kind": "jsonl", "path": "o.jsonl"})
    assert lines(tmp_path / "o.jsonl")[1] == {"column_1": "2", "column_2": None}


@cases(
    "name, content, source, kind, words",
    [
        ("x.csv", b"a,b\n1,2,3\n", {"kind": "csv"}, "columns", "line 2: 3 values for 2 columns"),
        ("x.csv", b"a,a\n1,2\n", {"kind": "csv"}, "columns", "two columns of the name `a`"),
        ("x.csv", b"a\n\xff\n", {"kind": "csv"}, "decode", "utf-8"),
        ("x.csv", b"a\n1\n", {"kind": "csv", "encoding": "martian"}, "parameters", "no encoding `martian`"),
        ("x.json", b'{"a": []}', {"kind": "json"}, "decode", "say in `rows` where the list is"),
        ("x.json", b'[{"a": 1}, {"a": }]', {"kind": "json"}, "decode", "not a JSON list"),
        ("x.json", b'[{"a": 1} {"a": 2}]', {"kind": "json"}, "decode", "expected `,` or `]`"),
        ("x.json", b'[{"a": 1}', {"kind": "json"}, "decode", "expected `,` or `]`"),
        ("x.json", b"[1]", {"kind": "json"}, "parameters", "row 0 is a number"),
        ("x.json", b'{"a": {"b": 5}}', {"kind": "json", "rows": "a.b"}, "parameters", "no list at `a.b`"),
        ("x.jsonl", b'{"a": 1}\n[]\n', {"kind": "jsonl"}, "parameters", "row 1 is"),
        ("x.parquet", b"no", {"kind": "parquet"}, "database", "parquet"),
        ("y", b"", {"kind": "csv", "path": "missing.csv"}, "not_found", "missing.csv"),
        ("y", b"", {"kind": "csv", "path": "."}, "is_directory", "is a folder"),
    ],
)
def test_files_that_cannot_be_read_are_explained(
    move: Move, tmp_path: Path, name: str, content: bytes, source: dict[str, Any], kind: str, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    failure = failed(move, {"path": name, **source}, {"kind": "jsonl", "path": "out.jsonl"})
    assert words in failure.message
    assert failure.kind == kind
    assert not (tmp_path / "out.jsonl").exists()


def test_a_json_list_is_read_element_by_element_at_any_place(move: Move, tmp_path: Path) -> None:
    big = [{"n": index, "text": "x" * (index * 7 % 9000), "deep": {"[": "]},"}} for index in range(400)]
    (tmp_path / "top.json").write_text("\n " + json.dumps(big, indent=1))
    (tmp_path / "deep.json").write_text(json.dumps({"data": [{"items": big}]}))
    for source in ({"path": "top.json"}, {"path": "deep.json", "rows": "data.0.items"}):
        move({"kind": "json", **source}, {"kind": "jsonl", "path": "out.jsonl"}, chunk_rows=64)
        assert lines(tmp_path / "out.jsonl") == big


def test_an_http_response_is_a_source(move: Move, tmp_path: Path) -> None:
    bodies = {
        "/json": {"data": [{"a": 1}, {"a": 2}]},
        "/jsonl": '{"a": 1}\n{"a": 2}\n',
        "/csv": "a\n1\n2\n",
    }
    with serve(lambda request: Reply(200, bodies[request.path]) if request.path in bodies else Reply(404)) as server:
        for name, more in {"json": {"rows": "data"}, "jsonl": {}, "csv": {}}.items():
            source = {"kind": "http", "url": f"{server.url}/{name}", "format": name, "headers": {"x-who": "me"}, **more}
            move(source, {"kind": "jsonl", "path": "out.jsonl"})
            assert [int(row["a"]) for row in lines(tmp_path / "out.jsonl")] == [1, 2]
        failure = failed(move, {"kind": "http", "url": f"{server.url}/nothing"}, {"kind": "jsonl", "path": "no.jsonl"})
    assert (failure.kind, failure.helpers["http"]["status"]) == ("http_status", 404)
    assert server.requests[0].headers["x-who"] == "me"


def test_a_column_that_comes_late_is_not_dropped_in_silence(move: Move, tmp_path: Path) -> None:
    source = {"kind": "rows", "rows": [{"a": 1}, {"a": 2, "late": 3}]}
    target = {"kind": "jsonl", "path": "out.jsonl"}
    failure = failed(move, source, target, chunk_rows=1)
    assert (failure.kind, "`late`" in failure.message) == ("columns", True)
    move(source, target, chunk_rows=1, columns=["a", "late"])
    assert lines(tmp_path / "out.jsonl") == [{"a": 1, "late": None}, {"a": 2, "late": 3}]


def test_memory_does_not_grow_with_the_number_of_rows(move: Move, tmp_path: Path) -> None:
    source = {"kind": "duckdb", "query": "SELECT i AS a, repeat('x', 400) AS b FROM range(10000) r(i)"}
    target = {"kind": "csv", "path": "out.csv"}
    move(source, target, chunk_rows=250)
    tracemalloc.start()
    move(
        {"kind": "csv", "path": "out.csv"},
        {"kind": "sqlite", "path": "t.db", "table": "t", "create": True},
        chunk_rows=250,
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "out.csv").stat().st_size > 4_000_000
    assert peak < 2_000_000


@given(st.lists(st.none() | st.integers(min_value=-(2**63), max_value=2**63 - 1), min_size=1))
def test_whole_numbers_are_recognised_in_text_exactly_when_they_come_back_the_same(values: list[int | None]) -> None:
    texts = [None if value is None else str(value) for value in values]
    expected = "VARCHAR" if not any(value is not None for value in values) else "BIGINT"
    if all(value is None or abs(value) < 10**18 for value in values):
        assert infer(texts, "text") == expected


@cases(
    "values, kind",
    [
        (["1", "007"], "VARCHAR"),
        (["1", "2.50"], EXACT),
        (["true", "FALSE", None], "BOOLEAN"),
        (["2024-01-02"], "DATE"),
        (["2024-01-02", "2024-01-02T03:04"], "TIMESTAMP"),
        (["2024-01-02 03:04:05Z"], "TIMESTAMP WITH TIME ZONE"),
        (["1e5"], "VARCHAR"),
        ([None], "VARCHAR"),
    ],
)
def test_types_of_text_are_inferred_with_care(values: list[Any], kind: str) -> None:
    assert infer(values, "text") == kind
    assert infer(values, "sql") == "VARCHAR"
