"""The end of a sub-job, and of the scope it lies in: a joblet call, an iteration, the execution."""

from __future__ import annotations

from typing import Literal

from penstock.kernel import components, facts, fans
from penstock.kernel.decision import Decision
from penstock.kernel.fans import PartOver
from penstock.kernel.judge import located
from penstock.kernel.kept import STATE, closed
from penstock.kernel.net import Region
from penstock.kernel.places import Path
from penstock.kernel.scopes import ScopeView
from penstock.kernel.state import RUNNING, SETTLED, dying, failed_iterations
from penstock.kernel.values import Json


def close(d: Decision, view: ScopeView, region: Region | None) -> None:
    if region is not None:
        _close_subjob(d, view, region)
    else:
        _close_scope(d, view)


def _close_subjob(d: Decision, view: ScopeView, region: Region) -> None:
    """Close a sub-job whose members have all ended. Those of the execution itself are closed by the server, never by a holder."""
    subjob = view.subjob(region)
    if subjob is None or subjob.status in SETTLED or not d.closes(view) or not d.is_over(region, subjob):
        return
    d.mandate.elsewhere.discard(subjob.place.id)
    if not view.is_single or region is not view.bodies[0]:
        components.close(d, view, region, subjob)
    _close_scope(d, view)


def _close_scope(d: Decision, view: ScopeView) -> None:
    """Close a scope whose sub-jobs have all closed."""
    scope = view.state
    if scope.index is not None:
        assert scope.opener is not None
        fans.end_part(d, PartOver(scope.opener, scope.index))
    elif not d.has_ended(view):
        return
    elif scope.opener is None:
        _end(d, view)
    elif scope.opener.status == RUNNING:
        components.end_call(d, view, scope.opener)


def _end(d: Decision, view: ScopeView) -> None:
    """End the execution as cancelled, as failed (a fatal or an unhandled error), or as completed."""
    execution = d.execution
    if execution.status != "running" or not d.mandate.is_whole:
        return
    dead, exit_code = dying(execution), None
    error, cause = d.rules.failure(d, view)
    if dead is not None:
        error, exit_code = located(dead.error, component=dead.place.id), dead.exit_code or 1
    status: Literal["completed", "failed", "cancelled"] = "failed" if error is not None else "completed"
    if execution.cancelling:
        status, error, exit_code = "cancelled", None, None
    kept: Json = None
    if status == "completed":
        kept = closed(execution.kept, execution.ctx.values.get(STATE), execution.marks)
    body = facts.ExecutionEnded(status, error, d.net.kind, exit_code, failed_iterations(execution), kept)
    # A resume undoes an end, which stays in the log, and a playbook may then have a run at the next number. So the path of an
    # end has two numbers, which no run's path has.
    at: Path = (execution.top + 1, 0) if d.plan.moves_tokens else (len(view.spec.regions),)
    d.record_own(body, at=at, cause=cause)
