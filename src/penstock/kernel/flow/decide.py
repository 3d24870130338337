"""The decider of a component net: which links fire, what starts, what is skipped, when a sub-job closes.

One local rule does it. Every link settles once, fired or dead, when what it comes from has ended; when all links of a node have
settled, the node runs if its data ports are fed and a control link fired, and is skipped otherwise. Waiting for the last link
makes joins, cascades of skips and alternate ways in the same thing, and makes what happens independent of what ran faster.

All of it is worked out from net and state: after a fold of the log, a look at every open scope (`survey`) finds what there is to
decide, and after a fact a look at what leads on from there finds the same.

Links are recorded before anything that follows from them starts (rulebook 1.3), and all of one decision goes into the log
at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from penstock.kernel import facts
from penstock.kernel.errors import Refused
from penstock.kernel.evolve import Execution
from penstock.kernel.facts import Body, ComponentEnded, Fact
from penstock.kernel.flow import closing, iterating, resuming, routing
from penstock.kernel.flow.ending import Ended, FlowJudge, Verdict, Witness, message_of, with_after
from penstock.kernel.flow.mandate import Mandate
from penstock.kernel.flow.plan import FlowPlan
from penstock.kernel.flow.scope import Scope
from penstock.kernel.flow.state import (
    ERROR,
    OK,
    RUNNING,
    SETTLED,
    ComponentState,
    ContainerState,
    Death,
    RegionState,
    owner,
)
from penstock.kernel.net import Net, Node, On, Opening, Region
from penstock.kernel.places import event_name
from penstock.kernel.state import ExecutionState
from penstock.kernel.values import Json


class Flow:
    def __init__(
        self, tree: Execution, state: ExecutionState, net: Net, judge: FlowJudge, record: Callable[[Fact], None]
    ) -> None:
        self.tree = tree
        self.state = state
        self.net = net
        self.plan = FlowPlan(net)
        self.judge = judge
        self.record = record
        self.mandate = Mandate()
        self.ready: deque[ComponentState] = deque()
        """Components that have been started and whose work is to be done."""
        self.left: set[str] = set()
        """Sub-jobs that are held elsewhere and in which something can be decided because of what was decided here."""
        self.witness: Witness | None = None
        """In a replay: whether a stop was known where something was decided is not to be worked out, only told."""
        self.over: dict[str, Json] = {}
        """While one stimulus is dealt with: iterators that open no more iterations, with the error that keeps them from it."""
        self._nodes: deque[tuple[Scope, str]] = deque()
        self._fans: deque[ComponentState] = deque()
        self._is_moving = False
        self._paths: tuple[tuple[Death, ...], frozenset[str]] = ((), frozenset())

    # ---- stimuli

    def begin(self) -> None:
        self.survey(self.root)
        self.move()

    def go_on(self) -> None:
        """Decide what follows from the state, whatever led to it: a resume, a take-over, what others have decided."""
        self.survey(self.root)
        self.move()

    def end(self, component: ComponentState, end: Ended) -> None:
        """A runner says that a component is over. Late and foreign reports are refused, and nothing happens."""
        known = self.tree.flow.components.get(component.place.id)
        if known is not component or component.status != RUNNING:
            raise Refused(f"`{component.name}` is not running")
        if component.is_iterating:
            raise Refused(f"`{component.name}` ends with its iterations")
        self.finish(component, end)
        self.move()

    def iterate(
        self,
        component: ComponentState,
        total: int | None,
        items: Json,
        parallel: int,
        mode: str,
        *,
        spread: bool = False,
    ) -> None:
        """A runner says over which elements an iterator is to run. `spread`: others will run the iterations (`spreading`)."""
        iterating.start(self, component, total, items, parallel, mode, spread=spread)
        self.move()

    def cancel(self, reason: str) -> None:
        self._require_running()
        if not self.state.cancelling:
            self.mark(facts.CancelAsked(reason, "job"))
        self.go_on()

    def interrupt(self, reason: str) -> None:
        self._require_running()
        self.mark(facts.ExecutionInterrupted(reason, "job"))

    def resume(self, *, failed_only: bool = False) -> None:
        """Go on after a stop. What is kept is not run again; the rest starts over (D30)."""
        resuming.resume(self, failed_only=failed_only)
        self.go_on()

    def hold(self) -> None:
        """From here on nothing starts and nothing is skipped. What ends is recorded, and the sub-jobs that close with it."""
        self.mandate.is_held = True

    def release(self) -> None:
        self.mandate.is_held = False

    @property
    def root(self) -> ContainerState:
        assert self.state.flow is not None
        return self.state.flow

    # ---- where things are

    def scope_of(self, component: ComponentState) -> Scope:
        return Scope(self.plan, component.region.container)

    def name_of(self, component: ComponentState) -> str:
        """The node that a component is a run of."""
        return self.plan.node_of(component.place.id)

    def node_of(self, component: ComponentState) -> Node:
        return self.net.nodes[self.name_of(component)]

    @property
    def deaths(self) -> list[Death]:
        return self.root.deaths or self.mandate.deaths

    @property
    def allowed(self) -> frozenset[str] | None:
        """Of a job that is being stopped: the nodes that may still start. None while nothing stops it."""
        if self.state.cancelling:
            return frozenset()
        deaths = self.deaths
        if not deaths:
            return None
        known = tuple(deaths)
        if known != self._paths[0]:
            names = [name for death in deaths for name in self._nodes_of(death)]
            self._paths = known, self.plan.error_path(names)
        return self._paths[1]

    def _nodes_of(self, death: Death) -> tuple[str, ...]:
        if not death.scope.endswith(">"):
            return (self.plan.node_of(death.scope),)
        region = self.tree.flow.regions.get(death.scope)
        return self.net.containers[""].regions[region.index].members if region is not None else ()

    # ---- what there is to decide

    def survey(self, container: ContainerState) -> None:
        """A scope has opened, or is taken up: look at all that is in it."""
        scope = Scope(self.plan, container)
        self.look_at_regions(scope, scope.bodies)
        if container.handlers:
            iterating.lead_on(self, scope)
        closing.close_scope(self, scope)

    def look_at_regions(self, scope: Scope, regions: Iterable[Region]) -> None:
        for region in regions:
            state = scope.region(region)
            if state is not None and state.status in SETTLED:
                continue
            for name in region.members:
                component = scope.component(name)
                if component is None:
                    for link in self.plan.joins[name][:1]:
                        closing.join(self, scope, link)
                    self.look_at(scope, name)
                elif component.status == RUNNING and self.decides(scope, region):
                    self.look_inside(component)
            closing.close_region(self, scope, region)

    def look_inside(self, component: ComponentState) -> None:
        """Into what a component has opened that is under way."""
        if component.inside is not None:
            self.survey(component.inside)
        if component.iterator is not None and component.is_iterating and not component.iterator.spread:
            for iteration in list(component.iterator.open.values()):
                self.survey(iteration)
            self.advance(component)

    def look_at(self, scope: Scope, name: str) -> None:
        self._nodes.append((scope, name))

    def advance(self, iterator: ComponentState) -> None:
        self._fans.append(iterator)

    def move(self) -> None:
        """Start or skip whatever has become decidable, until nothing is left to decide."""
        if self._is_moving or self.mandate.is_held:
            return
        self._is_moving = True
        try:
            while self._nodes or self._fans:
                while self._nodes:
                    self._decide(*self._nodes.popleft())
                if self._fans:
                    iterating.advance(self, self._fans.popleft())
        finally:
            self._is_moving = False
            self.over.clear()

    def decides(self, scope: Scope, region: Region) -> bool:
        """Is what happens in this sub-job decided here?"""
        return scope.state is not self.root or self.mandate.decides(scope.region_scope(region))

    def closes(self, scope: Scope) -> bool:
        """Are sub-jobs of this scope closed here? Those of the job itself are closed by its server."""
        return scope.state is not self.root or self.mandate.is_whole

    def _decide(self, scope: Scope, name: str) -> None:
        if scope.component(name) is not None:
            return
        region = self.plan.region(name)
        fired = routing.settlements(self, scope, name) if scope.admits(region) else None
        if fired is None:
            return
        if not self.decides(scope, region):
            if any(self.plan.region(link.source) is not region for link in self.plan.inbound[name]):
                self.left.add(scope.region_scope(region))
            return
        skip = routing.why_skipped(self, scope, name, fired)
        if self.witness is not None:
            skip = self._as_witnessed(scope.scope(name), skip, self.witness)
        if skip is not None:
            self._skip(scope, name, skip)
        else:
            self._start(scope, name)

    def _as_witnessed(self, scope: str, skip: routing.Skip | None, witness: Witness) -> routing.Skip | None:
        stopped = witness.stopped(scope)
        if stopped is not None:
            return routing.Skip(stopped, stops=True)
        return None if skip is not None and skip.stops and witness.has_begun(scope) else skip

    def _start(self, scope: Scope, name: str) -> None:
        region, node, part = self.plan.region(name), self.net.nodes[name], self.plan.part(name)
        state = self._region_state(scope, region)
        place = scope.place(name)
        counter = self.counter(place.id)
        is_call = part.opens is not None and self.net.containers[part.opens].opening is Opening.JOBLET
        opens = f"{place.id}.__" if is_call else None
        body = facts.ComponentStarted(
            place.id,
            node.tasks[0].kind if node.tasks else "joblet",
            state.place.id,
            routing.sees(scope, name),
            routing.rows_in(self, scope, name),
            opens,
        )
        self.record(Fact(place.id, (*place.clock, counter), body, self._cause(scope, name)))
        component = self.tree.flow.components[place.id]
        if is_call:
            assert component.inside is not None
            self.survey(component.inside)
        else:
            self.ready.append(component)

    def counter(self, scope: str) -> int:
        known = self.tree.flow.components.get(scope)
        return max(known.counter if known is not None else 0, self.tree.flow.counter(scope))

    def _cause(self, scope: Scope, name: str) -> str | None:
        """The fact that a start rests on: the settling of the latest of its links, by place."""
        best: tuple[tuple[object, ...], str] | None = None
        for seen in routing.sees(scope, name):
            source: ComponentState | RegionState | None
            source = self.tree.flow.regions.get(seen) or self.tree.flow.components.get(seen)
            if source is not None:
                at = (source.place.clock, event_name(seen, source.counter - 1))
                if best is None or at[0] > best[0]:
                    best = at
        return best[1] if best is not None else None

    def _region_state(self, scope: Scope, region: Region) -> RegionState:
        """The sub-job, opened now if this is its first component to start."""
        state = scope.region(region)
        if state is None or state.status not in (RUNNING, OK, ERROR):
            name = scope.region_scope(region)
            counter = state.counter if state is not None else self.tree.flow.counter(name)
            body = facts.SubjobStarted(region.name, region.index, scope.state.id)
            clock = (*scope.state.place.clock, (region.index,), counter)
            self.record(Fact(name, clock, body))
            state = scope.region(region)
        assert state is not None
        return state

    def _skip(self, scope: Scope, name: str, skip: routing.Skip) -> None:
        region = self.plan.region(name)
        place = scope.place(name)
        body = facts.ComponentSkipped(
            place.id,
            scope.region_scope(region),
            skip.reason,
            skip.upstream,
            skip.link,
            region.name,
            region.index,
            scope.state.id,
        )
        self.record(Fact(place.id, (*place.clock, self.counter(place.id)), body, skip.cause))
        component = self.tree.flow.components[place.id]
        self.settle(scope, name, component)

    # ---- the end of a component

    def finish(self, component: ComponentState, end: Ended) -> None:
        scope, name = self.scope_of(component), self.name_of(component)
        node, part = self.net.nodes[name], self.plan.part(name)
        end = with_after(component, end, self.judge.elapsed_ms(component))
        ifs = sorted(
            (one for one in self.plan.outbound[name] if one.on is On.IF), key=lambda one: (one.order, one.index)
        )
        verdict = Verdict()
        if end.status == OK and ifs:
            verdict = self.judge.conditions(node, ifs, component, end)
            if verdict.error is not None:
                end = replace(end, status=ERROR, error=verdict.error)
                end.after["ERROR_MESSAGE"] = message_of(verdict.error)
        dies = end.dies or (end.status == ERROR and part.die_on_error)
        body = ComponentEnded(
            component.name,
            "ok" if end.status == OK else "error",
            component.rows_in,
            end.rows_out,
            end.outputs,
            end.after,
            end.result,
            end.error,
            self.judge.elapsed_ms(component),
            dies,
            end.exit_code,
        )
        cause = event_name(component.place.id, component.counter - 1)
        self.in_component(component, body, cause)
        settled = event_name(component.place.id, component.counter - 1)
        self._commit(component, name, end, settled)
        for link in routing.fired_by(self.plan, name, component, verdict.fired):
            source, target = component.name, scope.scope(link.target)
            self.in_component(
                component, facts.LinkFired(source, target, link.on.value, link.order, link.index), settled
            )
        self.settle(scope, name, component)

    def _commit(self, component: ComponentState, name: str, end: Ended, cause: str) -> None:
        """Globals become visible with the end of the component and the firing of its links, all at once (1.3)."""
        part = self.plan.part(name)
        owned_by = owner(component.region)
        changes = [(bare, routing.global_name(name, part, bare), False) for bare in end.writes]
        for bare, key, deleted in [*changes, *((key, key, True) for key in end.deletes)]:
            before = component.view.get(key)
            if before is not None and before.deleted:  # Whoever writes it next makes it anew.
                before = None
            is_foreign = before is not None and before.creator != owned_by
            local = is_foreign and not end.exports_all and bare not in part.exports and key not in part.exports
            creator = before.creator if before is not None else owned_by
            body = facts.GlobalSet(
                key,
                before.value if before is not None else None,
                None if deleted else end.writes[bare],
                component.name,
                component.region.name,
                local,
                creator,
                bare in end.sets,
                deleted,
            )
            self.in_component(component, body, cause)

    def settle(self, scope: Scope, name: str, component: ComponentState) -> None:
        """A component has ended or was skipped: whatever waits for that is looked at, and its sub-job may be over."""
        for link in self.plan.outbound[name]:
            self.look_at(scope, link.target)
        for iterator in self.plan.awaiting.get(name, ()):
            self.look_at(scope, iterator)
        closing.close_region(self, scope, scope.spec.regions[component.region.index])

    # ---- recording

    def mark(self, body: Body, *, cause: str | None = None, at: tuple[int, ...] = ()) -> None:
        """Record a fact of the execution scope itself."""
        place = self.state.place
        self.record(Fact(place.id, (*place.clock, at, self.state.counter), body, cause))

    def in_component(self, component: ComponentState, body: Body, cause: str | None) -> None:
        self.record(Fact(component.place.id, (*component.place.clock, component.counter), body, cause))

    def in_region(self, scope: Scope, region: Region, state: RegionState, body: Body, cause: str | None) -> None:
        clock = (*scope.state.place.clock, (region.index, len(region.members)), state.counter)
        self.record(Fact(state.place.id, clock, body, cause))

    def _require_running(self) -> None:
        if self.state.status != "running":
            raise Refused(f"the run is {self.state.status}, not running")


__all__ = ["Ended", "Flow", "FlowJudge", "Verdict"]
