"""How far a job is, for the components that watch it: log catchers, flow meters, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kernel.flow.state import ContainerState
from penstock.kernel.net import On
from penstock.kernel.values import Json, JsonMap

if TYPE_CHECKING:
    from penstock.kernel.flow.decide import Flow


def standing(flow: Flow) -> JsonMap:
    components: JsonMap = {}
    _add(flow.root, components, len(flow.root.prefix))
    return {"components": components, "edges": _edges(flow, components)}


def _add(container: ContainerState, into: JsonMap, cut: int) -> None:
    """Under their names in the job, without that of the execution it is."""
    for scope, component in container.components.items():
        after = component.view.after().get(scope.removeprefix(container.prefix), {})
        into[scope[cut:]] = {
            "state": component.status,
            "type": component.type,
            "rows_in": component.rows_in,
            "rows_out": component.rows_out,
            "ms": after.get("DURATION_MS"),
            "error": component.error,
            "after": after,
        }
        if component.inside is not None:
            _add(component.inside, into, cut)
        if component.iterator is not None:
            failures: JsonMap = {
                f"{scope[cut:]}[#{at}]": error for at, error in sorted(component.iterator.failures.items())
            }
            into[scope[cut:]]["failures"] = failures  # type: ignore[index,call-overload]
            for inner in component.iterator.open.values():
                _add(inner, into, cut)


def _edges(flow: Flow, components: JsonMap) -> Json:
    edges: list[Json] = []
    for link in flow.net.links:
        if link.on is On.DATA:
            source = components.get(link.source)
            counts = source.get("rows_out") if isinstance(source, dict) else None
            rows = counts.get(link.port, 0) if isinstance(counts, dict) else 0
            edges.append(
                {
                    "from": f"{link.source}.{link.port}",
                    "to": f"{link.target}.{link.to_port}",
                    "on": "data",
                    "rows": rows,
                }
            )
        elif not link.hidden:
            edges.append({"from": link.source, "to": link.target, "on": link.on.value})
    return edges
