"""Why an iteration or a task did what it did."""

from __future__ import annotations

from penstock.kernel.errors import Refused
from penstock.views.explain import work
from penstock.views.explain.explanation import Explanation, Inquiry
from penstock.views.explain.shards import explain_shard
from penstock.views.explain.step import deeds, played
from penstock.views.history import Iterations
from penstock.views.steps import standing
from penstock.views.wording import counted, error_line, listed

AROUND = 5
MOST_FAILED = 10

_SAID = {"done": "is done", "interrupted": "was under way when the run stopped", "running": "is running"}


def explain_iteration(ask: Inquiry, index: int) -> Explanation:
    run, loop = ask.run, ask.run.iterations
    scope = f"{run.id}[{index}]"
    if loop is None:
        raise Refused(f"`{run.id}` has no iterations", f"ask for `{run.id}`")
    if run.fanout is not None:
        return explain_shard(ask, run.fanout, index)
    item, recorded, error = work.item_of(ask.log.entries(), scope)
    if recorded is None:
        return _unstarted(ask, loop, scope, index)
    status = standing(recorded, ask.is_open)
    answer = Explanation(scope, status, f"iteration `{scope}` {_SAID.get(status, status)}{ask.where()}")
    answer.add("why it ran", [*ask.chain(), f"`{run.id}` opened a loop over {counted(loop.total, 'element')}"])
    element = work.fan_line(ask.node, item)
    answer.add("what it worked on", [element] if element else [])
    attempts = work.attempts_of(ask.log.entries(), scope, ask.target.task)
    answer.add("what it did", work.described(attempts, ask.node, is_live=ask.is_open))
    answer.add("what that ran", played(scope, ask.seen))
    answer.add("why it failed", [error_line(error)] if error is not None else [])
    return answer


def _unstarted(ask: Inquiry, loop: Iterations, scope: str, index: int) -> Explanation:
    run = ask.run
    if index >= loop.total:
        raise Refused(f"`{run.id}` has {counted(loop.total, 'iteration')}, numbered from 0")
    answer = Explanation(scope, "not started", f"iteration `{scope}` was never started{ask.where()}")
    if loop.failures:
        first, error = loop.failures[0]
        stopped = f"iteration [{first}] failed and the loop is fail_fast, so no more were started"
        answer.add("why not", [stopped, error_line(error)])
    elif ask.is_open:
        answer.add("why not", [f"the loop has come to {loop.done + loop.failed:,} of {loop.total:,}"])
    elif run.error is not None:
        answer.add("why not", [error_line(run.error)])
    else:
        answer.add("why not", ["the run stopped before the loop came to it"])
    return answer


def explain_task(ask: Inquiry, label: str) -> Explanation:
    run, node = ask.run, ask.node
    task = run.tasks.get(label)
    if task is None:
        return _unreached(ask, label)
    status = standing(task.status, ask.is_open)
    runs = f"{counted(task.runs, 'run')}, up to attempt {task.attempts}"
    headline = f"task `{label}` ({task.kind}) of `{run.id}`: {status}, {runs}{ask.where(label)}"
    answer = Explanation(f"{run.id}/{label}", status, headline)
    if run.iterations is None:
        every = work.attempts_of(ask.log.entries(), run.id, None)
        own = [one for one in every if one.task == label]
        if ask.target.ordinal is not None:
            own = [one for one in own if one.task_run_id.endswith(f"#{ask.target.ordinal}")]
        answer.add("what it did", work.described(own, node, is_live=ask.is_open))
        others = [one for one in every if one.task != label]
        answer.add("the tasks around it", work.described(others[-AROUND:], node, is_live=ask.is_open))
    else:
        failed = [one for one in run.attempts if one.task == label]
        answer.add("where it failed", work.described(failed[:MOST_FAILED], node, is_live=False))
        answer.add("in the loop", work.iterations(run, is_live=ask.log.is_live))
    answer.add("why the step ran", ask.chain())
    return answer


def _unreached(ask: Inquiry, label: str) -> Explanation:
    run, node = ask.run, ask.node
    if node is not None and all(one.label != label for one in node.tasks):
        known = listed([one.label for one in node.tasks])
        raise Refused(f"step `{run.step}` has no task `{label}`", f"its tasks are {known}")
    headline = f"task `{label}` of `{run.id}` was never reached{ask.where(label)}"
    answer = Explanation(f"{run.id}/{label}", "not reached", headline)
    answer.add("what happened instead", deeds(ask))
    answer.add("why the step ran", ask.chain())
    return answer
