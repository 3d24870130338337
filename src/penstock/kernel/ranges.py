"""Ranges of a fanned-out loop: what follows when its elements are known, handed out, reported, returned and brought together.

When to cut a range, and how large, depends on the workers and their speed: the server says so in a stimulus. What a report or the
loss of a range means is decided here.

Law: no two facts of a loop share a clock. Within the loop, the clock consists of the element, the range (whose numbers are never
reused) and what happened to the element in that range; the fan-in comes after all ranges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, cast

from penstock.kernel import facts, fanin, shards
from penstock.kernel.decision import Decision
from penstock.kernel.errors import Refused
from penstock.kernel.facts import TaskEnded, TaskStarted
from penstock.kernel.net import Emit, Fanout, Node
from penstock.kernel.places import event_name, iteration_place
from penstock.kernel.shards import DONE, ENQUEUED, FAILED, RETURNED, SETTLED, STARTED, TASK, ElementRange, state_of
from penstock.kernel.state import StepRun
from penstock.kernel.values import Json, JsonMap

_OfElements: TypeAlias = (
    facts.ShardsEnqueued | facts.ShardsStarted | facts.ShardsReturned | facts.ShardsReported | facts.ShardsDone
)

# ---- what the holder of a range reports


class Failed(NamedTuple):
    element: int
    key: str
    error: Json


class TaskReport(NamedTuple):
    """An event of a task of one element. `kind` is its type."""

    element: int
    task: str | None
    kind: str
    body: TaskStarted | TaskEnded


@dataclass(frozen=True, slots=True)
class RangeOpened:
    """Work on a range begins. For a page: how far it goes and where the next one begins."""

    hi: int | None = None
    next: Json = None
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class ElementsEnded:
    """The results of elements `lo` to `hi`. `results` has one value for each; with `same`, the one that all of them have."""

    lo: int
    hi: int
    failures: list[Failed] = field(default_factory=list)
    results: Json = None
    same: bool = False
    writes: list[Json] = field(default_factory=list)
    shared: JsonMap = field(default_factory=dict)
    ms: float = 0.0
    keys: list[str] | None = None
    """One per element, if they have keys of their own and the end of each is reported by itself."""
    tasks: list[TaskReport] = field(default_factory=list)
    """What their tasks did, in order for each element; only if each element is reported by itself."""


@dataclass(frozen=True, slots=True)
class RangeFailed:
    """The collection could not be opened, so none of its elements is available."""

    error: JsonMap


RangeReport: TypeAlias = RangeOpened | ElementsEnded | RangeFailed


# ---- stimuli


@dataclass(slots=True, eq=False)
class FanOut:
    """The elements of a loop that is fanned out are known, as far as they can be before they are read."""

    run: StepRun
    collection: Json
    total: int | None
    is_paged: bool
    claims: bool = False


@dataclass(slots=True, eq=False)
class CutRange:
    """A worker has room for another range of about this size."""

    run: StepRun
    size: int


@dataclass(slots=True, eq=False)
class RangeReported:
    run: StepRun
    number: int
    report: RangeReport


@dataclass(slots=True, eq=False)
class RangeReturned:
    """A range comes back. One that was `lost` counts against the attempts of its elements; one returned in good order does
    not. `is_stopped`: the loop is being stopped."""

    run: StepRun
    number: int
    reason: str
    is_stopped: bool = False


@dataclass(slots=True, eq=False)
class CallOff:
    """No holder will report on this loop again."""

    run: StepRun


@dataclass(slots=True, eq=False)
class FanIn:
    """Every element has ended or waits for the fan-in. `result_of` returns the result of an element that waits."""

    run: StepRun
    refs: JsonMap
    result_of: Callable[[int], Json]


def fan_out(d: Decision, stimulus: FanOut) -> None:
    run, loop = stimulus.run, d.node_of(stimulus.run).fan
    assert loop is not None
    assert loop.fanout is not None
    policy: JsonMap = {**loop.fanout.as_json(), "reducers": dict(loop.reducers)}
    how = (stimulus.is_paged, stimulus.claims)
    body = facts.FanoutStarted(run.step, run.loop_name, stimulus.total, stimulus.collection, policy, *how)
    d.record_next(run, body)


def cut(d: Decision, stimulus: CutRange) -> None:
    piece = shards.cut(state_of(stimulus.run), stimulus.size)
    if piece is not None:
        _Loop(d, stimulus.run).record(ENQUEUED, shards.enqueued(stimulus.run, piece, stimulus.size), piece.hi)


def reported(d: Decision, stimulus: RangeReported) -> None:
    loop, number = _Loop(d, stimulus.run), stimulus.number
    match stimulus.report:
        case RangeOpened() as opened:
            loop.open(number, opened)
        case ElementsEnded() as ended:
            loop.end(number, ended)
        case RangeFailed() as failed:
            loop.fail_rest(shards.accept(loop.state, number), failed.error)


def returned(d: Decision, stimulus: RangeReturned) -> None:
    loop, reason = _Loop(d, stimulus.run), stimulus.reason
    held = shards.accept(loop.state, stimulus.number)
    if reason == "stale":
        loop.fail_rest(held, stale(loop.policy.queue_ttl_s))
    elif reason == "lost" and not shards.may_be_lost_again(loop.state, held.attempt):
        loop.fail_rest(held, lost(held.attempt + 1))
    else:
        shown = "stopped" if loop.state.is_stopping or stimulus.is_stopped else reason
        loop.give_back(held, shown, counts=reason == "lost")


def call_off(d: Decision, stimulus: CallOff) -> None:
    loop = _Loop(d, stimulus.run)
    for _, held in sorted(loop.state.out.items()):
        loop.give_back(held, "stopped")


def bring_together(d: Decision, stimulus: FanIn) -> None:
    """End the elements that waited for the fan-in, and record it."""
    run = stimulus.run
    loop = _Loop(d, run)
    for body in fanin.ends(run, per_item=loop.is_per_item):
        if isinstance(body, facts.ShardFailed):
            loop.record_failed(body)
            continue
        done = replace(body, results={"same": stimulus.result_of(body.lo)}) if loop.is_per_item else body
        loop.record(DONE, done, done.hi, loop.state.ranges)
    cause = event_name(run.place.id, loop.state.opened_at)
    d.record_next(run, fanin.completed(run, stimulus.refs), cause)


class _Loop:
    """The loop that one decision is about."""

    def __init__(self, d: Decision, run: StepRun) -> None:
        self.d = d
        self.run = run
        self.state = state_of(run)
        self.policy = policy_of(d.node_of(run))
        self.is_per_item = self.policy.emit is Emit.PER_ITEM

    def open(self, number: int, opened: RangeOpened) -> None:
        held = shards.accept(self.state, number)
        if held.is_started:
            return
        end = opened.hi if opened.hi is not None else held.hi
        body = facts.ShardsStarted(self.run.loop_name, held.number, end, opened.next, opened.is_end, held.lo)
        self.record(STARTED, body, end)

    def end(self, number: int, report: ElementsEnded) -> None:
        try:
            held = shards.accept(self.state, number, report.lo)
        except Refused:
            return  # Reported twice; already counted.
        self._record_tasks(report, number)
        for part in split(report) if self.is_per_item and report.hi > report.lo else [report]:
            self._record_report(part, held)

    def fail_rest(self, held: ElementRange, error: JsonMap) -> None:
        """Fail the remaining elements of a range with one error. The elements of a page that was never opened are not known:
        its step fails."""
        assert held.hi is not None
        for index in range(held.lo, held.hi):
            self._record_failure(Failed(index, str(index), error), held, again=False, up_to=index + 1)
            if self.state.is_stopping:  # The other elements were not tried, so they have not failed.
                break
        if held.number in self.state.out:
            self.give_back(held, "stopped")

    def give_back(self, held: ElementRange, reason: Any, *, counts: bool = False) -> None:
        body = facts.ShardsReturned(self.run.loop_name, held.number, held.lo, held.hi, reason, None, counts)
        self.record(RETURNED, body, held.hi)

    # ---- recording

    def record(self, what: int, body: _OfElements, hi: int | None, number: int | None = None) -> None:
        """Record one fact for elements up to `hi`; with `emit: per_item`, the same fact once per element (evolve counts it
        once)."""
        lo, number = body.lo, body.range if number is None else number
        assert lo is not None
        if self.is_per_item and hi is not None and hi > lo:
            for index in range(lo, hi):
                self._record_element(index, (number, what), body)
            return
        run, opened_at = self.run, self.state.opened_at
        clock = (*run.place.clock, opened_at, lo, number, what)
        self.d.record(facts.Fact(run.place.id, clock, body, event_name(run.place.id, opened_at)))

    def _record_element(self, index: int, at: tuple[int, ...], body: facts.Body) -> None:
        run, opened_at = self.run, self.state.opened_at
        place = iteration_place(run.place, opened_at, index)
        self.d.record(facts.Fact(place.id, (*place.clock, *at), body, event_name(run.place.id, opened_at)))

    def _record_tasks(self, report: ElementsEnded, number: int) -> None:
        """Record what the tasks of the elements did. An element's first task is caused by the fan-out, each later one by the
        fact before it."""
        run, opened_at = self.run, self.state.opened_at
        counters: Counter[int] = Counter()
        for element, task, _, body in report.tasks:
            place = iteration_place(run.place, opened_at, element)
            counter = counters[element]
            before = f"{place.id}:{number}.{TASK}.{counter - 1}" if counter else event_name(run.place.id, opened_at)
            self.d.record(facts.Fact(place.id, (*place.clock, number, TASK, counter), body, before, task))
            counters[element] += 1

    def _record_report(self, report: ElementsEnded, held: ElementRange) -> None:
        all_failed = bool(report.failures) and len(report.failures) == report.hi - report.lo
        is_alone = all_failed and not report.writes
        for failed in report.failures:
            self._record_failure(failed, held, up_to=failed.element + 1 if is_alone else None)
        if is_alone:
            return
        if report.failures:
            report = self._without_retried(report)
        key = report.keys[0] if self.is_per_item and report.keys else None
        body = _report_fact(self.run.loop_name, held.number, report, key)
        self.record(DONE, body, body.hi)

    def _without_retried(self, report: ElementsEnded) -> ElementsEnded:
        """The report without the writes of elements that will be retried: they will write again."""
        final = self.state.failures
        failed = {one.element for one in report.failures if one.element not in final}
        kept = [pair for pair in report.writes if not (isinstance(pair, list) and pair[0] in failed)]
        return replace(report, writes=kept)

    def _record_failure(
        self, failed: Failed, held: ElementRange, *, again: bool | None = None, up_to: int | None = None
    ) -> None:
        loop_id, index = self.run.loop_name, failed.element
        body = facts.ShardFailed(
            loop_id,
            f"{loop_id}[{index}]",
            index,
            iter_key=failed.key,
            attempt=held.attempt,
            error=failed.error,
            again=shards.comes_again(self.state, held.attempt) if again is None else again,
            range=held.number,
            up_to=up_to,
        )
        self.record_failed(body)

    def record_failed(self, body: facts.ShardFailed) -> None:
        is_late = body.at_fanin or body.range == SETTLED
        number = self.state.ranges if is_late else body.range
        self._record_element(body.iter_index, (number, FAILED), body)


def policy_of(node: Node) -> Fanout:
    assert node.fan is not None
    assert node.fan.fanout is not None
    return node.fan.fanout


# ---- what a report, or the loss of a range, is written down as


def _report_fact(
    loop_id: str, number: int, report: ElementsEnded, key: str | None
) -> facts.ShardsReported | facts.ShardsDone:
    """The fact for all elements of a report, or for the one that has this key. Failed elements have been recorded before."""
    failed = sorted(one.element for one in report.failures) if report.failures else []
    results: Json = {"same": report.results} if report.same else report.results
    if report.writes:
        return facts.ShardsReported(
            loop_id,
            number,
            report.lo,
            hi=report.hi,
            failed=failed,
            results=results,
            writes=report.writes,
            shared=report.shared,
            ms=report.ms,
            keys=report.keys,
        )
    done = report.hi - report.lo - len(failed)
    return facts.ShardsDone(
        loop_id,
        number,
        report.lo,
        hi=report.hi,
        done=done,
        failed=len(failed),
        results=results,
        shared=report.shared,
        ms=report.ms,
        iter_key=key,
    )


def split(report: ElementsEnded) -> Iterator[ElementsEnded]:
    """The report split into reports of one element each."""
    values: Any = None if report.same else report.results  # A list, or a view of one.
    failures = {one.element: one for one in report.failures}
    writes: dict[Any, Json] = {cast("list[Any]", pair)[0]: pair for pair in report.writes}
    shared = report.shared
    for index in range(report.lo, report.hi):
        yield ElementsEnded(
            index,
            index + 1,
            [failures[index]] if index in failures else [],
            values[index - report.lo] if values is not None else report.results,
            True,
            [writes[index]] if index in writes else [],
            {} if index in failures else shared,
            keys=[str(index) if report.keys is None else report.keys[index - report.lo]],
        )
        shared = shared if index in failures else {}


def too_many(step: str, policy: Fanout, total: int | None) -> JsonMap:
    """`total` is None for paged collections, which are read only far enough to exceed the limit."""
    most = policy.max_shards
    many = f"{total} elements" if total is not None else "more elements than that"
    message = f"`fanout.max_shards` allows {most} elements, and `loop.in` of step `{step}` has {many}"
    return {"kind": "limit", "message": message, "retryable": False}


def lost(times: int) -> JsonMap:
    message = f"the worker that had it was lost {times} times" if times > 1 else "the worker that had it was lost"
    return {"kind": "worker_lost", "message": message, "retryable": True}


def stale(ttl_s: float | None) -> JsonMap:
    message = f"no worker took it within `fanout.queue_ttl_s` of {ttl_s:g} s" if ttl_s else "no worker took it in time"
    return {"kind": "queue_ttl", "message": message, "retryable": True}
