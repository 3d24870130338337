"""The results of a fanned-out loop, gathered as ranges are reported: in order, in memory while small, dropped when they grow
too large.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from penstock.kernel import facts
from penstock.kernel.shards import Shards, state_of
from penstock.kernel.state import StepRun
from penstock.ports.blobs import BlobStore
from penstock.ports.loop_results import LoopResults
from penstock.ports.results import LazySequence, encode, loader, view

MOST_BYTES = 64 * 1024 * 1024
"""Largest total size of results that are combined; a larger loop should write its results where they can be read in parts."""


def gather(run: StepRun, body: object, blobs: BlobStore) -> None:
    """Add the results in a fact of the loop, once the fact is in the state."""
    state = state_of(run)
    if isinstance(body, facts.ShardFailed):
        if body.at_fanin:
            _kept(state).drop(body.iter_index)
        elif body.up_to is not None:
            _kept(state).fail(body.iter_index)
    elif isinstance(body, facts.ShardsDone) and body.at_fanin:
        for index in range(body.lo, body.hi):
            _kept(state).release(index)
    elif isinstance(body, facts.ShardsReported):
        _one_by_one(_kept(state), body, set(body.failed), body.results)
    elif isinstance(body, facts.ShardsDone):
        _done(state, body, blobs)


def _kept(state: Shards) -> LoopResults:
    if state.results is None:
        state.results = LoopResults(MOST_BYTES)
    assert isinstance(state.results, LoopResults)
    return state.results


def _done(state: Shards, body: facts.ShardsDone, blobs: BlobStore) -> None:
    kept = _kept(state)
    if kept.is_too_large:
        return
    held: Any = body.results
    count = body.hi - body.lo
    if isinstance(held, dict) and "same" in held and not body.failed:
        kept.extend(body.lo, encode(held["same"]), count, is_same=True)
    elif isinstance(held, LazySequence) and not body.failed:
        kept.extend(body.lo, blobs.get(held.ref).strip()[1:-1], count)
    elif isinstance(held, list) and not body.failed:
        kept.extend(body.lo, encode(held)[1:-1], count)
    else:
        retried = {piece.lo for piece in state.pieces if piece.attempt}
        failed = {index for index in range(body.lo, body.hi) if index in state.failures or index in retried}
        _one_by_one(kept, body, failed, held)


def _one_by_one(
    kept: LoopResults, body: facts.ShardsDone | facts.ShardsReported, failed: Collection[int], held: Any
) -> None:
    """A failed element leaves a place that a later attempt can fill; elements that wrote to ctx are decided by the fan-in."""
    is_same = held is None or (isinstance(held, dict) and "same" in held)
    for index in range(body.lo, body.hi):
        if index in failed:
            kept.fail(index)
            continue
        value = None if held is None else held["same"] if is_same else held[index - body.lo]
        if isinstance(body, facts.ShardsReported):
            kept.hold(index, value)
        else:
            kept.add(index, value)


def held_result(state: Shards, index: int) -> Any:
    """The result of an element that waits for the fan-in."""
    return _kept(state).held(index)


def results_of(state: Shards, blobs: BlobStore, limit: int, losers: Collection[int] = ()) -> Any:
    """`losers`: elements that a log of release 1 recorded as done but that failed at the fan-in."""
    found = _kept(state).value(blobs, loader(blobs), limit)
    if not losers or found is None:
        return found
    values = [None if index in losers else value for index, value in enumerate(found)]
    data = encode(values)
    if len(data) <= limit:
        return values
    return view(blobs.put([data], schema_hint={"type": "array", "length": len(values)}), loader(blobs))
