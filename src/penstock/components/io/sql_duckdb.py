"""A DuckDB table as a target: all rows are put beside it first, and then each batch is one statement over a range of
them.

DuckDB has no savepoints: a statement that fails ends its transaction. So a batch cannot be taken back by itself, and
where rows may be refused every batch is a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from penstock.tools.base import ToolFailure
from penstock.tools.sql import duckdb as duckdb_tool
from penstock.tools.sql.lexer import Dialect
from penstock.tools.sql.names import quote, quote_all, quote_table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from penstock.components.io.sql.targets import Change
    from penstock.tools.sql.binding import Bound
    from penstock.tools.sql.blocking import Stop

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
