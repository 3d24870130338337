"""`write_sql`: rows into a table of a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
from sqlglot import exp

from penstock.components.base import (
    Action,
    Call,
    ColumnMistake,
    ComponentFailure,
    Known,
    Mistake,
    PlanCall,
    Port,
    Schemas,
    missing_of,
)
from penstock.components.flow.tool_calls import tool_failures
from penstock.components.io import parameters
from penstock.components.io.parameters import AtLeastOne
from penstock.components.io.sql import database, transaction
from penstock.components.io.sql.database import Auth, Connection, Endpoint, Files
from penstock.components.io.sql.line_tables import CopyTable, LineTable, LoadDataTable
from penstock.components.io.sql.load import ERRORS, NUMBER, Loading, rejected
from penstock.components.io.sql.snowflake_table import SnowflakeTable
from penstock.components.queries import numbered, row_number
from penstock.data import select
from penstock.data.types import NOTHING, MissingColumn, is_open
from penstock.kernel.values import JsonMap
from penstock.ports.rows import Column, DatabaseSession, Relation, Schema, SharedDatabaseSession
from penstock.tools.base import ToolFailure
from penstock.tools.parameters import about
from penstock.tools.sql import drivers
from penstock.tools.sql.connection import Stop, interruptible
from penstock.tools.sql.drivers import AdbcSession
from penstock.tools.sql.plan import Planner
from penstock.tools.sql.tables import Change, DuckdbTable, PostgresTable, SqliteTable, Table, WriteMode
from penstock.tools.sql.text import Bound, Dialect, insert_into, quote, quote_all, quote_table
from penstock.tools.sql.types import to_database

_NEEDS_KEYS = ("update", "upsert", "delete")
_EMPTYING = ("truncate_insert", "replace")
_COUNTED = {"update": "NB_LINE_UPDATED", "delete": "NB_LINE_DELETED", "upsert": "NB_LINE_UPSERTED"}


class WriteSqlParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    connection: Connection = None
    auth: Auth = None
    table: Annotated[
        str, about("The table, spelled as the database keeps it; `schema.table` is understood.", min_length=1)
    ]
    mode: Annotated[
        WriteMode,
        about(
            "`insert` adds rows; `update` changes the rows with the same `keys`; `upsert` does either; `delete` "
            "removes the rows with the same `keys`; `truncate_insert` empties the table first; `create` makes the table, "
            "`replace` makes it anew."
        ),
    ] = "insert"
    keys: Annotated[list[str], about("The table's columns that identify a row.")] = []
    columns: Annotated[
        list[str] | dict[str, str],
        about("Columns to write: a list, or the table's name to the input's. All of them when left out."),
    ] = []
    create: Annotated[bool, about("Make the table when it is missing, with `keys` as its primary key.")] = False
    types: Annotated[
        dict[str, str], about("Types of columns of a table that is made, in the database's own words.")
    ] = {}
    before: Annotated[
        str | list[str] | None,
        about("SQL that runs before the first row, in the same transaction, such as `DELETE … WHERE day = :day`."),
    ] = None
    after: Annotated[str | list[str] | None, about("SQL that runs after the last row, in the same transaction.")] = None
    params: Annotated[
        dict[str, Any] | None, about("Values for `:name` in `before` and `after`; bound, never pasted.")
    ] = None
    transaction: Annotated[
        Literal["own", "shared"] | None,
        about(
            "`shared`: one transaction with all others of the sub-job that share that of this connection, committed "
            "when the sub-job has ended well. `own`: its own. Left out, it is its own, unless a `run_sql` of the same sub-job "
            "and connection says `shared`."
        ),
    ] = None
    batch_size: Annotated[int, about("Rows sent at a time.", ge=1)] = 10_000
    commit_every: Annotated[
        AtLeastOne | None, about("Commit after so many rows; once at the end, all or nothing, when left out.")
    ] = None
    connect_timeout: Annotated[float, about("Seconds to wait for the server to answer.", gt=0)] = 10.0


def _pairs(params: WriteSqlParams, present: Sequence[str]) -> dict[str, str]:
    """The table's columns, each with the input's column it is filled from."""
    if isinstance(params.columns, dict):
        return dict(params.columns)
    return {name: name for name in params.columns or present}


def mistakes_of(params: WriteSqlParams, schema: Schema | None) -> list[Mistake]:
    """What is wrong with the parameters, given the columns that come in."""
    if params.mode in _NEEDS_KEYS and not params.keys:
        return [Mistake(("mode",), f"`mode: {params.mode}` needs `keys`, the columns that identify a row")]
    if params.connection is None and params.auth is None:
        return [Mistake((), "no database is named; hint: `connection: postgresql://…`, or `auth: <keychain entry>`")]
    if schema is None:
        return []
    present = [column.name for column in schema]
    pairs = _pairs(params, present)
    for name, source in pairs.items():
        problem = parameters.missing([source], present, "the input")
        if problem is not None:
            key: str | int = name if isinstance(params.columns, dict) else list(pairs).index(name)
            missing = MissingColumn(source)
            return [ColumnMistake(("columns", key), problem, kind="column", missing=missing)]
    for param, names in (("keys", params.keys), ("types", list(params.types))):
        problem = parameters.missing(names, list(pairs), "what is written")
        if problem is not None:
            missing = MissingColumn(next(name for name in names if name not in pairs))
            return [ColumnMistake((param,), problem, kind="column", missing=missing)]
    if params.mode == "update" and not set(pairs) - set(params.keys):
        return [Mistake(("keys",), "there is nothing to update: every column is a key")]
    return []


class WriteSql(Action[WriteSqlParams]):
    """Write rows into a table: PostgreSQL, MySQL and MariaDB, SQLite, DuckDB.

    `connection` is a URL as for `read_sql`; passwords belong in the keychain, whose entry is named in `auth`. `mode`
    says what is done; `update`, `upsert` and `delete` go by `keys`. `create: true` makes a missing table with types
    taken from the rows. Rows reach PostgreSQL with COPY: into the table where they are only added, else into a temporary table,
    from which one statement for each batch updates, upserts or deletes; that takes the right to make temporary tables. MySQL and
    MariaDB get rows that are only added with LOAD DATA LOCAL where the server has `local_infile` on, and otherwise with INSERTs
    of many rows; `update` and `delete` go through a temporary table if the user may make one, and else row by row.

    All rows are written in one transaction, or none; `commit_every` gives that up for shorter transactions. (MySQL
    commits the making and dropping of tables at once, whatever becomes of the rows.)

    `before` and `after` are statements of the same transaction: they count together with the rows, or not at all. Statements
    that stand by themselves are run by `run_sql`. With `transaction: shared` several writers and `run_sql` of one sub-job are
    one transaction.

    A row that the database refuses (a key that is there already, NULL where none may be, a value that does not fit)
    goes to the port `reject` with `error_code`, the database's own, and `error_message`; the others are written. When
    that port is not connected, such a row ends the component in ERROR and nothing is written. With DuckDB, a
    connected `reject` port makes each batch a transaction of its own. A conflict with another transaction, such as a
    deadlock of iterations that change the same rows, is no error: the transaction is begun anew. MySQL is asked to be strict:
    a value that does not fit is refused there too, never cut.

    The rows that were written go on through `main`. After-variables: `NB_LINE_INSERTED`, `NB_LINE_UPDATED`,
    `NB_LINE_UPSERTED` or `NB_LINE_DELETED`, and `NB_LINE_REJECTED`. `upsert`, `truncate_insert` and `replace` can be
    run again without harm.
    """

    type = "write_sql"
    family = "write"
    inputs: ClassVar[tuple[Port, ...]] = (Port("input", description="the rows to write"),)
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", reject=True, description="the rows that were written"),
        Port("reject", reject=True, description="rows that the database refused, with its reasons"),
    )

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        return "input", "main"

    def check(self, params: WriteSqlParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        return [*mistakes_of(params, inputs.get("input")), *_unshareable(params, call.connected)]

    def refused_on(self, engine: str, params: WriteSqlParams, call: PlanCall) -> str | None:
        return _not_in_snowflake(params, call.connected) if engine == "snowflake" else None

    def schemas(self, params: WriteSqlParams, inputs: Known, call: PlanCall) -> Schemas:
        schema = inputs.get("input")
        return {"main": schema, "reject": None if schema is None else (*schema, *ERRORS)}

    async def run(self, params: WriteSqlParams, call: Call) -> Any:
        rows = call.input()
        for mistake in [*mistakes_of(params, rows.schema), *_unshareable(params, call.connected)]:
            kind = "columns" if mistake.kind == "column" else "parameters"
            raise ComponentFailure(kind, mistake.message, missing=missing_of([mistake]))
        if is_open(rows.schema) and params.mode not in _EMPTYING:
            return _nothing_written(params, rows, call)
        endpoint = database.where(params.connection, params.auth, call, params.connect_timeout)
        with tool_failures():
            files = await database.opened_files(endpoint, create=True)

            if params.transaction == "shared":
                written = await _write_shared(params, rows, endpoint, files, call)
            else:

                def work(stop: Stop) -> Written:
                    with database.interrupting(stop, call.engine.interrupt):
                        written = _load(params, rows, endpoint, files, stop, call)
                        _put(written, rows, call)
                        return written

                async with (files.sqlite.turn if files.sqlite is not None else None) or nullcontext():
                    written = await interruptible(endpoint.call, work)
        return _counted(params, written.rows, len(written.refused), call)


class Written(msgspec.Struct):
    """What became of the rows: how many were written, and (number, code, message) of those that were refused."""

    rows: int
    refused: list[tuple[int, str, str]] = []


async def _write_shared(
    params: WriteSqlParams, rows: Relation, endpoint: Endpoint, files: Files, call: Call
) -> Written:
    async with transaction.joined(call, endpoint, files) as shared:

        def work(stop: Stop) -> Written:
            with database.interrupting(stop, call.engine.interrupt):
                opened = shared.open(stop, call)
                if opened is None:
                    written = msgspec.convert(shared.earlier(call), Written)
                else:
                    written = _load(params, rows, endpoint, files, stop, call, opened.connection)
                    shared.results[call.component] = msgspec.to_builtins(written)
                _put(written, rows, call)
                return written

        return await interruptible(endpoint.call, work)


def _unshareable(params: WriteSqlParams, connected: frozenset[str]) -> list[Mistake]:
    """What cannot be in a transaction that others share."""
    if params.transaction != "shared":
        return []
    if params.commit_every is not None:
        message = "a shared transaction is committed once, when the sub-job has ended; hint: leave `commit_every` out"
        return [Mistake(("commit_every",), message)]
    if "reject" in connected and (params.connection or "").startswith("duckdb:"):
        message = (
            "DuckDB ends a transaction with the first row it refuses, so a `reject` port cannot be read in a shared one"
        )
        return [Mistake(("transaction",), message)]
    return []


def _nothing_written(params: WriteSqlParams, rows: Relation, call: Call) -> JsonMap:
    call.say(f"no rows came, and nothing says what their columns are: `{params.table}` stays as it is")
    call.put("main", rows)
    return _counted(params, 0, 0, call)


def _counted(params: WriteSqlParams, written: int, refused: int, call: Call) -> JsonMap:
    call.after[_COUNTED.get(params.mode, "NB_LINE_INSERTED")] = written
    call.after["NB_LINE_REJECTED"] = refused
    return {"table": params.table, "rows": written, "rejected": refused}


def _load(
    params: WriteSqlParams, rows: Relation, endpoint: Endpoint, files: Files, stop: Stop, call: Call, lent: Any = None
) -> Written:
    wants_rejects = "reject" in call.connected
    written = _written_columns(params, rows.schema)
    is_there = endpoint.lies_in(call.engine.place)
    if is_there and endpoint.driver == "dbapi":
        return _load_in_snowflake(params, rows, written, stop, call, endpoint)
    change = _change(params, written, endpoint.dialect)
    numbered = _numbered(rows, call) if wants_rejects else rows
    target = stored_target(endpoint, files, stop, lent) if is_there else open_target(endpoint, files, stop, lent)
    try:
        loading = Loading(target, change, stop, call.say, params.commit_every, [] if wants_rejects else None)
        loading.is_alone = lent is None
        loading.before, loading.after = (_bound(text, params, endpoint) for text in (params.before, params.after))
        if isinstance(target, StoredTable):
            target.has_doubles = _has_doubles(params, numbered, call)
            target.rows_in(
                numbered, cast(DatabaseSession, call.engine), _pairs(params, [column.name for column in rows.schema])
            )
            loading.run(lambda: _ranges(params, numbered, call))
        elif isinstance(target, StagedTable):
            if not is_open(rows.schema):
                if is_there:
                    target.stage_stored(
                        cast(DatabaseSession, call.engine),
                        numbered,
                        _pairs(params, [column.name for column in rows.schema]),
                    )
                else:
                    target.stage(_stream(params, numbered, call), written)
            loading.run(lambda: _ranges(params, numbered, call))
        elif isinstance(target, DriverTable) and isinstance(target.session, AdbcSession):
            target.rows = lambda numbers: _numbered_stream(params, numbered, numbers, call)
            loading.run(lambda: _ranges(params, numbered, call))
        elif isinstance(target, LineTable):
            if isinstance(target, CopyTable):
                target.has_doubles = _has_doubles(params, numbered, call)
            loading.run(lambda: _lines(params, numbered, target, call))
        else:
            loading.run(lambda: _values(params, numbered, call))
    finally:
        target.close()
    return Written(loading.written, loading.refused or [])


def _load_in_snowflake(
    params: WriteSqlParams, rows: Relation, written: Schema, stop: Stop, call: Call, endpoint: Endpoint
) -> Written:
    from penstock.data.database.snowflake_sql import snowflake_type  # Only jobs in Snowflake need it.

    refused = _not_in_snowflake(params, call.connected)
    if refused is not None:
        raise ToolFailure("parameters", refused)
    change = _change(params, written, endpoint.dialect, snowflake_type)
    pairs = _pairs(params, [column.name for column in rows.schema])
    before, after = (_bound(text, params, endpoint) for text in (params.before, params.after))
    engine = cast(SharedDatabaseSession, call.engine)
    target = SnowflakeTable(engine, rows, pairs, stop, alone=not (before or after))
    try:
        loading = Loading(target, change, stop, call.say, None, None)
        loading.before, loading.after = before, after
        loading.run(lambda: iter([(1, range(1, rows.rows + 1))] if rows.rows else []))
    finally:
        target.close()
    return Written(loading.written)


_AS_ONE = "where rows stay in Snowflake, one statement writes all of them"


def _not_in_snowflake(params: WriteSqlParams, connected: frozenset[str]) -> str | None:
    if "reject" in connected:
        return f"{_AS_ONE}, so none is refused by itself: leave `reject` unconnected"
    if params.commit_every is not None:
        return f"{_AS_ONE}: leave `commit_every` out"
    return None


def _put(written: Written, rows: Relation, call: Call) -> None:
    good, bad = rows, None
    if written.refused:
        good, bad = rejected(call, _numbered(rows, call), written.refused)
    if "reject" in call.connected:
        call.put("reject", bad if bad is not None else call.engine.empty(_with_errors(rows.schema)))
    call.put("main", good)


def _bound(text: str | list[str] | None, params: WriteSqlParams, endpoint: Endpoint) -> list[Bound]:
    planner = Planner(endpoint.dialect, endpoint.call)
    texts = [text] if isinstance(text, str) else text or []
    return [statement for one in texts for statement in planner.shared(one, params.params)]


def _with_errors(schema: Schema) -> Schema:
    return (*schema, *ERRORS)


def _written_columns(params: WriteSqlParams, schema: Schema) -> Schema:
    """The columns of the table that are written, with the types of the rows; none when nothing says what they are."""
    types = {column.name: column.type for column in schema}
    return () if is_open(schema) else tuple(Column(name, types[of]) for name, of in _pairs(params, list(types)).items())


def _change(
    params: WriteSqlParams, columns: Schema, dialect: Dialect, typed: Callable[[str], str] | None = None
) -> Change:
    """`typed` gives the database's own type for one of DuckDB's, where the dialect does not say it."""
    if not columns:
        # Without columns no table can be made, but the one that is there can be emptied.
        return Change(params.table, "truncate_insert", ())
    # In a table that stays, a column of which nothing is known has to take the values of a better day.
    types = {one.name: "VARCHAR" if one.type == NOTHING else one.type for one in columns}
    made = {
        name: to_database(type, dialect, key=name in params.keys) if typed is None else typed(type)
        for name, type in types.items()
    }
    return Change(
        params.table,
        params.mode,
        list(types),
        keys=params.keys,
        create=params.create,
        types=made | params.types,
        may_exist=params.mode not in ("create", "replace"),
    )


def _numbered(rows: Relation, call: Call) -> Relation:
    return call.engine.select(select.sql(numbered("input", NUMBER)), {"input": rows})


def _written(params: WriteSqlParams, rows: Relation) -> exp.Select:
    """The columns of the table out of the rows, under the table's names."""
    present = [column.name for column in rows.schema if column.name != NUMBER]
    wanted = [exp.alias_(select.column(source), select.name(name)) for name, source in _pairs(params, present).items()]
    return exp.select(*wanted).from_(select.table("input"))


def _stream(params: WriteSqlParams, rows: Relation, call: Call) -> Any:
    """DuckDB is given all rows at once, with their numbers."""
    is_numbered = any(column.name == NUMBER for column in rows.schema)
    number = exp.alias_(select.column(NUMBER) if is_numbered else row_number(), select.name(NUMBER))
    return call.engine.arrow(select.sql(_written(params, rows).select(number)), {"input": rows})


def _numbered_stream(params: WriteSqlParams, rows: Relation, numbers: range, call: Call) -> Any:
    """The rows of these numbers, counted from 1; all of them when they have none."""
    query = _written(params, rows)
    if any(column.name == NUMBER for column in rows.schema):
        first, last = select.literal(numbers.start), select.literal(numbers.stop - 1)
        query = query.where(exp.Between(this=select.column(NUMBER), low=first, high=last))
    elif len(numbers) < rows.rows:
        query = query.limit(len(numbers)).offset(numbers.start - 1)
    return call.engine.arrow(select.sql(query), {"input": rows})


def _ranges(params: WriteSqlParams, rows: Relation, call: Call) -> Iterator[tuple[int, Sequence[Any]]]:
    # One statement for all is fastest, where no batch needs to stand by itself.
    in_parts = "reject" in call.connected or params.commit_every is not None
    size = params.batch_size if in_parts else max(rows.rows, 1)
    for first in range(1, rows.rows + 1, size):
        yield first, range(first, min(first + size, rows.rows + 1))


def _values(params: WriteSqlParams, rows: Relation, call: Call) -> Iterator[tuple[int, Sequence[Any]]]:
    return _batches(_in_order(_written(params, rows), rows), params, rows, call)


def _in_order(query: exp.Select, rows: Relation) -> exp.Select:
    is_numbered = any(column.name == NUMBER for column in rows.schema)
    return query.order_by(select.column(NUMBER)) if is_numbered else query


def _batches(
    query: exp.Select, params: WriteSqlParams, rows: Relation, call: Call
) -> Iterator[tuple[int, Sequence[Any]]]:
    first = 1
    size = min(params.batch_size, params.commit_every or params.batch_size)
    for batch in call.engine.rows(select.sql(query), {"input": rows}, size):
        call.progress("main", first - 1)
        yield first, batch
        first += len(batch)
    call.progress("main", first - 1)


def _lines(
    params: WriteSqlParams, rows: Relation, target: LineTable, call: Call
) -> Iterator[tuple[int, Sequence[Any]]]:
    """Each row as the line of text that the server reads; begun when the table has been looked at."""
    if not target.takes_lines:
        yield from _values(params, rows, call)
        return
    columns = {column.name: column for column in _written_columns(params, rows.schema)}
    line = target.line(tuple(columns[name] for name in target.change.sent))
    written = _in_order(_written(params, rows), rows).subquery("written")
    yield from _batches(exp.select(line).from_(written), params, rows, call)


def _has_doubles(params: WriteSqlParams, rows: Relation, call: Call) -> bool:
    """May two rows have the same key? Where the server compares otherwise, it says so itself."""
    if params.mode not in ("update", "upsert") or is_open(rows.schema):
        return False
    keys = exp.Tuple(expressions=[select.column(key) for key in params.keys])
    distinct = exp.Count(this=exp.Distinct(expressions=[keys]))
    every = exp.Count(this=exp.Star())
    query = exp.select(exp.NEQ(this=distinct, expression=every)).from_(_written(params, rows).subquery("written"))
    ((found,),) = next(iter(call.engine.rows(select.sql(query), {"input": rows})))
    return bool(found)


# ---- The table: rows come as batches, and a batch is any sequence that can be cut in two: lists of values for the servers,
# numbers of rows for DuckDB, which is given all rows at once and works on ranges of them.


def open_target(endpoint: Endpoint, files: Files, stop: Stop, lent: Any = None) -> Table:
    """`lent`: a connection with an open transaction, which the caller ends."""
    match endpoint.driver:
        case "postgres":
            return CopyTable(endpoint.conninfo(), endpoint.address(), stop, lent)
        case "mysql":
            return LoadDataTable(endpoint.login(), stop, lent)
        case "sqlite":
            assert files.sqlite is not None
            return SqliteTable(files.sqlite, stop, lent)
        case "duckdb":
            assert files.duckdb is not None
            return StagedTable(files.duckdb, stop, lent)
        case "adbc" | "dbapi":
            return DriverTable(endpoint.driver_address(), stop)


def stored_target(endpoint: Endpoint, files: Files, stop: Stop, lent: Any) -> Table:
    """The same for rows that the database has already."""
    if files.duckdb is not None:
        return StagedTable(files.duckdb, stop, lent)
    return StoredTable(endpoint.conninfo(), endpoint.address(), stop, lent)


_AT = "penstock_place"


class StoredTable(CopyTable):
    """The rows are in a table of the same database: batches are numbers of rows, and one statement writes each. All of them at
    once are read as they lie; a part of them, where a row is refused, by their numbers."""

    _place = _AT

    def rows_in(self, rows: Relation, engine: DatabaseSession, pairs: Mapping[str, str]) -> None:
        self._rows = rows
        self._held = engine.table(rows)
        self._pairs = pairs
        self._is_text = {column.name for column in rows.schema if engine.is_text(column.type)}
        self._casts: dict[str, str] = {}

    def prepare(self, change: Change) -> None:
        super().prepare(change)
        table, columns = quote_table(change.table, self.dialect), quote_all(change.sent, self.dialect)
        found = self.connection.execute(f"SELECT {columns} FROM {table} LIMIT 0".encode()).description or []
        asked = "SELECT oid, format_type(oid, NULL), typcategory FROM pg_type WHERE oid = ANY ($1)"
        types = {
            oid: (name, kind)
            for oid, name, kind in self.connection.execute(
                asked.encode(), [[one.type_code for one in found]]
            ).fetchall()
        }
        for name, one in zip(change.sent, found, strict=True):
            type, kind = types[one.type_code]
            # A text is read as a value of the column's type, as COPY would do it.
            if self._pairs.get(name) in self._is_text and kind != "S":
                self._casts[name] = f"::{type}"

    def mark(self) -> None:
        PostgresTable.mark(self)

    def write(self, rows: Any) -> int:
        change = self.change
        self._stage = self._chosen(rows)
        if not change.inserts_only:
            changed = self._changed()
            return len(rows) if change.mode == "upsert" and self.has_doubles and change.changed else changed
        columns = quote_all(change.sent, self.dialect)
        head = insert_into(change.table, change.sent, self.dialect)
        return self._count(f"{head} SELECT {columns} FROM {self._stage} AS stage")

    def _chosen(self, rows: range) -> str:
        """These rows, counted from 1, with the table's columns."""
        given = [
            f"{self._name(self._pairs[name])}{self._casts.get(name, '')} AS {self._name(name)}"
            for name in self.change.sent
        ]
        if len(rows) == self._rows.rows:
            return f"(SELECT {', '.join(given)}, ctid AS {_AT} FROM {self._held})"
        number = f"row_number() OVER (ORDER BY ctid) AS {_AT}"
        numbered = f"(SELECT *, {number} FROM {self._held}) AS numbered"
        return (
            f"(SELECT {', '.join(given)}, {_AT} FROM {numbered} WHERE {_AT} BETWEEN {rows.start} AND {rows.stop - 1})"
        )


class DriverTable(Table):
    """A table behind a driver by name. It has no savepoints that all databases know: where rows may be refused, each batch is a
    transaction. Of DB-API batches are rows, of ADBC numbers of rows."""

    dialect = drivers.DIALECT
    undoable = False
    rows: Callable[[range], Any]

    def __init__(self, address: drivers.DriverAddress, stop: Stop) -> None:
        self.session = drivers.session_of(address)
        self.connection = self.session.connection
        self.errors = self.session.errors
        super().__init__(stop, self.session.interrupt, is_lent=False)

    def failure(self, error: Exception) -> ToolFailure:
        return self.session.failure(error, None)

    def begin(self) -> None:
        self.session.begin(writing=True)

    def execute(self, text: str) -> None:
        self.session.execute(Bound(text, "", frozenset(), text))

    def run(self, statement: Bound) -> None:
        self.session.execute(statement)

    def prepare(self, change: Change) -> None:
        modes = ("insert", "truncate_insert") if isinstance(self.session, AdbcSession) else _OF_DBAPI
        if change.mode not in modes or change.create:
            asked = "create: true" if change.mode in modes else f"mode: {change.mode}"
            hint = "say it in the database's own SQL with `run_sql`"
            raise ToolFailure("parameters", f"`{asked}` is not for a connection by `driver`; hint: {hint}")
        super().prepare(change)

    def look(self) -> None:
        columns, table = quote_all(self.change.columns, self.dialect), quote_table(self.change.table, self.dialect)
        text = f"SELECT {columns or '*'} FROM {table} WHERE 1 = 0"
        self.session.execute(Bound(text, "select", frozenset(), text))

    def write(self, rows: Any) -> int:
        self.begin()
        session = self.session
        if isinstance(session, AdbcSession):
            session.ingest(self.change.table, self.rows(rows))
            return len(rows)
        text = self.change.statement(self.dialect, lambda index: "\0")
        text = text.replace("%", "%%") if session.style in ("format", "pyformat") else text
        for index in range(text.count("\0")):
            text = text.replace("\0", drivers.placeholder(session.style, index), 1)
        cursor = session.connection.cursor()
        try:
            cursor.executemany(text, [list(row) for row in self.change.ordered(rows)])
            return max(cursor.rowcount, 0) if self.change.mode in ("update", "delete") else len(rows)
        finally:
            cursor.close()

    def mark(self) -> None:
        """There is nothing to come back to; see `undoable`."""

    def release(self) -> None:
        """Nothing was marked."""

    def undo(self) -> None:
        self.session.rollback()

    def commit(self) -> None:
        self.session.commit()

    def abort(self) -> None:
        self.session.rollback()

    def close(self) -> None:
        self._forget()
        self.session.close()


_OF_DBAPI = ("insert", "truncate_insert", "update", "delete")
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

    def stage_stored(self, engine: DatabaseSession, rows: Relation, pairs: Mapping[str, str]) -> None:
        """The same of rows that lie beside the file."""
        given = ", ".join(f"{_name(source)} AS {_name(name)}" for name, source in pairs.items())
        query = f"SELECT {given}, row_number() OVER () AS {_NUMBER} FROM {engine.table(rows)}"
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {_ROWS} AS {query}")

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
