"""From drafts to the net. Shorthands, sugar, calls of the workbook and spec layers do not exist after this step."""

from __future__ import annotations

from collections.abc import Callable

from penstock.dialects.digest import with_digest
from penstock.dialects.playbook.drafts import (
    ExecutorDraft,
    LoopDraft,
    PlaybookDraft,
    StepDraft,
    TaskDraft,
    effective,
    without_engine_words,
)
from penstock.dialects.playbook.loops import fanout_of, local_failure
from penstock.dialects.playbook.words import DEFAULT_MAX_IN_FLIGHT
from penstock.dialects.playbook.writes import reducers_of
from penstock.dialects.problems import Position
from penstock.dialects.source.positions import SourceMap
from penstock.kernel.net import FailureMode, Fan, Gate, LoopMode, Net, Node, Task
from penstock.ports.plugins import ToolDescription

Describe = Callable[[str, Position], ToolDescription | None]
Pipelines = dict[str, list[TaskDraft]]
"""Step name -> its tasks, without sugar."""


def lowered(draft: PlaybookDraft, pipelines: Pipelines, entry: str, describe: Describe) -> Net:
    executor = draft.executor
    nodes = {step.name: _node(step, pipelines[step.name], executor, describe) for step in draft.steps}
    return with_digest(
        Net(
            name=draft.name,
            entry=entry,
            nodes=nodes,
            workload=draft.workload,
            state=draft.state,
            keychain=tuple(draft.keychain),
            limits=executor.limits,
            failure=executor.failure,
            durability=executor.durability,
            strict=executor.strict,
            executor=executor.document,
            metadata=draft.metadata,
            open_inputs=executor.open_inputs,
        )
    )


def entry_of(draft: PlaybookDraft) -> str:
    """The step that is named, else `start`, else the first in the file (D4)."""
    names = [step.name for step in draft.steps]
    if draft.executor.entry is not None and draft.executor.entry[0] in names:
        return draft.executor.entry[0]
    return "start" if "start" in names else names[0]


def _node(step: StepDraft, tasks: list[TaskDraft], executor: ExecutorDraft, describe: Describe) -> Node:
    return Node(
        name=step.name,
        tasks=tuple(_task(task, step, executor, describe) for task in tasks),
        fan=None if step.loop is None else _fan(step.loop, step, tasks, executor),
        gate=Gate.JOIN if step.joins else Gate.TOKEN,
        joins=tuple(step.joins),
        admit=step.admit,
        edges=tuple(step.edges),
        first_only=step.first_only,
        timeout_s=step.timeout_s,
        deadline_s=step.deadline_s,
        on_done=step.on_done,
        spec=step.spec,
    )


def _task(task: TaskDraft, step: StepDraft, executor: ExecutorDraft, describe: Describe) -> Task:
    description = describe(task.kind, task.position)
    layers = [
        {} if description is None else description.defaults,
        without_engine_words(executor.spec),
        without_engine_words(step.spec),
        {} if step.loop is None else step.loop.spec,
        task.spec,
    ]
    return Task(
        label=task.label,
        kind=task.kind,
        params=dict(task.values),
        rules=task.rules,
        spec=effective(*layers),
        on_ok=task.on_ok,
    )


def _fan(loop: LoopDraft, step: StepDraft, tasks: list[TaskDraft], executor: ExecutorDraft) -> Fan:
    """Of the layers around the loop the innermost that says how it fails is right."""
    failure = loop.failure or step.failure or executor.loop_failure or FailureMode.FAIL_FAST
    at_once = DEFAULT_MAX_IN_FLIGHT if loop.max_in_flight is None else loop.max_in_flight
    return Fan(
        collection=loop.collection,
        iterator=loop.iterator,
        mode=loop.mode,
        max_in_flight=at_once if loop.mode is LoopMode.PARALLEL else 1,
        failure=local_failure(step, tasks, executor, failure),
        reducers=reducers_of(step, tasks, executor),
        fanout=fanout_of(step, tasks, executor, failure),
    )


def source_map(draft: PlaybookDraft, pipelines: Pipelines, file: str) -> SourceMap:
    found = SourceMap(file, keychain=dict(draft.keychain_positions))
    for step in draft.steps:
        found.steps[step.name], found.spans[step.name] = step.position, step.span
        for index, positions in enumerate(step.arc_positions):
            found.arcs[step.name, index] = positions.target
        for task in pipelines[step.name]:
            found.tasks[step.name, task.label] = task.position
            found.lines[step.name, task.label] = {
                name: param.node.text_line or param.node.position.line for name, param in task.params.items()
            }
    return found
