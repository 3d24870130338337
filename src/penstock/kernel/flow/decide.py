"""The decider of a component net: which links fire, what starts, what is skipped, when a sub-job closes.

One local rule does it. Every link settles once, fired or dead; when all links of a node have settled, the node runs if its data
ports are fed and a control link fired, and is skipped otherwise. Waiting for the last link makes joins, cascades of skips and
alternate ways in the same thing, and makes what happens independent of what ran faster.

Links are recorded before anything that follows from them starts (rulebook 1.3), and all of one decision goes into the log
at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from penstock.kernel import facts
from penstock.kernel.errors import Refused
from penstock.kernel.evolve import Execution
from penstock.kernel.facts import Body, ComponentEnded, Fact
from penstock.kernel.fanout import Stretch
from penstock.kernel.flow import closing, iterating, resuming, routing
from penstock.kernel.flow.ending import Ended, FlowJudge, Verdict, Witness, message_of, with_after
from penstock.kernel.flow.plan import OF_REGION, FlowPlan
from penstock.kernel.flow.scene import Scene
from penstock.kernel.flow.state import (
    ERROR,
    OK,
    RUNNING,
    ComponentState,
    ContainerState,
    RegionState,
    owner,
)
from penstock.kernel.net import Container, Link, Net, Node, On, Opening, Region
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
        self.ready: deque[ComponentState] = deque()
        """Components that have been started and whose work is to be done."""
        self.scenes: dict[str, Scene] = {}
        self.allowed: frozenset[str] | None = None
        """Once the job is dying: what may still start."""
        self.why_ending = ""
        self.over: dict[str, Json] = {}
        """Iterators whose `while` came out false, or could not be judged: then with the error."""
        self.advancing: deque[ComponentState] = deque()
        """Iterators of which an iteration has ended."""
        self.elsewhere: set[str] = set()
        """Sub-jobs of the job's own whose holder decides what happens in them; what they decide is heard of (`sharing`)."""
        self.left: set[str] = set()
        """Those of them in which something can be decided because of what others did: their holders do not know of it yet."""
        self.only: str | None = None
        """Set where a holder decides: the one sub-job that is his. He does not close it, and touches nothing around it."""
        self.stretch: Stretch | None = None
        """Set where a holder decides in some iterations of one iterator, and nowhere else."""
        self.is_through = False
        """All members of that sub-job, or all iterations of that stretch, have settled."""
        self.witness: Witness | None = None
        """In a replay: whether a stop was known where something was decided is not to be worked out, only told."""
        self._queue: deque[tuple[Scene, str]] = deque()
        self._is_moving = False
        self._is_held = False

    # ---- stimuli

    def begin(self) -> None:
        self.open(self.root, self.net.containers[""])
        self.move()

    def end(self, component: ComponentState, end: Ended) -> None:
        """A runner says that a component is over. Late and foreign reports are refused, and nothing happens."""
        known = self.tree.flow.components.get(component.place.id)
        if known is not component or component.status != RUNNING:
            raise Refused(f"`{component.name}` is not running")
        if component.iterator is not None:
            raise Refused(f"`{component.name}` ends with its iterations")
        self.finish(self.scene_of(component), self.name_of(component), component, end)
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
        self.allowed = frozenset()
        self.move()

    def interrupt(self, reason: str) -> None:
        self._require_running()
        self.mark(facts.ExecutionInterrupted(reason, "job"))

    def resume(self, *, failed_only: bool = False) -> None:
        """Go on after a stop. What is kept is not run again; the rest starts over (D30)."""
        resuming.resume(self, failed_only=failed_only)
        self.take_up()

    def hold(self) -> None:
        """From here on nothing starts and nothing is skipped. What ends is recorded, and the sub-jobs that close with it."""
        self._is_held = True

    def release(self) -> None:
        self._is_held = False

    def take_up(self) -> None:
        """Work out from the state alone how far everything is, and go on from there."""
        self.scenes.clear()
        self.open(self.root, self.net.containers[""])
        resuming.recall_dying(self)
        self.move()

    @property
    def root(self) -> ContainerState:
        assert self.state.flow is not None
        return self.state.flow

    # ---- scenes

    def scene_of(self, component: ComponentState) -> Scene:
        return self.scenes[component.region.container.id]

    def name_of(self, component: ComponentState) -> str:
        """The node that a component is a run of."""
        return self.scene_of(component).names[component.place.id]

    def node_of(self, component: ComponentState) -> Node:
        return self.net.nodes[self.name_of(component)]

    def open(self, container: ContainerState, spec: Container) -> None:
        """A scope begins, or is taken up: what leads into it is settled, and its members follow when theirs are."""
        scene = self.stage(container, spec)
        resuming.settle_kept(self, scene)
        closing.close_if_over(self, scene)

    def stage(self, container: ContainerState, spec: Container) -> Scene:
        scene = Scene.opened(self.plan, spec, container)
        self.scenes[container.id] = scene
        for region in scene.bodies:
            for name in region.members:
                if not scene.pending[name]:
                    self._queue.append((scene, name))
        routing.settle_from_outside(self, scene)
        return scene

    # ---- moving

    def move(self) -> None:
        """Start or skip whatever has become decidable, until nothing is left to decide."""
        if self._is_moving or self._is_held:
            return
        self._is_moving = True
        try:
            while self._queue or self.advancing:
                while self._queue:
                    scene, name = self._queue.popleft()
                    if scene.component(name) is None:
                        self._decide(scene, name)
                if self.advancing:
                    iterating.advance(self, self.advancing.popleft())
        finally:
            self._is_moving = False

    def settle(self, scene: Scene, link: Link, fired: bool) -> None:
        scene.settled[link.index] = fired
        self.count_down(scene, link.target)

    def count_down(self, scene: Scene, name: str) -> None:
        if name not in scene.pending:
            return
        scene.pending[name] -= 1
        if scene.pending[name] == 0:
            self._queue.append((scene, name))

    def decides(self, scene: Scene, region: Region) -> bool:
        """Is what happens in this sub-job decided here?"""
        if scene.state is not self.root:
            return True
        scope = scene.region_scope(region)
        return scope not in self.elsewhere and self.only in (None, scope)

    def _decide(self, scene: Scene, name: str) -> None:
        region = self.plan.region(name)
        if not self.decides(scene, region):
            if any(self.plan.region(link.source) is not region for link in self.plan.inbound[name]):
                self.left.add(scene.region_scope(region))
            return
        skip = routing.why_skipped(self, scene, name)
        if self.witness is not None:
            skip = self._as_witnessed(scene.scope(name), skip, self.witness)
        if skip is not None:
            self._skip(scene, name, skip)
        else:
            self._start(scene, name)

    def _as_witnessed(self, scope: str, skip: routing.Skip | None, witness: Witness) -> routing.Skip | None:
        stopped = witness.stopped(scope)
        if stopped is not None:
            return routing.Skip(stopped, stops=True)
        return None if skip is not None and skip.stops and witness.has_begun(scope) else skip

    def _start(self, scene: Scene, name: str) -> None:
        region, node, part = self.plan.region(name), self.net.nodes[name], self.plan.part(name)
        state = self._region_state(scene, region)
        place = scene.component_place(name)
        counter = self.counter(place.id)
        is_call = part.opens is not None and self.net.containers[part.opens].opening is Opening.JOBLET
        opens = f"{place.id}.__" if is_call else None
        body = facts.ComponentStarted(
            place.id,
            node.tasks[0].kind if node.tasks else "joblet",
            state.place.id,
            routing.sees(scene, name),
            routing.rows_in(self, scene, name),
            opens,
        )
        self.record(Fact(place.id, (*place.clock, counter), body, self._cause(scene, name)))
        component = self.tree.flow.components[place.id]
        if is_call:
            assert component.inside is not None
            assert part.opens is not None
            self.open(component.inside, self.net.containers[part.opens])
        else:
            self.ready.append(component)

    def counter(self, scope: str) -> int:
        known = self.tree.flow.components.get(scope)
        return max(known.counter if known is not None else 0, self.tree.flow.counter(scope))

    def _cause(self, scene: Scene, name: str) -> str | None:
        """The fact that a start rests on: the settling of the latest of its links, by place."""
        best: tuple[tuple[object, ...], str] | None = None
        for scope in routing.sees(scene, name):
            source: ComponentState | RegionState | None
            source = self.tree.flow.regions.get(scope) or self.tree.flow.components.get(scope)
            if source is not None:
                at = (source.place.clock, event_name(scope, source.counter - 1))
                if best is None or at[0] > best[0]:
                    best = at
        return best[1] if best is not None else None

    def _region_state(self, scene: Scene, region: Region) -> RegionState:
        """The sub-job, opened now if this is its first component to start."""
        state = scene.region(region)
        if state is None or state.status not in (RUNNING, OK, ERROR):
            scope = scene.region_scope(region)
            counter = state.counter if state is not None else self.tree.flow.counter(scope)
            body = facts.SubjobStarted(region.name, region.index, scene.state.id)
            clock = (*scene.state.place.clock, (region.index,), counter)
            self.record(Fact(scope, clock, body))
            state = scene.region(region)
        assert state is not None
        return state

    def _skip(self, scene: Scene, name: str, skip: routing.Skip) -> None:
        region = self.plan.region(name)
        scope = scene.region_scope(region)
        place = scene.component_place(name)
        body = facts.ComponentSkipped(
            place.id, scope, skip.reason, skip.upstream, skip.link, region.name, region.index, scene.state.id
        )
        self.record(Fact(place.id, (*place.clock, self.counter(place.id)), body, skip.cause))
        component = self.tree.flow.components[place.id]
        self.settle_component(scene, name, component)

    # ---- the end of a component

    def finish(self, scene: Scene, name: str, component: ComponentState, end: Ended) -> None:
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
            source, target = component.name, scene.scope(link.target)
            self.in_component(
                component, facts.LinkFired(source, target, link.on.value, link.order, link.index), settled
            )
        if dies:
            self.die(resuming.DEAD.format(component.name), name)
        self.settle_component(scene, name, component)

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

    def settle_component(self, scene: Scene, name: str, component: ComponentState) -> None:
        for link in self.plan.outbound[name]:
            if link.on not in OF_REGION:
                self.settle(scene, link, routing.has_fired(link, component))
        for iterator in self.plan.awaiting.get(name, ()):
            self.count_down(scene, iterator)
        index = component.region.index
        scene.unsettled[index] -= 1
        if scene.unsettled[index] == 0:
            if self.only is not None and scene.state is self.root:
                self.is_through = True
            else:
                closing.close_region(self, scene, scene.spec.regions[index])

    def die(self, why: str, *names: str) -> None:
        """Nothing starts any more but the error path of what failed, and what runs always."""
        path = self.plan.error_path(names)
        self.allowed = path if self.allowed is None else self.allowed | path
        self.why_ending = self.why_ending or why

    # ---- recording

    def mark(self, body: Body, *, cause: str | None = None, at: tuple[int, ...] = ()) -> None:
        """Record a fact of the execution scope itself."""
        place = self.state.place
        self.record(Fact(place.id, (*place.clock, at, self.state.counter), body, cause))

    def in_component(self, component: ComponentState, body: Body, cause: str | None) -> None:
        self.record(Fact(component.place.id, (*component.place.clock, component.counter), body, cause))

    def in_region(self, scene: Scene, region: Region, state: RegionState, body: Body, cause: str | None) -> None:
        clock = (*scene.state.place.clock, (region.index, len(region.members)), state.counter)
        self.record(Fact(state.place.id, clock, body, cause))

    def _require_running(self) -> None:
        if self.state.status != "running":
            raise Refused(f"the run is {self.state.status}, not running")


__all__ = ["Ended", "Flow", "FlowJudge", "Verdict"]
