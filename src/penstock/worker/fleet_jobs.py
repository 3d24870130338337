"""Holds a sub-job on a worker of a fleet: decides inside it, runs its components, and tells the server what was decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.kernel.evolve import Execution, evolve
from penstock.kernel.facts import Fact
from penstock.kernel.fanout import Stretch
from penstock.kernel.flow import sharing, spreading
from penstock.kernel.flow.decide import Ended, Flow, FlowJudge
from penstock.kernel.flow.state import ComponentState, Death, RegionState
from penstock.kernel.net import Durability
from penstock.kernel.state import ExecutionState
from penstock.kernel.values import Json, JsonMap
from penstock.ports.ambient import Clock
from penstock.ports.briefing import Briefing, unpack_entries
from penstock.ports.dispatch import NoteKind
from penstock.ports.leases import Caller, Setting, SubjobLease
from penstock.ports.log import Entry
from penstock.ports.results import Load
from penstock.ports.saying import said_facts
from penstock.ports.wire import to_entry, to_fact
from penstock.worker.desk import Desk
from penstock.worker.fleet_reports import FLUSH_S, GATHER, Answer, Teller, ask_to_play
from penstock.worker.job_crew import JobCrew

PLAYING = frozenset({"run_job", "playbook"})
"""Components that run other executions."""


def _lies_in(scope: str, iterations: tuple[str, ...]) -> bool:
    return any(scope == one or scope.startswith(f"{one}.") for one in iterations)


def unfolded(briefing: Briefing, history: bytes, load: Load) -> tuple[Execution, ExecutionState, int]:
    """The job as its log had it when the sub-job went out, and the last entry of that."""
    tree = Execution()
    place = briefing.scope.place
    state = tree.root if not place.id else ExecutionState(place=place)
    tree.executions[place.id] = state
    entries = unpack_entries(history)
    for entry in entries:
        evolve(tree, to_fact(entry, load), entry.ts)
    return tree, state, entries[-1].seq


class SubjobHolder:
    """Decides and runs one sub-job. It is what the components report to."""

    def __init__(
        self,
        teller: Teller,
        setting: Setting,
        tree: Execution,
        known: int,
        region: str,
        judge: FlowJudge,
        desk: Desk,
        clock: Clock,
        gives_way: Callable[[], bool],
    ) -> None:
        """`gives_way`: asked now and then by whoever holds some iterations: does somebody else need the place?"""
        self.teller = teller
        self._gives_way = gives_way
        self.recorded = 0
        self.error: BaseException | None = None
        self._clock = clock
        self._name = teller.card.name
        self._tree = tree
        self._known = known
        """The last entry of the log that is known here."""
        self._load = desk.load
        self._entries: list[Entry] = []
        self._due: asyncio.TimerHandle | None = None
        self._over = asyncio.Event()
        self._asides: set[asyncio.Future[None]] = set()
        self._at_work = 0
        self._is_idle = False
        self.flow = Flow(tree, setting.scope, setting.net, judge, self._record)
        self.lease = SubjobLease(setting, self.flow, self._region(setting.scope, region))
        self.crew = JobCrew(desk, setting, self.flow)
        self._is_strict = setting.net.durability is Durability.STRICT

    def _region(self, state: ExecutionState, scope: str) -> RegionState:
        assert state.flow is not None
        return state.flow.regions[scope]

    def begin(self, stretch: Stretch | None) -> None:
        region = self.lease.region
        if stretch is not None:
            spreading.take(self.flow, stretch)
            self._go_on()
            return
        self.flow.ready.extend(sharing.hold(self.flow, region.place.id))
        self._go_on()

    @property
    def is_through(self) -> bool:
        return sharing.is_through(self.flow)

    async def over(self) -> None:
        await self._over.wait()

    async def stop(self, reason: str) -> None:
        """Told to stop: what is at work ends as stopped, and nothing else starts. Or only let go, and say nothing."""
        if reason == "cancel":
            self.lease.setting.scope.cancelling = True
        await self.crew.stop(self.lease, "cancel" if reason == "abort" else reason, 0.0)
        if reason == "interrupt":
            self._over.set()

    def dies(self, deaths: list[list[str]]) -> None:
        self.flow.mandate.deaths = [Death(scope, why) for scope, why in deaths]

    def curtail(self) -> None:
        """Of a stretch: the iteration that is under way is the last one here. The others go to somebody else."""
        stretch = self.flow.mandate.stretch
        if stretch is not None:
            iterator = self._tree.flow.components[stretch.iterator].iterator
            assert iterator is not None
            stretch.hi = min(stretch.hi, max(stretch.lo, iterator.next_index))

    def news(self, history: bytes) -> None:
        """What has happened around the sub-job since it went out, or since the last news."""
        entries = [one for one in unpack_entries(history) if one.seq > self._known]
        if entries and not self._over.is_set():
            self._known = entries[-1].seq
            sharing.catch_up(self.flow, [(to_fact(one, self._load), one.ts) for one in entries])
            self._go_on()

    async def close(self) -> None:
        if self._due is not None:
            self._due.cancel()
        await self.crew.close()

    # ---- deciding

    def _record(self, fact: Fact) -> None:
        ts = self._clock.now()
        evolve(self._tree, fact, ts)
        self.recorded += 1
        self._entries.append(to_entry(fact, 0, ts, self._name))

    def ended(self, lease: SubjobLease, component: ComponentState, end: Ended) -> None:
        self._at_work -= 1
        self.flow.end(component, end)
        self._go_on()

    def iterate(
        self, lease: SubjobLease, component: ComponentState, total: int | None, items: Json, parallel: int, mode: str
    ) -> None:
        self._at_work -= 1
        spread = self._spreads(component, total, parallel)
        self.flow.iterate(component, total, items, parallel, mode, spread=spread)
        self._go_on(is_kept_first=items is not None)

    def _spreads(self, component: ComponentState, total: int | None, parallel: int) -> bool:
        """What runs other executions is spread by these, and has to be known to the server while it runs."""
        if self.flow.mandate.stretch is not None or not spreading.may_spread(self.flow, component, total, parallel):
            return False
        return not PLAYING & spreading.kinds_inside(self.flow.plan, self.flow.name_of(component))

    def _go_on(self, *, is_kept_first: bool = False) -> None:
        fresh = list(self.flow.ready)
        self.flow.ready.clear()
        if self.flow.mandate.stretch is not None and self._gives_way():
            self.curtail()
        self._at_work += len(fresh)
        self._idle(not self._at_work)
        if self.is_through:
            self.flush(is_last=True)
            self._over.set()
            return
        if is_kept_first or self._is_strict:
            self.flush()
            task = asyncio.ensure_future(self._start_once_kept(fresh))
            self._asides.add(task)
            task.add_done_callback(self._asides.discard)
            return
        for component in fresh:
            self.crew.start(self.lease, component, self)
        if len(self._entries) >= GATHER:
            self.flush()
        elif self._entries and self._due is None:
            self._due = asyncio.get_running_loop().call_later(FLUSH_S, self.flush)

    def _idle(self, is_idle: bool) -> None:
        """Nothing can be done here before other sub-jobs have done theirs: they may have our place."""
        if is_idle != self._is_idle:
            self._is_idle = is_idle
            self.teller.waits(1 if is_idle else -1)

    async def _start_once_kept(self, fresh: list[ComponentState]) -> None:
        await self.teller.drained()
        for component in fresh:
            self.crew.start(self.lease, component, self)

    def flush(self, *, is_last: bool = False) -> None:
        """Whole decisions go out together: what is half told could not be settled."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        entries, self._entries = self._entries, []
        if self.flow.mandate.stretch is not None and not is_last:
            # Of an iteration all is told or nothing: whoever has it next begins with a clean sheet.
            open_ = tuple(spreading.open_scopes(self.flow, self.flow.mandate.stretch))
            self._entries = [one for one in entries if _lies_in(one.scope, open_)]
            entries = [one for one in entries if not _lies_in(one.scope, open_)]
        if is_last:
            self.teller.say_lines()
            self.teller.say(NoteKind.DONE, said_facts(entries))
        elif entries:
            self.teller.say(NoteKind.SAID, said_facts(entries))

    # ---- the rest of what components ask of their server

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Answer:
        self.flush()
        return await ask_to_play(self.teller, caller, path, values, return_step, outputs)

    async def durable(self) -> None:
        self.flush()
        await self.teller.drained()

    @property
    def backlog(self) -> int:
        return len(self._entries)

    def now(self) -> float:
        return self._clock.now()

    def broke(self, error: BaseException) -> None:
        self.error = error
        self._over.set()
