"""The control store of a fleet, in PostgreSQL, beside the log.

Law: a call that is repeated after a lost connection has the same end as one that was not. The clock is the database's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import psycopg

from penstock.adapters.control import (
    ControlStore,
    Seal,
    Values,
    check_name,
    filed_of,
    filed_values,
    has_content,
    hash_of,
    is_same,
    is_used_anew,
    new_token_id,
    new_token_secret,
    token_of,
)
from penstock.adapters.postgres.database import Connection, Database, words_of
from penstock.adapters.postgres.rows import given_values, kept
from penstock.adapters.sql_files import queries, schema_files
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.control import Filed, Scope, Token
from penstock.ports.undoing import unless_done

T = TypeVar("T")

STORE = "postgres/control"
SQL = queries(STORE)
# Somebody waits for the answer; a minute, as the log takes, would be too long.
PATIENCE_SECONDS = 10.0


class PostgresControl(ControlStore):
    def __init__(
        self, url: str, *, patience_s: float = PATIENCE_SECONDS, environ: Mapping[str, str] | None = None
    ) -> None:
        self._seal = Seal(environ)
        self._database = Database(url, patience_s)
        with unless_done(self._database.close):
            self._database.run(self._bring_up)

    def close(self) -> None:
        self._database.close()

    # ---- catalog

    def file(self, path: str, text: str, kind: str, digest: str, sources: Mapping[str, str], by: str = "") -> Filed:
        values = _kept(filed_values(path, text, kind, digest, sources, by))

        def job(connection: Connection) -> Filed:
            connection.execute(SQL["lock_path"], values)
            there = _first(connection, "newest_document", values)
            if there is not None and has_content(filed_of(there), kind, text, sources):
                return filed_of(there)
            new = _first(connection, "file", values)
            assert new is not None
            return filed_of(new)

        return self._asked(lambda: self._database.transact(job))

    # ---- tokens

    def add_token(self, name: str, scope: Scope, expires_at: float | None = None) -> tuple[Token, str]:
        check_name("name", name)
        secret = new_token_secret()
        values = {"id": new_token_id(), "hash": hash_of(secret), "name": name, "scope": scope.value}
        (row,) = self._rows("add_token", {**values, "expires_at": expires_at})
        return token_of(row), secret

    def token(self, secret: str) -> Token | None:
        shown = hash_of(secret)
        for there, now, *row in self._rows("token", {"hash": shown}):
            token = token_of(row)
            if not is_same(there, shown):
                continue
            if is_used_anew(token.last_used_at, now):
                self._changes("use_token", {"id": token.id, "now": now})
                token = replace(token, last_used_at=now)
            return token
        return None

    # ---- the database

    def _rows(self, statement: str, values: Values) -> list[list[Any]]:
        def job(connection: Connection) -> list[list[Any]]:
            return [given_values(row) for row in connection.execute(SQL[statement], _kept(values))]

        try:
            return self._asked(lambda: self._database.run(job))
        except UnicodeEncodeError:
            return []  # What cannot be kept is not there.

    def _changes(self, statement: str, values: Values) -> bool:
        """Whether there was something to change."""

        def job(connection: Connection) -> bool:
            return connection.execute(SQL[statement], _kept(values)).rowcount > 0

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

    def _bring_up(self, connection: Connection) -> None:
        known = schema_files(STORE)
        newest = max(known)
        if self._version(connection, newest) == newest:
            return
        with connection.transaction():
            connection.execute(SQL["lock_schema"])
            # Asked again under the lock: another process may have brought the schema up in the meantime.
            for number in range(self._version(connection, newest) + 1, newest + 1):
                connection.execute(known[number].read_bytes())
                connection.execute(SQL["record_version"], {"version": number})

    def _version(self, connection: Connection, newest: int) -> int:
        (is_there,) = connection.execute(SQL["has_tables"]).fetchone() or (False,)
        if not is_there:
            return 0
        (version,) = connection.execute(SQL["schema_version"]).fetchone() or (0,)
        if version > newest:
            raise Unavailable(
                f"the control tables in {self._database.place} are of a newer Penstock "
                f"(schema {version}; this one knows up to {newest})",
                "use that version, or another schema",
            )
        return int(version)


def _first(connection: Connection, statement: str, values: Values) -> Sequence[Any] | None:
    row = connection.execute(SQL[statement], values).fetchone()
    return None if row is None else given_values(row)


def _kept(values: Values) -> dict[str, object]:
    return {name: kept(value) if isinstance(value, str) else value for name, value in values.items()}
