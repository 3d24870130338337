"""From an entry of `workflow` to a step: admission, loop, pipeline, router."""

from __future__ import annotations

from penstock.dialects.playbook.drafts import StepDraft
from penstock.dialects.playbook.fanouts import LEAST_S, dotted, laid_over, read_concurrency, read_fanout
from penstock.dialects.playbook.loops import read_loop
from penstock.dialects.playbook.policy import read_admission, refuse_control
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.router import read_next
from penstock.dialects.playbook.tasks import read_tool
from penstock.dialects.playbook.writes import read_step_set
from penstock.dialects.source.loader import SourceNode, to_json
from penstock.kernel.net import FailureMode
from penstock.kernel.values import JsonMap


def read_steps(reading: Reading, items: list[SourceNode]) -> list[StepDraft]:
    found: dict[str, StepDraft] = {}
    for item in items:
        step = _read_step(reading, item)
        if step is None:
            continue
        first = found.setdefault(step.name, step)
        if first is not step:
            message = f"two steps are called `{step.name}`"
            reading.findings.error("P0302", message, step.place, hint=f"the first is on line {first.place.line}")
    return list(found.values())


def as_map(node: SourceNode) -> JsonMap:
    value = to_json(node)
    return value if isinstance(value, dict) else {}


def _read_step(reading: Reading, item: SourceNode) -> StepDraft | None:
    if item.kind != "mapping":
        reading.wrong_shape(item, "a step", "a mapping")
        return None
    reading.words(item, "step")
    named = item.get("step")
    name = None if named is None else reading.name(named, "the name of a step")
    # Without a name the rest is still read, so that all its problems come out at once.
    step = StepDraft(name or "step", named.place if named is not None else item.place)
    reading.text(item.get("desc"), "`desc`")
    spec = reading.section(item, "spec", "step_spec")
    if spec is not None:
        _read_spec(reading, spec, step)
    step.loop = read_loop(reading, item.get("loop"), step.sites)
    if step.loop is not None:
        step.fanout = laid_over(step.fanout, step.loop.fanout)
    step.tasks = read_tool(reading, item.get("tool"), step.name)
    step.on_done = read_step_set(reading, item.get("set"), step.sites)
    read_next(reading, item, step)
    step.is_unclear = step.is_unclear or "case" in item.entries
    return None if name is None else step


def _read_spec(reading: Reading, spec: SourceNode, step: StepDraft) -> None:
    step.spec = as_map(spec)
    reading.warn_unrendered(spec, "`spec`", skip="policy")
    read_concurrency(reading, spec.get("concurrency"))
    reading.texts(spec.get("needs"), "`needs`")
    policy = reading.mapping(spec.get("policy"), "`policy`")
    step.fanout = read_fanout(reading, spec, policy)
    for entry in reading.items(spec.get("join"), "`join`"):
        source = reading.text(entry, "an entry of `join`")
        if source is not None and source in step.joins:
            reading.findings.error("P0607", f"`join` names `{source}` twice", entry.place)
        elif source is not None:
            step.joins[source] = entry.place
    if policy is None:
        return
    control = refuse_control(reading, policy, "a step's policy")
    reading.words(policy, "step_policy", skip=[*control, *dotted(policy)])
    admit = policy.get("admit")
    if admit is not None:
        step.admit = read_admission(reading, admit, step.sites)
    lifecycle = reading.section(policy, "lifecycle", "lifecycle")
    if lifecycle is not None:
        step.timeout_s = reading.number(lifecycle.get("timeout_s"), "`timeout_s`")
        step.deadline_s = reading.number(lifecycle.get("deadline_s"), "`deadline_s`")
        reading.number(lifecycle.get("stall_s"), "`stall_s`", LEAST_S)
    step.failure = read_failure(reading, policy)


def read_failure(reading: Reading, policy: SourceNode) -> FailureMode | None:
    failure = reading.section(policy, "failure", "failure")
    return None if failure is None else reading.enum(failure.get("mode"), "a failure mode", FailureMode)
