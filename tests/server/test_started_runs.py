"""Schedules and hooks in a whole fleet: what they start runs to its end, and sees what it was started for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from penstock.adapters.sqlite.control import MemoryControl, MemoryControlStore
from penstock.app.server import Server
from penstock.kernel.values import JsonMap
from penstock.ports.control import Hook, Schedule
from penstock.ports.results import decode
from penstock.server.catalog import CatalogDocuments
from penstock.server.cron import iso, upcoming
from penstock.server.execution_owner import Submission
from penstock.server.hooks import Recent, key_of, payload_of, sign, verify
from penstock.server.schedules import Scheduler, keep_schedule
from tests.engine import document
from tests.fleet.scene import Fleet, on_fleet

SHOW = """
- step: start
  tool:
  - {name: wait, kind: sleep, seconds: 20}
  - {name: shown, kind: noop, value: "{{ workload.event }} {{ workload.region }}"}
"""


class Starting:
    """A server that starts runs of documents in the catalog."""

    def __init__(self, scene: Fleet, server: Server, store: MemoryControlStore) -> None:
        self.server = server
        self.control = MemoryControl(store, now=scene.clock.now)
        self.documents = CatalogDocuments(server.tools, server.components, self.control)
        self.scheduler = Scheduler(self.control, self.submit, scene.clock.now, server.log)
        self.task = asyncio.ensure_future(self.scheduler.run())

    async def submit(
        self, path: str, version: int | None, payload: JsonMap, context: str | None, key: str | None, label: str | None
    ) -> str:
        pinned = self.documents.filed(path, version)
        return await self.server.hosting.submit(Submission(pinned, payload, label, key, context))

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def shown(scene: Fleet, execution_id: str) -> Any:
    ends = [decode(entry.payload) for entry in scene.entries(execution_id) if entry.type == "task.done"]
    outcome: Any = ends[-1]
    return outcome["outcome"]["result"]


def test_a_schedule_runs_its_document_once_a_slot_though_a_server_dies(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        store = MemoryControlStore()
        one, two = [Starting(scene, await scene.serve(name), store) for name in ("s1", "s2")]
        scene.work("w1")
        one.control.file("show", document(SHOW), "playbook", "d", {})
        schedule = Schedule("often", "* * * * *", "show", payload={"region": "eu"})
        kept = keep_schedule(one.control, schedule, scene.clock.now())
        slots = upcoming(kept, kept.fired_to, 5)
        await asyncio.sleep(slots[1] - scene.clock.now() + 10)
        await one.stop()
        await scene.kill_server("s1")
        await asyncio.sleep(slots[4] - scene.clock.now() + 1)
        await two.stop()
        runs = scene.log.headers()[::-1]
        assert [run.label for run in runs] == ["often"] * 5
        for run, slot in zip(runs, slots, strict=True):
            assert (await scene.ended(run.execution_id)).status == "completed"
            assert iso(slot) in shown(scene, run.execution_id)
            assert shown(scene, run.execution_id).endswith(" eu")
            await scene.check_replay(run.execution_id)
        last = two.control.schedule("often")
        assert last is not None
        assert (last.fired_to, last.last_run) == (slots[4], runs[4].execution_id)

    on_fleet(tmp_path, scenario)


def test_a_document_that_is_not_there_or_has_errors_is_shown_and_later_runs(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        starting = Starting(scene, await scene.serve(), MemoryControlStore())
        control = starting.control
        keep_schedule(control, Schedule("often", "* * * * *", "show"), scene.clock.now())
        seen = []
        for text in (None, "- step: start\n  tool: {kind: no_such_tool}", SHOW):
            if text is not None:
                control.file("show", document(text), "playbook", "d", {})
            await asyncio.sleep(60)
            found = control.schedule("often")
            assert found is not None
            seen.append((found.last_error or "", found.last_run))
        await starting.stop()
        assert "there is no `show` in the catalog" in seen[0][0]
        assert "the document is not valid" in seen[1][0]
        assert seen[2][0] == ""
        assert [run is not None for _, run in seen] == [False, False, True]
        assert len(scene.log.headers()) == 1

    on_fleet(tmp_path, scenario)


def test_a_request_that_is_repeated_is_one_run_which_sees_it(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        starting = Starting(scene, await scene.serve(), MemoryControlStore())
        scene.work("w1")
        starting.control.file("show", document(SHOW), "playbook", "d", {})
        hook = Hook("pushed", "show", secret="0123456789abcdef", payload={"region": "eu"})
        body = b'{"ref": "refs/heads/{{ workload.region }}", "region": "us"}'
        headers = {
            "Content-Type": "application/json",
            "X-Penstock-Signature": sign("0123456789abcdef", body, scene.clock.now()),
        }
        made, recent = set(), Recent()
        for _ in range(3):
            verify(hook, headers, body, scene.clock.now())
            payload = payload_of(hook, headers, body)
            key = key_of(hook, headers, body, scene.clock.now(), recent)
            made.add(await starting.submit(hook.path, hook.version, payload, None, key, None))
            await asyncio.sleep(30)
        await starting.stop()
        (run,) = made
        assert (await scene.ended(run)).status == "completed"
        text = shown(scene, run)
        assert "refs/heads/{{ workload.region }}" in text
        assert text.endswith(" eu")

    on_fleet(tmp_path, scenario)
