"""Control stores on days when something is wrong with the file or the server."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from penstock.adapters.postgres.control import PostgresControl
from penstock.adapters.sqlite.control import SqliteControl
from penstock.kernel.errors import Unavailable
from penstock.ports.control import ControlStore, Scope
from tests.contracts.control_scenes import NIGHTLY, PUSHED, at_once, filed
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


def use(control: ControlStore) -> None:
    with closing(control):
        filed(control)


# ---- SQLite


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    with closing(SqliteControl(tmp_path / "state", environ={})) as control:
        control.put_hook(replace(PUSHED, secret="s3cret"))
        files = sorted((tmp_path / "state").glob("control.db*"))
        assert [file.name for file in files] == ["control.db", "control.db-shm", "control.db-wal"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_secret_that_was_taken_away_is_not_left_in_the_file(tmp_path: Path) -> None:
    with closing(SqliteControl(tmp_path, environ={})) as control:
        for number in range(20):
            control.put_hook(replace(PUSHED, name=f"h{number}", secret="s3cret"))
        for number in range(20):
            control.drop_hook(f"h{number}")
    assert b"s3cret" not in (tmp_path / "control.db").read_bytes()


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "control.db")) as other:
        other.execute("CREATE TABLE theirs (a)")
    with pytest.raises(Unavailable, match="another program"):
        SqliteControl(tmp_path, environ={})


def test_a_file_that_is_no_database_is_said_to_be_damaged(tmp_path: Path) -> None:
    (tmp_path / "control.db").write_bytes(b"not a database " * 1000)
    with pytest.raises(Unavailable, match="damaged"):
        SqliteControl(tmp_path, environ={})


def test_a_file_of_a_newer_penstock_is_left_alone(tmp_path: Path) -> None:
    use(SqliteControl(tmp_path, environ={}))
    with closing(sqlite3.connect(tmp_path / "control.db")) as other, other:
        other.execute("INSERT INTO control_version (version) VALUES (999)")
    with pytest.raises(Unavailable, match="newer Penstock"):
        SqliteControl(tmp_path, environ={})


def test_a_file_that_stays_locked_is_unavailable_and_can_be_used_again(tmp_path: Path) -> None:
    with closing(SqliteControl(tmp_path, environ={}, patience_s=0.05)) as control:
        control.put_schedule(NIGHTLY)
        with closing(sqlite3.connect(tmp_path / "control.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="locked"):
                control.fired("nightly", 0.0, 1.0)
            assert control.schedules() == [NIGHTLY]
        assert control.fired("nightly", 0.0, 1.0)


def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    at_once(8, lambda _: use(SqliteControl(tmp_path, environ={})))
    with closing(SqliteControl(tmp_path, environ={})) as control:
        assert [one.version for one in control.versions("sales/orders")] == [1]


def test_what_one_machine_needs_loads_neither_psycopg_nor_cryptography(tmp_path: Path) -> None:
    code = (
        "import sys, penstock.adapters.sqlite.control as one; from pathlib import Path; "
        "one.SqliteControl(Path(sys.argv[1]), environ={}).close(); "
        "print(sorted({'psycopg', 'cryptography', 'cronsim', 'fastapi'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


# ---- PostgreSQL


def test_tables_of_a_newer_penstock_are_left_alone(postgres_url: str) -> None:
    use(PostgresControl(postgres_url, environ={}))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO control_version (version) VALUES (999)")
    with pytest.raises(Unavailable, match="newer Penstock"):
        PostgresControl(postgres_url, environ={})


def test_a_new_schema_may_be_opened_by_many_at_once(postgres_url: str) -> None:
    at_once(4, lambda _: use(PostgresControl(postgres_url, environ={})))
    with closing(PostgresControl(postgres_url, environ={})) as control:
        assert [one.version for one in control.versions("sales/orders")] == [1]


def test_a_server_that_is_not_there_is_unavailable_and_no_password_is_shown(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as raised:
        PostgresControl(f"postgresql://ann:s3cret@/penstock?host={tmp_path}", environ={})
    assert "s3cret" not in f"{raised.value.message}{raised.value.hint}"


def test_connections_that_are_cut_are_made_again(postgres_url: str) -> None:
    def cut() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            mine = "SELECT pg_terminate_backend(a.pid, 5000) FROM pg_stat_activity AS a WHERE a.pid = ANY(%s)"
            connection.execute(mine, (backends(control),))

    with closing(PostgresControl(postgres_url, environ={})) as control:
        _, secret = control.add_token("ann", Scope.RUN)
        control.put_schedule(NIGHTLY)
        for turn in range(3):
            cut()
            assert control.token(secret) is not None
            cut()
            assert control.fired("nightly", float(turn), turn + 1.0)
            cut()
            assert filed(control, text=f"text {turn}").version == turn + 1


def backends(control: PostgresControl) -> list[int]:
    """The server processes of the connections that wait for work."""
    return [connection.info.backend_pid for connection in control._database._idle]
