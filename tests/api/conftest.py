"""One server for a whole module, where tests do not get into each other's way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.service import Api, asking


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with asking(tmp_path_factory.mktemp("server")) as api:
        yield api
