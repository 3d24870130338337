"""`penstock explain RUN NODE`: why."""

from __future__ import annotations

import sys
from argparse import Namespace

from penstock.cli.book import PinnedBook
from penstock.cli.engine import looking_at, status_of
from penstock.cli.output import BOLD, painted, put, put_json, safe
from penstock.ports.results import loader
from penstock.projections.explain import Explanation, Log, explain
from penstock.projections.history import history, job_around


def main(options: Namespace) -> int:
    with looking_at(options.store, options.run) as (engine, header):
        run = header.execution_id
        is_live = status_of(header, engine) == "running"
        log = Log(lambda: engine.log.read(run), loader(engine.blobs), is_live)
        answer = answered(options.node, header.kind, log, PinnedBook(engine, run))
    if options.json:
        put_json({"execution_id": run, **answer.as_json()})
    else:
        put(_page(answer))
    return 0


def answered(node: str, kind: str, log: Log, book: PinnedBook) -> Explanation:
    """About a step of a playbook or a component of a job; of whatever runs inside them, by its full scope."""
    if kind == "job" and "/" not in node:
        return _of_job(node, "", log, book)
    seen = history(log.entries())
    inside = job_around(node, seen)
    if inside is not None:
        return _of_job(node.strip().removeprefix(inside), inside, log, book)
    return explain(node, seen, book, log)


def _of_job(node: str, execution: str, log: Log, book: PinnedBook) -> Explanation:
    from penstock.projections.jobs_explain import explain_job
    from penstock.projections.jobs_fold import JobFold
    from penstock.projections.jobs_view import JobView

    seen = JobFold(execution, log.load).add_all(log.entries())
    around = history(log.entries()).executions.get(execution)
    net = book.net(around) if around is not None else None

    def where(component: str) -> str:
        return book.where(around, component) if around is not None else ""

    return explain_job(node, JobView(seen, net, where, log.is_live), log)


def _page(answer: Explanation) -> str:
    lines = [painted(safe(answer.headline), BOLD, sys.stdout)]
    for section in answer.sections:
        lines += ["", painted(safe(section.title), BOLD, sys.stdout), *(f"  {safe(line)}" for line in section.lines)]
    return "\n".join(lines)
