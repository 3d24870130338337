"""A fanned-out loop: which ranges its driver hands out, how their results are recorded, and the end once every element has
ended.

A range is on disk before a worker sees it. Only a few ranges per worker are out at a time: they are cut when there is room
for them, in a size that keeps a worker busy for some seconds.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, cast

from penstock.expr.template import ExpressionError
from penstock.kernel import facts, fanin, shards
from penstock.kernel.errors import Refused
from penstock.kernel.facts import Fact, RunEnded
from penstock.kernel.judge import stopped
from penstock.kernel.net import Emit, Fanout, LoopMode, Node
from penstock.kernel.places import event_name, iteration_place
from penstock.kernel.shards import (
    DONE,
    ENQUEUED,
    FAILED,
    RETURNED,
    SETTLED,
    STARTED,
    TASK,
    ElementRange,
    Shards,
)
from penstock.kernel.state import StepRun
from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Described, described, pinned
from penstock.ports.deadlines import TimeLeft, out_of_time, time_left
from penstock.ports.leases import (
    ElementsEnded,
    Failed,
    FanRange,
    Lease,
    RangeFailed,
    RangeOpened,
    RangeReport,
    ScopeContext,
)
from penstock.ports.results import loader
from penstock.server.fanout_results import held_result, results_of
from penstock.server.host import Host
from penstock.server.judge import TemplateJudge
from penstock.server.terms import LostElements, Pace, untaken

LANES_PER_SLOT = 16
_OfElements: TypeAlias = (
    facts.ShardsEnqueued | facts.ShardsStarted | facts.ShardsReturned | facts.ShardsReported | facts.ShardsDone
)


class FanoutDriver(Protocol):
    """The driver of the execution the step lies in. It holds the leases of all ranges and passes on what their holders
    report."""

    host: Host
    context: ScopeContext
    judge: TemplateJudge

    def fanout_ended(self, loop: FannedLoop, body: RunEnded) -> None: ...

    def ranges_of(self, run: StepRun) -> list[Lease]:
        """The leases of its ranges that are out."""
        ...

    def hand_out(self, part: FanRange) -> None: ...


class FannedLoop:
    """One fanned-out step run."""

    def __init__(self, driver: FanoutDriver, node: Node, run: StepRun) -> None:
        assert node.fan is not None
        assert node.fan.fanout is not None
        self.driver = driver
        self.host = driver.host
        self.node = node
        self.run = run
        self.fan = node.fan
        self.policy: Fanout = node.fan.fanout
        self.pace = Pace(self.policy.range_size)
        self._lost = LostElements()
        self.reason: str | None = None
        """Why the loop is being stopped."""
        self._is_pumping = False
        self.is_ending = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def state(self) -> Shards:
        return shards.state_of(self.run)

    # ---- opening

    def begin(self) -> bool:
        """Determine the elements to hand out. False if that failed; the step has then ended."""
        run = self.run
        try:
            described_as = self._collection()
        except (ExpressionError, TypeError) as error:
            message = f"`loop.in` of step `{run.step}`: {error}"
            self._end({"kind": "collection", "message": message, "retryable": False})
            return False
        if described_as.total is not None and described_as.total > self.policy.max_shards:
            self._end(self._too_many(described_as.total))
            return False
        self._record_start(described_as)
        return True

    def open(self) -> None:
        """Start the loop, or continue it from what the log says."""
        if not self.run.is_fanning and not self.begin():
            return
        # If the loop is continued: the ranges that are out according to the log.
        for _, held in sorted(self.state.out.items()):
            self._hand_out(held)
        self._arm()
        self._pump()

    def _collection(self) -> Described:
        old = self.run.fan
        if isinstance(old, shards.Shards):  # A failed run that is retried runs over the same elements.
            assert isinstance(old.collection, dict)
            return Described(old.collection, old.total)
        value = self.driver.judge.collection(self.node, self.run)
        return pinned(described(value, self.fan.collection), self.host.blobs, loader(self.host.blobs))

    def _record_start(self, found: Described) -> None:
        run = self.run
        reducers: JsonMap = dict(self.fan.reducers)
        policy: JsonMap = {**self.policy.as_json(), "reducers": reducers}
        body = facts.FanoutStarted(run.step, run.loop_name, found.total, found.collection, policy, found.is_paged)
        clock = (*run.place.clock, run.counter)
        self.host.stream.record(Fact(run.place.id, clock, body, event_name(run.place.id, run.counter - 1)))

    def _too_many(self, total: int | None) -> JsonMap:
        """`total` is None for paged collections, which are read only far enough to exceed the limit."""
        most = self.policy.max_shards
        many = f"{total} elements" if total is not None else "more elements than that"
        message = f"`fanout.max_shards` allows {most} elements, and `loop.in` of step `{self.run.step}` has {many}"
        return {"kind": "limit", "message": message, "retryable": False}

    # ---- handing out

    @property
    def lanes(self) -> int:
        cap = self._cap()
        return 1 if cap is None else max(1, min(LANES_PER_SLOT, cap // self._slots()))

    def _cap(self) -> int | None:
        """How many elements may be worked on at a time, on all workers together."""
        if self.policy.max_concurrent is not None:
            return self.policy.max_concurrent
        return self.fan.max_in_flight if self.fan.mode is LoopMode.PARALLEL else None

    def _slots(self) -> int:
        return max(1, self.host.workforce.slots(self.driver.context, self.node))

    def _window(self) -> int:
        window = self._slots() * self.host.workforce.ahead()
        cap = self._cap()
        return window if cap is None else min(window, max(1, cap // self.lanes))

    def _pump(self) -> None:
        if not self._is_pumping and not self.is_ending and self.reason is None and not self.host.halted:
            self._is_pumping = True
            self.host.background(self._pumped())

    async def _pumped(self) -> None:
        """Cut as many ranges as there is room for, make them durable and hand them out; then check whether all elements have
        ended."""
        try:
            while self.reason is None and not self.host.halted:
                fresh = self._cut()
                if not fresh:
                    break
                await self.host.durable()
                for held in fresh:
                    if self.reason is None and not self.host.halted and held.number in self.state.out:
                        self._hand_out(held)
        finally:
            self._is_pumping = False
        if self.state.is_stopping and self.reason is None:
            await self._have_back("abort")  # An element failed, and the loop is fail_fast.
        self._look()

    def _cut(self) -> list[ElementRange]:
        """Cut the ranges to hand out now."""
        state = self.state
        fresh: list[ElementRange] = []
        slots = self._slots()
        room = self._window() - len(state.out)
        while room > 0 and not state.is_stopping:
            size = self.pace.size(state.remaining, slots)
            if state.is_paged:  # One more than allowed, to detect that there are too many.
                size = min(size, self.policy.max_shards + 1 - state.next_index)
            piece = shards.cut(state, max(1, size))
            if piece is None:
                break
            body = shards.enqueued(self.run, piece, size)
            self._record(ENQUEUED, body, piece.hi)
            fresh.append(state.out[state.ranges - 1])
            room -= 1
        return fresh

    def _hand_out(self, elements: ElementRange) -> None:
        state = self.state
        losses = self._lost.most(elements.lo, elements.hi) if elements.hi is not None else 0
        part = FanRange(
            self.run, elements, state.opened_at, state.collection, self.lanes, self._is_per_item, losses=losses
        )
        self.driver.hand_out(part)

    # ---- what holders report

    def report(self, number: int, report: RangeReport) -> bool:
        """Record the report. False if it ends the lease of the range."""
        match report:
            case RangeOpened():
                self._opened(self.state.out[number], report)
            case ElementsEnded():
                self._ended(number, report)
            case RangeFailed():
                self._fail_rest(self.state.out[number], report.error)
                return False
        return number in self.state.out

    def _opened(self, held: ElementRange, opened: RangeOpened) -> None:
        if held.is_started:
            return
        end = opened.hi if opened.hi is not None else held.hi
        body = facts.ShardsStarted(self.run.loop_name, held.number, end, opened.next, opened.is_end, held.lo)
        self._record(STARTED, body, end)
        if opened.hi is not None and opened.hi > self.policy.max_shards:
            self.host.background(self.stop("abort", self._too_many(None)))
        elif self.state.is_paged:
            self._pump()

    def _ended(self, number: int, report: ElementsEnded) -> None:
        try:
            held = shards.accept(self.state, number, report.lo)
        except Refused:
            return  # Reported twice; already counted.
        self._record_tasks(report, number)
        for part in split(report) if self._is_per_item and report.hi > report.lo else [report]:
            self._record_report(part, held)
        self.pace.saw(report.hi - report.lo, report.ms)
        self.host.flush_soon()
        self._pump()

    def _without_retried(self, report: ElementsEnded) -> ElementsEnded:
        """The report without the writes of elements that will be retried: they will write again."""
        final = self.state.failures
        failed = {one.element for one in report.failures if one.element not in final}
        kept = [pair for pair in report.writes if not (isinstance(pair, list) and pair[0] in failed)]
        return replace(report, writes=kept)

    def came_back(self, number: int, reason: str) -> None:
        """Take back a range. A `lost` range counts against the attempts of its elements; one returned in good order does
        not."""
        held = self.state.out[number]
        if reason == "stale":
            self._fail_rest(held, stale(self.policy.queue_ttl_s))
            return
        if reason == "lost" and not shards.may_be_lost_again(self.state, held.attempt):
            self._fail_rest(held, lost(held.attempt + 1))
            return
        if reason == "lost" and held.hi is not None:
            self._lost.add(held.lo, held.hi)
        shown: Any = "stopped" if self.state.is_stopping or self.reason else reason
        self._record_return(held, shown, counts=reason == "lost")
        self.host.flush_soon()
        self._pump()

    def _fail_rest(self, held: ElementRange, error: JsonMap) -> None:
        """Fail the remaining elements of a range with one error. If a page could not be opened, the step fails."""
        if held.hi is None:
            message = f"`loop.in` of step `{self.run.step}`: {error.get('message')}"
            self.host.background(self.stop("abort", {**error, "message": message}))
            return
        for index in range(held.lo, held.hi):
            self._record_failure(Failed(index, str(index), error), held, again=False, up_to=index + 1)
            if self.state.is_stopping:  # The other elements were not tried, so they have not failed.
                break
        if held.number in self.state.out:
            self._record_return(held, "stopped")
        self._pump()

    # ---- the end

    def _look(self) -> None:
        if self.state.is_over and not self.is_ending and not self._is_pumping and self.reason is None:
            self.fan_in()

    def fan_in(self) -> None:
        """Every element has ended: combine their results and end the step."""
        # `completed` is set already if a crash came between the fan-in and the end of the step.
        beaten = self.bring_together() if self.state.completed is None else set()
        run, limit = self.run, self.driver.context.net.limits.max_payload_bytes
        end = fanin.ending(run, results_of(self.state, self.host.blobs, limit, beaten), fanin.gathered(run))
        self._finish(self.driver.judge.with_step_writes(self.node, run, end))

    def bring_together(self) -> set[int]:
        """End the elements that waited for the fan-in. Return the elements that logs of release 1 recorded as done but that
        now fail."""
        run, state = self.run, self.state
        beaten: set[int] = set()
        for end_of in fanin.ends(run, per_item=self._is_per_item):
            if isinstance(end_of, facts.ShardsDone):
                self._record_stands(end_of)
                continue
            self._record_failed(end_of)
            if end_of.range == SETTLED:
                beaten.add(end_of.iter_index)
        refs: JsonMap = {"loop_id": run.loop_name, "execution_id": self.host.execution_id}
        body = fanin.completed(run, refs)
        cause = event_name(run.place.id, state.opened_at)
        self.host.stream.record(Fact(run.place.id, (*run.place.clock, run.counter), body, cause))
        return beaten

    def _end(self, error: JsonMap) -> None:
        self._finish(RunEnded(self.run.step, "failed", None, error, {}, looped=True, fanned_out=True))

    def _finish(self, end: RunEnded) -> None:
        self.is_ending = True
        if self._timer is not None:
            self._timer.cancel()
        self.driver.fanout_ended(self, end)

    # ---- stopping

    async def _have_back(self, reason: str) -> None:
        """Make the holders of ranges give them back."""
        held = self.driver.ranges_of(self.run)
        await asyncio.gather(*(self.host.workforce.stop(lease, reason) for lease in held))

    async def stop(self, reason: str, error: JsonMap | None = None) -> None:
        """Take back all ranges. The step then fails, unless the whole run is only interrupted."""
        if self.is_ending or self.reason is not None:
            return
        self.reason = reason
        await self._have_back(reason)
        if reason == "interrupt" or self.host.halted or self.is_ending:
            return
        for _, held in sorted(self.state.out.items() if self.run.fan is not None else ()):
            self._record_return(held, "stopped")
        failure = error or stopped(self.run.step, reason)
        self._finish(RunEnded(self.run.step, "failed", None, failure, {}, looped=True, given_up=True, fanned_out=True))

    def _arm(self) -> None:
        """Start the timer for the step's own time limits."""
        left = time_left(self.node, self.run, self.driver.context.scope.resumed_at, self.host.now())
        if left is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(left.seconds, lambda: self.host.background(self._out_of_time(left)))

    async def _out_of_time(self, left: TimeLeft) -> None:
        state = self.state
        is_untaken = not (state.ok or state.failed or state.reported) and not any(
            held.is_started for held in state.out.values()
        )
        why = untaken(self.node, self.driver.context.net.executor) if is_untaken else ""
        await self.stop("abort", out_of_time(self.node, left, why))

    # ---- recording

    # Law: no two facts of a loop share a clock. Within the loop, the clock consists of the element, the range (whose numbers
    # are never reused) and what happened to the element in that range; the fan-in comes after all ranges.

    @property
    def _is_per_item(self) -> bool:
        return self.policy.emit is Emit.PER_ITEM

    def _record(self, what: int, body: _OfElements, hi: int | None, number: int | None = None) -> None:
        """Record one fact for elements up to `hi`; with `emit: per_item`, the same fact once per element (evolve counts it
        once)."""
        lo, number = body.lo, body.range if number is None else number
        assert lo is not None
        if self._is_per_item and hi is not None and hi > lo:
            for index in range(lo, hi):
                self._record_element(index, (number, what), body)
            return
        run, opened_at = self.run, self.state.opened_at
        clock = (*run.place.clock, opened_at, lo, number, what)
        self.host.stream.record(Fact(run.place.id, clock, body, event_name(run.place.id, opened_at)))

    def _record_return(self, held: ElementRange, reason: Any, *, counts: bool = False) -> None:
        body = facts.ShardsReturned(self.run.loop_name, held.number, held.lo, held.hi, reason, None, counts)
        self._record(RETURNED, body, held.hi)

    def _record_element(self, index: int, at: tuple[int, ...], body: facts.Body) -> None:
        run, opened_at = self.run, self.state.opened_at
        place = iteration_place(run.place, opened_at, index)
        self.host.stream.record(Fact(place.id, (*place.clock, *at), body, event_name(run.place.id, opened_at)))

    def _record_tasks(self, report: ElementsEnded, number: int) -> None:
        """Record what the tasks of the elements did. An element's first task is caused by the fan-out, each later one by the
        fact before it."""
        run, opened_at = self.run, self.state.opened_at
        counters: Counter[int] = Counter()
        for element, task, _, body in report.tasks:
            place = iteration_place(run.place, opened_at, element)
            counter = counters[element]
            before = f"{place.id}:{number}.{TASK}.{counter - 1}" if counter else event_name(run.place.id, opened_at)
            clock = (*place.clock, number, TASK, counter)
            self.host.stream.record(Fact(place.id, clock, body, before, task))
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
        body = report_fact(self.run.loop_name, held.number, report)
        if isinstance(body, facts.ShardsDone) and self._is_per_item and report.keys:
            body = replace(body, iter_key=report.keys[0])
        self._record(DONE, body, body.hi)

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
        self._record_failed(body)

    def _record_failed(self, body: facts.ShardFailed) -> None:
        is_late = body.at_fanin or body.range == SETTLED
        number = self.state.ranges if is_late else body.range
        self._record_element(body.iter_index, (number, FAILED), body)

    def _record_stands(self, body: facts.ShardsDone) -> None:
        if self._is_per_item:
            body = replace(body, results={"same": held_result(self.state, body.lo)})
        self._record(DONE, body, body.hi, self.state.ranges)


# ---- what a report, or the loss of a range, is written down as


def report_fact(loop_id: str, number: int, report: ElementsEnded) -> facts.ShardsReported | facts.ShardsDone:
    """The fact for all elements of a report. Failed elements have been recorded before."""
    failed = sorted(one.element for one in report.failures)
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
        loop_id, number, report.lo, report.hi, done, len(failed), results, shared=report.shared, ms=report.ms
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


def lost(times: int) -> JsonMap:
    message = f"the worker that had it was lost {times} times" if times > 1 else "the worker that had it was lost"
    return {"kind": "worker_lost", "message": message, "retryable": True}


def stale(ttl_s: float | None) -> JsonMap:
    message = f"no worker took it within `fanout.queue_ttl_s` of {ttl_s:g} s" if ttl_s else "no worker took it in time"
    return {"kind": "queue_ttl", "message": message, "retryable": True}
