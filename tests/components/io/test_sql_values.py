"""Whatever a value is, it comes back from a database as it went, and a row that is refused is refused alone."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psycopg
import pymysql
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from penstock.components.base import ComponentFailure
from tests.components.harness import run, schema
from tests.components.io.test_sql import Database
from tests.jobs import run_job
from tests.servers import mariadb_server, mariadb_url, postgres_server, postgres_url

__all__ = ["mariadb_server", "mariadb_url", "postgres_server", "postgres_url"]

# To make a failing example smaller takes minutes where each try is a few statements of a server.
# To make a failing example smaller takes minutes where each try is a few statements of a server.
EXAMPLES = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12) | st.sampled_from(
    ["", "NULL", "\\N", "\\.", '"', "'", '""', ",", "a\r\nb", "\n", "\t", "{a,b}", "€", "\\x00", "%s", ":x", "🎉"]
)
PLAIN = st.booleans() | st.integers(-(2**53), 2**53) | TEXT
DOCUMENT = st.recursive(
    PLAIN, lambda of: st.lists(of, max_size=2) | st.dictionaries(TEXT, of, max_size=2), max_leaves=4
)
ZONES = st.sampled_from([datetime.timezone(datetime.timedelta(minutes=each)) for each in (0, 345, -480)])
MOMENT = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
ROW = st.fixed_dictionaries(
    {
        "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
        "real": st.none() | st.floats(allow_nan=False, width=64, allow_infinity=False),
        "price": st.none() | st.decimals(-(10**16), 10**16, places=2),
        "flag": st.none() | st.booleans(),
        "text": st.none() | TEXT,
        "day": st.none() | st.dates(),
        "clock": st.none() | st.times(),
        "moment": st.none() | MOMENT,
        "data": st.none() | st.binary(max_size=8),
        "uid": st.none() | st.uuids(),
        "zoned": st.none() | st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30), timezones=ZONES),
        "doc": st.none()
        | (st.lists(DOCUMENT, max_size=3) | st.dictionaries(TEXT, DOCUMENT, max_size=3)).map(json.dumps),
        "words": st.none() | st.lists(st.none() | TEXT, max_size=3),
        "days": st.none() | st.lists(st.none() | st.dates(), max_size=3),
        "mood": st.none() | st.sampled_from(["sad", "it's\\so so", "happy, NULL"]),
    }
)
SHAPE = schema(
    id="INTEGER", whole="BIGINT", real="DOUBLE", price="DECIMAL(20,2)", flag="BOOLEAN", text="VARCHAR", day="DATE",
    clock="TIME", moment="TIMESTAMP", data="BLOB", uid="UUID", zoned="TIMESTAMP WITH TIME ZONE", doc="JSON", words="VARCHAR[]",
    days="DATE[]", mood="VARCHAR",
)  # fmt: skip
MOODS = "('sad', 'it''s\\so so', 'happy, NULL')"


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def postgres(postgres_url: str, tmp_path: Path) -> Database:
    return Database("postgres", postgres_url, tmp_path)


ARRAYS = {"mood": "moods", "words": "text[]", "days": "date[]"}


@pytest.fixture
def moods(postgres: Database) -> None:
    with connected(postgres.url) as server:
        server.execute(f"CREATE TYPE moods AS ENUM {MOODS}".encode())


@EXAMPLES
@given(rows=st.lists(ROW, min_size=1, max_size=6))
@pytest.mark.parametrize("mode", ["replace", "upsert"])
@pytest.mark.usefixtures("moods")
def test_values_come_back_from_postgres_as_they_went(postgres: Database, mode: str, rows: list[dict[str, Any]]) -> None:
    numbered = [{"id": number, **row} for number, row in enumerate(rows)]
    if mode == "upsert":
        # Over rows that are there already, and have nothing in them.
        bare = [{name: row[name] if name == "id" else None for name in row} for row in numbered]
        postgres.write(bare, ["main"], SHAPE, mode="replace", keys=["id"], types=ARRAYS)
    postgres.write(numbered, ["main"], SHAPE, mode=mode, keys=["id"], types=ARRAYS)
    back = postgres.read("SELECT * FROM t ORDER BY id").main
    assert [_as_given(row) for row in back] == [_as_given(row) for row in numbered]


def _as_given(row: dict[str, Any]) -> dict[str, Any]:
    """A document as what it says, however it is written."""
    return {**row, "doc": json.loads(row["doc"]) if isinstance(row["doc"], str) else row["doc"]}


@pytest.fixture
def mariadb(mariadb_url: str, tmp_path: Path) -> Database:
    return Database("mysql", mariadb_url, tmp_path)


@contextmanager
def asked(database: Database) -> Iterator[Any]:
    """A cursor on the database's own connection, which commits by itself."""
    address, _, socket = database.url.partition("?unix_socket=")
    name = address.rpartition("/")[2]
    with pymysql.connect(
        unix_socket=unquote(socket), user="root", database=name, ssl_disabled=True, autocommit=True
    ) as server:
        yield server.cursor()


def _as_mariadb_has_it(row: dict[str, Any]) -> dict[str, Any]:
    """It has no zones, no lists, and no type for a UUID that others know; a time of day is a span of time."""
    clock, zoned = row["clock"], row["zoned"]
    midnight = datetime.datetime(2000, 1, 1)
    return {
        **row,
        "clock": clock and datetime.datetime.combine(midnight, clock) - midnight,
        "zoned": zoned and zoned.astimezone(datetime.UTC).replace(tzinfo=None),
        "uid": row["uid"] and str(row["uid"]),
        "days": row["days"] and [day and day.isoformat() for day in row["days"]],
    }


def _from_mariadb(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: json.loads(value) if name in ("doc", "words", "days") and value else value for name, value in row.items()
    }


@EXAMPLES
@given(rows=st.lists(ROW, min_size=1, max_size=6))
@pytest.mark.parametrize("copies", [1, 100], ids=["by INSERT", "by LOAD DATA"])
@pytest.mark.parametrize("mode", ["replace", "upsert", "update"])
def test_values_come_back_from_mariadb_as_they_went(
    mariadb: Database, mode: str, copies: int, rows: list[dict[str, Any]]
) -> None:
    rows = rows * (copies if copies == 1 else -(-600 // len(rows)))
    numbered = [{"id": number, **row} for number, row in enumerate(rows)]
    moods = MOODS.replace("\\", "\\\\")
    made = {"mode": "replace", "keys": ["id"], "types": {"mood": f"ENUM {moods} CHARACTER SET utf8mb4"}}
    if mode != "replace":
        bare = [{name: row[name] if name == "id" else None for name in row} for row in numbered]
        mariadb.write(bare, ["main"], SHAPE, **made)
    mariadb.write(numbered, ["main"], SHAPE, **(made if mode == "replace" else {"mode": mode, "keys": ["id"]}))
    back = mariadb.read("SELECT * FROM t ORDER BY id").main
    expected = [_as_given(_as_mariadb_has_it(row)) for row in numbered]
    assert [_from_mariadb(row) for row in back] == expected


COPIED = """\
components:
  - {{ name: rows, type: read_sql, params: {{ connection: "{url}", table: given }} }}
  - {{ name: out, type: write_sql, params: {{ connection: "{url}", table: t, mode: upsert, keys: [id] }} }}
connections: {{ data: rows.main -> out.input }}
"""
ODD = {
    "jsonb": ['{"a": [1, null, "x\\"y"]}', "null", "[]"],
    "int[]": ["{1,NULL,3}", "{}"],
    "text[]": ['{"a\\"b",NULL,"NULL","\\\\","x,y"}'],
    "numeric[]": ["{12345678901234567890.123456789,NULL,NaN,0.10}"],
    "numeric(30,2)[]": ["{1234567890123456789012345678.25,NULL}", "{NaN,1.50}"],
    "timestamptz[]": ['{"2024-01-31 12:00:00+02",NULL}'],
    "time[]": ["{12:34:56.789,NULL}"],
    "char(3)[]": ["{ab}"],
    "bytea[]": ['{"\\\\x00ff41",NULL}'],
    "jsonb[]": ['{"{\\"a\\": [1, null]}",NULL}'],
    "interval[]": ['{"1 year 04:05:06.5"}'],
    "inet[]": ["{10.0.0.1,10.0.0.0/8}"],
    "mood[]": ["{sad,NULL,happy}"],
    "timestamptz": ["2024-01-31 12:00:00+02", "infinity", "-infinity", "0044-03-15 12:00:00+00 BC"],
    "timestamp": ["2024-01-31 12:00:00.123456", "infinity", "-infinity"],
    "date": ["infinity", "-infinity", "0044-03-15 BC", "9999-12-31"],
    "numeric": ["12345678901234567890.123456789", "NaN", "-Infinity", "0.1"],
    "numeric(10,2)": ["1.50", "NaN"],
    "float8": ["NaN", "Infinity", "-Infinity", "1e300", "0.1"],
    "interval": ["1 year 2 mons -3 days +04:05:06.5", "-00:00:01"],
    "inet": ["10.0.0.1", "10.0.0.0/8"],
    "uuid": ["2433439b-3a82-4794-90d4-4fc5d715e634"],
    "bytea": ["\\x00ff41"],
    "mood": ["sad", "happy"],
    "time": ["12:34:56.789"],
    "timetz": ["12:34:56+02"],
    "char(5)": ["ab   "],
    "oid": ["4294967295"],
    "money": ["$12.50"],
    "int4range": ["[1,3)"],
    "bit(4)": ["0101"],
}


@pytest.mark.parametrize("type", ODD)
def test_every_type_of_postgres_is_read_and_written_again_as_it_was(postgres: Database, type: str) -> None:
    with connected(postgres.url) as server:
        server.execute("DROP TYPE IF EXISTS mood CASCADE")
        server.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
        for value in [None, *ODD[type]]:
            server.execute("DROP TABLE IF EXISTS given; DROP TABLE IF EXISTS t")
            server.execute(f"CREATE TABLE given (id int, v {type})")
            server.execute(f"CREATE TABLE t (id int PRIMARY KEY, v {type})")
            server.execute(f"INSERT INTO given VALUES (1, %s::text::{type})", [value])
            ran = run_job(COPIED.format(url=postgres.url), postgres.folder, execution_id=f"run-{value!r}")
            assert ran.status == "completed", ran
            same = "SELECT given.v IS NOT DISTINCT FROM t.v, t.v::text = given.v::text FROM given JOIN t USING (id)"
            assert server.execute(same).fetchone() == (True, None if value is None else True), value


def test_a_table_that_is_made_has_arrays_where_the_rows_have_lists(postgres: Database) -> None:
    with connected(postgres.url) as server:
        server.execute("CREATE TABLE given (id int, a int[], n numeric(30,2)[], z timestamptz[], u uuid[], t text[])")
        value = "{1,NULL}", "{1234567890123456789012345678.25}", "{2024-01-31 12:00:00+02}", "{}", '{"a,b","c d",NULL}'
        server.execute("INSERT INTO given VALUES (1, %s, %s, %s, %s, %s), (2, NULL, NULL, NULL, NULL, NULL)", value)
        ran = run_job(COPIED.format(url=postgres.url).replace("upsert", "replace"), postgres.folder)
        assert ran.status == "completed", ran.error
        shape = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attnum > 1 AND attrelid = %s::regclass"
        assert server.execute(shape, ["t"]).fetchall() == server.execute(shape, ["given"]).fetchall()
        assert server.execute("SELECT * FROM t ORDER BY id").fetchall() == server.execute("TABLE given").fetchall()


def test_an_array_of_arrays_is_refused_with_the_way_to_read_it(postgres: Database) -> None:
    with pytest.raises(
        ComponentFailure, match=r"array of arrays can only be read as text or JSON, such as `to_json\(a\)`"
    ):
        postgres.read("SELECT '{{1,2},{3,4}}'::int[] AS a")
    assert postgres.read("SELECT to_json('{{1,2},{3,4}}'::int[]) AS a").main == [{"a": "[[1,2],[3,4]]"}]


def test_what_gives_no_rows_is_named_and_nothing_is_changed(postgres: Database) -> None:
    postgres.write([{"id": 1}], create=True)
    with pytest.raises(ComponentFailure, match="`DELETE FROM t` gives no rows to read; hint: it must be a SELECT"):
        postgres.read("DELETE FROM t")
    assert postgres.rows() == [(1,)]
    with pytest.raises(ComponentFailure, match='syntax error at or near "t"'):
        postgres.read("SELECT id FRM t")


def test_numbers_that_no_decimal_holds_are_told_of(postgres: Database) -> None:
    ran = postgres.read("SELECT 12345678901234567890123.5 AS few UNION ALL SELECT 1e-20")
    assert ran.main[0]["few"] == 12345678901234567890123.5
    assert "`few` has numbers that need 43 digits, which no DECIMAL has: they are read as DOUBLE" in "".join(ran.said)


def test_a_table_is_named_with_quotes_in_its_name(postgres: Database) -> None:
    with connected(postgres.url) as server:
        server.execute('CREATE TABLE "a ""b"". c" (id int)')
        postgres.write([{"id": 1}], table='"a ""b"". c"')
        assert server.execute('TABLE "a ""b"". c"').fetchall() == [(1,)]
    with pytest.raises(ComponentFailure, match=r"a part with a dot or a quote in it is written in quotes"):
        postgres.read(table='a "b"')


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no number": ({"n": "x"}, "1366"),
    "too large": ({"n": "99999999999"}, "1264"),
    "nothing": ({"n": None}, "1048"),
    "too long": ({"name": "abcd"}, "1406"),
    "checked": ({"n": "7777"}, "4025"),
    "no member": ({"mood": "glad"}, "1265"),
    "no day": ({"day": "2024-02-30"}, "1292"),
    "no parent": ({"parent": 5}, "1452"),
}


@EXAMPLES
@given(
    bad=st.dictionaries(st.integers(1, 1500), st.sampled_from(sorted(WRONG)), max_size=4),
    size=st.sampled_from([70, 600, 1500]),
)
@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
def test_exactly_the_rows_that_are_wrong_are_refused_by_mariadb(
    mariadb: Database, mode: str, bad: dict[int, str], size: int
) -> None:
    """LOAD DATA by itself would take them, changed, with no more than a remark."""
    good = {"n": "1", "name": "abc", "mood": "sad", "day": "2024-01-31", "parent": 1}
    rows = [{"id": number, **good, **(WRONG[bad[number]][0] if number in bad else {})} for number in range(1, 1501)]
    with asked(mariadb) as server:
        server.execute("DROP TABLE IF EXISTS t, parents")
        server.execute("CREATE TABLE parents (id INT PRIMARY KEY)")
        server.execute("INSERT INTO parents VALUES (1)")
        server.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL CHECK (n <> 7777), name VARCHAR(3), mood ENUM ('sad'), "
            "day DATE, parent INT, FOREIGN KEY (parent) REFERENCES parents (id))"
        )
        if mode == "update":
            server.execute("INSERT INTO t (id, n) SELECT seq, 0 FROM seq_1_to_1500")
        ran = mariadb.write(rows, ["main", "reject"], mode=mode, keys=["id"], batch_size=size)
        server.execute("SELECT id, n, name, mood, day, parent FROM t WHERE n = 1 ORDER BY id")
        kept = server.fetchall()
    fine = (1, "abc", "sad", datetime.date(2024, 1, 31), 1)
    assert list(kept) == [(number, *fine) for number in range(1, 1501) if number not in bad]
    codes = {row["id"]: row["error_code"] for row in ran.outputs["reject"]}
    assert codes == {number: WRONG[reason][1] for number, reason in bad.items()}
    assert len(ran.main) == 1500 - len(bad)


def test_a_key_that_is_there_already_is_refused_by_mariadb_with_everything_or_alone(mariadb: Database) -> None:
    rows = [{"id": number} for number in range(1, 2001)]
    with asked(mariadb) as server:
        server.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        server.execute("INSERT INTO t VALUES (77), (1999)")
        with pytest.raises(ComponentFailure, match=r"row 77: Duplicate entry '77'") as failed:
            mariadb.write(rows)
        assert failed.value.kind == "constraint"
        server.execute("SELECT count(*) FROM t")
        assert server.fetchone() == (2,)
        ran = mariadb.write(rows, ["main", "reject"])
        assert [(row["id"], row["error_code"]) for row in ran.outputs["reject"]] == [(77, "1062"), (1999, "1062")]
        server.execute("SELECT count(*) FROM t")
        assert server.fetchone() == (2000,)


@EXAMPLES
@given(bad=st.sets(st.integers(1, 60), max_size=20), size=st.integers(1, 70))
@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_exactly_the_rows_that_are_wrong_are_refused(postgres: Database, mode: str, bad: set[int], size: int) -> None:
    rows = [{"id": number, "n": "x" if number in bad else str(number)} for number in range(1, 61)]
    with connected(postgres.url) as server:
        server.execute("DROP TABLE IF EXISTS t")
        server.execute("CREATE TABLE t (id int PRIMARY KEY, n int CHECK (n <> 7))")
        ran = postgres.write(rows, ["main", "reject"], mode=mode, keys=["id"], batch_size=size)
        kept = {row[0] for row in server.execute("SELECT id FROM t").fetchall()}
    assert kept == set(range(1, 61)) - bad - {7}
    codes = {row["id"]: row["error_code"] for row in ran.outputs["reject"]}
    assert codes == dict.fromkeys(bad, "22P02") | ({} if 7 in bad else {7: "23514"})
    assert {row["id"] for row in ran.main} == kept


def test_a_text_with_a_zero_byte_is_refused_alone(postgres: Database) -> None:
    rows = [{"id": 1, "text": "a"}, {"id": 2, "text": "b\0c"}, {"id": 3, "text": "d"}]
    ran = postgres.write(rows, ["main", "reject"], create=True)
    assert [row["id"] for row in ran.outputs["reject"]] == [2]
    assert ran.outputs["reject"][0]["error_code"] == "22021"
    assert [row[0] for row in postgres.rows()] == [1, 3]


@EXAMPLES
@given(st.lists(st.tuples(st.none() | st.integers(1, 4), st.integers(0, 99)), min_size=1, max_size=12))
@pytest.mark.parametrize("mode", ["upsert", "update", "delete"])
def test_rows_with_one_key_count_as_if_they_came_one_after_the_other(
    postgres: Database, mode: str, given_rows: list[tuple[int | None, int]]
) -> None:
    """The same rows in batches of one are the law."""
    rows = [{"id": key, "v": value} for key, value in given_rows]
    found = []
    for size in (1, 100):
        with connected(postgres.url) as server:
            server.execute("DROP TABLE IF EXISTS t")
            server.execute("CREATE TABLE t (id int UNIQUE, v int)")
            server.execute("INSERT INTO t VALUES (1, -1), (2, -2), (9, -9)")
            shape = schema(id="INTEGER", v="INTEGER")
            ran = postgres.write(rows, ["main"], shape, mode=mode, keys=["id"], batch_size=size)
            kept = server.execute("SELECT id, v FROM t ORDER BY id, v").fetchall()
        found.append((kept, ran.result["rows"]))
    assert found[0] == found[1]


@EXAMPLES
@given(
    st.lists(st.tuples(st.none() | st.sampled_from(["a", "A", "b", "c"]), st.integers(0, 99)), min_size=1, max_size=12)
)
@pytest.mark.parametrize("mode", ["upsert", "update", "delete"])
def test_rows_that_mariadb_holds_to_have_one_key_count_as_if_they_came_one_after_the_other(
    mariadb: Database, mode: str, given_rows: list[tuple[str | None, int]]
) -> None:
    rows = [{"id": key, "v": value} for key, value in given_rows]
    found = []
    for size in (1, 100):
        with asked(mariadb) as server:
            server.execute("CREATE OR REPLACE TABLE t (id VARCHAR(9) UNIQUE, v INT)")
            server.execute("INSERT INTO t VALUES ('a', -1), ('b', -2), ('z', -9)")
            shape = schema(id="VARCHAR", v="INTEGER")
            ran = mariadb.write(rows, ["main"], shape, mode=mode, keys=["id"], batch_size=size)
            server.execute("SELECT id, v FROM t ORDER BY id, v")
            found.append((server.fetchall(), ran.result["rows"]))
    assert found[0] == found[1]


def test_keys_that_only_the_server_holds_to_be_the_same_are_written_one_after_the_other(postgres: Database) -> None:
    with connected(postgres.url) as server:
        server.execute("CREATE TABLE t (name char(5) PRIMARY KEY, v int)")
        postgres.write([{"name": "Ada", "v": 1}, {"name": "Ada ", "v": 2}], ["main"], mode="upsert", keys=["name"])
        assert server.execute("SELECT name::text, v FROM t").fetchall() == [("Ada", 2)]


def test_rows_are_counted_while_they_are_read_and_written(postgres: Database) -> None:
    seen: list[tuple[str, int]] = []

    def progress(port: str, rows: int) -> None:
        seen.append((port, rows))

    given_rows = [{"id": number} for number in range(50)]
    params = {"connection": postgres.url, "table": "t", "create": True, "batch_size": 20}
    run("write_sql", params, {"input": given_rows}, folder=postgres.folder, connected=["main"], progress=progress)
    assert [rows for _, rows in seen] == [0, 20, 40, 50]
    seen.clear()
    run("read_sql", {"connection": postgres.url, "table": "t"}, folder=postgres.folder, progress=progress)
    assert seen[-1] == ("main", 50)


def test_a_reader_of_postgres_cannot_change_anything(postgres: Database) -> None:
    with connected(postgres.url) as server:
        server.execute("CREATE TABLE t (id int)")
        server.execute(
            "CREATE FUNCTION add() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (1); RETURN 1; END $$"
        )
        with pytest.raises(Exception, match="read-only transaction"):
            postgres.read("SELECT add() AS a")
        assert server.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_values_are_bound_also_where_a_copy_takes_none(postgres: Database) -> None:
    given_values = {
        "text": 'it\'s :x \\ "q"',
        "day": datetime.date(2024, 1, 31),
        "price": Decimal("1.50"),
        "ids": [1, 2],
    }
    query = "SELECT :text AS a, :day::date AS b, :price::numeric(5,2) AS c, 2 = ANY(:ids::int[]) AS d"
    (row,) = postgres.read(query, params=given_values).main
    assert row == {"a": given_values["text"], "b": given_values["day"], "c": given_values["price"], "d": True}
