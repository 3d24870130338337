"""The API that some examples talk to."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest

from tests.acceptance.examples import EXAMPLES


def api_module() -> Any:
    spec = spec_from_file_location("examples_api", EXAMPLES / "api.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def api() -> Iterator[Any]:
    """The address of the examples' API as `api.url`, and what it was asked for."""
    with api_module().serving() as (url, known):
        known.url = url
        yield known
