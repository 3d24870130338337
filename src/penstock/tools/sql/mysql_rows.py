"""Rows of MySQL and MariaDB as they travel: texts out of a result, and lines into LOAD DATA LOCAL.

Law: no file of this machine is ever read for a server. The protocol lets it answer any statement by asking for any file; what
it gets is the lines that are being sent at that moment, once, and only under the name that they were offered by. If it asks for
anything else, the connection is closed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import Any

from pymysql import err
from pymysql.connections import MAX_PACKET_LEN, Connection, MySQLResult
from pymysql.protocol import LoadLocalPacketWrapper, MysqlPacket

Texts = list[list[bytes | None]]
"""The columns of a batch: what the server wrote of each value, None for NULL."""
_READ_AHEAD = 1 << 18
_BATCH_BYTES = 32 << 20
_PACKET = 1 << 16
"""Bytes: below what any server allows."""
_NULL = 251
_WIDTHS = {252: 2, 253: 3, 254: 8}
_ERROR, _END = 0xFF, 0xFE


class RowsConnection(Connection):
    _offered: tuple[bytes, Iterable[bytes]] | None = None

    def load(self, statement: Callable[[str], str], pieces: Iterable[bytes]) -> tuple[int, int]:
        """`statement` of the name under which the pieces are offered. How many rows came, and how many remarks were made."""
        name = secrets.token_hex(8)
        self._offered = (name.encode(), pieces)
        try:
            rows = self.query(statement(name))
            result: Any = self._result
            return int(rows), int(result.warning_count)
        finally:
            self._offered = None

    def take(self, name: bytes) -> Iterable[bytes]:
        offered, self._offered = self._offered, None
        if offered is None or offered[0] != name:
            self._force_close()  # type: ignore[attr-defined]
            asked = name.decode(errors="replace")
            raise err.OperationalError(1148, f"the server asked for the file `{asked}` of this machine, and gets none")
        return offered[1]

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        self._result = None
        result: Any = _Result(self)
        if unbuffered:
            result.init_unbuffered_query()
        else:
            result.read()
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return result.affected_rows

    def read_ahead(self) -> None:
        """Between two statements, when nothing is on its way."""
        self._rfile.close()  # type: ignore[has-type]
        self._rfile = self._sock.makefile("rb", _READ_AHEAD)  # type: ignore[attr-defined]


class _Result(MySQLResult):
    def _read_load_local_packet(self, first_packet: Any) -> None:
        connection: Any = self.connection
        pieces = connection.take(LoadLocalPacketWrapper(first_packet).filename)
        for piece in pieces:
            for start in range(0, len(piece), _PACKET):
                connection.write_packet(piece[start : start + _PACKET])
        connection.write_packet(b"")  # That was all.
        self._read_ok_packet(connection._read_packet())  # type: ignore[attr-defined]


def fetch(cursor: Any, size: int) -> Texts:
    """The next rows of an unbuffered cursor, column by column; no columns at the end. Fewer than `size` where they are long."""
    result = cursor._result
    connection = result.connection
    if connection is None or not result.unbuffered_active:
        return []
    columns: Texts = [[] for _ in range(result.field_count)]
    appends = [column.append for column in columns]
    read = connection._read_bytes
    rows = taken = 0
    while rows < size and taken < _BATCH_BYTES:
        data = _packet(connection, read)
        if data[0] == _ERROR:
            result.unbuffered_active = False
            MysqlPacket(data, connection.encoding).raise_for_error()
        if data[0] == _END and len(data) < 9:
            result.unbuffered_active = False
            result.connection = None
            break
        at = 0
        for append in appends:
            length = data[at]
            at += 1
            if length < _NULL:
                append(data[at : at + length])
                at += length
            elif length == _NULL:
                append(None)
            else:
                width = _WIDTHS[length]
                start = at + width
                at = start + int.from_bytes(data[at:start], "little")
                append(data[start:at])
        rows += 1
        taken += len(data)
    return columns if rows else []


def _packet(connection: Any, read: Callable[[int], bytes]) -> bytes:
    parts: list[bytes] = []
    while True:
        header = read(4)
        length = header[0] | header[1] << 8 | header[2] << 16
        if header[3] != connection._next_seq_id:
            connection._force_close()
            raise err.OperationalError(2013, "Lost connection to MySQL server during query")
        connection._next_seq_id = (header[3] + 1) % 256
        data = read(length)
        if length < MAX_PACKET_LEN:
            return b"".join([*parts, data]) if parts else data
        parts.append(data)
