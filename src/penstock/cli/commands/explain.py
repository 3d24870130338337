"""`penstock explain RUN NODE`: why."""

from __future__ import annotations

import sys
from argparse import Namespace

from penstock.cli.book import PinnedBook
from penstock.cli.engine import looking_at, status_of
from penstock.cli.output import BOLD, painted, put, put_json, safe
from penstock.ports.results import loader
from penstock.projections.explain import Explanation, Log, explain
from penstock.projections.history import history


def main(options: Namespace) -> int:
    with looking_at(options.store, options.run) as (engine, header):
        run = header.execution_id
        is_live = status_of(header, engine) == "running"
        seen = history(engine.log.read(run))
        log = Log(lambda: engine.log.read(run), loader(engine.blobs), is_live)
        answer = explain(options.node, seen, PinnedBook(engine, run), log)
    if options.json:
        put_json({"execution_id": run, **answer.as_json()})
    else:
        put(_page(answer))
    return 0


def _page(answer: Explanation) -> str:
    lines = [painted(safe(answer.headline), BOLD, sys.stdout)]
    for section in answer.sections:
        lines += ["", painted(safe(section.title), BOLD, sys.stdout), *(f"  {safe(line)}" for line in section.lines)]
    return "\n".join(lines)
