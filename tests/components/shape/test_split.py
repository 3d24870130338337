"""`split`: rows find their ports."""

from __future__ import annotations

from typing import Any

from tests.components.harness import REGISTRY, columns, mistakes, run, schema

ROWS = [{"id": 1, "a": 900}, {"id": 2, "a": 20}, {"id": 3, "a": None}]
BY_SIZE = {"conditions": {"output_large": "a > 100", "output_any": "a > 0"}}


def ids(params: Any, rows: Any = ROWS) -> dict[str, list[int]]:
    return {port: [row["id"] for row in found] for port, found in run("split", params, {"input": rows}).outputs.items()}


def test_a_row_goes_to_the_first_port_whose_condition_is_true():
    assert ids(BY_SIZE) == {"output_large": [1], "output_any": [2], "rest": [3]}


def test_a_row_goes_to_all_ports_whose_conditions_are_true():
    assert ids({**BY_SIZE, "mode": "all"}) == {"output_large": [1], "output_any": [1, 2], "rest": [3]}


def test_the_ports_are_those_of_the_conditions():
    assert [port.name for port in REGISTRY.ports("split", BY_SIZE).outputs] == ["output_large", "output_any", "rest"]


def test_chance_decides_once_for_each_row():
    rows = [{"id": n, "a": n} for n in range(1_000)]
    found = ids({"conditions": {"output_a": "random() < 0.5", "output_b": "random() < 0.5"}}, rows)
    assert sorted(id for port in found.values() for id in port) == list(range(1_000))


def test_columns_are_known_before_the_run():
    assert columns("split", BY_SIZE, {"input": schema(id="BIGINT", a="BIGINT")}, "output_any") == {
        "id": "BIGINT",
        "a": "BIGINT",
    }


def test_mistakes_are_found_before_the_run():
    given = {"input": schema(a="BIGINT")}
    (named,) = mistakes("split", {"conditions": {"large": "a > 1"}}, given)
    assert (named.path, named.hint) == (("conditions", "large"), "call it `output_large`")
    (unknown,) = mistakes("split", {"conditions": {"output_x": "b > 1"}}, given)
    assert unknown.path == ("conditions", "output_x")
