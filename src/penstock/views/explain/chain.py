"""The chain of causes, from the start of the run to one step run."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kernel.net import Edge, Net
from penstock.views.explain import arcs
from penstock.views.explain.book import Book
from penstock.views.explain.values import Saw
from penstock.views.history import History, StepRun
from penstock.views.wording import listed, seconds

FIRST, LAST = 3, 10


@dataclass(frozen=True, slots=True)
class Link:
    """One cause. `event` is the event's name within the run, which `events` shows."""

    text: str
    at: float
    where: str = ""
    event: str = ""


def ancestors(run: StepRun, seen: History) -> list[StepRun]:
    """The runs that led to `run`, nearest last; through the task that runs a playbook, too."""
    found: list[StepRun] = []
    known = {run.id}
    current: StepRun | None = run
    while current is not None:
        current = _before(current, seen)
        if current is None or current.id in known:
            break
        known.add(current.id)
        found.append(current)
    return found[::-1]


def _before(run: StepRun, seen: History) -> StepRun | None:
    if run.parent is not None:
        return seen.runs.get(run.parent)
    outer = seen.executions[run.execution].parent
    if outer is None:
        return None
    scope = outer.rpartition("/")[0]
    return seen.runs.get(scope) or seen.runs.get(scope.rpartition("[")[0])


def chain(run: StepRun, seen: History, book: Book, saw: Saw) -> list[Link]:
    line = [*ancestors(run, seen), run]
    if len(line) <= FIRST + LAST + 1:
        return [link for one in line for link in _links(one, seen, book, saw)]
    left = len(line) - FIRST - LAST
    skipped = Link(f"… {left:,} more step runs, each led to by the one before …", line[FIRST].created_at)
    early = [link for one in line[:FIRST] for link in _links(one, seen, book, saw)]
    return [*early, skipped, *(link for one in line[-LAST:] for link in _links(one, seen, book, saw))]


def _links(run: StepRun, seen: History, book: Book, saw: Saw) -> list[Link]:
    """How the token of this run came to be."""
    execution = seen.executions[run.execution]
    if run.continues is not None or (run.parent is not None and run.arc is None):
        failed = run.continues or run.parent
        return [
            Link(
                f"`{failed}` had failed, and a resume gave it another run, `{run.id}`",
                run.created_at,
                event=run.cause or "",
            )
        ]
    if run.parent is None:
        return [_entered(run, seen, book)]
    if run.tokens:
        return _joined(run, seen, book, saw)
    parent = seen.runs.get(run.parent)
    return [_went_on(run, parent, book.net(execution), book, seen, saw)]


def _entered(run: StepRun, seen: History, book: Book) -> Link:
    execution = seen.executions[run.execution]
    where = book.where(execution, run.step)
    if execution.parent is None:
        text = f"the run of `{execution.name}` began with its entry step, as `{run.id}`"
    else:
        what = "task" if "#" in execution.parent.rpartition("/")[2] else "component"
        played = f"{what} `{execution.parent}` runs the playbook `{execution.name}`"
        text = f"{played}, which began with `{run.step}`, as `{run.id}`"
    return Link(text, run.created_at, where, run.cause or "")


def _joined(run: StepRun, seen: History, book: Book, saw: Saw) -> list[Link]:
    tokens = [seen.runs[token] for token in run.tokens if token in seen.runs]
    links = []
    net = book.net(seen.executions[run.execution])
    for token in tokens:
        parent = seen.runs.get(token.parent or "")
        links.append(_went_on(token, parent, net, book, seen, saw))
    origins = [token.origin or "?" for token in tokens]
    last = max((token.created_at for token in tokens), default=run.created_at)
    links.append(Link(f"a token had now come from {listed(origins)}, so the join ran as `{run.id}`", last))
    return links


def _went_on(run: StepRun, parent: StepRun | None, net: Net | None, book: Book, seen: History, saw: Saw) -> Link:
    if parent is None:
        return Link(f"a token was made for `{run.id}`", run.created_at, event=run.cause or "")
    edge = _edge(net, parent.step, run.arc)
    execution = seen.executions[run.execution]
    where = book.where(execution, parent.step, arc=run.arc)
    ended = {"done": "was done", "failed": "failed"}.get(parent.status, "ended")
    took = (
        f" after {seconds(max(0.0, parent.ended_at - parent.started_at))}"
        if parent.ended_at and parent.started_at
        else ""
    )
    text = f"`{parent.id}` {ended}{took}; {arcs.fired(edge, parent, saw)} → `{run.id}`"
    return Link(text, run.created_at, where, run.cause or "")


def _edge(net: Net | None, step: str, index: int | None) -> Edge | None:
    node = net.nodes.get(step) if net is not None else None
    if node is None or index is None:
        return None
    return next((edge for edge in node.edges if edge.index == index), None)
