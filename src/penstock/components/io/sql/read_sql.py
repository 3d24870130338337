"""`read_sql`: rows of a table or query of a database."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import Annotated, Any, ClassVar, cast

import msgspec
from sqlglot import exp

from penstock.components.base import Action, Call, ComponentFailure, Known, Mistake, PlanCall, Port, Schemas
from penstock.components.flow.tool_calls import tool_failures
from penstock.components.incremental import IncrementalParam, bound_of
from penstock.components.io import parameters
from penstock.components.io.row_types import call as function
from penstock.components.io.row_types import try_cast
from penstock.components.io.sql import database
from penstock.components.io.sql.database import Auth, Bindings, Connection, Endpoint, Files
from penstock.data import select
from penstock.data.arrow_texts import Texts, TextStream
from penstock.ports.folders import searched
from penstock.ports.rows import Column, DatabaseSession, OwnQuery, Relation, RowsFailed, Schema
from penstock.tools.base import ToolFailure
from penstock.tools.parameters import about
from penstock.tools.sql import adbc
from penstock.tools.sql.connection import Stop, interruptible
from penstock.tools.sql.cursors import Opened, open_mysql, open_sqlite
from penstock.tools.sql.drivers import AdbcSession, DriverAddress, dbapi_rows, placed
from penstock.tools.sql.duckdb import failure_of
from penstock.tools.sql.results import distinct, prefixed
from penstock.tools.sql.text import Bound, Dialect, quote_all, quote_table
from penstock.tools.sql.types import EXACT, from_sqlite
from penstock.tools.transfer.params import DatabaseFileSource
from penstock.tools.transfer.rows import statement_of

Batches = Iterator[list[tuple[Any, ...]]]


def read(endpoint: Endpoint, files: Files, statement: Bound, size: int, stop: Stop, call: Call) -> Relation:
    """All rows of the statement. Raises ToolFailure for what the database says, RowsFailed for what the engine does."""
    if endpoint.lies_in(call.engine.place):
        return _kept(endpoint, statement, stop, call)
    match endpoint.driver:
        case "postgres":
            return _read_postgres(endpoint, statement, stop, call)
        case "mysql":
            return _read_mysql(endpoint, statement, size, stop, call)
        case "sqlite":
            assert files.sqlite is not None
            return _read_sqlite(files.sqlite, statement, size, stop, call)
        case "duckdb":
            assert files.duckdb is not None
            return _read_duckdb(files.duckdb, statement, stop, call)
        case "adbc":
            return _read_adbc(endpoint.driver_address(), statement, stop, call)
        case "dbapi":
            return _read_dbapi(endpoint.driver_address(), statement, size, stop, call)


def _fetched(opened: Opened, size: int, call: Call) -> Iterator[Sequence[Any]]:
    total = 0
    for batch in opened.batches(size, lambda before: f"after {before} rows"):
        total += len(batch)
        call.progress("main", total)
        yield batch


def _with_exact_numbers(rows: Relation, names: Sequence[str], call: Call) -> Relation:
    """The scale that all values of a column need; DOUBLE for a column that no DECIMAL is wide enough for."""

    def scale(name: str) -> exp.Expr:
        digits = function("length", function("regexp_extract", select.column(name), r"\.(\d*)$", select.literal(1)))
        return function("max", digits)

    def width(name: str) -> exp.Expr:
        return function(
            "max", function("length", function("regexp_extract", select.column(name), r"^-?(\d*)", select.literal(1)))
        )

    def odd(name: str) -> exp.Expr:
        plain = function("regexp_full_match", select.column(name), r"-?\d+(\.\d+)?")
        return function("bool_or", plain.not_())

    asked = exp.select(*(part for name in names for part in (scale(name), width(name), odd(name))))
    query = asked.from_(select.table("found"))
    ((exact,),) = list(call.engine.rows(select.sql(query), {"found": rows}))
    types: dict[str, str] = {}
    for index, name in enumerate(names):
        after, before, is_odd = exact[index * 3 : index * 3 + 3]
        fits = not is_odd and (before or 1) + (after or 0) <= 38
        types[name] = f"DECIMAL(38,{after or 0})" if fits else "DOUBLE"
        if not fits and not is_odd:
            call.say(
                f"`{name}` has numbers that need {(before or 1) + (after or 0)} digits, which no DECIMAL has: they are read as "
                "DOUBLE, which keeps 15; select it as text to keep all"
            )
    return _cast(rows, types, call)


def _cast(rows: Relation, types: dict[str, str], call: Call) -> Relation:
    wanted: list[exp.Expr] = [
        exp.alias_(select.cast(select.column(column.name), types[column.name]), select.name(column.name))
        if column.name in types
        else select.column(column.name)
        for column in rows.schema
    ]
    return call.engine.select(select.sql(exp.select(*wanted).from_(select.table("found"))), {"found": rows})


def _read_postgres(endpoint: Endpoint, statement: Bound, stop: Stop, call: Call) -> Relation:
    conninfo, address = endpoint.conninfo(), endpoint.address()
    described = adbc.describe_postgres(conninfo, address, statement, stop)

    def read(columns: Schema) -> Relation:
        with adbc.postgres_rows(conninfo, address, described, stop) as stream:
            return _from_arrow(stream, columns, call)

    try:
        return _for_ever(read(described.columns), call)
    except RowsFailed as failed:
        exact = adbc.exact_columns(described.columns)
        if failed.kind != "conversion":
            raise
        if exact == described.columns:
            raise _conversion(failed, described.columns) from None
        # `NaN` and the infinities of a `numeric(10,2)` are in no DECIMAL.
        try:
            return _for_ever(read(exact), call)
        except RowsFailed as again:
            raise (_conversion(again, described.columns) if again.kind == "conversion" else again) from None


def _conversion(failed: RowsFailed, columns: Schema) -> RowsFailed:
    """PostgreSQL does not tell an array of arrays from an array before its values come."""
    lists = [column.name for column in columns if column.type.endswith("[]")]
    if not lists:
        return failed
    hint = f"an array of arrays can only be read as text or JSON, such as `to_json({lists[0]})`"
    return RowsFailed(failed.kind, f"{failed.message}; hint: {hint}")


def _kept(endpoint: Endpoint, statement: Bound, stop: Stop, call: Call) -> Relation:
    """Rows that the engine's own database has: they do not leave it."""
    engine = cast(DatabaseSession, call.engine)
    if endpoint.driver == "duckdb":
        values = statement.args if isinstance(statement.args, dict) else None
        folders = ",".join(one for one in searched(call.folder) if "," not in one)
        rows = engine.take(OwnQuery(statement.text, values=values, folders=folders))
    elif endpoint.driver == "dbapi":
        text, values = placed(statement, "pyformat")
        rows = engine.take(OwnQuery(text, values=values))
    else:
        described = adbc.describe_postgres(endpoint.conninfo(), endpoint.address(), statement, stop)
        rows = engine.take(OwnQuery(described.query, described.columns, described.printed))
    call.progress("main", rows.rows)
    return rows


def _read_adbc(address: DriverAddress, statement: Bound, stop: Stop, call: Call) -> Relation:
    session = AdbcSession(address)
    forget = stop.on_stop(session.interrupt)
    try:
        with session.rows(statement) as stream:
            return _from_arrow(stream, None, call)
    except session.errors as error:
        raise session.failure(error, None) from None
    finally:
        forget()
        session.close()


def _read_dbapi(address: DriverAddress, statement: Bound, size: int, stop: Stop, call: Call) -> Relation:
    total = 0

    def mappings() -> Iterator[list[dict[str, Any]]]:
        nonlocal total
        while batch := fetch(size):
            total += len(batch)
            call.progress("main", total)
            yield [dict(zip(names, row, strict=True)) for row in batch]

    with dbapi_rows(address, statement, stop) as (names, fetch):
        if not names:
            raise ToolFailure("no_rows", "the query gives no rows, not even columns; hint: it must be a SELECT")
        rows = call.engine.load_mappings(mappings())
        return rows if total else call.engine.empty(tuple(Column(name, "VARCHAR") for name in names))


def _from_arrow(stream: Any, columns: Schema | None, call: Call) -> Relation:
    total = 0

    def seen(rows: int) -> None:
        nonlocal total
        total = rows
        call.progress("main", rows)

    try:
        schema = None if columns is None else tuple(_as_sent(column) for column in columns)
        rows = call.engine.load_arrow(stream, schema, seen)
    except RowsFailed as failed:
        said = adbc.stream_failure(failed.message)
        if said is None:
            raise
        raise prefixed(said, f"after {total} rows") from None
    exact = [column.name for column in columns or () if column.type == EXACT]
    return _with_exact_numbers(rows, exact, call) if exact else rows


def _as_sent(column: Column) -> Column:
    return Column(column.name, "VARCHAR") if column.type == EXACT else column


def _for_ever(rows: Relation, call: Call) -> Relation:
    """What PostgreSQL calls `infinity` and `-infinity`, out of the moments that stood for them on the way."""
    times = [column for column in rows.schema if column.type in adbc.FOREVER]
    if not times or not rows.rows:
        return rows

    def is_one(column: Column) -> list[exp.Expr]:
        found = [select.cast(select.literal(text), column.type) for text in adbc.FOREVER[column.type]]
        return [exp.EQ(this=select.column(column.name), expression=moment) for moment in found]

    asked = exp.select(*(function("bool_or", exp.or_(*is_one(column))) for column in times))
    ((found,),) = list(call.engine.rows(select.sql(asked.from_(select.table("found"))), {"found": rows}))
    held = {column.name for column, holds in zip(times, found, strict=True) if holds}
    if not held:
        return rows

    def restored(column: Column) -> exp.Expr:
        if column.name not in held:
            return select.column(column.name)
        case = exp.Case()
        for test, text in zip(is_one(column), ("infinity", "-infinity"), strict=True):
            case = case.when(test, select.cast(select.literal(text), column.type))
        return exp.alias_(case.else_(select.column(column.name)), select.name(column.name))

    query = exp.select(*map(restored, rows.schema)).from_(select.table("found"))
    return call.engine.select(select.sql(query), {"found": rows})


def _read_mysql(endpoint: Endpoint, statement: Bound, size: int, stop: Stop, call: Call) -> Relation:
    """What the server writes of each value goes to DuckDB as it is, which reads it as the type of its column."""

    def read(as_texts: Collection[str]) -> Relation:
        with open_mysql(endpoint.login(), statement, stop, reads_ahead=True) as opened:
            if not opened.columns:
                raise ToolFailure("no_rows", "the query gives no rows, not even columns; hint: it must be a SELECT")
            columns = tuple(_sent_by_mysql(name, type, as_texts) for name, type in opened.columns)
            stream = TextStream([(column.name, column.type == "BLOB") for column in columns], _texts(opened, size))
            try:
                rows = call.engine.load_arrow(stream, columns, lambda rows: call.progress("main", rows))
            except RowsFailed:
                if stream.failure is not None:
                    raise stream.failure from None
                raise
            exact = [name for name, type in opened.columns if type == EXACT]
            rows = _with_exact_numbers(rows, exact, call) if exact else rows
            return _days(rows, {name: type for name, type in opened.columns if type in as_texts}, call)

    try:
        return read(())
    except RowsFailed as failed:
        if failed.kind != "conversion":
            raise
        # Such as the 30th of February: a day that never was is no day.
        return read(_DAYS)


_DAYS = ("DATE", "TIMESTAMP")
_NO_DAY = b"-00"
"""In `0000-00-00` and `2024-01-00`, which are no days either, but frequent."""


def _sent_by_mysql(name: str, type: str, as_texts: Collection[str]) -> Column:
    return Column(name, "VARCHAR" if type in (EXACT, "", *as_texts) else type)


def _texts(opened: Opened, size: int) -> Iterator[Texts]:
    from penstock.tools.sql.mysql_rows import fetch  # Its driver is slow to import.

    days = [index for index, (_, type) in enumerate(opened.columns) if type in _DAYS]
    total = 0
    while True:
        try:
            batch = fetch(opened.cursor, size)
        except opened.errors as error:
            raise prefixed(opened.failure(error), f"after {total} rows") from None
        if not batch:
            return
        total += len(batch[0])
        for index in days:
            column = batch[index]
            if _NO_DAY in b"".join(value or b"" for value in column):
                batch[index] = [None if value is None or _NO_DAY in value else value for value in column]
        yield batch


def _days(rows: Relation, types: dict[str, str], call: Call) -> Relation:
    if not types:
        return rows
    wanted = [
        exp.alias_(try_cast(select.column(column.name), types[column.name]), select.name(column.name))
        if column.name in types
        else select.column(column.name)
        for column in rows.schema
    ]
    return call.engine.select(select.sql(exp.select(*wanted).from_(select.table("found"))), {"found": rows})


def _read_sqlite(shared: Any, statement: Bound, size: int, stop: Stop, call: Call) -> Relation:
    declared: dict[str, str] = {}

    def look(connection: Any) -> None:
        declared.update(_declared_in_sqlite(connection, statement))

    with open_sqlite(shared, statement, stop, look) as opened:
        names = [name for name, _ in opened.columns]
        if not names:
            raise ToolFailure("no_rows", "the query gives no rows, not even columns; hint: it must be a SELECT")
        batches = _fetched(opened, size, call)
        first = next(batches, None)
        if first is None:
            return call.engine.empty(tuple(Column(name, declared.get(name) or "VARCHAR") for name in names))
        every = chain([first], batches)
        rows = call.engine.load_mappings([dict(zip(names, row, strict=True)) for row in batch] for batch in every)
    return _as_declared(rows, declared, call)


def _declared_in_sqlite(connection: Any, statement: Bound) -> dict[str, str]:
    """What the columns of a query were declared as in their tables: SQLite reports that only for a view, which cannot have
    parameters."""
    if statement.args:
        return {}
    try:
        connection.execute(f"CREATE TEMP VIEW penstock_columns AS {statement.text}")
        try:
            found = connection.execute("PRAGMA temp.table_info(penstock_columns)").fetchall()
        finally:
            connection.execute("DROP VIEW temp.penstock_columns")
    except sqlite3.Error:
        return {}
    types = {str(name): from_sqlite(str(type)) for _, name, type, *_ in found}
    return {name: type for name, type in types.items() if type is not None}


def _as_declared(rows: Relation, declared: dict[str, str], call: Call) -> Relation:
    """Columns in the types they were declared as, where every value agrees with that."""
    unlike = {
        column.name: declared[column.name]
        for column in rows.schema
        if declared.get(column.name) not in (None, column.type)
    }
    if not unlike:
        return rows
    asked = [
        function(
            "bool_or",
            exp.and_(select.column(name).is_(exp.null()).not_(), try_cast(select.column(name), type).is_(exp.null())),
        )
        for name, type in unlike.items()
    ]
    query = select.sql(exp.select(*asked).from_(select.table("found")))
    ((fits,),) = list(call.engine.rows(query, {"found": rows}))
    fitting = {name: type for (name, type), wrong in zip(unlike.items(), fits, strict=True) if not wrong}
    return _cast(rows, fitting, call) if fitting else rows


def _read_duckdb(open_cursor: Callable[[Stop], Any], statement: Bound, stop: Stop, call: Call) -> Relation:
    import duckdb  # It takes 0.1 s to import.

    connection = open_cursor(stop)
    forget = stop.on_stop(connection.interrupt)
    try:
        args = statement.args if isinstance(statement.args, dict) else None
        # Else UUID, JSON and HUGEINT would arrive as what other programs know.
        connection.execute("SET arrow_lossless_conversion = true")
        found = connection.sql(statement.text, params=args)
        if found is None:
            raise ToolFailure("no_rows", "the query gives no rows, not even columns; hint: it must be a SELECT")
        names = distinct([str(name) for name in found.columns])
        if names != list(found.columns):
            raise ComponentFailure("columns", "two columns of the query have the same name; hint: `AS` gives another")
        return call.engine.load_arrow(found)
    except duckdb.Error as error:
        raise failure_of(error, None) from None
    finally:
        forget()
        connection.close()


def as_asked(rows: Relation, declared: Schema | None, call: Call) -> Relation:
    """The columns that the document declares, in its order and types."""
    if not declared:
        return rows
    problem = parameters.missing(
        [column.name for column in declared], [column.name for column in rows.schema], "the result"
    )
    if problem is not None:
        raise ComponentFailure("columns", problem)
    if [(column.name, column.type) for column in declared] == [(column.name, column.type) for column in rows.schema]:
        return rows
    wanted = [
        exp.alias_(select.cast(select.column(column.name), column.type), select.name(column.name))
        for column in declared
    ]
    return call.engine.select(select.sql(exp.select(*wanted).from_(select.table("found"))), {"found": rows})


class ReadSqlParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    connection: Connection = None
    auth: Auth = None
    query: Annotated[str | None, about("The SELECT that gives the rows, in the database's own SQL.")] = None
    table: Annotated[
        str | None,
        about("The table to read, instead of `query`; spelled as the database keeps it, `schema.table` is understood."),
    ] = None
    columns: Annotated[list[str], about("With `table`: the columns to read; all of them when left out.")] = []
    params: Bindings = None
    batch_size: Annotated[int, about("Rows fetched at a time; PostgreSQL sends them without being asked.", ge=1)] = (
        10_000
    )
    connect_timeout: Annotated[float, about("Seconds to wait for the server to answer.", gt=0)] = 10.0
    incremental: IncrementalParam = None


class ReadSql(Action[ReadSqlParams]):
    """Read the rows of a table or a query: PostgreSQL, MySQL and MariaDB, SQLite, DuckDB.

    `connection` is a URL (`postgresql://user@host/db`, `mysql://…`, `sqlite:///orders.db`,
    `duckdb:///orders.duckdb`); passwords belong in the keychain, whose entry is named in `auth`. Rows come as
    the server sends them, so a result may be larger than memory: PostgreSQL's as Arrow, from a binary COPY, those of MySQL as
    the texts that it writes of them, which DuckDB reads, those of the others as values; `batch_size` at a time. Values in
    `params` are bound, never pasted: `:name` with a mapping.

    Types are those of the database; a `numeric` without a width gets the scale that its values need. SQLite, where
    any value may stand in any column, gives the declared type when all values agree with it. Columns are known before
    the run only when the component's `schema` declares them, and are then cast to it.

    With `incremental` the database itself leaves out the rows that were read before; SQLite, whose times are texts of
    any form, is read whole.
    """

    type = "read_sql"
    family = "read"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def check(self, params: ReadSqlParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        if (params.table is None) == (params.query is None):
            path = ("query",) if params.query is not None else ()
            return [Mistake(path, "give exactly one of `query` and `table`")]
        if params.columns and params.table is None:
            return [Mistake(("columns",), "`columns` goes with `table`; a `query` names its columns itself")]
        if params.connection is None and params.auth is None:
            return [
                Mistake((), "no database is named; hint: `connection: postgresql://…`, or `auth: <keychain entry>`")
            ]
        return []

    def schemas(self, params: ReadSqlParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": call.declared.get("main")}

    async def run(self, params: ReadSqlParams, call: Call) -> None:
        for mistake in self.check(params, {}, PlanCall(call.folder, call.connected)):
            raise ComponentFailure("parameters", mistake.message)
        endpoint = database.where(params.connection, params.auth, call, params.connect_timeout)
        with tool_failures():
            source = DatabaseFileSource(table=params.table, query=params.query, params=params.params)
            if params.incremental is not None:
                source = _narrowed(source, params, endpoint.dialect, call)
            statement = statement_of(source, endpoint.dialect, params.columns or None, endpoint.call)
            files = await database.opened_files(endpoint, create=False)

            def work(stop: Stop) -> Relation:
                with database.interrupting(stop, call.engine.interrupt):
                    rows = read(endpoint, files, statement, params.batch_size, stop, call)
                    return as_asked(rows, call.declared.get("main"), call)

            if files.sqlite is not None and files.sqlite.turn is not None:
                async with files.sqlite.turn:
                    rows = await interruptible(endpoint.call, work)
            else:
                rows = await interruptible(endpoint.call, work)
        call.put("main", rows)


# Numbers, dates and times as a watermark is kept: nothing in them has a meaning of its own in any SQL.
_PLAIN = re.compile(r"[0-9][0-9T:.+-]*\Z")


def _narrowed(source: DatabaseFileSource, params: ReadSqlParams, dialect: Dialect, call: Call) -> DatabaseFileSource:
    """Let the database leave out what was read before, where it compares as the engine does: it is compared again there.
    SQLite keeps times as texts of any form, so it is read whole."""
    assert params.incremental is not None
    bound = bound_of(params.incremental, call)
    if bound is None or dialect is Dialect.SQLITE or not _PLAIN.match(str(bound)):
        return source
    literal = str(bound) if isinstance(bound, int | float) else f"'{bound}'"
    inner = (source.query or "").rstrip().rstrip(";")
    if source.table is not None:
        columns = quote_all(params.columns, dialect) if params.columns else "*"
        inner = f"SELECT {columns} FROM {quote_table(source.table, dialect)}"
    column = quote_all([params.incremental.column], dialect)
    text = f"SELECT * FROM (\n{inner}\n) AS rows_so_far WHERE {column} > {literal}"
    return msgspec.structs.replace(source, table=None, query=text)
