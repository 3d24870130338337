"""The rules of steps: tokens, admission and joins, what follows from the end of a step run, how a playbook ends."""

from __future__ import annotations

from penstock.kernel import facts
from penstock.kernel.decision import Decision, Ready
from penstock.kernel.errors import Refused
from penstock.kernel.facts import Fact, RunEnded, event_type
from penstock.kernel.judge import Admission, Selection, located, message_of
from penstock.kernel.net import FailureMode, Gate, Node
from penstock.kernel.places import Path, event_name, next_paths
from penstock.kernel.scopes import ScopeView
from penstock.kernel.state import StepRun, Token, Unhandled
from penstock.kernel.values import Json, JsonMap

# ---- may a step run?


def ready(d: Decision, view: ScopeView, name: str, path: Path) -> Ready | None:
    """None if the token has to wait: a join is incomplete, or nothing may start."""
    token, node = d.execution.tokens.get(path), d.net.nodes[name]
    if token is None or not d.may_start(name):
        return None
    consumed: tuple[Path, ...] = ()
    if node.gate is Gate.JOIN:
        waiting = _waiting(d, node)
        if any(not waiting[origin] for origin in node.joins):
            return None
        # D55: one token from each step that is joined; if a step has sent several, the one with the earliest place.
        chosen = {origin: waiting[origin][0] for origin in node.joins}
        consumed = tuple(one.path for one in chosen.values())
        args: JsonMap = {origin: one.args for origin, one in chosen.items()}
        last = d.execution.tokens[max(consumed)]
        token = Token(name, last.path, args, last.origin, last.counter)
    visits = d.execution.visits.get(name, 0)
    if visits >= d.net.limits.max_step_visits:
        return Ready(Admission(False, None, _too_many_visits(name, visits)), token, None, consumed)
    admission = Admission(True) if node.admit is None else d.judge.admit(node, token)
    return Ready(None if admission.allow else admission, token, admission.rule, consumed)


def _waiting(d: Decision, node: Node) -> dict[str, list[Token]]:
    waiting: dict[str, list[Token]] = {name: [] for name in node.joins}
    for path in sorted(d.execution.tokens):
        token = d.execution.tokens[path]
        if token.step == node.name and token.origin in waiting:
            waiting[token.origin].append(token)
    return waiting


# ---- starting


def start(d: Decision, view: ScopeView, name: str, ready: Ready, continues: str | None = None) -> None:
    token = ready.token
    assert token is not None
    place, path = view.place(name, token.path), list(token.path)
    visit, consumed = d.execution.visits.get(name, 0) + 1, [list(one) for one in ready.consumed]
    body = facts.RunScheduled(name, path, visit, token.args, ready.rule, consumed, continues)
    cause = event_name(place.id, token.counter - 1)
    d.record(Fact(place.id, (*place.clock, token.counter), body, cause))
    d.record_next(d.state.runs[place.id], facts.RunStarted(name))


def refuse(d: Decision, view: ScopeView, name: str, ready: Ready) -> None:
    """Record that the token was refused; for a join, every token it would have consumed."""
    admission, token = ready.refusal, ready.token
    assert isinstance(admission, Admission)
    assert token is not None
    for path in ready.consumed or (token.path,):
        place = view.place(name, path)
        body = facts.TokenRefused(name, list(path), admission.rule, admission.error)
        d.record(Fact(place.id, (*place.clock, 1), body, event_name(place.id, 0)))


def create_token(
    d: Decision, step: str, path: Path, args: JsonMap, cause: str, run: StepRun | None = None, arc: int | None = None
) -> None:
    """`run`: the step run that sends the token; `arc`: the arc it travels, if any."""
    view, parent = d.root, run.place.id if run is not None else None
    origin = run.step if run is not None and arc is not None else None
    place = view.place(step, path)
    d.record(Fact(place.id, (*place.clock, 0), facts.TokenCreated(step, list(path), args, parent, origin, arc), cause))
    d.queue_node(view, step, path)


def reopen(d: Decision) -> None:
    """Start a new run for every unhandled failed run, which continues it."""
    for one in sorted((one for one in d.execution.unhandled if one.run is not None), key=_path_of):
        failed = one.run
        assert failed is not None
        path = next_paths(failed.path, 1)[0]
        create_token(
            d, failed.step, path, failed.args, event_name(d.execution.place.id, d.execution.counter - 1), failed
        )
        start(d, d.root, failed.step, Ready(token=d.execution.tokens[path]), continues=failed.place.id)


def resume(d: Decision, restarted: list[str]) -> None:
    """Continue after a crash, an interruption or a failure. What has settled stays settled.

    Failed steps are reopened only if the execution had ended as failed. One that was stopped midway continues as if it had not
    been, and ends as it would have ended.
    """
    execution = d.execution
    if execution.status in ("completed", "cancelled"):
        raise Refused(f"the run is {execution.status}; there is nothing to resume")
    has_failed = execution.status == "failed"
    reopened = [one.run.place.id for one in execution.unhandled if one.run is not None and has_failed]
    if has_failed and not reopened:
        raise Refused(
            "the run failed for a reason that would come again: " + message_of(execution.error),
            hint="correct the document and start a new run",
        )
    d.record_own(facts.ExecutionResumed(restarted, reopened))
    if reopened:
        reopen(d)


# ---- the end of a step run


def end(d: Decision, view: ScopeView, name: str, run: StepRun, end: RunEnded) -> None:
    """The end is recorded by the holder of the run; the server decides what follows from it."""
    d.record_next(run.pipeline or run, end)  # A run and its pipeline share one counter.
    if d.mandate.is_whole:
        route(d, run)


def route(d: Decision, run: StepRun) -> None:
    """Fire the arcs the judge selects; each sends one token."""
    execution, end, node = d.execution, run.ended, d.net.nodes[run.step]
    assert end is not None
    # A run stopped by another step's failure does not route. One that ended by itself must, or a resume would lose its tokens.
    is_stopped = execution.cancelling or (execution.deaths and end.given_up)
    selection = Selection() if is_stopped else d.judge.select(node, run, end)
    is_unhandled = end.status == "failed" and not selection.fired
    aborts = (is_unhandled or selection.error is not None) and d.net.failure is FailureMode.FAIL_FAST
    arcs = [arc for arc, _ in selection.fired]
    body = facts.ArcsSelected(
        event_type(end),
        [arc.index for arc in arcs],
        [arc.target for arc in arcs],
        selection.writes,
        is_unhandled,
        aborts,
        selection.error,
    )
    d.record_next(run, body)
    chosen = event_name(run.place.id, run.counter - 1)
    paths = next_paths(run.path, len(arcs))
    for arc, path in zip(arcs, paths, strict=True):
        d.record_next(run, d.root.firing(arc, path), chosen)
    for (arc, args), path in zip(selection.fired, paths, strict=True):
        create_token(d, arc.target, path, args, chosen, run, arc.index)


# ---- the end of a playbook


def failure(d: Decision, view: ScopeView) -> tuple[Json, str | None]:
    """The first unhandled failure and the event that left it unhandled; otherwise the error of a stranded token, if any."""
    unhandled = sorted(d.execution.unhandled, key=_path_of)
    # Tokens that wait only because the run is being stopped are not stranded.
    stranded = _strand(d) if d.execution.tokens and not d.execution.is_stopping else []
    failed = [one.run for one in unhandled if one.run is not None]
    cause = event_name(failed[0].place.id, failed[0].counter - 1) if failed else None
    if unhandled:  # The earliest by place, with the number of the others.
        return located(unhandled[0].error, len(unhandled) + len(stranded) - 1, step=unhandled[0].step), cause
    return stranded[0] if stranded else None, cause


def _strand(d: Decision) -> list[JsonMap]:
    stranded: list[JsonMap] = []
    for path in sorted(d.execution.tokens):
        token = d.execution.tokens[path]
        node = d.net.nodes[token.step]
        waiting = _waiting(d, node)
        present = [name for name in node.joins if waiting[name]]
        missing = [name for name in node.joins if not waiting[name]]
        place = d.root.place(token.step, path)
        body = facts.TokenStranded(token.step, list(path), missing, present)
        d.record(Fact(place.id, (*place.clock, token.counter), body, event_name(place.id, 0)))
        stranded.append(_stranded(token.step, missing, present))
    return stranded


def _path_of(one: Unhandled) -> Path:
    return one.run.path if one.run is not None else ()


def _too_many_visits(step: str, visits: int) -> JsonMap:
    return {
        "kind": "visit_limit",
        "message": f"step `{step}` was visited {visits} times, the most that `limits.max_step_visits` allows",
        "retryable": False,
        "step": step,
    }


def _stranded(step: str, missing: list[str], present: list[str]) -> JsonMap:
    lacking = ", ".join(f"`{name}`" for name in missing)
    have = ", ".join(f"`{name}`" for name in present)
    return {
        "kind": "stranded",
        "message": f"step `{step}` joins tokens and none came from {lacking} (it has those from {have})",
        "retryable": False,
        "step": step,
        "missing": list(missing),
    }
