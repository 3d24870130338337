"""The files that a pattern finds, in the order of their paths."""

from __future__ import annotations

import datetime
import glob
import heapq
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

import msgspec

from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Page
from penstock.tools.base import Call, ToolFailure, local_path, os_failure
from penstock.tools.pages.base import Reader
from penstock.tools.parameters import about
from penstock.tools.sql.connection import Stop, interruptible
from penstock.tools.sql.duckdb import MEMORY, DuckdbSession, connect, failure_of
from penstock.tools.sql.results import prefixed

AT_ONCE = 10_000
"""A folder is gone through for so many files: for every page of a loop would be too often."""


class FilesPagesParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[
        str, about("A pattern such as `inbox/*.csv` or `data/**/*.json`, or a folder, relative to the document's.")
    ]
    recursive: Annotated[bool, about("Look into the folders below, too.")] = False


class FilesPages(Reader[FilesPagesParams]):
    """The files that a pattern finds: `{path, name, size, modified}`, sorted by path.

    `*` stands for any part of a name, `?` for one character, `[abc]` for one of some, and `**` for any folders. Folders and
    hidden files are left out. `iter.iter_key` is the path. A file that is moved away or changed after its page was read is still
    an element, with what was known of it then.
    """

    kind: ClassVar[str] = "files"

    def __init__(self, params: FilesPagesParams, call: Call) -> None:
        super().__init__(params, call)
        self._pattern = local_path(params.path, call)

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        page: Page = await self.call.threads.run(self._read, token, max(most, AT_ONCE), until)
        return page

    def _read(self, token: Json, most: int, until: Json) -> Page:
        after, last = cast("str | None", token), cast("str | None", until)
        files = files_of(self._pattern, recursive=self.params.recursive)
        wanted = (path for path in files if (after is None or path > after) and (last is None or path <= last))
        chosen = heapq.nsmallest(most + 1, wanted)
        items = [facts for path in chosen[:most] if (facts := _facts(path)) is not None]
        following = chosen[:most][-1] if chosen else token
        return Page(items, following, len(chosen) <= most, [str(item["path"]) for item in items])


def files_of(pattern: Path, *, recursive: bool = False) -> Iterator[str]:
    """The paths of the files that a pattern finds, in no order."""
    base, below = _cut(pattern)
    try:
        if below is None and not base.is_dir():
            base.stat()
            yield _sayable(str(base))
            return
        with os.scandir(base):  # `glob` is silent about a folder that is not there or may not be read; this is not.
            pass
    except OSError as error:
        raise os_failure(error, base) from error
    parts = (below or Path("*")).parts
    if recursive and "**" not in parts:
        parts = (*parts[:-1], "**", parts[-1])
    for name in glob.iglob(str(Path(*parts)), root_dir=base, recursive=True):
        path = os.path.join(base, name)
        if os.path.isfile(path):
            yield _sayable(path)


def _cut(pattern: Path) -> tuple[Path, Path | None]:
    """The folder that a pattern begins in, and the pattern below it; None when there is nothing to match."""
    parts = pattern.parts
    magic = next((at for at, part in enumerate(parts) if glob.has_magic(part)), None)
    # A file that is called just so is meant, brackets and all.
    if magic is None or pattern.exists():
        return pattern, None
    return Path(*parts[:magic]), Path(*parts[magic:])


def _facts(path: str) -> JsonMap | None:
    """None for what is gone by now."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    modified = datetime.datetime.fromtimestamp(found.st_mtime, datetime.UTC)
    return {
        "path": path,
        "name": os.path.basename(path),
        "size": found.st_size,
        "modified": modified.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


def _sayable(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        shown = path.encode("utf-8", "replace").decode()
        raise ToolFailure("decode", f"`{shown}` has a name that is not UTF-8, and cannot be an element") from error
    return path


# ---- The row groups of Parquet files: the natural parts in which such a file can be read by many.

GROUPS_AT_ONCE = 1_000
# DuckDB gives a row for each column of each row group.
_GROUPS = """\
SELECT row_group_id, any_value(row_group_num_rows)
FROM parquet_metadata($path) GROUP BY row_group_id ORDER BY row_group_id"""


class RowGroupPagesParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[
        str, about("A Parquet file, or a pattern such as `data/*.parquet`, relative to the document's folder.")
    ]


class RowGroupPages(Reader[RowGroupPagesParams]):
    """The row groups of Parquet files: `{path, row_group, rows, first_row}`, sorted by path and number.

    `row_group` and `first_row` count from 0 in each file. Only the end of a file is read to know them. With the `duckdb` tool the
    rows of one are `SELECT * FROM read_parquet(:path, file_row_number = true) WHERE file_row_number >= :first_row AND
    file_row_number < :first_row + :rows`, which passes over the other row groups. `iter.iter_key` is the path and the number.
    """

    kind: ClassVar[str] = "row_groups"

    def __init__(self, params: RowGroupPagesParams, call: Call) -> None:
        super().__init__(params, call)
        self._pattern = local_path(params.path, call)

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        """A token is `[path, row group]` of the last element."""
        return await interruptible(self.call, lambda stop: self._read(token, max(most, GROUPS_AT_ONCE), until, stop))

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
        connection = connect(MEMORY)
        forget = stop.on_stop(connection.interrupt)
        session = DuckdbSession(connection, 0)
        try:
            for path in sorted(files_of(self._pattern)):
                if since is not None and path < since:
                    continue
                stop.check()
                first = 0
                for number, rows in _row_groups(session, path):
                    yield {"path": path, "row_group": number, "rows": rows, "first_row": first}
                    first += rows
        finally:
            forget()
            connection.close()


def _row_groups(session: Any, path: str) -> list[tuple[int, int]]:
    try:
        return [
            (int(number), int(rows)) for number, rows in session.connection.execute(_GROUPS, {"path": path}).fetchall()
        ]
    except session.errors as error:
        raise prefixed(failure_of(error, None), f"`{path}`") from None
