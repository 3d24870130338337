"""Rows that a statement claims: a work queue in a table.

Law: a claim is a side effect in somebody's table, so it happens at least once. It is committed, then recorded, and only then are
its rows worked on. What a crash loses is only a claim that was committed and not recorded: its rows stay claimed in the table
until the statement itself frees them, as one does that takes rows whose lease has run out. Recorded rows are read from the
record ever after, by a shard that is tried again, by a resume and by a replay: none of them claims a row again.

Each claim has a name of its own, which the statement may write beside its rows. It keeps the name when it is sent again because
the connection broke: a statement that also takes the rows under its name finds those of a commit that nobody heard of.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Annotated, Any, ClassVar, cast

from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Page
from penstock.ports.results import encode
from penstock.tools.base import Call, Success, Tool, ToolFailure
from penstock.tools.pages.base import Reader
from penstock.tools.pages.sql import TIME_LIMIT_S, DatabaseParams, refuse_foreign
from penstock.tools.parameters import about, convert
from penstock.tools.sql.connection import FIELDS
from penstock.tools.sql.duckdb import DuckdbTool
from penstock.tools.sql.mysql import MysqlTool
from penstock.tools.sql.plan import Bindings
from penstock.tools.sql.postgres import PostgresTool
from penstock.tools.sql.sqlite import SqliteTool
from penstock.tools.sql.text import Dialect, split

TOOLS: dict[str, type[Tool[Any]]] = {
    "postgres": PostgresTool,
    "mysql": MysqlTool,
    "sqlite": SqliteTool,
    "duckdb": DuckdbTool,
}
_WRITES = frozenset({"insert", "update", "delete", "merge", "replace", "create", "alter", "drop", "truncate"})
MOST_ROWS = 10_000
"""More rows of one claim are a failure, and none of them is claimed."""


class ClaimParams(DatabaseParams, kw_only=True, forbid_unknown_fields=True):
    sql: Annotated[
        str,
        about(
            "The statement that claims rows and gives them, such as `UPDATE … RETURNING …`; or several, as one transaction, of "
            "which the last gives them. `:rows` in it is how many it may take, `:claim` the name of this claim.",
            min_length=1,
        ),
    ]
    rows: Annotated[
        int,
        about("How many rows a claim may take: `:rows`, and `{{ __frame_max_rows }}`, in `sql`.", ge=1, le=MOST_ROWS),
    ] = 1
    params: Annotated[
        Bindings, about("Values to bind: a mapping for `:name`; or a list, and then nothing else is bound.")
    ] = None
    key: Annotated[
        str | None, about("The column whose value names a row, as `iter.iter_key`; the first one if left out.")
    ] = None
    timeout: Annotated[float, about("Seconds that one claim may take.", gt=0)] = TIME_LIMIT_S


class ClaimPages(Reader[ClaimParams]):
    """Rows that a statement claims, until it claims none: a work queue in a table.

    The statement is run, and each row that it gives is an element; then it is run again. A local loop has as many claimers
    side by side as it may have iterations in flight; with `loop_mode: fanout` the workers that have room claim in turn. A
    claimer that found nothing tries again when an iteration has ended since, whose work may have made more rows; the loop ends
    when there is nothing to claim and nothing under way. `iter.iter_key` is the value of the column `key`, or of the first one.

    A claim happens at least once: it is committed, then recorded, then worked on. A crash between the first two leaves rows
    claimed that no run knows, so let the statement free rows that were claimed too long ago. A resumed run goes on with the rows
    it had claimed and not finished, then claims more. [How to write such a statement](../how-to/work-queues.md).
    """

    kind: ClassVar[str] = "claim"

    def __init__(self, params: ClaimParams, call: Call) -> None:
        super().__init__(params, replace(call, spec={**call.spec, "timeout": params.timeout}))
        refuse_foreign(params)
        self._tool = TOOLS[params.kind]()
        self._name = _name(call)

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        rows, columns = await self._claimed()
        self._name = _name(self.call)
        if not rows:
            return Page([])
        column = self.params.key if self.params.key is not None else columns[0]
        if column not in columns:
            raise ToolFailure(
                "collection",
                f"the rows of a claim have no column `{column}`, which `key` names; they have "
                f"{', '.join(f'`{name}`' for name in columns)}, and stay claimed",
            )
        return Page(rows, keys=[_text(row[column]) for row in rows])

    async def _claimed(self) -> tuple[list[JsonMap], list[str]]:
        last = split(self.params.sql, Dialect(self.params.kind))[-1:]
        if last and last[0].verb in _WRITES and "returning" not in last[0].words:
            raise _without_rows()  # Once it were committed its rows would be lost.
        try:
            params = convert(self._tool.kind, self._tool.Params, self._values())
            async with await self._turn():
                done = await self._tool.run(params, self.call)
        except ToolFailure as error:
            raise _worded(error) from error
        assert isinstance(done, Success)
        result = cast("dict[str, Any]", done.result)
        if not result["columns"]:
            raise _without_rows()
        return result["rows"], result["columns"]

    async def _turn(self) -> AbstractAsyncContextManager[None]:
        """DuckDB does not wait for another transaction that writes the same rows, but fails: there, claimers wait for each
        other."""
        if self.params.kind != "duckdb":
            return nullcontext()

        async def make() -> tuple[asyncio.Lock, Callable[[], Awaitable[None]]]:
            return asyncio.Lock(), _nothing

        turn: asyncio.Lock = await self.call.resources.get(("claims", self.params.path, str(self.params.auth)), make)
        return turn

    def _values(self) -> dict[str, Any]:
        """The claim as a task of the SQL tool would be written."""
        given = {name: getattr(self.params, name) for name in (*FIELDS, "auth", "connection", "path", "params")}
        values = {name: value for name, value in given.items() if value is not None}
        if not isinstance(self.params.params, list):
            values["args"] = {"rows": self.params.rows, "claim": self._name}
        if self.params.kind == "sqlite":
            values["create"] = False
        return {**values, "query": self.params.sql, "max_rows": MOST_ROWS}


async def _nothing() -> None: ...


def _without_rows() -> ToolFailure:
    return ToolFailure(
        "no_rows",
        "`sql` of a claim must give the rows that it claims, and its last statement gives none; hint: end it with "
        "`RETURNING …`, or let a `SELECT` of the claimed rows follow",
    )


def _name(call: Call) -> str:
    return f"{call.execution_id}/{secrets.token_hex(8)}"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _worded(error: ToolFailure) -> ToolFailure:
    """What goes wrong in a claim, in words of the claim."""
    message = error.message
    if error.kind == "too_large":
        message = f"a claim may take {MOST_ROWS:,} rows, and this one takes more, so none is claimed; hint: write `LIMIT :rows`"
    return ToolFailure(error.kind, message, retryable=error.retryable, helpers=error.helpers, **error.detail)
