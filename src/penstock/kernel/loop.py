"""How the iterations of one loop come together: which may start, how one closes, when all are through.

Iterations of a parallel loop do not see each other. Those that wrote to ctx close in the order of their index, so that of two
conflicting writers it is always the later index that fails, whichever ran faster (D9).
"""

from __future__ import annotations

from penstock.kernel.facts import IterationEnded
from penstock.kernel.net import FailureMode
from penstock.kernel.patches import claims
from penstock.kernel.state import LoopState, PipelineState
from penstock.kernel.values import Json, JsonMap


def may_close(loop: LoopState, index: int, pipeline: PipelineState) -> bool:
    return not loop.parallel or not pipeline.staged or loop.settled.low >= index


def closing(loop: LoopState, index: int, pipeline: PipelineState) -> IterationEnded:
    """The fact that ends an iteration whose pipeline has ended."""
    conflict = _conflict(loop, index, pipeline)
    if conflict is not None:
        return IterationEnded(index, "failed", conflict)
    writes = pipeline.staged.as_writes()
    if pipeline.ended == "failed":
        return IterationEnded(index, "failed", pipeline.error, writes)
    return IterationEnded(index, "done", None, writes)


def given_up(loop: LoopState, index: int, pipeline: PipelineState, failure: JsonMap) -> IterationEnded:
    """The fact that ends an iteration whose step run is being given up; it may have ended and only not been closed yet."""
    if pipeline.ended is not None:
        return closing(loop, index, pipeline)
    return IterationEnded(index, "failed", failure, pipeline.staged.as_writes())


def _conflict(loop: LoopState, index: int, pipeline: PipelineState) -> JsonMap | None:
    if not loop.parallel:
        return None
    for key, value in pipeline.staged.ctx.items():
        first = loop.writers.get(key, index)
        if first != index and loop.staged.ctx.get(key) != value:
            return _conflicting(first, index, key)
    for claim, others in claims(pipeline.staged.as_writes()):
        for other in others:
            first = loop.writers.get(other, index)
            if first != index:
                return _conflicting(first, index, claim.removesuffix("[]"))
    return None


def _conflicting(first: int, index: int, key: str) -> JsonMap:
    return {
        "kind": "ctx_conflict",
        "message": f"iterations {first} and {index} of a parallel loop write different values to `ctx.{key}`",
        "retryable": False,
        "key": key,
        "writers": [first, index],
    }


def is_stopping(loop: LoopState, failure: FailureMode) -> bool:
    return loop.failed > 0 and failure is FailureMode.FAIL_FAST


def next_index(loop: LoopState) -> int | None:
    """The next iteration to start, or None when all have been started."""
    index = loop.next_index
    while index < loop.total and (index in loop.settled or index in loop.open):
        index += 1
    return index if index < loop.total else None


def summary(loop: LoopState, results: Json) -> JsonMap:
    return {"total": loop.total, "done": loop.done, "failed": loop.failed, "results": results}
