"""`penstock runs`: the list, newest first."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from penstock.cli.output import put, put_json, say, table
from penstock.cli.targets import Log, log_of
from penstock.remote.log import RemoteLog
from penstock.views.headers import CRASHED, RunFilter, as_people_read_it, listed, newest_runs, with_failed
from penstock.views.wording import seconds

if TYPE_CHECKING:
    from penstock.ports.log import Header

SHOWN: dict[str, str] = {CRASHED: "interrupted (crashed)"}


def runs(options: Namespace) -> int:
    with log_of(options) as (log, where):
        rows = _chosen(log, options)
    if options.json:
        put_json({"store": where, "runs": [listed(header, status) for header, status in rows]})
        return 0
    if not rows:
        say(f"no runs yet in {where}" if _filter(options) == RunFilter() else f"no such runs in {where}")
        return 0
    titles = ("RUN", "KIND", "NAME", "LABEL", "STATUS", "STARTED", "DURATION", "EVENTS")
    cells = (_row(header, status) for header, status in rows)
    put(table(titles, cells, spare=("EVENTS", "KIND", "DURATION", "LABEL"), cuttable="NAME"))
    return 0


def _filter(options: Namespace) -> RunFilter:
    return RunFilter(**{field.name: getattr(options, field.name) for field in fields(RunFilter)})


def _chosen(log: Log, options: Namespace) -> list[tuple[Header, str]]:
    wanted, limit = _filter(options), options.limit

    def found(wanted: RunFilter) -> list[tuple[Header, str]]:
        if isinstance(log, RemoteLog):
            return log.runs(wanted, limit)
        return newest_runs(log, wanted, limit, lambda header: as_people_read_it(header, log))[0]

    if wanted.status != "interrupted":
        return found(wanted)
    # A run that crashed was interrupted, too, and is shown as such.
    stopped = [*found(wanted), *found(replace(wanted, status=CRASHED))]
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
