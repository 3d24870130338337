"""The end of a sub-job, and of what holds it: a joblet call, an iteration, the execution."""

from __future__ import annotations

from penstock.kernel import fans
from penstock.kernel.decision import Decision
from penstock.kernel.net import Region
from penstock.kernel.scopes import ScopeView
from penstock.kernel.state import RUNNING, SETTLED


def close(d: Decision, view: ScopeView, region: Region | None) -> None:
    if region is not None:
        _close_subjob(d, view, region)
    else:
        _close_scope(d, view)


def _close_subjob(d: Decision, view: ScopeView, region: Region) -> None:
    """Close a sub-job whose members have all ended. Whoever holds it leaves that to the server."""
    subjob = view.subjob(region)
    if subjob is None or subjob.status in SETTLED or not d.closes(view) or not d.rules.is_over(d, region, subjob):
        return
    d.mandate.elsewhere.discard(subjob.place.id)
    if not view.is_single or region is not view.bodies[0]:
        d.rules.close(d, view, region, subjob)
    _close_scope(d, view)


def _close_scope(d: Decision, view: ScopeView) -> None:
    """Close a scope whose sub-jobs have all closed."""
    scope = view.state
    if scope.index is not None:
        fans.close(d, view)
    elif not d.has_ended(view):
        return
    elif scope.opener is None:
        _end(d, view)
    elif scope.opener.status == RUNNING:
        d.rules.end_call(d, view, scope.opener)


def _end(d: Decision, view: ScopeView) -> None:
    if d.execution.status == "running" and d.mandate.is_whole:
        body, at, cause = d.rules.conclude(d, view)
        d.mark(body, at=at, cause=cause)
