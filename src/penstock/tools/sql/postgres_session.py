"""A blocking connection to PostgreSQL for statements of a transaction that lasts longer than one task."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from penstock.kernel.values import Json
from penstock.tools.base import ToolFailure
from penstock.tools.sql.binding import Bound
from penstock.tools.sql.failures import Place
from penstock.tools.sql.postgres_connection import arguments
from penstock.tools.sql.postgres_errors import failure_of
from penstock.tools.sql.results import Table, too_large
from penstock.tools.sql.values import distinct, to_json

if TYPE_CHECKING:
    from psycopg import Connection

_BATCH = 1000


class PostgresSession:
    def __init__(self, connection: Connection[Any], max_rows: int) -> None:
        import psycopg

        self.connection = connection
        self.max_rows = max_rows
        self.errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def begin(self, *, writing: bool) -> None:
        """The driver begins a transaction with the first statement."""

    def commit(self) -> None:
        from psycopg.pq import TransactionStatus

        if self.connection.info.transaction_status == TransactionStatus.INERROR:
            # The server would answer COMMIT with a rollback, and the driver would call that a success.
            raise ToolFailure("database", "the transaction could not be committed, and nothing was changed")
        self.connection.commit()

    def rollback(self) -> None:
        with suppress(*self.errors):
            self.connection.rollback()

    def execute(self, statement: Bound) -> Table:
        with self.connection.cursor() as cursor:
            cursor.execute(statement.text.encode(), arguments(statement))
            if cursor.description is None:
                return Table(row_count=max(cursor.rowcount, 0))
            if cursor.rowcount > self.max_rows:
                raise too_large(self.max_rows)
            columns = distinct([column.name for column in cursor.description])
            rows: list[Json] = []
            while batch := cursor.fetchmany(_BATCH):
                rows.extend(dict(zip(columns, map(to_json, row), strict=True)) for row in batch)
            return Table(columns, rows, len(rows), gives_rows=True)

    def failure(self, error: Exception, place: Place) -> ToolFailure:
        import psycopg

        assert isinstance(error, psycopg.Error)
        return failure_of(error, place, connection_lost=self.connection.closed)
