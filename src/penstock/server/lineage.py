"""The columns of a job and what each of them is made of, as one list of steps that can be followed in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.kernel.net import Net, On
from penstock.kernel.values import JsonMap
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from penstock.dialects.job import CompiledJob

Port = tuple[str, str]


def lineage_of(net: Net, compiled: CompiledJob, recorded: Mapping[Port, Schema] | None = None) -> JsonMap:
    """`recorded`: columns as a run had them, for ports that the document alone says nothing about."""
    schemas: dict[Port, Schema] = dict(recorded or {})
    schemas.update({port: schema for port, schema in compiled.schemas.items() if schema})
    columns = {port: _columns(port, schemas, compiled) for port in _ports(net, schemas, compiled)}
    steps = [step for port in columns for step in _made_of(net, compiled, port, columns)]
    steps += [step for name in net.nodes for step in _taken_by(net, name, columns)]
    return {"columns": {f"{name}.{port}": shown for (name, port), shown in columns.items() if shown}, "steps": steps}


def _ports(net: Net, schemas: Mapping[Port, Any], compiled: CompiledJob) -> list[Port]:
    order = {name: number for number, name in enumerate(net.nodes)}
    known = dict.fromkeys([*schemas, *compiled.lineage])
    return sorted((port for port in known if port[0] in order), key=lambda port: order[port[0]])


def _columns(port: Port, schemas: Mapping[Port, Schema | None], compiled: CompiledJob) -> list[Any]:
    found = {column.name: column.type for column in schemas.get(port) or ()}
    found.update({name: "" for name in compiled.lineage.get(port, {}) if name not in found})
    return [{"name": name, "type": type} for name, type in found.items()]


def _made_of(net: Net, compiled: CompiledJob, port: Port, columns: Mapping[Port, list[Any]]) -> list[Any]:
    made = compiled.lineage.get(port, {})
    inside = [
        link
        for link in net.links
        if link.on is On.DATA and (link.target, link.to_port) == port and link.source.startswith(f"{port[0]}.__")
    ]
    found: list[Any] = []
    for column in (str(one["name"]) for one in columns[port]):
        origins = made.get(column) or [(link.source, link.port, column) for link in inside]
        found += [_step(*origin, port[0], port[1], column) for origin in origins]
    return found


def _taken_by(net: Net, name: str, columns: Mapping[Port, list[Any]]) -> list[Any]:
    """What a component that gives no rows out, such as a writer, takes in."""
    if any(port[0] == name for port in columns):
        return []
    return [
        _step(link.source, link.port, str(one["name"]), name, None, str(one["name"]))
        for link in net.links
        if link.on is On.DATA and link.target == name
        for one in columns.get((link.source, link.port), ())
    ]


def _step(
    component: str, port: str, column: str, into_component: str, into_port: str | None, into_column: str
) -> JsonMap:
    return {
        "component": component,
        "port": port,
        "column": column,
        "into_component": into_component,
        "into_port": into_port,
        "into_column": into_column,
    }
