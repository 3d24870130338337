"""The rows of a query, from key to key.

Law: a page begins right after the last key of the page before it and is read with that key as a bound value, so it costs the same
at the end of a table as at its beginning, and rows that come or go elsewhere do not move it. Duplicate and null keys would be
passed over in silence, so they are refused.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from penstock.kernel.values import Json, JsonMap
from penstock.ports.ranges import Page
from penstock.tools.base import Call, ToolFailure
from penstock.tools.pages.base import Reader
from penstock.tools.sql.binding import Bound
from penstock.tools.sql.connection import Auth, Database, Host, Password, Port, SslMode, User
from penstock.tools.sql.lexer import Dialect
from penstock.tools.sql.names import quote
from penstock.tools.sql.plan import Bindings, Planner

READING = {"select", "with", "values", "table", "from"}
TIME_LIMIT_S = 600.0


class SqlPagesParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    kind: Annotated[
        Literal["postgres", "mysql", "sqlite", "duckdb"], Meta(description="The SQL tool whose database it is.")
    ]
    query: Annotated[
        str, Meta(description="A query that gives the rows. It needs no order: the key is the order.", min_length=1)
    ]
    key: Annotated[
        str | None,
        Meta(
            description="Needed: a column of the query with a value of its own in every row, such as its primary key."
        ),
    ] = None
    params: Annotated[
        Bindings, Meta(description="Values to bind: a mapping for `:name`, a list for `%s`, `?` or `$1`.")
    ] = None
    args: Annotated[Bindings, Meta(description="The same as `params`.")] = None
    auth: Auth = None
    url: Annotated[str | None, Meta(description="Connection URL, instead of `auth` or the single fields.")] = None
    host: Host = None
    port: Port = None
    user: User = None
    password: Password = None
    database: Database = None
    sslmode: SslMode = None
    path: Annotated[
        str | None, Meta(description="The file of a `sqlite` or `duckdb` database, relative to the document's folder.")
    ] = None
    read_only: Annotated[
        bool,
        Meta(
            description="Open the file of a `sqlite` or `duckdb` database for reading only: several processes can have a DuckDB "
            "file open that way."
        ),
    ] = False
    keep: Annotated[
        bool,
        Meta(
            description="Keep the rows of a page that was read in the result store, so that a shard which is tried again finds "
            "them as they were. If false they are read again, and the shards fail if keys were added or removed among them."
        ),
    ] = True
    timeout: Annotated[float, Meta(description="Seconds that reading one page may take.", gt=0)] = TIME_LIMIT_S


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
    Params: ClassVar[type[msgspec.Struct]] = SqlPagesParams
    example: ClassVar[str] = """\
in:
  sql:
    kind: postgres
    auth: warehouse
    query: SELECT id, customer, amount FROM orders WHERE status = :status
    params: {status: open}
    key: id
"""

    def __init__(self, params: SqlPagesParams, call: Call) -> None:
        super().__init__(params, replace(call, spec={**call.spec, "timeout": params.timeout}))
        self._engine: Engine | None = None
        self._select = _select(params, self.call)

    @property
    def keeps(self) -> bool:
        return self.params.keep

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        from penstock.tools.pages.sql_engines import engine_of

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
