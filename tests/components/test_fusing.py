"""A transform gives the same rows and counts as a stage of a larger query as it gives by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.components import runner
from penstock.components.base import PlanCall
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.ports.rows import Relation, Schema, Stage
from tests.components.harness import REGISTRY, run

ROWS = [{"id": number, "k": f"k{number % 7}", "n": (number * 37) % 11, "tags": "a,b"} for number in range(500)]
LOOKUP = [{"k": f"k{number}", "name": f"name {number}"} for number in range(5)]

TRANSFORMS: list[tuple[str, dict[str, Any], str]] = [
    ("filter", {"where": "n > 4"}, "main"),
    ("filter", {"where": "n > 4"}, "reject"),
    ("select", {"columns": {"x": "id", "k": "k"}}, "main"),
    ("derive", {"columns": {"m": "n * 2", "o": "m + 1"}}, "main"),
    ("sort", {"by": ["k desc", "n"]}, "main"),
    ("unique", {"by": ["k"]}, "unique"),
    ("unique", {"by": ["k"]}, "duplicate"),
    ("sample", {"count": 17}, "main"),
    ("sample", {"fraction": 0.3}, "rest"),
    ("top", {"n": 3, "by": ["n desc"], "per": ["k"]}, "main"),
    ("aggregate", {"by": ["k"], "measures": {"s": "sum(n)", "c": "count(*)"}}, "main"),
    ("denormalise", {"by": ["k"], "column": "n"}, "main"),
    ("normalise", {"column": "tags"}, "main"),
    ("pivot", {"by": ["n"], "column": "k", "value": "id", "values": ["k1", "k2"]}, "main"),
    ("unpivot", {"columns": ["id", "n"]}, "main"),
    ("sequence", {"name": "s", "by": ["k"]}, "main"),
    ("fill_down", {"columns": ["n"], "by": ["k"]}, "main"),
    ("window", {"columns": {"r": "rank()"}, "partition_by": ["k"], "order_by": ["n"]}, "main"),
    ("lookup", {"on": ["k"], "rows": LOOKUP, "how": "inner"}, "main"),
    ("lookup", {"on": ["k"], "rows": LOOKUP, "how": "inner"}, "reject"),
    ("map", {"variables": {"v": "n + 1"}, "outputs": {"main": {"where": "v > 5"}, "rest": {"reject": True}}}, "main"),
    ("map", {"variables": {"v": "n + 1"}, "outputs": {"main": {"where": "v > 5"}, "rest": {"reject": True}}}, "rest"),
    ("replicate", {}, "output_0"),
    ("sql", {"query": "SELECT k, max(n) AS n FROM input GROUP BY k"}, "main"),
]


class Chain:
    """Stages one after another, the way a job builds them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stages: list[Stage] = []
        self.schemas: dict[tuple[str, str], Schema] = {}

    def add(
        self,
        type_: str,
        params: Mapping[str, Any],
        inputs: Mapping[str, tuple[str, str] | Relation],
        port: str,
        wanted: bool,
    ) -> tuple[str, str]:
        name = f"{type_}_{len(self.stages)}"
        model = REGISTRY.convert(type_, params)
        assert runner.wants_fusion(REGISTRY.get(type_), model, [port])
        schemas = {
            into: source.schema if isinstance(source, Relation) else self.schemas[source]
            for into, source in inputs.items()
        }
        call = PlanCall(self.folder, frozenset({port}))
        made = runner.stage(REGISTRY.get(type_), name, model, inputs, schemas, call, [port] if wanted else [])
        self.stages.append(made)
        self.schemas[name, port] = runner.outputs_of(made, schemas)[port]
        return name, port


def rows_of(session: Any, relation: Relation) -> list[dict[str, Any]]:
    names = [column.name for column in relation.schema]
    batches: Sequence[Any] = list(session.rows("SELECT * FROM found", {"found": relation}))
    return [dict(zip(names, row, strict=True)) for batch in batches for row in batch]


@pytest.mark.parametrize(("type_", "params", "port"), TRANSFORMS)
def test_a_transform_is_the_same_fused_and_alone(type_: str, params: dict[str, Any], port: str, tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path)
    session = engine.session()
    rows = session.load_mappings([ROWS])
    chain = Chain(tmp_path)
    before = chain.add("filter", {"where": "id % 10 <> 3"}, {"input": rows}, "main", wanted=False)
    tested = chain.add(type_, params, {"input": before}, port, wanted=False)
    last = chain.add("select", {}, {"input": tested}, "main", wanted=True)
    found = session.fuse(chain.stages)
    alone = run(type_, params, {"input": [row for row in ROWS if row["id"] % 10 != 3]}, connected=[port])
    fused = rows_of(session, found[last[0]].relations["main"])
    assert sorted(fused, key=repr) == sorted(alone.outputs[port], key=repr)
    assert found[before[0]].rows == {"main": 450}
    assert found[tested[0]].rows == {port: len(alone.outputs[port])}
    assert chain.schemas[last] == alone.schemas[port]
    engine.close()


def test_a_join_of_two_branches_is_fused(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path)
    session = engine.session()
    chain = Chain(tmp_path)
    main = chain.add(
        "derive", {"columns": {"m": "n * 2"}}, {"input": session.load_mappings([ROWS])}, "main", wanted=False
    )
    lookup = chain.add(
        "filter", {"where": "k <> 'k4'"}, {"input": session.load_mappings([LOOKUP])}, "main", wanted=False
    )
    joined = chain.add("join", {"on": ["k"], "match": "unique"}, {"main": main, "lookup": lookup}, "main", wanted=False)
    total = chain.add(
        "aggregate", {"by": ["name"], "measures": {"c": "count(*)"}}, {"input": joined}, "main", wanted=True
    )
    found = session.fuse(chain.stages)
    expected = sum(1 for row in ROWS if row["k"] in ("k0", "k1", "k2", "k3"))
    assert found[joined[0]].rows == {"main": expected}
    assert found[lookup[0]].rows == {"main": 4}
    assert [row["name"] for row in rows_of(session, found[total[0]].relations["main"])] == [
        f"name {n}" for n in range(4)
    ]
    engine.close()


def test_a_chain_that_depends_on_order_keeps_it_when_it_is_fused(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path)
    session = engine.session()
    many = session.load_mappings([[{"id": number, "k": number % 1_000} for number in range(150_000)]])
    chain = Chain(tmp_path)
    place: tuple[str, str] | Relation = many
    for type_, params, port in (
        ("filter", {"where": "id >= 500"}, "main"),
        ("derive", {"columns": {"v": "CASE WHEN id % 100 = 0 THEN id END"}}, "main"),
        ("fill_down", {"columns": ["v"]}, "main"),
        ("unique", {"by": ["k"]}, "unique"),
        ("sequence", {"name": "s", "start": 0}, "main"),
    ):
        place = chain.add(type_, params, {"input": place}, port, wanted=type_ == "sequence")
    assert not isinstance(place, Relation)
    rows = rows_of(session, session.fuse(chain.stages)[place[0]].relations["main"])
    assert [(row["s"], row["id"], row["v"]) for row in rows] == [
        (number, number + 500, (number + 500) // 100 * 100) for number in range(1_000)
    ]
    engine.close()
