"""Fan-in: what comes together at the end of a loop that was handed out: writes, what reducers came to, the end."""

from __future__ import annotations

from typing import Literal

from penstock.kernel import facts
from penstock.kernel.fanout import FanoutState, state_of
from penstock.kernel.loop import conflict, failure_of
from penstock.kernel.patches import Staged
from penstock.kernel.reducers import settled, with_reduced
from penstock.kernel.state import LoopState, RunState
from penstock.kernel.values import Json, JsonMap


def conflicts(run: RunState) -> list[tuple[int, JsonMap]]:
    """Elements whose writes to ctx cannot stand beside those of an earlier one (D9), in the order of their index."""
    fanout = state_of(run)
    loop = LoopState(0, 0, True, ctx=run.ctx)
    found: list[tuple[int, JsonMap]] = []
    for index, writes in sorted(fanout.writes, key=lambda pair: pair[0]):
        staged = Staged()
        staged.add(writes)
        clash = conflict(loop, index, staged)
        if clash is not None:
            found.append((index, clash))
        else:
            loop.take(index, writes)
    return found


def gathered(run: RunState, losers: set[int]) -> JsonMap:
    """What all elements wrote to ctx together, and what the reducers came to."""
    fanout = state_of(run)
    loop = LoopState(0, 0, True, ctx=run.ctx)
    for index, writes in sorted(fanout.writes, key=lambda pair: pair[0]):
        if index not in losers:
            loop.take(index, writes)
    return with_reduced(loop.staged.as_writes(), fanout.policy.reducers, fanout.shared)


def reduced(fanout: FanoutState) -> JsonMap:
    return settled(fanout.policy.reducers, fanout.shared)


def completed(run: RunState, refs: Json) -> facts.FaninCompleted:
    """The fan-in, once nothing is out and conflicts have been recorded."""
    fanout = state_of(run)
    total = fanout.total if fanout.total is not None else fanout.next
    skipped = total - fanout.done - fanout.failed
    is_whole = skipped == 0 and fanout.total is not None
    status: Literal["complete", "partial", "failed"] = "failed"
    if is_whole and not fanout.failed:
        status = "complete"
    elif is_whole and fanout.policy.allow_partial:
        status = "partial"
    return facts.FaninCompleted(
        run.loop_name, status, total, fanout.done, fanout.failed, skipped, fanout.retried, refs, reduced(fanout)
    )


def ending(run: RunState, results: Json, writes: JsonMap) -> facts.RunEnded:
    """The end of the step, once its fan-in is recorded."""
    fanout = state_of(run)
    fanin = fanout.completed
    assert fanin is not None
    result: JsonMap = {"total": fanin.total, "done": fanin.succeeded, "failed": fanin.failed, "results": results}
    if fanin.status == "failed":
        failure = failure_of(run.step, fanout.first_failed, fanout.first_error, fanin.failed)
        return facts.RunEnded(
            run.step, "failed", result, failure, writes, looped=True, fanned_out=True, shared=fanin.shared
        )
    return facts.RunEnded(run.step, "done", result, None, writes, looped=True, fanned_out=True, shared=fanin.shared)


def seen_by_arcs(run: RunState, end: facts.RunEnded, execution_id: str) -> JsonMap:
    """`fanin`: what came together at the end of a loop, whichever way it ran."""
    refs: JsonMap = {"loop_id": run.loop_name, "execution_id": execution_id}
    fanout = run.fanout
    if fanout is not None:
        body = fanout.completed or completed(run, refs)  # One that was given up never had its fan-in.
        return {name: getattr(body, name) for name in _FANIN}
    result = end.result if isinstance(end.result, dict) else {}
    total, succeeded, failed = (result.get(name, 0) for name in ("total", "done", "failed"))
    return {
        "loop_id": run.loop_name,
        "status": "failed" if end.status == "failed" else "partial" if failed else "complete",
        "total": total,
        "succeeded": succeeded,
        "failed": failed,
        "skipped": _whole(total) - _whole(succeeded) - _whole(failed),
        "retried": 0,
        "refs": refs,
        "shared": end.shared,
    }


_FANIN = ("loop_id", "status", "total", "succeeded", "failed", "skipped", "retried", "refs", "shared")


def _whole(value: Json) -> int:
    return value if isinstance(value, int) else 0
