"""`penstock run FILE`"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app import state_folder
from penstock.cli import inputs
from penstock.cli.arguments import CommandLineError
from penstock.cli.conducting import Conduct, places
from penstock.cli.naming import new_id
from penstock.cli.output import say
from penstock.cli.remote import server_of

if TYPE_CHECKING:
    from penstock.server.documents import Documents, Pinned
    from penstock.server.runs import RunSummary


def main(options: Namespace) -> int:
    url = server_of(options)
    if url is not None:
        from penstock.cli.remote_run import run as run_there

        return run_there(options, url)
    if options.detach:
        raise CommandLineError(
            "`--detach` leaves a run to a server, and there is none", "give `--server URL`, or set `PENSTOCK_SERVER`"
        )
    return _run_here(options)


def _run_here(options: Namespace) -> int:
    from penstock.app.embedded import embedded
    from penstock.app.library import Library
    from penstock.dialects.sniff import kind_of_file
    from penstock.server.documents import Documents
    from penstock.server.inputs import require_known
    from penstock.server.played import context_group, ports_to_keep

    file = Path(options.file)
    payload = inputs.workload(options.payload, options.set)
    if kind_of_file(file) == "joblet":
        raise CommandLineError(
            f"`{file}` is a joblet, which runs only as a part of a job",
            f'call it from a job beside it, with the type "@{file.stem}"',
        )
    # Compiled before the state folder is touched: a document that cannot run leaves nothing behind.
    library = Library()
    documents = Documents(library.tools, library.components_when_asked, strict=options.strict)
    document = documents.open(file, payload, options.context)
    net, compiled = documents.compile(document)
    context_group(net, options.context)
    ports_to_keep(options.keep, net, compiled)
    require_known(net, payload)
    home = state_folder.home_for(file, options.store)
    engine = embedded(home, strict=options.strict)
    state_folder.remember(home)
    run = engine.run(new_id(), documents)
    if not options.json:
        _warn(documents, document, options.file)

    async def begin() -> RunSummary:
        return await run.start(
            document,
            payload,
            label=options.name,
            trace_id=new_trace(),
            context=options.context,
            keep=tuple(options.keep),
        )

    return Conduct(engine, run, begin, options, home, net, places(documents, document)).conducted()


def _warn(documents: Documents, document: Pinned, file: str) -> None:
    _, compiled = documents.compile(document)
    if compiled.problems:
        from penstock.app.library import sources_of
        from penstock.cli.failures import tell_pressing
        from penstock.dialects.report import summary

        tell_pressing(compiled.problems, sources_of(compiled))
        say(f"{summary(compiled.problems)} in {file}; `penstock lint {file}` shows them")


def new_trace() -> str:
    import os

    return os.urandom(16).hex()
