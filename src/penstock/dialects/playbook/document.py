"""The root of a playbook: which sections it has, and what kind of document it is."""

from __future__ import annotations

from pathlib import PurePath

from penstock.dialects.playbook.drafts import ExecutorDraft, PlaybookDraft, Site, StepDraft, Where
from penstock.dialects.playbook.fanouts import dotted, read_fanout
from penstock.dialects.playbook.policy import refuse_control
from penstock.dialects.playbook.reader import Reading, did_you_mean, listed
from penstock.dialects.playbook.steps import as_map, read_failure, read_steps
from penstock.dialects.playbook.word import API_VERSIONS
from penstock.dialects.playbook.workbook import Workbook, read_workbook
from penstock.dialects.reader import read_keychain
from penstock.dialects.source.loader import SourceNode
from penstock.dialects.words import INPUT_RULES, OPEN
from penstock.kernel.net import Durability, FailureMode, Limits

_KIND = "Playbook"
_JOB_KINDS = ("Job", "Joblet")


def read_document(reading: Reading, root: SourceNode, file: str) -> tuple[PlaybookDraft, Workbook] | None:
    """None when the document is something else altogether, and reading on would only add noise."""
    if not _is_playbook(reading, root):
        return None
    reading.words(root, "root", skip=("apiVersion", "kind", "workflow"))
    _check_version(reading, root)
    draft = PlaybookDraft(PurePath(file).stem or "playbook", root.place)
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
        draft.keychain_places[str(draft.keychain[-1].get("name"))] = entry.place
    draft.executor = _read_executor(reading, root.get("executor"))
    book = read_workbook(reading, root.get("workbook"))
    draft.steps = _read_workflow(reading, root)
    return draft, book


def _is_playbook(reading: Reading, root: SourceNode) -> bool:
    if root.kind != "mapping":
        hint = "it begins with `apiVersion`, `kind`, `metadata` and `workflow`"
        reading.findings.error("P0001", f"a playbook is a mapping, not {root.noun}", root.place, hint=hint)
        return False
    kind = root.get("kind")
    is_job = "components" in root.entries and "workflow" not in root.entries
    if is_job or (kind is not None and kind.value in _JOB_KINDS):
        place = kind.place if kind is not None else root.keys["components"]
        reading.findings.error("P0006", "this is a job, and this version runs playbooks only", place)
        return False
    if kind is None:
        reading.findings.warning(
            "P0005", "the document does not say what it is", root.place, hint=f"add `kind: {_KIND}`"
        )
    elif kind.value != _KIND:
        label = did_you_mean(str(kind.value), (_KIND, *_JOB_KINDS))
        reading.findings.error(
            "P0005", f"{kind.shown} is not a kind of document", kind.place, label=label, hint=f"write `kind: {_KIND}`"
        )
        return "workflow" in root.entries
    return True


def _check_version(reading: Reading, root: SourceNode) -> None:
    version = root.get("apiVersion")
    if version is None:
        hint = f"add `apiVersion: {API_VERSIONS[0]}`"
        reading.findings.warning(
            "P0003", "the document does not say which version of the language it is in", root.place, hint=hint
        )
    elif version.value not in API_VERSIONS:
        older = str(version.value).startswith("noetl.io/")
        hint = (
            "older playbooks must be rewritten: `validate` names each word"
            if older
            else f"it is one of {listed(API_VERSIONS)}"
        )
        reading.findings.error(
            "P0004", f"{version.shown} is not a version of the language this runs", version.place,
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
            "P0008", f"the playbook has no name: `{draft.name}` is taken", root.place, hint="add `metadata.name`"
        )
    elif named.kind == "scalar":
        draft.name = str(named.value)
    else:
        reading.wrong_shape(named, "`metadata.name`", "text")


def _read_workflow(reading: Reading, root: SourceNode) -> list[StepDraft]:
    node = root.get("workflow")
    if node is None or node.is_null or (node.kind == "sequence" and not node.items):
        place = root.place if node is None else root.keys["workflow"]
        reading.findings.error("P0007", "the playbook has no steps", place, hint="`workflow` is a list of steps")
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
    reading.warn_unrendered(spec, "`spec`", skip="policy")
    entry = spec.get("entry_step")
    entry_name = reading.text(entry, "`entry_step`")
    if entry is not None and entry_name is not None:
        draft.entry = entry_name, entry.place
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
