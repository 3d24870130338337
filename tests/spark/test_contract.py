"""The same SELECT gives the same rows on DuckDB and on Spark: names, types, values, in any order.

The hash of an output is of its columns, types and rows, whatever their order, and is taken by the same code for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generator.examples import output_of, run_example
from penstock.components.registry import ComponentRegistry, built_in, example_of
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.data.spark.engine import SparkEngine
from penstock.ports.rows import EngineSession, Relation
from tests.cases import cases
from tests.data.engine_contract import QUERIES, kept, shown


@pytest.fixture(scope="module")
def both(on_duckdb: DuckDbEngine, on_spark: SparkEngine) -> Iterator[list[tuple[EngineSession, dict[str, Relation]]]]:
    sessions: list[EngineSession] = [on_duckdb.session(), on_spark.session()]
    yield [(session, kept(session)) for session in sessions]
    for session in sessions:
        session.close(())


@cases("name", list(QUERIES))
def test_a_query_gives_the_same_on_both(name: str, both: list[tuple[EngineSession, dict[str, Relation]]]) -> None:
    made = []
    for session, inputs in both:
        relation = session.select(QUERIES[name], inputs)
        made.append((relation.schema, relation.rows, shown(session, relation), relation.hash))
    assert made[1] == made[0]


# ---- Every component

REGISTRY = ComponentRegistry(with_lineage=False)
ELSEWHERE = {
    "python": "`reject`", "generate_rows": "hash", "sample": "hash", "fuzzy_match": "jaro_winkler_similarity",
    "write_csv": "in more than one step", "read_json": "one list", "iterate_rows": "takes the rows", "iterate_groups": "takes the rows",
    "context_load": "takes the rows", "iterate_query": "takes the rows", "wait_for_rows": "takes the rows",
    **dict.fromkeys(("read_positional", "write_positional", "read_arrow", "write_arrow", "read_excel", "write_excel", "read_xml",
                     "write_xml", "read_sql", "write_sql", "write_file", "read_avro", "write_avro", "read_orc", "write_orc", "read_delta",
                     "write_delta", "read_iceberg", "write_iceberg"), "takes the rows"),
}  # fmt: skip
"""Types whose example cannot run there, and a word of what is said about it before the run."""
_ROWLESS = ("file", "orchestrate")
THERE = [
    type_
    for type_ in built_in()
    if type_ not in ELSEWHERE
    and type_ not in ("read_file", "http_rows", "run_sql", "iterate_while")
    and type(REGISTRY.get(type_)).family not in _ROWLESS
]


def as_spark(text: str, spark: str) -> str:
    conf = "{ spark.sql.shuffle.partitions: 1 }"
    return f'{text}\njob_config: {{ engine: {{ kind: spark, remote: "{spark}", conf: {conf} }} }}\n'


@cases("type_", THERE)
def test_the_example_of_a_component_shows_the_same_on_spark(type_: str, spark: str, tmp_path: Path) -> None:
    text, folder = example_of(type(REGISTRY.get(type_))), tmp_path.resolve() / type_
    folder.mkdir()
    given = run_example(as_spark(text, spark), folder, REGISTRY)
    assert given.status == "completed", given.error
    assert sorted(given.lines) == sorted(output_of(type_, text))


@cases("type_", list(ELSEWHERE))
def test_what_cannot_run_there_is_said_before_the_run(type_: str, tmp_path: Path) -> None:
    text = as_spark(example_of(type(REGISTRY.get(type_))), "sc://nowhere:1")
    with pytest.raises(Exception, match="NOT_ON_ENGINE") as refused:
        run_example(text, tmp_path.resolve(), REGISTRY)
    assert ELSEWHERE[type_] in str(refused.value)
