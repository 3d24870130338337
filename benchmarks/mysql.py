"""Rows out of MariaDB and into it: jobs, and the same work by hand. The server is Debian's, as the tests have it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.databases import MADE, PLENTY, READ, WRITE, Said, measured
from benchmarks.jobs import timed
from benchmarks.peers import NotInstalled

COLUMNS = "id bigint PRIMARY KEY, name text, place int, amount decimal(12,2), day datetime(6), is_new boolean"
TYPES = "id BIGINT, name VARCHAR, place INTEGER, amount DECIMAL(12,2), day TIMESTAMP, is_new TINYINT"
FILL = (
    "INSERT INTO orders SELECT seq, concat('customer ', seq), seq % 100, seq * 1.37, "
    "timestamp('2024-01-01 00:00:00') + INTERVAL seq MINUTE, seq % 2 = 0 FROM seq_0_to_{last}"
)


@contextmanager
def mariadb() -> Iterator[str]:
    """The socket of a server whose database `shop` is empty."""
    try:
        from tests.servers import started_mariadb
    except ImportError as missing:
        raise NotInstalled(str(missing)) from missing
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-my-"))  # A socket wants a short path.
    try:
        answers, process = started_mariadb(folder)
    except RuntimeError as missing:
        shutil.rmtree(folder, ignore_errors=True)
        raise NotInstalled(str(missing)) from missing
    try:
        yield answers
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _connected(answers: str, **more: Any) -> Any:
    import pymysql

    return pymysql.connect(
        unix_socket=answers, user="root", database="shop", charset="utf8mb4", ssl_disabled=True, autocommit=True, **more
    )


@contextmanager
def _filled(count: int) -> Iterator[str]:
    import pymysql

    with mariadb() as answers:
        with pymysql.connect(unix_socket=answers, user="root", ssl_disabled=True) as server:
            server.cursor().execute("CREATE DATABASE shop CHARACTER SET utf8mb4")
        with _connected(answers) as server:
            server.cursor().execute(f"CREATE TABLE orders ({COLUMNS})")
            if count:
                server.cursor().execute(FILL.format(last=count - 1))
        yield answers


def _url(answers: str) -> str:
    return f"mysql://root@localhost/shop?unix_socket={answers}"


def read(folder: Path, count: int) -> Said:
    with _filled(count) as answers:
        return measured(folder, READ.format(url=_url(answers), memory=PLENTY), count)


def read_by_hand(folder: Path, count: int) -> Said:
    import duckdb
    from pymysql.cursors import SSCursor

    def work() -> None:
        with _connected(answers, cursorclass=SSCursor) as server, server.cursor() as cursor, duckdb.connect() as duck:
            cursor.execute("SELECT * FROM orders")
            duck.execute(f"CREATE TABLE orders ({TYPES})")
            appender = duck.appender("orders")
            while batch := cursor.fetchmany(10_000):
                appender.append_rows(batch)
            appender.flush()
            duck.execute(f"COPY orders TO '{folder / 'orders.parquet'}' (FORMAT parquet)")

    with _filled(count) as answers:
        return timed(work, count)


def _written(folder: Path, count: int, there: int, work: Callable[[str], Said]) -> Said:
    import duckdb

    with duckdb.connect() as duck:
        made = f"{MADE} FROM range({count}) AS r(i)"
        duck.execute(f"COPY ({made}) TO '{folder / 'given.parquet'}' (FORMAT parquet)")
    with _filled(there) as answers:
        said = work(answers)
        with _connected(answers) as server, server.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM orders")
            (found,) = cursor.fetchone()
    assert found == count, found
    return said


def insert(folder: Path, count: int) -> Said:
    return _written(folder, count, 0, lambda answers: _job(folder, answers, "insert", count))


def upsert(folder: Path, count: int) -> Said:
    """Half of the rows are there already."""
    return _written(folder, count, count // 2, lambda answers: _job(folder, answers, "upsert", count))


def _job(folder: Path, answers: str, mode: str, count: int) -> Said:
    return measured(folder, WRITE.format(url=_url(answers), mode=mode, memory=PLENTY), count)


def insert_by_hand(folder: Path, count: int) -> Said:
    return _written(folder, count, 0, lambda answers: timed(lambda: _loaded(answers, folder, "orders"), count))


def upsert_by_hand(folder: Path, count: int) -> Said:
    names = ("name", "place", "amount", "day", "is_new")
    change = ", ".join(f"{name} = VALUES({name})" for name in names)
    then = f"INSERT INTO orders SELECT * FROM stage ON DUPLICATE KEY UPDATE {change}"
    return _written(
        folder, count, count // 2, lambda answers: timed(lambda: _loaded(answers, folder, "stage", then), count)
    )


def _loaded(answers: str, folder: Path, into: str, then: str | None = None) -> None:
    import duckdb

    file = folder / "given.tsv"
    with duckdb.connect() as duck:
        rows = f"SELECT * REPLACE (is_new::TINYINT AS is_new) FROM '{folder / 'given.parquet'}'"
        duck.execute(f"COPY ({rows}) TO '{file}' (FORMAT csv, HEADER false, DELIMITER '\t')")
    with _connected(answers, local_infile=True) as server, server.cursor() as cursor:
        server.begin()
        if then is not None:
            cursor.execute("CREATE TEMPORARY TABLE stage AS SELECT * FROM orders LIMIT 0")
        cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {into} CHARACTER SET utf8mb4")
        if then is not None:
            cursor.execute(then)
        server.commit()


PROBES: dict[str, Callable[..., Said]] = {
    "mysql-read": read,
    "mysql-read-by-hand": read_by_hand,
    "mysql-insert": insert,
    "mysql-insert-by-hand": insert_by_hand,
    "mysql-upsert": upsert,
    "mysql-upsert-by-hand": upsert_by_hand,
}
