"""The engine as components see it: queries over relations, rows in and out of Python and Arrow, files."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession
from penstock.ports.rows import Column, Copy, Relation, RowsFailed


def rows(session: DuckDbSession, relation: Relation, query: str = "SELECT * FROM t") -> list[tuple[Any, ...]]:
    return [row for batch in session.rows(query, {"t": relation}) for row in batch]


def failure(run: Any) -> RowsFailed:
    with pytest.raises(RowsFailed) as raised:
        run()
    return raised.value


def test_a_query_names_its_inputs_as_tables(session: DuckDbSession) -> None:
    left = session.select("SELECT 1 AS id, 'a' AS name", {})
    right = session.select("SELECT 1 AS id, 2.5 AS price", {})
    joined = session.select("SELECT name, price FROM items JOIN prices USING (id)", {"items": left, "prices": right})
    assert joined.schema == (Column("name", "VARCHAR"), Column("price", "DECIMAL(2,1)"))
    assert joined.rows == 1
    assert [str(value) for value in rows(session, joined)[0]] == ["a", "2.5"]


def test_a_query_is_described_without_being_run(session: DuckDbSession) -> None:
    given = session.select("SELECT 1 AS a", {})
    found = session.describe("SELECT a, error('never') AS b, [a] AS c FROM input", {"input": given})
    assert [(column.name, column.type) for column in found[::2]] == [("a", "INTEGER"), ("c", "INTEGER[]")]


def test_rows_come_in_batches_of_the_size_asked_for(session: DuckDbSession) -> None:
    given = session.select("SELECT range AS i FROM range(25)", {})
    assert [len(batch) for batch in session.rows("SELECT * FROM input", {"input": given}, 10)] == [10, 10, 5]


def test_rows_keep_their_order(session: DuckDbSession) -> None:
    given = session.select("SELECT range AS i FROM range(300000) ORDER BY range DESC", {})
    kept = session.select("SELECT i FROM input WHERE i % 3 = 0", {"input": given})
    found = [value for (value,) in rows(session, kept)]
    assert found == sorted(found, reverse=True)


def test_rows_can_be_read_and_loaded_at_the_same_time(session: DuckDbSession) -> None:
    given = session.select("SELECT range AS i FROM range(50000)", {})

    def doubled() -> Iterator[list[tuple[int]]]:
        for batch in session.rows("SELECT * FROM input", {"input": given}):
            yield [(value * 2,) for (value,) in batch]

    made = session.load((Column("i", "BIGINT"),), doubled())
    assert rows(session, made, "SELECT count(*), sum(i) FROM t") == [(50000, 50000 * 49999)]


def test_a_time_with_a_zone_is_read_in_utc_wherever_it_stands(session: DuckDbSession) -> None:
    zoned = "TIMESTAMPTZ '2024-06-01 12:00:00+02'"
    query = f"SELECT {zoned} AS t, [{zoned}] AS l, {{'a': {zoned}, 'b': 1}} AS s, MAP {{'k': {zoned}}} AS m, NULL::TIMESTAMPTZ AS n"
    at = datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert rows(session, session.select(query, {})) == [(at, [at], {"a": at, "b": 1}, {"k": at}, None)]


def test_a_statement_is_run_for_its_effect(session: DuckDbSession) -> None:
    given = session.select("SELECT range AS i FROM range(4)", {})
    session.run("CREATE TABLE main.kept (i BIGINT)")
    assert session.run("INSERT INTO main.kept SELECT i FROM input WHERE i >= ?", {"input": given}, [2]) == 2
    assert session.run("SET threads = 1") == 0


def test_what_a_statement_leaves_is_seen_by_other_sessions(
    engine: DuckDbEngine, session: DuckDbSession, tmp_path: Path
) -> None:
    session.run(f"ATTACH '{tmp_path / 'other.db'}' AS other")
    session.run("CREATE TABLE other.t AS SELECT 7 AS a")
    assert rows(engine.session(), engine.session().select("SELECT * FROM other.t", {})) == [(7,)]


def test_an_empty_relation_has_its_columns(session: DuckDbSession) -> None:
    made = session.empty((Column("id", "BIGINT", nullable=False, key=True), Column("name", "VARCHAR")))
    assert (made.rows, made.schema[0]) == (0, Column("id", "BIGINT", nullable=False, key=True))
    assert failure(lambda: session.empty(())).message == "rows need at least one column"


def test_rows_go_out_and_come_in_as_arrow(session: DuckDbSession) -> None:
    given = session.select("SELECT range AS i, 'n' || range AS s, [range] AS l FROM range(3)", {})
    stream = session.arrow("SELECT *, i * 2 AS j FROM input", {"input": given})
    made = session.load_arrow(stream)
    assert rows(session, made) == [(0, "n0", [0], 0), (1, "n1", [1], 2), (2, "n2", [2], 4)]
    cast = session.load_arrow(
        session.arrow("SELECT * FROM input", {"input": given}), (Column("s", "VARCHAR"), Column("i", "VARCHAR"))
    )
    assert rows(session, cast) == [("n0", "0"), ("n1", "1"), ("n2", "2")]


def test_pyarrow_is_not_needed_for_arrow(tmp_path: Path) -> None:
    code = f"""
import sys
for name in ("pyarrow", "numpy", "pandas", "polars", "pytz"):
    sys.modules[name] = None
from pathlib import Path
from datetime import datetime, timezone
from penstock.data.duckdb_engine import DuckDbEngine
engine = DuckDbEngine(Path({str(tmp_path)!r}))
session = engine.session()
given = session.load_mappings([[{{"a": 1, "t": datetime(2024, 1, 1, tzinfo=timezone.utc)}}]])
made = session.load_arrow(session.arrow("SELECT * FROM input", {{"input": given}}))
print(list(session.rows("SELECT * FROM t", {{"t": made}})), made.hash == given.hash)
engine.close()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout.strip(), done.stderr) == (
        "[[(1, datetime.datetime(2024, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))]] True",
        "",
    )


def test_what_is_not_arrow_is_refused(session: DuckDbSession) -> None:
    assert (
        failure(lambda: session.load_arrow([1])).message
        == "a `list` is no table of Arrow: it has no `__arrow_c_stream__`"
    )


def test_an_arrow_stream_that_fails_fails_plainly(session: DuckDbSession) -> None:
    stream = session.arrow("SELECT CAST('x' || range AS INTEGER) AS i FROM range(3)", {})
    assert failure(lambda: session.load_arrow(stream)).kind == "conversion"


@pytest.mark.parametrize(
    ("format", "options", "starts"),
    [
        ("csv", {"header": True, "delimiter": ";"}, b"i;s\n0;n0\n"),
        ("csv", {"header": False}, b"0,n0\n"),
        ("json", {}, b'{"i":0,"s":"n0"}\n'),
        ("json", {"array": True}, b'[\n\t{"i":0,"s":"n0"}'),
        ("parquet", {"compression": "zstd"}, b"PAR1"),
    ],
)
def test_rows_are_copied_into_a_file(
    session: DuckDbSession, tmp_path: Path, format: Any, options: Any, starts: bytes
) -> None:
    given = session.select("SELECT range AS i, 'n' || range AS s FROM range(2)", {})
    path = tmp_path / "it's here.out"
    assert session.copy("SELECT * FROM input", {"input": given}, Copy(path, format, options)) == 2
    assert path.read_bytes().startswith(starts)


def test_a_file_that_could_not_be_written_whole_is_left_as_it_was(session: DuckDbSession, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("before")
    query = "SELECT CASE WHEN range < 200000 THEN 1 ELSE error('late') END AS i FROM range(200001)"
    assert failure(lambda: session.copy(query, {}, Copy(path, "csv"))).message == "late"
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["out.csv"]


def test_a_link_to_a_file_stays_a_link(session: DuckDbSession, tmp_path: Path) -> None:
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    link.symlink_to(real)
    session.copy("SELECT 1 AS a", {}, Copy(link, "csv", {"header": False}))
    assert link.is_symlink()
    assert real.read_text() == "1\n"


def test_writing_where_there_is_no_folder_says_so(session: DuckDbSession, tmp_path: Path) -> None:
    failed = failure(lambda: session.copy("SELECT 1 AS a", {}, Copy(tmp_path / "no" / "x.csv", "csv")))
    assert (failed.kind, failed.message) == (
        "missing_file",
        f"there is no folder `{tmp_path / 'no'}` to write `x.csv` into",
    )
    failed = failure(lambda: session.copy("SELECT 1 AS a", {}, Copy(tmp_path, "csv")))
    assert (failed.kind, failed.message) == ("io", f"`{tmp_path}` is a folder, not a file")


def test_an_option_that_is_none_cannot_smuggle_sql(session: DuckDbSession, tmp_path: Path) -> None:
    copy = Copy(tmp_path / "x.csv", "csv", {"header); drop": True})
    assert (
        failure(lambda: session.copy("SELECT 1 AS a", {}, copy)).message == "`header); drop` is not an option of COPY"
    )


@pytest.mark.parametrize("text", ["SELECT 1; SELECT 2", "DROP TABLE x", "", "SELECT 1) UNION (SELECT 2"])
def test_a_text_that_is_not_one_query_never_gets_between_parentheses(session: DuckDbSession, text: str) -> None:
    assert failure(lambda: session.select(text, {})).kind == "sql"


def test_sessions_work_at_the_same_time(engine: DuckDbEngine) -> None:
    given = engine.session().select("SELECT range AS i FROM range(10000)", {})
    found: list[int] = []

    def work(number: int) -> None:
        session = engine.session()
        for step in range(10):
            made = session.select(f"SELECT i + {number} AS i FROM input WHERE i % 10 = {step}", {"input": given})
            found.append(made.rows)
            engine.drop(made)
        session.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1000] * 60


ENDLESS = "SELECT count(*) AS n FROM range(10000000) a, range(1000000) b WHERE a.range + b.range = 7"


def test_an_interrupt_ends_what_runs_and_what_would_follow(engine: DuckDbEngine, session: DuckDbSession) -> None:
    failed: list[RowsFailed] = []

    def work() -> None:
        try:
            session.select(ENDLESS, {})
        except RowsFailed as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    session.interrupt()
    thread.join(30)
    assert [error.kind for error in failed] == ["interrupted"]
    assert failure(lambda: session.select("SELECT 1 AS a", {})).kind == "interrupted"
    assert engine.session().select("SELECT 1 AS a", {}).rows == 1


def test_an_interrupt_between_batches_ends_the_reading(session: DuckDbSession) -> None:
    batches = session.rows("SELECT * FROM range(10000000)", {})
    next(batches)
    session.interrupt()
    assert failure(lambda: next(batches)).kind == "interrupted"


def test_closing_the_engine_ends_whatever_runs_and_leaves_nothing(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path)
    session = engine.session()
    engine.spill(session.select("SELECT range AS i FROM range(1000)", {}))
    kinds: list[str] = []

    def work() -> None:
        try:
            session.select(ENDLESS, {})
        except RowsFailed as error:
            kinds.append(error.kind)

    thread = threading.Thread(target=work)
    thread.start()
    engine.close()
    thread.join(30)
    assert kinds == ["interrupted"]
    assert list(tmp_path.iterdir()) == []
    assert failure(engine.session).message == "the run has ended"
    engine.close()
    session.close()


def test_a_session_that_says_what_it_handed_over_leaves_only_that(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path)
    session = engine.session()
    handed = session.select("SELECT 1 AS a", {})
    session.select("SELECT 2 AS a", {})
    session.close([handed])
    other = engine.session()
    assert rows(other, handed, "SELECT table_name FROM duckdb_tables()") == [(handed.name,)]
    engine.close()


def test_a_dropped_relation_is_gone(engine: DuckDbEngine, session: DuckDbSession) -> None:
    made = session.select("SELECT 1 AS a", {})
    engine.drop(made)
    engine.drop(made)
    assert failure(lambda: rows(session, made)).kind == "sql"


def test_a_variable_of_python_is_not_a_table(session: DuckDbSession) -> None:
    class Frame:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            raise AssertionError("read")

    frame = Frame()
    assert failure(lambda: session.select("SELECT * FROM frame", {})).kind == "sql"
    assert frame is not None


def test_no_extension_is_ever_downloaded(session: DuckDbSession) -> None:
    failed = failure(lambda: session.select("SELECT * FROM read_csv('https://localhost:1/x.csv')", {}))
    assert "httpfs" in failed.message
    assert "download" not in failed.message.lower()


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    failed = failure(lambda: DuckDbEngine(tmp_path, memory_limit="lots"))
    assert failed.message == "`lots` is not an amount of memory: it is written as `256MB` or `2GB`"
