"""One Spark for all tests of this folder: a Connect server in local mode, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.data.duckdb_engine import DuckDbEngine
from penstock.data.spark.engine import SparkEngine
from penstock.data.spark.server import LocalSpark
from tests.packages import java

# Tiny inputs: what would be many tasks is one, and code is not worth compiling.
CONF = {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}


@pytest.fixture(scope="session")
def spark() -> Iterator[str]:
    """The address of a Spark."""
    java()
    server = LocalSpark("local[1]", {"spark.driver.memory": "1g", "spark.sql.codegen.wholeStage": "false"})
    yield server.remote
    server.stop()


@pytest.fixture(scope="module")
def on_spark(spark: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    engine = SparkEngine(tmp_path_factory.mktemp("spark"), remote=spark, conf=CONF)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def on_duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbEngine]:
    engine = DuckDbEngine(Path(tmp_path_factory.mktemp("duckdb")))
    yield engine
    engine.close()
