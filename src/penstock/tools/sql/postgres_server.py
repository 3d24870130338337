"""A PostgreSQL that runs the rows of a job: how it is reached for that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.tools.addresses import OPEN
from penstock.tools.sql import adbc, postgres_connection
from penstock.tools.sql.connection import Stop, address_in
from penstock.tools.sql.places import place_of

if TYPE_CHECKING:
    from psycopg import Connection

_CONNECT_S = 10.0
DRIVER = "postgres"


class PostgresServer:
    def __init__(self, login: Mapping[str, Any]) -> None:
        """`login` is a connection of a document, with all secrets in it. Raises ToolFailure."""
        self._address = address_in((login,), OPEN)
        self._conninfo = postgres_connection.conninfo_within(self._address, _CONNECT_S)

    @property
    def place(self) -> object:
        return place_of(DRIVER, self._address)

    def connect(self) -> Connection[Any]:
        return postgres_connection.connect_blocking(self._conninfo, self._address)

    @contextmanager
    def rows(self, statement: str) -> Iterator[Any]:
        with adbc.rows_of_text(self._conninfo, self._address, statement, Stop()) as stream:
            yield stream
