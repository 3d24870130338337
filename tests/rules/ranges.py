"""A loop that is handed out in ranges, in the notation of rules: what is cut, what comes back, what it comes to.

fan = handed_out(6)
assert fan.cut(4) == "loop.shard.enqueued: range 0, elements 0-4, attempt 0"
assert fan.done(0) == "loop.shard.done: range 0, elements 0-4, 4 done"
assert fan.ends() == ["loop.fanin.completed: complete, 6 of 6", "loop.done start@0", …]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.kernel import facts, fanin, shards
from penstock.kernel.decide import RunOver
from penstock.kernel.facts import Fact
from penstock.kernel.net import Fan, Fanout
from penstock.kernel.reducers import lift
from tests.rules.notation import Case, Stimulus, begun, given, steps

LOOP = "start@0"


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

    def record(self, body: facts.Body) -> str:
        self.case._record(Fact(self.scope, (*self.run.place.clock, len(self.case.facts)), body))
        return told(body)

    def cut(self, size: int) -> str | None:
        """Hand out the next elements; None where there is nothing to hand out."""
        piece = shards.cut(self.state, size)
        return None if piece is None else self.record(shards.enqueued(self.run, piece, size))

    def done(self, number: int, *, up_to: int | None = None, failed: int = 0, **shared: Any) -> str:
        """A range has come back, or the first part of it. `shared`: what its elements gave to each reducer."""
        held = shards.accept(self.state, number)
        hi = held.hi if up_to is None else up_to
        parts = {key: lift(self.policy.reducers[key], value, held.lo) for key, value in shared.items()}
        body = facts.ShardsDone(LOOP, number, held.lo, hi, hi - held.lo - failed, failed, {"same": None}, [], parts)
        return self.record(body)

    def wrote(
        self, number: int, *, failed: Sequence[int] = (), shared: Mapping[str, Any] | None = None, **ctx: Any
    ) -> str:
        """A range has come back whose first element wrote to ctx. `failed`: those that failed; `shared`: for the reducers."""
        held = shards.accept(self.state, number)
        writes: dict[str, Any] = {"ctx": ctx}
        if shared:
            writes["shared"] = {key: [lift(self.policy.reducers[key], each, held.lo)] for key, each in shared.items()}
        pairs: list[Any] = [[held.lo, writes]]
        return self.record(facts.ShardsReported(LOOP, number, held.lo, held.hi, list(failed), None, pairs))

    def failed(self, number: int, index: int) -> str:
        held = shards.accept(self.state, number)
        again = shards.comes_again(self.state, held.attempt)
        error = {"kind": "x", "message": "no"}
        is_alone = held.hi == held.lo + 1
        body = facts.ShardFailed(
            LOOP,
            f"{LOOP}[{index}]",
            index,
            str(index),
            held.attempt,
            error,
            again,
            number,
            up_to=index + 1 if is_alone else None,
        )
        return self.record(body)

    def lost(self, number: int) -> str:
        """The worker that had it is gone."""
        held = shards.accept(self.state, number)
        return self.record(facts.ShardsReturned(LOOP, number, held.lo, held.hi, "lost", "w"))

    def returned(self, number: int) -> str:
        """A worker that stops gave it back: none of its attempts."""
        held = shards.accept(self.state, number)
        return self.record(facts.ShardsReturned(LOOP, number, held.lo, held.hi, "returned", "w", counts=False))

    def ends(self) -> list[str]:
        """Everything is in: what that comes to, and what follows."""
        said = [self.record(body) for body in fanin.ends(self.run, per_item=False)]
        writes = fanin.gathered(self.run)
        said.append(self.record(fanin.completed(self.run, None)))
        run, end = self.run, fanin.ending(self.run, None, writes)
        over: Stimulus = lambda case: RunOver(run, end)  # noqa: E731
        return said + self.case.when(over)

    def goes_on(self) -> None:
        """The step was resumed: the loop is taken up by its new run."""
        self.scope = next(iter(self.case.state.root.runs.values())).place.id
        self._start(self.state.total)

    def _start(self, total: int | None) -> None:
        policy = {**self.policy.as_json(), "reducers": dict(self.policy.reducers)}
        self.record(facts.FanoutStarted("start", LOOP, total, {"kind": "range"}, policy))


def handed_out(total: int | None, *ways: str, **policy: Any) -> Ranges:
    """A playbook whose first step hands out its loop. `policy`: `fail_fast`, `allow_partial`, `retries`, `losses`, `reducers`."""
    how = Fanout(**policy)
    fan = Fan("{{ items }}", "n", reducers=how.reducers, fanout=how)
    case = given(steps(*ways or ("start -> next",), loops={"start": fan})).then(begun())
    found = Ranges(case, how)
    found._start(total)
    return found


def told(body: facts.Body) -> str:
    name = facts.event_type(body)
    match body:
        case facts.ShardsEnqueued():
            return f"{name}: range {body.range}, elements {body.lo}-{body.hi}, attempt {body.attempt}"
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
