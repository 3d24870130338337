"""`penstock runs`: the list, newest first."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.cli.engine import looking, status_of
from penstock.cli.job_summary import with_failed
from penstock.cli.layout import table
from penstock.cli.output import put, put_json, say
from penstock.projections.wording import seconds
from penstock.server.views import listed, with_failures

if TYPE_CHECKING:
    from penstock.ports.log import Header

SHOWN = {"crashed": "interrupted (crashed)"}


def main(options: Namespace) -> int:
    with looking(options) as (engine, place):
        headers = [with_failures(engine.log, one) for one in engine.log.headers(max(1, options.limit))]
        rows = [(header, status_of(header, engine)) for header in headers]
    if options.json:
        put_json({"store": place, "runs": [listed(header, status) for header, status in rows]})
        return 0
    if not rows:
        say(f"no runs yet in {place}")
        return 0
    titles = ("RUN", "KIND", "NAME", "LABEL", "STATUS", "STARTED", "DURATION", "EVENTS")
    cells = (_row(header, status) for header, status in rows)
    put(table(titles, cells, spare=("EVENTS", "KIND", "DURATION", "LABEL"), cuttable="NAME"))
    return 0


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
        return seconds(header.ended_at - header.started_at)
    return f"{seconds(time.time() - header.started_at)} so far" if status == "running" else ""
