"""What a resume keeps of a job, as its log shows it.

A resume is a new start that names the sub-jobs it keeps. What it does not keep is forgotten, so that states and counts are
those of what was kept and of the latest run of the rest (D45).
"""

from __future__ import annotations

from collections.abc import Set

from penstock.views.jobs_names import iteration_of
from penstock.views.jobs_seen import ERROR, KEPT_FAILURES, OK, PENDING, IteratorSeen, JobSeen, SubjobSeen


def restart(seen: JobSeen, kept: set[str], reopened: Set[str] = frozenset(), *, is_lost: bool = False) -> None:
    """Forget what starts over: all that is not kept. `is_lost`: that is one sub-job that was lost, and nobody stopped the others.

    Iterations that have ended OK are kept, whatever becomes of their iterator's sub-job; where only what handles their end is to
    run, so are their bodies. Those in `reopened` go on."""
    keeping = _Keeping(seen, kept, reopened)
    components = {name: keeping.component(name) for name in seen.components}
    subjobs = {scope: keeping.subjob(scope) for scope in seen.subjobs}
    for scope in [scope for scope, subjob in seen.subjobs.items() if keeping.is_half(subjob)]:
        _open_again(seen, seen.subjobs[scope], subjobs)
    for name, is_kept in components.items():
        if not is_kept and seen.components[name].iterator is not None:
            _keep_iterations(seen, name, subjobs, sum(_iterator(scope) == name for scope in reopened))
    seen.components = {name: one for name, one in seen.components.items() if components[name]}
    half = {
        scope: one
        for scope, one in seen.subjobs.items()
        if not subjobs[scope] and any(map(components.get, one.members))
    }
    for one in half.values():  # Only failed iterations run again in it, and what follows from them.
        one.members = {name: None for name in one.members if components[name]}
        one.state, one.error, one.started_at, one.ended_at = PENDING, None, None, None
    seen.subjobs = {scope: one for scope, one in seen.subjobs.items() if subjobs[scope] or scope in half}
    # Branches may have come to a join that has not started, and is not known yet. If it lies in the lost sub-job they come again.
    unknown = seen.fires.keys() - components.keys() - subjobs.keys() if is_lost else set()
    seen.fires = {
        owner: fires
        for owner, fires in seen.fires.items()
        if components.get(owner) or subjobs.get(owner) or owner in unknown
    }
    if is_lost:
        return
    for component in seen.components.values():
        component.kept = True
    for scope, subjob in seen.subjobs.items():
        subjob.kept = scope not in half


def _iterator(iteration: str) -> str:
    return iteration[: iteration.rindex("[#")]


def _keep_iterations(seen: JobSeen, name: str, is_kept: dict[str, bool], reopened: int) -> None:
    again = IteratorSeen()
    before = seen.components[name].iterator
    kept = [one for scope, one in seen.subjobs.items() if one.iterator == name and is_kept[scope]]
    if seen.lists_iterations:
        again.ok = sum(one.state == OK for one in kept)
    elif before is not None:
        again.ok = before.ok - reopened
    again.failures = [one.index for one in kept if one.state == ERROR][:KEPT_FAILURES]
    again.failed = sum(one.state == ERROR for one in kept)
    if again.settled:
        seen.kept_iterators[name] = again


def _open_again(seen: JobSeen, iteration: SubjobSeen, is_kept: dict[str, bool]) -> None:
    """Its end is what that of its body was, until what handles it has run."""
    assert iteration.iterator is not None
    if iteration.state != iteration.body:
        iteration.state, iteration.error = iteration.body, None
        before = seen.components[iteration.iterator].iterator
        if before is not None:
            before.ok += 1
    iteration.handlers, iteration.unwell = iteration.handlers + iteration.unwell, 0
    iteration.inner = [scope for scope in iteration.inner if is_kept.get(scope)]


class _Keeping:
    """Which scopes a resume keeps: those it names, and all that lies in them."""

    def __init__(self, seen: JobSeen, named: set[str], reopened: Set[str]) -> None:
        self._seen = seen
        self._named = named
        self._reopened = reopened
        self._known: dict[str, bool] = {}

    def component(self, name: str) -> bool:
        component = self._seen.components.get(name)
        return component is not None and (name in self._named or self.subjob(component.subjob))

    def subjob(self, scope: str) -> bool:
        if scope not in self._known:
            subjob = self._seen.subjobs.get(scope)
            self._known[scope] = subjob is not None and self._is_kept(subjob)
        return self._known[scope]

    def _is_kept(self, subjob: SubjobSeen) -> bool:
        if subjob.scope in self._reopened:
            return False
        if subjob.iterator is not None:
            around = iteration_of(subjob.iterator)
            is_alone = around is None or around in self._reopened
            is_over = subjob.state == OK and not subjob.handlers and is_alone
            return is_over or self.is_half(subjob) or self.component(subjob.iterator)
        if subjob.handles and subjob.state != OK and self.is_half(self._seen.subjobs[subjob.container[:-1]]):
            return False
        return subjob.scope in self._named or self._container(subjob.container)

    def is_half(self, subjob: SubjobSeen) -> bool:
        """Is it an iteration of which only the body is kept?"""
        if subjob.iterator is None or iteration_of(subjob.iterator) is not None:
            return False
        return subjob.is_half_over and not self.component(subjob.iterator)

    def _container(self, container: str) -> bool:
        if container.endswith("]."):
            return self.subjob(container[:-1])
        return self.component(container.removesuffix(".__")) if container else False
