"""One table being written, in each of the databases: how it is made or emptied, what a batch of rows does to it, and a way back
from a batch that failed.

Law: nothing counts before `commit`, except that MySQL commits with every CREATE and DROP.
"""

from __future__ import annotations

import datetime
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, cast

from penstock.tools.base import ToolFailure
from penstock.tools.sql import duckdb as duckdb_tool
from penstock.tools.sql import mysql, postgres_connection
from penstock.tools.sql import sqlite as sqlite_tool
from penstock.tools.sql.connection import Address, Stop, in_a_thread
from penstock.tools.sql.plan import Upsert
from penstock.tools.sql.results import MADE_MEANWHILE, as_json_text, from_decimal, from_duration
from penstock.tools.sql.text import (
    Bound,
    Dialect,
    insert_into,
    on_conflict,
    quote,
    quote_all,
    quote_table,
    table_options,
)

if TYPE_CHECKING:
    import sqlite3

    import psycopg
    from duckdb import DuckDBPyConnection
    from psycopg import Connection

    from penstock.tools.sql.mysql_rows import RowsConnection

Row = Sequence[Any]
WriteMode = Literal["insert", "update", "upsert", "delete", "truncate_insert", "create", "replace"]
JSON_OIDS = {114, 3802}
GENTLY = "CREATE TABLE IF NOT EXISTS "
SAVEPOINT = "penstock_batch"
_EXISTS = 1050
_NO_TABLE = 1146


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done to a table. `columns` are its names, in the order of the values."""

    table: str
    mode: WriteMode
    columns: Sequence[str]
    keys: Sequence[str] = ()
    create: bool = False
    types: Mapping[str, str] = field(default_factory=dict)
    """Of the columns of a table that is made, in the database's own words."""
    may_exist: bool = True
    """Is a table that is there already taken as it is when it is to be made? Others may be making the same one."""
    texts_are_values: bool = False
    """A text for a JSON column is a value like any other, and not JSON already: it comes from JSON."""

    @property
    def sent(self) -> list[str]:
        """The columns of one statement, in the order of its placeholders."""
        match self.mode:
            case "update":
                return [*self.changed, *self.keys]
            case "delete":
                return list(self.keys)
            case _:
                return list(self.columns)

    @property
    def changed(self) -> list[str]:
        return [name for name in self.columns if name not in self.keys]

    @property
    def inserts_only(self) -> bool:
        return self.mode in ("insert", "truncate_insert", "create", "replace")

    def create_table(self, dialect: Dialect) -> str:
        """Types the author gives are taken word for word: they are SQL, like a command."""
        parts = [f"{quote(name, dialect)} {self.types[name]}" for name in self.columns]
        if self.keys:
            parts.append(f"PRIMARY KEY ({quote_all(self.keys, dialect)})")
        begins = GENTLY if self.may_exist else "CREATE TABLE "
        return f"{begins}{quote_table(self.table, dialect)} ({', '.join(parts)}){table_options(dialect)}"

    def preparation(self, dialect: Dialect, emptied: str) -> list[str]:
        """The statements that come before the first row."""
        table = quote_table(self.table, dialect)
        dropped = [f"DROP TABLE IF EXISTS {table}"] if self.mode == "replace" else []
        made = [self.create_table(dialect)] if self.create or self.mode in ("create", "replace") else []
        # MySQL ends the transaction with the CREATE, so there the table is emptied after it.
        empties = self.mode == "truncate_insert" and dialect is not Dialect.MYSQL
        return [*dropped, *made, *([f"{emptied} {table}"] if empties else [])]

    def statement(self, dialect: Dialect, placeholder: Callable[[int], str]) -> str:
        """The statement for one row. `placeholder(n)` stands for its n-th value, from 0."""
        table = quote_table(self.table, dialect)
        marks = {name: placeholder(index) for index, name in enumerate(self.sent)}
        where = " AND ".join(f"{quote(key, dialect)} = {marks[key]}" for key in self.keys if key in marks)
        match self.mode:
            case "update":
                change = ", ".join(f"{quote(name, dialect)} = {marks[name]}" for name in self.changed)
                return f"UPDATE {table} SET {change} WHERE {where}"
            case "delete":
                return f"DELETE FROM {table} WHERE {where}"
            case _:
                head = insert_into(self.table, self.columns, dialect)
                return f"{head} VALUES ({', '.join(marks.values())}){self.tail(dialect)}"

    def tail(self, dialect: Dialect) -> str:
        """What comes after the values of an INSERT."""
        return f" {on_conflict(self.keys, self.changed, dialect)}" if self.mode == "upsert" else ""

    def look(self, dialect: Dialect) -> str:
        """Finds a table or column that is missing before the first row, also when there is none."""
        return f"SELECT {quote_all(self.columns, dialect) or '*'} FROM {quote_table(self.table, dialect)} WHERE 1 = 0"

    def ordered(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The values in the order of the placeholders."""
        if self.mode not in ("update", "delete"):
            return rows
        indexes = [self.columns.index(name) for name in self.sent]
        return [[row[index] for index in indexes] for row in rows]


class Table(ABC):
    """What all databases do alike. `emptied` is how a table is emptied inside a transaction."""

    dialect: Dialect
    emptied = "DELETE FROM"
    undoable = True
    """Can a batch that failed be taken back by itself?"""
    errors: tuple[type[Exception], ...]
    connection: Any
    change: Change

    def __init__(self, stop: Stop, interrupt: Callable[[], None], *, is_lent: bool) -> None:
        self.is_lent = is_lent
        """The connection and its transaction belong to the caller, who ends both."""
        self._forget = stop.on_stop(interrupt)

    @abstractmethod
    def failure(self, error: Exception) -> ToolFailure: ...

    @abstractmethod
    def execute(self, text: str) -> None: ...

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def run(self, statement: Bound) -> None:
        """A statement of the author's, in the transaction of the rows."""

    @abstractmethod
    def write(self, rows: Any) -> int:
        """How many rows it changed."""

    def make(self, text: str) -> None:
        """A statement before the first row. Others may be making the same table: `IF NOT EXISTS` looks before they commit."""
        self.execute(text)

    def prepare(self, change: Change) -> None:
        """Before the first row, and in the transaction of the first rows."""
        self.change = change
        self.begin()
        for statement in change.preparation(self.dialect, self.emptied):
            self.make(statement)

    def look(self) -> None:
        self.execute(self.change.look(self.dialect))

    def mark(self) -> None:
        self.begin()
        self.execute(f"SAVEPOINT {SAVEPOINT}")

    def release(self) -> None:
        self.execute(f"RELEASE SAVEPOINT {SAVEPOINT}")

    def undo(self) -> None:
        self.execute(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
        self.release()

    def commit(self) -> None:
        if not self.is_lent:
            self.connection.commit()

    def abort(self) -> None:
        if not self.is_lent:
            with suppress(*self.errors):
                self.connection.rollback()

    def finish(self) -> None:
        """A table is complete with its last commit."""
        return

    def close(self) -> None:
        self._forget()
        if not self.is_lent:
            self.connection.close()


class PostgresTable(Table):
    dialect = Dialect.POSTGRES
    emptied = "TRUNCATE"
    connection: Connection[Any]

    def __init__(self, conninfo: str, address: Address, stop: Stop, lent: Connection[Any] | None = None) -> None:
        import psycopg  # Slow to import: only a connection needs it.

        self.errors = (psycopg.Error,)
        self.connection = lent or postgres_connection.connect_blocking(conninfo, address)
        cancel = in_a_thread(lambda: postgres_connection.cancel(self.connection))
        super().__init__(stop, cancel, is_lent=lent is not None)
        self._as_json: list[bool] = []

    def failure(self, error: Exception) -> ToolFailure:
        cause = cast("psycopg.Error", error)
        return postgres_connection.failure_of(cause, None, connection_lost=self.connection.closed)

    def begin(self) -> None:
        """The driver begins a transaction with the first statement."""

    def execute(self, text: str) -> None:
        self.connection.execute(text.encode())

    def run(self, statement: Bound) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement.text.encode(), postgres_connection.arguments(statement))

    def make(self, text: str) -> None:
        """The second writer waits for the commit of the first and is then refused: the table exists by then."""
        if not text.startswith(GENTLY):
            self.execute(text)
            return
        self.execute("SAVEPOINT penstock_making")
        try:
            self.execute(text)
        except self.errors as error:
            if cast("psycopg.Error", error).sqlstate not in MADE_MEANWHILE:
                raise
            self.execute("ROLLBACK TO SAVEPOINT penstock_making")
            self.execute(text)  # Looks again: what was in the way may have been something else, or is gone.
        self.execute("RELEASE SAVEPOINT penstock_making")

    def prepare(self, change: Change) -> None:
        super().prepare(change)
        columns = quote_all(change.sent, self.dialect)
        table = quote_table(change.table, self.dialect)
        found = self.connection.execute(f"SELECT {columns} FROM {table} LIMIT 0".encode())
        self._as_json = [column.type_code in JSON_OIDS for column in found.description or []]

    def look(self) -> None:
        """`prepare` has looked, to see which columns take JSON."""

    def write(self, rows: Sequence[Row]) -> int:
        change = self.change
        values = [self._values(row) for row in change.ordered(rows)]
        with self.connection.cursor() as cursor:
            if not change.inserts_only:
                cursor.executemany(change.statement(self.dialect, lambda index: f"${index + 1}").encode(), values)
                return max(cursor.rowcount, 0)
            columns = quote_all(change.columns, self.dialect)
            table = quote_table(change.table, self.dialect)
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copy:
                for row in values:
                    copy.write_row(row)
        return len(rows)

    def _values(self, row: Row) -> list[Any]:
        return [self._value(value, as_json) for value, as_json in zip(row, self._as_json, strict=True)]

    def _value(self, value: Any, as_json: bool) -> Any:
        if as_json and isinstance(value, str) and self.change.texts_are_values:
            return as_json_text(value)
        return postgres_connection.argument(value, as_json=as_json)


class MysqlTable(Table):
    dialect = Dialect.MYSQL
    connection: RowsConnection

    def __init__(self, login: mysql.Login, stop: Stop, lent: RowsConnection | None = None) -> None:
        import pymysql  # Slow to import: only a connection needs it.

        self.errors = (pymysql.MySQLError, OSError)
        self.connection = lent or mysql.connect(login, offers_rows=True)
        # Else a server that is set up so would cut what does not fit, and say nothing.
        self.execute("SET SESSION sql_mode = concat_ws(',', nullif(@@sql_mode, ''), 'STRICT_ALL_TABLES')")
        self._login = login
        number = mysql.thread_of(self.connection)
        super().__init__(stop, in_a_thread(lambda: mysql.kill_query(login, number)), is_lent=lent is not None)

    def failure(self, error: Exception) -> ToolFailure:
        return mysql.failure_of(error, None)

    def begin(self) -> None:
        """The driver begins a transaction with the first statement."""

    def execute(self, text: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text)

    def run(self, statement: Bound) -> None:
        with self.connection.cursor() as cursor:
            args = [for_mysql(value) for value in statement.args] if isinstance(statement.args, list) else None
            cursor.execute(statement.text, args)

    def make(self, text: str) -> None:
        try:
            self.execute(text)
        except self.errors as error:
            if not text.startswith(GENTLY) or error.args[:1] != (_EXISTS,):
                raise

    def prepare(self, change: Change) -> None:
        # MySQL commits with every CREATE and DROP: what comes before the rows stays, whatever becomes of them.
        self.change = change
        statements = change.preparation(self.dialect, self.emptied)
        if not self.is_lent:
            for statement in statements:
                self.make(statement)
            self.connection.begin()
        elif change.mode in ("create", "replace"):
            hint = "make the table in a sub-job before, or use `create: true`"
            raise ToolFailure(
                "parameters",
                f"MySQL commits when a table is dropped or made, so `mode: {change.mode}` "
                f"cannot be part of a shared transaction; hint: {hint}",
            )
        elif statements and not self._is_there():
            self._make_beside(statements)
        if change.mode == "truncate_insert":
            self.execute(f"{self.emptied} {quote_table(change.table, self.dialect)}")

    def _is_there(self) -> bool:
        try:
            self.look()
        except self.errors as error:
            if error.args[:1] == (_NO_TABLE,):
                return False
            raise
        return True

    def _make_beside(self, statements: Sequence[str]) -> None:
        """On a connection of its own: a CREATE would commit what others have written in the transaction."""
        connection = mysql.connect(self._login)
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        finally:
            connection.close()

    def write(self, rows: Sequence[Row]) -> int:
        text = self.change.statement(self.dialect, lambda index: "\0").replace("%", "%%").replace("\0", "%s")
        with self.connection.cursor() as cursor:
            changed = cursor.executemany(text, [list(map(for_mysql, row)) for row in self.change.ordered(rows)])
        # An upsert counts two for a row that was there already.
        return max(changed or 0, 0) if self.change.mode in ("update", "delete") else len(rows)

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


class SqliteTable(Table):
    dialect = Dialect.SQLITE
    errors = sqlite_tool.SqliteSession.errors
    connection: sqlite3.Connection

    def __init__(self, shared: sqlite_tool.SharedSqlite, stop: Stop, lent: sqlite3.Connection | None = None) -> None:
        self.shared = shared
        self.connection = lent or shared.take()
        super().__init__(stop, self.connection.interrupt, is_lent=lent is not None)

    def failure(self, error: Exception) -> ToolFailure:
        return sqlite_tool.failure_of(error, None)

    def begin(self) -> None:
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")

    def execute(self, text: str) -> None:
        self.connection.execute(text)

    def run(self, statement: Bound) -> None:
        self.begin()
        args = statement.args if isinstance(statement.args, dict) else {}
        self.connection.execute(statement.text, {name: for_sqlite(value) for name, value in args.items()})

    def write(self, rows: Sequence[Row]) -> int:
        self.begin()
        text = self.change.statement(self.dialect, lambda index: "?")
        return max(self.connection.executemany(text, _sqlite_rows(self.change.ordered(rows))).rowcount, 0)

    def close(self) -> None:
        self._forget()
        if not self.is_lent:
            self.shared.give_back(self.connection)


_AS_THEY_ARE = {type(None), bool, float, str, bytes}
_IN_SQLITE: dict[type, Callable[[Any], Any]] = {
    Decimal: from_decimal,
    datetime.datetime: datetime.datetime.isoformat,
    datetime.date: datetime.date.isoformat,
    datetime.time: datetime.time.isoformat,
}


def _sqlite_rows(rows: Sequence[Row]) -> Iterable[Row]:
    """Only columns in which there is something to change are looked at value by value."""
    columns = [_sqlite_column(column) for column in zip(*rows, strict=True)]
    return zip(*columns, strict=True) if columns else rows


def _sqlite_column(column: Sequence[Any]) -> Iterable[Any]:
    types = set(map(type, column)) - _AS_THEY_ARE
    if not types:
        return column
    if len(types) == 1 and (change := _IN_SQLITE.get(next(iter(types)))) is not None:
        kind = next(iter(types))
        return [change(value) if type(value) is kind else value for value in column]
    if types == {int}:
        whole = [value for value in column if type(value) is int]
        if min(whole) >= -(2**63) and max(whole) < 2**63:
            return column
    return map(for_sqlite, column)


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


class DuckdbTable(Table):
    dialect = Dialect.DUCKDB
    undoable = False
    connection: DuckDBPyConnection

    def __init__(
        self, open_cursor: Callable[[Stop], DuckDBPyConnection], stop: Stop, lent: DuckDBPyConnection | None = None
    ) -> None:
        import duckdb  # Slow to import: only a query needs it.

        self.errors = (duckdb.Error,)
        self.connection = lent or open_cursor(stop)
        super().__init__(stop, self.connection.interrupt, is_lent=lent is not None)
        self._stop = stop
        self._in_transaction = self.is_lent

    def failure(self, error: Exception) -> ToolFailure:
        return duckdb_tool.failure_of(error, None)

    def begin(self) -> None:
        if not self._in_transaction:
            self.connection.begin()
            self._in_transaction = True

    def execute(self, text: str) -> None:
        self.connection.execute(text)

    def run(self, statement: Bound) -> None:
        self.begin()
        self.connection.execute(statement.text, statement.args)

    def prepare(self, change: Change) -> None:
        def once() -> None:
            Table.prepare(self, change)

        if self.is_lent:
            once()
        else:
            duckdb_tool.while_made(once, self.abort, self._stop)

    def write(self, rows: Sequence[Row]) -> int:
        self.begin()
        change = self.change
        given = [list(row) for row in rows]
        if change.mode == "upsert":
            step = Upsert(change.table, tuple(change.keys), tuple(change.columns), (), given)
            given = duckdb_tool.last_of_each_key(step)
        duckdb_tool.insert_rows(self.connection, change.table, change.columns, given, change.tail(self.dialect))
        return len(rows)

    def mark(self) -> None:
        """There is nothing to come back to; see `undoable`."""

    def release(self) -> None:
        """Nothing was marked."""

    def undo(self) -> None:
        self.abort()

    def commit(self) -> None:
        if self._in_transaction and not self.is_lent:
            self.connection.commit()
            self._in_transaction = False

    def abort(self) -> None:
        if not self.is_lent:
            self._in_transaction = False
        super().abort()
