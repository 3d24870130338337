"""A loop that is handed out in ranges, in the notation of rules: what is cut, what comes back, what it comes to.

fan = handed_out(6)
assert fan.cut(4) == "loop.shard.enqueued: range 0, elements 0-4, attempt 0"
assert fan.done(0) == ["loop.shard.done: range 0, elements 0-4, 4 done"]
assert fan.ends() == ["loop.fanin.completed: complete, 6 of 6", "loop.done start@0", …]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.kernel import facts, fanin, shards
from penstock.kernel.decide import RunOver
from penstock.kernel.net import Fan, Fanout
from penstock.kernel.ranges import (
    CallOff,
    CutRange,
    ElementsEnded,
    Failed,
    FanIn,
    FanOut,
    RangeOpened,
    RangeReported,
    RangeReturned,
)
from penstock.kernel.reducers import lift
from tests.rules.notation import Case, Stimulus, begun, given, steps

LOOP = "start@0"
ERROR = {"kind": "x", "message": "no"}


class Ranges:
    def __init__(self, case: Case, policy: Fanout) -> None:
        self.case = case
        self.policy = policy
        self.scope = LOOP
        """The run of the step that hands it out; a resume gives it another one."""

    @property
    def run(self) -> Any:
        return self.case.state.runs[self.scope]

    @property
    def state(self) -> Any:
        return shards.state_of(self.run)

    def when(self, stimulus: object) -> list[str]:
        before = len(self.case.facts)
        self.case.when(lambda case: stimulus)
        return [told(fact.body) for fact in self.case.facts[before:]]

    def cut(self, size: int) -> str | None:
        """Hand out the next elements; None where there is nothing to hand out."""
        found = self.when(CutRange(self.run, size))
        return found[0] if found else None

    def opened(self, number: int, hi: int | None = None, *, is_end: bool = False) -> list[str]:
        """A worker has begun with it; for a page: it goes up to `hi`."""
        return self.when(RangeReported(self.run, number, RangeOpened(hi, None, is_end)))

    def done(
        self, number: int, *, lo: int | None = None, up_to: int | None = None, failed: Sequence[int] = (), **shared: Any
    ) -> list[str]:
        """A range has been reported, or the first part of it. `shared`: what its elements gave to each reducer."""
        held = self.state.out.get(number)
        start = lo if lo is not None else held.lo
        hi = held.hi if up_to is None else up_to
        parts = {key: lift(self.policy.reducers[key], value, start) for key, value in shared.items()}
        return self._reports(number, ElementsEnded(start, hi, _failures(failed), None, True, [], parts))

    def wrote(
        self, number: int, *, failed: Sequence[int] = (), shared: Mapping[str, Any] | None = None, **ctx: Any
    ) -> list[str]:
        """A range has been reported whose first element wrote to ctx. `failed`: those that failed; `shared`: for the reducers."""
        held = self.state.out[number]
        writes: dict[str, Any] = {"ctx": ctx}
        if shared:
            writes["shared"] = {key: [lift(self.policy.reducers[key], each, held.lo)] for key, each in shared.items()}
        return self._reports(
            number, ElementsEnded(held.lo, held.hi, _failures(failed), None, True, [[held.lo, writes]])
        )

    def _reports(self, number: int, report: ElementsEnded) -> list[str]:
        return self.when(RangeReported(self.run, number, report))

    def back(self, number: int, reason: str) -> list[str]:
        """`lost`: the worker that had it is gone; `returned`: a worker that stops gave it back; `stale`: nobody took it in
        time."""
        return self.when(RangeReturned(self.run, number, reason))

    def called_off(self) -> list[str]:
        return self.when(CallOff(self.run))

    def ends(self) -> list[str]:
        """Everything is in: what that comes to, and what follows."""
        said = self.when(FanIn(self.run, {}, lambda index: None))
        run, end = self.run, fanin.ending(self.run, None, fanin.gathered(self.run))
        over: Stimulus = lambda case: RunOver(run, end)  # noqa: E731
        return said + self.case.when(over)

    def goes_on(self) -> None:
        """The step was resumed: the loop is taken up by its new run."""
        self.scope = next(iter(self.case.state.root.runs.values())).place.id
        self.start(self.run.fan.total)

    def start(self, total: int | None, *, is_paged: bool = False, claims: bool = False) -> list[str]:
        return self.when(FanOut(self.run, {"kind": "range"}, total, is_paged, claims))


def handed_out(total: int | None, *ways: str, **policy: Any) -> Ranges:
    """A playbook whose first step hands out its loop, page by page if `total` is None. `policy`: `fail_fast`, `allow_partial`,
    `retries`, `losses`, `reducers`, `emit`."""
    how = Fanout(**policy)
    fan = Fan("{{ items }}", "n", reducers=how.reducers, fanout=how)
    case = given(steps(*ways or ("start -> next",), loops={"start": fan})).then(begun())
    found = Ranges(case, how)
    found.start(total, is_paged=total is None)
    return found


def claimed_in_ranges(**policy: Any) -> Ranges:
    """The same over rows that are claimed: each page is a claim."""
    how = Fanout(**policy)
    fan = Fan("{{ items }}", "n", reducers=how.reducers, fanout=how)
    found = Ranges(given(steps("start -> next", loops={"start": fan})).then(begun()), how)
    found.start(None, is_paged=True, claims=True)
    return found


def _failures(indexes: Sequence[int]) -> list[Failed]:
    return [Failed(index, str(index), dict(ERROR)) for index in indexes]


def told(body: facts.Body) -> str:
    name = facts.event_type(body)
    match body:
        case facts.ShardsEnqueued():
            return f"{name}: range {body.range}, elements {body.lo}-{body.hi}, attempt {body.attempt}"
        case facts.ShardsStarted():
            return f"{name}: range {body.range}, up to {body.hi}{', the end' if body.is_end else ''}"
        case facts.ShardsDone():
            failed = f", {body.failed} failed" if body.failed else ""
            return f"{name}: range {body.range}, elements {body.lo}-{body.hi}, {body.done} done{failed}"
        case facts.ShardsReported():
            return f"{name}: range {body.range}, elements {body.lo}-{body.hi}"
        case facts.ShardFailed():
            error = body.error if isinstance(body.error, dict) else {}
            return f"{name}: {body.shard_id}, {error.get('message')}{', again' if body.again else ''}"
        case facts.ShardsReturned():
            return f"{name}: range {body.range}, elements {body.lo}-{body.hi}, {body.reason}"
        case facts.FaninCompleted():
            return f"{name}: {body.status}, {body.succeeded} of {body.total}"
    return name
