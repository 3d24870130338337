"""Fans: one part per element, a limited number at a time; what follows when one part ends, and when the last one does.

A part of a loop is a pipeline, a part of an iterator a scope with sub-jobs. Iterations of a parallel loop do not see each other.
Those that wrote to ctx close in index order, so that when two writes conflict the later index fails, whichever ran faster (D9).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock.kernel import facts, links
from penstock.kernel.components import in_iteration
from penstock.kernel.decision import Decision
from penstock.kernel.errors import Refused
from penstock.kernel.facts import Fact, as_fact
from penstock.kernel.judge import Ended, located
from penstock.kernel.loop import iteration_end, of_row
from penstock.kernel.merging import finish
from penstock.kernel.net import FailureMode, Iteration, Node
from penstock.kernel.places import LogicalClock, event_name
from penstock.kernel.scopes import ScopeView
from penstock.kernel.shards import ElementRange
from penstock.kernel.state import (
    ERROR,
    OK,
    RUNNING,
    ComponentRun,
    Fan,
    Iterations,
    Loop,
    Pipeline,
    Run,
    Scope,
    StepRun,
    root_subjob,
)
from penstock.kernel.survey import survey, survey_handlers, survey_inside
from penstock.kernel.values import Json, JsonMap

LONGEST_IN_LOOP, LONGEST_IN_ITERATOR = 100, 200
"""The longest string that is shown in the log as an element, or as a field of one."""
MOST_WAITING = 1_000
"""The most finished parts that may wait for an earlier part to close. At this limit no new part opens."""
LIMIT = "CONDITION_REEVALUATION_LIMIT"


@dataclass(slots=True, eq=False)
class Elements:
    """A runner gives the elements a fan runs over. `total` is None if a condition is evaluated before each part, or if the
    elements of a loop are claimed bit by bit; `items` then grows with each claim."""

    run: Run
    total: int | None
    items: Any = None
    parallel: int = 1
    mode: str = "accumulate"
    spread: bool = False
    """The parts will be run by other workers."""
    collection: Json = None
    """What was read, if the elements of a loop were read page by page."""


def start(d: Decision, given: Elements) -> None:
    run = given.run
    if isinstance(run, StepRun):
        fan = d.node_of(run).fan
        assert fan is not None
        if not run.is_fanning:  # Otherwise it continues where it was stopped.
            reducers: JsonMap = dict(fan.reducers)
            how = (fan.mode.value, fan.max_in_flight, reducers, given.collection)
            d.record_next(run, facts.LoopStarted(given.total, *how))
        assert isinstance(run.fan, Loop)
        run.fan.items, run.fan.is_elsewhere = given.items, False
    else:
        name, mode = run.place.id, given.mode
        d.record_next(run, facts.IteratorStarted(name, given.total, given.items, given.parallel, mode, given.spread))
    survey_inside(d, run)


@dataclass(slots=True, eq=False)
class Claim:
    """A runner has claimed `count` elements of a loop. `items` and `keys` are lists, or references to such."""

    run: StepRun
    count: int
    items: Json
    keys: Json


def claim(d: Decision, stimulus: Claim) -> None:
    run, loop = stimulus.run, stimulus.run.fan
    if run.status != RUNNING or not isinstance(loop, Loop):
        raise Refused(f"`{run.place.id}` is not running")
    body = facts.ElementsClaimed(loop.total, loop.total + stimulus.count, stimulus.items, stimulus.keys)
    d.record_next(run, body, event_name(run.place.id, loop.opened_at))
    d.fans.append(run)


def advance(d: Decision, run: Run) -> None:
    """Open the parts that may be opened. When none is open and none is left, the fan is complete."""
    fan = run.fan
    if run.status != RUNNING or fan is None:
        return
    only = d.mandate.elements_of(run) if d.mandate.elements is not None else None
    width = 1 if only is not None else fan.parallel
    while len(fan.open) - fan.waiting < width and (index := _next(d, run, only)) is not None:
        _open(d, run, index)
    # Only iterators are completed here: a loop is ended by its runner, which has the results.
    if not fan.open and only is None and isinstance(run, ComponentRun):
        complete(d, run)


def has_next(d: Decision, run: Run) -> bool:
    return _next(d, run, d.mandate.elements_of(run)) is not None


def _next(d: Decision, run: Run, only: ElementRange | None) -> int | None:
    """The index of the next part to open, None if there is none; within `only`, if just those elements are decided here."""
    fan = run.fan
    assert fan is not None
    if fan.waiting >= MOST_WAITING or run.place.id in d.no_more:
        return None
    if d.witness is not None and fan.total is not None:
        return _witnessed(d, run)
    if (d.is_stopping and not d.may_start(d.name_of(run))) or (fan.failed and halts(d.node_of(run))):
        return None
    if only is not None:
        index = max(fan.next_index, only.lo)
        return index if only.hi is not None and index < only.hi else None
    index = fan.first_unopened()
    if fan.total is not None:
        return index if index < fan.total else None
    return index if _again(d, run, d.node_of(run), index) else None


def halts(node: Node) -> bool:
    """Whether the first failed part keeps others from opening."""
    if node.fan is not None:
        return node.fan.failure is FailureMode.FAIL_FAST
    return node.iterates is not None and node.iterates.halts


def _witnessed(d: Decision, run: Run) -> int | None:
    """During replay, open a part only if the record did: how many had opened before a failure depended on timing."""
    fan = run.fan
    assert fan is not None
    assert fan.total is not None
    assert d.witness is not None
    only = d.mandate.elements_of(run)
    lo, hi = (fan.next_index, fan.total) if only is None else (only.lo, only.hi or fan.total)
    for index in range(lo, hi):
        is_known = index in fan.settled or index in fan.open
        if not is_known and d.witness.has_begun(_name(run, index), root_subjob(run).place.id):
            return index
    return None


def _again(d: Decision, run: Run, node: Node, index: int) -> bool:
    """Evaluate the condition of a `while`; record in `no_more` why it goes no further.

    A repeatedly evaluated condition has a limit, since it might never become false (rulebook 8).
    """
    assert isinstance(run, ComponentRun)
    limit = d.net.limits.max_reevaluations
    if index > limit:
        message = f"the condition of `{run.place.id}` was evaluated again {limit} times and is still true"
        d.no_more[run.place.id] = {"kind": LIMIT, "message": f"{LIMIT}: {message}", "retryable": False, "limit": limit}
        return False
    verdict = d.judge.again(node, run, index)
    if verdict is True:
        return True
    d.no_more[run.place.id] = verdict or None
    return False


def _name(run: Run, index: int) -> str:
    return f"{run.place.id}[{index}]" if type(run) is StepRun else f"{run.place.id}[#{index}]"


def _open(d: Decision, run: Run, index: int) -> None:
    fan = run.fan
    assert fan is not None
    scope, item = _name(run, index), fan.items[index] if fan.items is not None else None
    if type(fan) is Loop:
        place, opened_at = run.place, fan.opened_at
        body = facts.IterationStarted(index, _row(item) if fan.claims else _shown(item, LONGEST_IN_LOOP))
        d.record(as_fact((scope, (*place.clock, opened_at, index, 0), body, f"{place.id}:{opened_at}", None)))
    else:
        assert isinstance(fan, Iterations)
        _open_scope(d, run, fan, index, scope, item)


def _open_scope(d: Decision, run: Run, iterator: Iterations, index: int, scope: str, item: Any) -> None:
    item = _row(item)
    clock: LogicalClock = (*run.place.clock, iterator.opened_at, index)
    counter = d.state.counter(scope)
    container = d.plan.locations[d.name_of(run)].opens
    assert container is not None
    subjobs = len(d.plan.bodies[container])
    if (reopened := iterator.reopened.get(index)) is not None:
        subjob = reopened.subjobs.get(scope)
        clock, counter = reopened.place.clock, max(reopened.counter, subjob.counter if subjob is not None else 0)
    # If the body has several sub-jobs, the first of them begins at (0,).
    clock = (*clock, (0,) if subjobs == 1 else (), counter)
    body = facts.ElementStarted(run.place.id, index, item, subjobs)
    d.record(Fact(scope, clock, body, event_name(run.place.id, iterator.opened_at)))
    survey(d, iterator.open[index])


def _row(item: Any) -> Json:
    """The element as the log shows it if it may be a row: a small one is shown whole."""
    if isinstance(item, dict) and len(item) <= 12:
        return dict(item) if all(_is_small(one, LONGEST_IN_ITERATOR) for one in item.values()) else None
    return _shown(item, LONGEST_IN_ITERATOR)


def _shown(item: Any, longest: int) -> Json:
    """The element as the log shows it; None for a large one, which can be looked up by its index."""
    return item if type(item) is int or _is_small(item, longest) else None


def _is_small(item: Any, longest: int) -> bool:
    return item is None or isinstance(item, (int, float)) or (isinstance(item, str) and len(item) <= longest)


# ---- the end of one


@dataclass(slots=True, eq=False)
class PartOver:
    """The pipeline of a loop iteration, or the body of an iterator iteration, has ended."""

    run: Run
    index: int


def end_part(d: Decision, over: PartOver) -> None:
    """Close the part, unless it must wait for an earlier one, and the parts that waited for it; queue the fan to open more."""
    run, index = over.run, over.index
    fan = run.fan
    assert fan is not None
    part = fan.open.get(index)
    while part is not None and _may_close(d, fan, index, part, is_over=index == over.index):
        _record_end(d, run, index, part)
        index = fan.settled.low
        part = fan.open.get(index) if fan.waiting else None
    d.fans.append(run)


def _may_close(d: Decision, fan: Fan, index: int, part: Pipeline | Scope, *, is_over: bool) -> bool:
    if isinstance(part, Scope):
        return part.status == RUNNING and d.has_ended(ScopeView(d.plan, part))
    if not is_over and part.ended is None:
        return False
    # Concurrent writes are compared in index order.
    return fan.settled.low >= index or not part.staged or not fan.isolated  # type: ignore[attr-defined]


def _record_end(d: Decision, run: Run, index: int, part: Pipeline | Scope) -> None:
    if isinstance(part, Pipeline):
        assert isinstance(run.fan, Loop)
        d.record_next(part, _told(run.fan, iteration_end(run.fan, index, part)))
        return
    view = ScopeView(d.plan, part)
    if view.is_single:
        status, error = links.aggregate(view, view.bodies[0])
    else:
        failed = links.failures(view)
        status, error = (ERROR, located(failed[0].error, len(failed) - 1)) if failed else (OK, None)
    status = ERROR if status == ERROR else OK
    subjob = part.subjobs.get(part.place.id)
    if subjob is not None:
        in_iteration(d, view, links.checkpoint(None, subjob, status))
    handlers, word = len(view.handlers(status)), "error" if status == ERROR else "ok"
    in_iteration(d, view, facts.ElementEnded(run.place.id, index, word, error, handlers))  # type: ignore[arg-type]
    if handlers:
        survey_handlers(d, view)


def _told(loop: Loop, end: facts.IterationEnded) -> facts.IterationEnded:
    """Of a claimed element that failed, the failure says which row it is: an index says nothing about a table."""
    if loop.claims and end.error is not None and loop.items is not None:
        return replace(end, error=of_row(end.error, loop.items[end.index]))
    return end


# ---- the end of all


def complete(d: Decision, run: ComponentRun) -> None:
    """Record that all iterations due to run have closed, and queue the end of the iterator."""
    iterator, node = run.fan, d.node_of(run)
    assert iterator is not None
    assert node.iterates is not None
    ended, stop = iterator.ok + iterator.failed, d.no_more.get(run.place.id)
    body = facts.IteratorCompleted(
        run.place.id,
        "error" if iterator.failed or stop is not None else "ok",
        ended,
        iterator.ok,
        iterator.failed,
        sorted(iterator.failures),
    )
    d.record_next(run, body)
    error = _error(d, run, iterator, node.iterates)
    finished = finish(iterator)
    end = Ended(
        ERROR if error is not None else OK,
        after={"NB_ITERATION": ended, "NB_ITERATION_OK": iterator.ok, "NB_ITERATION_ERROR": iterator.failed},
        error=error,
        writes=finished.writes,
        sets=finished.sets,
        deletes=finished.deletes,
        exports_all=True,
        exit_code=iterator.death[1] if iterator.death is not None else None,
        dies=iterator.death is not None or (isinstance(error, dict) and error.get("kind") == LIMIT),
    )
    d.ends.append((run, end))


def _error(d: Decision, run: ComponentRun, iterator: Iterations, settings: Iteration) -> Json:
    judged = d.no_more.get(run.place.id)
    if judged is not None:
        return judged
    if iterator.failed and (settings.halts or settings.fails or iterator.death is not None):
        first = iterator.first_error if isinstance(iterator.first_error, dict) else {}
        index = iterator.first_failed
        message = f"iteration {index} of `{run.place.id}` failed: {first.get('message', 'no reason given')}"
        kind = first.get("kind", "iteration")
        return {**first, "kind": kind, "message": message, "iteration": index, "failed": iterator.failed}
    if iterator.death is not None:  # An error handler made the iteration OK, but the job still dies.
        return iterator.death[2]
    is_short = iterator.total is not None and iterator.ok + iterator.failed < iterator.total
    if is_short or (iterator.total is None and run.place.id not in d.no_more):
        message = f"`{run.place.id}` was stopped before its last iteration"
        return {"kind": "stopped", "message": message, "retryable": True}
    return None


def open_parts(run: Run) -> list[str]:
    """The scope ids of the open iterations of an iterator."""
    assert run.fan is not None
    return [part.place.id for part in run.fan.open.values() if isinstance(part, Scope)]
