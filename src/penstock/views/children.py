"""What runs inside a run: the playbooks and jobs that its tasks and components run, where each is and what it came to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.wire import is_of_job
from penstock.views.history import ExecutionSeen, History
from penstock.views.jobs import standing_of_job
from penstock.views.jobs_fold import JobFold
from penstock.views.steps import standing

MOST_INSIDE = 200
"""So many jobs are looked into; of the others only is told that they ran."""

NetOf = Callable[[ExecutionSeen], "Net | None"]


def children_of(
    entries: Iterable[Entry], seen: History, execution_id: str, net_of: NetOf, *, is_live: bool
) -> list[JsonMap]:
    """In the order in which they started; of jobs with the components that run once, those of the latest jobs."""
    inside = [one for one in seen.executions.values() if one.scope]
    looked_into = [one.scope for one in inside if one.kind == "job"][-MOST_INSIDE:]
    components = _components(entries, seen, looked_into, net_of) if looked_into else {}
    return [_child(one, execution_id, components.get(one.scope), is_live) for one in inside]


def _child(one: ExecutionSeen, execution_id: str, components: JsonMap | None, is_live: bool) -> JsonMap:
    path = one.scope.removesuffix("/")
    took = None if one.ended_at is None else round(max(0.0, one.ended_at - one.started_at) * 1000, 3)
    told: JsonMap = {
        "execution_id": f"{execution_id}/{path}",
        "kind": one.kind,
        "name": one.name,
        "path": path,
        "status": standing(one.status, is_live),
        "error": one.error,
        "continues": one.continues,
        "duration_ms": took,
    }
    return told if components is None else {**told, "components": components}


def _components(entries: Iterable[Entry], seen: History, scopes: list[str], net_of: NetOf) -> dict[str, JsonMap]:
    """A job that goes on from one that failed takes over what was seen of that one."""
    folds: dict[str, JobFold] = {}
    done: dict[str, JsonMap] = {}

    def close(scope: str) -> JobFold:
        fold = folds.pop(scope)
        done[scope] = dict(standing_of_job(fold.seen, net_of(seen.executions[scope]), {}).components)
        return fold

    wanted = set(scopes)
    for entry in entries:
        scope = entry.scope[: entry.scope.rfind("/") + 1]
        if scope not in wanted or not is_of_job(entry.type):
            continue
        fold = folds.get(scope)
        if fold is None:
            before = f"{seen.executions[scope].continues}/"
            fold = close(before) if before in folds else JobFold(scope, with_iterations=False)
            fold.go_on_as(scope)
            folds[scope] = fold
        fold.add(entry)
    for scope in list(folds):
        close(scope)
    return done
