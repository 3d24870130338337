"""The rules of components: when one runs or is skipped, what it commits, how its sub-job and its job end.

One local rule does it. Every link settles once, fired or dead, when what it comes from has ended; when all links of a node have
settled, the node runs if its data ports are fed and a control link fired, and is skipped otherwise. Waiting for the last link
makes joins, cascades of skips and alternate ways in the same thing, and makes what happens independent of what ran faster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from penstock.kernel import facts, links, reasons
from penstock.kernel.decision import Decision, Ready
from penstock.kernel.facts import ComponentEnded, Fact
from penstock.kernel.judge import Ended, Verdict, Witness, message_of
from penstock.kernel.kept import closed, part
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
    Run,
    Subjob,
    dying,
    failed_iterations,
    owner,
    root_subjob,
)
from penstock.kernel.survey import look_inside, survey
from penstock.kernel.values import Json, JsonMap

ENDS: dict[str, Literal["ok", "error", "skipped"]] = {OK: "ok", ERROR: "error", SKIPPED: "skipped"}


# ---- what there is to decide


def look(d: Decision, view: ScopeView, region: Region) -> None:
    """At the members of a sub-job that has not closed."""
    for name in region.members:
        component = view.component(name)
        if component is None:
            for link in d.plan.joins[name][:1]:
                _join(d, view, link)
            d.look_at(view, name)
        elif component.status == RUNNING and d.decides(view, region):
            look_inside(d, component)


def ready(d: Decision, view: ScopeView, name: str, path: Path) -> Ready | None:
    """None while a link of it has not settled, and where others decide."""
    if view.component(name) is not None:
        return None
    fired = links.settlements(view, name)
    if fired is None:
        return None
    region = d.plan.region(name)
    if not d.decides(view, region):
        if any(d.plan.region(link.source) is not region for link in d.plan.inbound[name]):
            d.left.add(view.subjob_scope(region))
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
    """All links of `name` have settled, and these have fired: None if it is to run."""
    if d.execution.cancelling:
        return Skip(reasons.CANCELLED, stops=True)
    if not d.may_start(name):
        return Skip(f"{reasons.ENDING}{d.deaths[0].why}", stops=True)
    node_part = d.plan.parts[name]
    # All that is expected must be there (rulebook 10.3), also on a port of several links: some of the rows are not the rows.
    required = (link for link in d.plan.data[name] if link.to_port in node_part.required)
    unfed = next((link for link in required if not fired[link.index]), None)
    if unfed is not None:
        return reasons.unfed(view, unfed, links.around(view, unfed))
    control = counting = d.plan.control[name]
    joined = [link for link in control if link.on is On.SYNCHRONISE]
    if joined and not fired[joined[0].index]:
        # A join whose branches did not all come through is skipped, unless an error link leads there (rulebook 2.1.4).
        counting = [link for link in control if link.on in OF_ERROR]
    if node_part.startable or not control or any(fired[link.index] for link in counting):
        return None
    return reasons.not_led_to(view, control)


def _as_witnessed(scope: str, subjob: str, skip: Skip | None, witness: Witness) -> Skip | None:
    stopped = witness.stopped(scope, subjob)
    if stopped is not None:
        return Skip(stopped, stops=True)
    return None if skip is not None and skip.stops and witness.has_begun(scope, subjob) else skip


# ---- starting


def start(d: Decision, view: ScopeView, name: str, ready: Ready) -> None:
    node, node_part, place = d.net.nodes[name], d.plan.parts[name], view.place(name)
    subjob = _open_subjob(d, view, d.plan.region(name))
    is_call = node_part.opens is not None and d.plan.containers[node_part.opens].opening is Opening.JOBLET
    sees = links.sees(view, name)
    body = facts.ComponentStarted(
        place.id,
        node.tasks[0].kind if node.tasks else "joblet",
        subjob.place.id,
        sees,
        links.rows_in(view, name),
        f"{place.id}.__" if is_call else None,
    )
    d.record(Fact(place.id, (*place.clock, _counter(d, place.id)), body, _cause(d, sees)))
    inside = d.state.runs[place.id].inside
    if inside is not None:
        survey(d, inside)


def _counter(d: Decision, scope: str) -> int:
    known = d.state.runs.get(scope)
    return max(known.counter if known is not None else 0, d.state.counter(scope))


def _cause(d: Decision, sees: list[str]) -> str | None:
    """The fact that a start rests on: the settling of the latest of its links, by place."""
    best: tuple[tuple[object, ...], str] | None = None
    for seen in sees:
        source: Run | Subjob | None = d.state.subjobs.get(seen) or d.state.runs.get(seen)
        if source is not None:
            at = (source.place.clock, event_name(seen, source.counter - 1))
            if best is None or at[0] > best[0]:
                best = at
    return best[1] if best is not None else None


def _open_subjob(d: Decision, view: ScopeView, region: Region) -> Subjob:
    """The sub-job, opened now if this is its first component to start."""
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
    """It is skipped."""
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
    d.record(Fact(place.id, (*place.clock, _counter(d, place.id)), body, skip.cause))


# ---- the end of a component


def end(d: Decision, view: ScopeView, name: str, run: ComponentRun, end: Ended) -> None:
    node, node_part = d.net.nodes[name], d.plan.parts[name]
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
        run.name,
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
    d.in_run(run, body)
    settled = event_name(run.place.id, run.counter - 1)
    _commit(d, name, run, end, settled)
    for link in links.fired_by(d.plan, name, run, verdict.fired):
        d.in_run(run, _fired(view, link), settled)


def _after(run: ComponentRun, end: Ended, elapsed: float) -> JsonMap:
    """The variables that each component has when it is over; what it says itself stands above them."""
    counts = run.rows_in or end.rows_out
    if not run.rows_in and "main" in end.rows_out:
        counts = {"main": end.rows_out["main"]}
    # NB_LINE: the rows that came in; of a component without inputs, those that went out.
    after: JsonMap = {"NB_LINE": sum(rows for rows in counts.values() if isinstance(rows, int))}
    after.update({f"NB_LINE_OUT_{port}": rows for port, rows in end.rows_out.items()})
    after["ERROR_MESSAGE"] = message_of(end.error) if end.error is not None else None
    after["DURATION_MS"] = elapsed
    after.update(end.after)
    return after


def _commit(d: Decision, name: str, run: ComponentRun, end: Ended, cause: str) -> None:
    """Globals become visible with the end of the component and the firing of its links, all at once (1.3)."""
    node_part, owned_by = d.plan.parts[name], owner(run.subjob)
    changes = [(bare, links.global_name(name, node_part, bare), False) for bare in end.writes]
    for bare, key, deleted in [*changes, *((key, key, True) for key in end.deletes)]:
        before = run.view.get(key)
        if before is not None and before.deleted:  # Whoever writes it next makes it anew.
            before = None
        is_foreign = before is not None and before.creator != owned_by
        body = facts.GlobalSet(
            key,
            before.value if before is not None else None,
            None if deleted else end.writes[bare],
            run.name,
            run.subjob.name,
            local=is_foreign and not end.exports_all and bare not in node_part.exports and key not in node_part.exports,
            creator=before.creator if before is not None else owned_by,
            is_set=bare in end.sets,
            deleted=deleted,
        )
        d.in_run(run, body, cause)


def _fired(view: ScopeView, link: Link) -> facts.LinkFired:
    return facts.LinkFired(view.scope(link.source), view.scope(link.target), link.on.value, link.order, link.index)


def fire_end(d: Decision, view: ScopeView, link: Link) -> None:
    """The end of an iteration fires a link to what handles it."""
    assert view.state.opener is not None
    target = view.scope(link.target)
    in_iteration(d, view, facts.LinkFired(view.state.opener.name, target, link.on.value, link.order, link.index))


def in_iteration(d: Decision, view: ScopeView, body: facts.Body) -> None:
    """A fact of the iteration itself, after every member of every sub-job of its body, which are numbered from (0, 0)."""
    scope = view.state
    subjob = scope.subjobs.get(scope.place.id)
    counter = subjob.counter if subjob is not None else scope.counter
    regions = view.bodies if len(view.bodies) == 1 else view.spec.regions
    members = max((len(region.members) for region in regions), default=0)
    at: Path = (0, members) if subjob is not None else (0, members, 0)
    cause = event_name(scope.place.id, counter - 1)
    d.record(Fact(scope.place.id, (*scope.place.clock, at, counter), body, cause))


# ---- the end of a sub-job, of a joblet call, of the job


def is_over(d: Decision, region: Region, subjob: Subjob) -> bool:
    return subjob.ended >= len(region.members)


def close(d: Decision, view: ScopeView, region: Region, subjob: Subjob) -> None:
    """All members of a sub-job have ended: its checkpoint is saved, and the links settle that its end settles."""
    status, error = links.aggregate(view, region)
    aborts = status == ERROR and d.net.aborts and view.spec.opening is Opening.JOB
    body = facts.SubjobEnded(region.name, ENDS[status], region.index, view.state.id, error, aborts)
    _in_subjob(d, view, region, subjob, body, None)
    if status != SKIPPED:
        checkpoint = links.checkpoint(d.execution.workload, subjob, subjob.status)
        _in_subjob(d, view, region, subjob, checkpoint, event_name(subjob.place.id, subjob.counter - 1))
    for link in d.plan.of_region[view.key, region.index]:
        if link.on is On.SYNCHRONISE:
            _join(d, view, link)
        elif links.subjob_fires(link, status) and not link.hidden:
            cause = event_name(subjob.place.id, subjob.counter - 1)
            _in_subjob(d, view, region, subjob, _fired(view, link), cause)
        d.look_at(view, link.target)


def _in_subjob(
    d: Decision, view: ScopeView, region: Region, subjob: Subjob, body: facts.Body, cause: str | None
) -> None:
    clock = (*view.state.place.clock, (region.index, len(region.members)), subjob.counter)
    d.record(Fact(subjob.place.id, clock, body, cause))


def _join(d: Decision, view: ScopeView, link: Link) -> None:
    """Record that a join is reached, once, when its last branch has ended."""
    place = view.place(link.target)
    is_told = place.id in d.state.joined or view.component(link.target) is not None
    if is_told or link.hidden or not d.closes(view) or not links.joins(view, link):
        return
    for one in d.plan.joins[link.target]:
        d.record(Fact(place.id, (*place.clock, _counter(d, place.id)), _fired(view, one)))


def end_call(d: Decision, view: ScopeView, call: ComponentRun) -> None:
    """All sub-jobs of a joblet have closed, and so the call ends."""
    failed = links.failures(view)
    end = Ended(ERROR, error=links.first_error(failed)) if failed else Ended()
    for link in d.plan.proxies[d.name_of(call)]:
        source = view.component(link.source)
        if source is not None and source.status == OK and link.port in source.outputs:
            end.outputs[link.to_port] = source.outputs[link.port]
            end.rows_out[link.to_port] = source.rows_out.get(link.port, 0)
    d.ends.append((call, end))


def conclude(d: Decision, view: ScopeView) -> tuple[facts.ExecutionEnded, Path, str | None]:
    """What the job comes to, where that stands, and what it follows from."""
    execution = d.execution
    status: Literal["completed", "failed", "cancelled"] = "completed"
    error: Json = None
    exit_code: int | None = None
    dead, failed = dying(execution), links.failures(view)
    if execution.cancelling:
        status = "cancelled"
    elif dead is not None:
        status, error, exit_code = "failed", links.with_component(dead), dead.exit_code or 1
    elif failed:
        status, error = "failed", links.first_error(failed)
    kept: Json = None
    if status == "completed":
        kept = closed(execution.kept, part(execution.kept, "values"), execution.marks)
    body = facts.ExecutionEnded(status, error, "job", exit_code, failed_iterations(execution), kept)
    return body, (len(d.plan.containers[""].regions),), None
