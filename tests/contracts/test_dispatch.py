from __future__ import annotations

import pytest

from tests.contracts.dispatch_contract import DispatchContract
from tests.contracts.dispatch_scenes import Scene
from tests.contracts.dispatch_stores import MemoryScene, PostgresScene
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


class TestMemoryDispatch(DispatchContract):
    def scene(self) -> Scene:
        return MemoryScene()


class TestPostgresDispatch(DispatchContract):
    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def scene(self) -> Scene:
        return PostgresScene(self.url)
