"""Reading back what a played run left in its log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.app.embedded import embedded
from penstock.kernel.net import Link, Net
from penstock.ports.log import Entry
from penstock.ports.results import loader
from penstock.server.documents import Documents
from penstock.server.views import RunDocuments
from penstock.views.answers import JobStanding, job_standing
from penstock.views.explain import Explanation, Log, explain
from penstock.views.run_view import RunView


def entries(home: Path, execution_id: str = "run-1") -> list[Entry]:
    engine = embedded(home / ".penstock")
    try:
        return list(engine.log.read(execution_id))
    finally:
        asyncio.run(engine.close())


def seen(home: Path, execution_id: str = "run-1") -> RunView:
    return RunView.of(entries(home, execution_id), whole=True)


def standing(
    known: Iterable[Entry],
    document: Net | Sequence[Link] | None,
    *,
    execution: str = "",
    with_iterations: bool = True,
) -> JobStanding:
    return job_standing(RunView.of(known, listed=[execution] if with_iterations else []), document, execution)


def explained(
    home: Path, node: str, *, upto: int | None = None, is_live: bool = False, execution_id: str = "run-1"
) -> Explanation:
    """`upto` cuts the log there, as if that were all that has happened so far."""
    engine = embedded(home / ".penstock")
    try:
        known = list(engine.log.read(execution_id))[:upto]
        log = Log(lambda: known, loader(engine.blobs), is_live)
        documents = Documents(engine.tools, engine.components)
        book = RunDocuments(engine.log, engine.blobs, documents, execution_id)
        return explain(node, log, book)
    finally:
        asyncio.run(engine.close())


def text_of(answer: Explanation) -> str:
    lines = [answer.headline]
    for section in answer.sections:
        lines += [section.title, *(f"  {line}" for line in section.lines)]
    return "\n".join(lines)
