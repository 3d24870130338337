"""The example on each reference page runs, and every parameter and port is explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.components.registry import TABLE
from tests.components.harness import REGISTRY, run_example

TYPES = [type for type, target in TABLE.items() if target.startswith(("code.", "quality.", "shape."))]


@pytest.mark.parametrize("type", TYPES)
def test_the_example_of_a_component_runs(type: str, tmp_path: Path):
    description = REGISTRY.page(type)
    assert description is not None
    ran = run_example(description.example, tmp_path)
    assert all(one.outputs is not None for one in ran.values())


@pytest.mark.parametrize("type", TYPES)
def test_every_parameter_of_a_component_is_explained(type: str):
    description = REGISTRY.page(type)
    assert description is not None
    assert description.summary
    assert [name for name, info in description.params.items() if not info.description] == []
