"""From a document to the draft of a playbook: its sections, its steps, and the router of each step."""

from __future__ import annotations

from pathlib import PurePath

from penstock.dialects.connections import task_params, write_out_connections
from penstock.dialects.playbook.drafts import ArcPositions, ExecutorDraft, PlaybookDraft, Site, StepDraft, Where
from penstock.dialects.playbook.guards import reads_event
from penstock.dialects.playbook.loops import LEAST_S, dotted, laid_over, read_concurrency, read_fanout, read_loop
from penstock.dialects.playbook.policy import read_admission, refuse_control
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.refused import router_of, yaml_text
from penstock.dialects.playbook.tasks import read_tool
from penstock.dialects.playbook.words import API_VERSIONS, ROUTERS, SQL_KINDS
from penstock.dialects.playbook.workbook import Workbook, read_workbook
from penstock.dialects.playbook.writes import read_arc_set, read_step_set
from penstock.dialects.reader import did_you_mean, listed, read_keychain
from penstock.dialects.source.node import SourceNode, to_json
from penstock.dialects.words import INPUT_RULES, OPEN
from penstock.kernel.net import Arc, Durability, FailureMode, Limits
from penstock.kernel.values import JsonMap, merge_deeply

_KIND = "Playbook"
_JOB_KINDS = ("Job", "Joblet")


def read_document(reading: Reading, root: SourceNode, file: str) -> tuple[PlaybookDraft, Workbook] | None:
    """None when the document is something else altogether, and reading on would only add noise."""
    if not _is_playbook(reading, root):
        return None
    write_out_connections(reading, root, task_params(root, SQL_KINDS))
    reading.words(root, "root", skip=("apiVersion", "kind", "workflow"))
    _check_version(reading, root)
    draft = PlaybookDraft(PurePath(file).stem or "playbook", root.position)
    _read_metadata(reading, root, draft)
    workload = reading.mapping(root.get("workload"), "`workload`")
    if workload is not None:
        draft.workload = as_map(workload)
        reading.warn_unrendered(workload, "`workload`")
    state = reading.mapping(root.get("state"), "`state`")
    if state is not None:
        draft.state = as_map(state)
        reading.state = frozenset(draft.state)
        reading.warn_unrendered(state, "`state`")
    for entry in read_keychain(reading, root.get("keychain")):
        draft.keychain.append(as_map(entry))
        draft.keychain_sites.append(Site(entry, Where.KEYCHAIN))
        draft.keychain_positions[str(draft.keychain[-1].get("name"))] = entry.position
    draft.executor = _read_executor(reading, root.get("executor"))
    book = read_workbook(reading, root.get("workbook"))
    draft.steps = _read_workflow(reading, root)
    return draft, book


def _is_playbook(reading: Reading, root: SourceNode) -> bool:
    if root.kind != "mapping":
        hint = "it begins with `apiVersion`, `kind`, `metadata` and `workflow`"
        reading.findings.error("P0001", f"a playbook is a mapping, not {root.noun}", root.position, hint=hint)
        return False
    kind = root.get("kind")
    is_job = "components" in root.entries and "workflow" not in root.entries
    if is_job or (kind is not None and kind.value in _JOB_KINDS):
        position = kind.position if kind is not None else root.keys["components"]
        reading.findings.error("P0006", "this is a job, and this version runs playbooks only", position)
        return False
    if kind is None:
        reading.findings.warning(
            "P0005", "the document does not say what it is", root.position, hint=f"add `kind: {_KIND}`"
        )
    elif kind.value != _KIND:
        label = did_you_mean(str(kind.value), (_KIND, *_JOB_KINDS))
        reading.findings.error(
            "P0005",
            f"{kind.shown} is not a kind of document",
            kind.position,
            label=label,
            hint=f"write `kind: {_KIND}`",
        )
        return "workflow" in root.entries
    return True


def _check_version(reading: Reading, root: SourceNode) -> None:
    version = root.get("apiVersion")
    if version is None:
        hint = f"add `apiVersion: {API_VERSIONS[0]}`"
        reading.findings.warning(
            "P0003", "the document does not say which version of the language it is in", root.position, hint=hint
        )
    elif version.value not in API_VERSIONS:
        older = str(version.value).startswith("noetl.io/")
        hint = (
            "older playbooks must be rewritten: `validate` names each word"
            if older
            else f"it is one of {listed(API_VERSIONS)}"
        )
        reading.findings.error(
            "P0004", f"{version.shown} is not a version of the language this runs", version.position,
            label=did_you_mean(str(version.value), API_VERSIONS), hint=f"write `apiVersion: {API_VERSIONS[0]}`; {hint}",
        )  # fmt: skip


def _read_metadata(reading: Reading, root: SourceNode, draft: PlaybookDraft) -> None:
    metadata = reading.mapping(root.get("metadata"), "`metadata`")
    if metadata is not None:
        reading.words(metadata, "metadata", skip=("name",))
        draft.metadata = as_map(metadata)
    named = None if metadata is None else metadata.get("name")
    if named is None or named.is_null:
        reading.findings.note(
            "P0008", f"the playbook has no name: `{draft.name}` is taken", root.position, hint="add `metadata.name`"
        )
    elif named.kind == "scalar":
        draft.name = str(named.value)
    else:
        reading.wrong_shape(named, "`metadata.name`", "text")


def _read_workflow(reading: Reading, root: SourceNode) -> list[StepDraft]:
    node = root.get("workflow")
    if node is None or node.is_null or (node.kind == "sequence" and not node.items):
        position = root.position if node is None else root.keys["workflow"]
        reading.findings.error("P0007", "the playbook has no steps", position, hint="`workflow` is a list of steps")
        return []
    return read_steps(reading, reading.items(node, "`workflow`"))


def _read_executor(reading: Reading, node: SourceNode | None) -> ExecutorDraft:
    draft = ExecutorDraft()
    executor = reading.mapping(node, "`executor`")
    if executor is None:
        return draft
    reading.words(executor, "executor")
    draft.document = as_map(executor)
    spec = reading.section(executor, "spec", "executor_spec")
    if spec is None:
        return draft
    draft.spec = as_map(spec)
    reading.warn_unrendered(spec, "`spec`", skip=("policy",))
    entry = spec.get("entry_step")
    entry_name = reading.text(entry, "`entry_step`")
    if entry is not None and entry_name is not None:
        draft.entry = entry_name, entry.position
    draft.strict = reading.flag(spec.get("strict"), "`strict`", default=False)
    durability = spec.get("durability")
    policy = reading.mapping(spec.get("policy"), "`policy`")
    draft.fanout = read_fanout(reading, spec, policy)
    if policy is not None:
        control = refuse_control(reading, policy, "the executor's policy")
        reading.words(policy, "executor_policy", skip=[*control, *dotted(policy)])
        draft.limits = _read_limits(reading, policy)
        draft.loop_failure = read_failure(reading, policy)
        draft.failure = draft.loop_failure or FailureMode.BEST_EFFORT
        durability = durability or policy.get("durability")
    draft.open_inputs = reading.choice(spec.get("inputs"), "a rule for inputs", INPUT_RULES) == OPEN
    draft.durability = reading.enum(durability, "a durability", Durability) or Durability.GROUPED
    return draft


def _read_limits(reading: Reading, policy: SourceNode) -> Limits:
    limits = Limits()
    section = reading.section(policy, "limits", "limits")
    if section is None:
        return limits

    def limit(name: str, default: int) -> int:
        return reading.whole(section.get(name), f"`{name}`") or default

    return Limits(
        max_payload_bytes=limit("max_payload_bytes", limits.max_payload_bytes),
        max_step_visits=limit("max_step_visits", limits.max_step_visits),
        max_task_runs=limit("max_task_runs", limits.max_task_runs),
    )


# ---- Steps: admission, loop, pipeline, router


def read_steps(reading: Reading, items: list[SourceNode]) -> list[StepDraft]:
    found: dict[str, StepDraft] = {}
    for item in items:
        step = _read_step(reading, item)
        if step is None:
            continue
        first = found.setdefault(step.name, step)
        if first is not step:
            message = f"two steps are called `{step.name}`"
            reading.findings.error("P0302", message, step.position, hint=f"the first is on line {first.position.line}")
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
    position = named.position if named is not None else item.position
    step = StepDraft(name or "step", position, (item.position.line, item.end_line))
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
    reading.warn_unrendered(spec, "`spec`", skip=("policy",))
    read_concurrency(reading, spec.get("concurrency"))
    reading.texts(spec.get("needs"), "`needs`")
    policy = reading.mapping(spec.get("policy"), "`policy`")
    step.fanout = read_fanout(reading, spec, policy)
    for entry in reading.items(spec.get("join"), "`join`"):
        source = reading.text(entry, "an entry of `join`")
        if source is not None and source in step.joins:
            reading.findings.error("P0607", f"`join` names `{source}` twice", entry.position)
        elif source is not None:
            step.joins[source] = entry.position
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


# ---- `next`: the router and its arcs


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
    step.edges.append(Arc(len(step.edges), name, guard, merge_deeply(args, more), writes, takes_failure))
    step.arc_positions.append(
        ArcPositions(target.position, guard_node.position if guard_node is not None else node.position)
    )
