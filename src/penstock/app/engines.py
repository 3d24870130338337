"""The engines that rows run on, by the kind that a document chooses. Each is loaded when it is first asked for."""

from __future__ import annotations

from pathlib import Path

from penstock.kernel.errors import Refused
from penstock.ports.rows import Engine, EngineChoice

_OF_DUCKDB = ("memory_limit", "threads", "max_in_flight_rows", "max_in_flight_bytes")


def engine_of(choice: EngineChoice, folder: Path, *, is_offline: bool) -> Engine:
    """Answers `penstock.ports.rows.Engines`. `is_offline`: only checked connections may be opened."""
    if choice.kind == "spark":
        return _spark(choice, folder, is_offline=is_offline)
    if choice.kind == "database":
        return _database(choice, folder, is_offline=is_offline)
    from penstock.data.duckdb_engine import DuckDbEngine  # DuckDB takes long to load, and few components need it.

    told = {name: value for name, value in choice.told if name in _OF_DUCKDB}
    return DuckDbEngine(folder, **told, is_offline=is_offline)


def _spark(choice: EngineChoice, folder: Path, *, is_offline: bool) -> Engine:
    if is_offline:
        raise Refused(
            "the engine `spark` opens connections that cannot be checked, and this installation allows only some addresses",
            "run the sub-job on `duckdb`, or allow all addresses",
        )
    from penstock.data.spark.engine import SparkEngine  # pyspark takes seconds to load.

    return SparkEngine(
        folder,
        remote=choice.get("remote"),
        master=choice.get("master"),
        shared=choice.get("folder"),
        conf={name: str(value) for name, value in choice.get("conf") or ()},
    )


def _database(choice: EngineChoice, folder: Path, *, is_offline: bool) -> Engine:
    if is_offline:
        raise Refused(
            "the engine `database` keeps connections of its own, and this installation allows only some addresses",
            "run the sub-job on `duckdb`, or allow all addresses",
        )
    if choice.dialect == "duckdb":
        from penstock.data.database.duckdb_file import DuckDbFileEngine  # DuckDB takes long to load.
        from penstock.data.duckdb_database import Limits
        from penstock.tools.sql.duckdb import connect
        from penstock.tools.sql.places import place_of_file

        path = choice.login["path"]
        limits = Limits(choice.get("memory_limit"), choice.get("threads"), None, choice.get("max_in_flight_rows"))
        return DuckDbFileEngine(folder, limits, lambda: connect(path), place_of_file(path))
    if choice.dialect == "snowflake":
        from penstock.data.database.snowflake import SnowflakeEngine  # Only jobs in it need it.
        from penstock.tools.sql.snowflake_server import SnowflakeServer

        return SnowflakeEngine(folder, SnowflakeServer(choice.login), memory_limit=choice.get("memory_limit"))
    from penstock.data.database.postgres import PostgresEngine  # psycopg takes long to load.
    from penstock.tools.sql.postgres_server import PostgresServer

    server = PostgresServer(choice.login)
    return PostgresEngine(folder, server, choice.get("schema"), memory_limit=choice.get("memory_limit"))
