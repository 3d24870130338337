"""Readers and writers as stages of one query, and the examples of the reference pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.components import runner
from penstock.components.base import PlanCall
from penstock.components.registry import TABLE
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.ports.rows import Relation, Schema, Stage
from tests.cases import cases
from tests.components.harness import REGISTRY, run

TYPES = sorted(type_ for type_, target in TABLE.items() if target.startswith("io."))

SOURCES: list[tuple[str, dict[str, Any]]] = [
    ("read_csv", {"path": "in.csv"}),
    ("read_csv", {"path": "*.csv", "file_column": "from", "types": {"id": "string"}}),
    ("read_json", {"path": "in.json"}),
    ("read_json", {"path": "doc.json", "rows": "data.items"}),
    ("read_parquet", {"path": "in.parquet"}),
    ("fixed_rows", {"columns": ["id", "name"], "rows": [[1, "a"], [2, "b"]]}),
    ("generate_rows", {"count": 100, "columns": {"id": "i", "r": "random()"}}),
]
SINKS: list[tuple[str, dict[str, Any], tuple[str, dict[str, Any]]]] = [
    ("write_csv", {"path": "out/out.csv", "delimiter": ";"}, ("read_csv", {"path": "out/out.csv", "delimiter": ";"})),
    ("write_json", {"path": "out/out.jsonl"}, ("read_json", {"path": "out/out.jsonl"})),
    ("write_parquet", {"path": "out/out.parquet"}, ("read_parquet", {"path": "out/out.parquet"})),
]


def staged(
    type_: str, params: dict[str, Any], inputs: Any, schemas: dict[str, Schema], folder: Path, wanted: Any = ()
) -> Stage:
    component, model = REGISTRY.get(type_), REGISTRY.convert(type_, params)
    connected = frozenset({"main"}) if type_.startswith(("read", "fixed", "generate", "filter")) else frozenset()
    assert runner.wants_fusion(component, model, connected)
    return runner.stage(component, type_, model, inputs, schemas, PlanCall(folder, connected), wanted)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.csv").write_text("id,name\n1,a\n2,b\n")
    (tmp_path / "in.json").write_text('[{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]')
    (tmp_path / "doc.json").write_text('{"data": {"items": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]}}')
    rows = {"input": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]}
    run("write_parquet", {"path": "in.parquet"}, rows, connected=[], folder=tmp_path)
    return tmp_path


@pytest.mark.parametrize(("type_", "params"), SOURCES)
def test_a_reader_is_the_same_fused_and_alone(type_: str, params: dict[str, Any], folder: Path) -> None:
    alone = run(type_, params, connected=["main"], folder=folder)
    engine = DuckDbEngine(folder / "rows")
    session = engine.session()
    first = staged(type_, params, {}, {}, folder)
    (schema,) = runner.outputs_of(first, {}).values()
    assert schema == alone.schemas["main"]
    where = {"where": "CAST(id AS INTEGER) >= 0"}
    second = staged("filter", where, {"input": (type_, "main")}, {"input": schema}, folder, ["main"])
    found = session.fuse([first, second])
    relation: Relation = found["filter"].relations["main"]
    names = [column.name for column in relation.schema]
    fused = [
        dict(zip(names, row, strict=True))
        for batch in session.rows("SELECT * FROM it", {"it": relation})
        for row in batch
    ]
    assert fused == alone.main
    assert found[type_].rows == {"main": len(alone.main)}
    engine.close()


@pytest.mark.parametrize(("type_", "params", "back"), SINKS)
def test_a_writer_at_the_end_of_a_query_writes_the_file_whole(
    type_: str, params: dict[str, Any], back: tuple[str, dict[str, Any]], folder: Path
) -> None:
    engine = DuckDbEngine(folder / "rows")
    session = engine.session()
    first = staged("generate_rows", {"count": 1_000, "columns": {"id": "i", "name": "'n' || i"}}, {}, {}, folder)
    (schema,) = runner.outputs_of(first, {}).values()
    last = staged(type_, params, {"input": ("generate_rows", "main")}, {"input": schema}, folder)
    found = session.fuse([first, last])
    engine.close()
    assert found["generate_rows"].rows == {"main": 1_000}
    assert found[type_].rows == {"": 1_000}
    rows = run(back[0], back[1], connected=["main"], folder=folder).main
    assert (len(rows), rows[7]) == (1_000, {"id": 7, "name": "n7"})
    assert [path.name for path in (folder / "out").iterdir()] == [Path(params["path"]).name]


@cases("type_", TYPES)
def test_every_type_is_described(type_: str) -> None:
    described = REGISTRY.page(type_)
    assert described is not None
    assert described.summary
    assert all(info.description for info in described.params.values()), described.params
    assert described.family in ("read", "write")
    assert described.example.startswith("apiVersion: penstock/v1\nkind: Job\n")
