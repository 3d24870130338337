"""DuckDB: a file, or a database in memory that all tasks of one execution share; each task works on a cursor of its own."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from penstock.kernel.values import JsonMap
from penstock.ports.folders import searched
from penstock.ports.meanings import KEYCHAIN_ENTRY, LOCAL_PATH, SCHEMES
from penstock.tools.base import Call, Success, Tool, ToolFailure, local_path
from penstock.tools.network import address_refused
from penstock.tools.parameters import about
from penstock.tools.sql.connection import (
    ConnectionName,
    PoolUse,
    Stop,
    TaskSession,
    auth_of,
    entry_of,
    interruptible,
    run_task,
)
from penstock.tools.sql.plan import (
    Planner,
    Ran,
    SqlParams,
    Upsert,
    effect_of,
    make_plan,
    off_the_loop,
    texts_of,
    verbs_of,
    with_script,
)
from penstock.tools.sql.results import GIVES, RunningCommand, Table, as_json_text, failure, parsed, to_json
from penstock.tools.sql.text import Bound, Dialect, insert_into, on_conflict, quote

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = ":memory:"
LOCK_WAIT_S = 30.0
"""A file belongs to one process at a time: another worker, or another run, may be about to close it."""
LOCK_POLL_S = 0.05
LOCK_SAY_S = 5.0
"""How often a waiting task reports it."""
MAKING_S = 600.0
"""So long a transaction waits for another one that makes the same table."""
# Whoever opens a file of this process a moment after another gets the same database, in which DuckDB may not have registered the
# functions yet that it reads Arrow with.
_OPENING = threading.Lock()
# Nothing is loaded unasked; and what is built in reads no remote files.
OFFLINE = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
NO_REMOTE_FILES = "SET GLOBAL disabled_filesystems = 'HTTPFileSystem,S3FileSystem,HuggingFaceFileSystem'"
_EXTENDING = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:force\s+)?(?:install|load|update\s+extensions)\b", re.I | re.S)
_EXTENSION_SETTING = re.compile(r"auto(?:load|install)_\w*extension|extension_repositor|extension_director", re.I)
_ROWS_AT_ONCE = 5000
ZONED = "TIMESTAMP WITH TIME ZONE"


class DuckdbParams(SqlParams, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[
        str | None,
        about(
            "The database file, relative to the document's folder; in memory when left out or `:memory:`. Folders on "
            "the way are made.",
            schema={**LOCAL_PATH, SCHEMES: ["duckdb"]},
        ),
    ] = None
    connection: ConnectionName = None
    auth: Annotated[
        str | dict[str, Any] | None,
        about("Name of a keychain entry with a `path`, instead of `path`.", schema=KEYCHAIN_ENTRY),
    ] = None
    pool: Annotated[bool | PoolUse | None, about("Without effect: each task has a connection of its own.")] = None
    read_only: Annotated[bool, about("Open the file for reading only.")] = False
    autocommit: Annotated[bool, about("Each statement commits by itself; otherwise the task is one transaction.")] = (
        False
    )


def path_of(path: str | None, auth: str | dict[str, Any] | None, call: Call) -> str:
    if path is None and auth is not None:
        entry = entry_of(auth, call)
        path = next((str(entry[key]) for key in ("path", "database", "url", "value") if entry.get(key)), None)
    path = (path or MEMORY).removeprefix("duckdb:///")
    return MEMORY if path == MEMORY else str(local_path(path, call))


def connect(
    path: str,
    *,
    read_only: bool = False,
    is_offline: bool = False,
    say: Callable[[str], None] | None = None,
    stop: Stop | None = None,
) -> DuckDBPyConnection:
    """A file that another process has locked is tried again for a while, unless `stop` ends that; `say` reports it at once.
    `is_offline`: DuckDB opens sockets of its own, whose addresses cannot be checked, so it may open none."""
    import duckdb  # Slow to import: only a query needs it.

    # Without this, a table that is not there is looked for among the variables of this very program.
    config: dict[str, Any] = {"python_enable_replacements": "false", **(OFFLINE if is_offline else {})}
    if path != MEMORY and not read_only:
        with suppress(OSError):  # DuckDB says what is wrong with the place.
            Path(path).parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    next_word = began
    while True:
        try:
            with _OPENING:
                opened = duckdb.connect(path, read_only=read_only and path != MEMORY, config=config)
        except duckdb.Error as error:
            locked, now = "lock" in str(error), time.monotonic()
            left = began + LOCK_WAIT_S - now
            if locked and left > 0:
                if say is not None and now >= next_word:
                    say(f"database `{path}` is locked by {_holder(error)}, trying again for {left:.0f} s")
                    next_word = now + LOCK_SAY_S
                (stop.wait if stop is not None else time.sleep)(LOCK_POLL_S)
                continue
            helpers: dict[str, JsonMap] = {"duckdb": {"code": type(error).__name__}}
            message = f"`{path}` cannot be opened: {_first_paragraph(error)}"
            if locked:
                message = (
                    f"database `{path}` is locked by {_holder(error)}, and was so for {LOCK_WAIT_S:g} s; "
                    "hint: DuckDB lets one process at a time open a file for writing: end the other one, or let it finish first"
                )
            raise ToolFailure("connect", message, retryable=locked, helpers=helpers) from None
        if is_offline:
            opened.execute(NO_REMOTE_FILES)
        return opened


def check_offline(texts: Iterable[str]) -> None:
    """Raises ToolFailure for a statement that would fetch or load what opens sockets."""
    for text in texts:
        if _EXTENDING.match(text) or _EXTENSION_SETTING.search(text):
            raise address_refused("extensions of DuckDB open connections to addresses that are not judged")


def _holder(error: Exception) -> str:
    """Who has the file, as DuckDB tells it: `… held in /usr/bin/python3 (PID 4711)`."""
    found = re.search(r"held in (.+?) \(PID (\d+)\)", str(error))
    return f"PID {found[2]} ({found[1].rpartition('/')[2]})" if found else "another process"


def _first_paragraph(error: Exception) -> str:
    return " ".join(str(error).split("\n\n")[0].split())


_KINDS = {
    "ParserException": ("syntax", False),
    "SyntaxException": ("syntax", False),
    "CatalogException": ("not_found", False),
    "BinderException": ("not_found", False),
    "ConstraintException": ("constraint", False),
    "TransactionException": ("serialization", True),
    "PermissionException": ("permission", False),
    "InterruptException": ("timeout", True),
    "IOException": ("io", False),
    "HTTPException": ("connect", True),
    "ConnectionException": ("connect", True),
}


def failure_of(error: Exception, running: RunningCommand | None) -> ToolFailure:
    code = type(error).__name__
    message = _first_paragraph(error)
    if "'pytz'" in message:
        message = (
            "a timestamp with a zone is given back only by a query; hint: cast it, as in `RETURNING created::VARCHAR`"
        )
    kind, retryable = _KINDS.get(code, ("database", False))
    if kind == "not_found" and not any(words in message for words in ("does not exist", "not found", "not in scope")):
        kind = "database"
    if "No files found" in message or "No such file" in message:
        kind = "not_found"
    return failure(kind, message, running, {"duckdb": {"code": code}}, retryable=retryable)


def while_made(work: Callable[[], None], undo: Callable[[], None], stop: Stop) -> None:
    """Do `work`, which may make a table that another transaction is making: DuckDB ends whichever comes second, which begins
    again, after `undo`, once the first is over. All transactions of a file are of this process, and none takes for ever."""
    import duckdb  # Slow to import: only a query needs it.

    patient_until = time.monotonic() + MAKING_S
    while True:
        try:
            work()
        except duckdb.TransactionException as error:
            if "conflict on create" not in str(error) or time.monotonic() > patient_until:
                raise
            undo()
            stop.wait(LOCK_POLL_S)
        else:
            return


def as_text(value: Any) -> str | None:
    """A value as DuckDB reads it when it casts text to a column's type."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes() | bytearray() | memoryview():
            return "".join(f"\\x{byte:02X}" for byte in bytes(value))
        case dict() | list():
            return as_json_text(value)
        case _:
            return str(value)


def insert_rows(
    connection: DuckDBPyConnection, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], tail: str = ""
) -> int:
    """Rows go over as one list of texts and are cast by the table: an order of magnitude faster than row by row."""
    written = 0
    cells = ", ".join(f"r[{index + 1}]" for index in range(len(columns)))
    head = insert_into(table, columns, Dialect.DUCKDB)
    text = f"{head} SELECT {cells} FROM (SELECT unnest($rows::VARCHAR[][]) AS r) {tail}"
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        batch = [[as_text(value) for value in row] for row in rows[start : start + _ROWS_AT_ONCE]]
        found = connection.execute(text, {"rows": batch}).fetchone()
        written += int(found[0]) if found else 0
    return written


def last_of_each_key(step: Upsert) -> list[list[Any]]:
    """One statement may not touch a row twice, so of rows with the same key only the last is sent: it would win anyway."""
    indexes = [step.columns.index(key) for key in step.keys]
    kept: dict[Any, list[Any]] = {}
    for index, row in enumerate(step.rows):
        key = tuple(as_text(row[index]) for index in indexes)
        kept[index if None in key else key] = row
    return list(kept.values())


class DuckdbSession(TaskSession):
    def __init__(self, connection: DuckDBPyConnection, max_rows: int) -> None:
        import duckdb  # Slow to import: only a query needs it.

        self.connection = connection
        self.max_rows = max_rows
        self.errors = (duckdb.Error,)

    def execute(self, statement: Bound) -> Table:
        args = statement.args if isinstance(statement.args, dict) else None
        text = zone_free(statement, args, self.connection)
        cursor = self.connection.execute(text, args) if args else self.connection.execute(text)
        description = cursor.description or []
        names = [column[0] for column in description]
        if names == ["Count"] and statement.writes and "returning" not in statement.words:
            found = cursor.fetchone()
            return Table(row_count=int(found[0]) if found else 0)
        if not description or (names == ["Success"] and statement.writes):
            return Table()
        return self.fetched(cursor, [parsed if str(column[1]) == "JSON" else to_json for column in description])

    def upsert(self, step: Upsert) -> Table:
        tail = on_conflict(step.keys, step.update, Dialect.DUCKDB)
        return Table(row_count=insert_rows(self.connection, step.table, step.columns, last_of_each_key(step), tail))

    def failure(self, error: Exception, running: RunningCommand) -> ToolFailure:
        return failure_of(error, running)


def described(statement: Bound, args: dict[str, Any] | None, connection: DuckDBPyConnection) -> list[tuple[str, str]]:
    """Names and types of the columns a query would give."""
    question = f"DESCRIBE {statement.text}"
    answer = connection.execute(question, args) if args else connection.execute(question)
    return [(str(row[0]), str(row[1])) for row in answer.fetchall()]


def zone_free(statement: Bound, args: dict[str, Any] | None, connection: DuckDBPyConnection) -> str:
    """DuckDB's driver wants another package for timestamps with a zone; said as ISO 8601 in SQL, none is needed."""
    if statement.verb not in {"select", "with", "from", "values", "table"} or statement.writes:
        return statement.text
    types = described(statement, args, connection)
    if not any(ZONED in kind for _, kind in types):
        return statement.text
    # Columns go by number inside, since two of them may have the same name.
    inner = ", ".join(f"c{index}" for index in range(len(types)))
    outer = [
        f"{_zone_free_column(f'c{index}', kind)} AS {quote(name, Dialect.DUCKDB)}"
        for index, (name, kind) in enumerate(types)
    ]
    return f"SELECT {', '.join(outer)} FROM ({statement.text}\n) AS q({inner})"


def _zone_free_column(column: str, kind: str) -> str:
    if kind == ZONED:
        return f"strftime({column} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%f+00:00')"
    return f"to_json({column})" if ZONED in kind else column


class SharedDuckdb:
    """One database of an execution, opened in a thread when the first task needs it."""

    def __init__(
        self, path: str, *, read_only: bool, is_offline: bool, say: Callable[[str], None] | None = None
    ) -> None:
        self._path = path
        self._is_offline = is_offline
        self._say = say
        self._read_only = read_only
        self._lock = threading.Lock()
        self._root: DuckDBPyConnection | None = None

    def cursor(self, folder: Path, stop: Stop) -> DuckDBPyConnection:
        """A connection of the caller's own, which looks for files in the document's folder first."""
        with self._lock:
            if self._root is None:
                self._root = connect(
                    self._path, read_only=self._read_only, is_offline=self._is_offline, say=self._say, stop=stop
                )
            cursor = self._root.cursor()
        # A comma is what separates the folders of this setting, and it cannot be quoted.
        folders = [one for one in searched(folder) if "," not in one]
        if folders:
            cursor.execute("SET file_search_path = $folders", {"folders": ",".join(folders)})
        return cursor

    async def close(self) -> None:
        with self._lock:
            if self._root is not None:
                self._root.close()


class DuckdbTool(Tool[DuckdbParams]):
    """Run SQL in DuckDB: in a file, or in memory, where all tasks of an execution share one database.

    Files are read straight from SQL (`SELECT * FROM 'orders.csv'`); a relative name is looked for in the document's folder
    first. The commands of a task are one transaction. Values in `params` are bound, never pasted: `:name` or `$name` with
    a mapping, `?` or `$1` with a list.
    The result is `{rows, row_count, columns}`; with several commands also `command_0`, `command_1` … (of a single one
    `command_0` is the result itself).
    `script` is a file of SQL, or a mapping: `{uri: sql/load.sql, source: {type: file}}`, `{source: {type: inline, code}}`, or
    `{source: {type: http, endpoint}}`. It runs as the same text in `command` would: its templates see the names that the
    task's own see, except secrets.
    `upsert` writes rows by their keys and can be run again without harm; so can any commands with `idempotency: true`, which
    commits them once for each element of a loop, also when a shard is tried again.
    On an error `outcome.duckdb.code` has DuckDB's name for it, such as `ConstraintException`.
    What SQL itself writes (`COPY … TO 'file'`) goes to the process's working directory unless the path is absolute.
    """

    kind: ClassVar[str] = "duckdb"
    gives: ClassVar[tuple[str, ...]] = GIVES
    family: ClassVar[str] = "duckdb"

    async def run(self, params: DuckdbParams, call: Call) -> object:
        path = path_of(params.path, auth_of(params), call)
        params = await with_script(params, call)
        planner = Planner(Dialect.DUCKDB, call, own_transactions=params.autocommit)
        steps = await off_the_loop(params, call, lambda: make_plan(params, planner))
        if not call.settings.addresses.is_open:
            check_offline(texts_of(steps))
        shared = await shared_database(path, call, read_only=params.read_only)

        effect = effect_of(params, verbs_of(steps), call, Dialect.DUCKDB)

        def work(stop: Stop) -> Ran:
            connection = shared.cursor(call.folder, stop)
            forget = stop.on_stop(connection.interrupt)
            try:
                session = DuckdbSession(connection, params.max_rows)
                return run_task(session, steps, stop, effect, transaction=not params.autocommit)
            finally:
                forget()
                connection.close()

        ran = await interruptible(call, work)
        return Success(ran.result, {"duckdb": {"code": "OK", **ran.helper}})


async def shared_database(path: str, call: Call, *, read_only: bool = False) -> SharedDuckdb:
    async def make() -> tuple[SharedDuckdb, Callable[[], Awaitable[None]]]:
        is_offline = not call.settings.addresses.is_open
        shared = SharedDuckdb(path, read_only=read_only, is_offline=is_offline, say=call.say)
        return shared, shared.close

    shared: SharedDuckdb = await call.resources.get(("duckdb", path, read_only), make)
    return shared
