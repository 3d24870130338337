"""The example of every transform runs, and is right before it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.components.registry import TABLE, example_of
from tests.components.harness import REGISTRY, document_of, infer, run_example

TYPES = sorted(type_ for type_, target in TABLE.items() if target.startswith("transform."))


@pytest.mark.parametrize("type_", TYPES)
def test_what_an_example_says_before_the_run_is_what_comes_of_it(type_: str, tmp_path: Path) -> None:
    example = example_of(type(REGISTRY.get(type_)))
    ran = run_example(example, tmp_path)
    for one in document_of(example)["components"]:
        if one["type"] != type_:
            continue
        ports = tuple(ran[one["name"]].outputs)
        found = infer(type_, one.get("params") or {}, ran[one["name"]].given, ports, tmp_path)
        assert found.mistakes == ()
        for port in ports:
            if found.outputs[port] is not None:
                assert found.outputs[port] == ran[one["name"]].schemas[port]
