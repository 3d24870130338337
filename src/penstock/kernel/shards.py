"""Shards: a loop that is fanned out. Which elements are still to be handed out, which are out, how they ended, and when all have.

Law: every element is counted once, in the one range report that was accepted for it. The state takes space for the ranges that
are out and the elements that wait for another attempt, never for all elements: those below `next_index` that are neither out nor
waiting have ended.

The server decides when to cut a range and how large (that depends on the workers and their speed); this module defines what a
cut, a report or a loss means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from penstock.kernel import facts
from penstock.kernel.errors import Bug, Refused
from penstock.kernel.net import Fanout
from penstock.kernel.reducers import fold_parts, merged
from penstock.kernel.state import KEPT_FAILURES, NOT_OPENED, Fan, State, StepRun
from penstock.kernel.values import Json, JsonMap

SHARDS = "shards"
"""The name under which ended elements are counted among the events of a run."""
# The order of what happens to an element in one range; part of its clock.
ENQUEUED, STARTED, TASK, DONE, FAILED, RETURNED = range(6)
SETTLED = -1
"""In logs of the first release: the range number of an element that was already done when its writes were found to conflict."""

Page: TypeAlias = "tuple[int, Json, Json]"
"""For elements read page by page: the index of the page's first element, where the page begins and where it ends."""


@dataclass(frozen=True, slots=True)
class PendingRange:
    """Elements that wait to be handed out. A page is opened with its `token`; `hi` is None until it has been opened."""

    lo: int
    hi: int | None
    attempt: int = 0
    base: int = 0
    token: Json = None
    until: Json = None


@dataclass(slots=True)
class ElementRange:
    """Elements that are out on one lease. `lo` moves up as the holder reports; to end earlier, the holder lowers `hi`."""

    number: int
    lo: int
    hi: int | None
    attempt: int = 0
    most: int = 0
    base: int = 0
    token: Json = None
    until: Json = None
    is_started: bool = False
    failed: int = 0
    """Elements that failed since the last report."""


@dataclass(slots=True)
class Written:
    """What one element wrote to ctx. `writes["shared"]` goes to the reducers once the element is done."""

    writes: JsonMap
    has_failed: bool = False
    """It failed by itself; its writes are kept if they do not conflict."""


@dataclass(slots=True)
class Reported:
    """Elements that a worker has reported, and whose ends are decided at the fan-in."""

    lo: int
    hi: int
    range: int
    attempt: int
    settled: set[int]
    """Those of them that have ended: they failed on the worker, or the fan-in has decided them."""
    page: Page
    keys: list[str] | None = None

    def open(self) -> list[int]:
        return [index for index in range(self.lo, self.hi) if index not in self.settled]

    def key(self, index: int) -> str:
        return str(index) if self.keys is None else self.keys[index - self.lo]


@dataclass(slots=True)
class Shards(Fan):
    """Elements below `next_index` have been handed out at least once."""

    is_elsewhere: bool = True
    collection: Json = None
    policy: Fanout = field(default_factory=Fanout)
    is_paged: bool = False
    token: Json = None
    """Where the next page begins."""
    awaits_page: bool = False
    """A page is out and has not been opened, so it is not known where the next page begins."""
    claims: bool = False
    """A page is a claim of elements that are there now."""
    is_dry: bool = False
    """The last claim found nothing. The next one is made when an element has ended since: its work may have made more."""
    ranges: int = 0
    out: dict[int, ElementRange] = field(default_factory=dict)
    pieces: list[PendingRange] = field(default_factory=list)
    retried: int = 0
    failures: dict[int, Page] = field(default_factory=dict)
    """Failed elements and their pages, kept while a resume may run them again; bounded by KEPT_FAILURES."""
    is_stopping: bool = False
    """Nothing more is handed out, because an element failed and the loop is fail_fast."""
    reported: dict[int, list[Reported]] = field(default_factory=dict)
    """By range number. Empty unless elements write to ctx."""
    writes: dict[int, Written] = field(default_factory=dict)
    """Writes to ctx that no fan-in has decided yet."""
    standing: dict[int, Written] = field(default_factory=dict)
    """Writes to ctx accepted by a fan-in before a resume continued the loop."""
    shared: JsonMap = field(default_factory=dict)
    completed: facts.FaninCompleted | None = None
    results: object = field(default=None, compare=False, repr=False)
    """The results the server has gathered. The kernel does not read this; it is stored here so that it moves with the loop."""

    def begin(self, opened_at: int) -> None:
        self.opened_at = opened_at

    @property
    def remaining(self) -> int | None:
        """How many elements have never been handed out; None if unknown."""
        return None if self.total is None else self.total - self.next_index

    @property
    def has_more(self) -> bool:
        """Whether there are elements that could be handed out now."""
        if self.is_stopping:
            return False
        if self.pieces:
            return True
        if self.is_paged:
            return self.total is None and not self.awaits_page and not self.is_dry
        return self.total is not None and self.next_index < self.total

    @property
    def is_over(self) -> bool:
        if self.out:
            return False
        return self.is_stopping or (not self.pieces and not self.has_more and not self.awaits_page)


# ---- cutting ranges


def cut(fanout: Shards, size: int) -> PendingRange | None:
    """The next elements to hand out, at most `size`: those that were out before come first."""
    if not fanout.has_more:
        return None
    if fanout.pieces:
        piece = min(fanout.pieces, key=lambda one: one.lo)
        if piece.hi is None:
            return piece
        # Elements that brought down a worker are handed out in ever smaller ranges, until the one responsible is alone.
        tries = max(fanout.policy.losses, fanout.policy.retries)
        size = 1 if piece.attempt >= tries > 0 else max(1, size >> (4 * piece.attempt))
        return replace(piece, hi=min(piece.hi, piece.lo + size))
    if fanout.is_paged:
        return PendingRange(fanout.next_index, None, 0, fanout.next_index, fanout.token)
    assert fanout.total is not None
    return PendingRange(fanout.next_index, min(fanout.total, fanout.next_index + size))


def enqueued(run: StepRun, piece: PendingRange, most: int) -> facts.ShardsEnqueued:
    fanout = state_of(run)
    return facts.ShardsEnqueued(
        run.loop_name,
        fanout.ranges,
        piece.lo,
        hi=piece.hi,
        attempt=piece.attempt,
        most=most if piece.hi is None else piece.hi - piece.lo,
        base=piece.base,
        token=piece.token,
        until=piece.until,
    )


# ---- accepting reports


def accept(fanout: Shards, number: int, lo: int | None = None) -> ElementRange:
    """The range that a report is about. Raises Refused if the report is late, duplicate or not about a range that is out."""
    held = fanout.out.get(number)
    if held is None:
        raise Refused(f"range {number} is not out any more")
    if lo is not None and held.lo != lo:
        raise Refused(f"range {number} stands at element {held.lo}, and the report begins at {lo}")
    return held


def comes_again(fanout: Shards, attempt: int) -> bool:
    """Whether an element that failed at this attempt gets another."""
    return attempt < fanout.policy.retries and not fanout.is_stopping


def may_be_lost_again(fanout: Shards, attempt: int) -> bool:
    return attempt < max(fanout.policy.losses, fanout.policy.retries)


# ---- transitions


def reopen(old: Shards) -> None:
    """Prepare the loop of a failed run for the run that continues it: failed elements wait to be handed out again."""
    old.pieces.extend(PendingRange(index, index + 1, 0, *page) for index, page in old.failures.items())
    old.failed -= len(old.failures)
    old.failures.clear()
    old.pieces = [replace(piece, attempt=0) for piece in old.pieces]
    old.first_failed, old.first_error, old.completed, old.is_stopping = None, None, None, False
    old.opened_at = NOT_OPENED
    if old.claims:
        old.total, old.is_dry = None, False


def moved(state: State, fact: facts.Fact, body: facts.Body, ts: float) -> None:
    run = state.step_run(fact.scope) or state.step_run(fact.scope.rpartition("[")[0])
    assert run is not None
    evolve(run, body)
    if state.on_shards is not None:
        state.on_shards(run, body)


def evolve(run: StepRun, body: object) -> None:
    fanout = state_of(run)
    match body:
        case facts.ShardsEnqueued():
            _enqueued(fanout, body)
        case facts.ShardsStarted():
            _started(fanout, body)
        case facts.ShardFailed():
            _failed(fanout, body)
        case facts.ShardsReported():
            _reported(fanout, body)
        case facts.ShardsDone():
            _done(fanout, body)
        case facts.ShardsReturned():
            _returned(fanout, body)
        case facts.FaninCompleted():
            fanout.completed = body
            fanout.standing |= fanout.writes
            fanout.writes = {}
            fanout.reported.clear()
            run.counter += 1
        case _:
            raise Bug(f"no transition of a fan-out for {type(body).__name__}")


def state_of(run: StepRun) -> Shards:
    if not isinstance(run.fan, Shards):
        raise Bug(f"`{run.place.id}` is not fanned out")
    return run.fan


def _enqueued(fanout: Shards, body: facts.ShardsEnqueued) -> None:
    if body.range in fanout.out:  # With `emit: per_item` the fact is recorded once per element.
        return
    fanout.ranges = body.range + 1
    fanout.out[body.range] = ElementRange(
        body.range,
        body.lo,
        body.hi,
        attempt=body.attempt,
        most=body.most,
        base=body.base,
        token=body.token,
        until=body.until,
    )
    for at, piece in enumerate(fanout.pieces):
        if piece.lo == body.lo:
            if piece.hi == body.hi:
                del fanout.pieces[at]
            else:
                fanout.pieces[at] = replace(piece, lo=body.hi or piece.lo)
            return
    if body.hi is None:
        fanout.awaits_page = True
    else:
        fanout.next_index = body.hi


def _started(fanout: Shards, body: facts.ShardsStarted) -> None:
    held = fanout.out[body.range]
    held.is_started = True
    if held.hi is not None or body.hi is None:
        return
    held.hi, held.until = body.hi, body.next
    fanout.awaits_page = False
    fanout.next_index, fanout.token = body.hi, body.next
    if body.is_end:
        fanout.total = body.hi
    elif fanout.claims and body.hi == held.lo:
        # It is the end if nothing was under way that could have made more.
        fanout.is_dry = True
        if len(fanout.out) == 1 and not fanout.pieces:
            fanout.total = body.hi


def _failed(fanout: Shards, body: facts.ShardFailed) -> None:
    held = fanout.out.get(body.range)
    if held is not None:
        held.failed += 1
        if body.up_to is not None:
            _moved_up(fanout, held, body.up_to, {})
    page: Page = (held.base, held.token, held.until) if held is not None else (0, None, None)
    if body.at_fanin:
        reported = _report_of(fanout, body.range, body.iter_index)
        reported.settled.add(body.iter_index)
        page = reported.page
    if body.at_fanin or body.range == SETTLED:
        fanout.writes.pop(body.iter_index, None)
    if body.again:
        fanout.retried += 1
        fanout.pieces.append(PendingRange(body.iter_index, body.iter_index + 1, body.attempt + 1, *page))
        return
    fanout.failed += 1
    if body.range == SETTLED:
        fanout.ok -= 1
    if len(fanout.failures) < KEPT_FAILURES:
        fanout.failures[body.iter_index] = page
    if fanout.first_failed is None or body.iter_index < fanout.first_failed:
        fanout.first_failed, fanout.first_error = body.iter_index, body.error
    if fanout.policy.fail_fast:
        fanout.is_stopping = True


def _report_of(fanout: Shards, number: int, index: int) -> Reported:
    for one in fanout.reported.get(number, ()):
        if one.lo <= index < one.hi:
            return one
    raise Bug(f"nobody reported element {index} in range {number}")


def _reported(fanout: Shards, body: facts.ShardsReported) -> None:
    held = fanout.out[body.range]
    failed = set(body.failed)
    for index, writes in _pairs(body.writes):
        fanout.writes[index] = Written(writes, index in failed)
    page = (held.base, held.token, held.until)
    report = Reported(body.lo, body.hi, body.range, held.attempt, failed, page, body.keys)
    fanout.reported.setdefault(body.range, []).append(report)
    _moved_up(fanout, held, body.hi, body.shared)


def _done(fanout: Shards, body: facts.ShardsDone) -> None:
    fanout.ok += body.done
    if body.at_fanin:
        _stands(fanout, body)
        return
    for index, writes in _pairs(body.writes):
        fanout.writes[index] = Written(writes)
    _moved_up(fanout, fanout.out[body.range], body.hi, body.shared)


def _stands(fanout: Shards, body: facts.ShardsDone) -> None:
    """Reported elements are done: fold their values into the reducers."""
    for index in sorted({*range(body.lo, body.hi)} - _report_of(fanout, body.range, body.lo).settled):
        written = fanout.writes.get(index)
        if written is not None and "shared" in written.writes:
            fold_parts(fanout.policy.reducers, fanout.shared, written.writes)
            written.writes = {kind: value for kind, value in written.writes.items() if kind != "shared"}
    _report_of(fanout, body.range, body.lo).settled.update(range(body.lo, body.hi))


def _moved_up(fanout: Shards, held: ElementRange, hi: int, shared: JsonMap) -> None:
    if hi > held.lo:
        fanout.is_dry = False
    held.lo, held.failed = hi, 0
    merged(fanout.policy.reducers, fanout.shared, shared)
    if held.hi is not None and held.lo >= held.hi:
        del fanout.out[held.number]


def _pairs(writes: list[Json]) -> Iterator[tuple[int, JsonMap]]:
    for pair in writes:
        assert isinstance(pair, list)
        index, written = pair
        assert isinstance(index, int)
        assert isinstance(written, dict)
        yield index, written


def _returned(fanout: Shards, body: facts.ShardsReturned) -> None:
    """Returned elements wait again, even if the loop is being stopped: a resume hands them out."""
    held = fanout.out.pop(body.range, None)
    if held is None:  # With `emit: per_item` the fact is recorded once per element.
        return
    if held.hi is None:  # A page that was never opened is still the next one.
        fanout.awaits_page = False
        return
    attempt = held.attempt + (1 if body.counts else 0)
    fanout.pieces.append(PendingRange(held.lo, held.hi, attempt, held.base, held.token, held.until))


def shards_settled(body: object) -> int:
    """How many elements a fact ends for good; used to count the events of a run."""
    if isinstance(body, facts.ShardsDone):
        return body.done
    return int(isinstance(body, facts.ShardFailed) and not body.again and body.range != SETTLED)
