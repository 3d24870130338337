"""A real server in a thread of this process: its own event loop, a real socket, and requests over the loopback."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from penstock.app.server_process import ServeSettings, Service
from penstock.app.stores import StoreLocations
from penstock.app.worker import OpenWorker, open_worker
from penstock.tools.addresses import LOOPBACK
from tests.engine import document

PATIENCE_S = 30.0

QUICK = document("""
- step: start
  tool:
    - name: greet
      kind: python
      code: |
        print("greeting")
        result = {"text": "hello"}
  next: {arcs: [{step: fin}]}
- step: fin
  tool: [{name: n, kind: noop, value: "{{ start.text }}"}]
""")

FAILS = document("""
- step: start
  tool: [{name: boom, kind: python, code: "raise ValueError('no luck')"}]
""")

SLOW = document("""
- step: start
  tool: [{name: wait, kind: sleep, seconds: 600}]
""")

GATED = """apiVersion: penstock/v1
kind: Job
metadata: {name: gated}
components:
  - {name: rows, type: fixed_rows, params: {columns: [n], rows: [[1], [2], [3]]}}
  - name: slow
    type: python
    params:
      mode: batch
      batch_size: 2
      code: |
        import time
        from pathlib import Path
        while len(rows) < 2 and not Path("GATE").exists():
            time.sleep(0.01)
        output = rows
  - {name: show, type: log_rows}
connections:
  data: |
    rows.main -> slow.input
    slow.main -> show.input
"""
"""A job with a component that has made two of its three rows and waits for the file GATE."""


class Api:
    """A client of one server."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx2.Client(base_url=url, headers=headers, timeout=PATIENCE_S, verify=False)

    def get(self, path: str, **params: Any) -> httpx2.Response:
        return self.http.get(path, params=params)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        return self.http.post(path, json=body, **more)

    def submit(self, text: str, **more: Any) -> str:
        answer = self.post("/api/executions", {"document": {"text": text, "file": "p.yaml"}, **more})
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["execution_id"])

    def ended(self, run: str) -> str:
        return self.until(run, lambda status: status != "running")

    def until(self, run: str, is_so: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            status = str(self.get(f"/api/executions/{run}/header").json()["status"])
            if is_so(status):
                return status
            assert time.monotonic() < deadline, f"{run} is {status}"
            time.sleep(0.02)

    def counted(self, run: str, component: str, rows: dict[str, int]) -> Any:
        """The moment at which a component that runs has made so many rows, by their ports."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            moment = self.get(f"/api/executions/{run}/moment").json()
            if moment["nodes"][component]["rows_so_far"] == rows:
                return moment
            assert time.monotonic() < deadline, moment["nodes"][component]
            time.sleep(0.02)

    def pruned(self, runs: int, **body: Any) -> None:
        """So many runs are deleted. One that has just ended is still held for a moment by the server that ran it."""
        deadline, gone = time.monotonic() + PATIENCE_S, 0
        while gone < runs:
            gone += int(self.post("/api/prune", {"older_than_s": 0, **body}).json()["runs"])
            assert time.monotonic() < deadline, f"{gone} of {runs} runs were deleted"
            time.sleep(0.02)
        assert gone == runs

    def done(self, text: str = QUICK, **more: Any) -> str:
        run = self.submit(text, **more)
        self.ended(run)
        return run

    def events(self, run: str, **params: Any) -> list[Any]:
        answer = self.get(f"/api/executions/{run}/events", **params)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.content.split(b"\n") if line]

    def close(self) -> None:
        self.http.close()


class Running:
    """A service that runs in a thread."""

    def __init__(self, home: Path, database: str | None = None, **settings: Any) -> None:
        locations = StoreLocations(
            home, database, settings.pop("results", None), settings.pop("dispatch", None), settings.pop("base", None)
        )
        self.said: list[str] = []
        self.service: Service | None = None
        self.error: BaseException | None = None
        self._settings = ServeSettings(
            locations, **{"listen": "127.0.0.1:0", "grace_s": 0.0, "addresses": LOOPBACK, **settings}
        )
        self._is_ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="service")

    def start(self) -> Running:
        self._thread.start()
        assert self._is_ready.wait(PATIENCE_S)
        if self.error is not None:
            self._thread.join()
            raise self.error
        return self

    @property
    def url(self) -> str:
        assert self.service is not None
        return self.service.url

    def stop(self) -> None:
        assert self._loop is not None
        assert self.service is not None
        self._loop.call_soon_threadsafe(self.service.stop)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the server did not stop"
        if self.error is not None:
            raise self.error

    def call(self, function: Callable[[], Any]) -> None:
        """On the server's own loop."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(function)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self.error = error
        finally:
            self._is_ready.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.service = Service(self._settings, self.said.append)
        serving = asyncio.ensure_future(self.service.run())
        ready = asyncio.ensure_future(self.service.is_ready.wait())
        await asyncio.wait({serving, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if not serving.done():  # else it has failed, and `_run` notes the error before anybody is told
            self._is_ready.set()
        await serving


@contextmanager
def serving(home: Path, database: str | None = None, **settings: Any) -> Iterator[Running]:
    running = Running(home, database, **settings).start()
    try:
        yield running
    finally:
        running.stop()


@contextmanager
def asking(home: Path, database: str | None = None, **settings: Any) -> Iterator[Api]:
    with serving(home, database, **settings) as running:
        api = Api(running.url)
        try:
            yield api
        finally:
            api.close()


class Crew:
    """A worker in a thread of its own, as a process on another machine would be."""

    def __init__(self, home: Path, database: str | None, **settings: Any) -> None:
        self._locations = StoreLocations(
            home, database, settings.pop("results", None), settings.pop("dispatch", None), settings.pop("base", None)
        )
        self._settings = {"addresses": LOOPBACK, **settings}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: OpenWorker | None = None
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="worker")

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._worker = open_worker(self._locations, **self._settings)
        self._is_ready.set()
        await self._worker.run()

    def __enter__(self) -> Crew:
        self._thread.start()
        assert self._is_ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._worker is not None
        asyncio.run_coroutine_threadsafe(self._worker.worker.drain(0.0), self._loop).result(PATIENCE_S)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
