"""How far a job is, for the components that watch it: log catchers, flow meters, statistics."""

from __future__ import annotations

from penstock.kernel.decision import Decision
from penstock.kernel.net import Net, On
from penstock.kernel.state import ComponentRun, Scope
from penstock.kernel.values import Json, JsonMap


def standing(d: Decision) -> JsonMap:
    components: JsonMap = {}
    _add(d.execution, components, len(d.execution.prefix))
    return {"components": components, "edges": _edges(d.net, components)}


def _add(container: Scope, into: JsonMap, cut: int) -> None:
    """Under their names in the job, without that of the execution it is."""
    component: ComponentRun
    for scope, component in container.runs.items():
        after = component.view.seen().after.get(scope.removeprefix(container.prefix), {})
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
        if component.fan is not None:
            failures: JsonMap = {f"{scope[cut:]}[#{at}]": error for at, error in sorted(component.fan.failures.items())}
            into[scope[cut:]]["failures"] = failures  # type: ignore[index,call-overload]
            for inner in component.fan.open.values():
                _add(inner, into, cut)


def _edges(net: Net, components: JsonMap) -> Json:
    edges: list[Json] = []
    for link in net.links:
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
