"""The survey of a scope: after a fold of the log, it finds everything there is to decide, however the state came about."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.kernel import components, steps
from penstock.kernel.decision import Decision
from penstock.kernel.net import Region
from penstock.kernel.scopes import LEADS, ScopeView
from penstock.kernel.state import RUNNING, SETTLED, Run, Scope


def survey(d: Decision, scope: Scope) -> None:
    """Queue everything that may have to be decided in a scope that has been opened or continues."""
    view = ScopeView(d.plan, scope)
    survey_subjobs(d, view, view.bodies)
    if scope.handlers:
        survey_handlers(d, view)
    d.queue_closing(view)


def survey_subjobs(d: Decision, view: ScopeView, regions: Iterable[Region]) -> None:
    for region in regions:
        subjob = view.subjob(region)
        if subjob is None or subjob.status not in SETTLED:
            _survey_members(d, view, region)
            d.queue_closing(view, region)


def _survey_members(d: Decision, view: ScopeView, region: Region) -> None:
    """Route step runs that have ended but not fired arcs; re-examine waiting tokens and components that have not started;
    descend into running ones."""
    execution, decides = d.execution, d.decides(view, region)
    if decides and view.state is execution:
        for run in sorted(execution.ending.values(), key=lambda run: run.path):
            steps.route(d, run)
        for path in sorted(execution.tokens):
            d.queue_node(view, execution.tokens[path].step, path)
    for name in region.members if not d.plan.moves_tokens else ():
        component = view.component(name)
        if component is None:
            for link in d.plan.joins[name][:1]:
                components.join(d, view, link)
            d.queue_node(view, name)
        elif component.status == RUNNING and decides:
            survey_inside(d, component)


def survey_handlers(d: Decision, view: ScopeView) -> None:
    """Fire the links from the end of an iteration to its handlers, and survey these."""
    on, handlers = LEADS[view.state.body], view.handlers(view.state.body)
    for region in handlers:
        for name in region.members:
            for link in view.plan.inbound[name]:
                if link.on is on and link.index not in view.state.fired:
                    components.fire_end(d, view, link)
    survey_subjobs(d, view, handlers)


def survey_inside(d: Decision, run: Run) -> None:
    """Survey the scopes that a running component has opened."""
    if run.inside is not None:
        survey(d, run.inside)
    if run.fan is not None and run.is_fanning and not run.fan.is_elsewhere:
        for part in list(run.fan.open.values()):
            if isinstance(part, Scope):
                survey(d, part)
        d.fans.append(run)
