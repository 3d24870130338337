"""What the report of a range, or the loss of one, is written down as."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from penstock.kernel import facts
from penstock.kernel.values import Json, JsonMap
from penstock.ports.leases import RangeReport


def report_fact(loop_id: str, number: int, report: RangeReport) -> facts.ShardsReported | facts.ShardsDone:
    """What a report says of its elements together. Those that failed have been told of before."""
    failed = sorted(one.element for one in report.failures)
    results: Json = {"same": report.results} if report.same else report.results
    if report.writes:
        return facts.ShardsReported(
            loop_id,
            number,
            report.lo,
            hi=report.hi,
            failed=failed,
            results=results,
            writes=report.writes,
            shared=report.shared,
            ms=report.ms,
            keys=report.keys,
        )
    done = report.hi - report.lo - len(failed)
    return facts.ShardsDone(
        loop_id, number, report.lo, report.hi, done, len(failed), results, shared=report.shared, ms=report.ms
    )


def split(report: RangeReport) -> Iterator[RangeReport]:
    """The same as reports of one element each."""
    values: Any = None if report.same else report.results  # A list, or a view on one.
    failures = {one.element: one for one in report.failures}
    writes: dict[Any, Json] = {cast("list[Any]", pair)[0]: pair for pair in report.writes}
    shared = report.shared
    for index in range(report.lo, report.hi):
        yield RangeReport(
            index,
            index + 1,
            [failures[index]] if index in failures else [],
            values[index - report.lo] if values is not None else report.results,
            True,
            [writes[index]] if index in writes else [],
            {} if index in failures else shared,
            keys=[str(index) if report.keys is None else report.keys[index - report.lo]],
        )
        shared = shared if index in failures else {}


def lost(times: int) -> JsonMap:
    message = f"the worker that had it was lost {times} times" if times > 1 else "the worker that had it was lost"
    return {"kind": "worker_lost", "message": message, "retryable": True}


def stale(ttl_s: float | None) -> JsonMap:
    message = f"no worker took it within `fanout.queue_ttl_s` of {ttl_s:g} s" if ttl_s else "no worker took it in time"
    return {"kind": "queue_ttl", "message": message, "retryable": True}
