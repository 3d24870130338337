"""`read_sql`: rows of a table or query of a database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure, Mistake, PlanCall, Port
from penstock.components.flow.tool_calls import tool_failures
from penstock.components.incremental import IncrementalParam, bound_of
from penstock.components.io.sql.database import Auth, Bindings, Connection
from penstock.ports.rows import Relation, Schema
from penstock.tools.sql.lexer import Dialect
from penstock.tools.sql.names import quote_all, quote_table
from penstock.tools.transfer_params import DatabaseFileSource


class ReadSqlParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    connection: Connection = None
    auth: Auth = None
    query: Annotated[str | None, Meta(description="The SELECT that gives the rows, in the database's own SQL.")] = None
    table: Annotated[
        str | None,
        Meta(
            description="The table to read, instead of `query`; spelled as the database keeps it, `schema.table` is understood."
        ),
    ] = None
    columns: Annotated[
        list[str], Meta(description="With `table`: the columns to read; all of them when left out.")
    ] = []
    params: Bindings = None
    batch_size: Annotated[int, Meta(ge=1, description="Rows fetched at a time.")] = 10_000
    connect_timeout: Annotated[float, Meta(gt=0, description="Seconds to wait for the server to answer.")] = 10.0
    incremental: IncrementalParam = None


class ReadSql(Action[ReadSqlParams]):
    """Read the rows of a table or a query: PostgreSQL, MySQL and MariaDB, SQLite, DuckDB.

    `connection` is a URL (`postgresql://user@host/db`, `mysql://…`, `sqlite:///orders.db`,
    `duckdb:///orders.duckdb`); passwords belong in the keychain, whose entry is named in `auth`. Rows are fetched
    through a cursor of the server, `batch_size` at a time, so a result may be larger than memory. Values in `params`
    are bound, never pasted: `:name` with a mapping.

    Types are those of the database; a `numeric` without a width gets the scale that its values need. SQLite, where
    any value may stand in any column, gives the declared type when all values agree with it. Columns are known before
    the run only when the component's `schema` declares them, and are then cast to it.

    With `incremental` the database itself leaves out the rows that were read before; SQLite, whose times are texts of
    any form, is read whole.
    """

    type = "read_sql"
    family = "read"
    makes_files: ClassVar[bool] = False
    Params = ReadSqlParams
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)
    example = """\
apiVersion: penstock/v1
kind: Job
metadata: {name: read_customers}
components:
  - name: customers
    type: fixed_rows
    params: {columns: [id, name], rows: [[1, Ada], [2, Bob], [3, Cy]]}
  - name: write
    type: write_sql
    params: {connection: "sqlite:///shop.db", table: customers, mode: replace, keys: [id]}
  - name: read
    type: read_sql
    params:
      connection: sqlite:///shop.db
      query: SELECT name FROM customers WHERE id > :least ORDER BY id
      params: {least: 1}
  - name: show
    type: log_rows
connections:
  data: |
    customers.main -> write.input
    read.main -> show.input
  control: |
    write (subjob_ok) read
"""

    def check(self, params: ReadSqlParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
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

    def schemas(
        self, params: ReadSqlParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
        return {"main": call.declared.get("main")}

    async def run(self, params: ReadSqlParams, call: Call) -> None:
        from penstock.components.io import sql_place, sql_sources
        from penstock.tools.sql.blocking import Stop, interruptible
        from penstock.tools.transfer_sources import statement_of

        for mistake in self.check(params, {}, PlanCall(call.folder, call.connected)):
            raise ComponentFailure("parameters", mistake.message)
        place = sql_place.where(params.connection, params.auth, call, params.connect_timeout)
        with tool_failures():
            source = DatabaseFileSource(table=params.table, query=params.query, params=params.params)
            if params.incremental is not None:
                source = _narrowed(source, params, place.dialect, call)
            statement = statement_of(source, place.dialect, params.columns or None, place.call)
            files = await sql_place.opened_files(place, create=False)

            def work(stop: Stop) -> Relation:
                with sql_place.interrupting(stop, call.engine.interrupt):
                    rows = sql_sources.read(place, files, statement, params.batch_size, stop, call)
                    return sql_sources.as_asked(rows, call.declared.get("main"), call)

            if files.sqlite is not None and files.sqlite.turn is not None:
                async with files.sqlite.turn:
                    rows = await interruptible(place.call, work)
            else:
                rows = await interruptible(place.call, work)
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
