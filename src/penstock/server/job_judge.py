"""The judge of a job: evaluates `if` links and `while` conditions over what is visible at the component (rulebook 2.1.3, D40)."""

from __future__ import annotations

from collections.abc import Callable

from penstock.expr.budget import Purse
from penstock.expr.template import ExpressionError, holds, render
from penstock.kernel.flow.decide import Ended, Verdict
from penstock.kernel.flow.gathering import merged_value
from penstock.kernel.flow.routing import global_name
from penstock.kernel.flow.state import ComponentState, with_inside
from penstock.kernel.flow.views import View, Written
from penstock.kernel.net import Link, Node
from penstock.kernel.values import JsonMap
from penstock.ports.job_scope import job_names
from penstock.ports.leases import Setting


class JobJudge:
    def __init__(self, setting: Setting, now: Callable[[], float]) -> None:
        self._setting = setting
        self._now = now

    def conditions(self, node: Node, links: list[Link], component: ComponentState, end: Ended) -> Verdict:
        names = Purse(job_names(self._setting, node, component, _after(node, component, end), end.after))
        fired: list[int] = []
        for link in links:
            try:
                if link.when is None or holds(link.when, names):
                    fired.append(link.index)
            except ExpressionError as error:
                return Verdict(error=_failure(f"the `if` link from `{component.name}` to `{link.target}`", error))
        return Verdict(tuple(fired))

    def again(self, node: Node, component: ComponentState, index: int) -> bool | JsonMap:
        iterator = component.iterator
        assert iterator is not None
        params = node.tasks[0].params
        condition = params.get("while")
        view = View((component.view,))
        for key, value in iterator.merged.items():
            view.write(key, merged_value(value, (component.place.clock, component.name), component.region.place.id))
        names = Purse(
            job_names(self._setting, node, component, view, {"index": index}, {"index": index, "item": index})
        )
        try:
            most = render(params.get("max"), names)
            if isinstance(most, int) and index >= most:
                return False
            return holds(condition, names) if isinstance(condition, str) else bool(condition)
        except ExpressionError as error:
            return _failure(f"the condition `while` of `{component.name}`", error)

    def elapsed_ms(self, component: ComponentState) -> float:
        return round(max(0.0, self._now() - component.started_at) * 1000, 3)


def _after(node: Node, component: ComponentState, end: Ended) -> View:
    """What will be visible once this end has been committed: what a component wrote, and its figures, count in its own links."""
    if node.part is None:
        return component.view
    view = with_inside(component) if component.inside is not None else View((component.view,))
    view.set_after(component.name.removeprefix(component.region.container.prefix), end.after)
    for bare, value in end.writes.items():
        key = global_name(node.name, node.part, bare)
        view.write(key, Written(value, (component.place.clock, component.name), component.region.place.id))
    for key in end.deletes:
        view.write(key, Written(None, (component.place.clock, component.name), component.region.place.id, deleted=True))
    return view


def _failure(where: str, error: ExpressionError) -> JsonMap:
    return {"kind": "expression", "message": f"{where}: {error}", "retryable": False, "expression": error.text}


class NobodyJudges:
    """While a job is being cancelled nothing starts and no component ends by itself, so no expression is evaluated."""

    def conditions(self, node: Node, links: list[Link], component: ComponentState, end: Ended) -> Verdict:
        return Verdict()

    def again(self, node: Node, component: ComponentState, index: int) -> bool | JsonMap:
        return False

    def elapsed_ms(self, component: ComponentState) -> float:
        return 0.0
