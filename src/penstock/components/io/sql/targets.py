"""The writing end of a database: one table, one way of changing it, and a way back from a batch that failed.

Rows come as batches. A batch is any sequence that can be cut in two: lists of values for the servers, numbers of rows
for DuckDB, which is given all rows at once and works on ranges of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from penstock.components.io.parameters import WriteMode
from penstock.components.io.sql.types import to_database
from penstock.ports.rows import Schema
from penstock.tools.base import ToolFailure
from penstock.tools.sql import duckdb as duckdb_tool
from penstock.tools.sql.mysql import connect
from penstock.tools.sql.postgres_connection import arguments
from penstock.tools.sql.text import Dialect, on_conflict, quote, quote_all, quote_table, table_options
from penstock.tools.transfer.params import TableTarget
from penstock.tools.transfer.sources import Kind, Shape
from penstock.tools.transfer.targets import MysqlWriter, PostgresWriter, SqliteWriter, for_mysql, for_sqlite

if TYPE_CHECKING:
    import sqlite3

    from duckdb import DuckDBPyConnection
    from psycopg import Connection
    from pymysql.connections import Connection as MysqlConnection

    from penstock.components.io.sql.database import Files, Where
    from penstock.tools.sql.connection import Address, Stop
    from penstock.tools.sql.mysql import Login
    from penstock.tools.sql.sqlite import SharedSqlite
    from penstock.tools.sql.text import Bound


SAVEPOINT = "penstock_batch"
_NO_TABLE = 1146


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done to the table. `columns` are the table's names, in the order of the values."""

    table: str
    mode: WriteMode
    columns: Schema
    keys: tuple[str, ...]
    create: bool
    types: dict[str, str]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def sent(self) -> list[str]:
        """The columns of one statement, in the order of its placeholders."""
        match self.mode:
            case "update":
                return [*(name for name in self.names if name not in self.keys), *self.keys]
            case "delete":
                return list(self.keys)
            case _:
                return self.names

    @property
    def inserts_only(self) -> bool:
        return self.mode in ("insert", "truncate_insert", "create", "replace")

    def sql_types(self, dialect: Dialect) -> dict[str, str]:
        made = {column.name: to_database(column.type, dialect, key=column.name in self.keys) for column in self.columns}
        return made | self.types

    def create_table(self, dialect: Dialect) -> str:
        types = self.sql_types(dialect)
        parts = [f"{quote(name, dialect)} {types[name]}" for name in self.names]
        if self.keys:
            parts.append(f"PRIMARY KEY ({quote_all(self.keys, dialect)})")
        gently = "" if self.mode in ("create", "replace") else "IF NOT EXISTS "
        table = quote_table(self.table, dialect)
        return f"CREATE TABLE {gently}{table} ({', '.join(parts)}){table_options(dialect)}"

    def preparation(self, dialect: Dialect, emptied: str) -> list[str]:
        """The statements that come before the first row."""
        table = quote_table(self.table, dialect)
        match self.mode:
            case "replace":
                return [f"DROP TABLE IF EXISTS {table}", self.create_table(dialect)]
            case "create":
                return [self.create_table(dialect)]
            case "truncate_insert":
                made = [self.create_table(dialect)] if self.create else []
                # MySQL ends the transaction with the CREATE, so there the table is emptied after it.
                return made if dialect is Dialect.MYSQL else [*made, f"{emptied} {table}"]
            case _:
                return [self.create_table(dialect)] if self.create else []

    def statement(self, dialect: Dialect, place: Callable[[int], str]) -> str:
        """The statement for one row. `place(n)` is the placeholder of its n-th value, from 0."""
        table = quote_table(self.table, dialect)
        places = {name: place(index) for index, name in enumerate(self.sent)}
        where = " AND ".join(f"{quote(key, dialect)} = {places[key]}" for key in self.keys if key in places)
        match self.mode:
            case "update":
                changed = [name for name in self.sent if name not in self.keys]
                change = ", ".join(f"{quote(name, dialect)} = {places[name]}" for name in changed)
                return f"UPDATE {table} SET {change} WHERE {where}"
            case "delete":
                return f"DELETE FROM {table} WHERE {where}"
            case _:
                values = ", ".join(places.values())
                tail = f" {self.conflict(dialect)}" if self.mode == "upsert" else ""
                return f"INSERT INTO {table} ({quote_all(self.names, dialect)}) VALUES ({values}){tail}"

    def conflict(self, dialect: Dialect) -> str:
        return on_conflict(self.keys, [name for name in self.names if name not in self.keys], dialect)


class Target(Protocol):
    """One table being written. `undoable` says whether a batch that failed can be taken back by itself."""

    errors: tuple[type[Exception], ...]
    undoable: bool

    def failure(self, error: Exception) -> ToolFailure: ...

    def prepare(self) -> None: ...

    def run(self, statement: Bound) -> None:
        """A statement of the author's, in the transaction of the rows."""
        ...

    def write(self, batch: Any) -> int: ...

    def mark(self) -> None: ...

    def release(self) -> None: ...

    def undo(self) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


def open_target(place: Where, files: Files, change: Change, stop: Stop, lent: Any = None) -> Target:
    """`lent`: a connection in the midst of a transaction that somebody else ends."""
    match place.driver:
        case "postgres":
            return PostgresTable(change, place.conninfo(), place.address(), stop, lent)
        case "mysql":
            return MysqlTable(change, place.login(), stop, lent)
        case "sqlite":
            assert files.sqlite is not None
            return SqliteTable(change, files.sqlite, stop, lent)
        case "duckdb":
            assert files.duckdb is not None
            return DuckdbTable(change, files.duckdb, stop, lent)


def _target(change: Change) -> TableTarget:
    """What the writers of the `transfer` tool are told. They connect, convert values and name errors; the change is
    made here."""
    return TableTarget(table=change.table, mode="insert")


def _ordered(change: Change, batch: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The values in the order of the placeholders."""
    places = [change.names.index(name) for name in change.sent]
    return [[row[place] for place in places] for row in batch]


def _look(change: Change, dialect: Dialect) -> str:
    """A table or column that is missing is found before the first row, also when there is none."""
    return f"SELECT {quote_all(change.names, dialect) or '*'} FROM {quote_table(change.table, dialect)} WHERE 1 = 0"


class Savepoints:
    """A batch can be undone within its transaction, as SQL spells it everywhere."""

    undoable = True

    def execute(self, text: str) -> None:
        raise NotImplementedError

    def mark(self) -> None:
        self.execute(f"SAVEPOINT {SAVEPOINT}")

    def release(self) -> None:
        self.execute(f"RELEASE SAVEPOINT {SAVEPOINT}")

    def undo(self) -> None:
        self.execute(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
        self.release()


class PostgresTable(PostgresWriter, Savepoints):
    def __init__(
        self, change: Change, conninfo: str, address: Address, stop: Stop, lent: Connection[Any] | None = None
    ) -> None:
        super().__init__(_target(change), conninfo, address, stop, lent)
        self.change = change

    def prepare(self) -> None:
        for statement in self.change.preparation(self.dialect, self.emptied):
            self.make(statement)
        # This looks at the table, and finds out which columns take JSON.
        self.start(Shape(self.change.sent, [Kind.TEXT] * len(self.change.sent), "sql"))

    def run(self, statement: Bound) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement.text.encode(), arguments(statement))

    def write(self, batch: Sequence[Sequence[Any]]) -> int:
        rows = _ordered(self.change, batch)
        if self.change.inserts_only:
            return super().write(rows)
        text = self.change.statement(self.dialect, lambda index: f"${index + 1}").encode()
        with self.connection.cursor() as cursor:
            cursor.executemany(text, [self._values(row) for row in rows])
            return max(cursor.rowcount, 0)


class MysqlTable(MysqlWriter, Savepoints):
    def __init__(self, change: Change, login: Login, stop: Stop, lent: MysqlConnection[Any] | None = None) -> None:
        super().__init__(_target(change), login, stop, lent)
        self.change = change
        self._login = login

    def prepare(self) -> None:
        # MySQL commits with every CREATE and DROP: what comes before the rows stays, whatever becomes of them.
        statements = self.change.preparation(self.dialect, self.emptied)
        if not self.is_lent:
            for statement in statements:
                self.make(statement)
        elif self.change.mode in ("create", "replace"):
            hint = "make the table in a sub-job before, or use `create: true`"
            raise ToolFailure(
                "parameters",
                f"MySQL commits when a table is dropped or made, so `mode: {self.change.mode}` "
                f"cannot be part of a shared transaction; hint: {hint}",
            )
        elif statements and not self._is_there():
            self._make_beside(statements)
        self.execute(_look(self.change, self.dialect))
        self.begin()
        if self.change.mode == "truncate_insert":
            self.execute(f"{self.emptied} {quote_table(self.change.table, self.dialect)}")

    def _is_there(self) -> bool:
        import pymysql  # Only MySQL needs it, and it brings cryptography with it.

        try:
            self.execute(_look(self.change, self.dialect))
        except pymysql.MySQLError as error:
            if error.args[:1] == (_NO_TABLE,):
                return False
            raise
        return True

    def _make_beside(self, statements: Sequence[str]) -> None:
        """On a connection of its own: a CREATE would commit what others have written in the transaction."""
        connection = connect(self._login)
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        finally:
            connection.close()

    def run(self, statement: Bound) -> None:
        with self.connection.cursor() as cursor:
            args = [for_mysql(value) for value in statement.args] if isinstance(statement.args, list) else None
            cursor.execute(statement.text, args)

    def write(self, batch: Sequence[Sequence[Any]]) -> int:
        text = self.change.statement(self.dialect, lambda index: "\0").replace("%", "%%").replace("\0", "%s")
        with self.connection.cursor() as cursor:
            changed = cursor.executemany(text, [list(map(for_mysql, row)) for row in _ordered(self.change, batch)])
        # An upsert counts two for a row that was there already.
        return max(changed or 0, 0) if self.change.mode in ("update", "delete") else len(batch)


class SqliteTable(SqliteWriter, Savepoints):
    def __init__(
        self, change: Change, shared: SharedSqlite, stop: Stop, lent: sqlite3.Connection | None = None
    ) -> None:
        super().__init__(_target(change), shared, stop, lent)
        self.change = change

    def prepare(self) -> None:
        self.begin()
        for statement in self.change.preparation(self.dialect, self.emptied):
            self.execute(statement)
        self.execute(_look(self.change, self.dialect))

    def run(self, statement: Bound) -> None:
        self.begin()
        args = statement.args if isinstance(statement.args, dict) else {}
        self.connection.execute(statement.text, {name: for_sqlite(value) for name, value in args.items()})

    def write(self, batch: Sequence[Sequence[Any]]) -> int:
        text = self.change.statement(self.dialect, lambda index: "?")
        values = (list(map(for_sqlite, row)) for row in _ordered(self.change, batch))
        return max(self.connection.executemany(text, values).rowcount, 0)

    def mark(self) -> None:
        self.begin()
        super().mark()


_ROWS = "penstock_rows"
_NUMBER = "penstock_number"


class DuckdbTable:
    """`stage` is called once, before `prepare`, with all rows as an Arrow stream that ends in their numbers."""

    undoable = False

    def __init__(
        self,
        change: Change,
        open_cursor: Callable[[Stop], DuckDBPyConnection],
        stop: Stop,
        lent: DuckDBPyConnection | None = None,
    ) -> None:
        import duckdb

        self.errors: tuple[type[Exception], ...] = (duckdb.Error,)
        self.change = change
        self._is_lent = lent is not None
        self.connection = lent or open_cursor(stop)
        self._in_transaction = self._is_lent
        self._stop = stop
        self._forget = stop.on_stop(self.connection.interrupt)

    def failure(self, error: Exception) -> ToolFailure:
        return duckdb_tool.failure_of(error, None)

    def stage(self, stream: Any) -> None:
        """Raises ToolFailure, or what the engine raises while it gives the rows."""
        # Arrow has no UUID and no JSON: they come as text, and are here again what they were.
        columns = ", ".join(
            f"CAST({_name(each.name)} AS {each.type}) AS {_name(each.name)}" for each in self.change.columns
        )
        query = f"SELECT {columns}, {_NUMBER} FROM penstock_stream"
        self.connection.register("penstock_stream", stream)
        try:
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {_ROWS} AS {query}")
        finally:
            self.connection.unregister("penstock_stream")

    def prepare(self) -> None:
        if self._is_lent:
            self._prepare()
        else:
            duckdb_tool.while_made(self._prepare, self.abort, self._stop)

    def _prepare(self) -> None:
        self._begin()
        for statement in self.change.preparation(Dialect.DUCKDB, "DELETE FROM"):
            self.connection.execute(statement)
        names = quote_all(self.change.names, Dialect.DUCKDB)
        self.connection.execute(f"SELECT {names or '*'} FROM {self._table} WHERE false")

    def run(self, statement: Bound) -> None:
        self._begin()
        self.connection.execute(statement.text, statement.args)

    def write(self, batch: range) -> int:
        """Of the rows with these numbers, counted from 1."""
        self._begin()
        text = self._statement()
        bounds = {"first": batch.start, "last": batch.stop - 1}
        found = self.connection.execute(text, bounds).fetchone()
        return int(found[0]) if found else 0

    @property
    def _table(self) -> str:
        return quote_table(self.change.table, Dialect.DUCKDB)

    def _statement(self) -> str:
        change = self.change
        names = quote_all(change.names, Dialect.DUCKDB)
        between = f"{_NUMBER} BETWEEN $first AND $last"
        same = " AND ".join(f"target.{_name(key)} = source.{_name(key)}" for key in change.keys)
        match change.mode:
            case "update":
                changed = [name for name in change.names if name not in change.keys]
                values = ", ".join(f"{_name(name)} = source.{_name(name)}" for name in changed)
                return f"UPDATE {self._table} AS target SET {values} FROM ({self._last_of_each(between)}) AS source WHERE {same}"
            case "delete":
                return f"DELETE FROM {self._table} AS target USING (SELECT * FROM {_ROWS} WHERE {between}) AS source WHERE {same}"
            case "upsert":
                tail = change.conflict(Dialect.DUCKDB)
                return f"INSERT INTO {self._table} ({names}) SELECT {names} FROM ({self._last_of_each(between)}) {tail}"
            case _:
                order = f"WHERE {between} ORDER BY {_NUMBER}"
                return f"INSERT INTO {self._table} ({names}) SELECT {names} FROM {_ROWS} {order}"

    def _last_of_each(self, between: str) -> str:
        """One statement may not touch a row twice, so of rows with the same key only the last is sent: it would win
        anyway."""
        keys = quote_all(self.change.keys, Dialect.DUCKDB)
        return (
            f"SELECT * FROM {_ROWS} WHERE {between} "
            f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {_NUMBER} DESC) = 1"
        )

    def _begin(self) -> None:
        if not self._in_transaction:
            self.connection.begin()
            self._in_transaction = True

    def mark(self) -> None:
        """There is nothing to come back to; see `undoable`."""

    def release(self) -> None:
        """Nothing was marked."""

    def undo(self) -> None:
        self.abort()

    def commit(self) -> None:
        if self._in_transaction and not self._is_lent:
            self.connection.commit()
            self._in_transaction = False

    def abort(self) -> None:
        if not self._is_lent:
            self._in_transaction = False
            with suppress(*self.errors):
                self.connection.rollback()

    def close(self) -> None:
        self._forget()
        with suppress(*self.errors):
            self.connection.execute(f"DROP TABLE IF EXISTS temp.{_ROWS}")
        if not self._is_lent:
            self.connection.close()


def _name(name: str) -> str:
    return quote(name, Dialect.DUCKDB)
