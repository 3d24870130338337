"""A PostgreSQL that runs rows, with a schema of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.data.database.postgres import PostgresEngine
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.tools.sql.postgres_server import PostgresServer
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


@pytest.fixture(scope="module")
def on_postgres(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(tmp_path_factory.mktemp("postgres"), server_at(postgres_server))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def on_duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbEngine]:
    engine = DuckDbEngine(Path(tmp_path_factory.mktemp("duckdb")))
    yield engine
    engine.close()


def server_at(url: str) -> PostgresServer:
    return PostgresServer({"kind": "postgres", "url": url})
