"""A power loss after every append of a job that dies, with joblets and iterators in it: a resume goes on dying (D38, J7.2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from penstock.ports.log import Entry
from penstock.server.documents import Documents
from penstock.server.runs import RunSummary
from tests.chaos.engines import MemoryHome, virtually
from tests.chaos.workshop import Workshop
from tests.spec_jobs.support import each, job, sets, sleeps
from tests.views.support import standing as job_standing

DIE = {"type": "die", "params": {"code": 42}}
CALLS = {
    "with a handler of the sub-job": (
        "j (subjob_error) told",
        "told (ok) more",
        "j (ok) next",
        "a (ok) b",
        "a (subjob_ok) c",
    ),
    "with an error link": ("j (error) told", "told (ok) more", "j (ok) next", "a (ok) b", "a (subjob_ok) c"),
    "after another sub-job": ("a (subjob_ok) j", "j (subjob_error) told", "j (subjob_ok) next"),
}
INSIDES = {
    "a component": job("first (ok) bad", first=sets(x=1), bad=DIE),
    "an iteration": job("it (iterate) one", "one (ok) bad", it=each(1, 2), bad=DIE),
    "a sub-job of its own": job(
        "first (parallelise) bad, good", "bad, good (synchronise) met", bad=DIE, good=sleeps(1)
    ),
}


class Noting(MemoryLog):
    """Remembers after how many entries an append was over: what is appended together is lost or kept together."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.boundaries: list[int] = []

    def append(self, execution_id: str, epoch: int, entries: Sequence[Entry], *more: Any) -> int:
        ticket = super().append(execution_id, epoch, entries, *more)
        self.boundaries.append((self.boundaries[-1] if self.boundaries else 0) + len(entries))
        return ticket


@pytest.mark.clause("J7.2")
@pytest.mark.clause("J11.5")
@pytest.mark.parametrize("inside", INSIDES)
@pytest.mark.parametrize("calls", CALLS)
def test_a_job_that_dies_inside_a_joblet_dies_the_same_after_a_power_loss(
    tmp_path: Path, calls: str, inside: str
) -> None:
    (tmp_path / "inside.yaml").write_text(INSIDES[inside])
    (tmp_path / "job.yaml").write_text(job(*CALLS[calls], j={"type": "@inside"}, a=sleeps(5)))
    home = MemoryHome.at(tmp_path)
    log = Noting(home.store)
    documents = Documents(Workshop(), Embedded(tmp_path, log, home.blobs, Workshop()).components)
    document = documents.open(tmp_path / "job.yaml")
    net, _ = documents.compile(document)

    async def begin(engine: Embedded) -> RunSummary:
        return await engine.run("run-1").start(document, {}, label=None, trace_id="t")

    whole = virtually(lambda: home.open(log), begin)
    states = seen(home, net)
    assert (whole.status, whole.exit_code) == ("failed", 42)
    assert states["told"] == "OK"
    assert states["next"] == "SKIPPED"
    for at in log.boundaries[:-1]:
        again = home.cut(at)
        running = {name for name, state in seen(again, net).items() if state == "RUNNING"}
        resumed = virtually(again.open, lambda engine: engine.run("run-1").resume())
        assert (resumed.status, resumed.exit_code) == ("failed", 42), at
        after = seen(again, net)
        assert {name: after.get(name) for name in states if name not in running} == {
            name: state for name, state in states.items() if name not in running
        }


def seen(home: MemoryHome, net: Any) -> dict[str, str]:
    return {name: str(one["state"]) for name, one in job_standing(home.entries(), net.links).components.items()}
