"""`penstock events RUN` and `penstock logs RUN`: the events of a run, each in a few words, and what its tools printed."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import one_line, put, safe, say
from penstock.cli.show.local_feed import is_over, printed_lines
from penstock.cli.targets import Log, log_of, looking_at, run_named, views_of
from penstock.expr.rules import did_you_mean
from penstock.ports.results import decode, encode
from penstock.ports.wire import envelope, is_of_job, step_of, step_run_of
from penstock.remote.log import RemoteLog
from penstock.views.canonical import canonical, canonical_hash
from penstock.views.names import counted_ports, is_of_component, node_of
from penstock.views.wording import elements, error_line, seconds, shown

if TYPE_CHECKING:
    from penstock.kernel.net import Net
    from penstock.ports.log import Entry


POLL_S = 0.2
PAGE = 500


def events(options: Namespace) -> int:
    if options.canonical and options.follow:
        raise CommandLineError("`--canonical` sorts the whole log, so it cannot `--follow` it")
    if options.hash and not options.canonical:
        raise CommandLineError("`--hash` goes with `--canonical`")
    with log_of(options) as (log, _):
        header = run_named(log, options.run)
        if options.canonical:
            _canonical(log, header.execution_id, only_hash=options.hash)
            return 0

        lines: list[str] = []
        for entry in followed(log, header.execution_id) if options.follow else log.read(header.execution_id):
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


def _canonical(log: Log, execution_id: str, *, only_hash: bool) -> None:
    entries = log.read(execution_id)
    if only_hash:
        put(canonical_hash(entries, execution_id))
        return
    for event in canonical(entries, execution_id):
        put(encode(event).decode())


def followed(log: Log, execution_id: str) -> Iterator[Entry | None]:
    """Entries as they arrive, until the run is over or no process owns it; None whenever there are no more for now."""
    if isinstance(log, RemoteLog):
        yield from log.follow(execution_id)
        return
    seq = 0
    while True:
        # Asked first: what was written before the run was over is then certainly read.
        over = is_over(log, execution_id)
        for entry in log.read(execution_id, seq):
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
    data: Any = decode(entry.payload)
    match entry.type:
        case "task.done":
            outcome = data["outcome"]
            ended = "ok" if outcome.get("status") == "ok" else error_line(outcome.get("error"))
            return f"{ended} → {data['do']}"
        case "task.started":
            return f"{data['kind']}, attempt {data['attempt']}" if data["attempt"] > 1 else str(data["kind"])
        case "next.selected":
            return f"on {data['on']} → {', '.join(data['steps']) or 'nothing'}" + (
                " (unhandled)" if data.get("unhandled") else ""
            )
        case "loop.started":
            return f"{data['total']:,} {data['mode']}" if data["total"] is not None else f"claims rows, {data['mode']}"
        case "loop.claimed":
            return elements(data["lo"], data["hi"])
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


def fanout_detail(kind: str, data: Any) -> str:
    """An event of a fanned-out loop in a few words, for `penstock events`."""
    failed = f", {data['failed']:,} failed" if isinstance(data.get("failed"), int) and data["failed"] else ""
    match kind:
        case "loop.fanout.started":
            what = data["collection"]["kind"]
            if data.get("claims"):
                return "claims rows"
            return f"{data['total']:,} of {what}" if data["total"] is not None else f"pages of {what}"
        case "loop.shard.enqueued":
            again = f", try {data['attempt'] + 1}" if data["attempt"] else ""
            return f"range {data['range']}: {elements(data['lo'], data['hi'])}{again}"
        case "loop.shard.started":
            return f"range {data['range']}"
        case "loop.shard.reported":
            broken = f", {len(data['failed']):,} failed" if data["failed"] else ""
            return f"range {data['range']}: {elements(data['lo'], data['hi'])}{broken}, to be compared at the fan-in"
        case "loop.shard.done":
            return f"range {data['range']}: {elements(data['lo'], data['hi'])}, {data['done']:,} done{failed}"
        case "loop.shard.failed":
            return f"{error_line(data['error'])}{'; it comes again' if data['again'] else ''}"
        case "loop.shard.returned":
            return f"range {data['range']}: {elements(data['lo'], data['hi'])}, {data['reason']}"
    return f"{data['status']}: {data['succeeded']:,} of {data['total']:,} done{failed}"


def job_detail(kind: str, data: Any) -> str:
    match kind:
        case "job.started":
            return _resumed(data) if data.get("resumed") else str(data.get("name", ""))
        case "component.started":
            rows = f", rows in {counted_ports(data['rows_in'])}" if data.get("rows_in") else ""
            return f"{data['type']}{rows}"
        case "component.ok":
            rows = f", rows out {counted_ports(data['rows_out'])}" if data.get("rows_out") else ""
            return f"after {seconds(data.get('ms', 0.0) / 1000)}{rows}"
        case "edge.fired":
            order = f" {data['order']}" if data["on"] == "if" else ""
            return f"{data['from']} ({data['on']}{order}) {data['to']}"
        case "global.set":
            local = " (in its sub-job only)" if data.get("local") else ""
            new = "deleted" if data.get("deleted") else shown(data.get("new"), 60)
            return f"{data['key']}: {shown(data.get('old'), 40)} → {new}{local}"
        case "checkpoint.saved":
            return f"{data['bytes']:,} bytes"
        case "iterator.started":
            total = "as long as its condition holds" if data.get("total") is None else f"{data['total']:,} elements"
            return f"{total}, {data['parallel']} at a time" if data.get("parallel", 1) > 1 else total
        case "iterator.completed":
            return f"{data['ok']:,} OK, {data['failed']:,} in ERROR"
        case "iteration.started":
            return shown(data["item"]) if data.get("item") is not None else ""
    if data.get("error") is not None:
        return error_line(data["error"])
    return str(data.get("cause") or data.get("reason") or "")


def _resumed(data: Any) -> str:
    kept = len(data.get("kept") or ())
    return f"resumed, {kept:,} {'sub-job' if kept == 1 else 'sub-jobs'} kept"


def logs(options: Namespace) -> int:
    def wanted(scope: str) -> bool:
        if header.kind == "job":
            return is_of_component(scope, options.step)
        return options.step in (step_of(scope), step_run_of(scope), scope)

    with looking_at(options) as (engine, header):
        lines = printed_lines(engine, header.execution_id, follow=options.follow)
        first = next(lines, None)
        if first is None and not options.follow:
            say("the tools and components of this run have said nothing")
            return 0
        if options.step:
            _check_name(options.step, header.kind, views_of(engine).book(header).root_net())
        for line in chain([] if first is None else [first], lines):
            try:
                record: Any = decode(line)
                scope = str(record["scope"])
            except (DecodeError, KeyError, TypeError):  # The last line of a process that was killed may be cut off.
                continue
            if options.step and not wanted(scope):
                continue
            if options.json:
                put(line.decode("utf-8", "replace"))
            else:
                clock = time.strftime("%H:%M:%S", time.localtime(float(record["ts"])))
                put(f"{clock} {scope} | {safe(str(record['line']))}")
    return 0


def _check_name(name: str, kind: str, net: Net | None) -> None:
    """Refuses a name that the document does not have. Names inside other executions are not known here and pass."""
    own = node_of(name) if kind == "job" else step_of(name) or name
    if net is None or "/" in name or {name, own} & net.nodes.keys():
        return
    what, close = "component" if kind == "job" else "step", did_you_mean(own, list(net.nodes))
    known = ", ".join(f"`{one}`" for one in list(net.nodes)[:20])
    raise CommandLineError(f"the {kind} has no {what} `{name}`{f'; {close}' if close else ''}", f"it has {known}")
