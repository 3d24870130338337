"""From the scopes of a job's log back to the names of its document.

a                 component `a`                  <a>             the sub-job that begins with `a`
j.__a             `a` inside the joblet call `j` it[#3]          iteration 3 of `it`
it[#3].x          `x` in the body of `it`        it[#3].__a      `a` inside the joblet that is the body of `it`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.kernel.net import Link, Net, Opening


def node_of(scope: str) -> str:
    """The component of the document that a scope is a run of."""
    end = scope.rfind("].")
    if end < 0:
        return scope
    rest = scope[end + 2 :]
    if not rest.startswith("__"):
        return rest
    return f"{node_of(scope[: scope.rfind('[#', 0, end)])}.{rest}"


def subjob_name(scope: str) -> str:
    """What people call a sub-job: like its first component; an iteration has its own name."""
    if not scope.endswith(">"):
        return scope
    at = scope.rindex("<")
    around, name = scope[:at], scope[at + 1 : -1]
    if around.endswith("]."):
        name = name.removeprefix(f"{node_of(around[: around.rfind('[#')])}.")
    return around + name


def lane_title(name: str) -> str:
    """What people call the lane of a component, a step or a sub-job."""
    return f"sub-job {subjob_name(name)}" if name.startswith("<") else name.rpartition(".__")[2]


def iteration_of(scope: str) -> str | None:
    """The iteration that a scope lies in, the innermost; of an iteration itself, that which its iterator lies in."""
    end = scope.rfind("].")
    return scope[: end + 1] if end >= 0 else None


def is_of_component(scope: str, name: str) -> bool:
    """Does a scope lie in what `name` calls: a component, all runs of one, an iteration, a joblet call?"""
    scope = scope.partition("/")[0]
    return name in (scope, node_of(scope)) or scope.startswith((f"{name}.", f"{name}["))


def caller_of(node: str) -> str | None:
    """The joblet call around a component, by its name alone."""
    call, inside, _ = node.rpartition(".__")
    return call if inside else None


def shown_links(links: Iterable[Link]) -> list[Link]:
    """Those that the author wrote, or that joblets are wired with."""
    return [link for link in links if not link.hidden]


def outside_bodies(net: Net) -> list[str]:
    """The components that run at most once: all but those in the bodies of iterators, in the order of the document."""
    known: dict[str, bool] = {"": False}

    def is_repeated(key: str) -> bool:
        if key not in known:
            part = net.nodes[key].part
            is_body = net.containers[key].opening is Opening.BODY
            known[key] = is_body or (part is not None and is_repeated(part.container))
        return known[key]

    return [name for name, node in net.nodes.items() if node.part is not None and not is_repeated(node.part.container)]


def counted_ports(rows: Mapping[str, int]) -> str:
    """`main 12, reject 3`; a single main port goes without its name."""
    if set(rows) <= {"main"} or set(rows) <= {"input"}:
        return "".join(f"{count:,}" for count in rows.values())
    return ", ".join(f"{port} {count:,}" for port, count in rows.items())
