"""A table in Snowflake, for rows that are in its temporary tables already: one statement writes all of them.

Law: the statements are those of the one session that has the rows, which is kept from the first to the commit. Making and
dropping a table commits there, so it comes before the transaction; a statement that stands alone is a transaction by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any

from penstock.ports.rows import Relation, SharedDatabaseSession
from penstock.tools.base import ToolFailure
from penstock.tools.sql import drivers
from penstock.tools.sql.connection import Stop
from penstock.tools.sql.tables import Change, Table
from penstock.tools.sql.text import Bound, insert_into, quote, quote_all, quote_table


class SnowflakeTable(Table):
    dialect = drivers.DIALECT
    undoable = False

    def __init__(
        self, engine: SharedDatabaseSession, rows: Relation, pairs: Mapping[str, str], stop: Stop, *, alone: bool
    ) -> None:
        """`alone`: the author has no statements of his own in the transaction of the rows."""
        self._is_alone = alone
        self._kept = ExitStack()
        self._session = self._kept.enter_context(engine.running())
        self._held = engine.table(rows)
        self._pairs = pairs
        self._is_begun = False
        self.errors = self._session.errors
        super().__init__(stop, engine.interrupt, is_lent=False)

    def failure(self, error: Exception) -> ToolFailure:
        failed: ToolFailure = self._session.failure(error, None)
        return failed

    def begin(self) -> None:
        if not (self._is_begun or self._is_alone):
            self._count("BEGIN")
            self._is_begun = True

    def execute(self, text: str) -> None:
        self._count(text)

    def run(self, statement: Bound) -> None:
        self._session.execute(statement)

    def prepare(self, change: Change) -> None:
        self.change = change
        if change.mode in ("update", "upsert"):
            self._check_keys()
        for statement in change.preparation(self.dialect, self.emptied):
            if statement.startswith(self.emptied):
                self._is_alone = False
                self.begin()
            self.execute(statement)
        self.begin()

    def _check_keys(self) -> None:
        keys = ", ".join(self._name(self._pairs[key]) for key in self.change.keys)
        there = " AND ".join(f"{self._name(self._pairs[key])} IS NOT NULL" for key in self.change.keys)
        asked = f"SELECT {keys} FROM {self._held} WHERE {there} GROUP BY {keys} HAVING COUNT(*) > 1"
        if self._count(f"{asked} LIMIT 1"):
            message = "two rows have the same `keys`, and rows have no order in Snowflake, so neither is the last"
            raise ToolFailure("constraint", f"{message}; hint: `unique` before it keeps one")

    def write(self, rows: Any) -> int:
        change = self.change
        given = ", ".join(f"{self._name(self._pairs[name])} AS {self._name(name)}" for name in change.sent)
        if change.inserts_only:
            head = insert_into(change.table, change.sent, self.dialect)
            return self._count(f"{head} SELECT {given} FROM {self._held}")
        same = " AND ".join(f"target.{self._name(key)} = source.{self._name(key)}" for key in change.keys)
        each = "DISTINCT " if change.mode == "delete" else ""
        values = ", ".join(f"{self._name(name)} = source.{self._name(name)}" for name in change.changed)
        columns = quote_all(change.columns, self.dialect)
        added = ", ".join(f"source.{self._name(name)}" for name in change.columns)
        cases = {
            "update": [f"WHEN MATCHED THEN UPDATE SET {values}"],
            "delete": ["WHEN MATCHED THEN DELETE"],
            "upsert": [
                *([f"WHEN MATCHED THEN UPDATE SET {values}"] if values else []),
                f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({added})",
            ],
        }
        table = quote_table(change.table, self.dialect)
        source = f"(SELECT {each}{given} FROM {self._held}) AS source"
        return self._count(f"MERGE INTO {table} AS target USING {source} ON {same} {' '.join(cases[change.mode])}")

    def mark(self) -> None:
        self.begin()

    def release(self) -> None:
        """Nothing was marked: there are no savepoints."""

    def undo(self) -> None:
        self.abort()

    def commit(self) -> None:
        if self._is_begun:
            self._count("COMMIT")
            self._is_begun = False

    def abort(self) -> None:
        if self._is_begun:
            with suppress(*self.errors):
                self._count("ROLLBACK")
            self._is_begun = False

    def close(self) -> None:
        self._forget()
        self._kept.close()

    def _count(self, text: str) -> int:
        cursor = self._session.connection.cursor()
        try:
            cursor.execute(text)
            return int(cursor.rowcount or 0)
        finally:
            cursor.close()

    def _name(self, name: str) -> str:
        return quote(name, self.dialect)
