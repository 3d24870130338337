from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbEngine]:
    """One for the tests of a module: to open it takes longer than most of them."""
    engine = DuckDbEngine(tmp_path_factory.mktemp("rows") / "run")
    yield engine
    engine.close()


@pytest.fixture
def session(engine: DuckDbEngine) -> Iterator[DuckDbSession]:
    """What a test makes in it is dropped at its end."""
    session = engine.session()
    yield session
    session.close(())
