"""The lowered form of a playbook, as plain JSON in the words of the language: what `penstock plan` prints; and as a picture: what
`penstock graph` draws.

Tasks are in the canonical form with their effective spec, labels made by sugar are visible, and secrets are only named.
"""

from __future__ import annotations

import re

from penstock.dialects.drawing import Card, Line, LineStyle, Picture, shortened
from penstock.dialects.secrets import masked_tree
from penstock.kernel.net import (
    AdmitRule,
    Arc,
    Backoff,
    Do,
    Fan,
    Fanout,
    Gate,
    Limits,
    LoopMode,
    Net,
    Node,
    Rule,
    Task,
    Then,
    Writes,
)
from penstock.kernel.values import Json, JsonMap


def plan(net: Net) -> JsonMap:
    return {
        "name": net.name,
        "digest": net.digest,
        "entry": net.entry,
        "failure": net.failure.value,
        "durability": net.durability.value,
        "strict": net.strict,
        "limits": _limits(net.limits),
        "workload": net.workload,
        # A static entry holds the secret itself, so nothing but name and kind is shown.
        "keychain": [{"name": entry.get("name"), "kind": entry.get("kind")} for entry in net.keychain],
        "steps": masked_tree([_step(node) for node in net.nodes.values()]),
    }


def _limits(limits: Limits) -> JsonMap:
    """Those that a playbook can reach; the others are of jobs."""
    names = ("max_payload_bytes", "max_step_visits", "max_task_runs")
    return {name: getattr(limits, name) for name in names}


def _step(node: Node) -> JsonMap:
    step: JsonMap = {"step": node.name}
    if node.gate is Gate.JOIN:
        step["join"] = list(node.joins)
    if node.admit is not None:
        step["admit"] = [_admit(rule) for rule in node.admit]
    if node.timeout_s is not None:
        step["timeout_s"] = node.timeout_s
    if node.deadline_s is not None:
        step["deadline_s"] = node.deadline_s
    if node.fan is not None:
        step["loop"] = _loop(node.fan)
    step["tool"] = [task_json(task) for task in node.tasks]
    step.update(_set(node.on_done))
    mode = "exclusive" if node.first_only else "inclusive"
    step["next"] = {"mode": mode, "arcs": [_arc(edge) for edge in node.edges]}
    return step


def _admit(rule: AdmitRule) -> JsonMap:
    return {**_when(rule.when), "then": {"allow": rule.allow}}


def _when(condition: str | None) -> JsonMap:
    return {"else": None} if condition is None else {"when": condition}


def _loop(fan: Fan) -> JsonMap:
    return {
        "in": fan.collection,
        "iterator": fan.iterator,
        "mode": fan.mode.value,
        "max_in_flight": fan.max_in_flight,
        "failure": fan.failure.value,
        **({"reducers": dict(fan.reducers)} if fan.reducers else {}),
        **({"fanout": _fanout(fan.fanout)} if fan.fanout is not None else {}),
    }


def _fanout(fanout: Fanout) -> JsonMap:
    """In the words of the language, without defaults."""
    shown = fanout.as_json()
    del shown["reducers"], shown["retries"], shown["losses"]
    # By default a failed range is not retried, and a lost one is.
    return {**shown, **({"max_job_retries": fanout.retries} if fanout.retries == fanout.losses else {})}


def task_json(task: Task) -> JsonMap:
    """A task in the canonical form. `policy` is absent when the author gave none."""
    spec: JsonMap = dict(task.spec)
    if task.rules is not None:
        spec["policy"] = {"rules": [_rule(rule) for rule in task.rules]}
    return {
        "name": task.label,
        "kind": task.kind,
        **task.params,
        **({"spec": spec} if spec else {}),
        **_set(task.on_ok),
    }


def _rule(rule: Rule) -> JsonMap:
    return {**_when(rule.when), "then": _then(rule.then)}


def _then(then: Then) -> JsonMap:
    found: JsonMap = {"do": then.do.value}
    if then.do is Do.RETRY:
        found["attempts"] = then.attempts
        if then.backoff is not Backoff.NONE:
            found["backoff"] = then.backoff.value
        if then.delay:
            found.update({"delay": then.delay, "max_delay": then.max_delay})
        if then.jitter:
            found["jitter"] = then.jitter
    if then.to is not None:
        found["to"] = then.to
    for word, writes in (
        ("set_iter", then.writes.iter),
        ("set_ctx", then.writes.ctx),
        ("append_ctx", then.writes.append),
        ("set_shared", then.writes.shared),
    ):
        if writes:
            found[word] = dict(writes)
    return found


def _set(writes: Writes) -> JsonMap:
    found: dict[str, Json] = {f"ctx.{key}": value for key, value in writes.ctx.items()}
    found.update({f"iter.{key}": value for key, value in writes.iter.items()})
    found.update({f"shared.{key}": value for key, value in writes.shared.items()})
    return {"set": found} if found else {}


def _arc(edge: Arc) -> JsonMap:
    arc: JsonMap = {"step": edge.target}
    if edge.guard is not None:
        arc["when"] = edge.guard
    if edge.args:
        arc["args"] = dict(edge.args)
    return {**arc, **_set(edge.writes)}


_MOST_TASKS = 5
_END_OF_STEP = re.compile(r"""event\.name == (['"])((?:step|loop)\.\w+)\1""")


def card(node: Node) -> Card:
    tasks = [f"{task.label} · {task.kind}" for task in node.tasks]
    if len(tasks) > _MOST_TASKS:
        tasks = [*tasks[: _MOST_TASKS - 1], f"… {len(tasks) - _MOST_TASKS + 1} more"]
    return Card(node.name, tuple(_badges(node)), tuple(shortened(line) for line in tasks))


def _badges(node: Node) -> list[str]:
    found: list[str] = []
    if node.gate is Gate.JOIN:
        found.append(shortened("join " + " + ".join(node.joins)))
    if node.admit is not None:
        found.append("admission")
    if node.fan is not None:
        found.append(shortened(f"loop {node.fan.iterator}, {_how(node.fan)}"))
    if not node.first_only and len(node.edges) > 1:
        found.append("all matching arcs")
    return found


def _how(fan: Fan) -> str:
    if fan.fanout is not None:
        return "fan-out"
    return f"parallel × {fan.max_in_flight}" if fan.mode is LoopMode.PARALLEL else "sequential"


def arc_text(edge: Arc) -> str:
    """The guard without its braces, and ends of steps by their bare names; nothing for an arc without guard."""
    if edge.guard is None:
        return ""
    text = " ".join(edge.guard.split())
    if text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1:
        text = text[2:-2].strip("- ")
    return _END_OF_STEP.sub(r"\2", text)


def is_failure_arc(edge: Arc) -> bool:
    return edge.guard is not None and "step.failed" in edge.guard


_ARC = LineStyle("arc", "#475569", 1.3)


def picture(net: Net) -> Picture:
    return Picture(
        name=net.name,
        cards={name: card(node) for name, node in net.nodes.items()},
        lines=[
            Line(node.name, edge.target, arc_text(edge), _ARC, is_failure_arc(edge), edge.index)
            for node in net.nodes.values()
            for edge in node.edges
        ],
        members=list(net.nodes),
        entry=net.entry,
        styles=(_ARC,),
        has_entry=True,
        letter="s",
        lines_first=False,
        indent=14.0,
        gap_y=80.0,
    )
