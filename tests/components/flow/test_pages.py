"""The reference pages of the orchestration and file components are complete."""

from __future__ import annotations

import yaml

from penstock.components.base import IteratorParams
from penstock.components.registry import TABLE, example_of
from penstock.dialects.job.compile import compile_text
from tests.cases import cases
from tests.components.harness import REGISTRY

TYPES = sorted(type for type, target in TABLE.items() if target.startswith(("flow.", "files.")))
INHERITED = set(IteratorParams.__struct_fields__)


@cases("type", TYPES)
def test_every_component_and_every_parameter_is_explained(type: str) -> None:
    described = REGISTRY.describe(type)
    assert described is not None
    assert described.type == type
    assert described.summary.endswith((".", "…"))
    unexplained = [name for name, info in described.params.items() if not info.description]
    assert set(unexplained) <= INHERITED
    assert all(port.description for port in described.ports.outputs)


@cases("type", TYPES)
def test_every_component_has_an_example_that_compiles_without_a_word(type: str) -> None:
    text = example_of(REGISTRY.get(type).__class__)
    assert type in {one["type"] for one in yaml.safe_load(text)["components"]}
    compiled = compile_text(text, "example.yaml", REGISTRY)
    assert (list(compiled.problems), compiled.net is not None) == ([], True)
