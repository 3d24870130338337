"""`penstock logs RUN`: what tools and components said while they ran."""

from __future__ import annotations

import time
from argparse import Namespace
from itertools import chain
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.engine import looking_at, views_of
from penstock.cli.output import put, safe, say
from penstock.cli.printed import printed_lines

if TYPE_CHECKING:
    from penstock.kernel.net import Net


def main(options: Namespace) -> int:
    from msgspec import DecodeError

    from penstock.ports.results import decode
    from penstock.ports.wire import step_of, step_run_of
    from penstock.projections.jobs_names import is_of_component

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
    """Refuses what the document does not have. What runs inside other executions is not known here, so it is let through."""
    from penstock.expr.rules import did_you_mean
    from penstock.ports.wire import step_of
    from penstock.projections.jobs_names import node_of

    own = node_of(name) if kind == "job" else step_of(name) or name
    if net is None or "/" in name or {name, own} & net.nodes.keys():
        return
    what, close = "component" if kind == "job" else "step", did_you_mean(own, list(net.nodes))
    known = ", ".join(f"`{one}`" for one in list(net.nodes)[:20])
    raise CommandLineError(f"the {kind} has no {what} `{name}`{f'; {close}' if close else ''}", f"it has {known}")
