from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckDbEngine]:
    engine = DuckDbEngine(tmp_path / "run")
    yield engine
    engine.close()


@pytest.fixture
def session(engine: DuckDbEngine) -> DuckDbSession:
    return engine.session()
