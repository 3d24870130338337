"""The example on each reference page runs, and every parameter and port is explained."""

from __future__ import annotations

from penstock.components.registry import TABLE
from tests.cases import cases
from tests.components.harness import REGISTRY

TYPES = [type for type, target in TABLE.items() if target.startswith(("code.", "quality.", "shape."))]


@cases("type", TYPES)
def test_every_parameter_of_a_component_is_explained(type: str):
    description = REGISTRY.page(type)
    assert description is not None
    assert description.summary
    assert [name for name, info in description.params.items() if not info.description] == []
