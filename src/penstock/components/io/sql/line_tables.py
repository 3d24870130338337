"""Tables that take rows as lines of text, which DuckDB has written: of PostgreSQL, and of MySQL and MariaDB."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from penstock.data.row_texts import Text, csv_line, mysql_field, mysql_line
from penstock.ports.rows import Schema
from penstock.tools.sql.tables import SAVEPOINT, Change, MysqlTable, PostgresTable, Row, Table
from penstock.tools.sql.text import insert_into, quote, quote_all, quote_table, table_parts


class LineTable(Table):
    """Each row of a batch is a line, alone in its row."""

    takes_lines = True
    """False: it takes rows of values after all. It is known when the table has been looked at."""

    @abstractmethod
    def line(self, columns: Schema) -> Text:
        """What is to be written for a row of these columns, in the order of the change."""

    def _name(self, name: str) -> str:
        return quote(name, self.dialect)

    def _same(self) -> str:
        return " AND ".join(f"target.{self._name(key)} = stage.{self._name(key)}" for key in self.change.keys)


_PG_STAGE = "pg_temp.penstock_stage"
_PIECE = 2_000


class CopyTable(PostgresTable, LineTable):
    """Batches are lines of text, each a row. Rows that are only added are copied into the table; others into a table beside it,
    which lasts as long as the transaction, and one statement does with all of them what is to be done."""

    has_doubles = False
    """May a key come twice? Then the last of its rows counts, as if they came one after the other."""
    _is_staged = False
    _stage = _PG_STAGE
    """What the statement that changes the table reads the batch from, and the place of a row in it."""
    _place = "ctid"

    def line(self, columns: Schema) -> Text:
        takes_json = zip(self.change.sent, self._as_json, strict=True)
        return csv_line(columns, {name for name, as_json in takes_json if as_json})

    def mark(self) -> None:
        if not self.change.inserts_only and not self._is_staged:
            # Before the savepoint, to which a batch that fails goes back.
            columns = quote_all(self.change.sent, self.dialect)
            table = quote_table(self.change.table, self.dialect)
            self.execute(f"CREATE TEMP TABLE {_PG_STAGE} ON COMMIT DROP AS SELECT {columns} FROM {table} WITH NO DATA")
            self._is_staged = True
        super().mark()

    def write(self, rows: Sequence[Row]) -> int:
        change = self.change
        if change.inserts_only:
            self._copy(rows, quote_table(change.table, self.dialect))
            return len(rows)
        self._copy(rows, _PG_STAGE)
        changed = self._changed()
        self.execute(f"TRUNCATE {_PG_STAGE}")
        # Of two rows with one key, each has been written.
        return len(rows) if change.mode == "upsert" and self.has_doubles and change.changed else changed

    def _copy(self, rows: Sequence[Row], into: str) -> None:
        columns = quote_all(self.change.sent, self.dialect)
        text = f"COPY {into} ({columns}) FROM STDIN (FORMAT csv, ENCODING 'UTF8')"
        with self.connection.cursor() as cursor, cursor.copy(text.encode()) as copy:
            for start in range(0, len(rows), _PIECE):
                copy.write("".join([line for (line,) in rows[start : start + _PIECE]]).encode())

    def _changed(self) -> int:
        change = self.change
        table = quote_table(change.table, self.dialect)
        same = self._same()
        match change.mode:
            case "update":
                values = ", ".join(f"{self._name(name)} = stage.{self._name(name)}" for name in change.changed)
                changed = self._count(
                    f"UPDATE {table} AS target SET {values} FROM {self._source()} AS stage WHERE {same}"
                )
                if not self.has_doubles:
                    return changed
                found = self.connection.execute(
                    f"SELECT count(*) FROM {table} AS target JOIN {self._stage} AS stage ON {same}".encode()
                ).fetchone()
                return int(found[0]) if found else 0
            case "delete":
                return self._count(f"DELETE FROM {table} AS target USING {self._stage} AS stage WHERE {same}")
            case _:
                columns = quote_all(change.sent, self.dialect)
                head = insert_into(change.table, change.sent, self.dialect)
                return self._count(f"{head} SELECT {columns} FROM {self._source()} AS stage{change.tail(self.dialect)}")

    def _source(self) -> str:
        if not self.has_doubles:
            return self._stage
        keys, place = quote_all(self.change.keys, self.dialect), self._place
        # NULL is no key that another could have, too.
        alone = f"CASE WHEN num_nulls({keys}) > 0 THEN {place} END"
        return f"(SELECT DISTINCT ON ({keys}, {alone}) * FROM {self._stage} AS staged ORDER BY {keys}, {alone}, {place} DESC)"

    def _count(self, text: str) -> int:
        return max(self.connection.execute(text.encode()).rowcount, 0)

    def commit(self) -> None:
        super().commit()
        self._is_staged = self._is_staged and self.is_lent

    def abort(self) -> None:
        super().abort()
        self._is_staged = False

    def close(self) -> None:
        if self._is_staged and self.is_lent:
            # The next one to write in this transaction makes its own.
            with suppress(*self.errors):
                self.execute(f"DROP TABLE IF EXISTS {_PG_STAGE}")
        super().close()


_FEW = 500
"""Rows. Below it, LOAD DATA has nothing to win."""
_STATEMENT = 1 << 18
"""Characters, so that no server finds a statement too long that has more than one row."""
_NUMBER = "penstock_number"
_PLACE = "penstock_place"
_ENUM, _SET = 256, 2048
_TAKE_NUMBERS = {0, 1, 2, 3, 4, 5, 8, 9, 15, 245, 246, 249, 250, 251, 252, 253, 254}
_TRANSACTIONAL = (
    "SELECT count(*) FROM information_schema.TABLES AS t JOIN information_schema.ENGINES AS e ON e.ENGINE = t.ENGINE "
    "WHERE e.TRANSACTIONS = 'YES' AND t.TABLE_SCHEMA = coalesce(%s, database()) AND t.TABLE_NAME = %s"
)


class LoadDataTable(MysqlTable, LineTable):
    """Lines are the values of rows. LOAD DATA LOCAL takes them where the server allows it, else INSERTs of many rows.

    LOAD DATA only remarks on what it leaves out or changes, so a batch counts only if all of it arrived and nothing was
    remarked; any other is taken back and inserted, which is strict and says what is wrong. `update` and `delete` are one
    statement for a batch in a temporary table.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._loads = False
        self._is_staged = False
        self._keeps_backslashes = False
        self._takes_numbers: dict[str, bool] = {}
        self._types: dict[str, str] = {}

    def line(self, columns: Schema) -> Text:
        self._types = {column.name: column.type for column in columns}
        return mysql_line(columns)

    def prepare(self, change: Change) -> None:
        super().prepare(change)
        self._is_staged = False

    def look(self) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(self.change.look(self.dialect))
            fields = cursor._result.fields if cursor._result else []  # type: ignore[attr-defined]
        is_text_of_its_own = _ENUM | _SET
        self._takes_numbers = {
            field.name: field.type_code in _TAKE_NUMBERS and not field.flags & is_text_of_its_own for field in fields
        }
        is_local, no_escapes = self._asked("SELECT @@local_infile, @@sql_mode LIKE '%%NO_BACKSLASH_ESCAPES%%'")
        self._keeps_backslashes = bool(no_escapes)
        *schema, table = table_parts(self.change.table)
        # Where nothing can be taken back, nothing may be tried.
        (undoable,) = self._asked(_TRANSACTIONAL, [schema[-1] if schema else None, table])
        self._loads = bool(is_local and undoable)
        if self.change.mode in ("update", "delete"):
            self.takes_lines = self._can_stage()

    def _asked(self, text: str, values: Sequence[Any] = ()) -> Sequence[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(text, list(values))
            return cursor.fetchone() or ()

    def _can_stage(self) -> bool:
        """Not every user may make temporary tables, and not every server counts the rows of a key."""
        try:
            self._stage()
            self.execute(f"SELECT 1 FROM {self._last_of_each()} AS stage")
        except self.errors as error:
            failure = self.failure(error)
            if failure.retryable or not self.connection.open:
                raise
            return False
        return True

    def write(self, rows: Sequence[Row]) -> int:
        if not self.takes_lines:
            return super().write(rows)
        with self._escapes():
            return self._write([line for (line,) in rows])

    def _write(self, lines: list[str]) -> int:
        change = self.change
        into = quote_table(change.table, self.dialect)
        if change.inserts_only:
            self._add(lines, into, lambda: self.execute(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}"))
        elif change.mode == "upsert":
            self._insert(lines, into, change.tail(self.dialect))
        else:
            self._stage()
            self._add(lines, self._stage_name(), self._stage)
            return self._changed(into)
        return len(lines)

    @contextmanager
    def _escapes(self) -> Iterator[None]:
        """A server that is set up to take a backslash for itself is not, as long as lines are sent."""
        if not self._keeps_backslashes:
            yield
            return
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT @@sql_mode")
            (mode,) = cursor.fetchone() or ("",)
            cursor.execute("SET SESSION sql_mode = replace(@@sql_mode, 'NO_BACKSLASH_ESCAPES', '')")
        try:
            yield
        finally:
            with suppress(*self.errors), self.connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_mode = %s", [mode])

    def _add(self, lines: list[str], into: str, undo: Callable[[], None]) -> None:
        if not self._loads or len(lines) < _FEW:
            self._insert(lines, into, "")
        elif not self._is_loaded(lines, into):
            undo()
            self._insert(lines, into, "")
            # It was no error, and what is only remarked on, such as digits that are rounded, would come with each batch.
            self._loads = False

    def _is_loaded(self, lines: list[str], into: str) -> bool:
        pieces = ("".join([*map(_ended, lines[at : at + _FEW])]).encode() for at in range(0, len(lines), _FEW))
        try:
            count, remarks = self.connection.load(lambda name: self._load_data(name, into), pieces)
        except self.errors as error:
            failure = self.failure(error)
            if failure.retryable or not self.connection.open:
                raise
            return False
        return count == len(lines) and not remarks

    def _load_data(self, name: str, into: str) -> str:
        names, made = [], []
        for index, column in enumerate(self.change.sent):
            variable, quoted = f"@penstock_{index}", self._name(column)
            takes_numbers = self._takes_numbers.get(column, False)
            field = mysql_field(self._types[column], variable, takes_numbers=takes_numbers)
            names.append(quoted if field is None else variable)
            made += [] if field is None else [f"{quoted} = {field}"]
        form = r"FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\'' ESCAPED BY '\\' LINES TERMINATED BY '\n'"
        head = f"LOAD DATA LOCAL INFILE '{name}' INTO TABLE {into} CHARACTER SET utf8mb4 {form}"
        return f"{head} ({', '.join(names)})" + (f" SET {', '.join(made)}" if made else "")

    def _insert(self, lines: list[str], into: str, tail: str) -> None:
        head = f"INSERT INTO {into} ({quote_all(self.change.sent, self.dialect)}) VALUES ("
        for piece in _pieces(lines):
            self.connection.query(f"{head}{'),('.join(piece)}){tail}".encode())

    def _stage_name(self) -> str:
        *schema, _ = table_parts(self.change.table)
        return ".".join(self._name(part) for part in [*schema, "penstock_stage"])

    def _stage(self) -> None:
        """A new one for each batch: to empty it would commit. Its columns are those of the table, but for being NOT NULL."""
        stage, table = self._stage_name(), quote_table(self.change.table, self.dialect)
        columns = ", ".join(f"target.{self._name(name)}" for name in self.change.sent)
        self.execute(f"DROP TEMPORARY TABLE IF EXISTS {stage}")
        self._is_staged = True
        self.execute(
            f"CREATE TEMPORARY TABLE {stage} ({_NUMBER} BIGINT AUTO_INCREMENT PRIMARY KEY) "
            f"SELECT {columns} FROM (SELECT 1 AS one) AS nothing LEFT JOIN {table} AS target ON FALSE LIMIT 0"
        )

    def _changed(self, table: str) -> int:
        joined = f"{table} AS target JOIN {{}} AS stage ON {self._same()}"
        stage = self._stage_name()
        if self.change.mode == "delete":
            return self._count(f"DELETE target FROM {joined.format(stage)}")
        values = ", ".join(f"target.{self._name(name)} = stage.{self._name(name)}" for name in self.change.changed)
        keys = quote_all(self.change.keys, self.dialect)
        (are_distinct,) = self._asked(f"SELECT count(DISTINCT {keys}) = count(*) FROM {stage}".replace("%", "%%"))
        if are_distinct:
            return self._count(f"UPDATE {joined.format(stage)} SET {values}")
        self.execute(f"UPDATE {joined.format(self._last_of_each())} SET {values}")
        (found,) = self._asked(f"SELECT count(*) FROM {joined.format(stage)}".replace("%", "%%"))
        return int(found)

    def _last_of_each(self) -> str:
        keys = quote_all(self.change.keys, self.dialect)
        place = f"row_number() OVER (PARTITION BY {keys} ORDER BY {_NUMBER} DESC) AS {_PLACE}"
        numbered = f"(SELECT stage.*, {place} FROM {self._stage_name()} AS stage) AS numbered"
        return f"(SELECT * FROM {numbered} WHERE {_PLACE} = 1)"

    def _count(self, text: str) -> int:
        with self.connection.cursor() as cursor:
            return max(cursor.execute(text), 0)

    def close(self) -> None:
        if self._is_staged and self.is_lent:
            with suppress(*self.errors):
                self.execute(f"DROP TEMPORARY TABLE IF EXISTS {self._stage_name()}")
        super().close()


def _ended(line: str) -> str:
    return f"{line}\n"


def _pieces(lines: list[str]) -> Iterator[list[str]]:
    """Lines for one statement each."""
    piece: list[str] = []
    size = 0
    for line in lines:
        if piece and size + len(line) > _STATEMENT:
            yield piece
            piece, size = [], 0
        piece.append(line)
        size += len(line)
    if piece:
        yield piece
