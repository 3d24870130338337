"""The workbook: tasks written once and called by name. A call is replaced by the task it names when the document is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from penstock.dialects.playbook.drafts import TaskDraft
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.tasks import WORKBOOK, read_tasks
from penstock.dialects.problems import Position
from penstock.dialects.reader import did_you_mean, listed
from penstock.dialects.source.node import SourceNode
from penstock.kernel.net import Writes
from penstock.kernel.values import merge_deeply


@dataclass(slots=True)
class Workbook:
    tasks: dict[str, TaskDraft] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    """Names of tasks that could not be read, which has been reported."""


def read_workbook(reading: Reading, node: SourceNode | None) -> Workbook:
    """A list of named tasks, `{tasks: {name: task}}`, or `{name: task}`."""
    book = Workbook()
    if node is None or node.is_null:
        return book
    if node.kind == "scalar":
        reading.wrong_shape(node, "`workbook`", "a list of named tasks, or a mapping of names to tasks")
        return book
    for name, position, body in _entries(reading, node):
        if name in book.tasks:
            reading.findings.error("P0510", f"two tasks of the workbook are called `{name}`", position)
            continue
        task = _read_entry(reading, body, name, position)
        if task is None:
            book.broken.add(name)
        else:
            book.tasks[name] = task
    return book


def _entries(reading: Reading, node: SourceNode) -> Iterator[tuple[str, Position, SourceNode]]:
    if node.kind == "mapping":
        inner = node.get("tasks")
        if inner is not None and "kind" not in inner.entries:
            if inner.kind == "sequence":
                yield from _entries(reading, inner)
                return
            node = reading.mapping(inner, "`workbook.tasks`") or SourceNode("mapping", inner.position)
        for key, body in node.entries.items():
            yield key, node.keys[key], body
        return
    for item in node.items:
        mapping = reading.mapping(item, "a workbook task")
        if mapping is None:
            continue
        given = mapping.get("name")
        name = reading.text(given, "`name`")
        if given is None:
            reading.findings.error(
                "P0105", "a workbook task has no `name`", item.position, hint="steps call it by its name"
            )
        elif name is not None:
            yield name, given.position, mapping


def _read_entry(reading: Reading, node: SourceNode, name: str, position: Position) -> TaskDraft | None:
    mapping = reading.mapping(node, f"the workbook task `{name}`")
    if mapping is None:
        if node.is_null:
            reading.wrong_shape(node, f"the workbook task `{name}`", "a mapping")
        return None
    if "assert" in mapping.entries:
        reading.findings.note("P0518", "`assert` is not checked", mapping.keys["assert"])
    inner = mapping.get("tool") if "kind" not in mapping.entries else None
    if inner is not None and inner.kind == "sequence" and len(inner.items) == 1:
        inner = inner.items[0]
    body = inner if inner is not None and inner.kind == "mapping" else _without(mapping, "name", "assert")
    tasks = read_tasks(reading, [_without(body, "name")])
    if not tasks:
        return None
    (task,) = tasks
    if task.sugar is not None or task.kind == WORKBOOK:
        what = "calls another one" if task.kind == WORKBOOK else "is a choice or a loop"
        reading.findings.error(
            "P0517", f"the workbook task `{name}` {what}", position, hint="a workbook task is one call of a tool"
        )
        return None
    return replace(task, label=name, position=position)


def _without(node: SourceNode, *keys: str) -> SourceNode:
    return replace(node, entries={key: value for key, value in node.entries.items() if key not in keys})


def inlined(reading: Reading, book: Workbook, call: TaskDraft) -> TaskDraft | None:
    """The task that a call comes to: the workbook's, under the call's label, with what the call gives laid over it."""
    if call.calls is None:
        return None
    name, position = call.calls
    task = book.tasks.get(name)
    if task is None and name in book.broken:
        return None
    if task is None:
        known = f"the workbook has {listed(book.tasks)}" if book.tasks else "the document has no workbook"
        reading.findings.error(
            "P0511", f"there is no workbook task `{name}`", position, label=did_you_mean(name, book.tasks), hint=known
        )
        return None
    book.called.add(name)
    has_rules = call.rules is not None
    return replace(
        call,
        kind=task.kind,
        kind_position=task.kind_position,
        params={**task.params, **call.params},
        values=merge_deeply(task.values, call.values),
        spec=merge_deeply(task.spec, call.spec),
        rules=call.rules if has_rules else task.rules,
        jumps=call.jumps if has_rules else task.jumps,
        on_ok=_over(task.on_ok, call.on_ok),
        shared=[*(one for one in task.shared if one.key not in call.on_ok.shared), *call.shared],
        shared_rules=call.shared_rules if has_rules else task.shared_rules,
        sites=[*task.sites, *call.sites],
        calls=None,
    )


def _over(below: Writes, above: Writes) -> Writes:
    return Writes(
        iter={**below.iter, **above.iter},
        ctx={**below.ctx, **above.ctx},
        append={**below.append, **above.append},
        shared={**below.shared, **above.shared},
    )


def report_uncalled(reading: Reading, book: Workbook) -> None:
    for name, task in book.tasks.items():
        if name not in book.called:
            reading.findings.warning("P0512", f"nothing calls the workbook task `{name}`", task.position)
