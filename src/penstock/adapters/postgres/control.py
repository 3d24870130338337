"""The control store of a fleet, in PostgreSQL, beside the log.

Law: a call that is repeated after a lost connection has the same effect as one that was not. The clock is the database's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import psycopg

from penstock.adapters import control
from penstock.adapters.postgres.database import LOG, Connection, Tables, open_database, words_of
from penstock.adapters.postgres.rows import given_values, stored_values
from penstock.adapters.sql_files import queries
from penstock.kernel.errors import Refused
from penstock.ports.control import Filed, Scope, Token

T = TypeVar("T")

TABLES = Tables(
    "postgres/control",
    lock="penstock control",
    tables=("control_version",),
    versions="control_version",
    newer="the control tables in {place} are of a newer Penstock",
)
SQL = queries(TABLES.store)
# A caller waits for the answer: a minute, as for the log, would be too long.
PATIENCE_SECONDS = 10.0


class PostgresControl(control.ControlStore):
    def __init__(
        self, url: str, *, patience_s: float = PATIENCE_SECONDS, environ: Mapping[str, str] | None = None
    ) -> None:
        self._seal = control.Seal(environ)
        self._database = open_database(url, patience_s, (LOG, TABLES))

    def close(self) -> None:
        self._database.close()

    # ---- catalog

    def file(self, path: str, text: str, kind: str, digest: str, sources: Mapping[str, str], by: str = "") -> Filed:
        values = stored_values(control.filed_values(path, text, kind, digest, sources, by))

        def job(connection: Connection) -> Filed:
            connection.execute(SQL["lock_path"], values)
            there = _first(connection, "newest_document", values)
            if there is not None and control.has_content(control.filed_of(there), kind, text, sources):
                return control.filed_of(there)
            new = _first(connection, "file", values)
            assert new is not None
            return control.filed_of(new)

        return self._asked(lambda: self._database.transact(job))

    # ---- tokens

    def add_token(self, name: str, scope: Scope, expires_at: float | None = None) -> tuple[Token, str]:
        control.check_name("name", name)
        secret = control.new_token_secret()
        values = {"id": control.new_token_id(), "hash": control.hash_of(secret), "name": name, "scope": scope.value}
        (row,) = self._rows("add_token", {**values, "expires_at": expires_at})
        return control.token_of(row), secret

    def token(self, secret: str) -> Token | None:
        return self._used("token", "hash", control.hash_of(secret))

    def token_of_session(self, session: str) -> Token | None:
        return self._used("token_of_session", "session", control.hash_of(session))

    def _used(self, statement: str, column: str, shown: str) -> Token | None:
        for there, now, *row in self._rows(statement, {column: shown}):
            token = control.token_of(row)
            if not control.is_same(there, shown):
                continue
            if control.is_used_anew(token.last_used_at, now):
                self._changes("use_token", {"id": token.id, "now": now})
                token = replace(token, last_used_at=now)
            return token
        return None

    # ---- the database

    def _rows(self, statement: str, values: control.Values) -> list[list[Any]]:
        def job(connection: Connection) -> list[list[Any]]:
            return [given_values(row) for row in connection.execute(SQL[statement], stored_values(values))]

        try:
            return self._asked(lambda: self._database.run(job))
        except UnicodeEncodeError:
            return []  # What cannot be kept is not there.

    def _changes(self, statement: str, values: control.Values) -> bool:
        """Whether there was something to change."""

        def job(connection: Connection) -> bool:
            return connection.execute(SQL[statement], stored_values(values)).rowcount > 0

        try:
            return self._asked(lambda: self._database.run(job))
        except UnicodeEncodeError:
            return False

    def _asked(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except psycopg.Error as error:
            # The database lets only the fault of values through.
            raise Refused(f"{self._database.place} cannot keep this: {words_of(error)}", "correct it") from error


def _first(connection: Connection, statement: str, values: control.Values) -> Sequence[Any] | None:
    row = connection.execute(SQL[statement], values).fetchone()
    return None if row is None else given_values(row)
