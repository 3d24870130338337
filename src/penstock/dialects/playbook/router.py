"""`next`: the router and its arcs."""

from __future__ import annotations

from penstock.dialects.playbook.drafts import ArcPlaces, Site, StepDraft, Where
from penstock.dialects.playbook.guards import reads_event
from penstock.dialects.playbook.overlay import merged
from penstock.dialects.playbook.policy import refuse_control
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.refused import router_of
from penstock.dialects.playbook.rewrite import yaml_text
from penstock.dialects.playbook.word import ROUTERS
from penstock.dialects.playbook.writes import read_arc_set
from penstock.dialects.source.loader import SourceNode, to_json
from penstock.kernel.net import Edge
from penstock.kernel.values import JsonMap


def read_next(reading: Reading, item: SourceNode, step: StepDraft) -> None:
    node = item.get("next")
    if node is None or node.is_null:
        return
    if node.kind != "mapping":
        what = "a list" if node.kind == "sequence" else f"`{node.value}`"
        reading.findings.error(
            "P0207", f"`next` is {what}, not a router", item.keys["next"],
            hint="`next` is a mapping: `spec.mode` says how arcs are chosen, `arcs` lists them",
            rewrite=yaml_text(router_of(to_json(node))),
        )  # fmt: skip
        step.is_unclear = True
        return
    has_bare_arc = any(key in node.entries for key in ("step", "to", "when"))
    step.is_unclear = has_bare_arc
    reading.words(node, "next", skip=("arcs",) if has_bare_arc else ())
    spec = reading.section(node, "spec", "next_spec")
    if spec is not None:
        step.first_only = reading.choice(spec.get("mode"), "a way to choose arcs", ROUTERS) != "inclusive"
        refuse_control(reading, spec.get("policy"), "a router's policy")
    for arc in reading.items(node.get("arcs"), "`arcs`"):
        _read_arc(reading, arc, step)


def _read_arc(reading: Reading, node: SourceNode, step: StepDraft) -> None:
    if node.kind != "mapping":
        rewrite = yaml_text([{"step": node.value}]) if node.text() else ""
        reading.wrong_shape(node, "an arc", "a mapping", rewrite=rewrite)
        return
    reading.words(node, "arc")
    refuse_control(reading, node.get("spec"), "an arc")
    target = node.get("step")
    name = reading.text(target, "`step`")
    guard_node = node.get("when")
    if guard_node is not None and guard_node.is_null:
        guard_node = None
    guard = reading.condition(guard_node, "`when`")
    if guard is not None and guard_node is not None:
        step.sites.append(Site(guard_node, Where.ARC, is_condition=True))
    args: JsonMap = {}
    args_node = reading.mapping(node.get("args"), "`args`")
    if args_node is not None:
        step.sites.append(Site(args_node, Where.ARC))
        reading.refuse_template_keys(args_node)
        value = to_json(args_node)
        args = value if isinstance(value, dict) else {}
    writes, more = read_arc_set(reading, node.get("set"), step.sites)
    if name is None or target is None:
        return
    takes_failure = guard is not None and reads_event(guard)
    step.edges.append(Edge(len(step.edges), name, guard, merged(args, more), writes, takes_failure))
    step.arc_places.append(ArcPlaces(target.place, guard_node.place if guard_node is not None else node.place))
