"""Looking at all that a scope holds: after a fold of the log, this finds what there is to decide, whatever led to it."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.kernel.decision import Decision
from penstock.kernel.net import Region
from penstock.kernel.scopes import ScopeView, handlers_of, leading
from penstock.kernel.state import SETTLED, Run, Scope


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
            d.rules.look(d, view, region)
            d.check(view, region)


def look_at_handlers(d: Decision, view: ScopeView) -> None:
    """The end of an iteration leads to what handles it."""
    on = leading(view.state.body)
    handlers = handlers_of(view, on)
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
