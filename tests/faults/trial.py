"""Trials: batches of runs, and meanwhile schedules of faults. A seed says who is hurt, how and when, and which runs there are."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from penstock.kernel.values import JsonMap
from penstock.ports.results import decode
from tests.faults.documents import Effects, Work
from tests.faults.fleet import LEASE_S, AlreadyOver, Fleet
from tests.faults.logs import check_log
from tests.faults.oracle import check_effects, check_nothing_is_left, check_run
from tests.faults.processes import SKEW_S

T = TypeVar("T")

TOGETHER = 6
"""So many trials share a fleet at a time."""
RUNS = 2 if "PENSTOCK_FAULT_SEEDS" in os.environ else 1
"""Of each trial; in a soak there is more at a time."""
BEGIN_S = 0.8
"""All faults of trials that are together begin so soon. Who has taken over from one who was lost is seldom lost as well then:
no run has more bad luck than it is promised to bear."""
RECOVERY_S = 60.0
"""When the last fault is over, everything must have ended within so long: many times what it takes, on a machine that is busy."""
SKEWS = (0.0, 0.0, -SKEW_S, SKEW_S)
KINDS = {
    "servers": {"kill": 4, "freeze": 4, "stop": 1, "cut": 2, "stall": 2, "fill": 2, "clock": 2},
    "workers": {"kill": 4, "freeze": 4, "stop": 1, "cut": 2, "stall": 2, "clock": 2},
    "postgres": {"restart": 2, "crash": 2, "sever": 3},
}
"""What happens to whom, and how often in proportion."""
SERVERS = ("s0", "s1")
WORKERS = ("w0", "w1", "w2")
_numbers = count()


@dataclass(frozen=True)
class Fault:
    """From `at` on, for `lasts` seconds. `who` is what it happens to."""

    at: float
    kind: str
    who: str
    lasts: float
    skew_s: float = 0.0

    def __str__(self) -> str:
        clock = f" clock {self.skew_s:+g}" if self.skew_s else ""
        return f"{self.at:.2f}s {self.kind} {self.who} for {self.lasts:.2f}s{clock}"


class Schedule:
    """One to three faults, at most one of them to a worker."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        harms_workers = self.chance.random() < 0.6
        others = self.chance.randint(0 if harms_workers else 1, 2)
        drawn = [*self.chance.sample(["servers", "servers", "postgres"], others), *["workers"] * harms_workers]
        self.faults = sorted((self._draw(group) for group in drawn), key=lambda fault: fault.at)

    def _draw(self, group: str) -> Fault:
        chance = self.chance
        kinds = KINDS[group]
        (kind,) = chance.choices(list(kinds), list(kinds.values()))
        at = chance.uniform(0.0, BEGIN_S)
        if group == "postgres":
            return Fault(at, kind, group, 0.0)
        who = chance.choice(SERVERS if group == "servers" else WORKERS)
        if kind in ("cut", "stall"):
            who = who[0] + "0"  # Those are on wires.
        if kind in ("kill", "stop"):
            return Fault(at, kind, who, chance.uniform(0.0, 0.4), chance.choice(SKEWS))
        if kind == "clock":
            return Fault(at, kind, who, 0.0, chance.choice([-SKEW_S, SKEW_S]))
        lasts = chance.choice([chance.uniform(0.1, 0.6), chance.uniform(1.1, 1.5) * LEASE_S])
        return Fault(at, kind, who, lasts)


@dataclass
class Trial:
    fleet: Fleet
    works: list[Work]
    seed: int
    runs: dict[str, Work] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    """Runs that were cancelled on the way, and have come to one end or the other."""
    told: str = ""
    errors: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        """Submit the runs, and let the faults happen meanwhile; return when all of these are over."""
        schedule = Schedule(self.seed)
        self.told = f"seed {self.seed}: " + "; ".join(map(str, schedule.faults))
        began = time.monotonic()
        threads = [threading.Thread(target=self._happens, args=(fault, began)) for fault in schedule.faults]
        for thread in threads:
            thread.start()
        try:
            for work in self._batch(schedule.chance):
                self.runs[self._submit(work, schedule.chance)] = work
            if schedule.chance.random() < 0.4:
                self._cancel_one(schedule.chance)
        except BaseException as error:  # Whoever waits for this trial raises it.
            self.errors.append(error)
        for thread in threads:
            thread.join()

    # ---- runs

    def _batch(self, chance: random.Random) -> list[Work]:
        return chance.sample(self.works, RUNS)

    def _submit(self, work: Work, chance: random.Random) -> str:
        """Through whichever server answers, and often through another one as well: with one key it is one run."""
        key = f"{self.seed}-{work.name}-{next(_numbers)}"
        names = chance.sample(SERVERS, 2)
        found = {self._ask(names[0], work, key)}
        if chance.random() < 0.5:
            found.add(self._ask(names[1], work, key))
        (run,) = found
        return run

    def _cancel_one(self, chance: random.Random) -> None:
        run = self._submit(chance.choice(self.works), chance)
        self.cancelled.append(run)
        _pause(chance.uniform(0.0, BEGIN_S))
        with suppress(AlreadyOver):
            self._until_answered(chance.choice(SERVERS), lambda name: self.fleet.cancel(name, run))

    def _ask(self, name: str, work: Work, key: str) -> str:
        return self._until_answered(name, lambda name: self.fleet.submit(name, work.document, work.payload, key))

    def _until_answered(self, name: str, ask: Callable[[str], T]) -> T:
        """Ask this server, and when it does not answer the other one, and so on."""
        end = time.monotonic() + RECOVERY_S
        while True:
            try:
                return ask(name)
            except OSError as error:
                if time.monotonic() > end:
                    raise AssertionError("no server answers") from error
                self.fleet.check_processes()
                time.sleep(0.05)
                name = SERVERS[1 - SERVERS.index(name)]

    # ---- faults

    def _happens(self, fault: Fault, began: float) -> None:
        happens: dict[str, Callable[[Fault], None]] = {
            "kill": self._kill,
            "stop": self._stop,
            "freeze": self._freeze,
            "cut": self._cut,
            "stall": self._stall,
            "fill": self._fill,
            "clock": self._move_clock,
            "restart": self._restart,
            "crash": self._restart,
            "sever": self._sever,
        }
        try:
            _pause(fault.at - (time.monotonic() - began))
            with self.fleet.locks[fault.who]:
                happens[fault.kind](fault)
        except BaseException as error:  # Whoever waits for this trial raises it.
            self.errors.append(error)

    def _kill(self, fault: Fault) -> None:
        self.fleet.processes[fault.who].kill()
        _pause(fault.lasts)
        self.fleet.restart(fault.who, fault.skew_s)

    def _stop(self, fault: Fault) -> None:
        process = self.fleet.processes[fault.who]
        process.stop()
        process.wait()
        self.fleet.restart(fault.who, fault.skew_s)

    def _freeze(self, fault: Fault) -> None:
        process = self.fleet.processes[fault.who]
        process.freeze()
        _pause(fault.lasts)
        process.thaw()

    def _cut(self, fault: Fault) -> None:
        self.fleet.wires[fault.who].cut()
        _pause(fault.lasts)
        self.fleet.wires[fault.who].heal()

    def _stall(self, fault: Fault) -> None:
        self.fleet.wires[fault.who].stall()
        _pause(fault.lasts)
        self.fleet.wires[fault.who].heal()

    def _fill(self, fault: Fault) -> None:
        """A server that just starts would not be able to say why it cannot."""
        process = self.fleet.processes[fault.who]
        end = time.monotonic() + LEASE_S
        while not process.has_said("serving ") and time.monotonic() < end:
            _pause(0.02)
        if not process.has_said("serving "):
            return
        process.fill_disk()
        _pause(fault.lasts)
        process.clear_disk()

    def _move_clock(self, fault: Fault) -> None:
        self.fleet.processes[fault.who].move_clock(fault.skew_s)

    def _restart(self, fault: Fault) -> None:
        self.fleet.cluster.stop("immediate" if fault.kind == "crash" else "fast")
        self.fleet.cluster.start()

    def _sever(self, fault: Fault) -> None:
        self.fleet.sever()


def _pause(seconds: float) -> None:
    time.sleep(max(0.0, seconds))


@dataclass
class Trials:
    """Those that are together in one life of a fleet: each has its runs, and bears the faults of all."""

    fleet: Fleet
    effects: Effects
    works: list[Work]
    unbroken: dict[str, list[JsonMap]]

    def run(self, seeds: list[int]) -> None:
        trials = [Trial(self.fleet, self.works, seed) for seed in seeds]
        threads = [threading.Thread(target=trial.run) for trial in trials]
        began = time.monotonic()
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            errors = [error for trial in trials for error in trial.errors]
            if errors:
                raise BaseExceptionGroup("trials", errors)
            self.check_cancelled([run for trial in trials for run in trial.cancelled])
            self.check({run: work for trial in trials for run, work in trial.runs.items()})
        except (AssertionError, BaseExceptionGroup) as error:
            told = [trial.told for trial in trials]
            took = f"after {time.monotonic() - began:.2f}s"
            raise AssertionError("\n".join([*told, took, str(error), self.fleet.state()])) from error

    def submit(self, work: Work, name: str = "s0") -> str:
        return self.fleet.submit(name, work.document, work.payload, f"{work.name}-{next(_numbers)}")

    def check_cancelled(self, runs: list[str]) -> None:
        ends = self.fleet.until_ended(runs, RECOVERY_S)
        with self.fleet.stores() as (log, blobs):
            for run, status in ends.items():
                assert status in ("completed", "cancelled"), (run, [decode(one.payload) for one in log.read(run)])
                check_log(log, blobs, run, status)

    def check(self, runs: dict[str, Work]) -> None:
        """All of these come to their end, and what they leave behind is what it must be."""
        self.fleet.until_ended(list(runs), RECOVERY_S)
        with self.fleet.stores() as (log, blobs):
            for run, work in runs.items():
                check_run(log, blobs, work, run, self.unbroken[work.name])
                check_effects(self.effects, work, run)
        check_nothing_is_left(self.fleet)
        self._check_processes()

    def _check_processes(self) -> None:
        self.fleet.check_processes()
        for process in self.fleet.processes.values():
            for word in ("Traceback", "never awaited", "never retrieved"):
                assert word not in process.said(), process.said()
