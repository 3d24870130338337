"""How each database is asked for the rows of a page, and how its keys are written down.

A key is written as JSON that its own database reads back as the same value: a whole number or a text as it is; what JSON has no
word for as `{"bytes": …}`, `{"decimal": …}` and so on, or, where the server casts, as the server's text for it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from penstock.kernel.values import Json, JsonMap
from penstock.tools.base import Call, ToolFailure
from penstock.tools.pages.sql import Engine, Keyed, Select, SqlPagesParams
from penstock.tools.sql.binding import Bound
from penstock.tools.sql.blocking import Stop, interruptible, told
from penstock.tools.sql.connection import FIELDS, address_of
from penstock.tools.sql.failures import Place
from penstock.tools.sql.results import Table
from penstock.tools.sql.values import distinct, parsed, to_json

AS_TEXT = "penstock_key"
_PLACE = Place(0, 1)


def engine_of(params: SqlPagesParams, call: Call) -> Engine:
    _refuse_foreign(params)
    match params.kind:
        case "postgres":
            return PostgresEngine(params, call)
        case "mysql":
            return MysqlEngine(params, call)
        case "sqlite":
            return SqliteEngine(params, call)
        case "duckdb":
            return DuckdbEngine(params, call)


def _refuse_foreign(params: SqlPagesParams) -> None:
    is_file = params.kind in ("sqlite", "duckdb")
    strange = FIELDS if is_file else ("path", "read_only")
    given = [name for name in strange if getattr(params, name)]
    if given:
        right = "`path` or `auth`" if is_file else "`auth`, `url`, or `host` and its companions"
        raise ToolFailure(
            "parameters", f"`{given[0]}` does not describe a `{params.kind}` database; that takes {right}"
        )


def _split(table: Table) -> list[Keyed]:
    """Rows whose last column is the key as the server's text."""
    name = table.columns[-1] if table.columns else ""
    found = []
    for row in cast("list[JsonMap]", table.rows):
        text = row.pop(name)
        found.append(Keyed(row, text, str(text)))
    return found


class PostgresEngine:
    """A text without a type is read by the server as the type of the column it is compared with."""

    def __init__(self, params: SqlPagesParams, call: Call) -> None:
        self._params = params
        self._call = call

    async def read(self, select: Select, after: Json, until: Json, most: int) -> list[Keyed]:
        extra = f"{select.column}::text AS {AS_TEXT}"
        return _split(await self._run(select.bounded(extra, after, until, most), most))

    async def has_null(self, select: Select) -> bool:
        return bool((await self._run(select.nulls(), 1)).rows)

    async def _run(self, statement: Bound, most: int) -> Table:
        from penstock.tools.sql.plan import Command
        from penstock.tools.sql.postgres import PostgresParams, PostgresRun
        from penstock.tools.sql.postgres_connection import pool_for

        pool = await pool_for(address_of(self._params, self._call), self._call)
        async with pool.lease() as lease:
            run = PostgresRun(lease, PostgresParams(max_rows=most), self._call)
            (table,) = await run.run([Command((statement,), must_give_rows=True)])
        return table


class DuckdbEngine:
    """Keys go as the server's text, and are cast back to the type that the query says."""

    def __init__(self, params: SqlPagesParams, call: Call) -> None:
        self._params = params
        self._call = call
        self._type: str | None = None

    async def read(self, select: Select, after: Json, until: Json, most: int) -> list[Keyed]:
        def work(session: Any) -> Table:
            if self._type is None:
                self._type = _duckdb_type(select, session.connection)
            extra = f"CAST({select.column} AS VARCHAR) AS {AS_TEXT}"
            table: Table = session.execute(select.bounded(extra, after, until, most, self._type))
            return table

        return _split(await self._run(select, work, most))

    async def has_null(self, select: Select) -> bool:
        return bool((await self._run(select, lambda session: session.execute(select.nulls()), 1)).rows)

    async def _run(self, select: Select, work: Callable[[Any], Table], most: int) -> Table:
        from penstock.tools.sql.duckdb import DuckdbSession, path_of, shared_database

        call = self._call
        path = path_of(self._params.path, self._params.auth, call)
        shared = await shared_database(path, call, read_only=self._params.read_only)

        def whole(stop: Stop) -> Table:
            connection = shared.cursor(call.folder, stop)
            forget = stop.on_stop(connection.interrupt)
            session = DuckdbSession(connection, most)
            try:
                with told(session, _PLACE.at(select.statement.excerpt)):
                    return work(session)
            finally:
                forget()
                connection.close()

        return await interruptible(call, whole)


def _duckdb_type(select: Select, connection: Any) -> str:
    from penstock.tools.sql.duckdb import described

    statement = select.key_alone()
    ((_, kind),) = described(statement, cast("dict[str, Any] | None", statement.args), connection)
    return kind


class _NativeEngine:
    """Where the driver's own values are the best way to say a key."""

    def __init__(self, params: SqlPagesParams, call: Call) -> None:
        self._params = params
        self._call = call

    async def read(self, select: Select, after: Json, until: Json, most: int) -> list[Keyed]:
        extra = f"{select.column} AS {AS_TEXT}"
        columns, rows = await self._rows(select.bounded(extra, bindable(after), bindable(until), most))
        names = distinct([name for name, _ in columns])[:-1]
        change = [convert for _, convert in columns[:-1]]
        found = []
        for *values, key in rows:
            row = {name: said(value) for name, said, value in zip(names, change, values, strict=True)}
            found.append(Keyed(row, token_of(key, select.key), text_of(key)))
        return found

    async def has_null(self, select: Select) -> bool:
        _, rows = await self._rows(select.nulls())
        return bool(rows)

    async def _rows(self, statement: Bound) -> tuple[list[tuple[str, Callable[[Any], Json]]], list[Any]]:
        raise NotImplementedError


class SqliteEngine(_NativeEngine):
    async def _rows(self, statement: Bound) -> tuple[list[tuple[str, Callable[[Any], Json]]], list[Any]]:
        from penstock.tools.sql import sqlite

        call = self._call
        path = sqlite.path_of(self._params.path, self._params.auth, call)
        shared = await sqlite.shared_database(path, call, create=False, read_only=self._params.read_only)

        def work(stop: Stop) -> tuple[list[tuple[str, Callable[[Any], Json]]], list[Any]]:
            connection = shared.take()
            forget = stop.on_stop(connection.interrupt)
            session = sqlite.SqliteSession(connection, 0)
            try:
                with told(session, _PLACE.at(statement.excerpt)):
                    args = cast("dict[str, Any]", statement.args or {})
                    values = {name: sqlite.bindable(value) for name, value in args.items()}
                    cursor = connection.execute(statement.text, values)
                    return [(column[0], to_json) for column in cursor.description or ()], cursor.fetchall()
            finally:
                forget()
                shared.give_back(connection)

        async with shared.turn or nullcontext():
            return await interruptible(call, work)


class MysqlEngine(_NativeEngine):
    async def _rows(self, statement: Bound) -> tuple[list[tuple[str, Callable[[Any], Json]]], list[Any]]:
        from penstock.tools.sql import mysql
        from penstock.tools.sql.blocking import in_a_thread
        from penstock.tools.sql.mysql_connection import kill_query, login_of, thread_of

        call = self._call
        login = login_of(address_of(self._params, call), call)
        pool = await mysql.pool_for(login, call)

        def work(stop: Stop) -> tuple[list[tuple[str, Callable[[Any], Json]]], list[Any]]:
            connection = pool.take()
            number = thread_of(connection)
            forget = stop.on_stop(in_a_thread(lambda: kill_query(login, number)))
            session = mysql.MysqlSession(connection, login, mysql.MysqlParams())
            try:
                with told(session, _PLACE.at(statement.excerpt)), connection.cursor() as cursor:
                    connection.autocommit(True)
                    cursor.execute(statement.text, [mysql.bindable(value) for value in statement.args or []])
                    columns: list[tuple[str, Callable[[Any], Json]]] = [
                        (column[0], parsed if cast("int", column[1]) == mysql.JSON_TYPE else to_json)
                        for column in cursor.description or ()
                    ]
                    return columns, list(cursor.fetchall())
            finally:
                forget()
                pool.give_back(connection, touched=stop.is_set)

        async with pool.turns:
            return await interruptible(call, work)


# ---- keys of drivers as JSON, and back


def token_of(value: Any, column: str) -> Json:
    match value:
        case bool():
            return int(value)
        case int():
            return value if -(2**63) <= value < 2**63 else {"decimal": str(value)}
        case str() | float():
            return value
        case Decimal():
            return {"decimal": str(value)}
        case datetime.datetime():
            return {"datetime": value.isoformat()}
        case datetime.date():
            return {"date": value.isoformat()}
        case bytes():
            return {"bytes": value.hex()}
        case UUID():
            return {"uuid": str(value)}
        case _:
            raise ToolFailure(
                "collection",
                f"the key `{column}` has values of type `{type(value).__name__}`; a key is a whole number, a text, a date, "
                "a time stamp, a decimal number, a UUID or bytes; hint: cast it in the query",
            )


_BACK: dict[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "bytes": bytes.fromhex,
    "uuid": UUID,
}


def bindable(token: Json) -> Any:
    if not isinstance(token, dict):
        return token
    ((kind, text),) = token.items()
    return _BACK[kind](str(text))


def text_of(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
