"""What the report of a range, or the loss of one, is written down as."""

from __future__ import annotations

from typing import Any

from penstock.kernel import facts
from penstock.kernel.values import Json, JsonMap
from penstock.ports.ranges import RangeLease, RangeReport


def done_facts(loop_id: str, lease: RangeLease, report: RangeReport) -> list[facts.ShardsDone]:
    """One fact for all, or, where each element's end is asked for, one for each."""
    number = lease.shards.number
    failed = {one.element for one in report.failures}
    if not lease.emits or report.hi == report.lo:  # A page without elements has its end, too.
        results: Json = {"same": report.results} if report.same else report.results
        done = report.hi - report.lo - len(failed)
        whole = facts.ShardsDone(
            loop_id,
            number,
            report.lo,
            report.hi,
            done,
            len(failed),
            results,
            report.writes,
            report.shared,
            report.ms,
        )
        return [whole]
    values: Any = None if report.same else report.results  # A list, or a view on one.
    bodies = []
    for index in range(report.lo, report.hi):
        is_last = index == report.hi - 1
        value = values[index - report.lo] if values is not None else report.results
        bodies.append(
            facts.ShardsDone(
                loop_id,
                number,
                index,
                index + 1,
                0 if index in failed else 1,
                1 if index in failed else 0,
                {"same": value},
                report.writes if is_last else [],
                report.shared if is_last else {},
                iter_key=str(index) if report.keys is None else report.keys[index - report.lo],
            )
        )
    return bodies


def lost(times: int) -> JsonMap:
    message = f"the worker that had it was lost {times} times" if times > 1 else "the worker that had it was lost"
    return {"kind": "worker_lost", "message": message, "retryable": True}


def stale(ttl_s: float | None) -> JsonMap:
    message = f"no worker took it within `fanout.queue_ttl_s` of {ttl_s:g} s" if ttl_s else "no worker took it in time"
    return {"kind": "queue_ttl", "message": message, "retryable": True}
