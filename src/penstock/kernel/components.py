"""The rules of components: when one runs or is skipped, what it commits, how its sub-job and its job end.

One local rule does it. Every link settles once, fired or dead, when its source has ended; when all links of a node have settled,
the node runs if its data ports are fed and a control link fired, and is skipped otherwise. Waiting for the last link makes joins,
cascades of skips and alternative ways in the same thing, and makes the result independent of which component ran faster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from penstock.kernel import facts, links, reasons
from penstock.kernel.decision import Decision, Ready
from penstock.kernel.facts import ComponentEnded, Fact
from penstock.kernel.judge import Ended, Verdict, Witness, located, message_of
from penstock.kernel.net import Link, On, Opening, Region
from penstock.kernel.places import Path, event_name
from penstock.kernel.plan import OF_ERROR
from penstock.kernel.reasons import Skip
from penstock.kernel.scopes import ScopeView
from penstock.kernel.state import (
    ERROR,
    OK,
    RUNNING,
    SKIPPED,
    ComponentRun,
    Subjob,
    root_subjob,
)
from penstock.kernel.values import Json, JsonMap

STATUS_WORDS: dict[str, Literal["ok", "error", "skipped"]] = {OK: "ok", ERROR: "error", SKIPPED: "skipped"}
"""Status -> the word for it in facts."""


# ---- may a component run?


def ready(d: Decision, view: ScopeView, name: str, path: Path) -> Ready | None:
    """None if an incoming link is still unsettled, or if this node is decided elsewhere."""
    if view.component(name) is not None:
        return None
    fired = links.inbound_fires(view, name)
    if fired is None:
        return None
    region = d.plan.region(name)
    if not d.decides(view, region):
        if any(d.plan.region(link.source) is not region for link in d.plan.inbound[name]):
            d.to_inform.add(view.subjob_scope(region))
        return None
    skip = _why_skipped(d, view, name, fired)
    if d.witness is not None:
        opener, scope = view.state.opener, view.scope(name)
        subjob = root_subjob(opener).place.id if opener is not None else view.subjob_scope(region)
        if d.witness.was_lost(scope, subjob):
            return None
        skip = _as_witnessed(scope, subjob, skip, d.witness)
    return Ready(skip)


def _why_skipped(d: Decision, view: ScopeView, name: str, fired: dict[int, bool]) -> Skip | None:
    """Why a node whose links have all settled is skipped; None if it runs. `fired`: link index -> whether it fired."""
    if d.execution.cancelling:
        return Skip(reasons.CANCELLED, stops=True)
    if not d.may_start(name):
        return Skip(f"{reasons.ENDING}{d.deaths[0].why}", stops=True)
    node_part = d.plan.locations[name]
    # Every link into a required port must have fired: partial input is not acceptable (rulebook 10.3).
    required = (link for link in d.plan.data[name] if link.to_port in node_part.required)
    unfed = next((link for link in required if not fired[link.index]), None)
    if unfed is not None:
        return reasons.unfed(unfed, links.around(view, unfed))
    control = counting = d.plan.control[name]
    joined = [link for link in control if link.on is On.SYNCHRONISE]
    if joined and not fired[joined[0].index]:
        # A join whose branches did not all come through is skipped, unless an error link leads there (rulebook 2.1.4).
        counting = [link for link in control if link.on in OF_ERROR]
    if node_part.startable or not control or any(fired[link.index] for link in counting):
        return None
    return reasons.not_led_to(view, control)


def _as_witnessed(scope: str, subjob: str, skip: Skip | None, witness: Witness) -> Skip | None:
    """During replay: skip what the record skipped because of a stop, and run what it ran before the stop was known there."""
    stopped = witness.stopped(scope, subjob)
    if stopped is not None:
        return Skip(stopped, stops=True)
    return None if skip is not None and skip.stops and witness.has_begun(scope, subjob) else skip


# ---- starting


def start(d: Decision, view: ScopeView, name: str, ready: Ready) -> None:
    node, node_part, place = d.net.nodes[name], d.plan.locations[name], view.place(name)
    subjob = _open_subjob(d, view, d.plan.region(name))
    is_call = node_part.opens is not None and d.plan.containers[node_part.opens].opening is Opening.JOBLET
    sources = links.sees(view, name)
    latest = max(sources, key=lambda source: source.place.clock, default=None)
    cause = event_name(latest.place.id, latest.counter - 1) if latest is not None else None
    body = facts.ComponentStarted(
        place.id,
        node.tasks[0].kind if node.tasks else "joblet",
        subjob.place.id,
        [source.place.id for source in sources],
        links.rows_in(view, name),
        f"{place.id}.__" if is_call else None,
    )
    d.record(Fact(place.id, (*place.clock, d.state.counter(place.id)), body, cause))


def _open_subjob(d: Decision, view: ScopeView, region: Region) -> Subjob:
    """The sub-job; opened now if this is the first of its components to start."""
    subjob = view.subjob(region)
    if subjob is None or subjob.status not in (RUNNING, OK, ERROR):
        name = view.subjob_scope(region)
        counter = subjob.counter if subjob is not None else d.state.counter(name)
        body = facts.SubjobStarted(region.name, region.index, view.state.id)
        d.record(Fact(name, (*view.state.place.clock, (region.index,), counter), body))
        subjob = view.subjob(region)
    assert subjob is not None
    return subjob


def refuse(d: Decision, view: ScopeView, name: str, ready: Ready) -> None:
    """Record that the component is skipped, and why."""
    skip, region, place = ready.refusal, d.plan.region(name), view.place(name)
    assert isinstance(skip, Skip)
    body = facts.ComponentSkipped(
        place.id,
        view.subjob_scope(region),
        skip.reason,
        skip.upstream,
        skip.link,
        subjob_name=region.name,
        index=region.index,
        container=view.state.id,
    )
    d.record(Fact(place.id, (*place.clock, d.state.counter(place.id)), body, skip.cause))


# ---- the end of a component


def end(d: Decision, view: ScopeView, name: str, run: ComponentRun, end: Ended) -> None:
    node, node_part = d.net.nodes[name], d.plan.locations[name]
    elapsed = round(max(0.0, d.now - run.started_at) * 1000, 3)
    end = replace(end, after=_after(run, end, elapsed))
    ifs = sorted((one for one in d.plan.outbound[name] if one.on is On.IF), key=lambda one: (one.order, one.index))
    verdict = Verdict()
    if end.status == OK and ifs:
        verdict = d.judge.conditions(node, ifs, run, end)
        if verdict.error is not None:
            end = replace(end, status=ERROR, error=verdict.error)
            end.after["ERROR_MESSAGE"] = message_of(verdict.error)
    body = ComponentEnded(
        run.place.id,
        "ok" if end.status == OK else "error",
        run.rows_in,
        end.rows_out,
        outputs=end.outputs,
        after=end.after,
        result=end.result,
        error=end.error,
        ms=elapsed,
        dies=end.dies or (end.status == ERROR and node_part.die_on_error),
        exit_code=end.exit_code,
    )
    d.record_next(run, body)
    settled = event_name(run.place.id, run.counter - 1)
    _commit(d, name, run, end, settled)
    for link in links.fired_by(d.plan, name, run, verdict.fired):
        d.record_next(run, view.firing(link), settled)


def _after(run: ComponentRun, end: Ended, elapsed: float) -> JsonMap:
    """The after-variables every component gets; values the component sets itself take precedence."""
    counts = run.rows_in or end.rows_out
    if not run.rows_in and "main" in end.rows_out:
        counts = {"main": end.rows_out["main"]}
    # NB_LINE: the number of rows that came in; for a component without inputs, that went out.
    after: JsonMap = {"NB_LINE": sum(rows for rows in counts.values() if isinstance(rows, int))}
    after.update({f"NB_LINE_OUT_{port}": rows for port, rows in end.rows_out.items()})
    after["ERROR_MESSAGE"] = message_of(end.error) if end.error is not None else None
    after["DURATION_MS"] = elapsed
    after.update(end.after)
    return after


def _commit(d: Decision, name: str, run: ComponentRun, end: Ended, cause: str) -> None:
    """Record the writes to globals. They become visible together with the component's end and the firing of its links
    (rulebook 1.3)."""
    node_part, owned_by = d.plan.locations[name], run.subjob.owner
    changes = [(bare, links.global_name(name, node_part, bare), False) for bare in end.writes]
    for bare, key, deleted in [*changes, *((key, key, True) for key in end.deletes)]:
        before = run.view.get(key)
        if before is not None and before.deleted:  # The next write creates the key anew.
            before = None
        is_foreign = before is not None and before.creator != owned_by
        body = facts.GlobalSet(
            key,
            before.value if before is not None else None,
            None if deleted else end.writes[bare],
            run.place.id,
            run.subjob.name,
            local=is_foreign and not end.exports_all and bare not in node_part.exports and key not in node_part.exports,
            creator=before.creator if before is not None else owned_by,
            is_set=bare in end.sets,
            deleted=deleted,
        )
        d.record_next(run, body, cause)


def fire_end(d: Decision, view: ScopeView, link: Link) -> None:
    """Record that the end of an iteration fires a link to one of its handlers."""
    assert view.state.opener is not None
    body = view.firing(link)
    assert isinstance(body, facts.LinkFired)
    in_iteration(d, view, replace(body, source=view.state.opener.place.id))


def in_iteration(d: Decision, view: ScopeView, body: facts.Body) -> None:
    """Record a fact of the iteration itself, with a clock later than any member of its body (members count from (0, 0))."""
    scope = view.state
    subjob = scope.subjobs.get(scope.place.id)
    regions = view.bodies if len(view.bodies) == 1 else view.spec.regions
    members = max((len(region.members) for region in regions), default=0)
    at: Path = (0, members) if subjob is not None else (0, members, 0)
    d.record_next(subjob or scope, body, clock=(*scope.place.clock, at))


# ---- the end of a sub-job, of a joblet call, of the job


def close(d: Decision, view: ScopeView, region: Region, subjob: Subjob) -> None:
    """All members have ended: record the end, save the checkpoint, and fire the links that depend on the sub-job's end."""
    status, error = links.aggregate(view, region)
    aborts = status == ERROR and d.net.aborts and view.spec.opening is Opening.JOB
    body = facts.SubjobEnded(region.name, STATUS_WORDS[status], region.index, view.state.id, error, aborts)
    clock = (*view.state.place.clock, (region.index, len(region.members)))
    d.record_next(subjob, body, None, clock)
    if status != SKIPPED:
        d.record_next(subjob, links.checkpoint(d.execution.workload, subjob, subjob.status), clock=clock)
    for link in d.plan.of_region[view.key, region.index]:
        if link.on is On.SYNCHRONISE:
            join(d, view, link)
        elif links.subjob_fires(link, status) and not link.hidden:
            d.record_next(subjob, view.firing(link), clock=clock)
        d.queue_node(view, link.target)


def join(d: Decision, view: ScopeView, link: Link) -> None:
    """Record that a join is reached, once, when its last branch has ended."""
    place = view.place(link.target)
    is_recorded = place.id in d.state.joined or view.component(link.target) is not None
    if is_recorded or link.hidden or not d.closes(view) or not links.joins(view, link):
        return
    for one in d.plan.joins[link.target]:
        d.record(Fact(place.id, (*place.clock, d.state.counter(place.id)), view.firing(one)))


def end_call(d: Decision, view: ScopeView, call: ComponentRun) -> None:
    """All sub-jobs of a joblet have closed: queue the end of the call."""
    failed = links.failures(view)
    end = Ended(ERROR, error=located(failed[0].error, len(failed) - 1)) if failed else Ended()
    for link in d.plan.proxies[d.name_of(call)]:
        source = view.component(link.source)
        if source is not None and source.status == OK and link.port in source.outputs:
            end.outputs[link.to_port] = source.outputs[link.port]
            end.rows_out[link.to_port] = source.rows_out.get(link.port, 0)
    d.ends.append((call, end))


def failure(d: Decision, view: ScopeView) -> tuple[Json, str | None]:
    """The error of the first sub-job in ERROR that nothing handled."""
    failed = links.failures(view)
    return (located(failed[0].error, len(failed) - 1) if failed else None), None
