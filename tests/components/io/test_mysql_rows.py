"""How rows reach MariaDB and come from it: by LOAD DATA where it can be, and never at the cost of a file."""

from __future__ import annotations

import datetime
import socket
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import run, schema
from tests.components.io.test_sql import Database
from tests.components.io.test_sql_values import asked, mariadb
from tests.servers import mariadb_server, mariadb_url

__all__ = ["mariadb", "mariadb_server", "mariadb_url"]

MANY = 1_000


def loads(server: Any) -> int:
    server.execute("SHOW GLOBAL STATUS LIKE 'Com_load'")
    return int(server.fetchone()[1])


def test_many_rows_are_loaded_and_few_are_inserted(mariadb: Database) -> None:
    with asked(mariadb) as server:
        server.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        before = loads(server)
        mariadb.write([{"id": number} for number in range(MANY)])
        assert loads(server) > before
        mariadb.write([{"id": MANY}])
        server.execute("SELECT count(*) FROM t")
        assert server.fetchone() == (MANY + 1,)


@pytest.mark.parametrize("setting", ["GLOBAL local_infile = 0", "GLOBAL max_allowed_packet = 1048576"])
def test_what_a_server_does_not_allow_is_not_needed(mariadb: Database, setting: str) -> None:
    rows = [{"id": number, "text": "it's \\ " * 50} for number in range(MANY)]
    name = setting.split()[1]
    with asked(mariadb) as server:
        server.execute(f"SELECT @@{name}")
        (usual,) = server.fetchone()
        server.execute(f"SET {setting}")
        try:
            mariadb.write(rows, mode="replace", keys=["id"])
            mariadb.write(rows, mode="update", keys=["id"])
        finally:
            server.execute(f"SET GLOBAL {name} = {usual}")
    assert mariadb.read("SELECT * FROM t ORDER BY id").main == rows


def test_a_table_in_which_nothing_can_be_taken_back_takes_each_row_once(mariadb: Database) -> None:
    with asked(mariadb) as server:
        server.execute("CREATE TABLE t (price DECIMAL(8,1)) ENGINE = MyISAM")
        mariadb.write([{"price": "1.25"}] * MANY)  # Rounded, which the server remarks on.
        server.execute("SELECT count(*), sum(price) FROM t")
        assert server.fetchone() == (MANY, 1300)


def test_what_is_only_remarked_on_is_written_as_an_insert_writes_it(mariadb: Database) -> None:
    with asked(mariadb) as server:
        server.execute("CREATE TABLE t (price DECIMAL(8,1), bits BIT(8), born YEAR, size ENUM ('2', '1'))")
        rows = [{"price": "1.25", "bits": 5, "born": 0, "size": 1}] * MANY
        mariadb.write(rows, batch_size=600)
        mariadb.write([{**row, "price": "1.3"} for row in rows])
        server.execute("SELECT DISTINCT price, bits + 0, born + 0, size FROM t")
        ((price, *others),) = server.fetchall()
        assert (str(price), others) == ("1.3", [5, 0, "2"])


def test_a_server_that_takes_backslashes_for_themselves_gets_the_same_rows(mariadb: Database) -> None:
    rows = [{"id": number, "text": "a\\b'c\\'"} for number in range(MANY)]
    with asked(mariadb) as server:
        server.execute("SELECT @@sql_mode")
        (usual,) = server.fetchone()
        server.execute("SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES'")
        try:
            mariadb.write(rows, mode="replace", keys=["id"])
            mariadb.write(rows[:9], mode="upsert", keys=["id"], after="INSERT INTO t VALUES (-1, 'a\\b')")
        finally:
            server.execute("SET GLOBAL sql_mode = %s", [usual])
    assert mariadb.read("SELECT * FROM t ORDER BY id").main == [{"id": -1, "text": "a\\b"}, *rows]


def test_a_user_who_may_not_make_temporary_tables_updates_and_deletes_row_by_row(mariadb: Database) -> None:
    with asked(mariadb) as server:
        server.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
        server.execute("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
        name = mariadb.url.partition("?")[0].rpartition("/")[2]
        server.execute("CREATE OR REPLACE USER plain@localhost")
        server.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name}.* TO plain@localhost")
        mariadb.url = mariadb.url.replace("root@", "plain@")
        ran = mariadb.write([{"id": 1, "n": 7}, {"id": 9, "n": 7}], mode="update", keys=["id"])
        assert ran.after["NB_LINE_UPDATED"] == 1
        assert mariadb.write([{"id": 2}, {"id": 9}], mode="delete", keys=["id"]).after["NB_LINE_DELETED"] == 1
        server.execute("SELECT * FROM t ORDER BY id")
        assert server.fetchall() == ((1, 7), (3, 0))


def test_texts_and_bytes_longer_than_a_packet_come_back_as_they_went(mariadb: Database) -> None:
    rows = [{"id": number, "text": "x", "data": b"\0\n'"} for number in range(MANY)]
    rows[7] = {"id": 7, "text": "🚰\\'" * 3_000_000, "data": bytes(range(256)) * 10_000}
    shape = schema(id="INTEGER", text="VARCHAR", data="BLOB")
    with asked(mariadb) as server:
        server.execute("SET GLOBAL max_allowed_packet = 67108864")
        try:
            mariadb.write(rows, [], shape, mode="replace", keys=["id"])
            assert mariadb.read("SELECT * FROM t ORDER BY id").main == rows
        finally:
            server.execute("SET GLOBAL max_allowed_packet = 16777216")


def test_rows_of_mariadb_are_counted_while_they_are_read(mariadb: Database) -> None:
    seen: list[int] = []
    params = {"connection": mariadb.url, "query": "SELECT seq FROM seq_1_to_50", "batch_size": 20}
    run("read_sql", params, folder=mariadb.folder, progress=lambda port, rows: seen.append(rows))
    assert seen == [20, 40, 50]


def test_days_that_never_were_are_no_days(mariadb: Database) -> None:
    with asked(mariadb) as server:
        server.execute("CREATE TABLE t (id INT, day DATE, moment DATETIME)")
        server.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        server.execute("INSERT INTO t VALUES (1, '0000-00-00', '2024-00-01'), (2, '2024-01-31', '2024-01-31 12:00:00')")
        noon = datetime.datetime(2024, 1, 31, 12)
        expected = [(1, None, None), (2, noon.date(), noon)]
        assert mariadb.rows() == expected
        server.execute("INSERT INTO t VALUES (3, '2024-02-30', NULL)")
        assert mariadb.rows() == [*expected, (3, None, None)]


def test_a_query_of_mariadb_that_fails_in_the_middle_says_after_how_many_rows(mariadb: Database) -> None:
    with pytest.raises(ComponentFailure, match=r"after \d+ rows: .*Subquery returns more than 1 row"):
        mariadb.read("SELECT IF(seq = 50000, (SELECT seq FROM seq_1_to_2), seq) AS a FROM seq_1_to_60000")


class Hostile:
    """Stands before a server, and answers one statement by asking for a file of whoever sent it."""

    def __init__(self, folder: Path, server: str, statement: bytes, file: Path) -> None:
        self.path = folder / "hostile"
        self.got = b""
        self._server = server
        self._statement = statement
        self._file = file
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            behind = socket.socket(socket.AF_UNIX)
            behind.connect(self._server)
            threading.Thread(target=self._pass_on, args=(behind, client), daemon=True).start()
            threading.Thread(target=self._watch, args=(client, behind), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), source:  # Either end may be gone.
            while piece := source.recv(1 << 16):
                target.sendall(piece)

    def _watch(self, client: socket.socket, behind: socket.socket) -> None:
        with client:
            while piece := client.recv(1 << 16):
                if self._statement not in piece:
                    behind.sendall(piece)
                    continue
                asked = b"\xfb" + str(self._file).encode()
                client.sendall(len(asked).to_bytes(3, "little") + b"\x01" + asked)
                while more := client.recv(1 << 16):
                    self.got += more
                break
        # Else the server would keep what the connection had locked.
        with suppress(OSError):
            behind.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("statement", ["SELECT 'a word'", "LOAD DATA LOCAL"])
def test_a_server_that_asks_for_a_file_gets_nothing(
    mariadb: Database, mariadb_server: str, tmp_path: Path, statement: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the words of the file")
    hostile = Hostile(tmp_path, mariadb_server, statement.encode(), secret)
    mariadb.write([{"id": -1}], create=True)
    mariadb.url = mariadb.url.partition("?")[0] + f"?unix_socket={hostile.path}"
    rows = [{"id": number} for number in range(MANY)]
    work = partial(mariadb.read, statement) if statement.startswith("SELECT") else partial(mariadb.write, rows)
    with pytest.raises(ComponentFailure, match=r"asked for the file .* of this machine, and gets none"):
        work()
    assert hostile.got == b""
