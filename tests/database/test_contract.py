"""The same SELECT gives the same rows on DuckDB and in PostgreSQL, from the table that other engines are held to as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generator.examples import output_of, run_example
from penstock.components.registry import ComponentRegistry, built_in, example_of
from penstock.data.binder import Binder
from penstock.data.database.postgres import PostgresEngine
from penstock.data.database.postgres_sql import check
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.data.sql_rules import SqlMistake
from penstock.ports.rows import EngineSession, Relation
from tests.cases import cases
from tests.data.engine_contract import QUERIES, SCHEMA, kept, shown

REFUSED = {"structures": "{'a': n", "windows over what is there": "IGNORE NULLS"}
"""What has no counterpart there, and a word of what is said about it."""


@pytest.fixture(scope="module")
def both(
    on_duckdb: DuckDbEngine, on_postgres: PostgresEngine
) -> Iterator[list[tuple[EngineSession, dict[str, Relation]]]]:
    sessions: list[EngineSession] = [on_duckdb.session(), on_postgres.session()]
    yield [(session, kept(session)) for session in sessions]
    for session in sessions:
        session.close(())


@cases("name", [name for name in QUERIES if name not in REFUSED])
def test_a_query_gives_the_same_on_both(name: str, both: list[tuple[EngineSession, dict[str, Relation]]]) -> None:
    binder = Binder()
    schemas = {"input": SCHEMA, "other": SCHEMA}
    check(QUERIES[name], schemas, lambda part: binder.schema(part, schemas))
    made = []
    for session, inputs in both:
        relation = session.select(QUERIES[name], inputs)
        made.append((relation.schema, relation.rows, shown(session, relation)))
    assert made[1] == made[0]


@cases("name", list(REFUSED))
def test_what_has_no_counterpart_is_said_before_the_run(name: str) -> None:
    binder = Binder()
    schemas = {"input": SCHEMA, "other": SCHEMA}
    with pytest.raises(SqlMistake) as refused:
        check(QUERIES[name], schemas, lambda part: binder.schema(part, schemas))
    assert REFUSED[name] in refused.value.message


def test_rows_that_are_exported_come_back_as_they_were(
    both: list[tuple[EngineSession, dict[str, Relation]]],
    on_postgres: PostgresEngine,
    on_duckdb: DuckDbEngine,
    tmp_path: Path,
) -> None:
    (here, there), (session, inputs) = both[0], both[1]
    path = tmp_path / "rows.parquet"
    on_postgres.export(inputs["input"], path)
    attached = on_duckdb.attach(path, SCHEMA, 5, "")
    assert shown(here, attached) == shown(here, there["input"])
    again = on_postgres.attach(path, SCHEMA, 5, "")
    assert shown(session, again) == shown(session, inputs["input"])
    on_postgres.drop(again)
    on_duckdb.drop(attached)


# ---- Every component

REGISTRY = ComponentRegistry(with_lineage=False)
ELSEWHERE = {
    "generate_rows": "hash", "sample": "hash", "fill_down": "IGNORE NULLS", "data_profile": "no counterpart",
    "extract_regex": "by its number", "fuzzy_match": "jaro_winkler_similarity",
}  # fmt: skip
"""Types whose example cannot run there, and a word of what is said about it before the run."""
_ROWLESS = ("file", "orchestrate")
THERE = [
    type_
    for type_ in built_in()
    if type_ not in ELSEWHERE
    and type_ not in ("read_file", "http_rows")
    and type(REGISTRY.get(type_)).family not in _ROWLESS
]


def in_postgres(text: str, url: str) -> str:
    named = f'connections:\n  home: {{ kind: postgres, url: "{url}" }}\n'
    text = text.replace("connections:\n", named, 1) if "\nconnections:\n" in text else f"{text}\n{named}"
    return f"{text}\njob_config: {{ engine: {{ kind: database, connection: home }} }}\n"


@cases("type_", THERE)
def test_the_example_of_a_component_shows_the_same_there(type_: str, postgres_server: str, tmp_path: Path) -> None:
    text, folder = example_of(type(REGISTRY.get(type_))), tmp_path.resolve() / type_
    folder.mkdir()
    given = run_example(in_postgres(text, postgres_server), folder, REGISTRY)
    assert given.status == "completed", given.error
    assert sorted(given.lines) == sorted(output_of(type_, text))


@cases("type_", list(ELSEWHERE))
def test_a_component_that_cannot_run_there_is_refused_before_the_run(type_: str, tmp_path: Path) -> None:
    text = in_postgres(example_of(type(REGISTRY.get(type_))), "postgresql://nowhere/db")
    with pytest.raises(Exception, match="NOT_ON_ENGINE") as refused:
        run_example(text, tmp_path.resolve(), REGISTRY)
    assert ELSEWHERE[type_] in str(refused.value)
