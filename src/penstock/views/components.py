"""How a view takes in the events of a job: sub-jobs, components, the links between them, globals and iterators.

An outermost iteration is dropped when it closes, with everything inside: its runs are added up by node, so that row counts and
times stay exact. The first that failed are kept as they are.

Law: a resume is a new start that names the sub-jobs it keeps. What it does not keep is forgotten, so that states and counts are
those of what was kept and of the latest run of the rest (D45).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from penstock.ports.log import Entry
from penstock.views.bars import Bar
from penstock.views.contexts import close_call, see, write
from penstock.views.model import (
    FAILED,
    GONE,
    KEPT_FAILURES,
    OK,
    RUNNING,
    SKIPPED,
    WAITING,
    Execution,
    Failure,
    Fan,
    Fire,
    Group,
    Lease,
    Run,
    Totals,
    View,
    Written,
)
from penstock.views.names import iteration_of, node_of, subjob_name
from penstock.views.payload import Payload
from penstock.views.wording import error_line

STATUSES = {"ok": OK, "error": FAILED, "skipped": SKIPPED}
MOST_HELD = 100
"""Leases of iterations that may go on."""
_ENDED_BY_SERVER = frozenset({"worker_lost", "cancelled"})


def _note(view: View, execution: Execution, name: str) -> None:
    """Remembers what is inside an iteration, for when that is dropped."""
    if "[#" in name and not view.lists(execution):
        outermost = name[: name.index("]") + 1]
        if outermost != name:
            execution.inside.setdefault(outermost, []).append(name)


# ---- sub-jobs


def _group(view: View, execution: Execution, name: str, entry: Entry, index: int, container: str) -> Group:
    group = execution.groups.get(name)
    if group is None:
        inside = container[len(execution.scope) :]
        group = execution.groups[name] = Group(name, subjob_name(name), inside, entry.clock, index)
        _note(view, execution, name)
        around = execution.groups.get(inside[:-1]) if inside.endswith("].") else None
        if around is not None:
            around.inner.append(name)
            group.handles = bool(around.body)
    return group


def _subjob_started(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    group = _group(view, execution, name, entry, data.index, data.container)
    group.status, group.started_at, group.clock, group.start_seq = RUNNING, entry.ts, entry.clock, entry.seq
    if not group.container:
        group.lease = Lease(name, entry.scope, entry.ts, entry.seq)


def _subjob_ended(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    group = _group(view, execution, name, entry, data.index, data.container)
    group.status, group.error, group.ended_at = STATUSES.get(data.status, data.status), data.error, entry.ts
    group.end_seq = entry.seq
    if group.lease is not None:
        view.end_lease(execution, group.lease, entry.seq, entry.ts)
        group.lease = None
    around = execution.groups.get(group.container[:-1])
    if around is not None and around.handlers:
        _handler_ended(view, execution, around, group)


def _handler_ended(view: View, execution: Execution, iteration: Group, handler: Group) -> None:
    iteration.handlers -= 1
    iteration.unwell += handler.status != OK
    if handler.status == FAILED and iteration.status == OK:
        _fail_after_all(execution, iteration, handler.error)
    if not iteration.handlers:
        _closed(view, execution, iteration)


def _checkpoint(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    size = data.bytes
    saved = execution.checkpoints
    saved.count, saved.bytes, saved.largest = saved.count + 1, saved.bytes + size, max(saved.largest, size)
    group = execution.groups.get(name)
    if group is not None:
        group.checkpoint = size


# ---- components


def _component_started(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    cut = len(execution.scope)
    run = Run(entry.scope, node_of(name), entry.clock, entry.seq, entry.ts, RUNNING)
    run.type, run.group, run.rows_in, run.started_at = data.type, data.subjob[cut:], data.rows_in, entry.ts
    run.opens = data.opens[cut:] if data.opens is not None else None
    run.worker = entry.worker
    execution.runs[name] = run
    group = execution.groups.get(run.group)
    if group is not None:
        group.members[name] = None
    _note(view, execution, name)
    if "[#" not in name:
        see(execution, run, data.sees)
    start = execution.starts[-1]
    if start.first_component_at is None:
        start.first_component_at = entry.ts


def _component_ended(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    run = execution.runs.get(name)
    if run is None:
        return
    run.status, run.ended_at, run.end_seq, run.ms = STATUSES.get(data.status, data.status), entry.ts, entry.seq, data.ms
    run.rows_in, run.rows_out, run.outputs = data.rows_in or run.rows_in, data.rows_out, list(data.outputs)
    run.error, run.dies, run.exit_code = data.error, data.dies, data.exit_code
    run.after = bytes(data.after).decode()
    run.worker = entry.worker or run.worker
    _record_holder(execution, run, entry)
    _draw(view, execution, run, entry)
    if run.status == FAILED:
        view.mark("failure", entry, f"`{run.id}` ended in ERROR: {error_line(run.error)}", run.node)
    if run.opens is not None and "[#" not in name:
        close_call(execution, run)


def _record_holder(execution: Execution, run: Run, entry: Entry) -> None:
    """The holder of a sub-job is heard of when a component in it ends: those that could start at once were started by the server.
    Iterations may be at other workers, and the server ends an iterator that was spread, and what was lost or stopped."""
    group = execution.groups.get(run.group)
    while group is not None and group.container and "[#" not in group.container:
        call = execution.runs.get(group.container[:-1])
        group = execution.groups.get(call.group) if call is not None else None
    kind = run.error.get("kind") if isinstance(run.error, dict) else None
    is_server = kind in _ENDED_BY_SERVER or (run.fan is not None and run.fan.spread)
    if group is not None and group.lease is not None and not is_server:
        group.lease.worker, group.lease.heard = group.lease.worker or entry.worker, entry.ts


def _draw(view: View, execution: Execution, run: Run, entry: Entry) -> None:
    since = run.started_at if run.started_at is not None else entry.ts
    bar = Bar(since, entry.ts, "run", run.status, failed=int(run.status == FAILED), scope=run.id)
    bar.seq, bar.last, bar.worker, bar.label = run.created_seq, entry.seq, run.worker, run.node
    view.draw(execution, run.node, bar)


def _component_skipped(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    group = _group(view, execution, data.subjob[len(execution.scope) :], entry, data.index, data.container)
    run = Run(entry.scope, node_of(name), entry.clock, entry.seq, entry.ts, SKIPPED)
    run.group, run.reason, run.upstream, run.link = group.scope, data.cause, data.upstream, data.link
    run.ended_at, run.end_seq = entry.ts, entry.seq
    execution.runs[name] = run
    group.members[name] = None
    _note(view, execution, name)


def _fired(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    cut = len(execution.scope)
    fire = Fire(data.link, data.source[cut:], data.target[cut:], data.on, data.order, entry.ts, entry.seq)
    fires = execution.fires.setdefault(name, [])
    for at, known in enumerate(fires):  # In one scope a link fires at most once, but for a new start of it.
        if known.link == fire.link and known.target == fire.target:
            fires[at] = fire
            return
    fires.append(fire)
    _note(view, execution, name)


def _global_set(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    scope = data.scope if view.lists(execution) else data.scope.partition("[#")[0]  # Else counted for the iterator.
    execution.global_writes[scope] = execution.global_writes.get(scope, 0) + 1
    run = execution.runs.get(name)
    if "[#" in name or run is None:  # What iterations leave behind their iterator writes when it ends.
        return
    written = Written(data.new, entry.clock, data.writer, deleted=data.deleted)
    write(execution, run, data.key, written, is_local=data.local)


# ---- iterators


def _fan(execution: Execution, name: str) -> Fan | None:
    run = execution.runs.get(name)
    if run is None:
        return None
    if run.fan is None:
        run.fan = Fan(mode="iterator")
    return run.fan


def _iterator_started(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    run = execution.runs.get(name)
    if run is None:
        return
    run.fan = execution.kept_fans.pop(name, None) or Fan(mode="iterator")
    run.fan.total, run.fan.parallel, run.fan.seq, run.fan.spread = data.total, data.parallel, entry.seq, data.spread


def _iteration_started(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    owner = name[: name.rindex("[#")]
    group = Group(name, name, f"{name}.", entry.clock, data.index, RUNNING)
    group.iterator, group.item, group.started_at, group.start_seq = owner, data.item, entry.ts, entry.seq
    before = execution.groups.get(name)
    if before is not None:  # It had ended, and goes on with what was kept of it.
        group.members, group.inner = before.members, before.inner
    execution.groups[name] = group
    _note(view, execution, name)
    fan = _fan(execution, owner)
    if fan is not None:
        fan.open.add(data.index)
        if fan.spread:
            _hold(view, execution, owner, fan, data.index, entry)


def _hold(view: View, execution: Execution, owner: str, fan: Fan, index: int, entry: Entry) -> None:
    """A worker takes the elements of a lease in their order: what it takes out of order belongs to another one."""
    lease = fan.held.pop(f"{entry.worker} {index}", None)
    if lease is None:
        lease = Lease(node_of(owner), execution.scope + owner, entry.ts, entry.seq, entry.worker)
        if len(fan.held) >= MOST_HELD:
            oldest = fan.held.pop(next(iter(fan.held)))
            view.end_lease(execution, oldest, entry.seq, oldest.heard)
    lease.heard = entry.ts
    fan.held[f"{entry.worker} {index + 1}"] = lease


def _end_held(view: View, execution: Execution, fan: Fan, entry: Entry, how: str = "") -> None:
    for lease in fan.held.values():
        view.end_lease(execution, lease, entry.seq, lease.heard, how)
    fan.held.clear()


def _iteration_ended(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    group = execution.groups.get(name)
    if group is None or group.iterator is None:
        return
    group.status, group.error, group.ended_at = STATUSES.get(data.status, data.status), data.error, entry.ts
    group.end_seq = entry.seq
    group.body, group.handlers = group.status, data.handlers
    fan = _fan(execution, group.iterator)
    if fan is not None:
        fan.open.discard(data.index)
        if fan.held and (lease := fan.held.get(f"{entry.worker} {data.index + 1}")) is not None:
            lease.heard = entry.ts
        if group.status == OK:
            fan.ok += 1
        else:
            fan.fail(Failure(data.index, data.error, seq=entry.seq))
    if not group.handlers:
        _closed(view, execution, group)


def _fail_after_all(execution: Execution, iteration: Group, error: Any) -> None:
    """What the end of an iteration led to belongs to it, and has failed."""
    iteration.status, iteration.error, iteration.kept = FAILED, error, False
    fan = _fan(execution, iteration.iterator or "")
    if fan is not None:
        fan.ok -= 1
        fan.fail(Failure(iteration.index, error, seq=iteration.end_seq))


def _iterator_completed(view: View, execution: Execution, name: str, data: Payload, entry: Entry) -> None:
    fan = _fan(execution, name)
    if fan is not None:
        _end_held(view, execution, fan, entry)
        fan.ok, fan.failed = data.ok, data.failed
        known = {one.index: one for one in fan.failures}
        fan.failures = [known.get(index) or Failure(index) for index in data.failures[:KEPT_FAILURES]]


# ---- what is let go


def _closed(view: View, execution: Execution, iteration: Group) -> None:
    scope, owner = iteration.scope, iteration.iterator
    if view.lists(execution) or owner is None or "[#" in owner:
        return
    fan = _fan(execution, owner)
    if fan is None or (iteration.status == FAILED and fan.failed <= KEPT_FAILURES):
        return
    del execution.groups[scope]
    node = node_of(owner)
    execution.opened[node] = execution.opened.get(node, 0) + 1
    let_go(execution, [*execution.inside.pop(scope, ()), scope], fan, is_sound=iteration.status == OK)


def let_go(execution: Execution, names: list[str], fan: Fan, *, is_sound: bool) -> None:
    """Runs in failed iterations are added up separately: a resume repeats them."""
    broken: list[str] = []
    for name in names:
        group = execution.groups.pop(name, None)
        if group is not None and group.iterator is not None:
            node = node_of(group.iterator)
            execution.opened[node] = execution.opened.get(node, 0) + 1
            if group.status == FAILED:
                broken.append(f"{name}.")
    for name in dict.fromkeys(names):
        for fire in execution.fires.pop(name, ()):
            execution.fired[fire.link] = execution.fired.get(fire.link, 0) + 1
        run = execution.runs.pop(name, None)
        if run is not None:
            is_fallen = not is_sound or (broken and name.startswith(tuple(broken)))
            totals = fan.fallen if is_fallen else execution.gone
            totals.setdefault(run.node, Totals()).add(run)


COMPONENT_HANDLERS: dict[str, Callable[[View, Execution, str, Payload, Entry], None]] = {
    "subjob.started": _subjob_started,
    **dict.fromkeys(("subjob.ok", "subjob.error", "subjob.skipped"), _subjob_ended),
    "checkpoint.saved": _checkpoint,
    "component.started": _component_started,
    **dict.fromkeys(("component.ok", "component.error"), _component_ended),
    "component.skipped": _component_skipped,
    "edge.fired": _fired,
    "global.set": _global_set,
    "iterator.started": _iterator_started,
    "iteration.started": _iteration_started,
    **dict.fromkeys(("iteration.ok", "iteration.error"), _iteration_ended),
    "iterator.completed": _iterator_completed,
}


def lose(view: View, execution: Execution, name: str, entry: Entry) -> None:
    """A sub-job was lost, and what it had handed out with it."""
    group = execution.groups.get(name)
    if group is None or group.lease is None:
        return
    view.end_lease(execution, group.lease, entry.seq, entry.ts, GONE)
    group.lease = None
    for member in group.members:
        fan = execution.runs[member].fan if member in execution.runs else None
        if fan is not None:
            _end_held(view, execution, fan, entry, GONE)


def restart(
    execution: Execution, kept: set[str], reopened: Set[str], *, is_lost: bool = False, is_listed: bool = False
) -> None:
    """Forgets what starts over: everything that is not kept. `is_lost`: only one sub-job was lost, and the others were not
    stopped.

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
        one.start_seq = one.end_seq = 0
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
            again.fail(Failure(one.index, one.error, seq=one.end_seq))
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
