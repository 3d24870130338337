"""A job's log, folded into what `jobs_seen` remembers: one pass, one small decoding per event.

A resume is a new start that keeps some sub-jobs as they are; what it does not keep is forgotten here too, so that states and
counts are those of what was kept and of the latest run of the rest (D45).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.kernel.values import Json
from penstock.ports.log import Entry
from penstock.ports.results import Load
from penstock.views import jobs_payloads as payloads
from penstock.views.jobs_globals import GlobalsFold
from penstock.views.jobs_names import node_of, subjob_name
from penstock.views.jobs_restart import restart
from penstock.views.jobs_seen import (
    ERROR,
    KEPT_FAILURES,
    OK,
    RUNNING,
    SKIPPED,
    ComponentSeen,
    Fire,
    IteratorSeen,
    JobSeen,
    StartSeen,
    SubjobSeen,
)

STATES = {"ok": OK, "error": ERROR, "skipped": SKIPPED}


class JobFold:
    """`with_iterations` False: of iterations only the counts and the failed ones are kept, so that memory stays flat.

    `then` names the executions under which a job that failed as `execution` goes on, one after the other.
    """

    def __init__(
        self,
        execution: str = "",
        load: Load | None = None,
        *,
        with_iterations: bool = True,
        then: Iterable[str] = (),
    ) -> None:
        self._then = frozenset(then)
        self.seen = JobSeen(execution, with_iterations)
        self.globals = GlobalsFold(load)
        self._cut = len(execution)
        self._handlers = _HANDLERS if with_iterations else _COUNTING

    def add_all(self, entries: Iterable[Entry]) -> JobSeen:
        for entry in entries:
            self.add(entry)
        return self.seen

    def add(self, entry: Entry) -> None:
        scope = entry.scope
        seen = self.seen
        if scope in self._then and entry.type == "job.started":
            self.go_on_as(scope)
        if self._cut and not scope.startswith(seen.execution):
            return
        seen.events += 1
        seen.last_ts = entry.ts
        name = scope[self._cut :]
        if "/" in name:  # It lies in an execution that one of the components runs.
            return
        seen.counts[entry.type] += 1
        is_repeated = "[#" in name
        handler = (self._handlers if is_repeated else _HANDLERS).get(entry.type)
        if handler is None:
            return
        handler(self, name, entry)
        if name and not is_repeated:
            self.globals.add(entry)

    def go_on_as(self, execution: str) -> None:
        self.seen.execution, self._cut = execution, len(execution)

    def local(self, scope: str) -> str:
        return scope[self._cut :]

    # ---- the execution

    def _started(self, name: str, entry: Entry) -> None:
        data = payloads.read_started(entry.payload)
        seen = self.seen
        is_again = bool(seen.starts)
        seen.starts.append(StartSeen(entry.ts, is_again, len(data.kept), None, data.name, data.workload))
        seen.status, seen.error, seen.ended_at, seen.exit_code = "running", None, None, None
        seen.failed_iterations = 0
        stays = [*data.kept, *data.kept_components]
        self.globals.start(entry, stays)
        if is_again:
            reopened = {self.local(scope) for scope in data.reopened}
            restart(seen, {self.local(scope) for scope in stays}, reopened, is_lost=data.lost is not None)

    def _ended(self, name: str, entry: Entry) -> None:
        data = payloads.read_ended(entry.payload)
        seen = self.seen
        seen.status, seen.error, seen.exit_code, seen.ended_at = data.status, data.error, data.exit_code, entry.ts
        seen.failed_iterations = data.failed_iterations

    def _interrupted(self, name: str, entry: Entry) -> None:
        self.seen.status = "interrupted"
        self.seen.stops.append((entry.ts, payloads.read_reason(entry.payload).reason))

    def _cancelling(self, name: str, entry: Entry) -> None:
        self.seen.cancel_reason = payloads.read_reason(entry.payload).reason

    # ---- sub-jobs

    def _subjob(self, name: str, entry: Entry, index: int, container: str) -> SubjobSeen:
        subjob = self.seen.subjobs.get(name)
        if subjob is None:
            inside = self.local(container)
            subjob = self.seen.subjobs[name] = SubjobSeen(name, subjob_name(name), inside, entry.clock, index)
            around = self.seen.subjobs.get(inside[:-1]) if inside.endswith("].") else None
            if around is not None:
                around.inner.append(name)
                subjob.handles = bool(around.body)
        return subjob

    def _subjob_started(self, name: str, entry: Entry) -> None:
        data = payloads.read_subjob_started(entry.payload)
        subjob = self._subjob(name, entry, data.index, data.container)
        subjob.state, subjob.started_at, subjob.clock = RUNNING, entry.ts, entry.clock

    def _subjob_ended(self, name: str, entry: Entry) -> None:
        data = payloads.read_subjob_ended(entry.payload)
        subjob = self._subjob(name, entry, data.index, data.container)
        subjob.state, subjob.error, subjob.ended_at = STATES[data.status], data.error, entry.ts
        around = self.seen.subjobs.get(subjob.container[:-1])
        if around is not None and around.handlers:
            self._handler_ended(around, subjob.state, data.error)

    def _handler_ended(self, iteration: SubjobSeen, state: str, error: Json) -> None:
        iteration.handlers -= 1
        iteration.unwell += state != OK
        if state == ERROR and iteration.state == OK:
            self._fail_after_all(iteration, error)

    def _checkpoint(self, name: str, entry: Entry) -> None:
        size = payloads.read_checkpoint(entry.payload).bytes
        seen = self.seen
        seen.checkpoints += 1
        seen.checkpoint_bytes += size
        seen.largest_checkpoint = max(seen.largest_checkpoint, size)
        subjob = seen.subjobs.get(name)
        if subjob is not None:
            subjob.checkpoint = size

    # ---- components

    def _component_started(self, name: str, entry: Entry) -> None:
        data = payloads.read_component_started(entry.payload)
        seen = self.seen
        subjob = self.local(data.subjob)
        component = ComponentSeen(name, node_of(name), subjob, entry.clock, RUNNING, data.type, data.rows_in)
        component.started_at = entry.ts
        component.opens = self.local(data.opens) if data.opens is not None else None
        seen.components[name] = component
        seen.subjobs[subjob].members[name] = None
        if seen.starts[-1].first_component_at is None:
            seen.starts[-1].first_component_at = entry.ts

    def _component_ended(self, name: str, entry: Entry) -> None:
        data = payloads.read_component_ended(entry.payload)
        component = self.seen.components[name]
        component.state, component.ended_at, component.ms = STATES[data.status], entry.ts, data.ms
        component.rows_in, component.rows_out = data.rows_in or component.rows_in, data.rows_out
        component.outputs = tuple(data.outputs)
        component.error, component.dies, component.exit_code = data.error, data.dies, data.exit_code
        component.after = data.after

    def _component_skipped(self, name: str, entry: Entry) -> None:
        data = payloads.read_component_skipped(entry.payload)
        subjob = self._subjob(self.local(data.subjob), entry, data.index, data.container)
        component = ComponentSeen(name, node_of(name), subjob.scope, entry.clock, SKIPPED)
        component.reason, component.upstream, component.link = data.cause, data.upstream, data.link
        component.ended_at = entry.ts
        self.seen.components[name] = component
        subjob.members[name] = None

    def _fired(self, name: str, entry: Entry) -> None:
        data = payloads.read_link_fired(entry.payload)
        target = self.local(data.target)
        fire = Fire(data.link, self.local(data.source), target, data.on, data.order, entry.ts)
        self.seen.fires.setdefault(name, {})[data.link, target] = fire

    def _global_set(self, name: str, entry: Entry) -> None:
        self.seen.global_writes[payloads.read_global_set(entry.payload).scope] += 1

    # ---- iterators

    def _iterator_started(self, name: str, entry: Entry) -> None:
        data = payloads.read_iterator_started(entry.payload)
        iterator = self.seen.kept_iterators.pop(name, None) or IteratorSeen()
        iterator.total, iterator.parallel = data.total, data.parallel
        self.seen.components[name].iterator = iterator

    def _iteration_started(self, name: str, entry: Entry) -> None:
        data = payloads.read_element_started(entry.payload)
        owner = name[: name.rindex("[#")]
        subjob = SubjobSeen(name, name, f"{name}.", entry.clock, data.index, RUNNING)
        subjob.iterator, subjob.item, subjob.started_at = owner, data.item, entry.ts
        before = self.seen.subjobs.get(name)
        if before is not None:  # It had ended, and goes on with what was kept of it.
            subjob.members, subjob.inner = before.members, before.inner
        self.seen.subjobs[name] = subjob
        self._iterator(owner).running += 1

    def _iteration_ended(self, name: str, entry: Entry) -> None:
        data = payloads.read_element_ended(entry.payload)
        subjob = self.seen.subjobs[name]
        subjob.state, subjob.error, subjob.ended_at = STATES[data.status], data.error, entry.ts
        subjob.body, subjob.handlers = subjob.state, data.handlers
        assert subjob.iterator is not None
        iterator = self._iterator(subjob.iterator)
        iterator.running -= 1
        if subjob.state == OK:
            iterator.ok += 1
        else:
            iterator.failed += 1
            if len(iterator.failures) < KEPT_FAILURES:
                iterator.failures.append(data.index)

    def _fail_after_all(self, iteration: SubjobSeen, error: Json) -> None:
        """What the end of an iteration led to belongs to it, and has failed."""
        iteration.state, iteration.error, iteration.kept = ERROR, error, False
        assert iteration.iterator is not None
        iterator = self._iterator(iteration.iterator)
        iterator.ok, iterator.failed = iterator.ok - 1, iterator.failed + 1
        if len(iterator.failures) < KEPT_FAILURES:
            iterator.failures.append(iteration.index)

    # ---- iterations that are only counted

    def _count_started(self, name: str, entry: Entry) -> None:
        owner = self.seen.components.get(name[: name.rindex("[#")])
        if owner is not None:
            self._iterator(owner.name).running += 1

    def _count_ended(self, name: str, entry: Entry) -> None:
        owner = name[: name.rindex("[#")]
        if owner not in self.seen.components:
            return
        if entry.type == "iteration.ok" and b'"handlers":0' in entry.payload:
            iterator = self._iterator(owner)
            iterator.running, iterator.ok = iterator.running - 1, iterator.ok + 1
            return
        index = int(name[len(owner) + 2 : -1])
        self.seen.subjobs[name] = SubjobSeen(name, name, f"{name}.", entry.clock, index, iterator=owner)
        self._iteration_ended(name, entry)

    def _count_handled(self, name: str, entry: Entry) -> None:
        iteration = self.seen.subjobs.get(name[: name.rindex("<") - 1]) if name.endswith(">") else None
        if iteration is None or not iteration.handlers:
            return
        data = payloads.read_subjob_ended(entry.payload)
        self._handler_ended(iteration, STATES[data.status], data.error)
        if not iteration.handlers and iteration.state == OK:
            del self.seen.subjobs[iteration.scope]

    def _iterator_completed(self, name: str, entry: Entry) -> None:
        data = payloads.read_iterator_completed(entry.payload)
        iterator = self._iterator(name)
        iterator.is_over, iterator.ok, iterator.failed, iterator.failures = True, data.ok, data.failed, data.failures

    def _iterator(self, name: str) -> IteratorSeen:
        component = self.seen.components[name]
        if component.iterator is None:
            component.iterator = IteratorSeen()
        return component.iterator


_HANDLERS: dict[str, Callable[[JobFold, str, Entry], None]] = {
    "job.started": JobFold._started,
    "job.completed": JobFold._ended,
    "job.failed": JobFold._ended,
    "job.cancelled": JobFold._ended,
    "job.interrupted": JobFold._interrupted,
    "job.cancelling": JobFold._cancelling,
    "subjob.started": JobFold._subjob_started,
    "subjob.ok": JobFold._subjob_ended,
    "subjob.error": JobFold._subjob_ended,
    "subjob.skipped": JobFold._subjob_ended,
    "checkpoint.saved": JobFold._checkpoint,
    "component.started": JobFold._component_started,
    "component.ok": JobFold._component_ended,
    "component.error": JobFold._component_ended,
    "component.skipped": JobFold._component_skipped,
    "edge.fired": JobFold._fired,
    "global.set": JobFold._global_set,
    "iterator.started": JobFold._iterator_started,
    "iteration.started": JobFold._iteration_started,
    "iteration.ok": JobFold._iteration_ended,
    "iteration.error": JobFold._iteration_ended,
    "iterator.completed": JobFold._iterator_completed,
}

_COUNTING: dict[str, Callable[[JobFold, str, Entry], None]] = {
    "checkpoint.saved": JobFold._checkpoint,
    "subjob.ok": JobFold._count_handled,
    "subjob.error": JobFold._count_handled,
    "subjob.skipped": JobFold._count_handled,
    "iteration.started": JobFold._count_started,
    "iteration.ok": JobFold._count_ended,
    "iteration.error": JobFold._count_ended,
}
