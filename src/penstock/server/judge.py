"""The judge: evaluates the expressions that the kernel carries as text.

Admission rules and arc guards see what the server knows, but no pipeline locals (P4.2); `if` links and `while` conditions
see what is visible at the component (rulebook 2.1.3, D40).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.expr.budget import SharedBudget
from penstock.expr.scope import OutcomeView, Scope, Visible, bare_args
from penstock.expr.template import ExpressionError, UndefinedWrites, holds, render, render_writes, rendered, truth
from penstock.kernel.facts import RunEnded, event_type
from penstock.kernel.fanin import seen_by_arcs
from penstock.kernel.globals import View, Written
from penstock.kernel.judge import Admission, Ended, Selection, Verdict
from penstock.kernel.links import global_name
from penstock.kernel.merging import merged_value
from penstock.kernel.net import Arc, Link, Node
from penstock.kernel.patches import Staged
from penstock.kernel.state import ComponentRun, StepRun, Token, last_outcome, with_inside
from penstock.kernel.values import JsonMap
from penstock.ports.collections import FRAME_ROWS, rows_of_claim
from penstock.ports.job_scope import job_names
from penstock.ports.leases import ScopeContext, execution_view


class TemplateJudge:
    """`say` takes a line about a step run: its scope, and the text."""

    def __init__(self, context: ScopeContext, say: Callable[[str, str], None]) -> None:
        self._context = context
        self._say = say
        self._scope = ""
        self._undefined = UndefinedWrites(self._warn, strict=context.net.strict)

    def _warn(self, line: str) -> None:
        self._say(self._scope, line)

    def admit(self, node: Node, token: Token) -> Admission:
        event: JsonMap = {"name": "token.created", "step": token.origin, "args": token.args}
        scope = SharedBudget(self._visible(event, token.args, node))
        for index, rule in enumerate(node.admit or ()):
            try:
                if rule.when is None or truth(rule.when, scope):
                    return Admission(rule.allow, index)
            except ExpressionError as error:
                where = f"admission rule {index + 1} of step `{node.name}`"
                return Admission(False, index, _expression_failure(where, error, node.name))
        return Admission(False)

    def select(self, node: Node, run: StepRun, end: RunEnded) -> Selection:
        self._scope = run.place.id
        visible = self._visible(_event(run, end), run.args, node)
        visible.fixed["output"] = OutcomeView(run.outcome or last_outcome(run, end))
        if end.looped:
            visible.fixed["fanin"] = seen_by_arcs(run, end, self._context.execution_id)
        scope = SharedBudget(visible)
        fired: list[tuple[Arc, JsonMap]] = []
        written: JsonMap = {}
        for edge in node.edges:
            where = f"arc {edge.index + 1} of step `{node.name}` (to `{edge.target}`)"
            try:
                if not self._fires(edge, end, scope):
                    continue
                fired.append((edge, self._args(edge, scope, where)))
                _gather(written, rendered(edge.writes, scope, self._undefined, where))
            except ExpressionError as error:
                return Selection(error=_expression_failure(where, error, node.name))
            if node.first_only:
                break
        return Selection(fired, written)

    # ---- components

    def conditions(self, node: Node, links: list[Link], component: ComponentRun, end: Ended) -> Verdict:
        names = SharedBudget(job_names(self._context, node, component, _after(node, component, end), end.after))
        fired: list[int] = []
        for link in links:
            try:
                if link.when is None or holds(link.when, names):
                    fired.append(link.index)
            except ExpressionError as error:
                where = f"the `if` link from `{component.place.id}` to `{link.target}`"
                return Verdict(error=_expression_failure(where, error))
        return Verdict(tuple(fired))

    def again(self, node: Node, component: ComponentRun, index: int) -> bool | JsonMap:
        iterator = component.fan
        assert iterator is not None
        params = node.tasks[0].params
        condition = params.get("while")
        view = View((component.view,))
        for key, value in iterator.merged.items():
            view.write(key, merged_value(value, (component.place.clock, component.place.id), component.subjob.place.id))
        names = SharedBudget(
            job_names(self._context, node, component, view, {"index": index}, {"index": index, "item": index})
        )
        try:
            most = render(params.get("max"), names)
            if isinstance(most, int) and index >= most:
                return False
            return holds(condition, names) if isinstance(condition, str) else bool(condition)
        except ExpressionError as error:
            return _expression_failure(f"the condition `while` of `{component.place.id}`", error)

    # ---- steps

    def _args(self, edge: Arc, scope: Scope, where: str) -> JsonMap:
        return render_writes(edge.args, scope, lambda error: self._undefined(error, f"args.{error.path[0]}", where))

    def collection(self, node: Node, run: StepRun) -> Any:
        """The collection `loop.in` evaluates to; it sees ctx as it was when the run was scheduled."""
        assert node.fan is not None
        event: JsonMap = {"name": "step.started", "step": run.step, "step_run_id": run.place.id, "args": run.args}
        visible = self._visible(event, run.args, node, run.ctx)
        scope = SharedBudget(visible)
        if (rows := rows_of_claim(node.fan.collection)) is not None:
            visible.fixed[FRAME_ROWS] = render(rows, scope)
        return render(node.fan.collection, scope)

    def with_step_writes(self, node: Node, run: StepRun, end: RunEnded) -> RunEnded:
        """Apply the `set` of a step; it takes effect when the step is done, and sees its result."""
        if end.status != "done" or not node.on_done:
            return end
        scope = self._visible(_event(run, end), run.args, node, run.ctx)
        outcome = last_outcome(run, end)
        seen = {"outcome": outcome, "output": OutcomeView(outcome), "_prev": end.result, run.step: end.result}
        scope.fixed.update(seen)
        try:
            self._scope = run.place.id
            writes = rendered(node.on_done, SharedBudget(scope), self._undefined, f"`set` of step `{run.step}`")
        except ExpressionError as error:
            failure = _expression_failure(f"`set` of step `{run.step}`", error, run.step)
            return replace(end, status="failed", error=failure)
        staged = Staged()
        staged.add(end.writes)
        staged.add(writes)
        return replace(end, writes=staged.as_writes())

    def _fires(self, edge: Arc, end: RunEnded, scope: Scope) -> bool:
        if end.status == "failed" and not self._takes_failure(edge):
            return False
        return edge.guard is None or truth(edge.guard, scope)

    def _takes_failure(self, edge: Arc) -> bool:
        # Runs that began before guards over data ignored failures are decided to their end by the old rule.
        return edge.reads_event or (edge.guard is not None and self._context.scope.rules < 2)

    def _visible(self, event: JsonMap, args: JsonMap, node: Node, ctx: JsonMap | None = None) -> Visible:
        context = self._context
        if ctx is None:
            ctx = context.scope.ctx.values
        workload = context.workload
        fixed: dict[str, Any] = {
            "event": event,
            "ctx": ctx,
            "workload": workload,
            "args": args,
            "execution_id": context.execution_id,
            "execution": execution_view(context),
        }
        if context.iter_parent is not None:
            fixed["iter"] = {"parent": context.iter_parent}
        return Visible(fixed, (bare_args(args, node.joins), ctx, workload), (context.scope.results,))


def _event(run: StepRun, end: RunEnded) -> JsonMap:
    name = event_type(end)
    event: JsonMap = {
        "name": name,
        "type": name,
        "event_type": name,
        "step": run.step,
        "step_run_id": run.place.id,
        "status": end.status,
        "visit": run.visit,
        "result": end.result,
        "error": end.error,
        "payload": {"status": end.status, "result": end.result, "error": end.error},
        "args": run.args,
    }
    return event


def _gather(written: JsonMap, more: JsonMap) -> None:
    for kind, values in more.items():
        into = written.setdefault(kind, {})
        assert isinstance(into, dict)
        assert isinstance(values, dict)
        into.update(values)


def _after(node: Node, component: ComponentRun, end: Ended) -> View:
    """What will be visible once this end has been committed: the component's writes and counts are visible to its own links."""
    if node.part is None:
        return component.view
    view = with_inside(component) if component.inside is not None else View((component.view,))
    view.set_after(component.place.id.removeprefix(component.subjob.scope.prefix), end.after)
    stamp, owned_by = (component.place.clock, component.place.id), component.subjob.place.id
    for bare, value in end.writes.items():
        view.write(global_name(node.name, node.part, bare), Written(value, stamp, owned_by))
    for key in end.deletes:
        view.write(key, Written(None, stamp, owned_by, deleted=True))
    return view


def _expression_failure(where: str, error: ExpressionError, step: str | None = None) -> JsonMap:
    failure: JsonMap = {"kind": "expression", "message": f"{where}: {error}", "retryable": False}
    if step is not None:
        failure["step"] = step
    return {**failure, "expression": error.text}
