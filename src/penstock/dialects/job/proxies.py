"""How the ends of a link are shown. A joblet call stands for its own boundary in the net; people see the boundary by its name."""

from __future__ import annotations

from penstock.kernel.net import Link, Net, On

JOBLET = "joblet"


def kind_of(net: Net, name: str) -> str:
    return net.nodes[name].tasks[0].kind


def container_of(net: Net, name: str) -> str:
    part = net.nodes[name].part
    return "" if part is None else part.container


def shown_ends(net: Net, link: Link) -> tuple[str, str]:
    """`caller.__proxy_in` where rows enter a joblet, `caller.__proxy_out` where they leave it."""
    source, target = link.source, link.target
    if link.on is not On.DATA:
        return source, target
    if kind_of(net, link.source) == JOBLET:
        inside = container_of(net, link.target) == link.source
        source = f"{source}.__proxy_{'in' if inside else 'out'}"
    if kind_of(net, link.target) == JOBLET:
        inside = container_of(net, link.source) == link.target
        target = f"{target}.__proxy_{'out' if inside else 'in'}"
    return source, target


def link_text(net: Net, link: Link) -> str:
    """A link as it would be written."""
    source, target = shown_ends(net, link)
    if link.on is On.DATA:
        return f"{source}.{link.port} -> {target}.{link.to_port}"
    if link.on is On.IF:
        return f'{source} (if {link.order}: "{link.when}") {target}'
    return f"{source} ({link.on.value}) {target}"
