"""The rows of a query, from key to key.

Law: a page begins right after the last key of the page before it and is read with that key as a bound value, so it costs the same
at the end of a table as at its beginning, and rows that come or go elsewhere do not move it. Duplicate and null keys would be
passed over in silence, so they are refused.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, cast
from uuid import UUID

import msgspec

from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Page
from penstock.tools.base import Call, ToolFailure
from penstock.tools.pages.base import Reader
from penstock.tools.parameters import about
from penstock.tools.sql import mysql, sqlite
from penstock.tools.sql.connection import (
    FIELDS,
    Auth,
    ConnectionName,
    Database,
    Host,
    Password,
    Port,
    SslMode,
    Stop,
    User,
    address_of,
    failures_at,
    in_a_thread,
    interruptible,
)
from penstock.tools.sql.duckdb import DuckdbSession, described, path_of, shared_database
from penstock.tools.sql.mysql import kill_query, login_of, thread_of
from penstock.tools.sql.plan import Bindings, Command, Planner
from penstock.tools.sql.postgres import PostgresParams, PostgresRun
from penstock.tools.sql.postgres_connection import lease_of
from penstock.tools.sql.results import RunningCommand, Table, distinct, parsed, to_json
from penstock.tools.sql.text import Bound, Dialect, quote

READING = {"select", "with", "values", "table", "from"}
TIME_LIMIT_S = 600.0


class DatabaseParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which database, and how to connect to it."""

    kind: Annotated[Literal["postgres", "mysql", "sqlite", "duckdb"], about("The SQL tool whose database it is.")]
    connection: ConnectionName = None
    auth: Auth = None
    url: Annotated[str | None, about("Connection URL, instead of `auth` or the single fields.")] = None
    host: Host = None
    port: Port = None
    user: User = None
    password: Password = None
    database: Database = None
    sslmode: SslMode = None
    path: Annotated[
        str | None, about("The file of a `sqlite` or `duckdb` database, relative to the document's folder.")
    ] = None


class SqlPagesParams(DatabaseParams, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[str, about("A query that gives the rows. It needs no order: the key is the order.", min_length=1)]
    key: Annotated[
        str | None,
        about("Needed: a column of the query with a value of its own in every row, such as its primary key."),
    ] = None
    params: Annotated[Bindings, about("Values to bind: a mapping for `:name`, a list for `%s`, `?` or `$1`.")] = None
    args: Annotated[Bindings, about("The same as `params`.")] = None
    read_only: Annotated[
        bool,
        about(
            "Open the file of a `sqlite` or `duckdb` database for reading only: several processes can have a DuckDB "
            "file open that way."
        ),
    ] = False
    keep: Annotated[
        bool,
        about(
            "Keep the rows of a page that was read in the result store, so that a shard which is tried again finds "
            "them as they were. If false they are read again, and the shards fail if keys were added or removed among them."
        ),
    ] = True
    timeout: Annotated[float, about("Seconds that reading one page may take.", gt=0)] = TIME_LIMIT_S


class Keyed(msgspec.Struct, frozen=True):
    """A row with its key: as a token, and as text."""

    row: JsonMap
    key: Json
    text: str


class Engine(Protocol):
    """How one kind of database is asked. `after` and `until` are keys as tokens."""

    async def read(self, select: Select, after: Json, until: Json, most: int) -> list[Keyed]: ...
    async def has_null(self, select: Select) -> bool: ...


class _Bind(NamedTuple):
    """A value in the middle of a text, to be bound there."""

    value: Any


class Select:
    """The author's query as a table, with bounds on its key around it."""

    def __init__(self, statement: Bound, key: str, dialect: Dialect) -> None:
        self.statement = statement
        self.dialect = dialect
        self.column = f"q.{quote(key, dialect)}"
        self.key = key

    def bounded(self, extra: str, after: Any, until: Any, most: int, cast: str | None = None) -> Bound:
        """The rows behind `after`, up to and including `until`, at most so many, with `extra` as a further column. Bounds are
        cast to the type `cast`, if one is given."""
        tail: list[str | _Bind] = [") AS q"]
        word = " WHERE"
        for test, value in ((">", after), ("<=", until)):
            if value is not None:
                before, behind = ("", "") if cast is None else ("CAST(", f" AS {cast})")
                tail += [f"{word} {self.column} {test} {before}", _Bind(value), behind]
                word = " AND"
        tail += [f" ORDER BY {self.column} LIMIT ", _Bind(most)]
        return self._around(f"SELECT q.*, {extra} FROM (", tail)

    def nulls(self) -> Bound:
        return self._around("SELECT 1 FROM (", [f") AS q WHERE {self.column} IS NULL LIMIT ", _Bind(1)])

    def key_alone(self) -> Bound:
        return self._around(f"SELECT {self.column} FROM (", [") AS q"])

    def _around(self, head: str, tail: list[str | _Bind]) -> Bound:
        """Our values are bound after those of the author."""
        inner = self.statement
        if self.dialect is Dialect.MYSQL:
            # The driver formats the text as soon as there are values, so a `%` in it has to be doubled. The author's has been, if
            # the author gave any.
            text = inner.text if inner.args is not None else inner.text.replace("%", "%%")
            written = "".join("%s" if isinstance(part, _Bind) else part.replace("%", "%%") for part in tail)
            listed = [*(inner.args or []), *(part.value for part in tail if isinstance(part, _Bind))]
            return replace(inner, text="\n".join((head.replace("%", "%%"), text, written)), args=listed)
        args: dict[str, Any] = dict(inner.args) if isinstance(inner.args, dict) else {}
        mark = {Dialect.POSTGRES: "$", Dialect.SQLITE: ":p", Dialect.DUCKDB: "$p"}[self.dialect]
        text = f"{head}\n{inner.text}\n"
        for part in tail:
            if isinstance(part, _Bind):
                text += f"{mark}{len(args) + 1}"
                args[f"p{len(args) + 1}"] = part.value
            else:
                text += part
        return replace(inner, text=text, args=args or None)


class SqlPages(Reader[SqlPagesParams]):
    """The rows of a query, as mappings from column to value.

    They are read in the order of `key`, a column whose values are unique and never null, each page right after the last key of
    the one before. `iter.iter_key` is the key of the row. The connection is described as for the tool that `kind` names.

    Rows of pages that were read are kept in the result store until the run is removed, so that a shard which is tried again gets
    its row as it was. For a collection of many millions of rows that do not change meanwhile, `keep: false` spares that room.
    """

    kind: ClassVar[str] = "sql"

    def __init__(self, params: SqlPagesParams, call: Call) -> None:
        super().__init__(params, replace(call, spec={**call.spec, "timeout": params.timeout}))
        self._engine: Engine | None = None
        self._select = _select(params, self.call)

    @property
    def keeps(self) -> bool:
        return self.params.keep

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        if self._engine is None:
            self._engine = engine_of(self.params, self.call)
        if token is None and until is None and await self._engine.has_null(self._select):
            raise ToolFailure("collection", f"the key `{self._select.key}` is null in a row of the query; {_WANTED}")
        # One more than is wanted tells whether this is the end, and whether the last key comes again.
        found = await self._engine.read(self._select, token, until, most + 1)
        for one, other in pairwise(found):
            if one.key == other.key:
                raise ToolFailure(
                    "collection", f"the key `{self._select.key}` is `{one.text}` in more than one row; {_WANTED}"
                )
        part = found[:most]
        following = part[-1].key if part else token
        return Page([one.row for one in part], following, len(found) <= most, [one.text for one in part])


_WANTED = "a loop over `sql` needs a key that every row has and no two rows share"


def _select(params: SqlPagesParams, call: Call) -> Select:
    if not params.key:
        raise ToolFailure(
            "parameters",
            "a loop over `sql` needs `key`: the name of a column of the query with a value of its own in every row, "
            "such as its primary key; pages go from key to key",
        )
    if params.params is not None and params.args is not None:
        raise ToolFailure("parameters", "`params` and `args` of a collection are the same: give one of them")
    dialect = Dialect(params.kind)
    values = params.params if params.params is not None else params.args
    statements = Planner(dialect, call).text(params.query, values)
    if len(statements) != 1:
        raise ToolFailure(
            "parameters", f"`query` of a collection is one statement, and this text has {len(statements)}"
        )
    statement = statements[0]
    if statement.verb not in READING or statement.writes:
        raise ToolFailure("parameters", "`query` of a collection must be a `SELECT`: it is read more than once")
    return Select(statement, params.key, dialect)


# ---- How each database is asked for the rows of a page, and how its keys are written down.
# A key is written as JSON that its own database reads back as the same value: a whole number or a text as it is; what JSON
# has no word for as `{"bytes": …}`, `{"decimal": …}` and so on, or, where the server casts, as the server's text for it.

AS_TEXT = "penstock_key"
_COMMAND = RunningCommand(0, 1)


def engine_of(params: SqlPagesParams, call: Call) -> Engine:
    refuse_foreign(params)
    match params.kind:
        case "postgres":
            return PostgresEngine(params, call)
        case "mysql":
            return MysqlEngine(params, call)
        case "sqlite":
            return SqliteEngine(params, call)
        case "duckdb":
            return DuckdbEngine(params, call)


def refuse_foreign(params: DatabaseParams) -> None:
    is_file = params.kind in ("sqlite", "duckdb")
    strange = FIELDS if is_file else ("path", "read_only")
    given = [name for name in strange if getattr(params, name, None)]
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
        async with lease_of(address_of(self._params, self._call), self._call) as lease:
            run = PostgresRun(lease, PostgresParams(max_rows=most), self._call)
            (table,) = await run.run([Command((statement,))])
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
        call = self._call
        path = path_of(self._params.path, self._params.auth, call)
        shared = await shared_database(path, call, read_only=self._params.read_only)

        def whole(stop: Stop) -> Table:
            connection = shared.cursor(call.folder, stop)
            forget = stop.on_stop(connection.interrupt)
            session = DuckdbSession(connection, most)
            try:
                with failures_at(session, _COMMAND.at(select.statement.excerpt)):
                    return work(session)
            finally:
                forget()
                connection.close()

        return await interruptible(call, whole)


def _duckdb_type(select: Select, connection: Any) -> str:
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
            row = {name: converted(value) for name, converted, value in zip(names, change, values, strict=True)}
            found.append(Keyed(row, token_of(key, select.key), text_of(key)))
        return found

    async def has_null(self, select: Select) -> bool:
        _, rows = await self._rows(select.nulls())
        return bool(rows)

    async def _rows(self, statement: Bound) -> tuple[list[tuple[str, Callable[[Any], Json]]], list[Any]]:
        raise NotImplementedError


class SqliteEngine(_NativeEngine):
    async def _rows(self, statement: Bound) -> tuple[list[tuple[str, Callable[[Any], Json]]], list[Any]]:
        call = self._call
        path = sqlite.path_of(self._params.path, self._params.auth, call)
        shared = await sqlite.shared_database(path, call, create=False, read_only=self._params.read_only)

        def work(stop: Stop) -> tuple[list[tuple[str, Callable[[Any], Json]]], list[Any]]:
            connection = shared.take()
            forget = stop.on_stop(connection.interrupt)
            session = sqlite.SqliteSession(connection, 0)
            try:
                with failures_at(session, _COMMAND.at(statement.excerpt)):
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
        call = self._call
        login = login_of(address_of(self._params, call), call)

        def work(stop: Stop, pool: mysql.Pool) -> tuple[list[tuple[str, Callable[[Any], Json]]], list[Any]]:
            connection = pool.take()
            number = thread_of(connection)
            forget = stop.on_stop(in_a_thread(lambda: kill_query(login, number)))
            session = mysql.MysqlSession(connection, login, mysql.MysqlParams())
            try:
                with failures_at(session, _COMMAND.at(statement.excerpt)), connection.cursor() as cursor:
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

        async with mysql.turn_of(login, call) as pool:
            return await interruptible(call, lambda stop: work(stop, pool))


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
