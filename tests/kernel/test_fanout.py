"""Fan-out in the kernel: whatever the order of reports, losses, returns and repeats, every element is counted once."""

from __future__ import annotations

import sys
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.kernel import facts, fanin
from penstock.kernel import shards as fanout
from penstock.kernel.errors import Refused
from penstock.kernel.evolve import evolve
from penstock.kernel.net import Fanout
from penstock.kernel.places import ROOT, Place
from penstock.kernel.shards import ElementRange, Shards
from penstock.kernel.state import Execution, State, StepRun, Subjob
from penstock.kernel.values import Json
from tests.cases import cases
from tests.depth import times

LOOP = "start@0"
ERROR: Json = {"kind": "x", "message": "no"}


def opened(total: int | None, policy: Fanout, *, is_paged: bool = False) -> StepRun:
    run = step_run(0)
    start(run, facts.FanoutStarted("start", LOOP, total, {"kind": "range"}, policy.as_json(), is_paged))
    return run


def step_run(path: int) -> StepRun:
    place = Place(f"start@{path}", ((path,),))
    return StepRun(place, Subjob("", 0, ROOT, Execution()), counter=3, step="start", path=(path,))


def start(run: StepRun, body: facts.FanoutStarted) -> None:
    evolve(State(runs={run.place.id: run}), facts.Fact(run.place.id, (*run.place.clock, 3), body), 0.0)


class Loop(RuleBasedStateMachine):
    """A loop whose ranges come and go as they like, beside a book that has one line for each element."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[facts.Body] = []
        self.reported: list[tuple[int, int]] = []

    @initialize(
        total=st.integers(0, 40),
        retries=st.integers(0, 2),
        losses=st.integers(0, 2),
        fail_fast=st.booleans(),
        pages=st.none() | st.lists(st.integers(0, 9), min_size=1, max_size=5),
    )
    def begin(self, total: int, retries: int, losses: int, fail_fast: bool, pages: list[int] | None) -> None:
        self.policy = Fanout(fail_fast=fail_fast, retries=retries, losses=losses, reducers={"n": "sum"})
        self.pages = pages
        self.total = total if pages is None else sum(pages)
        self.run_ = opened(None if pages is not None else total, self.policy, is_paged=pages is not None)
        self.first = deepcopy(self.run_)
        self.book = ["new"] * self.total

    @property
    def state(self) -> Shards:
        return fanout.state_of(self.run_)

    def record(self, body: facts.Body) -> None:
        self.said.append(body)
        fanout.evolve(self.run_, body)

    def pick(self, number: int) -> ElementRange | None:
        held = sorted(self.state.out)
        return self.state.out[held[number % len(held)]] if held else None

    @rule(size=st.integers(1, 12))
    def hand_out(self, size: int) -> None:
        piece = fanout.cut(self.state, size)
        if piece is None:
            assert not self.state.has_more
            return
        self.record(fanout.enqueued(self.run_, piece, size))
        for index in range(piece.lo, piece.hi if piece.hi is not None else piece.lo):
            assert self.book[index] in ("new", "waiting")
            self.book[index] = "out"

    @rule(number=st.integers(0, 50))
    def take(self, number: int) -> None:
        held = self.pick(number)
        if held is None or held.is_started:
            return
        hi, following, is_end = None, None, False
        if held.hi is None:
            assert self.pages is not None
            at = held.token if isinstance(held.token, int) else 0
            hi, following, is_end = held.lo + self.pages[at], at + 1, at + 1 == len(self.pages)
            self.book[held.lo : hi] = ["out"] * (hi - held.lo)
        self.record(facts.ShardsStarted(LOOP, held.number, hi, following, is_end))
        if hi == held.lo:  # A page without elements is over as soon as it was read.
            self.record(facts.ShardsDone(LOOP, held.number, held.lo, held.lo, 0, 0, {"same": None}))

    @rule(number=st.integers(0, 50), share=st.floats(0, 1), bad=st.sets(st.integers(0, 11)), writes=st.booleans())
    def report(self, number: int, share: float, bad: set[int], writes: bool = False) -> None:
        """`writes`: the elements write to ctx, those with an odd index something else than the others."""
        held = self.pick(number)
        if held is None or held.hi is None:
            return
        lo, hi = held.lo, held.lo + max(1, round((held.hi - held.lo) * share))
        fanout.accept(self.state, held.number, lo)
        failed = [index for index in range(lo, hi) if index - lo in bad]
        is_alone = len(failed) == hi - lo
        for index in range(lo, hi):
            self.book[index] = "failed" if index in failed else "reported" if writes else "done"
        for index in failed:
            again = fanout.comes_again(self.state, held.attempt)
            shard = facts.ShardFailed(
                LOOP,
                f"{LOOP}[{index}]",
                index,
                str(index),
                held.attempt,
                ERROR,
                again,
                held.number,
                up_to=index + 1 if is_alone else None,
            )
            self.record(shard)
            if again:
                self.book[index] = "waiting"
        self.reported.append((held.number, lo))
        if is_alone:
            return
        if writes:
            pairs: list[Json] = [
                [index, {"ctx": {"k": index % 2}, "shared": {"n": [1]}}]
                for index in range(lo, hi)
                if index not in failed
            ]
            self.record(facts.ShardsReported(LOOP, held.number, lo, hi, failed, None, pairs))
            return
        done = hi - lo - len(failed)
        self.record(facts.ShardsDone(LOOP, held.number, lo, hi, done, len(failed), {"same": None}, [], {"n": done}))

    @rule(at=st.integers(0, 200))
    @precondition(lambda self: self.reported)
    def repeat(self, at: int) -> None:
        """What was heard once is not heard again."""
        number, lo = self.reported[at % len(self.reported)]
        with pytest.raises(Refused):
            fanout.accept(self.state, number, lo)

    @rule(number=st.integers(0, 50), is_lost=st.booleans())
    def come_back(self, number: int, is_lost: bool) -> None:
        held = self.pick(number)
        if held is None or (is_lost and not fanout.may_be_lost_again(self.state, held.attempt)):
            return
        for index in range(held.lo, held.hi if held.hi is not None else held.lo):
            self.book[index] = "waiting"
        reason = "lost" if is_lost else "returned"
        self.record(facts.ShardsReturned(LOOP, held.number, held.lo, held.hi, reason, "w", is_lost))

    @invariant()
    def every_element_is_counted_once(self) -> None:
        if not hasattr(self, "book"):
            return
        state = self.state
        assert state.ok == self.book.count("done") == (state.shared.get("n") or 0)
        assert state.failed == self.book.count("failed")
        out = [index for held in state.out.values() for index in range(held.lo, held.hi or held.lo)]
        waiting = [index for piece in state.pieces for index in range(piece.lo, piece.hi or piece.lo)]
        assert sorted(out) == [index for index, is_at in enumerate(self.book) if is_at == "out"]
        assert sorted(waiting) == [index for index, is_at in enumerate(self.book) if is_at == "waiting"]
        assert all(is_at != "new" for is_at in self.book[: state.next_index])

    @invariant()
    def it_is_over_exactly_when_all_are_settled_or_it_was_stopped_and_nothing_is_out(self) -> None:
        if hasattr(self, "book"):
            is_settled = all(is_at in ("done", "failed", "reported") for is_at in self.book)
            knows_all = self.state.total == self.total
            assert self.state.is_over == (not self.state.out and (self.state.is_stopping or (is_settled and knows_all)))
            assert self.state.is_stopping == (self.policy.fail_fast and self.state.failed > 0)

    @invariant()
    def the_fold_of_what_was_said_is_the_state(self) -> None:
        if hasattr(self, "book"):
            folded = deepcopy(self.first)
            for body in self.said:
                fanout.evolve(folded, body)
            assert folded.fan == self.state

    @invariant()
    def what_is_known_takes_room_for_what_is_out_and_waits(self) -> None:
        if hasattr(self, "book"):
            state = self.state
            assert len(state.out) + len(state.pieces) <= self.book.count("out") + self.book.count("waiting") + 1

    def fan_in(self, *, per_item: bool) -> None:
        """The first to write wins, whoever was heard first. A crash may come between any two ends: they are decided anew."""
        writers = [index for index, is_at in enumerate(self.book) if is_at == "reported"]
        while ends := fanin.ends(self.run_, per_item=per_item):
            self.record(ends[0])
        for index in writers:
            self.book[index] = "done" if index % 2 == writers[0] % 2 else "failed"
        self.record(fanin.completed(self.run_, None))
        assert fanin.gathered(self.run_).get("ctx", {}).get("k") == (writers[0] % 2 if writers else None)  # type: ignore[union-attr]

    def teardown(self) -> None:
        """Let it go on to its end: it always comes to one, and its fan-in adds up."""
        if not hasattr(self, "book"):
            return
        for _ in range(4 * self.total + 20):
            self.hand_out(5)
            for number in sorted(self.state.out):
                self.take(sorted(self.state.out).index(number))
                if number in self.state.out:
                    self.report(sorted(self.state.out).index(number), 1.0, set())
        assert self.state.is_over
        self.fan_in(per_item=self.total % 2 == 1)
        self.every_element_is_counted_once()
        self.the_fold_of_what_was_said_is_the_state()
        body = fanin.completed(self.run_, None)
        assert body.succeeded + body.failed + body.skipped == body.total
        if not self.state.is_stopping:
            assert (body.skipped, body.total) == (0, self.total)


Loop.TestCase.settings = settings(
    max_examples=times(15),
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
test_a_loop_that_is_handed_out_in_any_way_comes_to_its_end = Loop.TestCase


def _size(state: Shards) -> int:
    return sum(map(sys.getsizeof, (state.out, state.pieces, state.failures, state.writes, state.shared)))


@pytest.mark.clause("F2.1")
def test_a_billion_elements_take_the_room_of_the_ranges_that_are_out():
    run = opened(1_000_000_000, Fanout())
    state = fanout.state_of(run)
    sizes = []
    while not state.is_over:
        while len(state.out) < 64 and state.has_more:
            piece = fanout.cut(state, 65_536)
            assert piece is not None
            fanout.evolve(run, fanout.enqueued(run, piece, 65_536))
        # The last one handed out comes back first: nothing may wait for the order of reports.
        number, held = list(state.out.items())[-1]
        assert held.hi is not None
        done = facts.ShardsDone(LOOP, number, held.lo, held.hi, held.hi - held.lo, 0, {"same": None})
        fanout.evolve(run, done)
        sizes.append(_size(state))
    assert state.ok == 1_000_000_000
    assert max(sizes) < 100_000


@pytest.mark.clause("F4.2")
@cases(
    "failed, stopped, policy, status",
    [
        (0, False, Fanout(), "complete"),
        (1, False, Fanout(fail_fast=False, allow_partial=True), "partial"),
        (1, False, Fanout(fail_fast=False), "failed"),
        (1, True, Fanout(), "failed"),
        (0, False, Fanout(fail_fast=False, allow_partial=True), "complete"),
    ],
)
def test_a_fan_in_is_complete_partial_or_failed(failed: int, stopped: bool, policy: Fanout, status: str):
    run = opened(4, policy)
    state = fanout.state_of(run)
    piece = fanout.cut(state, 2)
    assert piece is not None
    fanout.evolve(run, fanout.enqueued(run, piece, 2))
    if failed:
        fanout.evolve(run, facts.ShardFailed(LOOP, f"{LOOP}[0]", 0, "0", 0, ERROR, False, 0))
    fanout.evolve(run, facts.ShardsDone(LOOP, 0, 0, 2, 2 - failed, failed, {"same": None}))
    if not stopped:
        piece = fanout.cut(state, 2)
        assert piece is not None
        fanout.evolve(run, fanout.enqueued(run, piece, 2))
        fanout.evolve(run, facts.ShardsDone(LOOP, 1, 2, 4, 2, 0, {"same": None}))
    assert state.is_over
    body = fanin.completed(run, {"loop_id": LOOP})
    assert body.status == status
    assert (body.succeeded, body.failed, body.skipped) == ((1 if stopped else 4 - failed), failed, 2 if stopped else 0)
