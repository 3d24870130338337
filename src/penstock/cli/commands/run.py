"""`penstock run FILE`"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import homes
from penstock.cli import inputs
from penstock.cli.naming import new_id, next_command
from penstock.cli.output import put_json, say
from penstock.kernel.errors import Bug, Unavailable

if TYPE_CHECKING:
    from penstock.app import Embedded
    from penstock.cli.summary import Where
    from penstock.server.documents import Documents, Pinned
    from penstock.server.runs import RunSummary, RunUnderWay


def main(options: Namespace) -> int:
    from penstock.app import embedded
    from penstock.server.documents import Documents
    from penstock.tools.registry import Registry

    file = Path(options.file)
    payload = inputs.workload(options.payload, options.set)
    # Compiled before the state folder is touched: a document that cannot run leaves nothing behind.
    documents = Documents(Registry(), strict=options.strict)
    document = documents.open(file)
    home = homes.home_for(file, options.store)
    engine = embedded(home, strict=options.strict)
    homes.remember(home)
    run = engine.run(new_id())
    run.world.documents = documents
    if not options.json:
        _warn(documents, document, options.file)

    async def begin() -> RunSummary:
        return await run.start(document, payload, label=options.name, trace_id=new_trace())

    return conducted(engine, run, begin, options, home, places(documents, document))


def conducted(
    engine: Embedded,
    run: RunUnderWay,
    begin: Callable[[], Awaitable[RunSummary]],
    options: Namespace,
    home: Path,
    where: Where,
) -> int:
    """A run, begun anew or resumed, from here to its exit code."""
    from penstock.cli.progress import Progress
    from penstock.cli.running import in_foreground, watcher_for

    progress = Progress()
    what = getattr(options, "file", None) or "resumed"
    watcher = watcher_for(f"{what}  run {run.execution_id}", is_silent=options.json or options.quiet)
    try:
        summary = in_foreground(engine, run, begin, progress, watcher, options.grace)
    except (Unavailable, Bug) as error:
        if what == "resumed" or progress.has_begun():
            again = f"to go on: {next_command(f'resume {run.execution_id}', home)}"
            error.hint = f"{error.hint}; {again}" if error.hint else again
        raise
    if options.json:
        put_json(summary.as_json())
    else:
        from penstock.cli.summary import tell

        tell(summary, progress, home, where)
    return summary.exit_code


def places(documents: Documents, document: Pinned) -> Where:
    def where(step: str, task: str | None) -> str:
        _, compiled = documents.compile(document)
        found = compiled.places.tasks.get((step, task)) if task else None
        place = found or compiled.places.steps.get(step)
        return f"{place.file}:{place.line}" if place is not None and place.line else ""

    return where


def _warn(documents: Documents, document: Pinned, file: str) -> None:
    _, compiled = documents.compile(document)
    if compiled.problems:
        from penstock.dialects.report import summary

        say(f"{summary(compiled.problems)} in {file}; `penstock lint {file}` shows them")


def new_trace() -> str:
    import os

    return os.urandom(16).hex()
