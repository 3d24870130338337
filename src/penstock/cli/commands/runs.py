"""`penstock runs`: the list, newest first."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.cli.output import put, put_json, say, table
from penstock.cli.targets import Log, log_of
from penstock.views.headers import CRASHED, as_people_read_it, listed, with_failed, with_failures
from penstock.views.wording import seconds

if TYPE_CHECKING:
    from penstock.ports.log import Header, Status

MOST_RUNNING = 100_000
SHOWN = {CRASHED: "interrupted (crashed)"}


def runs(options: Namespace) -> int:
    with log_of(options) as (log, where):
        rows = _chosen(log, options)
    if options.json:
        put_json({"store": where, "runs": [listed(header, status) for header, status in rows]})
        return 0
    if not rows:
        is_filtered = any((options.status, options.name, options.since is not None))
        say(f"no such runs in {where}" if is_filtered else f"no runs yet in {where}")
        return 0
    titles = ("RUN", "KIND", "NAME", "LABEL", "STATUS", "STARTED", "DURATION", "EVENTS")
    cells = (_row(header, status) for header, status in rows)
    put(table(titles, cells, spare=("EVENTS", "KIND", "DURATION", "LABEL"), cuttable="NAME"))
    return 0


def _chosen(log: Log, options: Namespace) -> list[tuple[Header, str]]:
    limit = options.limit

    def found(status: Status | None, most: int = limit) -> list[tuple[Header, str]]:
        headers = log.headers(most, status=status, name=options.name, since=options.since)
        shown = (as_people_read_it(one, log) for one in headers)
        return [(with_failures(log, header), status) for header, status in shown]

    if options.status not in ("running", "interrupted"):
        return found(options.status)
    # A run that the log calls running and that no process owns is shown as interrupted, and filtered as such.
    under_way = found("running", MOST_RUNNING)
    if options.status == "running":
        return [one for one in under_way if one[1] == "running"][:limit]
    stopped = [*found("interrupted"), *(one for one in under_way if one[1] == CRASHED)]
    return sorted(stopped, key=lambda one: one[0].started_at, reverse=True)[:limit]


def _row(header: Header, status: str) -> tuple[str, ...]:
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(header.started_at))
    return (
        header.execution_id,
        header.kind,
        header.name,
        header.label or "",
        with_failed(SHOWN.get(status, status), header.failed_iterations or 0),
        started,
        _duration(header, status),
        f"{header.last_seq:,}",
    )


def _duration(header: Header, status: str) -> str:
    if header.ended_at is not None:
        return seconds(max(0.0, header.ended_at - header.started_at))
    return f"{seconds(max(0.0, time.time() - header.started_at))} so far" if status == "running" else ""
