"""Fan-in: what is put together at the end of a loop that was handed out: writes, reduced values, the end of the step."""

from __future__ import annotations

from typing import Literal, cast

from penstock.kernel import facts
from penstock.kernel.loop import conflict, failure_of
from penstock.kernel.patches import Staged
from penstock.kernel.reducers import final_values, with_reduced
from penstock.kernel.shards import SETTLED, Reported, Shards, state_of
from penstock.kernel.state import Loop, StepRun
from penstock.kernel.values import Json, JsonMap


def ends(run: StepRun, *, per_item: bool) -> list[facts.ShardFailed | facts.ShardsDone]:
    """The ends of the elements that waited for the fan-in. Those whose writes to ctx conflict with an earlier element's fail
    (D9); the others are done."""
    fanout = state_of(run)
    clashes = _merge(run)[1]
    bodies: list[facts.ShardFailed | facts.ShardsDone] = []
    reports = sorted((one for several in fanout.reported.values() for one in several), key=lambda one: one.lo)
    for report in reports:
        waiting = report.open()
        failed = [index for index in waiting if index in clashes]
        done = len(waiting) - len(failed)
        bodies += [_clashed(run, index, clashes.pop(index), report) for index in failed]
        if per_item:
            beaten = set(failed)
            bodies += [_done(run, report, index, index + 1, 1) for index in waiting if index not in beaten]
        elif done:
            bodies.append(_done(run, report, report.lo, report.hi, done))
    # Only logs of the first release have elements that were done before their writes were compared.
    bodies += [_clashed(run, index, clash) for index, clash in sorted(clashes.items())]
    return bodies


def gathered(run: StepRun) -> JsonMap:
    """The writes of all elements to ctx, with the reduced values."""
    fanout = state_of(run)
    return with_reduced(_merge(run)[0].staged.as_writes(), reduced(fanout))


def _merge(run: StepRun) -> tuple[Loop, dict[int, JsonMap]]:
    """All writes that do not conflict, and element -> error for those that do. What an earlier fan-in accepted comes first."""
    fanout = state_of(run)
    loop = Loop(0, isolated=True, ctx=run.ctx)
    for index, written in sorted(fanout.standing.items()):
        loop.take(index, written.writes)
    clashes: dict[int, JsonMap] = {}
    for index, written in sorted(fanout.writes.items()):
        staged = Staged()
        staged.add(written.writes)
        clash = conflict(loop, index, staged)
        if clash is None:
            loop.take(index, written.writes)
        elif not written.has_failed:  # A failed element has already ended.
            clashes[index] = clash
    return loop, clashes


def _clashed(run: StepRun, index: int, clash: JsonMap, report: Reported | None = None) -> facts.ShardFailed:
    key, attempt, number = (
        (report.key(index), report.attempt, report.range) if report is not None else (str(index), 0, SETTLED)
    )
    shard_id = f"{run.loop_name}[{index}]"
    is_late = report is not None
    return facts.ShardFailed(
        run.loop_name,
        shard_id,
        index,
        iter_key=key,
        attempt=attempt,
        error=clash,
        again=False,
        range=number,
        at_fanin=is_late,
    )


def _done(run: StepRun, report: Reported, lo: int, hi: int, done: int) -> facts.ShardsDone:
    failed = hi - lo - done
    key = report.key(lo) if hi == lo + 1 else None
    return facts.ShardsDone(run.loop_name, report.range, lo, hi, done, failed, iter_key=key, at_fanin=True)


def reduced(fanout: Shards) -> JsonMap:
    return final_values(fanout.policy.reducers, fanout.shared)


def completed(run: StepRun, refs: Json) -> facts.FaninCompleted:
    """The fact of the fan-in, once no range is out and conflicts have been recorded."""
    fanout = state_of(run)
    total = fanout.total if fanout.total is not None else fanout.next_index
    skipped = total - fanout.ok - fanout.failed
    is_whole = skipped == 0 and fanout.total is not None
    status: Literal["complete", "partial", "failed"] = "failed"
    if is_whole and not fanout.failed:
        status = "complete"
    elif is_whole and fanout.policy.allow_partial:
        status = "partial"
    return facts.FaninCompleted(
        run.loop_name,
        status,
        total,
        succeeded=fanout.ok,
        failed=fanout.failed,
        skipped=skipped,
        retried=fanout.retried,
        refs=refs,
        shared=reduced(fanout),
    )


def ending(run: StepRun, results: Json, writes: JsonMap) -> facts.RunEnded:
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


def seen_by_arcs(run: StepRun, end: facts.RunEnded, execution_id: str) -> JsonMap:
    """The variable `fanin` that arcs see: the totals of a loop, whether it was fanned out or not."""
    refs: JsonMap = {"loop_id": run.loop_name, "execution_id": execution_id}
    fanout = run.fan
    if isinstance(fanout, Shards):
        body = fanout.completed or completed(run, refs)  # A loop that was given up has no fan-in.
        return {name: getattr(body, name) for name in _FANIN}
    result = end.result if isinstance(end.result, dict) else {}
    total, succeeded, failed = (cast(int, result.get(name, 0)) for name in ("total", "done", "failed"))
    return {
        "loop_id": run.loop_name,
        "status": "failed" if end.status == "failed" else "partial" if failed else "complete",
        "total": total,
        "succeeded": succeeded,
        "failed": failed,
        "skipped": total - succeeded - failed,
        "retried": 0,
        "refs": refs,
        "shared": end.shared,
    }


_FANIN = ("loop_id", "status", "total", "succeeded", "failed", "skipped", "retried", "refs", "shared")
