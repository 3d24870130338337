"""`penstock runs`: the list, newest first."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.cli.engine import opened, status_of
from penstock.cli.output import put, put_json, say, table
from penstock.homes import known_home
from penstock.projections.wording import seconds

if TYPE_CHECKING:
    from penstock.kernel.values import JsonMap
    from penstock.ports.log import Header

SHOWN = {"crashed": "interrupted (crashed)"}


def main(options: Namespace) -> int:
    home = known_home(options.store)
    with opened(home) as engine:
        rows = [(header, status_of(header, engine)) for header in engine.log.headers(max(1, options.limit))]
    if options.json:
        put_json({"store": str(home), "runs": [_as_json(header, status) for header, status in rows]})
        return 0
    if not rows:
        say(f"no runs yet in {home}")
        return 0
    titles = ("RUN", "KIND", "NAME", "LABEL", "STATUS", "STARTED", "DURATION", "EVENTS")
    put(table(titles, (_row(header, status) for header, status in rows)))
    return 0


def _row(header: Header, status: str) -> tuple[str, ...]:
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(header.started_at))
    return (
        header.execution_id,
        header.kind,
        header.name,
        header.label or "",
        SHOWN.get(status, status),
        started,
        _duration(header, status),
        f"{header.last_seq:,}",
    )


def _duration(header: Header, status: str) -> str:
    if header.ended_at is not None:
        return seconds(header.ended_at - header.started_at)
    return f"{seconds(time.time() - header.started_at)} so far" if status == "running" else ""


def _as_json(header: Header, status: str) -> JsonMap:
    from penstock.ports.wire import iso

    ended = header.ended_at
    return {
        "execution_id": header.execution_id,
        "kind": header.kind,
        "name": header.name,
        "label": header.label,
        "status": "interrupted" if status == "crashed" else status,
        "crashed": status == "crashed",
        "file": header.path,
        "started_at": iso(header.started_at),
        "ended_at": None if ended is None else iso(ended),
        "duration_ms": None if ended is None else round((ended - header.started_at) * 1000, 3),
        "events": header.last_seq,
        "trace_id": header.trace_id,
    }
