"""The row groups of Parquet files: the natural parts in which such a file can be read by many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, cast

import msgspec
from msgspec import Meta

from penstock.kernel.values import Json, JsonMap
from penstock.ports.ranges import Page
from penstock.tools.base import Call
from penstock.tools.pages.base import Reader
from penstock.tools.pages.files import files_of
from penstock.tools.paths import local_path
from penstock.tools.sql.blocking import Stop, interruptible

AT_ONCE = 1_000
# DuckDB gives a row for each column of each row group.
_GROUPS = """\
SELECT row_group_id, any_value(row_group_num_rows)
FROM parquet_metadata($path) GROUP BY row_group_id ORDER BY row_group_id"""


class RowGroupPagesParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[
        str,
        Meta(description="A Parquet file, or a pattern such as `data/*.parquet`, relative to the document's folder."),
    ]


class RowGroupPages(Reader[RowGroupPagesParams]):
    """The row groups of Parquet files: `{path, row_group, rows, first_row}`, sorted by path and number.

    `row_group` and `first_row` count from 0 in each file. Only the end of a file is read to know them. With the `duckdb` tool the
    rows of one are `SELECT * FROM read_parquet(:path, file_row_number = true) WHERE file_row_number >= :first_row AND
    file_row_number < :first_row + :rows`, which passes over the other row groups. `iter.iter_key` is the path and the number.
    """

    kind: ClassVar[str] = "row_groups"
    Params: ClassVar[type[msgspec.Struct]] = RowGroupPagesParams
    example: ClassVar[str] = """\
in: {row_groups: "data/*.parquet"}
"""

    def __init__(self, params: RowGroupPagesParams, call: Call) -> None:
        super().__init__(params, call)
        self._pattern = local_path(params.path, call)

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        """A token is `[path, row group]` of the last element."""
        return await interruptible(self.call, lambda stop: self._read(token, max(most, AT_ONCE), until, stop))

    def _read(self, token: Json, most: int, until: Json, stop: Stop) -> Page:
        after, last = (None if mark is None else tuple(cast("list[Any]", mark)) for mark in (token, until))
        items: list[JsonMap] = []
        for item in self._groups(None if after is None else str(after[0]), stop):
            place = (item["path"], item["row_group"])
            if (after is None or place > after) and (last is None or place <= last):
                items.append(item)
            if len(items) > most:
                break
        part = items[:most]
        following: Json = [part[-1]["path"], part[-1]["row_group"]] if part else token
        keys = [f"{item['path']}#{item['row_group']}" for item in part]
        return Page(part, following, len(items) <= most, keys)

    def _groups(self, since: str | None, stop: Stop) -> Iterator[JsonMap]:
        """Of the file `since`, and all behind it."""
        from penstock.tools.sql.duckdb import MEMORY, DuckdbSession, connect

        connection = connect(MEMORY)
        forget = stop.on_stop(connection.interrupt)
        session = DuckdbSession(connection, 0)
        try:
            for path in sorted(files_of(self._pattern)):
                if since is not None and path < since:
                    continue
                stop.check()
                first = 0
                for number, rows in _told(session, path):
                    yield {"path": path, "row_group": number, "rows": rows, "first_row": first}
                    first += rows
        finally:
            forget()
            connection.close()


def _told(session: Any, path: str) -> list[tuple[int, int]]:
    from penstock.tools.sql.failures import prefixed

    try:
        return [
            (int(number), int(rows)) for number, rows in session.connection.execute(_GROUPS, {"path": path}).fetchall()
        ]
    except session.errors as error:
        from penstock.tools.sql.duckdb import failure_of

        raise prefixed(failure_of(error, None), f"`{path}`") from None
