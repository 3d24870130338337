"""A fleet whose workers know NATS and no database, as processes: what it runs ends as in one process, whatever becomes of NATS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import nats
import pytest

from penstock.app.embedded import embedded
from penstock.app.stores import StoreLocations, open_log
from penstock.kernel.values import JsonMap
from penstock.server.documents import Pinned
from penstock.views.canonical import canonical
from tests.api.service import Api
from tests.cli.children import Child, running
from tests.engine import document
from tests.servers import Nats, nats_server, postgres_server, postgres_url
from tests.virtual import VirtualClock, run_virtually

__all__ = ["postgres_server", "postgres_url"]

PLAYBOOK = document("""
- step: start
  tool: [{name: a, kind: noop, value: 5}]
  next:
    spec: {mode: inclusive}
    arcs: [{step: each}, {step: fan}]
- step: each
  loop:
    in: "{{ [1, 2, 3, 4, 5, 6] }}"
    iterator: x
    spec: {mode: parallel, max_in_flight: 2}
  tool:
  - {name: wait, kind: sleep, seconds: 0.1}
  - {name: out, kind: noop, value: "{{ iter.x * 2 }}"}
  next: {arcs: [{step: done}]}
- step: fan
  spec: {loop_mode: fanout, fanout: {range_size: 3}}
  loop: {in: {range: 60}, iterator: i}
  tool:
  - {name: wait, kind: sleep, seconds: 0.04}
  - {name: out, kind: noop, value: "{{ iter.i * 2 }}"}
  next: {arcs: [{step: done, args: {fan: "{{ event.result.results }}"}}]}
- step: done
  spec: {join: [each, fan]}
  tool: [{name: z, kind: noop, value: "{{ args.fan }}"}]
""")

JOB = """
apiVersion: penstock/v1
kind: Job
metadata: {name: forks}
components:
  src: {type: fixed_rows, params: {columns: [id, v], rows: [[1, 10], [2, 20], [3, 30]]}}
  go: {type: set_global, params: {values: {begun: true}}}
  a: {type: derive, params: {columns: {w: "v * 2"}}}
  b: {type: aggregate, params: {by: [], measures: {s: "sum(v)"}}}
  b2: {type: set_global, params: {values: {sum: "{{ global.begun }}"}}}
  j: {type: sql, params: {query: "select sum(w) as n from input"}}
  it: {type: iterate_list, params: {items: [1, 2]}}
  body: {type: set_global, params: {values: {last: "{{ iteration.item }}"}}}
connections:
  data:
  - src.main -> a.input
  - src.main -> b.input
  - a.main -> j.input
  control:
  - src (ok) go
  - go (parallelise) a, b
  - b (ok) b2
  - a, b (synchronise) j
  - j (ok) it
  - it (iterate) body
"""


@dataclass
class Fleet:
    """One server, and two workers that are told of NATS and of a folder for results, and of no database."""

    broker: Nats
    database: str
    server: Child
    api: Api

    def play(self, text: str, trouble: Callable[[Fleet], Coroutine[Any, Any, None]] | None = None) -> list[JsonMap]:
        """The canonical timeline of a run, in the middle of which there is trouble."""
        run = self.api.submit(text)
        if trouble is not None:
            self.server.until(lambda: self.api.get("/api/pools").json()["pools"][0]["held"] > 2)
            asyncio.run(trouble(self))
        assert self.api.ended(run) == "completed"
        log = open_log(StoreLocations(Path("reader"), self.database), "reader")
        try:
            return list(canonical(log.read(run), run))
        finally:
            asyncio.run(log.close())


@contextmanager
def fleet(folder: Path, database: str) -> Iterator[Fleet]:
    with ExitStack() as stack:
        broker = stack.enter_context(nats_server(folder / "broker"))
        common = ["--dispatch", f"{broker.url}/some-fleet", "--results", f"file:{folder / 'results'}", "--lease", "2"]

        def start(command: str, name: str, *words: str) -> Child:
            store = ["--store", name, "--name", name, "--grace", "0"]
            return stack.enter_context(running(command, *common, *store, *words))

        server = start("serve", "s1", "--database", database, "--listen", "127.0.0.1:0")
        workers = [start("worker", name) for name in ("w1", "w2")]
        api = Api(server.url)
        stack.callback(api.close)
        for worker in workers:
            worker.until_said("in pool")
        yield Fleet(broker, database, server, api)
        for worker in workers:
            assert worker.stop() == 0


def unbroken(text: str, home: Path) -> list[JsonMap]:
    """The timeline of the same in one process."""

    async def main(loop: object) -> list[JsonMap]:
        engine = embedded(home, clock=VirtualClock())
        loop.is_busy = lambda: engine.log.backlog > 0 or engine.threads.busy > 0  # type: ignore[attr-defined]
        try:
            await engine.run("run-1").start(Pinned("p.yaml", text), {}, label=None, trace_id="trace-1")
            return list(canonical(engine.log.read("run-1"), "run-1"))
        finally:
            await engine.close()

    return run_virtually(main)


def shown(timeline: list[JsonMap]) -> list[JsonMap]:
    """All but where the document lies."""
    payloads = [cast(JsonMap, event["payload"]) for event in timeline]
    return [
        {**event, "payload": {name: one for name, one in payload.items() if name != "digest"}}
        for event, payload in zip(timeline, payloads, strict=True)
    ]


async def purge(scene: Fleet) -> None:
    client = await nats.connect(scene.broker.url)
    assert await client.jetstream().purge_stream("some-fleet_WORK")
    await client.close()


async def kill(scene: Fleet) -> None:
    scene.broker.kill()
    scene.broker.start()


async def lose_everything(scene: Fleet) -> None:
    scene.broker.kill()
    scene.broker.wipe()
    scene.broker.start()


@pytest.mark.clause("F3.1")
def test_workers_that_know_only_nats_come_to_the_timeline_of_one_process_whatever_becomes_of_nats(
    folder: Path, postgres_url: str
) -> None:
    playbook, job = (shown(unbroken(text, folder / name)) for name, text in (("p", PLAYBOOK), ("j", JOB)))
    assert len(playbook) > 60
    with fleet(folder, postgres_url) as scene:
        assert shown(scene.play(JOB)) == job
        for trouble in (purge, kill, lose_everything):
            assert shown(scene.play(PLAYBOOK, trouble)) == playbook, trouble.__name__


def test_a_worker_that_knows_only_nats_is_drained_from_the_server(folder: Path, postgres_url: str) -> None:
    with ExitStack() as stack:
        broker = stack.enter_context(nats_server(folder / "broker"))
        common = ["--dispatch", f"{broker.url}/other-fleet", "--results", f"file:{folder / 'results'}", "--lease", "1"]
        words = ["--store", "s1", "--database", postgres_url, "--listen", "127.0.0.1:0"]
        server = stack.enter_context(running("serve", *common, *words))
        worker = stack.enter_context(running("worker", *common, "--store", "w1", "--name", "w1"))
        api = Api(server.url)
        stack.callback(api.close)
        worker.until_said("in pool")
        (seen,) = server.until(lambda: api.get("/api/workers").json()["workers"])
        assert api.post(f"/api/workers/{seen['id'].replace('#', '%23')}/drain").status_code == 200
        assert worker.process.wait(60) == 0
        assert "has stopped" in worker.text
