"""Rows that stay in Snowflake, as far as an emulator of it (fakesnow) carries: the SELECTs that other engines are held to, the
examples of all components, and jobs from a table into a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from docs.generator.examples import output_of, run_example
from penstock.components.registry import ComponentRegistry, built_in, example_of
from penstock.data.binder import Binder
from penstock.data.database.snowflake import SnowflakeEngine
from penstock.data.database.snowflake_sql import check, snowflake_query
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.data.sql_rules import SqlMistake
from penstock.dialects.job.compile import compile_text
from penstock.dialects.job.plan import plan_text
from penstock.ports.rows import Column, EngineSession, OwnQuery, Relation, Schema
from penstock.tools.sql.snowflake_server import SnowflakeServer
from tests.cases import cases
from tests.data.engine_contract import QUERIES, ROWS, SCHEMA, shown
from tests.snowflake import WARNINGS, snowflake_drivers, snowflake_port

__all__ = ["snowflake_drivers", "snowflake_port"]
pytestmark = WARNINGS
NOT_CARRIED = ("tags", "s", "huge")
"""Lists and structures by the engine; whole numbers of more than 64 bits by the emulator."""
PLAIN: Schema = tuple(column for column in SCHEMA if column.name not in NOT_CARRIED)
PLACES = [place for place, column in enumerate(SCHEMA) if column.name not in NOT_CARRIED]
SCHEMAS = {"input": PLAIN, "other": PLAIN}
Both = list[tuple[EngineSession, dict[str, Relation]]]
Ask = Callable[[str], list[Any]]


def login(port: int) -> dict[str, Any]:
    options = {"account": "fakesnow", "protocol": "http", "schema": "PUBLIC", "network_timeout": 60}
    told = {"user": "fake", "password": "a-password-of-mine", "host": "localhost", "port": port, "database": "SHOP"}
    return {"kind": "dbapi", "driver": "snowflake.connector", **told, "options": options}


@pytest.fixture
def there(snowflake_port: int, tmp_path: Path) -> Iterator[SnowflakeEngine]:
    engine = SnowflakeEngine(tmp_path / "there", SnowflakeServer(login(snowflake_port)))
    yield engine
    engine.close()


@pytest.fixture
def both(there: SnowflakeEngine, tmp_path: Path) -> Iterator[Both]:
    here = DuckDbEngine(tmp_path / "here")
    sessions: list[EngineSession] = [here.session(), there.session()]
    rows = [[row[place] for place in PLACES] for row in ROWS]
    yield [
        (session, {"input": session.load(PLAIN, [rows]), "other": session.load(PLAIN, [rows[1:4]])})
        for session in sessions
    ]
    for session in sessions:
        session.close(())
    here.close()


REFUSED = {
    "casts": "otherwise as text", "texts": "string_split", "patterns": "regexp_extract_all", "dates": "dayname",
    "dates out of texts": "try_strptime", "groups": "first", "totals of nothing": "list",
    "windows over what is there": "IGNORE NULLS", "structures": "{'a':", "lists": "LAMBDA", "unnested": "UNNEST",
    "json": "json_extract_string", "numbers": "range",
}  # fmt: skip
"""What has no counterpart there, and a word of what is said about it. Rows that come of no others are made here instead."""
CARRIED = {name: query.replace(", tags, s)", ")") for name, query in QUERIES.items() if name not in REFUSED} | {
    "some casts": "SELECT id, CAST(price AS INTEGER) AS ip, CAST(n AS VARCHAR) AS v, CAST(price AS VARCHAR) AS vp,"
    " CAST(x AS BIGINT) AS i, TRY_CAST(name AS INTEGER) AS no, CAST(d AS TIMESTAMP) AS dt, CAST(t AS DATE) AS td,"
    " CAST(d AS VARCHAR) AS vd, CAST(ok AS VARCHAR) AS vo, CAST(n AS DOUBLE) AS nd, CAST(k AS DECIMAL(12,3)) AS kd,"
    " CAST('2024-05-06' AS DATE) AS fixed FROM input",
    "some texts": "SELECT id, upper(name) AS u, lower(name) AS l, length(name) AS n, name || '!' AS c,"
    " concat(name, '-', n) AS cc, left(name, 2) AS lf, right(name, 2) AS rt, substr(name, 2, 2) AS sb,"
    " trim('  ' || name || ' ') AS tr, ltrim('  ' || name) AS lt,"
    " rtrim(name || ' ') AS rt2, replace(name, 'a', 'b') AS rp, reverse(name) AS rv,"
    " repeat(name, 2) AS rr, lpad(name, 6, '*') AS lp, contains(name, 'nn') AS co, starts_with(name, 'A') AS sw,"
    " name LIKE 'A%' AS lk, name ILIKE 'a%' AS il, split_part(name, '.', 2) AS sp, translate(name, 'an', 'xy') AS ts,"
    " md5(name) AS m5, sha256(name) AS sh, strpos(name, 'n') AS ps, name IN ('Anna', '') AS is_in FROM input",
    "some dates": "SELECT id, year(d) AS y, month(d) AS m, day(d) AS dd, quarter(d) AS q, d + 3 AS later,"
    " d - DATE '2024-01-01' AS days, date_trunc('month', t) AS tm, date_diff('month', DATE '2023-11-30', d) AS months,"
    " last_day(d) AS ld, hour(t) AS h, extract(month FROM d) AS em, z AS zone FROM input",
    "some groups": "SELECT k, count(*) AS c, count(n) AS cn, count(DISTINCT n) AS cd, sum(n) AS s, sum(price) AS sp,"
    " avg(n) AS a, avg(price) AS ap, min(name) AS mn, max(d) AS mx, bool_or(ok) AS bo, median(x) AS md, stddev(x) AS sd,"
    " string_agg(name, ',' ORDER BY id) AS st, arg_max(name, id) AS am, sum(n) FILTER (WHERE n > 0) AS sf,"
    " count(*) FILTER (WHERE n > 0) AS cf, count_if(ok) AS ci, quantile_cont(x, 0.25) AS qc FROM input GROUP BY k",
    "numbered as they come": "SELECT id, row_number() OVER () AS place FROM input WHERE id > 1",
    "sorted by a window": "SELECT id, row_number() OVER (ORDER BY id DESC) AS r FROM input ORDER BY r",
    "the first of them": "SELECT id FROM input LIMIT 2",
    "sorted without doubles": "SELECT DISTINCT n FROM input ORDER BY n DESC NULLS LAST",
}


@cases("name", list(CARRIED))
def test_a_query_gives_the_same_on_both(name: str, both: Both) -> None:
    made = []
    for session, inputs in both:
        relation = session.select(CARRIED[name], inputs)
        made.append((relation.schema, relation.rows, shown(session, relation)))
    assert made[1] == made[0]


@cases("name", list(CARRIED))
def test_nothing_that_is_carried_is_refused_before_the_run(name: str) -> None:
    binder = Binder()
    check(CARRIED[name], SCHEMAS, lambda part: binder.schema(part, SCHEMAS))
    snowflake_query(CARRIED[name], SCHEMAS, lambda part: binder.schema(part, SCHEMAS))


@cases("name", list(REFUSED))
def test_what_has_no_counterpart_is_said_before_the_run(name: str) -> None:
    binder = Binder()
    schemas = {"input": SCHEMA, "other": SCHEMA}
    with pytest.raises(SqlMistake) as refused:
        snowflake_query(QUERIES[name], schemas, lambda part: binder.schema(part, schemas))
    assert REFUSED[name] in refused.value.message


@cases("call", ["trim(name, 'x')", "ltrim(name, 'x')", "rtrim(name, 'x')", "trim(LEADING 'x' FROM name)"])
def test_other_characters_than_blanks_are_not_trimmed(call: str) -> None:
    with pytest.raises(SqlMistake, match="takes only blanks away"):
        snowflake_query(f"SELECT {call} AS t FROM input", SCHEMAS, lambda part: ())


@cases("order", ["n DESC NULLS LAST, id", "name, id DESC", "id + 0 DESC"])
def test_rows_keep_the_order_that_they_were_sorted_in(order: str, both: Both) -> None:
    found = []
    for session, inputs in both:
        rows = session.select(f"SELECT *, n AS m FROM input ORDER BY {order}", inputs)
        fewer = session.select("SELECT id, m FROM it WHERE id <> 3", {"it": rows})
        found.append([row for batch in session.rows("SELECT id, m FROM it", {"it": fewer}) for row in batch])
    assert found[1] == found[0]


def test_a_query_that_sorts_numbers_its_rows() -> None:
    """The emulator keeps rows as they come; Snowflake does not."""
    text = snowflake_query("SELECT Id FROM input ORDER BY n DESC NULLS LAST", SCHEMAS, lambda part: ())
    order = '"n" DESC NULLS LAST'
    assert text == f'SELECT "id", ROW_NUMBER() OVER (ORDER BY {order}) AS "#place" FROM "input" ORDER BY {order}'


def test_rows_that_are_exported_come_back_as_they_were(both: Both, there: SnowflakeEngine, tmp_path: Path) -> None:
    session, inputs = both[1]
    there.export(inputs["input"], tmp_path / "rows.parquet")
    again = there.attach(tmp_path / "rows.parquet", PLAIN, 5, "")
    assert shown(session, again) == shown(session, inputs["input"]) == shown(both[0][0], both[0][1]["input"])


def test_a_query_of_the_author_has_columns_of_types_that_hold_its_values(there: SnowflakeEngine) -> None:
    session = there.session()
    found = session.take(OwnQuery('SELECT 1 AS "a", CAST(2 AS NUMBER(12,2)) AS "b", \'x\' AS "c"'))
    assert found.schema == (Column("a", "BIGINT"), Column("b", "DECIMAL(12,2)"), Column("c", "VARCHAR"))
    assert found.rows == 1
    session.close(())


# ---- Every component

REGISTRY = ComponentRegistry(with_lineage=False)
ELSEWHERE = {
    "write_json": "TEXT[]", "write_sql": "leave `reject` unconnected", "denormalise": "`list`", "fill_down": "IGNORE NULLS",
    "lookup": "no order", "normalise": "[NULL]", "sample": "hash", "unpivot": "q1", "assert_rows": "regexp_full_match",
    "check_schema": "regexp_full_match", "convert_types": "try_strptime", "data_profile": "not carried",
    "replace": "regexp_replace", "extract_regex": "not carried", "extract_json": "json_valid",
    "extract_delimited": "string_split", "extract_positional": "concat_ws", "fuzzy_match": "jaro_winkler_similarity",
    "merge_changes": "concat_ws", "format_columns": "strftime",
}  # fmt: skip
"""Types whose example cannot run there, and a word of what is said about it before the run."""
THERE = [
    type_
    for type_ in built_in()
    if type_ not in ELSEWHERE
    and type_ not in ("read_file", "http_rows")
    and type(REGISTRY.get(type_)).family not in ("file", "orchestrate")
]
KEYS = "keychain:\n  - { name: password, kind: env, var: PASSWORD }\n"
HOME = """\
  home:
    kind: dbapi
    driver: snowflake.connector
    user: fake
    password: "{{ keychain.password }}"
    host: localhost
    port: PORT
    database: SHOP
    options: { account: fakesnow, protocol: http, schema: PUBLIC, network_timeout: 60 }
"""
ENGINE = "{ kind: database, connection: home }"


def in_snowflake(text: str, port: int, engine: str = ENGINE) -> str:
    named = f"connections:\n{HOME.replace('PORT', str(port))}"
    text = text.replace("connections:\n", named, 1) if "\nconnections:\n" in text else f"{text}\n{named}"
    text = text.replace("keychain:\n", KEYS, 1) if "\nkeychain:\n" in text else f"{text}\n{KEYS}"
    return f"{text}\njob_config: {{ engine: {engine} }}\n"


@cases("type_", THERE)
def test_the_example_of_a_component_shows_the_same_there(type_: str, snowflake_port: int, tmp_path: Path) -> None:
    text, folder = example_of(type(REGISTRY.get(type_))), tmp_path.resolve() / type_
    folder.mkdir()
    given = run_example(in_snowflake(text, snowflake_port), folder, REGISTRY)
    assert given.status == "completed", given.error
    assert sorted(given.lines) == sorted(output_of(type_, text))


@cases("type_", list(ELSEWHERE))
def test_a_component_that_cannot_run_there_is_refused_before_the_run(type_: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="NOT_ON_ENGINE") as refused:
        run_example(in_snowflake(example_of(type(REGISTRY.get(type_))), 9), tmp_path.resolve(), REGISTRY)
    assert ELSEWHERE[type_] in str(refused.value)


# ---- Jobs


def city_of(i: int) -> str | None:
    return None if i % 7 == 0 else f"City {i % 5}"


@pytest.fixture
def ask(snowflake_port: int) -> Iterator[Ask]:
    link = SnowflakeServer(login(snowflake_port)).connect()

    def asked(text: str) -> list[Any]:
        with link.connection.cursor() as cursor:
            found: list[Any] = cursor.execute(text).fetchall()
            return found

    asked('CREATE OR REPLACE TABLE "orders" ("id" INTEGER, "City" VARCHAR, "amount" NUMBER(10,2), "day" DATE)')
    rows = [
        f"({i}, {repr(city_of(i)).replace('None', 'NULL')}, {i * 1.5}, '2024-01-{i % 30 + 1:02}')"
        for i in range(1, 201)
    ]
    asked(f'INSERT INTO "orders" VALUES {", ".join(rows)}')
    asked('CREATE OR REPLACE TABLE "totals" ("City" VARCHAR, "total" NUMBER(12,2), "orders" INTEGER, "last" DATE)')
    asked("INSERT INTO \"totals\" VALUES ('City 1', 1, 1, NULL), ('Elsewhere', 2, 2, NULL)")
    yield asked
    link.close()


JOB = """
metadata: { name: totals }
context: { engine: { kind: database, connection: home } }
connections:
  data: |
    orders.main -> paid.input
    paid.main -> totals.input
    totals.main -> out.input
components:
  - { name: orders, type: read_sql, params: { connection: home, table: orders } }
  - { name: paid, type: filter, params: { where: "WHERE_HERE" } }
  - { name: totals, type: aggregate, params: { by: [City], measures: { total: sum(amount), orders: count(*), last: max(day) } } }
  - { name: out, type: write_sql, params: { connection: home, table: totals, MODE_HERE } }
"""
TOTALS = 'SELECT "City", "total", "orders", "last" FROM "totals"'


def job(port: int, where: str = "amount > 10", mode: str = "mode: replace") -> str:
    text = JOB.replace("WHERE_HERE", where).replace("MODE_HERE", mode)
    return in_snowflake(text, port, '"{{ context.engine }}"')


def run(folder: Path, text: str, **more: Any) -> Any:
    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return penstock.run(path, home=folder / ".penstock", **more)


def counts(run: Any) -> dict[str, dict[str, int]]:
    ends = [event for event in run.events() if event["event_type"] == "component.ok"]
    return {end["scope"]: {port: one["rows"] for port, one in end["payload"]["outputs"].items()} for end in ends}


def test_a_job_runs_there_and_leaves_nothing_behind(ask: Ask, snowflake_port: int, tmp_path: Path) -> None:
    done = run(tmp_path, job(snowflake_port))
    assert done.status == "completed", done.error
    assert counts(done)["orders"] == {"main": 200}
    assert counts(done)["paid"] == {"main": 194}
    assert counts(done)["totals"] == {"main": 6}
    cities = {city_of(i) for i in range(7, 201)}
    wanted = [(city, [i for i in range(7, 201) if city_of(i) == city]) for city in cities]
    found = sorted((str(city), float(total), orders) for city, total, orders, _ in ask(TOTALS))
    assert found == sorted((str(city), sum(ids) * 1.5, len(ids)) for city, ids in wanted)
    assert not [row for row in ask("SHOW TABLES") if "penstock" in str(row)]


CHANGES = {
    "insert": ("mode: insert", 6, 8),
    "update": ("mode: update, keys: [City]", 1, 2),
    "upsert": ("mode: upsert, keys: [City]", 6, 7),
    "delete": ("mode: delete, keys: [City], columns: [City]", 1, 1),
    "truncate_insert": ("mode: truncate_insert", 6, 6),
    "around": ('mode: insert, before: \'DELETE FROM "totals"\', after: \'UPDATE "totals" SET "orders" = 0\'', 6, 6),
    "other names": ("mode: insert, columns: { City: City, total: total }", 6, 8),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_change_of_a_table_is_one_statement(change: str, ask: Ask, snowflake_port: int, tmp_path: Path) -> None:
    mode, written, rows = CHANGES[change]
    where = "City IS NOT NULL" if change in ("update", "upsert", "delete") else "amount > 10"
    written, rows = (5, 6) if change == "upsert" else (written, rows)
    done = run(tmp_path, job(snowflake_port, where=where, mode=mode))
    assert done.status == "completed", done.error
    after = [
        one["payload"].get("after") for one in done.events() if one["scope"] == "out" and "after" in one["payload"]
    ]
    said = {name: value for name, value in after[-1].items() if name.startswith("NB_LINE_")}
    assert sum(said.values()) == written
    found = ask(TOTALS)
    assert len(found) == rows
    in_one = [total for city, total, *_ in found if city == "City 1"]
    assert (1 in in_one) == (change in ("insert", "other names"))
    assert any(total > 1 for total in in_one) == (change != "delete")
    assert ({orders for _, _, orders, _ in found} == {0}) == (change == "around")


def test_a_statement_commits_by_itself_whatever_the_options_of_the_connection_say(
    ask: Ask, snowflake_port: int
) -> None:
    given = login(snowflake_port)
    link = SnowflakeServer({**given, "options": {**given["options"], "autocommit": False}}).connect()
    link.connection.cursor().execute('DELETE FROM "totals"')
    assert ask(TOTALS) == []
    link.close()


def test_two_rows_with_one_key_are_refused_and_nothing_is_written(
    ask: Ask, snowflake_port: int, tmp_path: Path
) -> None:
    before = ask(TOTALS)
    text = job(snowflake_port, mode="mode: upsert, keys: [last]").replace("last: max(day)", "last: min(day - day)")
    done = run(tmp_path, text)
    assert done.status == "failed"
    assert done.error["component"] == "out"
    assert "two rows have the same `keys`" in done.error["message"]
    assert ask(TOTALS) == before


def test_what_fails_in_the_transaction_leaves_the_table_as_it_was(
    ask: Ask, snowflake_port: int, tmp_path: Path
) -> None:
    before = ask(TOTALS)
    done = run(tmp_path, job(snowflake_port, mode="mode: truncate_insert, after: 'SELECT * FROM \"nowhere\"'"))
    assert done.status == "failed"
    assert done.error["component"] == "out"
    assert "nowhere" in done.error["message"]
    assert ask(TOTALS) == before


def test_a_failure_is_that_of_the_component_it_is_in(ask: Ask, snowflake_port: int, tmp_path: Path) -> None:
    done = run(tmp_path, job(snowflake_port, where="CAST(City AS INTEGER) > 1"))
    assert done.status == "failed"
    assert done.error["component"] == "paid"
    assert done.error["kind"] == "conversion"


CROSSING = """
connections:
  data: |
    given.main -> code.input
    code.main -> sorted.input
    sorted.main -> out.input
components:
  - { name: given, type: read_csv, params: { path: given.csv } }
  - { name: code, type: python, params: { mode: row, code: "row['id'] += 1" } }
  - { name: sorted, type: sort, params: { by: [id desc] } }
  - { name: out, type: write_csv, params: { path: out.csv } }
"""


def test_rows_come_here_for_components_that_need_them_here(snowflake_port: int, tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_text("id,name\n1,a'b\n2,c\\d\n3,\n", encoding="utf-8")
    done = run(tmp_path, in_snowflake(CROSSING, snowflake_port))
    assert done.status == "completed", done.error
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines() == ["id,name", "4,", "3,c\\d", "2,a'b"]


RESUMED = """
metadata: { name: two }
connections:
  data: |
    orders.main -> paid.input
    paid.main -> out.input
    later.main -> seen.input
  control: orders (subjob_ok) later
components:
  - name: orders
    type: read_sql
    params:
      connection: home
      query: SELECT "id", "City" FROM "orders" WHERE "id" < :most AND "City" LIKE 'City%'
      params: { most: 5 }
  - { name: paid, type: filter, params: { where: "id > 1" } }
  - { name: out, type: write_sql, params: { connection: home, table: first, create: true } }
  - { name: later, type: read_sql, params: { connection: home, table: not_yet } }
  - { name: seen, type: write_csv, params: { path: seen.csv } }
"""


def test_a_resume_goes_on_after_what_was_done(ask: Ask, snowflake_port: int, tmp_path: Path) -> None:
    lost = run(tmp_path, in_snowflake(RESUMED, snowflake_port))
    assert lost.status == "failed"
    assert lost.error["component"] == "later"
    ask('CREATE TABLE "not_yet" AS SELECT 1 AS "n"')
    done = penstock.resume(lost)
    assert done.status == "completed", done.error
    assert ask('SELECT count(*) FROM "first"') == [(3,)]
    assert (tmp_path / "seen.csv").read_text(encoding="utf-8").splitlines() == ["n", "1"]


# ---- Before the run


def problems(text: str) -> list[str]:
    return [f"{one.code} {one.message}" for one in compile_text(text, "job.yaml", REGISTRY).problems]


def test_what_a_writer_cannot_do_there_is_refused_before_the_run() -> None:
    assert not problems(job(9))
    refused = problems(job(9, mode="commit_every: 5"))
    assert any(one.startswith("J0318") and "leave `commit_every` out" in one for one in refused)


def test_other_drivers_and_a_schema_are_refused_before_the_run() -> None:
    other = job(9).replace("driver: snowflake.connector", "driver: sqlite3")
    assert any(one.startswith("J0317") and "with the driver `sqlite3`" in one for one in problems(other))
    schema = job(9).replace(ENGINE, "{ kind: database, connection: home, schema: x }")
    assert any(one.startswith("J0317") and "`schema` is only for PostgreSQL" in one for one in problems(schema))


def test_a_plan_shows_what_runs_there() -> None:
    text = in_snowflake(CROSSING, 9)
    assert ", engine database, connection home\n" in plan_text(compile_text(text, "job.yaml", REGISTRY))
