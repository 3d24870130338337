"""Collections that are described: their kinds, their parameters, and what is reported before a run."""

from __future__ import annotations

import pytest

from penstock.dialects.playbook import compile_text
from penstock.dialects.playbook.words import SCOPES
from penstock.ports.collections import PAGED
from penstock.tools.pages.base import describe_pages
from penstock.tools.registry import Registry
from tests.cases import cases
from tests.dialects.playbook.support import codes, node_of, problems, steps
from tests.dialects.playbook.test_pictures import complaints


def document(given: str) -> str:
    return steps(f"- step: start\n  loop: {{ in: {given}, iterator: n }}\n  tool: {{ kind: noop }}\n")


@pytest.mark.clause("F2.1")
@cases(
    "given",
    [
        "{ range: 10 }",
        "{ range: { start: 1, stop: '{{ workload.x }}' } }",
        "{ sql: { kind: postgres, query: select 1 as id, key: id, auth: db } }",
        "{ sql: { kind: '{{ workload.city }}', query: select 1 as id, key: id, path: '{{ workload.city }}.db' } }",
        "{ claim: { kind: sqlite, path: a.db, sql: delete from jobs returning id } }",
        "{ claim: { kind: sqlite, path: a.db, sql: 'x {{ __frame_max_rows }}', rows: 50, key: id, params: { a: 1 } } }",
        "{ claim: { kind: postgres, auth: db, sql: select f(:rows), rows: '{{ workload.x }}', timeout: 5 } }",
        "{ lines: orders.csv }",
        "{ lines: '{{ workload.city }}.csv' }",
        "{ lines: { path: orders.csv, encoding: latin-1, skip: 1 } }",
        "{ lines: { path: orders.csv, skip: '{{ workload.x }}' } }",
        "{ row_groups: data/*.parquet }",
        "{ files: inbox/*.csv }",
        "{ files: { path: inbox/*.csv, recursive: true } }",
        "{ objects: 's3://bucket/orders/' }",
        "{ objects: { url: 's3://bucket', pattern: '*.csv' } }",
        "{ http: 'https://example.com/items' }",
        "{ http: { url: 'https://example.com/items', items: data, next: meta.next, next_param: cursor, params: { limit: 100 } } }",
    ],
)
def test_a_description_is_kept_as_it_is_written(given):
    assert codes(document(given)) == (["P0708"] if "auth: db" in given else [])  # It has no keychain.
    assert complaints(document(given)) == []
    fan = node_of(document(given)).fan
    assert fan is not None
    assert isinstance(fan.collection, dict)


@cases(
    "given, expected",
    [
        ("{ lins: orders.csv }", ["P0603"]),
        ("{ lines: a, files: b }", ["P0603"]),
        ("{ }", ["P0603"]),
        ("{ lines: }", ["P0101"]),
        ("{ lines: 5 }", ["P0101"]),
        ("{ lines: [a] }", ["P0101"]),
        ("{ lines: { encoding: utf-8 } }", ["P0105"]),
        ("{ lines: { path: a, skip: -1 } }", ["P0107"]),
        ("{ lines: { path: a, skip: few } }", ["P0101"]),
        ("{ lines: { pth: a } }", ["P0102", "P0105"]),
        ("{ sql: select 1 }", ["P0101"]),
        ("{ sql: { query: select 1, key: id } }", ["P0105"]),
        ("{ sql: { kind: postgres, query: select 1 } }", ["P0105"]),
        ("{ sql: { kind: oracle, query: select 1, key: id } }", ["P0106"]),
        ("{ sql: { kind: postgres, query: select 1, key: id, hots: x } }", ["P0102"]),
        ("{ sql: { kind: postgres, query: select 1, key: id, command: x } }", ["P0102"]),
        ("{ files: { path: a, recursive: often } }", ["P0101"]),
        ("{ objects: { url: 's3://b', patern: x } }", ["P0102"]),
        ("{ http: { url: x, method: FETCH } }", ["P0106"]),
        ("{ http: { url: x, max_pages: 0 } }", ["P0107"]),
        ("{ http: { url: x, headers: text } }", ["P0101"]),
        ("{ http: { url: x, params: { '{{ workload.x }}': 1 } } }", ["P0110"]),
        ("{ claim: delete from jobs returning id }", ["P0101"]),
        ("{ claim: { kind: sqlite, path: a.db } }", ["P0105"]),
        ("{ claim: { kind: oracle, sql: x } }", ["P0106"]),
        ("{ claim: { kind: sqlite, path: a.db, sql: x, rows: 0 } }", ["P0107"]),
        ("{ claim: { kind: sqlite, path: a.db, sql: x, read_only: true } }", ["P0102"]),
        ("{ claim: { kind: postgres, path: h, sql: x } }", ["P0102"]),
        ("{ lines: '{{ __frame_max_rows }}' }", ["P0703"]),
        ("{ lines: '{{ nothing }}' }", ["P0701"]),
    ],
)
def test_what_is_wrong_with_a_description_is_reported(given, expected):
    assert sorted(codes(document(given))) == sorted(expected)


def test_a_misspelt_kind_or_parameter_is_shown_with_what_was_meant():
    (problem,) = problems(document("{ lins: orders.csv }"))
    assert problem.label == "did you mean `lines`?"
    (problem,) = problems(document("{ files: { path: a, recursve: true } }"))
    assert problem.label == "did you mean `recursive`?"


def test_what_others_call_the_words_of_a_claim_is_told():
    (_, problem) = problems(document("{ claim: { kind: sqlite, path: a.db, query: x } }"))
    assert problem.label == "did you mean `sql`?"
    (problem,) = problems(document("{ claim: { kind: sqlite, path: a.db, sql: x, max_rows: 5 } }"))
    assert problem.label == "did you mean `rows`?"


def test_a_sql_collection_takes_what_its_tool_takes_to_connect_and_nothing_of_its_commands():
    def found(spec: str) -> list[str]:
        text = document(f"{{ sql: {{ query: select 1, key: id, {spec} }} }}")
        return [problem.code for problem in compile_text(text, "test.yaml", Registry()).problems]

    assert found("kind: postgres, url: 'postgresql://localhost/x', sslmode: disable") == []
    assert found("kind: postgres, host: h, port: 5432, user: u, database: d") == []
    assert found("kind: sqlite, path: x.db") == []
    assert found("kind: duckdb, path: x.duckdb, read_only: true") == []
    assert found("kind: sqlite, host: h") == ["P0102"]
    assert found("kind: sqlite, path: x.db, upsert: {}") == ["P0102"]


def test_every_kind_that_can_be_read_has_its_words():
    assert set(SCOPES["collection"].words) == {"range", *PAGED}
    assert {name.removeprefix("collection_") for name in SCOPES if name.startswith("collection_")} == set(PAGED)


@cases("kind", PAGED)
def test_the_words_of_a_collection_are_the_parameters_of_its_reader(kind):
    description = describe_pages(kind)
    assert description is not None
    words = SCOPES[f"collection_{kind}"].words
    assert set(words) == set(description.params)
    assert {name for name, info in description.params.items() if info.required} <= {
        name for name, word in words.items() if word.required
    }
