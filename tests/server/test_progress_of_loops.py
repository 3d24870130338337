"""What a watcher sees of a loop while it runs: the log as another process could read it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from penstock.app.embedded import embedded
from penstock.ports.results import decode
from penstock.server.documents import Pinned
from tests.engine import document
from tests.virtual import VirtualClock, VirtualLoop, run_virtually

HOUR = 3600
LOOP = f"""
- step: start
  loop: {{in: [1, {HOUR}, {HOUR}], iterator: s, spec: {{mode: parallel, max_in_flight: 3}}}}
  tool: {{kind: sleep, seconds: "{{{{ iter.s }}}}"}}
"""


def test_the_end_of_an_element_is_in_the_log_while_others_of_its_loop_run(tmp_path: Path) -> None:
    path = tmp_path / "playbook.yaml"
    path.write_text(document(LOOP), encoding="utf-8")

    async def main(loop: VirtualLoop) -> list[Any]:
        engine = embedded(tmp_path / ".penstock", clock=VirtualClock())
        loop.is_busy = lambda: engine.log.backlog > 0 or engine.threads.busy > 0
        pinned = Pinned(str(path), path.read_text(encoding="utf-8"))
        running = asyncio.ensure_future(engine.run("run-1").start(pinned, {}, label=None, trace_id="trace-1"))
        await asyncio.sleep(HOUR / 2)
        durable = list(engine.log.read("run-1"))
        await running
        await engine.close()
        return [decode(entry.payload) for entry in durable if entry.type == "loop.iteration.done"]

    assert [end["index"] for end in run_virtually(main)] == [0]
