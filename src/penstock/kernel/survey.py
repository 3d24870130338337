"""Looking at all that a scope holds: after a fold of the log, this finds what there is to decide, whatever led to it."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.kernel.decision import Decision
from penstock.kernel.net import Region
from penstock.kernel.scopes import LEADS, ScopeView
from penstock.kernel.state import RUNNING, SETTLED, Run, Scope


def survey(d: Decision, scope: Scope) -> None:
    """A scope has opened, or is taken up."""
    view = ScopeView(d.plan, scope)
    look_at_subjobs(d, view, view.bodies)
    if scope.handlers:
        look_at_handlers(d, view)
    d.check(view)


def look_at_subjobs(d: Decision, view: ScopeView, regions: Iterable[Region]) -> None:
    for region in regions:
        subjob = view.subjob(region)
        if subjob is None or subjob.status not in SETTLED:
            _look(d, view, region)
            d.check(view, region)


def _look(d: Decision, view: ScopeView, region: Region) -> None:
    """At step runs that have ended and not led on, and at tokens that wait, each in the order of its place; at components that
    have not started, and into those that are under way."""
    execution, decides = d.execution, d.decides(view, region)
    if decides and view.state is execution:
        for run in sorted(execution.ending.values(), key=lambda run: run.path):
            d.rules.route(d, run)
        for path in sorted(execution.tokens):
            d.look_at(view, execution.tokens[path].step, path)
    for name in region.members if not d.plan.moves_tokens else ():
        component = view.component(name)
        if component is None:
            for link in d.plan.joins[name][:1]:
                d.rules.join(d, view, link)
            d.look_at(view, name)
        elif component.status == RUNNING and decides:
            look_inside(d, component)


def look_at_handlers(d: Decision, view: ScopeView) -> None:
    """The end of an iteration leads to what handles it."""
    on, handlers = LEADS[view.state.body], view.handlers(view.state.body)
    for region in handlers:
        for name in region.members:
            for link in view.plan.inbound[name]:
                if link.on is on and link.index not in view.state.fired:
                    d.rules.fire_end(d, view, link)
    look_at_subjobs(d, view, handlers)


def look_inside(d: Decision, run: Run) -> None:
    """Into what a run has opened that is under way."""
    if run.inside is not None:
        survey(d, run.inside)
    if run.fan is not None and run.is_fanning and not run.fan.is_elsewhere:
        for part in list(run.fan.open.values()):
            if isinstance(part, Scope):
                survey(d, part)
        d.fans.append(run)
