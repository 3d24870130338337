"""`run_sql`: statements for a database: DDL, calls, grants, whatever gives no rows or whose rows are few."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure, Known, Mistake, PlanCall, Port, Schemas
from penstock.components.flow.tool_calls import file_failures, local_file, require, tool_failures
from penstock.components.io.sql import database, transaction
from penstock.components.io.sql.database import SCHEMES, Auth, Bindings, Connection, Endpoint, tool_of
from penstock.kernel.values import Json, JsonMap
from penstock.ports.meanings import READS_SCRIPT
from penstock.ports.rows import Column, Schema
from penstock.tools.base import Success, ToolFailure
from penstock.tools.parameters import about
from penstock.tools.sql.connection import Stop, interruptible
from penstock.tools.sql.plan import COMMITS_BY_ITSELF, Planner
from penstock.tools.sql.text import Dialect, split

COUNTS: Schema = (
    Column("statement", "INTEGER"),
    Column("verb", "VARCHAR"),
    Column("rows", "BIGINT"),
    Column("error", "VARCHAR"),
)


class RunSqlParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    connection: Connection = None
    auth: Auth = None
    sql: Annotated[
        str | list[str] | None,
        about("The statements, in the database's own SQL: a text with `;` between them, or a list."),
    ] = None
    file: Annotated[
        str | None,
        about("A file with the statements, instead of `sql`; relative to the document's folder.", schema=READS_SCRIPT),
    ] = None
    params: Bindings = None
    transaction: Annotated[
        Literal["own", "shared", "none"],
        about(
            "`own`: all statements count together, or none does. `shared`: together with the writers of the same "
            "connection in this sub-job; all is committed when the sub-job has ended well, or nothing is. `none`: each commits "
            "by itself, for statements that cannot be part of a transaction, such as `VACUUM` or `CREATE DATABASE`."
        ),
    ] = "own"
    on_error: Annotated[
        Literal["fail", "continue"],
        about(
            "`fail`: the component is in ERROR at the first statement that fails. `continue`, with "
            "`transaction: none`: the others run, and `main` says which failed."
        ),
    ] = "fail"
    timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        about("Seconds that all statements together may take; no limit when left out."),
    ] = None
    max_rows: Annotated[int, about("More rows than this of one statement are an error.", ge=1)] = 100_000
    connect_timeout: Annotated[float, about("Seconds to wait for the server to answer.", gt=0)] = 10.0


class RunSql(Action[RunSqlParams]):
    """Run SQL statements or a script: PostgreSQL, MySQL and MariaDB, SQLite, DuckDB.

    For what `read_sql` and `write_sql` are not made for: `CREATE`, `ALTER`, `GRANT`, `CALL`, `DELETE … WHERE`, `REFRESH`. It
    needs no input, so any control link can lead to it. `connection` is a URL as for `read_sql`; passwords belong in the
    keychain, whose entry is named in `auth`. Values in `params` are bound, never pasted.

    All statements are one transaction unless `transaction` is `none`; MySQL commits by itself before and after statements
    such as `CREATE TABLE`. With `shared` they are one transaction with the `write_sql` of the same sub-job and connection, and
    with other `run_sql` there that say so; it is committed when the last component of the sub-job has ended, unless one failed.
    A file that SQLite or DuckDB keeps is made when it is missing.

    `main` has a row for each statement: `statement` (from 1), `verb`, `rows` (those it gave, or changed) and `error`. `rows`
    has what the last statement gave, which must be a query where that port is read. The result is `{statements, rows}`, `rows`
    being a list of the counts. After-variables: `NB_STATEMENT`, `NB_LINE_AFFECTED` (all of them together), `NB_LINE_<n>` of
    the n-th statement, `NB_STATEMENT_ERROR`.
    """

    type: ClassVar[str] = "run_sql"
    family: ClassVar[str] = "write"
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", reject=True, description="one row per statement"),
        Port("rows", reject=True, description="the rows of the last statement"),
    )

    def check(self, params: RunSqlParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        if (params.sql is None) == (params.file is None):
            return [Mistake(("sql",) if params.sql is not None else (), "give exactly one of `sql` and `file`")]
        if params.connection is None and params.auth is None:
            return [
                Mistake((), "no database is named; hint: `connection: postgresql://…`, or `auth: <keychain entry>`")
            ]
        if params.on_error == "continue" and params.transaction != "none":
            return [
                Mistake(
                    ("on_error",),
                    "a statement that fails ends the transaction that all of them are; hint: `transaction: none`",
                )
            ]
        alone = _stands_alone(params)
        return [] if alone is None else [alone]

    def schemas(self, params: RunSqlParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": COUNTS, "rows": call.declared.get("rows")}

    async def run(self, params: RunSqlParams, call: Call) -> JsonMap:
        require(self.check(params, {}, PlanCall(call.folder, call.connected)))
        endpoint = database.where(params.connection, params.auth, call, params.connect_timeout, params.timeout)
        texts = await _texts(params, call, endpoint)
        if params.transaction == "shared":
            outcome = await _run_shared(params, texts, endpoint, call)
        else:
            outcome = await _run(params, texts, endpoint)
        counts = [one.rows for one in outcome.statements]
        call.after["NB_STATEMENT"] = len(counts)
        call.after["NB_LINE_AFFECTED"] = sum(counts)
        call.after["NB_STATEMENT_ERROR"] = sum(one.error is not None for one in outcome.statements)
        call.after.update({f"NB_LINE_{number}": rows for number, rows in enumerate(counts, 1)})
        rows = [(number, one.verb, one.rows, one.error) for number, one in enumerate(outcome.statements, 1)]
        call.put("main", call.engine.load(COUNTS, [rows]))
        if "rows" in call.connected:
            call.put("rows", _last_rows(outcome, call))
        return {"statements": len(counts), "rows": [*counts]}


class _Statement(msgspec.Struct):
    verb: str
    rows: int = 0
    error: str | None = None


class _Outcome(msgspec.Struct):
    statements: list[_Statement]
    columns: list[str] = []
    last: list[Any] = []


# Of PostgreSQL: refused by the server within a transaction.
_ALONE = re.compile(
    r"vacuum\b|(create|drop)\s+(database|tablespace)\b|alter\s+system\b|reindex\s+(database|system)\b"
    r"|(create\s+(unique\s+)?|drop\s+|re)index\s+(\([^)]*\)\s+)?concurrently\b",
    re.IGNORECASE,
)


def _stands_alone(params: RunSqlParams) -> Mistake | None:
    """A statement among those that are known which cannot be part of the transaction that is asked for."""
    driver = SCHEMES.get((params.connection or "").partition("://")[0].partition("+")[0].lower())
    texts = [params.sql] if isinstance(params.sql, str) else params.sql or []
    if params.transaction == "none" or driver not in ("postgres", "mysql"):
        return None
    for statement in (one for text in texts for one in split(text, Dialect(driver))):
        if driver == "postgres" and _ALONE.match(statement.text):
            message = (
                f"PostgreSQL runs `{_excerpt(statement.text)}` outside of transactions only; hint: `transaction: none`"
            )
            return Mistake(("transaction",) if params.transaction == "shared" else ("sql",), message)
        if driver == "mysql" and params.transaction == "shared" and statement.verb in COMMITS_BY_ITSELF:
            hint = "run it before, in a `run_sql` of its own sub-job"
            message = f"`{_excerpt(statement.text)}` commits by itself in MySQL, and with it what the others wrote; hint: {hint}"
            return Mistake(("sql",), message)
    return None


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


async def _run_shared(params: RunSqlParams, texts: list[str], endpoint: Endpoint, call: Call) -> _Outcome:
    """In the transaction of the sub-job."""
    with tool_failures():
        planner = Planner(endpoint.dialect, endpoint.call)
        statements = [bound for text in texts for bound in planner.shared(text, params.params)]
        files = await database.opened_files(endpoint, create=True)
        async with transaction.joined(call, endpoint, files) as shared:

            def work(stop: Stop) -> _Outcome:
                opened = shared.open(stop, call)
                if opened is None:
                    return msgspec.convert(shared.earlier(call), _Outcome)
                tables = shared.run(statements, opened, stop, params.max_rows)
                outcome = _Outcome(
                    [
                        _Statement(one.verb.upper(), table.row_count)
                        for one, table in zip(statements, tables, strict=True)
                    ],
                    tables[-1].columns,
                    tables[-1].rows if "rows" in call.connected else [],
                )
                shared.results[call.component] = msgspec.to_builtins(outcome)
                return outcome

            return await interruptible(endpoint.call, work)


async def _texts(params: RunSqlParams, call: Call, endpoint: Endpoint) -> list[str]:
    """Each statement by itself, with its comments gone."""
    given = params.sql
    if params.file is not None:
        path = local_file(params.file, call)
        with file_failures(path):
            given = await call.threads.run(Path.read_text, path, "utf-8")
    parts = [given] if isinstance(given, str) else given or []
    with tool_failures():
        found = [statement.text for part in parts for statement in split(part, endpoint.dialect)]
    if not found:
        raise ComponentFailure("parameters", "there is no statement to run: only blanks and comments")
    return found


async def _run(params: RunSqlParams, texts: list[str], endpoint: Endpoint) -> _Outcome:
    """Through the SQL tool of the database: in one call where all count together, else one by one."""
    if params.transaction == "own":
        with tool_failures():
            return _outcome(texts, await _asked(params, texts, endpoint), endpoint)
    outcome = _Outcome([])
    for text in texts:
        try:
            one = _outcome([text], await _asked(params, [text], endpoint), endpoint)
        except ToolFailure as failed:
            if params.on_error == "fail":
                done = f" ({len(outcome.statements)} before it are committed)" if outcome.statements else ""
                with tool_failures():
                    failed.message = f"statement {len(outcome.statements) + 1} of {len(texts)}{done}: {failed.message}"
                    raise
            one = _Outcome([_Statement(_verb(text, endpoint), 0, failed.message)])
        outcome = _Outcome([*outcome.statements, *one.statements], one.columns, one.last)
    return outcome


async def _asked(params: RunSqlParams, texts: list[str], endpoint: Endpoint) -> JsonMap:
    command: str | list[str] = texts[0] if len(texts) == 1 else texts
    asked: dict[str, Any] = {
        "command": command,
        # Of several statements, one need not use every value.
        **({"args": params.params} if isinstance(params.params, dict) else {"params": params.params}),
        "max_rows": params.max_rows,
        "autocommit": params.transaction == "none",
    }
    tool, given = tool_of(endpoint.driver, asked, endpoint.url, endpoint.auth)
    answer = await tool.run(given, endpoint.call)
    result = answer.result if isinstance(answer, Success) else answer
    assert isinstance(result, dict)
    return result


def _outcome(texts: list[str], result: JsonMap, endpoint: Endpoint) -> _Outcome:
    tables: list[Any] = [result[f"command_{index}"] for index in range(len(texts))] if len(texts) > 1 else [result]
    statements = [
        _Statement(_verb(text, endpoint), int(table["row_count"])) for text, table in zip(texts, tables, strict=True)
    ]
    return _Outcome(statements, list(tables[-1]["columns"]), list(tables[-1]["rows"]))


def _verb(text: str, endpoint: Endpoint) -> str:
    return split(text, endpoint.dialect)[0].verb.upper()


def _last_rows(outcome: _Outcome, call: Call) -> Any:
    if outcome.last:
        return call.engine.load_mappings([[_mapping(row, outcome.columns) for row in outcome.last]])
    declared = call.declared.get("rows")
    if not outcome.columns and declared is None:
        hint = "end with a SELECT, or with RETURNING"
        raise ComponentFailure(
            "no_rows", f"the port `rows` is read, and the last statement gives no rows; hint: {hint}"
        )
    return call.engine.empty(declared or tuple(Column(name, "VARCHAR") for name in outcome.columns))


def _mapping(row: Json, columns: list[str]) -> dict[str, Any]:
    return (
        dict(row)
        if isinstance(row, dict)
        else dict(zip(columns, row if isinstance(row, list) else [row], strict=False))
    )
