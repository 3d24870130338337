"""The database of one run: its tables, and its limits.

It is an in-memory database with a folder to spill into. Its tables are as fast as temporary tables of a database file and,
other than those, can be seen by every cursor. An ordinary database file writes all rows once more and took 1.3 to 1.5 times
as long, in a job (read, sort, join, aggregate) that spilled five to twelve times its memory limit. Both complete such a
job; of the in-memory one nothing is left behind.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from weakref import WeakSet

import duckdb

from penstock.data.failures import rows_failed
from penstock.data.mounted_files import MountedFiles
from penstock.data.statements import stored, text
from penstock.ports.rows import Column, Parts, RowsFailed, Schema, SqlText

_KNOWN_QUERIES = 4096
_AMOUNT = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<prefix>[KMGT])(?P<binary>i)?)?B\s*\Z", re.IGNORECASE)
_MEMORY_OF_A_THREAD = 64_000_000
"""Bytes. With less, sorts and joins of wide rows cannot even hold what they are working on."""
_TRIES, _PATIENCE = 500, 0.01


@dataclass(frozen=True, slots=True)
class Limits:
    memory: str | None = None
    threads: int | None = None
    spill: str | None = None
    """The size limit of the spill folder, such as `10GB`."""
    in_flight_rows: int | None = None
    in_flight_bytes: int | None = None
    is_offline: bool = False
    """DuckDB opens sockets of its own, whose addresses cannot be checked: so it may open none."""


@contextmanager
def failing_plainly() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise rows_failed(error) from error


class Database:
    place: object = None
    """The database of the author's that it is; None for one of the run's own."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder = folder
        self.spill = folder / "spill"
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._files: dict[str, Path | None] = {}
        self._queries: set[str] = set()
        self._cursors: WeakSet[duckdb.DuckDBPyConnection] = WeakSet()
        self.mounted = MountedFiles()
        self._is_closed = False
        self._frugal = 0
        # DuckDB makes the folder it spills into when it needs it, but none above it.
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RowsFailed("io", f"the run's folder `{folder}` cannot be made: {error.strerror}") from error
        with failing_plainly():
            self._root = self._open(limits)

    def _open(self, limits: Limits) -> duckdb.DuckDBPyConnection:
        settings: dict[str, str | bool | int | float | list[str]] = {
            # Extensions come with the installation or not at all: a job never downloads code on its own.
            "autoinstall_known_extensions": False,
            # A table that is not there must not turn out to be a variable of ours.
            "python_enable_replacements": False,
            "preserve_insertion_order": True,
            "errors_as_json": True,
            # The marks that hold counts in place are samples; none may end up inside a scan.
            "disabled_optimizers": "sampling_pushdown",
        }
        if limits.is_offline:
            settings["autoload_known_extensions"] = False
        if limits.memory is not None:
            settings["memory_limit"] = limits.memory
        settings["threads"] = self._threads = _threads(limits)
        root = duckdb.connect(":memory:", config=settings)
        root.execute("SET GLOBAL TimeZone = 'UTC'")
        if limits.is_offline:
            root.execute("SET GLOBAL disabled_filesystems = 'HTTPFileSystem,S3FileSystem,HuggingFaceFileSystem'")
        root.execute(f"SET GLOBAL temp_directory = {text(str(self.spill))}")
        if limits.spill is not None:
            # DuckDB heeds this one only when it is set after the folder.
            root.execute(f"SET GLOBAL max_temp_directory_size = {text(limits.spill)}")
        return root

    def cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            if self._is_closed:
                raise RowsFailed("interrupted", "the run has ended")
            cursor = self._root.cursor()
            self._cursors.add(cursor)
            return cursor

    @contextmanager
    def frugally(self) -> Iterator[None]:
        """On one thread: slower, and with the least memory in use at once."""
        with self._lock:
            self._frugal += 1
            self._root.execute("SET GLOBAL threads = 1")
        try:
            yield
        finally:
            with self._lock:
                self._frugal -= 1
                if not self._frugal and not self._is_closed:
                    self._root.execute(f"SET GLOBAL threads = {self._threads}")

    def mount(self, files: Sequence[Parts]) -> Callable[[], None]:
        with failing_plainly():
            return self.mounted.mount(self._root, files)

    def new_name(self) -> str:
        name = f"r{next(self._numbers)}"
        with self._lock:
            self._files[name] = None
        return name

    def new_file(self) -> Path:
        self.spill.mkdir(parents=True, exist_ok=True)
        return self.spill / f"{next(self._numbers)}.parquet"

    def name_file(self, path: Path, *, is_ours: bool) -> str:
        """A name for rows in a file; a file of our own is deleted when the rows are dropped."""
        name = f"f{next(self._numbers)}"
        with self._lock:
            self._files[name] = path if is_ours else None
        return name

    def drop(self, name: str) -> None:
        with self._lock:
            if self._is_closed or name not in self._files:
                return
            file = self._files.pop(name)
            cursor = self._root.cursor()
        kind = "VIEW" if name.startswith("f") else "TABLE"
        with failing_plainly():
            cursor.execute(f"DROP {kind} IF EXISTS {stored(name)}")
        cursor.close()
        if file is not None:
            file.unlink(missing_ok=True)

    def one_query(self, query: SqlText) -> SqlText:
        """The query, if it is exactly one; only then may it stand between parentheses."""
        if query in self._queries:
            return query
        with failing_plainly(), self._lock:
            statements = self._root.extract_statements(query)
        # A PIVOT whose columns depend on the rows is several statements in one.
        allowed = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)
        if len(statements) != 1 or statements[0].type not in allowed:
            raise RowsFailed("sql", "this is not one query")
        with self._lock:
            if len(self._queries) >= _KNOWN_QUERIES:
                self._queries.clear()
            self._queries.add(query)
        return query

    def schema(self, cursor: duckdb.DuckDBPyConnection, name: str) -> Schema:
        table = cursor.table(f"main.{name}")
        return tuple(Column(column, str(type)) for column, type in zip(table.columns, table.types, strict=True))

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._files.clear()
            open_still = [*self._cursors, self._root]
            self.mounted.unregister(self._root)
        for cursor in open_still:
            close_cursor(cursor)
        shutil.rmtree(self.spill, ignore_errors=True)


def _threads(limits: Limits) -> int:
    """As many as there are cores, but no more than the memory limit allows."""
    threads = limits.threads or _cores()
    return threads if limits.memory is None else max(1, min(threads, _bytes(limits.memory) // _MEMORY_OF_A_THREAD))


def _cores() -> int:
    """Those this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _bytes(amount: str) -> int:
    found = _AMOUNT.match(amount)
    if found is None:
        raise RowsFailed("settings", f"`{amount}` is not an amount of memory: it is written as `256MB` or `2GB`")
    unit = 1024 if found["binary"] else 1000
    return int(float(found["number"]) * unit ** " KMGT".index((found["prefix"] or " ").upper()))


def close_cursor(cursor: duckdb.DuckDBPyConnection) -> None:
    """Interrupts what runs on the cursor first. A statement that cannot be interrupted ends with its thread."""
    for _ in range(_TRIES):
        interrupt(cursor)
        try:
            cursor.close()
        except duckdb.ResourceInUseException:
            time.sleep(_PATIENCE)
        else:
            return


def interrupt(cursor: duckdb.DuckDBPyConnection) -> None:
    """Stop what runs on a cursor, which may have been closed already."""
    with suppress(duckdb.ConnectionException):
        cursor.interrupt()


def settle(path: Path) -> None:
    """Makes the content of a file and its entry in the folder durable."""
    for one in (path, path.parent):
        handle = os.open(one, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
