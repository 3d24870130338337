"""`penstock events RUN`: the log itself."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.engine import looking_at
from penstock.cli.output import one_line, put, safe
from penstock.projections.wording import error_line, shown

if TYPE_CHECKING:
    from penstock.cli.engine import Engine
    from penstock.ports.log import Entry

POLL_S = 0.2
PAGE = 500


def main(options: Namespace) -> int:
    if options.canonical and options.follow:
        raise CommandLineError("`--canonical` sorts the whole log, so it cannot `--follow` it")
    if options.hash and not options.canonical:
        raise CommandLineError("`--hash` goes with `--canonical`")
    with looking_at(options) as (engine, header):
        if options.canonical:
            _canonical(engine, header.execution_id, only_hash=options.hash)
            return 0
        from penstock.ports.results import encode
        from penstock.ports.wire import envelope

        lines: list[str] = []
        for entry in followed(engine, header.execution_id) if options.follow else engine.log.read(header.execution_id):
            if entry is not None:
                lines.append(encode(envelope(entry, header)).decode() if options.json else _line(entry))
            if entry is None or len(lines) >= PAGE:
                _put(lines)
        _put(lines)
    return 0


def _put(lines: list[str]) -> None:
    if lines:
        put("\n".join(lines))
        sys.stdout.flush()
        lines.clear()


def _canonical(engine: Engine, execution_id: str, *, only_hash: bool) -> None:
    from penstock.ports.results import encode
    from penstock.projections.canonical import canonical, canonical_hash

    entries = engine.log.read(execution_id)
    if only_hash:
        put(canonical_hash(entries, execution_id))
        return
    for event in canonical(entries, execution_id):
        put(encode(event).decode())


def followed(engine: Engine, execution_id: str) -> Iterator[Entry | None]:
    """Entries as they come, until the run is over or nobody works on it; None whenever there is nothing more for now."""
    from penstock.app.embedded import Embedded
    from penstock.cli.local_feed import is_over

    if not isinstance(engine, Embedded):
        yield from engine.log.follow(execution_id)
        return
    seq = 0
    while True:
        # Asked first: what was written before the run was over is then read for certain.
        over = is_over(engine, execution_id)
        for entry in engine.log.read(execution_id, seq):
            seq = entry.seq
            yield entry
        yield None
        if over:
            return
        time.sleep(POLL_S)


def _line(entry: Entry) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(entry.ts))
    where = entry.task or entry.scope or "-"
    start = f"{entry.seq:>6}  {clock}.{int(entry.ts % 1 * 1000):03d}  {entry.type:<22}  {safe(where)}"
    return f"{start}  {one_line(_detail(entry))}".rstrip()


def _detail(entry: Entry) -> str:
    from penstock.cli.fanned import fanout_detail
    from penstock.cli.job_events import job_detail
    from penstock.ports.results import decode
    from penstock.ports.wire import is_of_job

    data: Any = decode(entry.payload)
    match entry.type:
        case "task.done":
            outcome = data["outcome"]
            said = "ok" if outcome.get("status") == "ok" else error_line(outcome.get("error"))
            return f"{said} → {data['do']}"
        case "task.started":
            return f"{data['kind']}, attempt {data['attempt']}" if data["attempt"] > 1 else str(data["kind"])
        case "next.selected":
            return f"on {data['on']} → {', '.join(data['steps']) or 'nothing'}" + (
                " (unhandled)" if data.get("unhandled") else ""
            )
        case "loop.started":
            return f"{data['total']:,} {data['mode']}"
        case "step.scheduled":
            return f"visit {data['visit']}"
        case "token.stranded":
            return f"missing {', '.join(data['missing'])}"
    if entry.type.startswith(("loop.fan", "loop.shard.")):
        return fanout_detail(entry.type, data)
    if is_of_job(entry.type):
        return job_detail(entry.type, data)
    if data.get("error") is not None:
        return error_line(data["error"])
    if data.get("reason"):
        return str(data["reason"])
    return shown(data["item"]) if data.get("item") is not None else ""
