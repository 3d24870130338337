"""What a resume keeps of a job.

Law: a resume is a new start that names the sub-jobs it keeps. What it does not keep is forgotten, so that states and counts are
those of what was kept and of the latest run of the rest (D45).
"""

from __future__ import annotations

from collections.abc import Set

from penstock.views.model import FAILED, OK, WAITING, Execution, Failure, Fan, Group
from penstock.views.names import iteration_of


def restart(
    execution: Execution, kept: set[str], reopened: Set[str], *, is_lost: bool = False, is_listed: bool = False
) -> None:
    """Forget what starts over: all that is not kept. `is_lost`: that is one sub-job that was lost, and nobody stopped the others.

    Iterations that have ended OK are kept, whatever becomes of their iterator's sub-job; where only what handles their end is to
    run, so are their bodies. Those in `reopened` go on. `is_listed`: the iterations that have ended are all there."""
    keeping = _Keeping(execution, kept, reopened)
    runs = {name: keeping.run(name) for name in execution.runs}
    groups = {scope: keeping.group(scope) for scope in execution.groups}
    for scope in [scope for scope, group in execution.groups.items() if keeping.is_half(group)]:
        _open_again(execution, execution.groups[scope], groups)
    for name, is_kept in runs.items():
        if not is_kept and execution.runs[name].fan is not None:
            again = sum(_iterator(scope) == name for scope in reopened)
            _keep_iterations(execution, name, groups, again, is_listed=is_listed)
    execution.runs = {name: one for name, one in execution.runs.items() if runs[name]}
    half = {
        scope: one for scope, one in execution.groups.items() if not groups[scope] and any(map(runs.get, one.members))
    }
    for one in half.values():  # Only failed iterations run again in it, and what follows from them.
        one.members = {name: None for name in one.members if runs[name]}
        one.status, one.error, one.started_at, one.ended_at = WAITING, None, None, None
    execution.groups = {scope: one for scope, one in execution.groups.items() if groups[scope] or scope in half}
    # Branches may have come to a join that has not started, and is not known yet. If it lies in the lost sub-job they come again.
    unknown = execution.fires.keys() - runs.keys() - groups.keys() if is_lost else set()
    execution.fires = {
        owner: fires
        for owner, fires in execution.fires.items()
        if runs.get(owner) or groups.get(owner) or owner in unknown
    }
    execution.inside = {scope: names for scope, names in execution.inside.items() if scope in execution.groups}
    if is_lost:
        return
    for run in execution.runs.values():
        run.kept = True
    for scope, group in execution.groups.items():
        group.kept = scope not in half


def _iterator(iteration: str) -> str:
    return iteration[: iteration.rindex("[#")]


def _keep_iterations(
    execution: Execution, name: str, is_kept: dict[str, bool], reopened: int, *, is_listed: bool
) -> None:
    before = execution.runs[name].fan
    assert before is not None
    kept = [one for scope, one in execution.groups.items() if one.iterator == name and is_kept[scope]]
    again = Fan(mode="iterator")
    again.ok = sum(one.status == OK for one in kept) if is_listed else before.ok - reopened
    for one in kept:
        if one.status == FAILED:
            again.fail(Failure(one.index, one.error))
    if again.settled:
        execution.kept_fans[name] = again


def _open_again(execution: Execution, iteration: Group, is_kept: dict[str, bool]) -> None:
    """Its end is what that of its body was, until what handles it has run."""
    assert iteration.iterator is not None
    if iteration.status != iteration.body:
        iteration.status, iteration.error = iteration.body, None
        before = execution.runs[iteration.iterator].fan
        if before is not None:
            before.ok += 1
    iteration.handlers, iteration.unwell = iteration.handlers + iteration.unwell, 0
    iteration.inner = [scope for scope in iteration.inner if is_kept.get(scope)]


class _Keeping:
    """Which scopes a resume keeps: those it names, and all that lies in them."""

    def __init__(self, execution: Execution, named: set[str], reopened: Set[str]) -> None:
        self._execution = execution
        self._named = named
        self._reopened = reopened
        self._known: dict[str, bool] = {}

    def run(self, name: str) -> bool:
        run = self._execution.runs.get(name)
        return run is not None and (name in self._named or self.group(run.group))

    def group(self, scope: str) -> bool:
        if scope not in self._known:
            group = self._execution.groups.get(scope)
            self._known[scope] = group is not None and self._is_kept(group)
        return self._known[scope]

    def _is_kept(self, group: Group) -> bool:
        if group.scope in self._reopened:
            return False
        if group.iterator is not None:
            around = iteration_of(group.iterator)
            is_alone = around is None or around in self._reopened
            is_over = group.status == OK and not group.handlers and is_alone
            return is_over or self.is_half(group) or self.run(group.iterator)
        if group.handles and group.status != OK and self.is_half(self._execution.groups[group.container[:-1]]):
            return False
        return group.scope in self._named or self._container(group.container)

    def is_half(self, group: Group) -> bool:
        """Is it an iteration of which only the body is kept?"""
        if group.iterator is None or iteration_of(group.iterator) is not None:
            return False
        return group.is_half_over and not self.run(group.iterator)

    def _container(self, container: str) -> bool:
        if container.endswith("]."):
            return self.group(container[:-1])
        return self.run(container.removesuffix(".__")) if container else False
