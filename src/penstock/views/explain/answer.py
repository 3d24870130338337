"""The whole answer: what happened to a node, why, and what followed from it."""

from __future__ import annotations

from penstock.kernel.net import Node
from penstock.views.explain.book import Book
from penstock.views.explain.chain import LAST, ancestors
from penstock.views.explain.explanation import Explanation, Inquiry, Log
from penstock.views.explain.never import never_ran
from penstock.views.explain.part import explain_iteration, explain_task
from penstock.views.explain.step import MOST_RUNS, explain_step
from penstock.views.explain.target import Target, find
from penstock.views.explain.values import what_conditions_saw
from penstock.views.history import History, StepRun
from penstock.views.wording import error_line


def explain(node: str, seen: History, book: Book, log: Log) -> Explanation:
    """Raises Refused when the run has no such node."""
    target = find(node, seen, book)
    if not target.runs:
        return _never(target, seen, book, log)
    run = _most_telling(target.runs)
    asked = _asked([*ancestors(run, seen)[-LAST:], run], seen, book)
    ask = Inquiry(target, run, seen, book, what_conditions_saw(log.entries(), log.load, asked), log)
    if target.index is not None:
        return explain_iteration(ask, target.index)
    if target.task is not None:
        return explain_task(ask, target.task)
    return explain_step(ask)


def _most_telling(runs: list[StepRun]) -> StepRun:
    """Of several visits: one that failed for good, else one that is not over, else the last."""
    for run in runs:
        if run.continued_by is None and run.selected is not None and run.selected.unhandled:
            return run
    for run in reversed(runs):
        if run.status in ("running", "waiting", "stranded"):
            return run
    return runs[-1]


def _asked(runs: list[StepRun], seen: History, book: Book) -> dict[str, tuple[StepRun, Node]]:
    """The runs whose conditions the answer will speak of; of a join's tokens, all the runs they came from."""
    tokens = [seen.runs[token] for run in runs for token in run.tokens if token in seen.runs]
    joined = [seen.runs[token.parent] for token in tokens if token.parent in seen.runs]
    found: dict[str, tuple[StepRun, Node]] = {}
    for run in [*runs, *joined]:
        net = book.net(seen.executions[run.execution])
        node = net.nodes.get(run.step) if net is not None else None
        if node is not None:
            found[run.id] = (run, node)
    return found


def _never(target: Target, seen: History, book: Book, log: Log) -> Explanation:
    execution = target.execution
    net = book.net(execution)
    where = book.where(execution, target.step)
    answer = Explanation(target.step, "never ran", f"`{target.step}` never ran{f'  ({where})' if where else ''}")
    if net is None:
        answer.add("why not", ["the document of the run can no longer be read"])
        return answer
    asked = {
        run.id: (run, node)
        for node in net.nodes.values()
        for run in seen.of_step(node.name, execution.scope)[-MOST_RUNS:]
    }
    saw = what_conditions_saw(log.entries(), log.load, asked)
    is_over = execution.status != "running" or not log.is_live
    title = "tokens could have come from" if is_over else "tokens may still come from"
    answer.add(title, never_ran(target.step, execution, net, seen, saw))
    if execution.status == "failed" and execution.error is not None:
        answer.add("how the run ended", [f"it failed: {error_line(execution.error)}"])
    elif execution.cancel_reason is not None:
        answer.add("how the run ended", [f"it was cancelled: {execution.cancel_reason}"])
    return answer
