"""The whole engine in a test: a playbook's text goes in, the run and its log come out. Real layers, nothing mocked."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.app.embedded import Embedded, embedded
from penstock.kernel.values import JsonMap
from penstock.server.documents import Pinned
from penstock.server.runs import RunSummary
from tests.depth import is_replayed
from tests.envelopes import checked_events
from tests.virtual import VirtualClock, run_virtually

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata:\n  name: test\n"


@dataclass(frozen=True)
class Played:
    """A finished run: its summary and its events as a reader of the log gets them."""

    summary: RunSummary
    events: list[JsonMap]
    home: Path

    @property
    def status(self) -> str:
        return self.summary.status

    @property
    def ctx(self) -> JsonMap:
        return self.summary.ctx

    @property
    def result(self) -> Any:
        return self.summary.result

    @property
    def error(self) -> Any:
        return self.summary.error

    def types(self, *wanted: str) -> list[str]:
        return [str(event["event_type"]) for event in self.events if not wanted or event["event_type"] in wanted]

    def of(self, event_type: str) -> list[JsonMap]:
        return [event for event in self.events if event["event_type"] == event_type]

    def payloads(self, event_type: str) -> list[Any]:
        return [event["payload"] for event in self.of(event_type)]

    def steps(self) -> list[str]:
        """The steps that ran, in the order in which they were scheduled."""
        return [str(event["step"]) for event in self.of("step.scheduled")]

    def tasks(self) -> list[str]:
        """The task runs, in the order in which they ended."""
        return [payload["task"] for payload in self.payloads("task.done")]


def document(text: str) -> str:
    """A playbook from its workflow, or from whatever sections the text has."""
    body = textwrap.dedent(text).strip("\n")
    if "workflow:" not in body:
        body = "workflow:\n" + textwrap.indent(body, "  ")
    return body + "\n" if body.startswith("apiVersion") else f"{HEADER}{body}\n"


def play(
    text: str,
    home: Path,
    payload: Mapping[str, Any] | None = None,
    *,
    execution_id: str = "run-1",
    virtual: bool = False,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Played:
    """Run a playbook to its end."""
    path = file or home / "playbook.yaml"
    path.write_text(document(text), encoding="utf-8")

    async def body(engine: Embedded) -> RunSummary:
        pinned = Pinned(str(path), path.read_text(encoding="utf-8"))
        return await engine.run(execution_id).start(pinned, payload or {}, label=None, trace_id="trace-1")

    return _with_engine(home, execution_id, body, virtual, environ)


def resume(home: Path, execution_id: str = "run-1", *, virtual: bool = False) -> Played:
    return _with_engine(home, execution_id, lambda engine: engine.run(execution_id).resume(), virtual, None)


def events_of(engine: Embedded, execution_id: str) -> list[JsonMap]:
    return checked_events(engine.log, execution_id)


def _with_engine(home: Path, execution_id: str, body: Any, virtual: bool, environ: Mapping[str, str] | None) -> Played:
    more: dict[str, Any] = {} if environ is None else {"environ": environ}

    async def main(loop: Any = None) -> Played:
        if loop is not None:
            more["clock"] = VirtualClock()
        engine = embedded(home / ".penstock", **more)
        if loop is not None:
            loop.is_busy = lambda: engine.log.backlog > 0 or engine.threads.busy > 0
        try:
            summary = await body(engine)
            events = events_of(engine, execution_id)
            if is_replayed():
                difference = await engine.replay(execution_id)
                assert difference is None, difference.describe()
            return Played(summary, events, home)
        finally:
            await engine.close()

    return run_virtually(main) if virtual else asyncio.run(main())
