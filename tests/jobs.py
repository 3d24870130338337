"""The whole engine in a test of jobs: a job's text goes in, the run and its log come out. Real layers, nothing mocked.

Runs that go through here are also replayed from their log (see `depth.is_replayed`), and every envelope is checked.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.app.embedded import Embedded
from penstock.kernel.values import JsonMap
from penstock.server.documents import DocumentInvalid, Documents
from penstock.server.runs import RunSummary
from tests.engine import Played, _with_engine
from tests.views.support import standing as job_standing


class Ran:
    """A finished run of a job."""

    def __init__(self, played: Played, standing: Any) -> None:
        self.played = played
        self.standing = standing

    @property
    def status(self) -> str:
        return self.played.status

    @property
    def error(self) -> Any:
        return self.played.error

    @property
    def exit_code(self) -> int:
        return self.played.summary.exit_code

    @property
    def globals(self) -> JsonMap:
        return self.played.ctx

    @property
    def events(self) -> list[JsonMap]:
        return self.played.events

    def states(self) -> dict[str, str]:
        """Component -> its state, iterations included."""
        return {name: one["state"] for name, one in self.standing.components.items()}

    def component(self, name: str) -> Any:
        return self.standing.components[name]

    def subjobs(self) -> dict[str, str]:
        return {one["name"]: one["state"] for one in self.standing.subjobs}

    def fired(self, on: str | None = None) -> list[str]:
        """The control links that fired, in the order of the log: `a (ok) b`."""
        found = [event["payload"] for event in self.events if event["event_type"] == "edge.fired"]
        return [f"{one['from']} ({one['on']}) {one['to']}" for one in found if on in (None, one["on"])]  # type: ignore[index, call-overload]

    def types(self, *wanted: str) -> list[str]:
        return self.played.types(*wanted)

    def payloads(self, event_type: str) -> list[Any]:
        return self.played.payloads(event_type)

    def started(self) -> list[str]:
        """The components that started, in the order of the log."""
        return [str(event["scope"]) for event in self.played.of("component.started")]


def run_job(
    text: str,
    home: Path,
    context: Mapping[str, Any] | None = None,
    *,
    group: str | None = None,
    execution_id: str = "run-1",
    virtual: bool = False,
    file: str = "job.yaml",
    environ: Mapping[str, str] | None = None,
) -> Ran:
    """Write a job beside `home` and run it to its end. Raises DocumentInvalid when it is not valid."""
    path = home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    standing: list[Any] = []

    async def body(engine: Embedded) -> RunSummary:
        documents = Documents(engine.tools, engine.components)
        document = documents.open(path, context, group)
        run = engine.run(execution_id, documents)
        summary = await run.start(document, context or {}, label=None, trace_id="trace-1", context=group)
        standing.append(_standing(engine, documents, execution_id))
        return summary

    return Ran(_with_engine(home, execution_id, body, virtual, environ), standing[0])


def resume_job(home: Path, execution_id: str = "run-1", *, virtual: bool = False, failed_only: bool = False) -> Ran:
    standing: list[Any] = []

    async def body(engine: Embedded) -> RunSummary:
        summary = await engine.run(execution_id).resume(failed_only=failed_only)
        standing.append(_standing(engine, Documents(engine.tools, engine.components), execution_id))
        return summary

    return Ran(_with_engine(home, execution_id, body, virtual, None), standing[0])


def _standing(engine: Embedded, documents: Documents, execution_id: str) -> Any:
    from penstock.server.documents import Pinned

    net, _ = documents.compile(Pinned.from_bytes(engine.log.document(execution_id)))
    return job_standing(engine.log.read(execution_id), net.links)


def problems(text: str, home: Path, file: str = "job.yaml") -> list[Any]:
    """What is wrong with a job, in the order of the file."""
    from penstock.components.registry import ComponentRegistry
    from penstock.tools.registry import Registry

    path = home / file
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    try:
        Documents(Registry(), ComponentRegistry()).open(path)
    except DocumentInvalid as invalid:
        return list(invalid.problems)
    return []
