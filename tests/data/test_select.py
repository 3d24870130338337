"""An author's SQL comes in as exactly one expression or query that reaches nothing but its inputs."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pytest

from penstock.data.select import SqlMistake, column, data_type, expression, literal, name, query, sql, table
from tests.cases import cases


def mistake(text: str, read: Any = expression, **more: Any) -> tuple[str, str | None]:
    """The words, and the piece of the text they point at."""
    with pytest.raises(SqlMistake) as raised:
        read(text, **more)
    found = raised.value
    return found.message, None if found.offset is None else text[found.offset : found.offset + found.length]


@cases(
    "text, message, piece",
    [
        ("", "this is empty: an expression is needed", ""),
        ("-- nothing", "this is empty: an expression is needed", "-- nothing"),
        ("a b", "`b` is not expected here", "b"),
        ("a as b", "`as` is not expected here", "as"),
        ("a, b", "`,` is not expected here", ","),
        ("a + ", "the SQL ends too early, after `+`", "+"),
        ("sum(", "the SQL ends too early, after `(`", "("),
        ("'abc", "`'` is opened here and never closed", "'abc"),
        ('upper("a', '`"` is opened here and never closed', '"a'),
        ("a /* why", "`/*` is opened here and never closed", "/* why"),
        ("a; drop table x", "`;` cannot stand here: an expression is needed, and nothing after it", ";"),
        ("select 1", "`select` is not expected here", "select"),
        ("*", "`*` stands for many columns: one value is needed here", "*"),
        ("t.*", "`*` stands for many columns: one value is needed here", "t.*"),
        ("a = ?", "`?` is a parameter, and there is nothing to fill it with", None),
        ("a\0", "a zero byte cannot stand in SQL", "\0"),
    ],
)
def test_what_is_not_one_expression_is_pointed_at(text: str, message: str, piece: str | None) -> None:
    assert mistake(text) == (message, piece)


@cases(
    "text, piece",
    [
        ("a in (from read_text('/etc/passwd'))", "read_text"),
        ("(select max(x) from 'secret.parquet')", "'secret.parquet'"),
        ("(select max(x) from other)", "other"),
        ("getenv('HOME')", "getenv"),
        ("current_setting('secret_directory')", "current_setting"),
        ("a = any(from glob('*'))", "glob"),
        ("(select * from query('select 1'))", "query"),
        ("(from duckdb_secrets())", "duckdb_secrets"),
        ("(select count(*) from system.information_schema.tables)", "system.information_schema.tables"),
        ('(with "x.csv" as (select 1 a) select a from "x.csv")', '"x.csv"'),
    ],
)
def test_an_expression_cannot_reach_files_settings_or_other_tables(text: str, piece: str) -> None:
    assert mistake(text)[1] == piece


@cases(
    "text",
    [
        "copy input to 'x.csv'",
        "drop table input",
        "insert into input select 1",
        "attach 'x.db'",
        "pragma database_list",
        "call pragma_version()",
        "explain select 1",
        "set threads = 1",
        "load httpfs",
        "describe input",
        "summarize input",
        "amount > 1",
        "with a as (select 1) insert into b from a",
        "pivot input on g",
    ],
)
def test_only_a_select_is_a_query(text: str) -> None:
    assert mistake(text, query)[0] == "this is not a query: it must be one `SELECT` over the inputs"


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("select * from read_csv('a.csv')", "read_csv"),
        ("from 'a.csv'", "'a.csv'"),
        ("select * from othr", "othr"),
        ("select * from a.b", "a.b"),
        ("select 1 into x", "x"),
        ("with a as (delete from x returning *) from a", "x returning *"),
        ("select 1; select 2", ";"),
    ],
)
def test_a_query_names_its_inputs_only(text: str, piece: str) -> None:
    assert mistake(text, query, tables=["input"])[1] == piece


@cases(
    "text",
    [
        "select * from input",
        "from Input select a",
        "with t as (select * from input) select * from t",
        "select * from range(3)",
        "select * from input, unnest([1, 2]) u(x)",
        "select * from (values (1), (2)) v(x)",
        "values (1), (2)",
        "(select a from input)",
        "select a from input union all by name select b from input",
        "select unnest(a) from input",
        "select * from input where a in (select max(a) from input)",
    ],
)
def test_a_query_may_use_its_inputs_its_ctes_and_rows_it_makes_up(text: str) -> None:
    assert sql(query(text, ["input"]))


CONNECTION_SETUP = """
    CREATE TABLE input AS SELECT range AS i, range % 3 AS g, 'n' || range AS s, [range, 1] AS l, {'a': range, 'b': 'x'} AS st,
        DATE '2020-01-01' + range::INT AS d, range * 1.5 AS v FROM range(20);
    CREATE TABLE other AS SELECT range AS i, 'o' || range AS o FROM range(5);
"""


@cases(
    "text",
    [
        "select * exclude (l) from input",
        "select * replace (i + 1 as i) from input",
        "select * rename (i as k) from input",
        "select columns('^i|g') from input",
        "select g, sum(v) from input group by all order by all",
        "select i from input union by name select i, o from other",
        "from input select i, g where i > 3",
        "select i, row_number() over w rn from input window w as (partition by g order by i desc) qualify rn = 1",
        "select i, lag(nullif(g, 1) ignore nulls) over (order by i) as before from input",
        "select i, sum(v) over (order by d range between interval 3 days preceding and current row) as s from input",
        "select * from input asof join other on input.i >= other.i",
        "select * from input semi join other using (i)",
        "select i, x.o from input, lateral (select o from other where other.i = input.i) x",
        "with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) select * from t",
        "select g, string_agg(distinct s, ',' order by s) as a, list(i order by i desc) as b from input group by g",
        "select g, i % 2 as m, count(*) as n from input group by grouping sets ((g), (i % 2), ())",
        "select * from input pivot (sum(v) for g in (0, 1, 2))",
        "select * from (unpivot input on i, g into name n value x)",
        "select l[1] as a, l[1:2] as b, st.a as c, st['b'] as d from input",
        "select [x * 2 for x in l if x > 1] as a from input",
        "select list_transform(l, lambda x: x + 1) as a, list_reduce(l, lambda x, y: x + y) as b from input",
        "select i // 2 as a, i / 2 as b, i % 2 as c, i ** 2 as d, -7 // 2 as e, i << 1 as f from input",
        "select d + interval 1 month as a, date_trunc('month', d) as b, extract(year from d) as c from input",
        "select percentile_cont(0.5) within group (order by i) as a, median(v) as b, quantile_cont(v, [0.25, 0.5]) as c from input",
        "select count(distinct g) as a, sum(i) filter (where g = 1) as b, arg_max(s, i) as c, max(i, 2) as d from input",
        "select trim(both 'x' from 'xax') as a, substring('hello' from 2 for 3) as b, position('l' in 'hello') as c",
        "select decode('\\xA0'::blob, 'replace') as a, regexp_replace('aa', 'a', 'b', 'g') as b, split_part('a-b', '-', 2) as c",
        "select '{\"a\": [1, 2]}'::json -> '$.a[0]' as a, '{\"a\": \"x\"}'::json ->> 'a' as b",
        "select distinct on (g) g, i from input order by g, i",
        "select * from input order by i desc nulls last limit 3 offset 2",
        "select i from input where (i, g) in ((1, 1), (2, 2))",
        "select map {'k': 1} as a, {'a': 1} as b, struct_pack(a := 1) as c, row(1, 2) as d, e'\\n' as e, 1_000 as f",
        "select try_cast(s as int) as a, i::decimal(10, 2) as b, st::struct(a bigint, b text) as c from input",
    ],
)
def test_a_query_means_the_same_after_it_was_read_and_written(text: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(CONNECTION_SETUP)
        before = connection.execute(text)
        columns, rows = (
            [(one[0].lower(), str(one[1])) for one in before.description],
            sorted(map(repr, before.fetchall())),
        )
        after = connection.execute(sql(query(text)))
        assert [(one[0].lower(), str(one[1])) for one in after.description] == columns
        assert sorted(map(repr, after.fetchall())) == rows


def test_comments_are_left_behind() -> None:
    assert sql(expression("a > 1 -- why\n  and /* b */ b")) == "a > 1 AND b"


def test_names_are_always_quoted() -> None:
    assert [sql(name('a"b')), sql(column("x", "t y")), sql(table("order"))] == ['"a""b"', '"t y"."x"', '"order"']


def test_a_type_that_is_none_is_refused() -> None:
    assert sql(data_type("DECIMAL(10,2)")) == "DECIMAL(10, 2)"
    assert mistake("int(", data_type)[0] == "`int(` is not a type"


@cases(
    "value",
    [
        *(
            None,
            True,
            0,
            -1,
            2**62,
            2**64,
            1.5,
            -0.0,
            1e300,
            1e-7,
            float("-inf"),
            Decimal("1.20"),
            Decimal("-0.001"),
            Decimal("1E+3"),
        ),
        *("x", "it's \\ \n \"", "zero\0byte", "", b"\x00\xff", b""),
        *(datetime(2020, 1, 2, 3, 4, 5, 6), date(1, 1, 1), time(1, 2), timedelta(days=-1, microseconds=5)),
        *([1, 2], [None, "a"], {"a": 1, "b c": [{"x": None}]}, UUID(int=7)),
    ],
)
def test_a_literal_comes_back_as_the_value_it_was(value: Any) -> None:
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT {sql(literal(value))}").fetchall() == [(value,)]


def test_a_literal_with_a_zone_is_the_same_instant() -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        written = sql(literal(datetime(2020, 6, 1, 12, tzinfo=UTC)))
        assert connection.execute(f"SELECT CAST({written} AS VARCHAR)").fetchall() == [("2020-06-01 12:00:00+00",)]


def test_a_value_without_a_spelling_is_refused() -> None:
    with pytest.raises(SqlMistake, match="a value of type `object` has no spelling in SQL"):
        literal(object())
