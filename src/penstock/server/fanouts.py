"""The server side of a fanned-out loop: it hands out ranges, takes in what came of them, and ends the step when all is in.

What is handed out is on disk before a worker sees it, and small next to the loop: some ranges for each worker, cut when there is
room for them, in a size that keeps a worker busy for some seconds.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.expr.template import ExpressionError
from penstock.kernel import facts, fanin, fanout
from penstock.kernel.decide import stopped
from penstock.kernel.errors import Refused
from penstock.kernel.facts import Fact, RunEnded
from penstock.kernel.fanout import SETTLED, FanoutState, ShardRange
from penstock.kernel.net import Emit, Fanout, LoopMode, Node
from penstock.kernel.places import event_name, iteration_place
from penstock.kernel.state import NOT_OPENED, RunState
from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Described, described, pinned
from penstock.ports.leases import Caller
from penstock.ports.ranges import Failed, RangeLease, RangeReport
from penstock.ports.results import loader
from penstock.server.fanout_facts import done_facts, lost, stale
from penstock.server.fanout_results import gather, results_of
from penstock.server.pace import Pace
from penstock.server.suspects import LostElements

if TYPE_CHECKING:
    from penstock.server.step_driver import ScopeDriver

LANES_PER_SLOT = 16


class FanoutDriver:
    """One fanned-out step run. It is what the holders of its ranges report to."""

    def __init__(self, scope: ScopeDriver, node: Node, run: RunState) -> None:
        assert node.fan is not None
        assert node.fan.fanout is not None
        self.scope = scope
        self.host = scope.host
        self.node = node
        self.run = run
        self.fan = node.fan
        self.policy: Fanout = node.fan.fanout
        self.leases: dict[int, RangeLease] = {}
        self.pace = Pace(self.policy.range_size)
        self._lost = LostElements()
        self.reason: str | None = None
        """Why it is being stopped."""
        self._is_pumping = False
        self._is_ending = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def fanout(self) -> FanoutState:
        return fanout.state_of(self.run)

    # ---- opening

    def open(self) -> None:
        """Begin, or go on with what the log has of it."""
        run = self.run
        recorded, failure = self.host.shards_of(run.place.id) if self.host.recalls else (None, None)
        if self.host.recalls and recorded is None and failure is not None:
            self._finish(RunEnded(run.step, "failed", None, failure, {}, looped=True, given_up=True, fanned_out=True))
            return
        if run.fanout is None or run.fanout.opened_at == NOT_OPENED:
            try:
                described_as = self._collection()
            except (ExpressionError, TypeError) as error:
                message = f"`loop.in` of step `{run.step}`: {error}"
                self._end({"kind": "collection", "message": message, "retryable": False})
                return
            if described_as.total is not None and described_as.total > self.policy.max_shards:
                self._end(self._too_many(described_as.total))
                return
            if self.host.recalls and recorded is None:
                return  # The record ends before it began.
            self._record_start(described_as)
        if recorded is not None:
            self._recall(recorded, failure)
            return
        for _, shards in sorted(self.fanout.out.items()):  # Of a loop that is taken up: what the log has as out.
            self._hand_out(shards)
        self._arm()
        self._pump()

    def _recall(self, recorded: list[Fact], failure: JsonMap | None) -> None:
        """In a replay: what was handed out when, and what came of it, is given; what follows from it is decided anew."""
        for fact in recorded:
            self.host.record(fact)
            if isinstance(fact.body, facts.ShardsDone):
                gather(self.fanout, fact.body, self.host.blobs)
        if failure is not None:
            self._finish(
                RunEnded(self.run.step, "failed", None, failure, {}, looped=True, given_up=True, fanned_out=True)
            )
        else:
            self._look()

    def _collection(self) -> Described:
        if self.run.fanout is not None:  # A failed run that is tried again runs over the same elements.
            old = self.run.fanout
            assert isinstance(old.collection, dict)
            return Described(old.collection, old.total)
        value = self.scope.judge.collection(self.node, self.run)
        return pinned(described(value, self.fan.collection), self.host.blobs, loader(self.host.blobs))

    def _record_start(self, found: Described) -> None:
        run = self.run
        reducers: JsonMap = dict(self.fan.reducers)
        policy: JsonMap = {**self.policy.as_json(), "reducers": reducers}
        body = facts.FanoutStarted(run.step, run.loop_name, found.total, found.collection, policy, found.is_paged)
        clock = (*run.place.clock, run.counter)
        self.host.record(Fact(run.place.id, clock, body, event_name(run.place.id, run.counter - 1)))

    def _too_many(self, total: int | None) -> JsonMap:
        """`total` is None of pages, of which nobody reads more than it takes to know."""
        most = self.policy.max_shards
        many = f"{total} elements" if total is not None else "more elements than that"
        message = f"`fanout.max_shards` allows {most} elements, and `loop.in` of step `{self.run.step}` has {many}"
        return {"kind": "limit", "message": message, "retryable": False}

    # ---- handing out

    @property
    def lanes(self) -> int:
        cap = self._cap()
        return 1 if cap is None else max(1, min(LANES_PER_SLOT, cap // max(1, self.host.workforce.slots(self.node))))

    def _cap(self) -> int | None:
        """How many elements may be worked on at a time, everywhere together."""
        if self.policy.max_concurrent is not None:
            return self.policy.max_concurrent
        return self.fan.max_in_flight if self.fan.mode is LoopMode.PARALLEL else None

    def _window(self) -> int:
        force = self.host.workforce
        window = max(1, force.slots(self.node)) * force.ahead()
        cap = self._cap()
        return window if cap is None else min(window, max(1, cap // self.lanes))

    def _pump(self) -> None:
        if not self._is_pumping and not self._is_ending and self.reason is None and not self.host.halted:
            self._is_pumping = True
            self.host.background(self._pumped())

    async def _pumped(self) -> None:
        """Cut what there is room for, make it durable, hand it out; then see whether all is in."""
        try:
            while self.reason is None and not self.host.halted:
                fresh = self._cut()
                if not fresh:
                    break
                await self.host.durable()
                for shards in fresh:
                    if self.reason is None and not self.host.halted and shards.number in self.fanout.out:
                        self._hand_out(shards)
        finally:
            self._is_pumping = False
        if self.fanout.is_stopping and self.reason is None:
            await self._call_back()
        self._look()

    def _cut(self) -> list[ShardRange]:
        """Ranges to hand out now."""
        state = self.fanout
        fresh: list[ShardRange] = []
        slots = max(1, self.host.workforce.slots(self.node))
        room = self._window() - len(state.out)
        while room > 0 and not state.is_stopping:
            size = self.pace.size(state.remaining, slots)
            if state.is_paged:  # One more than is allowed: then it is known that there are too many.
                size = min(size, self.policy.max_shards + 1 - state.next)
            piece = fanout.cut(state, max(1, size))
            if piece is None:
                break
            self._record(piece.lo, 0, fanout.enqueued(self.run, piece, size))
            fresh.append(state.out[state.ranges - 1])
            room -= 1
        return fresh

    def _hand_out(self, shards: ShardRange) -> None:
        state = self.fanout
        lease = RangeLease(
            self.scope.setting,
            self.node,
            self.run,
            shards,
            state.collection,
            state.opened_at,
            self.lanes,
            self.policy.emit is Emit.PER_ITEM,
            dict(self.fan.reducers),
            losses=self._lost.most(shards.lo, shards.hi) if shards.hi is not None else 0,
        )
        self.leases[shards.number] = lease
        self.host.workforce.start_range(lease, self)

    # ---- reports

    def opened(self, lease: RangeLease, hi: int | None, next: Json, is_end: bool) -> None:
        if not self._is_current(lease) or self.fanout.out[lease.shards.number].is_started:
            return
        number = lease.shards.number
        self._record(lease.shards.lo, 1, facts.ShardsStarted(self.run.loop_name, number, hi, next, is_end))
        if hi is not None and hi > self.policy.max_shards:
            self.host.background(self.stop("abort", self._too_many(None)))
        elif self.fanout.is_paged:
            self._pump()

    def reported(self, lease: RangeLease, report: RangeReport) -> None:
        if not self._is_current(lease):
            return
        number = lease.shards.number
        try:
            held = fanout.accept(self.fanout, number, report.lo)
        except Refused:
            return  # Told twice: it has been counted.
        if report.failures:
            for failed in report.failures:
                self._record_failure(failed, number, held.attempt)
            report = self._without_retried(report)
        for body in done_facts(self.run.loop_name, lease, report):
            self._record(body.lo, 2, body)
        self.pace.saw(report.hi - report.lo, report.ms)
        if number not in self.fanout.out:
            self.leases.pop(number, None)
        self.host.flush_soon()
        self._pump()

    def _without_retried(self, report: RangeReport) -> RangeReport:
        """What an element wrote that is tried again is not kept: it will write again."""
        final = self.fanout.failures
        failed = {one.element for one in report.failures if one.element not in final}
        kept = [pair for pair in report.writes if not (isinstance(pair, list) and pair[0] in failed)]
        return replace(report, writes=kept)

    def gave_back(self, lease: RangeLease, reason: str, worker: str | None = None) -> None:
        """`lost` counts against the tries that its elements have; what was returned in good order does not."""
        if not self._is_current(lease):
            return
        number = lease.shards.number
        held = self.fanout.out[number]
        self.leases.pop(number, None)
        if reason == "stale":
            self._fail_rest(held, stale(self.policy.queue_ttl_s))
            return
        if reason == "lost" and not fanout.may_be_lost_again(self.fanout, held.attempt):
            self._fail_rest(held, lost(held.attempt + 1))
            return
        if reason == "lost" and held.hi is not None:
            self._lost.add(held.lo, held.hi)
        said: Any = "stopped" if self.fanout.is_stopping or self.reason else reason
        body = facts.ShardsReturned(self.run.loop_name, number, held.lo, held.hi, said, worker, reason == "lost")
        self._record(held.lo, 3, body)
        self.host.flush_soon()
        self._pump()

    def failed(self, lease: RangeLease, error: JsonMap) -> None:
        if self._is_current(lease):
            self.leases.pop(lease.shards.number, None)
            self._fail_rest(self.fanout.out[lease.shards.number], error)

    def _fail_rest(self, held: ShardRange, error: JsonMap) -> None:
        """All that is left of a range fails with one error. A page that nobody could open fails the step."""
        if held.hi is None:
            message = f"`loop.in` of step `{self.run.step}`: {error.get('message')}"
            self.host.background(self.stop("abort", {**error, "message": message}))
            return
        for index in range(held.lo, held.hi):
            self._record_failure(Failed(index, str(index), error), held.number, held.attempt, again=False)
            if self.fanout.is_stopping:  # The others have not failed: they were not tried.
                body = facts.ShardsReturned(self.run.loop_name, held.number, held.lo, held.hi, "stopped", None, False)
                self._record(held.lo, 3, body)
                break
        else:
            count = held.hi - held.lo
            whole = facts.ShardsDone(self.run.loop_name, held.number, held.lo, held.hi, 0, count, {"same": None})
            self._record(held.lo, 2, whole)
        self._pump()

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Any:
        raise Refused(
            "a shard cannot run a playbook or a job of its own",
            hint="use a local loop (`loop_mode: local`) for this step",
        )

    async def durable(self) -> None:
        await self.host.durable()

    def now(self) -> float:
        return self.host.now()

    def broke(self, error: BaseException) -> None:
        self.host.broke(error)

    def _is_current(self, lease: RangeLease) -> bool:
        return not self.host.halted and not self._is_ending and self.leases.get(lease.shards.number) is lease

    # ---- the end

    def _look(self) -> None:
        if self.fanout.is_over and not self._is_ending and not self._is_pumping and self.reason is None:
            self._fan_in()

    def _fan_in(self) -> None:
        run, state = self.run, self.fanout
        losers = fanin.conflicts(run)
        beaten = {index for index, _ in losers}
        if state.completed is None:  # Otherwise a crash came between it and the end of the step.
            for index, error in losers:
                self._record_failure(Failed(index, str(index), error), SETTLED, 0, again=False)
            refs: JsonMap = {"loop_id": run.loop_name, "execution_id": self.host.execution_id}
            body = fanin.completed(run, refs)
            cause = event_name(run.place.id, state.opened_at)
            self.host.record(Fact(run.place.id, (*run.place.clock, run.counter), body, cause))
        results = results_of(state, self.host.blobs, self.scope.setting.net.limits.max_payload_bytes, beaten)
        writes = fanin.gathered(run, beaten)
        end = fanin.ending(run, results, writes)
        self._finish(self.scope.judge.with_step_writes(self.node, run, end))

    def _end(self, error: JsonMap) -> None:
        self._finish(RunEnded(self.run.step, "failed", None, error, {}, looped=True, fanned_out=True))

    def _finish(self, end: RunEnded) -> None:
        self._is_ending = True
        if self._timer is not None:
            self._timer.cancel()
        self.host.background(self.host.end_fanout(self, end))

    # ---- stopping

    async def _call_back(self) -> None:
        """An element failed and the loop is fail_fast: those who hold ranges let go of them."""
        held = list(self.leases.values())
        await asyncio.gather(*(self.host.workforce.stop_range(lease, "abort") for lease in held))

    async def stop(self, reason: str, error: JsonMap | None = None) -> None:
        """Have all ranges back. Unless the whole run is only interrupted, the step has failed then."""
        if self._is_ending or self.reason is not None:
            return
        self.reason = reason
        held = list(self.leases.values())
        await asyncio.gather(*(self.host.workforce.stop_range(lease, reason) for lease in held))
        if reason == "interrupt" or self.host.halted or self._is_ending:
            return
        for number, shards in sorted(self.fanout.out.items() if self.run.fanout is not None else ()):
            body = facts.ShardsReturned(self.run.loop_name, number, shards.lo, shards.hi, "stopped", None, False)
            self._record(shards.lo, 3, body)
        failure = error or stopped(self.run.step, reason)
        self._finish(RunEnded(self.run.step, "failed", None, failure, {}, looped=True, given_up=True, fanned_out=True))

    def _arm(self) -> None:
        """The step's own time limits."""
        node, run = self.node, self.run
        limits = []
        if node.timeout_s is not None:
            limits.append((node.timeout_s, "timeout", node.timeout_s))
        if node.deadline_s is not None:
            limits.append((max(0.0, run.scheduled_at + node.deadline_s - self.now()), "deadline", node.deadline_s))
        if limits and self.scope.host.stops_holders:
            left, which, limit = min(limits)
            message = f"step `{node.name}` did not end within its `lifecycle.{which}_s` of {limit:g} s"
            error: JsonMap = {"kind": which, "message": message, "retryable": True}
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(left, lambda: self.host.background(self.stop("abort", error)))

    # ---- recording

    def _record(self, lo: int, what: int, body: facts.Body) -> None:
        run, opened_at = self.run, self.fanout.opened_at
        clock = (*run.place.clock, opened_at, lo, what)
        self.host.record(Fact(run.place.id, clock, body, event_name(run.place.id, opened_at)))
        if isinstance(body, facts.ShardsDone):
            gather(self.fanout, body, self.host.blobs)

    def _record_failure(self, failed: Failed, number: int, attempt: int, *, again: bool | None = None) -> None:
        run, state = self.run, self.fanout
        place = iteration_place(run.place, state.opened_at, failed.element)
        if again is None:
            again = fanout.comes_again(state, attempt)
        shard_id = f"{run.loop_name}[{failed.element}]"
        body = facts.ShardFailed(
            run.loop_name, shard_id, failed.element, failed.key, attempt, failed.error, again, number
        )
        self.host.record(Fact(place.id, (*place.clock, attempt), body, event_name(run.place.id, state.opened_at)))
