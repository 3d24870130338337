"""Databases at the writing end of a transfer: the table is emptied or made with the first chunk, and each chunk is one commit."""

from __future__ import annotations

import datetime
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from penstock.tools.base import ToolFailure
from penstock.tools.sql import duckdb as duckdb_tool
from penstock.tools.sql import mysql, postgres_connection
from penstock.tools.sql import sqlite as sqlite_tool
from penstock.tools.sql.connection import Address, Stop, in_a_thread
from penstock.tools.sql.plan import Upsert
from penstock.tools.sql.results import MADE_MEANWHILE, as_json_text, from_decimal, from_duration
from penstock.tools.sql.text import Dialect, insert_into, on_conflict, quote, quote_all, quote_table, table_options
from penstock.tools.transfer.params import TableTarget
from penstock.tools.transfer.sources import Row, Shape, sql_type

if TYPE_CHECKING:
    import sqlite3

    from duckdb import DuckDBPyConnection
    from psycopg import Connection
    from pymysql.connections import Connection as MysqlConnection

JSON_OIDS = {114, 3802}
GENTLY = "CREATE TABLE IF NOT EXISTS "
_EXISTS = 1050


class Writer(Protocol):
    """The writing end. `start` belongs to the first chunk's commit; `abort` undoes what is not committed or finished."""

    errors: tuple[type[Exception], ...]

    def failure(self, error: Exception) -> ToolFailure: ...

    def start(self, shape: Shape) -> None: ...

    def write(self, rows: Sequence[Row]) -> int: ...

    def commit(self) -> None: ...

    def finish(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


def create_table(table: str, shape: Shape, keys: Sequence[str], types: dict[str, str], dialect: Dialect) -> str:
    """Types the author gives are taken word for word: they are SQL, like a command."""
    columns = [
        f"{quote(name, dialect)} {types.get(name) or sql_type(kind, dialect, key=name in keys)}"
        for name, kind in zip(shape.columns, shape.kinds, strict=True)
    ]
    if keys:
        columns.append(f"PRIMARY KEY ({quote_all(keys, dialect)})")
    return f"{GENTLY}{quote_table(table, dialect)} ({', '.join(columns)}){table_options(dialect)}"


def check_keys(target: TableTarget, columns: Sequence[str]) -> None:
    if target.mode == "upsert" and not target.keys:
        raise ToolFailure("parameters", "`mode: upsert` needs `keys`, the columns that identify a row")
    missing = [name for name in [*target.keys, *target.types] if name not in columns]
    if missing:
        known = ", ".join(f"`{name}`" for name in columns)
        raise ToolFailure("parameters", f"the target's column `{missing[0]}` is not among those moved: {known}")


class TableWriter(ABC):
    """What all databases do alike. `emptied` is how a table is emptied inside a transaction."""

    dialect: Dialect
    is_lent = False
    """The connection and its transaction are somebody else's, who ends both."""
    emptied = "DELETE FROM"
    errors: tuple[type[Exception], ...]

    def __init__(self, target: TableTarget) -> None:
        self.target = target
        self.shape = Shape([], [], "sql")

    @abstractmethod
    def failure(self, error: Exception) -> ToolFailure: ...

    @abstractmethod
    def execute(self, text: str) -> None: ...

    @abstractmethod
    def begin(self) -> None: ...

    def make(self, text: str) -> None:
        """A statement before the first row. Others may be making the same table: `IF NOT EXISTS` looks before they commit."""
        self.execute(text)

    def start(self, shape: Shape) -> None:
        self.shape = shape
        check_keys(self.target, shape.columns)
        self.prepare_table(shape)

    def prepare_table(self, shape: Shape) -> None:
        target = self.target
        self.begin()
        name = quote_table(target.table, self.dialect)
        if target.mode == "replace":
            self.execute(f"DROP TABLE IF EXISTS {name}")
        if target.create or target.mode == "replace":
            self.make(create_table(target.table, shape, target.keys, target.types, self.dialect))
        if target.mode == "truncate":
            self.execute(f"{self.emptied} {name}")

    def head(self) -> str:
        return insert_into(self.target.table, self.shape.columns, self.dialect)

    def tail(self) -> str:
        if self.target.mode != "upsert":
            return ""
        update = [name for name in self.shape.columns if name not in self.target.keys]
        return " " + on_conflict(self.target.keys, update, self.dialect)

    def finish(self) -> None:
        """Committed already, unless the database says otherwise."""
        return


class PostgresWriter(TableWriter):
    dialect = Dialect.POSTGRES
    emptied = "TRUNCATE"

    def __init__(
        self, target: TableTarget, conninfo: str, address: Address, stop: Stop, lent: Connection[Any] | None = None
    ) -> None:
        import psycopg  # Slow to import: only a connection needs it.

        super().__init__(target)
        self.errors = (psycopg.Error,)
        self.is_lent = lent is not None
        self.connection = lent or postgres_connection.connect_blocking(conninfo, address)
        self._as_json: list[bool] = []
        self._forget = stop.on_stop(in_a_thread(lambda: postgres_connection.cancel(self.connection)))

    def failure(self, error: Exception) -> ToolFailure:
        import psycopg  # Slow to import: only a connection needs it.

        assert isinstance(error, psycopg.Error)
        return postgres_connection.failure_of(error, None, connection_lost=self.connection.closed)

    def begin(self) -> None:
        """The driver begins a transaction with the first statement."""

    def execute(self, text: str) -> None:
        self.connection.execute(text.encode())

    def make(self, text: str) -> None:
        """The second writer waits for the commit of the first and is then refused: the table exists by then."""
        import psycopg  # Slow to import: only a connection needs it.

        if not text.startswith(GENTLY):
            self.execute(text)
            return
        self.execute("SAVEPOINT penstock_making")
        try:
            self.execute(text)
        except psycopg.Error as error:
            if error.sqlstate not in MADE_MEANWHILE:
                raise
            self.execute("ROLLBACK TO SAVEPOINT penstock_making")
            self.execute(text)  # Looks again: what was in the way may have been something else, or is gone.
        self.execute("RELEASE SAVEPOINT penstock_making")

    def start(self, shape: Shape) -> None:
        super().start(shape)
        columns = quote_all(shape.columns, self.dialect)
        table = quote_table(self.target.table, self.dialect)
        found = self.connection.execute(f"SELECT {columns} FROM {table} LIMIT 0".encode())
        self._as_json = [column.type_code in JSON_OIDS for column in found.description or []]

    def write(self, rows: Sequence[Row]) -> int:
        values = [self._values(row) for row in rows]
        with self.connection.cursor() as cursor:
            if self.target.mode == "upsert":
                places = ", ".join(f"${index + 1}" for index in range(len(self.shape.columns)))
                cursor.executemany(f"{self.head()} VALUES ({places}){self.tail()}".encode(), values)
                return max(cursor.rowcount, 0)
            columns = quote_all(self.shape.columns, self.dialect)
            table = quote_table(self.target.table, self.dialect)
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copy:
                for row in values:
                    copy.write_row(row)
        return len(rows)

    def _values(self, row: Row) -> list[Any]:
        return [self._value(value, as_json) for value, as_json in zip(row, self._as_json, strict=True)]

    def _value(self, value: Any, as_json: bool) -> Any:
        """Text for a json column is JSON already, unless it comes from JSON, where it is a value like any other."""
        if as_json and isinstance(value, str) and self.shape.origin == "json":
            return as_json_text(value)
        return postgres_connection.argument(value, as_json=as_json)

    def commit(self) -> None:
        if not self.is_lent:
            self.connection.commit()

    def abort(self) -> None:
        if not self.is_lent:
            with suppress(*self.errors):
                self.connection.rollback()

    def close(self) -> None:
        self._forget()
        if not self.is_lent:
            self.connection.close()


class MysqlWriter(TableWriter):
    dialect = Dialect.MYSQL

    def __init__(
        self, target: TableTarget, login: mysql.Login, stop: Stop, lent: MysqlConnection[Any] | None = None
    ) -> None:
        import pymysql  # Slow to import: only a connection needs it.

        super().__init__(target)
        self.errors = (pymysql.MySQLError, OSError)
        self.is_lent = lent is not None
        self.connection = lent or mysql.connect(login)
        # Else a server that is set up so would cut what does not fit, and say nothing.
        self.execute("SET SESSION sql_mode = concat_ws(',', nullif(@@sql_mode, ''), 'STRICT_ALL_TABLES')")
        number = mysql.thread_of(self.connection)
        self._forget = stop.on_stop(in_a_thread(lambda: mysql.kill_query(login, number)))

    def failure(self, error: Exception) -> ToolFailure:
        return mysql.failure_of(error, None)

    def begin(self) -> None:
        if not self.is_lent:  # It would commit what has been written in the transaction so far.
            self.connection.begin()

    def execute(self, text: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text)

    def make(self, text: str) -> None:
        import pymysql  # Slow to import: only a connection needs it.

        try:
            self.execute(text)
        except pymysql.MySQLError as error:
            if not text.startswith(GENTLY) or error.args[:1] != (_EXISTS,):
                raise

    def write(self, rows: Sequence[Row]) -> int:
        places = ", ".join(["%s"] * len(self.shape.columns))
        text = f"{self.head().replace('%', '%%')} VALUES ({places}){self.tail().replace('%', '%%')}"
        with self.connection.cursor() as cursor:
            cursor.executemany(text, [[for_mysql(value) for value in row] for row in rows])
        return len(rows)

    def commit(self) -> None:
        if not self.is_lent:
            self.connection.commit()

    def abort(self) -> None:
        if not self.is_lent:
            with suppress(*self.errors):
                self.connection.rollback()

    def close(self) -> None:
        self._forget()
        if self.connection.open and not self.is_lent:
            self.connection.close()


def for_mysql(value: Any) -> Any:
    match value:
        case dict() | list():
            return as_json_text(value)
        case uuid.UUID():
            return str(value)
        case datetime.datetime() if value.tzinfo is not None:
            return value.astimezone(datetime.UTC).replace(tzinfo=None)  # MySQL's datetime has no zone
        case memoryview() | bytearray():
            return bytes(value)
        case _:
            return value


class SqliteWriter(TableWriter):
    dialect = Dialect.SQLITE
    errors = sqlite_tool.SqliteSession.errors

    def __init__(
        self,
        target: TableTarget,
        shared: sqlite_tool.SharedSqlite,
        stop: Stop,
        lent: sqlite3.Connection | None = None,
    ) -> None:
        super().__init__(target)
        self.shared = shared
        self.is_lent = lent is not None
        self.connection = lent or shared.take()
        self._forget = stop.on_stop(self.connection.interrupt)

    def failure(self, error: Exception) -> ToolFailure:
        return sqlite_tool.failure_of(error, None)

    def begin(self) -> None:
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")

    def execute(self, text: str) -> None:
        self.connection.execute(text)

    def write(self, rows: Sequence[Row]) -> int:
        self.begin()
        places = ", ".join("?" * len(self.shape.columns))
        values = ([for_sqlite(value) for value in row] for row in rows)
        cursor = self.connection.executemany(f"{self.head()} VALUES ({places}){self.tail()}", values)
        return max(cursor.rowcount, 0)

    def commit(self) -> None:
        if not self.is_lent:
            self.connection.commit()

    def abort(self) -> None:
        if not self.is_lent:
            with suppress(*self.errors):
                self.connection.rollback()

    def close(self) -> None:
        self._forget()
        if not self.is_lent:
            self.shared.give_back(self.connection)


def for_sqlite(value: Any) -> Any:
    match value:
        case Decimal():
            return from_decimal(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return from_duration(value)
        case uuid.UUID():
            return str(value)
        case memoryview() | bytearray():
            return bytes(value)
        case _:
            return sqlite_tool.bindable(value)


class DuckdbWriter(TableWriter):
    dialect = Dialect.DUCKDB

    def __init__(self, target: TableTarget, open_cursor: Callable[[Stop], DuckDBPyConnection], stop: Stop) -> None:
        import duckdb  # Slow to import: only a query needs it.

        super().__init__(target)
        self.errors = (duckdb.Error,)
        self.connection = open_cursor(stop)
        self._in_transaction = False
        self._stop = stop
        self._forget = stop.on_stop(self.connection.interrupt)

    def failure(self, error: Exception) -> ToolFailure:
        return duckdb_tool.failure_of(error, None)

    def begin(self) -> None:
        if not self._in_transaction:
            self.connection.begin()
            self._in_transaction = True

    def execute(self, text: str) -> None:
        self.connection.execute(text)

    def prepare_table(self, shape: Shape) -> None:
        duckdb_tool.while_made(lambda: super(DuckdbWriter, self).prepare_table(shape), self.abort, self._stop)

    def write(self, rows: Sequence[Row]) -> int:
        self.begin()
        given = [list(row) for row in rows]
        if self.target.mode == "upsert":
            step = Upsert(self.target.table, tuple(self.target.keys), tuple(self.shape.columns), (), given)
            given = duckdb_tool.last_of_each_key(step)
        duckdb_tool.insert_rows(self.connection, self.target.table, self.shape.columns, given, self.tail())
        return len(rows)

    def commit(self) -> None:
        self.connection.commit()
        self._in_transaction = False

    def abort(self) -> None:
        self._in_transaction = False
        with suppress(*self.errors):
            self.connection.rollback()

    def close(self) -> None:
        self._forget()
        self.connection.close()


class ParquetWriter(DuckdbWriter):
    """Rows gather in a DuckDB file that spills to disk, and become one Parquet file at the end."""

    def __init__(self, path: Path, types: dict[str, str], stop: Stop) -> None:
        self._folder = TemporaryDirectory(prefix="penstock-parquet-")
        self._path = path
        database = str(Path(self._folder.name) / "rows.duckdb")
        super().__init__(
            TableTarget(table="rows", create=True, types=types), lambda stop: duckdb_tool.connect(database), stop
        )

    def finish(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_name(f".{self._path.name}-{uuid.uuid4().hex}")
        try:
            self.connection.execute(f"COPY rows TO '{str(beside).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")
            beside.replace(self._path)
        finally:
            beside.unlink(missing_ok=True)

    def close(self) -> None:
        super().close()
        self._folder.cleanup()
