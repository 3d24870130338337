"""From `tool` to a list of tasks: four shapes, one form.

    - {name: x, kind: …}        canonical
    - {kind: …}                 unnamed: task_0, task_1 … by position
    - x: {kind: …}              label map: read, with a warning that shows the rewrite
    {kind: …}                   one object: <step>_task

An entry with `choose`, `while` or `until` is control, and holds further tasks.
"""

from __future__ import annotations

from penstock.dialects.playbook.drafts import (
    Branch,
    Choose,
    ParamDraft,
    Site,
    TaskDraft,
    Until,
    Where,
    While,
    without_policy,
)
from penstock.dialects.playbook.policy import clauses, read_task_policy
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.refused import refusal, yaml_text
from penstock.dialects.playbook.words import SCOPES, SUGAR
from penstock.dialects.playbook.writes import read_task_set
from penstock.dialects.problems import Position
from penstock.dialects.source.node import SourceNode, to_json
from penstock.kernel.values import JsonMap
from penstock.ports.plugins import ToolDescription

WORKBOOK = "workbook"
_OWN_WORDS = ("name", "kind", "desc", "spec", "set", "set_shared")
_INSTEAD_OF_KIND = ("type", "tool", "pipe")


def read_tool(reading: Reading, node: SourceNode | None, step: str) -> list[TaskDraft]:
    if node is None or node.is_null:
        return []
    if node.kind == "sequence":
        return read_tasks(reading, node.items)
    if node.kind == "scalar":
        rewrite = yaml_text({"tool": {"kind": node.value}}) if isinstance(node.value, str) else ""
        hint = "`tool` is a list of tasks, or one task"
        reading.findings.error("P0217", f"`tool` is {node.noun}, not a task", node.position, hint=hint, rewrite=rewrite)
        return []
    if "pipe" in node.entries:
        reading.unknown_word(node, "pipe", "task")
        return []
    if _is_label_map(node) or _is_several(node):
        listed = [{"name": label, **_map_of(body)} for label, body in node.entries.items()]
        hint = "tasks with labels stand in a list, so that their order is plain"
        reading.findings.error(
            "P0502",
            "`tool` is a mapping of labels",
            node.position,
            hint=hint,
            rewrite=yaml_text({"tool": list(listed)}),
        )
        return []
    task = _read_entry(reading, node, f"{step}_task", node.position)
    return [task] if task else []


def read_tasks(reading: Reading, items: list[SourceNode]) -> list[TaskDraft]:
    found: list[TaskDraft] = []
    seen: dict[str, Position] = {}
    for position, item in enumerate(items):
        task = _read_item(reading, item, f"task_{position}")
        if task is None:
            continue
        if task.label in seen:
            message = f"two tasks of this pipeline are called `{task.label}`"
            reading.findings.error(
                "P0510", message, task.position, hint=f"the first is on line {seen[task.label].line}"
            )
            continue
        seen[task.label] = task.position
        found.append(task)
    return found


def _map_of(node: SourceNode) -> JsonMap:
    value = to_json(node)
    return value if isinstance(value, dict) else {}


def _is_label_map(node: SourceNode) -> bool:
    if len(node.entries) != 1:
        return False
    ((key, value),) = node.entries.items()
    return value.kind == "mapping" and key not in SCOPES["task"].words and key not in SUGAR


def _is_several(node: SourceNode) -> bool:
    """Several labels in one entry: a dash was forgotten."""
    return len(node.entries) > 1 and all(
        value.kind == "mapping" and "kind" in value.entries for value in node.entries.values()
    )


def _read_item(reading: Reading, item: SourceNode, default_label: str) -> TaskDraft | None:
    if item.kind != "mapping":
        rewrite = yaml_text([{"kind": item.value}]) if item.text() in reading.catalog.kinds() else ""
        reading.wrong_shape(item, "a task", "a mapping", rewrite=rewrite)
        return None
    if _is_several(item):
        listed = [{"name": label, **_map_of(body)} for label, body in item.entries.items()]
        reading.findings.error(
            "P0502",
            "several tasks stand in one entry of the list",
            item.position,
            hint="one task per entry",
            rewrite=yaml_text(list(listed)),
        )
        return None
    if not _is_label_map(item):
        return _read_entry(reading, item, default_label, item.position)
    ((label, body),) = item.entries.items()
    position = item.keys[label]
    reading.findings.warning(
        "P0501", f"the task `{label}` is named by a key", position,
        hint="name it with `name`", rewrite=yaml_text([{"name": label, **_map_of(body)}]),
    )  # fmt: skip
    if "name" in body.entries and body.entries.get("kind", body).value != WORKBOOK:
        message = f"this task has two names, `{label}` and `{body.entries['name'].value}`"
        reading.findings.error("P0516", message, body.keys["name"])
    named = reading.name(SourceNode("scalar", position, label), "the name of a task")
    return _read_body(reading, body, named or default_label, position)


def _read_entry(reading: Reading, node: SourceNode, default_label: str, position: Position) -> TaskDraft | None:
    label = default_label
    given = node.get("name")
    if given is not None:
        label = reading.name(given, "the name of a task") or default_label
        position = given.position
    return _read_body(reading, node, label, position)


def _read_body(reading: Reading, node: SourceNode, label: str, position: Position) -> TaskDraft | None:
    if any(word in node.entries for word in SUGAR) and "kind" not in node.entries:
        return _read_sugar(reading, node, label, position)
    # A task without a tool is still read: its label may be jumped to, and its other problems come out at once.
    kind = _read_kind(reading, node) or ""
    draft = TaskDraft(label, position, kind, node.entries["kind"].position if "kind" in node.entries else None)
    reading.text(node.get("desc"), "`desc`")
    _read_spec(reading, node, draft)
    draft.on_ok = read_task_set(reading, node, draft.sites, draft.shared)
    description = reading.describe(kind, draft.kind_position or position) if kind else None
    for key, value in node.entries.items():
        if key not in _OWN_WORDS and (kind or key not in _INSTEAD_OF_KIND):
            _read_param(reading, node, key, value, draft, description)
    if kind == WORKBOOK:
        _read_call(reading, node, draft)
    return draft


def _read_kind(reading: Reading, node: SourceNode) -> str | None:
    given = node.get("kind")
    if given is not None:
        return reading.text(given, "`kind`")
    refused = [key for key in _INSTEAD_OF_KIND if key in node.entries]
    for key in refused:
        reading.unknown_word(node, key, "task")
    if not refused:
        hint = "every task names its tool, such as `kind: http`"
        reading.findings.error("P0503", "this task has no `kind`", node.position, hint=hint)
    return None


def _read_spec(reading: Reading, node: SourceNode, draft: TaskDraft) -> None:
    spec = reading.section(node, "spec", "task_spec")
    if spec is None:
        return
    draft.spec = without_policy(_map_of(spec))
    reading.warn_unrendered(spec, "`spec`", skip=("policy",))
    policy = spec.get("policy")
    if policy is None:
        return
    rules = read_task_policy(reading, policy)
    if rules is not None:
        draft.rules, draft.jumps = rules.rules, rules.jumps
        draft.sites += rules.sites
        draft.shared_rules = rules.shared


def _read_param(
    reading: Reading,
    node: SourceNode,
    key: str,
    value: SourceNode,
    draft: TaskDraft,
    description: ToolDescription | None,
) -> None:
    """A word of the tool is always the tool's; only a word it does not know can be a refused one."""
    position = node.keys[key]
    is_known = description is not None and key in description.params
    if not is_known and refusal("task", key, node) is not None:
        reading.unknown_word(node, key, "task")
        return
    name = "args" if key == "input" and not is_known else key
    if name in draft.params:
        reading.findings.error("P0108", "`input` and `args` are the same, and both are given", position)
        return
    draft.params[name] = ParamDraft(position, value)
    draft.values[name] = to_json(value)
    draft.sites.append(Site(value, Where.PARAM))
    reading.refuse_template_keys(value)


def _read_call(reading: Reading, node: SourceNode, draft: TaskDraft) -> None:
    named = node.get("task") or node.get("name")
    for key in ("task",):
        draft.params.pop(key, None)
        draft.values.pop(key, None)
    if named is None or named.text() is None:
        hint = "name it with `task: x`, or with `name: x`"
        reading.findings.error("P0511", "this call does not name a workbook task", node.position, hint=hint)
        return
    draft.calls = str(named.value), named.position


def _read_sugar(reading: Reading, node: SourceNode, label: str, position: Position) -> TaskDraft | None:
    words = [word for word in SUGAR if word in node.entries]
    if len(words) > 1:
        message = f"`{words[0]}` and `{words[1]}` stand in one entry"
        reading.findings.error("P0515", message, node.keys[words[1]], hint="make two entries of them")
        return None
    reading.words(node, "sugar")
    draft = TaskDraft(label, position)
    word, value = words[0], node.entries[words[0]]
    if word == "choose":
        draft.sugar = _read_choose(reading, value, draft)
    else:
        draft.sugar = _read_rounds(reading, value, word, draft)
    return draft if draft.sugar is not None else None


def _read_choose(reading: Reading, node: SourceNode, draft: TaskDraft) -> Choose | None:
    items = reading.items(node, "`choose`")
    branches: list[Branch] = []
    for clause in clauses(reading, items, "branch", "branch"):
        when = reading.condition(clause.when, "`when`")
        if clause.when is not None:
            draft.sites.append(Site(clause.when, Where.CHECK, is_condition=True))
        if clause.then is None:
            reading.findings.error(
                "P0515", "this branch has no tasks", clause.node.position, hint="add `then: [tasks]`"
            )
            continue
        tasks = read_tasks(reading, reading.items(clause.then, "the tasks of a branch"))
        if when is not None or clause.when is None:
            branches.append(Branch(when, tasks))
    if not items:
        reading.findings.error(
            "P0515", "`choose` has no branches", node.position, hint="it is a list of `{when: …, then: [tasks]}`"
        )
    return Choose(branches) if branches else None


def _read_rounds(reading: Reading, node: SourceNode, word: str, draft: TaskDraft) -> While | Until | None:
    mapping = reading.mapping(node, f"`{word}`")
    if mapping is None:
        if node.is_null:
            reading.wrong_shape(node, f"`{word}`", "a mapping", hint="it takes `when`, `do` and `max`")
        return None
    reading.words(mapping, word)
    when = reading.condition(mapping.get("when"), "`when`")
    if when is not None:
        draft.sites.append(Site(mapping.entries["when"], Where.CHECK, is_condition=True))
    body_node = mapping.get("do")
    body = read_tasks(reading, reading.items(body_node, "`do`"))
    if body_node is not None and body_node.kind != "scalar" and not body_node.items:
        reading.findings.error("P0515", f"`{word}` has no tasks to run", body_node.position)
    limit = reading.whole(mapping.get("max"), "`max`")
    if when is None or not body:
        return None
    return While(when, body, limit) if word == "while" else Until(when, body, limit)
