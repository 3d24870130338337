"""The result store in PostgreSQL: results in pieces of 1 MB, for fleets that have no other store in common.

Law: a result becomes visible in the commit that makes it durable, whole. Equal results are one row, whichever process puts them,
and the server's clock tells the age of that row. The tables are made on first use, in the first schema of the search path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from penstock.adapters.files.blobs import BlobCache, CachedBlobs, missing, pieces
from penstock.adapters.postgres.database import Connection, Tables, bulk_database
from penstock.adapters.sql_files import queries
from penstock.kernel.errors import Unavailable
from penstock.ports.blobs import checksum_of, key_of

STORE = "postgres"
TABLES = Tables(
    "postgres/blobs",
    lock="penstock result store",
    tables=("result_piece",),
    versions=None,
    newer="the results in {place}",
)
SQL = queries(TABLES.store)
PIECES_A_PAGE = 4
KEYS_A_PAGE = 1_000
# Another process may put or remove the same result between two looks at it; then it is looked again.
ATTEMPTS = 100
PATIENCE_SECONDS = 60.0


class PostgresBlobs(CachedBlobs):
    store = STORE

    def __init__(self, url: str, cache: BlobCache | Path, *, patience_s: float = PATIENCE_SECONDS) -> None:
        super().__init__(cache)
        self._database = bulk_database(url, patience_s, TABLES)

    def seen(self, key: str) -> float | None:
        rows = self._rows("seen", _digest(key))
        return float(rows[0][0]) if rows else None

    def size(self, key: str) -> int | None:
        rows = self._rows("size", _digest(key))
        return int(rows[0][0]) if rows else None

    def keys(self, older_than: float) -> Iterator[tuple[str, float]]:
        last = 0
        while page := self._rows("older", last, older_than, KEYS_A_PAGE):
            for last, digest, seen in page:  # noqa: B007 - the last one is where the next page begins
                yield key_of(bytes(digest).hex()), float(seen)

    def tidy(self, older_than: float) -> None:
        """Nothing is left behind by a transaction that did not end."""

    def close(self) -> None:
        self._database.close()

    def _send(self, key: str, file: Path, size: int) -> None:
        for _ in range(ATTEMPTS):
            if self._database.run(partial(self._try_send, key, file, size)):
                return
        raise Unavailable(f"the result `{key}` could not be stored: others put and removed it all the time")

    def _try_send(self, key: str, file: Path, size: int, connection: Connection) -> bool:
        found = connection.execute(SQL["find"], (_digest(key),)).fetchone()
        if found is not None and found[1]:
            return connection.execute(SQL["make_young"], (found[0],)).fetchone() is not None
        with connection.transaction() as transaction:
            if found is not None:
                connection.execute(SQL["delete_damaged"], (found[0],))
            number = self._write_pieces(connection, file)
            is_made = connection.execute(SQL["create"], (number, _digest(key), size)).fetchone() is not None
            transaction.force_rollback = not is_made
        return is_made

    def _write_pieces(self, connection: Connection, file: Path) -> int:
        row = connection.execute(SQL["next_id"]).fetchone()
        assert row is not None
        with connection.cursor() as cursor, cursor.copy(SQL["write_pieces"]) as copy:
            copy.set_types(["int8", "int4", "bytea", "bytea"])
            for number, piece in zip(count(), pieces(file), strict=False):
                copy.write_row((row[0], number, piece, hashlib.sha256(piece).digest()))
        return int(row[0])

    def _bring(self, key: str) -> Iterator[bytes]:
        opened = self._rows("open", _digest(key))
        if not opened:
            raise missing(key, "the database has no such result")
        last = -1
        while page := self._rows("read_pieces", opened[0][0], last, PIECES_A_PAGE):
            for last, body in page:  # noqa: B007 - the last one is where the next page begins
                yield bytes(body)

    def _remove(self, key: str) -> None:
        self._database.run(lambda connection: connection.execute(SQL["delete"], (_digest(key),)))

    def _remove_unless_put_again(self, key: str, seen: float) -> bool:
        statement = SQL["delete_unless_put_again"]
        done = self._database.run(lambda connection: connection.execute(statement, (_digest(key), seen)).rowcount)
        return done > 0

    def _rows(self, name: str, *values: object) -> list[tuple[Any, ...]]:
        # Results are bytes: sent in binary they take half the way.
        return self._database.run(lambda connection: connection.execute(SQL[name], values, binary=True).fetchall())


def _digest(key: str) -> bytes:
    return bytes.fromhex(checksum_of(key))
