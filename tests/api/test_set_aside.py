"""A run that its server could not go on with: everybody is told the same of it, and it can be resumed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.service import QUICK, Api, Running, serving
from tests.engine import document

JOB = "components:\n  - {name: wait, type: sleep, params: {seconds: 600}}\n"
SLOW = document("- step: start\n  tool: [{name: wait, kind: sleep, seconds: 600}]\n")


def set_aside(running: Running, run: str) -> None:
    """As a server does with a run that it cannot drive: let go of it, and mark it without an event."""
    service = running.service
    assert service is not None
    assert service.server is not None
    hosting = service.server.hosting

    async def aside() -> None:
        hosted = hosting.hosted[run]
        await hosted.run.let_go()
        hosted.task.cancel()
        await asyncio.gather(hosted.task, return_exceptions=True)
        hosting.hosted.pop(run, None)
        await hosted.run.set_aside("it cannot be driven")

    assert running._loop is not None
    asyncio.run_coroutine_threadsafe(aside(), running._loop).result(30)


@pytest.mark.parametrize("text", [SLOW, JOB], ids=["playbook", "job"])
def test_all_views_of_a_run_that_was_set_aside_agree(tmp_path: Path, text: str) -> None:
    with serving(tmp_path) as running:
        api = Api(running.url)
        run = api.submit(text)
        while not api.events(run):
            pass
        set_aside(running, run)
        assert api.get(f"/api/executions/{run}/header").json()["status"] == "interrupted"
        shown: dict[str, Any] = api.get(f"/api/executions/{run}").json()
        assert (shown["status"], shown["exit_code"]) == ("interrupted", 3)
        assert [one["status"] for one in api.get("/api/executions").json()["runs"]] == ["interrupted"]
        assert api.get("/api/executions", status="interrupted").json()["runs"][0]["execution_id"] == run
        followed = api.get(f"/api/executions/{run}/events", follow="true").text  # It ends by itself.
        assert json.loads(followed.splitlines()[0])["execution_id"] == run
        assert api.post(f"/api/executions/{run}/cancel", {}).status_code == 202
        assert api.until(run, lambda status: status == "cancelled") == "cancelled"
        api.close()


def test_a_run_that_was_set_aside_before_its_first_event_is_resumed_with_its_inputs(tmp_path: Path) -> None:
    from penstock.app.stores import StoreLocations, open_log
    from penstock.ports.log import Header
    from penstock.server.documents import Pinned

    text = QUICK.replace('"hello"', '"{{ workload.word }}"')

    async def registered() -> None:
        log = open_log(StoreLocations(tmp_path), "nobody")
        header = Header("run-0", "playbook", "p", "p.yaml", "d", "interrupted", 1.0)
        await log.create(header, Pinned("p.yaml", text).registered({"word": "mine"}, None, None))
        await log.close()

    asyncio.run(registered())
    with serving(tmp_path) as running:
        api = Api(running.url)
        assert api.get("/api/executions/run-0").json()["status"] == "interrupted"
        assert api.post("/api/executions/run-0/resume").status_code == 202
        assert api.until("run-0", lambda status: status == "completed") == "completed"
        assert api.get("/api/executions/run-0").json()["ctx"] is not None
        assert api.events("run-0")[0]["payload"]["workload"] == {"word": "mine"}
        api.close()
