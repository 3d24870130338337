"""An author's SQL is bound to the columns it will see, before a row is read.

DuckDB itself does the binding, on empty tables with the columns of the inputs: what it accepts here it will accept in the
run, and the type it finds is the type the run will have. The text is bound as it was written, so that the position of a mistake
is a position in it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

import duckdb
from sqlglot import exp

from penstock.data.failures import Trouble, columns_of, placed_in, plain, rows_failed, trouble, type_trouble_at
from penstock.data.select import cast, expression, query, sql
from penstock.data.sql_rules import MistakeKind, SqlMistake, span
from penstock.data.statements import columns, over, quoted, stored
from penstock.data.types import NOTHING, Bound, MissingColumn, Stuck, bound_under_some_types, has_untyped
from penstock.ports.rows import Column, Schema, SqlText

_NO_SUCH_COLUMN = re.compile(
    r'(?:Table|[Vv]alues list) "(?P<table>.+?)" does not have a column named "(?P<column>.+?)"'
)
_NO_SUCH_TABLE = re.compile(r'Referenced table "(?P<table>.+?)" not found')
_NO_SUCH_FUNCTION = re.compile(r"(?:Scalar |Aggregate |Window )?Function with name (?P<name>\S+) does not exist")
_BAD_CALL = re.compile(r"""(?:argument types '|function call ")(?P<name>[^(]+)\((?P<types>.*?)\)['"]""")
_CANNOT_COMPARE = re.compile(r"Cannot compare values of type (?P<one>.+?) and type (?P<other>.+?) - ")
_NO_SUCH_TYPE = re.compile(r"Type with name (?P<name>\S+) does not exist")
_NOT_GROUPED = re.compile(r'column "(?P<column>.+?)" must appear in the GROUP BY clause')
_WORD = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+(?:\.\w+)*|[^\s\w]+""")
_LITERALS = {"STRING_LITERAL": "a text", "INTEGER_LITERAL": "a whole number", '"NULL"': "NULL"}


def mistake_of(error: duckdb.Error, text: str, start: int, inputs: Mapping[str, Schema]) -> SqlMistake:
    """`start` is where the author's text begins in what was bound, in bytes."""
    found = trouble(error)
    message, hint, kind = _words(found, inputs)
    offset, length = _span(found, text, start)
    return SqlMistake(message, offset, length, hint, kind, missing=_missing(found))


def _missing(trouble: Trouble) -> MissingColumn | None:
    if trouble.subtype == "COLUMN_NOT_FOUND" and trouble.name:
        return MissingColumn(trouble.name.rsplit(".", 1)[-1])
    found = _NO_SUCH_COLUMN.search(trouble.message)
    return None if found is None else MissingColumn(found["column"], found["table"])


def _span(found: Trouble, text: str, start: int) -> tuple[int | None, int]:
    written = text.encode()
    if found.offset is None or not 0 <= found.offset - start <= len(written):
        return None, 1
    at = found.offset - start
    offset = len(written[:at].decode(errors="ignore"))
    if found.length:
        return offset, max(1, len(written[at : at + found.length].decode(errors="ignore").rstrip()))
    word = _WORD.match(text, offset)
    return offset, len(word.group()) if word else 1


def _words(trouble: Trouble, inputs: Mapping[str, Schema]) -> tuple[str, str, MistakeKind]:
    message = trouble.message
    if trouble.subtype == "COLUMN_NOT_FOUND" and trouble.name:
        return _no_column(
            trouble.name.rsplit(".", 1)[-1], [column.name for schema in inputs.values() for column in schema]
        )
    if found := _NO_SUCH_COLUMN.search(message):
        schema = inputs.get(found["table"], ())
        return _no_column(found["column"], [column.name for column in schema], found["table"])
    if found := _NO_SUCH_TABLE.search(message):
        return f"`{found['table']}` is not an input here", _near(found["table"], list(inputs)), "column"
    if found := _NO_SUCH_FUNCTION.search(message):
        near = re.search(r'Did you mean "(.+?)"', message)
        return f"there is no function `{found['name']}`", f"did you mean `{near[1]}`?" if near else "", "value"
    if found := _NO_SUCH_TYPE.search(message):
        return f"there is no type `{found['name']}`", "", "type"
    if found := _NOT_GROUPED.search(message):
        return f"`{found['column']}` stands neither in an aggregate nor in GROUP BY", "", "type"
    if found := _BAD_CALL.search(message):
        return _bad_call(found["name"].strip(), found["types"])
    if found := _CANNOT_COMPARE.search(message):
        return f"{found['one']} and {found['other']} cannot be compared", "cast one of them to the other's type", "type"
    kind: MistakeKind = "syntax" if trouble.type == "Parser" else "type"
    return _plain(message), "", kind


def _plain(text: str) -> str:
    message = plain("sql", text)
    return message[0].lower() + message[1:] if message[:2].istitle() else message


def _no_column(name: str, known: list[str], table: str | None = None) -> tuple[str, str, MistakeKind]:
    where = f" in `{table}`" if table else ""
    if not known:
        return f"there is no column `{name}`{where}", "", "column"
    hint = (
        _near(name, known) or f"there are {', '.join(f'`{one}`' for one in known[:8])}{' …' if len(known) > 8 else ''}"
    )
    return f"there is no column `{name}`{where}", hint, "column"


def _near(name: str, known: list[str]) -> str:
    by_low = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), list(by_low), n=1)
    return f"did you mean `{by_low[near[0]]}`?" if near else ""


def _bad_call(name: str, types: str) -> tuple[str, str, MistakeKind]:
    given = [_LITERALS.get(one.strip(), one.strip()) for one in re.split(r",\s*(?![^(]*\))", types)] if types else []
    what = " and ".join(given) or "nothing"
    verb = "be called with" if name[:1].isalpha() or name[:1] == "_" else "take"
    return f"`{name}` cannot {verb} {what}", "cast to a type that fits", "type"


_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In)
_READ_FROM_TEXT = re.compile(
    r"(?:U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|DOUBLE|FLOAT|DECIMAL.*|DATE|TIME.*|BOOLEAN|UUID|INTERVAL)\Z"
)
_KNOWN_SCHEMAS = 512


@dataclass(frozen=True, slots=True)
class BoundSql:
    """`type` is what a value or an aggregate yields; None for a query, and where there is a mistake."""

    type: str | None = None
    mistake: SqlMistake | None = None


@dataclass(frozen=True, slots=True)
class _Frame:
    """The text around the author's in the statement that is bound."""

    before: str
    after: str

    def around(self, text: str) -> str:
        return f"{self.before}{text}{self.after}"


class Binder:
    """One small database for any number of checks. It may be used from several threads, one check at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[Schema, str] = {}

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "python_enable_replacements": False,
            "errors_as_json": True,
            "threads": 1,
        }
        connection = duckdb.connect(":memory:", config=settings)
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        return connection

    @cached_property
    def _suspects(self) -> frozenset[str]:
        """Functions that are or may be aggregates: macros can contain them."""
        asked = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('aggregate', 'macro')"
        return frozenset(name for (name,) in self._connection.execute(asked).fetchall())

    def check(self, piece: str, form: str, inputs: Mapping[str, Schema]) -> BoundSql:
        """`form` is `value`, `condition`, `aggregate` or `query`, as in UserSql."""
        with self._lock:
            found = self._check(piece, form, inputs)
            if found.mistake is None or not has_untyped(inputs):
                return found

            def bind(typed: Mapping[str, Schema]) -> Bound[BoundSql] | Stuck:
                tried = self._check(piece, form, typed)
                if tried.mistake is None or tried.mistake.kind != "type":
                    return Bound(tried)
                return Stuck(tried.mistake.offset or 0)

            return bound_under_some_types(piece, inputs, bind) or found

    def _check(self, piece: str, form: str, inputs: Mapping[str, Schema]) -> BoundSql:
        try:
            if form == "query":
                self._bind_query(piece, inputs)
                return BoundSql()
            return BoundSql(self._bind_expression(piece, form, inputs))
        except SqlMistake as mistake:
            return BoundSql(mistake=mistake)
        except duckdb.Error as error:
            # Not the author's SQL but the columns it is bound to, such as a type that DuckDB does not know.
            return BoundSql(mistake=SqlMistake(f"the columns of the input: {rows_failed(error).message}", kind="type"))

    def schema(self, query: SqlText, inputs: Mapping[str, Schema]) -> Schema:
        """The columns of a query of a component's own. It may read files, as far as it takes to know their columns."""
        with self._lock:
            statement = over(query, self._sources(inputs))
            try:
                return self._columns(statement)
            except duckdb.Error as error:
                found = self._columns_under_some_types(query, inputs) if has_untyped(inputs) else None
                if found is not None:
                    return found
                with placed_in(query, statement):
                    raise rows_failed(error) from error

    def _columns(self, statement: str) -> Schema:
        return tuple(Column(name, type) for name, type in columns_of(self._connection, statement))

    def _columns_under_some_types(self, query: SqlText, inputs: Mapping[str, Schema]) -> Schema | None:
        def bind(typed: Mapping[str, Schema]) -> Bound[Schema] | Stuck:
            statement = over(query, self._sources(typed))
            try:
                return Bound(self._columns(statement))
            except duckdb.Error as error:
                return Stuck(type_trouble_at(error, statement))

        return bound_under_some_types(query, inputs, bind)

    def close(self) -> None:
        with self._lock:
            if "_connection" in self.__dict__:
                self._connection.close()
                del self.__dict__["_connection"]
            self._tables.clear()

    def _bind_query(self, text: str, inputs: Mapping[str, Schema]) -> None:
        tree = query(text, inputs)
        whole = over("\0", self._sources(inputs)) if inputs else "SELECT * FROM (\n\0\n)"
        self._bind(text, sql(tree), _Frame(*whole.split("\0")), inputs)

    def _bind_expression(self, text: str, form: str, inputs: Mapping[str, Schema]) -> str:
        tree = expression(text, inputs)
        frame = self._frame(inputs)
        aggregate = self._aggregate(tree, frame)
        if form == "aggregate":
            types = self._bind_aggregate(text, tree, frame, inputs)
            if aggregate is None and tree.find(exp.Column):
                hint = "wrap it in `sum`, `max`, `count`, `any_value` …"
                raise SqlMistake("this is not an aggregate: it has a value for each row", 0, len(text), hint, "type")
        else:
            if aggregate is not None:
                message = f"`{aggregate.this}` is an aggregate over many rows: one value for each row is needed here"
                hint = "aggregate first, or say `OVER (…)` to have it beside each row"
                raise SqlMistake(message, *span(aggregate), hint, "type")
            types = self._bind(text, sql(tree), frame, inputs)
        if len(types) != 1:
            raise SqlMistake(f"one value is needed here, and this is {len(types)} columns", 0, len(text), kind="type")
        self._refuse_unreadable_texts(text, tree, frame)
        if form == "condition" and types[0] not in ("BOOLEAN", NOTHING, "NULL"):
            raise SqlMistake(f"a condition is true or false, and this is {types[0]}", 0, len(text), kind="type")
        return types[0]

    def _bind_aggregate(self, text: str, tree: exp.Expr, frame: _Frame, inputs: Mapping[str, Schema]) -> list[str]:
        try:
            return self._bind(text, sql(tree), frame, inputs)
        except SqlMistake as mistake:
            # A column that the rows are grouped by may stand beside an aggregate; by which ones is not known here.
            if "GROUP BY" not in mistake.message:
                raise
            every = ", ".join(f"{quoted(name)}.{quoted(column.name)}" for name in inputs for column in inputs[name])
            return self._bind(text, sql(tree), _Frame(frame.before, f"{frame.after} GROUP BY {every}"), inputs)

    def _bind(self, text: str, written: str, frame: _Frame, inputs: Mapping[str, Schema]) -> list[str]:
        """The types of the columns. What runs is what sqlglot generates; the text itself is bound first to get positions."""
        try:
            return self._types(frame.around(text))
        except duckdb.Error as error:
            try:
                return self._types(frame.around(written))
            except duckdb.Error:
                raise mistake_of(error, text, len(frame.before.encode()), inputs) from error

    def _types(self, statement: str) -> list[str]:
        return [type for _, type in columns_of(self._connection, statement)]

    def _frame(self, inputs: Mapping[str, Schema]) -> _Frame:
        if not inputs:
            return _Frame("SELECT (\n", "\n)")
        tables = ", ".join(
            f"{quoted(name)} AS (SELECT * FROM {source})" for name, source in self._sources(inputs).items()
        )
        return _Frame(f"WITH {tables} SELECT (\n", f"\n) FROM {', '.join(map(quoted, inputs))}")

    def _sources(self, inputs: Mapping[str, Schema]) -> dict[str, str]:
        if len(self._tables) + len(inputs) > _KNOWN_SCHEMAS:
            self._forget_tables()
        return {name: stored(self._table(schema)) for name, schema in inputs.items()}

    def _table(self, schema: Schema) -> str:
        key = tuple(Column(column.name, column.type) for column in schema)
        if key not in self._tables:
            name = f"s{len(self._tables)}"
            self._connection.execute(f"CREATE TABLE {stored(name)} ({columns(key) or '_ VARCHAR'})")
            self._tables[key] = name
        return self._tables[key]

    def _forget_tables(self) -> None:
        for name in self._tables.values():
            self._connection.execute(f"DROP TABLE {stored(name)}")
        self._tables.clear()

    def _aggregate(self, tree: exp.Expr, frame: _Frame) -> exp.Anonymous | None:
        """A call that makes one value of many rows. DuckDB says so itself when it meets one in a WHERE."""
        outer: exp.Expr
        for node in tree.find_all(exp.Anonymous):
            is_suspect = str(node.this).lower() in self._suspects or isinstance(node.parent, exp.WithinGroup)
            if not is_suspect or node.find_ancestor(exp.Window, exp.Query, exp.Lambda):
                continue
            outer = node
            while isinstance(outer.parent, exp.Filter | exp.WithinGroup):
                outer = outer.parent
            if isinstance(outer.parent, exp.Window):
                continue
            try:
                self._types(_Frame(frame.before, f"{frame.after} WHERE ({sql(outer)}) IS NULL").around("1"))
            except duckdb.Error as error:
                if "aggregates" in str(error):
                    return node
        return None

    def _refuse_unreadable_texts(self, text: str, tree: exp.Expr, frame: _Frame) -> None:
        """`amount > 'abc'` binds, and fails on the first row: the text would have to be a number."""
        for node in tree.find_all(*_COMPARISONS):
            sides = [node.this, *(side for side in node.args.values() if isinstance(side, exp.Expr)), *node.expressions]
            texts = [side for side in sides if isinstance(side, exp.Literal) and side.is_string]
            others = [side for side in sides if not isinstance(side, exp.Literal | exp.Null)]
            if texts and others:
                self._refuse_unreadable(text, texts, others[0], frame)

    def _refuse_unreadable(self, text: str, texts: list[exp.Literal], other: exp.Expr, frame: _Frame) -> None:
        try:
            found = self._types(frame.around(sql(other)))[0]
            if not _READ_FROM_TEXT.match(found):
                return
            for literal in texts:
                tried = sql(exp.TryCast(this=literal.copy(), to=cast(exp.null(), found).to))
                if self._connection.execute(f"SELECT {tried} IS NULL").fetchall()[0][0]:
                    raise SqlMistake(
                        f"`{literal.name}` is not a valid {found}", *_where(text, sql(literal)), kind="type"
                    )
        except duckdb.Error:
            # A side that cannot be bound by itself (a lambda's parameter, an outer column) proves nothing.
            return


def _where(text: str, piece: str) -> tuple[int | None, int]:
    at = text.find(piece)
    return (at, len(piece)) if at >= 0 else (None, 1)
