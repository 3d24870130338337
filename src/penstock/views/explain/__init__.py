"""Why: the causes of what happened to a step, a task, a component, a sub-job or an iteration, read from the log.

chain       how it came to that, from the start of the run       steps        a step of a playbook, and what never ran
conditions  why an arc fired or did not, and what it saw         parts        its tasks, its iterations, elements of a fan-out
wiring      what became of a link of a job                       components   a component, a sub-job or an iteration of a job
"""

from __future__ import annotations

from penstock.views.explain.components import explain_component
from penstock.views.explain.explanation import Book, Explanation, Inquiry, Log, Section, Sentence
from penstock.views.explain.steps import explain_step
from penstock.views.model import Execution
from penstock.views.run_view import RunView

__all__ = ["Book", "Explanation", "Log", "Section", "Sentence", "explain"]


def explain(node: str, log: Log, book: Book) -> Explanation:
    """About a step of a playbook or a component of a job; of whatever runs inside them, by its full scope.

    Raises Refused when the run has no such node.
    """
    view = log.view()
    job = _job_around(node, view)
    if job is None:
        return explain_step(node, view, book, log)
    was_let_go = any(fan.settled for _, fan in job.iterators()) or not job.runs
    if was_let_go and log.before is None:  # What iterations did was let go.
        view = RunView.of(log.entries(), whole=True, listed=_earlier(job, view))
    return explain_component(node.strip().removeprefix(job.scope), Inquiry(view, view.executions[job.scope], book, log))


def _job_around(node: str, view: RunView) -> Execution | None:
    """The job that a full scope lies in; None when it lies in none, or in a playbook that the job runs."""
    inside = [scope for scope in view.executions if node.strip().startswith(scope)]
    execution = view.executions.get(max(inside, key=len, default=""))
    return execution if execution is not None and execution.kind == "job" else None


def _earlier(execution: Execution, view: RunView) -> list[str]:
    """The job, and those that it goes on from."""
    found = [execution.scope]
    one: Execution | None = execution
    while one is not None and one.continues is not None:
        found.append(f"{one.continues}/")
        one = view.executions.get(found[-1])
    return found
