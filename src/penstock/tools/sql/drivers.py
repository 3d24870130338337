"""Databases without a tool of their own, through any driver by the name of its Python module: DB-API 2.0 or ADBC.

Law: such a database is asked in plain SQL with names in double quotes. A driver opens its own sockets, whose addresses cannot be
judged: so where addresses are limited there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

from penstock.kernel.values import JsonMap
from penstock.tools.base import Call, Success, Tool, ToolFailure, local_path
from penstock.tools.network import address_refused
from penstock.tools.sql.connection import Auth, Stop, TaskSession, entry_of, interruptible, run_task
from penstock.tools.sql.plan import Planner, Ran, SqlParams, Upsert, make_plan
from penstock.tools.sql.results import RunningCommand, Table, distinct, failure, scrubbed
from penstock.tools.sql.text import Bound, Dialect, Kind, scan

DIALECT = Dialect.SQLITE
"""Of the names and placeholders that are read: `:name`, `?`, and names in double quotes."""
_PACKAGES = {"snowflake": "snowflake-connector-python", "MySQLdb": "mysqlclient"}
_FIELDS = ("host", "port", "user", "password", "database")


def install_hint(driver: str) -> str | None:
    """How to get a driver that cannot be imported; None when it can."""
    top = driver.partition(".")[0]
    try:
        found = find_spec(driver)
    except (ImportError, ValueError):
        found = None
    return None if found is not None else f"pip install {_PACKAGES.get(top, top.replace('_', '-'))}"


@dataclass(frozen=True, slots=True)
class DriverAddress:
    """A connection of the kind `adbc` or `dbapi`, as a document or the keychain describes it."""

    kind: str
    driver: str
    url: str | None = field(default=None, repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def secrets(self) -> list[str | None]:
        return [self.url, *(str(value) for key, value in self.options.items() if key not in ("host", "port", "user"))]

    def module(self) -> Any:
        hint = install_hint(self.driver)
        if hint is not None:
            raise ToolFailure("parameters", f"the driver `{self.driver}` is not installed; hint: {hint}")
        module = import_module(self.driver)
        if not callable(getattr(module, "connect", None)):
            raise ToolFailure("parameters", f"`{self.driver}` is not a driver: it has no function `connect`")
        return module


def driver_address(auth: str | dict[str, Any] | None, call: Call) -> DriverAddress:
    """Raises ToolFailure when it names no driver, or when addresses are limited."""
    entry = entry_of(auth, call)
    driver = entry.get("driver")
    if not isinstance(driver, str):
        raise ToolFailure("parameters", "no driver is named; hint: `driver: adbc_driver_snowflake`, or another module")
    if not call.settings.addresses.is_open:
        raise address_refused(f"the driver `{driver}` opens connections of its own, which cannot be judged")
    path = entry.get("path")
    return described_address(entry | {"database": str(local_path(path, call))} if isinstance(path, str) else entry)


def described_address(entry: Mapping[str, Any]) -> DriverAddress:
    """Of a connection whose `driver` is named."""
    options = {name: entry[name] for name in _FIELDS if entry.get(name) is not None}
    given = entry.get("options")
    options |= dict(given) if isinstance(given, dict) else {}
    url = entry.get("url")
    return DriverAddress(str(entry.get("kind")), str(entry["driver"]), None if url is None else str(url), options)


# ---- DB-API 2.0


def placed(statement: Bound, style: str) -> tuple[str, Any]:
    """A statement with named values, as a driver of that `paramstyle` takes it."""
    args = statement.args if isinstance(statement.args, dict) else {}
    if not args:
        return statement.text, None
    values: list[Any] = []
    text = ""
    for piece in scan(statement.text, DIALECT):
        if piece.kind is not Kind.NAMED:
            text += piece.text.replace("%", "%%") if style in ("format", "pyformat") else piece.text
            continue
        values.append(args[piece.name])
        text += {"qmark": "?", "numeric": f":{len(values)}", "named": f":{piece.name}"}.get(style) or (
            "%s" if style == "format" else f"%({piece.name})s"
        )
    return text, dict(args) if style in ("named", "pyformat") else values


def placeholder(style: str, index: int) -> str:
    """Of the n-th value of a row, from 0, where rows are sequences."""
    named = {"qmark": "?", "format": "%s", "pyformat": "%s", "numeric": f":{index + 1}", "named": f":{index + 1}"}
    return named.get(style, "?")


class DbapiSession(TaskSession):
    def __init__(self, address: DriverAddress, max_rows: int = 100_000, *, autocommit: bool = False) -> None:
        """`autocommit`: the driver commits as it does by itself. So it does where the connection's own options say when."""
        module = address.module()
        self.address = address
        self.max_rows = max_rows
        self.style: str = getattr(module, "paramstyle", "qmark")
        self.errors = (module.Error,)
        self._is_settled = autocommit or "autocommit" in address.options
        self.refusals = (module.IntegrityError, module.DataError)
        try:
            self.connection = module.connect(*([address.url] if address.url else []), **address.options)
        except module.Error as error:
            words = scrubbed(str(error), address.secrets)
            raise ToolFailure("connect", f"no connection by `{address.driver}`: {words}", retryable=True) from None
        except TypeError as error:
            raise ToolFailure("parameters", f"`{address.driver}` does not take these options: {error}") from None

    def begin(self, *, writing: bool) -> None:
        """Of DB-API: a transaction begins with the first statement. A driver that commits each by itself, as Snowflake's does,
        is told not to."""
        if not writing or self._is_settled:
            return
        self._is_settled = True
        setting = getattr(self.connection, "autocommit", None)
        if callable(setting):
            setting(False)
        elif setting is True:
            self.connection.autocommit = False

    def interrupt(self) -> None:
        """Drivers that can be stopped from outside have one of these; another runs to its end."""
        for name in ("interrupt", "cancel"):
            stop = getattr(self.connection, name, None)
            if callable(stop):
                with suppress(Exception):
                    stop()
                return

    def execute(self, statement: Bound) -> Table:
        cursor = self.connection.cursor()
        try:
            text, values = placed(statement, self.style)
            cursor.execute(text) if values is None else cursor.execute(text, values)
            if cursor.description is None:
                return Table(row_count=max(cursor.rowcount, 0))
            return self.fetched(cursor)
        finally:
            cursor.close()

    def upsert(self, step: Upsert) -> Table:
        raise ToolFailure("parameters", "there is no `upsert` that every database knows; hint: write a `MERGE`")

    def failure(self, error: Exception, running: RunningCommand | None) -> ToolFailure:
        kind = "constraint" if isinstance(error, self.refusals) else "database"
        code = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None) or type(error).__name__
        message = scrubbed(" ".join(str(error).split()), self.address.secrets)
        return failure(kind, message, running, {"dbapi": {"code": str(code)}})

    def close(self) -> None:
        with suppress(*self.errors):
            self.connection.close()


@contextmanager
def dbapi_rows(
    address: DriverAddress, statement: Bound, stop: Stop
) -> Iterator[tuple[list[str], Callable[[int], Any]]]:
    """The names of the columns, and what fetches the next rows."""
    session = DbapiSession(address)
    forget = stop.on_stop(session.interrupt)
    try:
        cursor = session.connection.cursor()
        text, values = placed(statement, session.style)
        cursor.execute(text) if values is None else cursor.execute(text, values)
        yield distinct([column[0] for column in cursor.description or []]), cursor.fetchmany
    except session.errors as error:
        raise session.failure(error, None) from None
    finally:
        forget()
        session.rollback()
        session.close()


# ---- ADBC


_GIVE_ROWS = ("select", "with", "values", "table", "show", "describe", "explain")


class AdbcSession(TaskSession):
    """A connection of a driver of ADBC, with the transactions that it has."""

    def __init__(self, address: DriverAddress, max_rows: int = 100_000, *, autocommit: bool = False) -> None:
        import adbc_driver_manager as adbc  # Slow to import: only a connection needs it.

        self.address = address
        self.max_rows = max_rows
        self.errors = (adbc.Error,)
        self._adbc = adbc
        options = {key: str(value) for key, value in address.options.items()}
        connect = address.module().connect
        try:
            self._database = (
                connect(address.url, db_kwargs=options) if address.url is not None else connect(db_kwargs=options)
            )
            self.connection = adbc.AdbcConnection(self._database)
        except adbc.Error as error:
            words = scrubbed(str(error), address.secrets)
            raise ToolFailure("connect", f"no connection by `{address.driver}`: {words}", retryable=True) from None
        self._running: list[Any] = []
        self._is_left = autocommit
        self._is_begun = False

    def begin(self, *, writing: bool) -> None:
        if not (self._is_begun or self._is_left):
            with suppress(self._adbc.NotSupportedError):  # Each statement then commits by itself.
                self.connection.set_autocommit(False)
                self._is_begun = True

    def commit(self) -> None:
        if self._is_begun:
            self.connection.commit()

    def rollback(self) -> None:
        if self._is_begun:
            with suppress(*self.errors):
                self.connection.rollback()

    def interrupt(self) -> None:
        for statement in self._running:
            with suppress(*self.errors):
                statement.cancel()

    @contextmanager
    def statement(self, text: str | None = None) -> Iterator[Any]:
        statement = self._adbc.AdbcStatement(self.connection)
        self._running.append(statement)
        try:
            if text is not None:
                statement.set_sql_query(text)
            yield statement
        finally:
            self._running.remove(statement)
            statement.close()

    @contextmanager
    def rows(self, statement: Bound) -> Iterator[Any]:
        """Something with `__arrow_c_stream__`, to be read once while the block runs."""
        text, values = placed(statement, "qmark")
        with self.statement(text) as running:
            if values:
                running.prepare()
                running.bind_stream(_bound(values))
            stream, _ = running.execute_query()
            yield stream

    def execute(self, statement: Bound) -> Table:
        import duckdb  # Slow to import: only a query needs it.

        if statement.verb not in _GIVE_ROWS and "returning" not in statement.words:
            text, values = placed(statement, "qmark")
            with self.statement(text) as running:
                if values:
                    running.prepare()
                    running.bind_stream(_bound(values))
                return Table(row_count=max(running.execute_update() or 0, 0))
        with self.rows(statement) as stream, duckdb.connect() as reader:
            reader.execute("SET TimeZone = 'UTC'")
            reader.register("found", stream.__arrow_c_stream__())
            return self.fetched(reader.execute("SELECT * FROM found"), None)

    def ingest(self, table: str, stream: Any) -> int:
        """Rows are added to a table."""
        schema, _, name = table.rpartition(".")
        with self.statement() as running:
            given = {"adbc.ingest.target_table": name, "adbc.ingest.mode": "adbc.ingest.mode.append"}
            running.set_options(**given, **({"adbc.ingest.target_db_schema": schema} if schema else {}))
            running.bind_stream(stream.__arrow_c_stream__())
            return max(running.execute_update() or 0, 0)

    def upsert(self, step: Upsert) -> Table:
        raise ToolFailure("parameters", "there is no `upsert` that every database knows; hint: write a `MERGE`")

    def failure(self, error: Exception, running: RunningCommand | None) -> ToolFailure:
        state = getattr(error, "sqlstate", None)
        status = str(getattr(getattr(error, "status_code", None), "name", "")).lower()
        refused = (self._adbc.IntegrityError, self._adbc.DataError)
        kind = "constraint" if isinstance(error, refused) or (state or "")[:2] in ("22", "23") else "database"
        message = scrubbed(" ".join(str(error).split()), self.address.secrets)
        return failure(kind, message, running, {"adbc": {"code": state or status or None}})

    def close(self) -> None:
        with suppress(*self.errors):
            self.connection.close()
            self._database.close()


def _bound(values: Sequence[Any]) -> Any:
    """One row of values as an Arrow stream."""
    import duckdb  # Slow to import: only a query needs it.

    places = ", ".join(f"${index + 1} AS p{index}" for index in range(len(values)))
    return duckdb.connect().sql(f"SELECT {places}", params=list(values)).__arrow_c_stream__()


def session_of(
    address: DriverAddress, max_rows: int = 100_000, *, autocommit: bool = False
) -> DbapiSession | AdbcSession:
    kind = AdbcSession if address.kind == "adbc" else DbapiSession
    return kind(address, max_rows, autocommit=autocommit)


class DriverParams(SqlParams, kw_only=True, forbid_unknown_fields=True):
    auth: Auth = None
    autocommit: bool = False


class DriverTool(Tool[DriverParams]):
    """Run SQL through a driver by the name of its module: what components ask of a connection of the kind `adbc` or `dbapi`."""

    kind: ClassVar[str] = "driver"

    async def run(self, params: DriverParams, call: Call) -> object:
        address = driver_address(params.auth, call)
        steps = make_plan(params, Planner(DIALECT, call, own_transactions=params.autocommit))

        def work(stop: Stop) -> Ran:
            session = session_of(address, params.max_rows, autocommit=params.autocommit)
            forget = stop.on_stop(session.interrupt)
            try:
                # A driver begins transactions by itself, and has other ways, or none, to leave that off.
                return run_task(session, steps, stop, None, transaction=True)
            finally:
                forget()
                session.close()

        ran = await interruptible(call, work)
        helpers: dict[str, JsonMap] = {address.kind: {"code": None, **ran.helper}}
        return Success(ran.result, helpers)
