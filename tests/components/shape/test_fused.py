"""As stages of a fused query the components give the same rows as by themselves."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.components import runner
from penstock.components.base import PlanCall, Relational
from penstock.components.registry import TABLE
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.ports.rows import EngineSession, Relation, Stage
from tests.components.harness import REGISTRY, run

EVERYTHING = 'SELECT * FROM "it"'


class _Loader(yaml.SafeLoader):
    """YAML 1.1 takes `on` for a boolean; documents do not."""


_Loader.yaml_implicit_resolvers = {
    letter: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:bool"]
    for letter, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), list("tf"))


def _use(type: str) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Parameters and input rows of the component's own example."""
    description = REGISTRY.page(type)
    assert description is not None
    document = yaml.load(description.example, _Loader)
    components = {one["name"]: one for one in document["components"]}
    ((name, used),) = [(name, one) for name, one in components.items() if one["type"] == type]
    links = [link.split(" -> ") for link in document["connections"]["data"]]
    inputs = {
        target.partition(".")[2]: _rows(components[source.partition(".")[0]]["params"])
        for source, target in links
        if target.partition(".")[0] == name
    }
    return used.get("params") or {}, inputs


def _rows(params: dict[str, Any]) -> list[dict[str, Any]]:
    if "rows" not in params:
        return [{"id": n, "amount": n * 12345.678, "day": date(2026, 1, 1)} for n in range(3)]
    return [dict(zip(params["columns"], row, strict=True)) for row in params["rows"]]


def _read(session: EngineSession, relation: Relation) -> list[dict[str, Any]]:
    names = [column.name for column in relation.schema]
    return [dict(zip(names, row, strict=True)) for batch in session.rows(EVERYTHING, {"it": relation}) for row in batch]


def _fused(type: str, params: Any, rows: dict[str, list[dict[str, Any]]], folder: Path) -> tuple[Any, Any]:
    """The rows on each output, and how many each is said to have."""
    component = REGISTRY.get(type)
    outputs = frozenset(port.name for port in component.ports(params).outputs if not port.is_wild)
    engine = DuckDbEngine(folder / "rows")
    session = engine.session()
    try:
        loaded = {port: session.load_mappings([given]) for port, given in rows.items()}
        sources = [Stage(f"from_{port}", {"main": EVERYTHING}, {"it": relation}) for port, relation in loaded.items()]
        inputs = {port: (f"from_{port}", "main") for port in loaded}
        schemas = {port: relation.schema for port, relation in loaded.items()}
        model = REGISTRY.convert(type, params)
        last = runner.stage(component, "it", model, inputs, schemas, PlanCall(folder, outputs), outputs)
        staged = session.fuse([*sources, last])["it"]
        return {port: _read(session, relation) for port, relation in staged.relations.items()}, dict(staged.rows)
    finally:
        session.close()
        engine.close()


def _fusable() -> list[str]:
    found = []
    for type in [type for type, target in TABLE.items() if target.startswith(("code.", "quality.", "shape."))]:
        component = REGISTRY.get(type)
        if isinstance(component, Relational) and type != "assert_rows":
            found.append(type)
    return found


@pytest.mark.parametrize("type", _fusable())
def test_a_fused_component_gives_the_rows_it_gives_alone(type: str, tmp_path: Path):
    params, rows = _use(type)
    alone = run(type, params, rows)
    outputs, counts = _fused(type, params, rows, tmp_path)
    assert outputs == alone.outputs
    assert counts == {port: len(found) for port, found in alone.outputs.items()}
