"""Holds a part of an execution on a worker of a fleet: decides inside it, runs it, and reports to the server.

A step run, a range of a loop, a sub-job and some iterations of an iterator share one life cycle: `begin`, `over` (which
returns at the end of the work, whatever ended it), `close`. Meanwhile the server may tell the holder to `stop`, to `curtail`
what it has, and what happened outside its part (`obey`). Afterwards either its last report has been sent (`is_through`), or
the lease is given back with what is `unsent`, or the work broke (`error`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any

from penstock.kernel import sharing
from penstock.kernel.abandon import at_work
from penstock.kernel.decide import Decider, FactsFromServer, GiveUp, Hold, HoldElements, RunOver
from penstock.kernel.errors import Bug
from penstock.kernel.evolve import evolve
from penstock.kernel.facts import ComponentStarted, Fact, RunEnded
from penstock.kernel.fans import Elements, open_parts
from penstock.kernel.judge import Judge
from penstock.kernel.mandate import NOTHING
from penstock.kernel.net import Durability
from penstock.kernel.ranges import ElementsEnded, RangeFailed, RangeOpened, RangeReport
from penstock.kernel.state import RUNNING, ComponentRun, Death, Execution, Run, State, StepRun, Subjob
from penstock.kernel.values import JsonMap
from penstock.ports.ambient import Clock
from penstock.ports.blobs import ResultRef
from penstock.ports.briefing import Briefing, unpack_entries
from penstock.ports.dispatch import MessageKind
from penstock.ports.leases import Caller, FanRange, Lease, ScopeContext
from penstock.ports.log import Entry
from penstock.ports.reports import report_of_facts, report_of_range
from penstock.ports.results import Load
from penstock.ports.wire import to_entry, to_fact
from penstock.worker.report_queue import FLUSH_S, GATHER, Answer, ReportQueue, ask_to_play
from penstock.worker.workforce import LocalWorkforce

PLAYING = frozenset({"run_job", "playbook"})
"""Components that run other executions."""


def unfolded(briefing: Briefing, history: bytes, load: Load) -> tuple[State, Execution, int]:
    """The state of the job according to its log when the sub-job went out, and the number of the last entry."""
    state = State()
    place = briefing.scope.place
    execution = state.root if not place.id else Execution(place=place)
    state.executions[place.id] = state.scopes[place.id] = execution
    entries = unpack_entries(history)
    for entry in entries:
        evolve(state, to_fact(entry, load), entry.ts)
    return state, execution, entries[-1].seq


class Holder(ABC):
    """The work under one lease reports to its holder."""

    lease: Lease

    def __init__(
        self,
        queue: ReportQueue,
        context: ScopeContext,
        state: State,
        judge: Judge,
        workforce: LocalWorkforce,
        clock: Clock,
        gives_way: Callable[[], bool],
    ) -> None:
        """`gives_way`: asked by parts of something large whether other work needs the slot."""
        self.queue = queue
        self.decider = Decider(state, context.scope, context.net, judge)
        self.context = context
        self.workforce = workforce
        self.gives_way = gives_way
        self.recorded = 0
        self.error: BaseException | None = None
        self.is_through = False
        self._clock = clock
        self._name = queue.card.name
        self._entries: list[Entry] = []
        self._due: asyncio.TimerHandle | None = None
        self._over = asyncio.Event()
        self._asides: set[asyncio.Future[None]] = set()
        self._is_strict = context.net.durability is Durability.STRICT

    # ---- from the first word to the last

    @abstractmethod
    def begin(self, briefing: Briefing) -> None:
        """Start what the lease is for."""

    async def over(self) -> None:
        """Return when nobody works on the lease any more. If cancelled, stops the work first."""
        await self.workforce.settled(self.lease)

    async def close(self) -> None:
        if self._due is not None:
            self._due.cancel()
        await self.workforce.close_job(self.context, is_over=False)

    async def stop(self, reason: str) -> None:
        """Stop the work: running tasks end as stopped and nothing else starts; with `interrupt`, the work is only dropped,
        and nothing is reported."""
        await self.workforce.stop(self.lease, reason)

    def curtail(self) -> None:
        """Finish only the parts that are under way; the rest goes to another worker."""
        return  # Nothing to curtail: a lease without parts is always fully under way.

    async def obey(self, command: Any, fetch: Callable[[ResultRef], bytes]) -> None:
        """Carry out a command of the server. `fetch` reads the large contents of a command."""
        if "stop" in command:
            self._aside(self.stop(str(command["stop"])))

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(self._done_aside)

    def _done_aside(self, task: asyncio.Future[None]) -> None:
        self._asides.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.broke(error)

    @property
    def progress(self) -> int:
        """Any number that changes while work is done."""
        return self.recorded

    def is_running(self, scope: str) -> bool:
        """Whether a component of this place has begun and not ended here."""
        run: Run | None = self.decider.state.runs.get(scope)
        return run is not None and run.status == RUNNING

    def failure(self) -> str:
        return str(self.error)

    # ---- deciding

    def decide(self, stimulus: object, *, is_durable_first: bool = False) -> list[Fact]:
        now = self._clock.now()
        facts = self.decider.decide(stimulus, now)
        self._keep(facts, now)
        self._follow(facts, stimulus, is_durable_first=is_durable_first)
        return facts

    @abstractmethod
    def _follow(self, facts: list[Fact], stimulus: object, *, is_durable_first: bool) -> None:
        """Act on what was decided."""

    def record(self, fact: Fact) -> None:
        now = self._clock.now()
        evolve(self.decider.state, fact, now)
        self._keep([fact], now)

    def _keep(self, facts: list[Fact], now: float) -> None:
        self.recorded += len(facts)
        self._entries += [to_entry(fact, 0, now, self._name) for fact in facts]
        if facts and self._due is None:
            self._due = asyncio.get_running_loop().call_later(FLUSH_S, self.flush)

    async def end_run(self, run: StepRun, end: RunEnded) -> None:
        self.decide(RunOver(run, end))

    def give_up(self, run: StepRun, failure: JsonMap) -> None:
        """Give up a step run. A child execution is ended by the server when it learns that the task was given up."""
        self.decide(GiveUp(lambda child: [], run=run, error=failure))

    # ---- reporting

    def flush(self, *, is_last: bool = False) -> None:
        """Send what was decided. Decisions are sent whole: the server could not settle half of one."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        entries = self._taken(is_last=is_last)
        if is_last:
            self.is_through = True
            self.queue.say_lines()
            self.queue.say(MessageKind.DONE, report_of_facts(entries))
            self._over.set()
        elif entries:
            self.queue.say(MessageKind.REPORTED, report_of_facts(entries))

    def _taken(self, *, is_last: bool) -> list[Entry]:
        """The entries that can be reported now."""
        entries, self._entries = self._entries, []
        return entries

    def unsent(self) -> bytes:
        """The report sent along with a lease that is given back."""
        return b""

    def report(self, lease: Lease, report: RangeReport) -> None:
        raise Bug("elements were reported under a lease that is of no range")

    def give_back(self, lease: Lease, reason: str = "returned") -> None:
        self.queue.give_back(b"")

    def gathered_enough(self) -> bool:
        return len(self._entries) >= GATHER

    async def durable(self) -> None:
        self.flush()
        await self.queue.drained()

    @property
    def backlog(self) -> int:
        return len(self._entries)

    async def play(
        self, caller: Caller, path: str, values: JsonMap, return_step: str | None, outputs: tuple[str, ...] = ()
    ) -> Answer:
        self.flush()
        return await ask_to_play(self.queue, caller, path, values, return_step, outputs)

    def now(self) -> float:
        return self._clock.now()

    def broke(self, error: BaseException) -> None:
        self.error = error
        self._over.set()


class StepHolder(Holder):
    """Holds one step run: its pipeline, or its loop."""

    def begin(self, briefing: Briefing) -> None:
        self.decider.mandate.only = NOTHING
        self.lease = Lease(self.context, self.decider, briefing.run)
        self.workforce.start(self.lease, briefing.run, self)

    def _follow(self, facts: list[Fact], stimulus: object, *, is_durable_first: bool) -> None:
        if facts and type(facts[-1].body) is RunEnded:
            self.flush(is_last=True)

    def unsent(self) -> bytes:
        return report_of_facts(self._taken(is_last=True))


class RangeHolder(Holder):
    """Holds some elements of a fanned-out loop: decides nothing, and reports the results of several elements together."""

    def begin(self, briefing: Briefing) -> None:
        assert isinstance(briefing.part, FanRange)
        self.lease = Lease(self.context, self.decider, briefing.part)
        self.workforce.start(self.lease, briefing.run, self)

    def _follow(self, facts: list[Fact], stimulus: object, *, is_durable_first: bool) -> None: ...

    async def stop(self, reason: str) -> None:
        """Finished elements are reported even if the rest is only dropped."""
        await super().stop("returned" if reason == "interrupt" else reason)

    @property
    def progress(self) -> int:
        return self.lease.range.progress

    def report(self, lease: Lease, report: RangeReport) -> None:
        elements = lease.range.elements
        match report:
            case RangeOpened():
                elements.hi = elements.hi if elements.hi is not None else report.hi
            case ElementsEnded():
                self.queue.say_lines()
                self.is_through = elements.hi is not None and report.hi >= elements.hi
            case RangeFailed():
                self.is_through = True
        self.queue.say(MessageKind.DONE if self.is_through else MessageKind.REPORTED, report_of_range(report))


class SubjobHolder(Holder):
    """Holds one sub-job of a job, or some elements of an iterator in it."""

    known = 0
    """The last entry of the log that is known here."""
    load: Load
    _at_work = 0
    _is_idle = False

    def begin(self, briefing: Briefing) -> None:
        held: Subjob = self.decider.execution.subjobs[briefing.region]
        self.lease = Lease(self.context, self.decider, held)
        if briefing.elements is not None:
            self.decide(HoldElements(briefing.iterator, briefing.elements))
            return
        before: list[Run] = list(at_work(held.members.values()))
        self._start(before, is_durable_first=False)
        self.decide(Hold(briefing.region))

    async def over(self) -> None:
        await self._over.wait()

    def failure(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"

    async def stop(self, reason: str) -> None:
        if reason == "cancel":
            self.context.scope.cancelling = True
        await self.workforce.stop(self.lease, "cancel" if reason == "abort" else reason)
        if reason == "interrupt":
            self._over.set()

    async def obey(self, command: Any, fetch: Callable[[ResultRef], bytes]) -> None:
        """Also handles news from outside the sub-job, and the notice that the job is dying."""
        if "dies" in command:
            self.decider.mandate.deaths = [Death(scope, why) for scope, why in command["dies"]]
        elif "news" in command:
            self._news(await asyncio.to_thread(fetch, ResultRef.from_json(command["news"])))
        else:
            await super().obey(command, fetch)

    def curtail(self) -> None:
        """When holding elements: make the iteration that is under way the last one here."""
        mandate = self.decider.mandate
        held = mandate.elements
        if held is not None and held.hi is not None:
            held.hi = min(held.hi, max(held.lo, self.decider.state.runs[mandate.fan].fan.next_index))

    def _news(self, history: bytes) -> None:
        entries = [one for one in unpack_entries(history) if one.seq > self.known]
        if entries and not self._over.is_set():
            self.known = entries[-1].seq
            self.decide(FactsFromServer([(to_fact(one, self.load), one.ts) for one in entries]))

    # ---- deciding

    def decide(self, stimulus: object, *, is_durable_first: bool = False) -> list[Fact]:
        if isinstance(stimulus, RunOver | Elements):
            self._at_work -= 1
        if isinstance(stimulus, Elements):
            stimulus.spread = self._spreads(stimulus)
        return super().decide(stimulus, is_durable_first=is_durable_first)

    def _spreads(self, given: Elements) -> bool:
        """Whether to spread the iterator over several workers. Bodies that run child executions are not spread: the server
        must know the caller while the child runs."""
        d, run = self.decider, given.run
        assert isinstance(run, ComponentRun)
        if d.mandate.elements is not None or not sharing.may_spread(d, run, given.total, given.parallel or 1):
            return False
        return not PLAYING & sharing.kinds_inside(d.plan, d.name_of(run))

    def _follow(self, facts: list[Fact], stimulus: object, *, is_durable_first: bool) -> None:
        started = [one.scope for one in facts if type(one.body) is ComponentStarted and one.body.opens is None]
        if self.decider.mandate.elements is not None and self.gives_way():
            self.curtail()
        self._start([self.decider.state.runs[scope] for scope in started], is_durable_first=is_durable_first)
        self._idle(not self._at_work)
        if sharing.is_through(self.decider):
            self.flush(is_last=True)
        elif self.gathered_enough():
            self.flush()

    def _start(self, fresh: list[Run], *, is_durable_first: bool) -> None:
        self._at_work += len(fresh)
        if fresh and (is_durable_first or self._is_strict):
            self._aside(self._start_once_kept(fresh))
            return
        self._start_now(fresh)

    def _start_now(self, fresh: list[Run]) -> None:
        for run in fresh:
            self.workforce.start(self.lease, run, self)

    async def _start_once_kept(self, fresh: list[Run]) -> None:
        await self.durable()
        self._start_now(fresh)

    def _idle(self, is_idle: bool) -> None:
        """Nothing to do until other sub-jobs progress: free this worker slot."""
        if is_idle != self._is_idle:
            self._is_idle = is_idle
            self.queue.waits(1 if is_idle else -1)

    def _taken(self, *, is_last: bool) -> list[Entry]:
        """When holding elements, report an iteration only once it is complete, so that the next holder can start it afresh."""
        entries, self._entries = self._entries, []
        mandate = self.decider.mandate
        if mandate.elements is None or is_last:
            return entries
        open_ = tuple(open_parts(self.decider.state.runs[mandate.fan]))
        self._entries = [one for one in entries if _lies_in(one.scope, open_)]
        return [one for one in entries if not _lies_in(one.scope, open_)]


def _lies_in(scope: str, iterations: tuple[str, ...]) -> bool:
    return any(scope == one or scope.startswith(f"{one}.") for one in iterations)
