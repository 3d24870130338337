"""Rows into a table, batch by batch: all or nothing, or as far as they go.

Law: a batch that fails because of a row is cut in two until that row stands alone. Where somebody reads the rejects
it goes there and the others are written; where nobody does, it is named and everything is taken back. A conflict with
another transaction (a deadlock, a row that both change) begins the transaction anew, as long as none of its own has been
committed. Any other failure that is no row's fault, such as a server that went away, ends the writing at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from penstock.data import select
from penstock.ports.rows import Column, Relation, Schema
from penstock.tools.base import ToolFailure
from penstock.tools.sql.results import code_of, prefixed
from penstock.tools.sql.tables import Change, Table

if TYPE_CHECKING:
    from penstock.components.base import Call
    from penstock.tools.sql.connection import Stop
    from penstock.tools.sql.text import Bound

NUMBER = "penstock_number"
ERRORS: Schema = (Column("error_code", "VARCHAR"), Column("error_message", "VARCHAR"))
_MYSQL_DATA = {
    1048, 1136, 1216, 1264, 1265, 1292, 1364, 1366, 1367, 1406, 1411, 1441, 1452, 1525, 1644, 3140, 3819, 4025,
}  # fmt: skip
_SQLITE_DATA = ("SQLITE_MISMATCH", "SQLITE_TOOBIG", "SQLITE_MISUSE")
_DUCKDB_DATA = ("ConversionException", "OutOfRangeException", "InvalidInputException")


PATIENCE_S = 600.0
"""How long a transaction is retried: the one it conflicts with makes progress meanwhile, and none runs for ever. Of a SQLite
file one transaction at a time may write, and one that is shared lasts as long as its sub-job."""
_LONGEST_PAUSE_S = 1.0


class Pauses:
    """Between two tries: each longer than the last, and none like those of whom it is in conflict with."""

    def __init__(self, stop: Stop, say: Callable[[str], None]) -> None:
        self._stop = stop
        self._say = say
        self._next = 0.02
        self._until = time.monotonic() + PATIENCE_S
        self._has_said = False

    def allow(self, failure: ToolFailure) -> bool:
        """Is it a conflict that another try may not meet? Then this comes back when it is time for it."""
        is_busy, left = code_of(failure).startswith("SQLITE_BUSY"), self._until - time.monotonic()
        if not (is_busy or failure.kind == "serialization") or left <= 0:
            return False
        if is_busy and not self._has_said:
            self._say(f"the database is locked by another transaction, trying again for {left:.0f} s")
            self._has_said = True
        self._stop.wait(random.uniform(self._next / 2, self._next))
        self._next = min(self._next * 2, _LONGEST_PAUSE_S)
        return True


def blames_a_row(failure: ToolFailure) -> bool:
    """Is it a row that the database does not want, rather than all of them?"""
    if failure.kind == "constraint":
        return True
    code = code_of(failure)
    match next(iter(failure.helpers), None):
        case "pg":
            # Without a state it was the driver that could not make anything of a value.
            # 21000: two rows of one statement are the same to the server, though not to us.
            return code[:2] in ("22", "44") or code in ("21000", "P0001", "parameters")
        case "mysql":
            return code.isdecimal() and int(code) in _MYSQL_DATA
        case "sqlite":
            return code.startswith(_SQLITE_DATA)
        case _:
            return code in _DUCKDB_DATA


@dataclass(slots=True)
class Loading:
    """One run of writing. `refused` collects (number, code, message) of rows, or is None when `reject` is not connected."""

    target: Table
    change: Change
    stop: Stop
    say: Callable[[str], None]
    commit_every: int | None
    refused: list[tuple[int, str, str]] | None
    written: int = 0
    committed: int = 0
    before: list[Bound] = field(default_factory=list)
    after: list[Bound] = field(default_factory=list)
    """Statements of the author's, before the first row and after the last."""
    is_alone: bool = True
    """Is the transaction its own? One that is shared cannot begin anew: others have written in it, too."""
    _waiting: int = field(default=0, init=False)
    _has_committed: bool = field(default=False, init=False)

    def run(self, batches: Callable[[], Iterator[tuple[int, Sequence[Any]]]]) -> None:
        """`batches` gives all of them, from the first: (number of the first row, rows). Raises ToolFailure."""
        pauses = Pauses(self.stop, self.say)
        while True:
            try:
                self._try(batches())
            except ToolFailure as failure:
                if not self.is_alone or self._has_committed or not pauses.allow(failure):
                    raise
                self.written = self._waiting = 0
                if self.refused is not None:
                    self.refused.clear()
            else:
                return

    @property
    def _each_batch_by_itself(self) -> bool:
        """Where a batch cannot be taken back and rows may be refused, each batch is a transaction."""
        return not self.target.undoable and self.refused is not None

    def _try(self, batches: Iterator[tuple[int, Sequence[Any]]]) -> None:
        done = False
        try:
            self.target.prepare(self.change)
            self.target.look()
            self._run(self.before)
            if self._each_batch_by_itself:
                self._commit()
            for first, batch in batches:
                self.stop.check()
                self._put(first, batch)
                if self.commit_every is not None and self._waiting >= self.commit_every:
                    self._commit()
            self.stop.check()
            self._run(self.after)
            self._commit()
            done = True
        except self.target.errors as error:
            raise self._described(self.target.failure(error)) from None
        except ToolFailure as failure:
            raise self._described(failure) from None
        finally:
            if not done:
                self.target.abort()

    def _run(self, statements: Sequence[Bound]) -> None:
        for statement in statements:
            self.stop.check()
            try:
                self.target.run(statement)
            except self.target.errors as error:
                raise prefixed(self.target.failure(error), f"`{statement.excerpt}`") from None

    def _commit(self) -> None:
        self.target.commit()
        self.committed = self.written
        self._has_committed = True
        self._waiting = 0

    def _put(self, first: int, batch: Sequence[Any]) -> None:
        pauses = Pauses(self.stop, self.say)
        while not self._is_put(first, batch, pauses):
            self.stop.check()

    def _is_put(self, first: int, batch: Sequence[Any], pauses: Pauses) -> bool:
        """False: another transaction was in the way of this one batch, which is a transaction too."""
        self.target.mark()
        try:
            changed = self.target.write(batch)
        except self.target.errors as error:
            failure = self.target.failure(error)
            if self._each_batch_by_itself and pauses.allow(failure):
                self.target.undo()
                return False
            if not blames_a_row(failure) or not (self.target.undoable or self.refused is not None):
                raise failure from None
            self.target.undo()
            self._apart(first, batch, failure)
        else:
            self.target.release()
            self.written += changed
            self._waiting += len(batch)
            if self._each_batch_by_itself:
                self._commit()
        return True

    def _apart(self, first: int, batch: Sequence[Any], failure: ToolFailure) -> None:
        if len(batch) > 1:
            half = len(batch) // 2
            self._put(first, batch[:half])
            self._put(first + half, batch[half:])
        elif self.refused is not None:
            self.refused.append((first, code_of(failure), failure.message))
        else:
            failure.detail["row"] = first
            raise prefixed(failure, f"row {first}") from None

    def _described(self, failure: ToolFailure) -> ToolFailure:
        message = f"writing to `{self.change.table}`: {failure.message}{self._hint(failure)}"
        if self.committed:
            message += f" ({self.committed} rows before it are committed)"
        described = ToolFailure(failure.kind, message, retryable=failure.retryable, helpers=failure.helpers)
        described.detail.update({**failure.detail, "committed": self.committed, "code": code_of(failure)})
        return described

    def _hint(self, failure: ToolFailure) -> str:
        code = code_of(failure)
        if code == "42P10" or ("UNIQUE constraint" in failure.message and "ON CONFLICT" in failure.message):
            return "; hint: `upsert` needs a primary key or unique constraint on the `keys`"
        if failure.kind == "not_found" and "column" in failure.message.lower():
            return "; hint: `columns` says which columns of the input are written, and under which names"
        if failure.kind == "not_found" and not self.change.create and self.change.mode not in ("create", "replace"):
            return "; hint: `create: true` makes a missing table"
        if self.change.mode == "create" and "exist" in failure.message:
            return "; hint: `mode: replace` makes it anew, `mode: insert` adds to it"
        if failure.kind == "constraint" and self.refused is None and self.change.inserts_only:
            return "; hint: connect the `reject` port to go on without such rows, or use `mode: upsert`"
        return ""


def rejected(call: Call, numbered: Relation, refused: list[tuple[int, str, str]]) -> tuple[Relation, Relation]:
    """The rows that were written and those that were refused, out of the numbered rows of the input."""
    schema = (Column(NUMBER, "BIGINT"), *ERRORS)
    errors = call.engine.load(schema, [refused])
    names = [column.name for column in numbered.schema if column.name != NUMBER]
    given = [select.column(name, "given") for name in names]
    details = [select.column(column.name, "errors") for column in ERRORS]
    same = exp.EQ(this=select.column(NUMBER, "given"), expression=select.column(NUMBER, "errors"))
    order = select.column(NUMBER, "given")
    table = select.table("given")
    bad = exp.select(*given, *details).from_(table).join(select.table("errors"), on=same).order_by(order)
    good = exp.select(*given).from_(table.copy()).join(select.table("errors"), on=same.copy(), join_type="anti")
    inputs = {"given": numbered, "errors": errors}
    written = call.engine.select(select.sql(good.order_by(order.copy())), inputs)
    return written, call.engine.select(select.sql(bad), inputs)
