"""The table that `write_sql` writes. Rows come as batches, and a batch is any sequence that can be cut in two: lists of values
for the servers, numbers of rows for DuckDB, which is given all rows at once and works on ranges of them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from penstock.components.io.sql.database import Files, Where
from penstock.ports.rows import Schema
from penstock.tools.sql.connection import Stop
from penstock.tools.sql.tables import DuckdbTable, MysqlTable, PostgresTable, SqliteTable, Table
from penstock.tools.sql.text import Dialect, insert_into, quote, quote_all, quote_table


def open_target(place: Where, files: Files, stop: Stop, lent: Any = None) -> Table:
    """`lent`: a connection in the midst of a transaction that somebody else ends."""
    match place.driver:
        case "postgres":
            return PostgresTable(place.conninfo(), place.address(), stop, lent)
        case "mysql":
            return MysqlTable(place.login(), stop, lent)
        case "sqlite":
            assert files.sqlite is not None
            return SqliteTable(files.sqlite, stop, lent)
        case "duckdb":
            assert files.duckdb is not None
            return StagedTable(files.duckdb, stop, lent)


_ROWS = "penstock_rows"
_NUMBER = "penstock_number"


class StagedTable(DuckdbTable):
    """`stage` is called once, before `prepare`, with all rows as an Arrow stream that ends in their numbers."""

    def stage(self, stream: Any, schema: Schema) -> None:
        """Raises ToolFailure, or what the engine raises while it gives the rows."""
        # Arrow has no UUID and no JSON: they come as text, and are here again what they were.
        columns = ", ".join(f"CAST({_name(each.name)} AS {each.type}) AS {_name(each.name)}" for each in schema)
        query = f"SELECT {columns}, {_NUMBER} FROM penstock_stream"
        self.connection.register("penstock_stream", stream)
        try:
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {_ROWS} AS {query}")
        finally:
            self.connection.unregister("penstock_stream")

    def write(self, rows: Any) -> int:
        """Of the rows with these numbers, counted from 1."""
        self.begin()
        found = self.connection.execute(self._statement(), {"first": rows.start, "last": rows.stop - 1}).fetchone()
        return int(found[0]) if found else 0

    def _statement(self) -> str:
        change = self.change
        table = quote_table(change.table, Dialect.DUCKDB)
        insert = f"{insert_into(change.table, change.columns, Dialect.DUCKDB)} SELECT {quote_all(change.columns, Dialect.DUCKDB)}"
        between = f"{_NUMBER} BETWEEN $first AND $last"
        same = " AND ".join(f"target.{_name(key)} = source.{_name(key)}" for key in change.keys)
        match change.mode:
            case "update":
                values = ", ".join(f"{_name(name)} = source.{_name(name)}" for name in change.changed)
                return (
                    f"UPDATE {table} AS target SET {values} FROM ({self._last_of_each(between)}) AS source WHERE {same}"
                )
            case "delete":
                return f"DELETE FROM {table} AS target USING (SELECT * FROM {_ROWS} WHERE {between}) AS source WHERE {same}"
            case "upsert":
                return f"{insert} FROM ({self._last_of_each(between)}){change.tail(Dialect.DUCKDB)}"
            case _:
                return f"{insert} FROM {_ROWS} WHERE {between} ORDER BY {_NUMBER}"

    def _last_of_each(self, between: str) -> str:
        """One statement may not touch a row twice, so of rows with the same key only the last is sent: it would win
        anyway."""
        keys = quote_all(self.change.keys, Dialect.DUCKDB)
        return (
            f"SELECT * FROM {_ROWS} WHERE {between} "
            f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {_NUMBER} DESC) = 1"
        )

    def close(self) -> None:
        with suppress(*self.errors):
            self.connection.execute(f"DROP TABLE IF EXISTS temp.{_ROWS}")
        super().close()


def _name(name: str) -> str:
    return quote(name, Dialect.DUCKDB)
