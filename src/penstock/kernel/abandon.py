"""Ending work that no process drives any more, from its state alone: with the same facts as if it were stopped while running.

Every start in the log gets an end: running work ends as stopped, work that has not begun is skipped, and what has ended stays
as it is. No tool is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from penstock.kernel.decision import Decision
from penstock.kernel.facts import Fact, RunEnded, TaskEnded
from penstock.kernel.judge import Ended, stopped, stopped_component
from penstock.kernel.loop import given_up
from penstock.kernel.net import Do
from penstock.kernel.pipeline import END
from penstock.kernel.state import ERROR, RUNNING, ComponentRun, Execution, Loop, Pipeline, StepRun, Subjob, next_fact
from penstock.kernel.survey import survey
from penstock.kernel.values import Json, JsonMap

EndChild = Callable[[Execution], list[Fact]]
"""Ends an execution that a task or a component runs, and returns the facts recorded for it."""


def give_up(d: Decision, end_child: EndChild) -> None:
    """End everything that is running in an execution that is being stopped."""
    if d.plan.moves_tokens:
        why = "cancel" if d.execution.cancelling else "abort"
        for run in sorted(d.execution.runs.values(), key=lambda run: run.path):
            give_up_run(d, run, stopped(run.step, why), end_child)
    else:
        _end_all(d, d.execution.runs.values(), end_child, None)


def abandon(d: Decision, subjob: Subjob, end_child: EndChild, error: JsonMap | None = None) -> None:
    """End the running components of one of the job's own sub-jobs that has lost its holder, as stopped or with the given
    error. What follows in that sub-job is decided here from now on."""
    d.mandate.elsewhere.discard(subjob.place.id)
    for iterator in _iterators(subjob.members.values()):
        d.no_more[iterator.place.id] = error
    _end_all(d, subjob.members.values(), end_child, error)


# ---- components


def _end_all(d: Decision, components: Iterable[ComponentRun], end_child: EndChild, error: JsonMap | None) -> None:
    """End running components, and iterators whose iterations others were to run or a resume had kept."""
    iterators = [one for one in _iterators(components) if not one.is_fanning or one.fan.is_elsewhere]  # type: ignore[union-attr]
    running = [component for component in at_work(components) if component.fan is None]
    for component in sorted(running, key=lambda one: one.place.clock):
        _end_child(d, d.state.executions.get(f"{component.place.id}/"), end_child)
        d.ends.append((component, stopped_component(component) if error is None else Ended(ERROR, error=error)))
    for component in iterators:
        for iteration in component.fan.open.values() if component.fan is not None else ():
            survey(d, iteration)
        d.fans.append(component)


def at_work(components: Iterable[ComponentRun]) -> Iterator[ComponentRun]:
    """Those of the components that are running themselves, and those in the scopes that they have opened."""
    for component in components:
        if component.status != RUNNING:
            continue
        if component.inside is None and not component.is_fanning:
            yield component
        for scope in component.opened():
            yield from at_work(scope.runs.values())


def _iterators(components: Iterable[ComponentRun]) -> Iterator[ComponentRun]:
    """Those of the components that are running iterators, and those in the scopes that they have opened."""
    for component in components:
        if component.status != RUNNING:
            continue
        if component.fan is not None:
            yield component
        for scope in component.opened():
            yield from _iterators(scope.runs.values())


# ---- step runs


def give_up_run(d: Decision, run: StepRun, failure: JsonMap, end_child: EndChild) -> None:
    """End one step run that nothing works on any more, with everything it had begun."""
    fan, writes = d.node_of(run).fan, dict[str, Json]()
    is_fanned_out = fan is not None and fan.fanout is not None
    if isinstance(run.fan, Loop):
        for index, pipeline in sorted(run.fan.open.items()):
            stop_pipeline(d, pipeline, failure, end_child)
            d.record_next(pipeline, given_up(run.fan, index, pipeline, failure))
        writes = run.fan.staged.as_writes()
    elif run.pipeline is not None and not is_fanned_out:
        stop_pipeline(d, run.pipeline, failure, end_child)
        writes = run.pipeline.staged.as_writes()
    body = RunEnded(
        run.step, "failed", None, failure, writes, looped=fan is not None, given_up=True, fanned_out=is_fanned_out
    )
    d.ends.append((run, body))


def stop_pipeline(d: Decision, pipeline: Pipeline, failure: JsonMap, end_child: EndChild) -> None:
    """Record an outcome for the task that was under way, if any: the given failure."""
    task_run_id = pipeline.under_way
    if task_run_id is None:
        return
    _end_child(d, pipeline.children.get(task_run_id), end_child)
    label = task_run_id.rpartition("/")[2].rpartition("#")[0]
    outcome: JsonMap = {"status": "error", "error": failure, "meta": {"attempt": pipeline.attempt}}
    body = TaskEnded(label, pipeline.attempt, outcome, Do.FAIL.value, END, error=failure, given_up=True)
    d.record(next_fact(pipeline, body, task=task_run_id))


def _end_child(d: Decision, child: Execution | None, end_child: EndChild) -> None:
    """End the execution that a task or a component was running, if any."""
    if child is not None and child.status == "running":
        d.facts += end_child(child)
