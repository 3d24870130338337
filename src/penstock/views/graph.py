"""The ids by which a graph and the state of a run speak of the same edges and frames."""

from __future__ import annotations

from penstock.kernel.net import Net


def arc_id(step: str, index: int) -> str:
    return f"{step}:{index}"


def subjob_frame(name: str) -> str:
    return f"<{name}>"


def frame_of(net: Net, node: str) -> str | None:
    """The frame that a node lies in: the body or joblet around it, else its sub-job if there is more than one."""
    part = net.nodes[node].part
    if part is None:
        return None
    if part.container:
        return part.container
    regions = net.containers[""].regions
    return subjob_frame(regions[part.region].name) if len(regions) > 1 else None
