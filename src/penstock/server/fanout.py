"""A fanned-out loop: which ranges its driver hands out, how their results are recorded, and the end once every element has
ended.

A range is on disk before a worker sees it. Only a few ranges per worker are out at a time: they are cut when there is room
for them, in a size that keeps a worker busy for some seconds.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from penstock.expr.template import ExpressionError
from penstock.kernel import facts, fanin, ranges, shards
from penstock.kernel.facts import Fact, RunEnded
from penstock.kernel.judge import stopped
from penstock.kernel.net import Emit, LoopMode, Node
from penstock.kernel.ranges import (
    CallOff,
    CutRange,
    ElementsEnded,
    FanIn,
    FanOut,
    RangeFailed,
    RangeOpened,
    RangeReport,
    RangeReported,
    RangeReturned,
)
from penstock.kernel.shards import SETTLED, ElementRange, Shards
from penstock.kernel.state import StepRun
from penstock.kernel.values import JsonMap
from penstock.ports.collections import Described, described, pinned
from penstock.ports.leases import FanRange, Lease, ScopeContext, TimeLeft, out_of_time, time_left
from penstock.ports.results import loader
from penstock.server.fanout_results import held_result, results_of
from penstock.server.host import Host
from penstock.server.judge import TemplateJudge
from penstock.server.terms import LostElements, Pace, untaken

LANES_PER_SLOT = 16


class FanoutDriver(Protocol):
    """The driver of the execution the step lies in. It holds the leases of all ranges and passes on what their holders
    report."""

    host: Host
    context: ScopeContext
    judge: TemplateJudge

    def fanout_ended(self, loop: FannedLoop, body: RunEnded) -> None: ...

    def record_decision(self, stimulus: object) -> list[Fact]:
        """Decide, and append the facts to the log; whoever asked acts on them."""
        ...

    def ranges_of(self, run: StepRun) -> list[Lease]:
        """The leases of its ranges that are out."""
        ...

    def hand_out(self, part: FanRange) -> None: ...


class FannedLoop:
    """One fanned-out step run."""

    def __init__(self, driver: FanoutDriver, node: Node, run: StepRun) -> None:
        assert node.fan is not None
        self.driver = driver
        self.host = driver.host
        self.node = node
        self.run = run
        self.fan = node.fan
        self.policy = ranges.policy_of(node)
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
            self._end(ranges.too_many(run.step, self.policy, described_as.total))
            return False
        how = (described_as.is_paged, described_as.claims)
        self.driver.record_decision(FanOut(run, described_as.collection, described_as.total, *how))
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
            if not self.driver.record_decision(CutRange(self.run, max(1, size))):
                break
            fresh.append(state.out[state.ranges - 1])
            room -= 1
        return fresh

    def _hand_out(self, elements: ElementRange) -> None:
        state = self.state
        losses = self._lost.most(elements.lo, elements.hi) if elements.hi is not None else 0
        part = FanRange(
            self.run,
            elements,
            state.opened_at,
            state.collection,
            self.lanes,
            self.policy.emit is Emit.PER_ITEM,
            losses=losses,
        )
        self.driver.hand_out(part)

    # ---- what holders report

    def report(self, number: int, report: RangeReport) -> bool:
        """Record the report. False if it ends the lease of the range."""
        if isinstance(report, RangeFailed) and self._fails_as_page(number, report.error):
            return False
        recorded = self.driver.record_decision(RangeReported(self.run, number, report))
        if isinstance(report, RangeOpened):
            if self.state.is_paged and self.state.next_index > self.policy.max_shards:
                self.host.background(self.stop("abort", ranges.too_many(self.run.step, self.policy, None)))
            elif self.state.is_paged:
                self._pump()
            return True
        if isinstance(report, ElementsEnded) and recorded:
            self.pace.saw(report.hi - report.lo, report.ms)
            self.host.flush_soon()
        self._pump()
        return number in self.state.out

    def came_back(self, number: int, reason: str) -> None:
        held = self.state.out[number]
        if reason == "stale" and self._fails_as_page(number, ranges.stale(self.policy.queue_ttl_s)):
            return
        is_last = reason == "lost" and not shards.may_be_lost_again(self.state, held.attempt)
        if is_last and self._fails_as_page(number, ranges.lost(held.attempt + 1)):
            return
        if reason == "lost" and not is_last and held.hi is not None:
            self._lost.add(held.lo, held.hi)
        self.driver.record_decision(RangeReturned(self.run, number, reason, is_stopped=self.reason is not None))
        self.host.flush_soon()
        self._pump()

    def _fails_as_page(self, number: int, error: JsonMap) -> bool:
        """If a page could not be opened, it is not known which elements it has, and the step fails."""
        if self.state.out[number].hi is not None:
            return False
        message = f"`loop.in` of step `{self.run.step}`: {error.get('message')}"
        self.host.background(self.stop("abort", {**error, "message": message}))
        return True

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
        refs: JsonMap = {"loop_id": self.run.loop_name, "execution_id": self.host.execution_id}
        recorded = self.driver.record_decision(FanIn(self.run, refs, lambda index: held_result(self.state, index)))
        bodies = (fact.body for fact in recorded)
        return {body.iter_index for body in bodies if isinstance(body, facts.ShardFailed) and body.range == SETTLED}

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
        if self.run.fan is not None:
            self.driver.record_decision(CallOff(self.run))
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
