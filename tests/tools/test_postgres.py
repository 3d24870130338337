"""The postgres tool, against a real PostgreSQL: commands, values and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.tools.sql.postgres import PostgresTool
from tests.cases import cases
from tests.depth import times
from tests.servers import postgres_server, postgres_url
from tests.tools.asking import Do, do, failed
from tests.tools.support import make_call, run

__all__ = ["do", "postgres_server", "postgres_url"]


def test_rows_are_objects_in_order_with_their_columns(do: Do) -> None:
    assert do(query="SELECT n, n * n AS square FROM generate_series(1, 3) AS n ORDER BY n DESC") == {
        "rows": [{"n": 3, "square": 9}, {"n": 2, "square": 4}, {"n": 1, "square": 1}],
        "row_count": 3,
        "columns": ["n", "square"],
    }


@pytest.mark.clause("P5.2")
def test_a_good_outcome_has_the_code_of_success(postgres_url: str, tmp_path: Path) -> None:
    outcome = run(PostgresTool(), {"url": postgres_url, "command": "SELECT 1"}, make_call(tmp_path))
    assert outcome.helpers == {"pg": {"code": "00000", "sqlstate": "00000"}}


def test_a_statement_without_rows_counts_what_it_touched(do: Do) -> None:
    do(command="CREATE TABLE t (a int)")
    assert do(command="INSERT INTO t VALUES (1), (2)") == {"rows": [], "row_count": 2, "columns": []}
    assert do(command="DELETE FROM t WHERE a = 1 RETURNING a")["rows"] == [{"a": 1}]


def test_an_empty_result_still_has_its_columns(do: Do) -> None:
    expected = {"rows": [], "row_count": 0, "columns": ["a", "b"]}
    assert do(query="SELECT :a::int AS a, :b::text AS b WHERE false", params={"a": 1, "b": "x"}) == expected


def test_several_statements_give_a_result_each_and_the_last_on_top(do: Do) -> None:
    result = do(command="CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2); SELECT sum(a) AS sum FROM t")
    assert result["rows"] == [{"sum": 3}]
    assert result["command_1"] == {"rows": [], "row_count": 2, "columns": []}
    assert result["command_2"]["rows"] == [{"sum": 3}]
    assert "command_3" not in result


def test_a_list_of_commands_gives_one_result_per_entry(do: Do) -> None:
    result = do(
        commands=[
            "CREATE TABLE t (a int, b text); CREATE INDEX ON t (a)",
            {"command": "INSERT INTO t VALUES (%s, %s)", "params": [1, "x"]},
            {"command": "SELECT * FROM t WHERE b = :b"},
        ],
        params={"b": "x"},
    )
    assert [key for key in result if key.startswith("command_")] == ["command_0", "command_1", "command_2"]
    assert result["rows"] == [{"a": 1, "b": "x"}]
    assert do(command=["SELECT 1 AS a", "SELECT 2 AS b"])["command_0"]["rows"] == [{"a": 1}]


def test_all_commands_of_a_task_count_or_none_does(do: Do) -> None:
    do(command="CREATE TABLE t (a int PRIMARY KEY)")
    failure = failed(do, commands=["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2), (2)"])
    assert failure.kind == "constraint"
    assert failure.detail["command"] == 1
    assert "`INSERT INTO t VALUES (2), (2)`" in failure.message
    assert do(query="SELECT * FROM t")["rows"] == []


@pytest.mark.clause("P5.2")
def test_a_broken_constraint_says_which(do: Do) -> None:
    do(command="CREATE TABLE t (a int CONSTRAINT t_a_is_key PRIMARY KEY); INSERT INTO t VALUES (1)")
    failure = failed(do, command="INSERT INTO t VALUES (1)")
    helper = failure.helpers["pg"]
    assert (failure.kind, failure.retryable, helper["code"], helper["sqlstate"]) == (
        "constraint",
        False,
        "23505",
        "23505",
    )
    assert (helper["severity"], helper["table"], helper["constraint"]) == ("ERROR", "t", "t_a_is_key")
    assert helper["detail"] == "Key (a)=(1) already exists."


@pytest.mark.clause("P5.2")
@pytest.mark.parametrize(
    ("command", "kind", "code"),
    [
        ("SELEC 1", "syntax", "42601"),
        ("SELECT * FROM nowhere", "not_found", "42P01"),
        ("SELECT nothing", "not_found", "42703"),
        ("SELECT 1 / 0", "database", "22012"),
        ("DO $$ BEGIN RAISE 'enough' USING ERRCODE = '53300'; END $$", "connect", "53300"),
        ("DO $$ BEGIN RAISE 'no' USING ERRCODE = '42501'; END $$", "permission", "42501"),
    ],
)
def test_errors_have_a_kind_and_the_servers_code(do: Do, command: str, kind: str, code: str) -> None:
    failure = failed(do, command=command)
    assert (failure.kind, failure.helpers["pg"]["code"]) == (kind, code)
    assert failure.retryable == (code == "53300")


def test_values_are_bound_in_every_spelling(do: Do) -> None:
    assert do(query="SELECT :a::int + %(b)s AS sum", params={"a": 1, "b": 2})["rows"] == [{"sum": 3}]
    assert do(query="SELECT %s::int + %s AS sum", params=[1, 2])["rows"] == [{"sum": 3}]
    assert do(query="SELECT $2::int - $1 AS rest", params=[1, 5])["rows"] == [{"rest": 4}]


def test_args_are_bound_by_name_beside_params(do: Do) -> None:
    result = do(query="SELECT :a::int + :b AS sum", args={"a": 1, "unused": 0}, params={"b": 2})
    assert result["rows"] == [{"sum": 3}]
    assert do(query="SELECT 1 AS a", args={"x": 1})["rows"] == [{"a": 1}]


def test_a_percent_sign_means_what_postgres_says_it_means(do: Do) -> None:
    assert do(query="SELECT 7 % 4 AS rest, 'x' LIKE '%' AS yes")["rows"] == [{"rest": 3, "yes": True}]
    both = do(query="SELECT :n % 4 AS rest, 'x' LIKE '%' AS yes", params={"n": 7})
    assert both["rows"] == [{"rest": 3, "yes": True}]


ANYTHING = st.text(alphabet=st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=40)


@settings(max_examples=times(20), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(values=st.lists(ANYTHING | st.text(alphabet=":%$?;'\"\\-/* as1"), min_size=1, max_size=4))
def test_any_text_comes_back_as_it_was_bound_or_quoted(do: Do, values: list[str]) -> None:
    quoted = [f"'{value.replace(chr(39), chr(39) * 2)}' AS q{index}" for index, value in enumerate(values)]
    asked = [f":v{index} AS v{index}" for index in range(len(values))]
    params = {f"v{index}": value for index, value in enumerate(values)}
    (row,) = do(query=f"SELECT {', '.join(quoted + asked)}", params=params)["rows"]
    assert [row[f"q{index}"] for index in range(len(values))] == values
    assert [row[f"v{index}"] for index in range(len(values))] == values


def test_what_is_bound_is_never_read_as_sql(do: Do) -> None:
    do(command="CREATE TABLE t (a text)")
    evil = "x'); DROP TABLE t; --"
    do(command="INSERT INTO t VALUES (:a)", params={"a": evil})
    assert do(query="SELECT a FROM t")["rows"] == [{"a": evil}]


def test_lists_are_arrays_and_mappings_are_jsonb(do: Do) -> None:
    do(command="CREATE TABLE t (a int, b jsonb)")
    for index, value in enumerate([{"x": [1, None]}, [{"x": 1}], [1, "two"], {}]):
        do(command="INSERT INTO t VALUES (:a, :b)", params={"a": index, "b": value})
    do(command="INSERT INTO t VALUES (4, :b::jsonb)", params={"b": [1, 2]})
    result = do(query="SELECT b FROM t WHERE a = ANY(:wanted) ORDER BY a", params={"wanted": [0, 1, 2, 4]})
    assert [row["b"] for row in result["rows"]] == [{"x": [1, None]}, [{"x": 1}], [1, "two"], [1, 2]]


def test_every_type_is_said_in_json(do: Do) -> None:
    columns = {
        "1.50::numeric": 1.5,
        "3.00::numeric": 3,
        "12345678901234567890.12::numeric": "12345678901234567890.12",
        "'NaN'::float8": "NaN",
        "9223372036854775807": 2**63 - 1,
        "true": True,
        "NULL::int": None,
        "timestamptz '2024-01-02 03:04:05.678+05:30' AT TIME ZONE 'UTC'": "2024-01-01T21:34:05.678",
        "timestamp 'infinity'": "infinity",
        "date '2024-01-02'": "2024-01-02",
        "time '10:00'": "10:00:00",
        "interval '1 mon 2 days'": "1 mon 2 days",
        "'00000000-0000-0000-0000-000000000001'::uuid": "00000000-0000-0000-0000-000000000001",
        "'\\xabcd'::bytea": "q80=",
        "'{\"a\": [1]}'::json": {"a": [1]},
        "ARRAY[1.5, 2]::numeric[]": [1.5, 2],
        "ARRAY[[1, 2], [3, NULL]]": [[1, 2], [3, None]],
        "int4range(1, 3)": "[1,3)",
        "inet '10.0.0.1/8'": "10.0.0.1/8",
        "ROW(1, 'a'::text)": ["1", "a"],
    }
    text = ", ".join(f"{sql} AS c{index}" for index, sql in enumerate(columns))
    (row,) = do(query=f"SELECT {text}")["rows"]
    json.dumps(row)
    assert list(row.values()) == list(columns.values())


def test_columns_of_the_same_name_all_arrive(do: Do) -> None:
    assert do(query="SELECT 1 AS id, 2 AS id")["rows"] == [{"id": 1, "id_2": 2}]


def test_more_rows_than_the_limit_are_refused_without_reading_them_all(do: Do) -> None:
    failure = failed(
        do, query="SELECT a.n FROM generate_series(1, 30000) a(n), generate_series(1, 30000) b", max_rows=10
    )
    assert failure.kind == "too_large"
    assert "`transfer`" in failure.message
    assert do(query="SELECT * FROM generate_series(1, 10)", max_rows=10)["row_count"] == 10


def test_a_result_that_is_refused_leaves_nothing_written(do: Do) -> None:
    do(command="CREATE TABLE t (a int)")
    assert failed(do, command="INSERT INTO t VALUES (1), (2) RETURNING a", max_rows=1).kind == "too_large"
    assert do(query="SELECT * FROM t")["rows"] == []


@cases(
    "params, words",
    [
        ({}, "exactly one of"),
        ({"command": "SELECT 1", "query": "SELECT 1"}, "`command` and `query`"),
        ({"command": " -- nothing\n;"}, "empty"),
        ({"commands": []}, "empty"),
        ({"command": "SELECT 1", "params": {"a": 1}}, "no placeholder such as `:a`"),
        ({"command": "SELECT %s; SELECT %s", "params": [1]}, "goes with one statement"),
        ({"upsert": {"table": "t", "keys": ["id"], "rows": [{"a": 1}]}}, "key `id`"),
        ({"upsert": {"table": "t", "keys": ["id"], "rows": {"id": 1}}}, "a list of rows, not a mapping"),
        ({"upsert": {"table": "t", "keys": ["id"], "rows": [{"id": 1}, 5]}}, "row 1 is a number"),
        (
            {"commands": [{"command": "SELECT 1", "upsert": {"table": "t", "keys": ["a"], "rows": []}}]},
            "exactly one of",
        ),
        ({"copy": {"table": "t", "query": "SELECT 1"}}, "exactly one of"),
        ({"copy": {"query": "SELECT 1", "from": []}}, "`copy` in takes"),
        ({"command": "COPY t FROM STDIN"}, "`copy`"),
    ],
)
def test_parameters_that_make_no_sense_are_explained(do: Do, params: dict[str, Any], words: str) -> None:
    do(command="CREATE TABLE IF NOT EXISTS t (a int)")
    failure = failed(do, **params)
    assert failure.kind == "parameters"
    assert words in failure.message
