"""The results of a fanned-out loop, gathered as ranges come in: in order, in memory while small, none when they are too many."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from penstock.kernel import facts
from penstock.kernel.fanout import FanoutState, state_of
from penstock.kernel.state import RunState
from penstock.ports.blobs import BlobStore
from penstock.ports.loop_results import LoopResults
from penstock.ports.results import LazySequence, encode, loader, view

MOST_BYTES = 64 * 1024 * 1024
"""More than this is not put together: a loop of so many elements writes its results where they can be read in parts."""


def gather(state: FanoutState, body: facts.ShardsDone, blobs: BlobStore) -> None:
    if state.results is None:
        state.results = LoopResults(MOST_BYTES)
    kept = state.results
    assert isinstance(kept, LoopResults)
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
        _one_by_one(kept, state, body, held)


def _one_by_one(kept: LoopResults, state: FanoutState, body: facts.ShardsDone, held: Any) -> None:
    """Some have failed: each leaves a place that a later try can fill."""
    is_same = isinstance(held, dict) and "same" in held
    retried = {piece.lo for piece in state.pieces if piece.attempt}
    for index in range(body.lo, body.hi):
        if index in state.failures or index in retried:
            kept.fail(index)
        else:
            kept.add(index, held["same"] if is_same else held[index - body.lo])


def gather_folded(run: RunState, body: object, blobs: BlobStore) -> None:
    """While a log is folded."""
    if isinstance(body, facts.ShardsDone):
        gather(state_of(run), body, blobs)


def results_of(state: FanoutState, blobs: BlobStore, limit: int, losers: Collection[int] = ()) -> Any:
    """`losers`: elements that were done, and failed when all came together."""
    kept = state.results if isinstance(state.results, LoopResults) else LoopResults()
    found = kept.value(blobs, loader(blobs), limit)
    if not losers or found is None:
        return found
    values = [None if index in losers else value for index, value in enumerate(found)]
    data = encode(values)
    if len(data) <= limit:
        return values
    return view(blobs.put([data], schema_hint={"type": "array", "length": len(values)}), loader(blobs))
