"""`penstock run FILE`, `resume RUN`, `watch RUN` and `replay RUN`: a run from its start to its exit code."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app import state_folder
from penstock.app.library import Library, sources_of
from penstock.cli import inputs
from penstock.cli.arguments import CommandLineError
from penstock.cli.foreground import ForegroundRun, positions_in
from penstock.cli.output import near, put, put_json, safe, say
from penstock.cli.show.watched import Watched
from penstock.cli.targets import looking, looking_at, new_id, run_named, server_of
from penstock.dialects.kind import kind_of_file
from penstock.server.child_execution import context_group, ports_to_keep
from penstock.server.documents import Documents, Pinned
from penstock.server.inputs import require_known
from penstock.server.run_names import find_run
from penstock.views.headers import status_of

if TYPE_CHECKING:
    from penstock.server.runs import RunSummary

ENDED_WELL = ("completed", "cancelled")
"""Runs with these are resumed with `--failed` only; otherwise changed files are not reported."""


def run(options: Namespace) -> int:
    url = server_of(options)
    if url is not None:
        from penstock.cli.remote import commands  # Only runs at a server need the client.

        return commands.run(options, url)
    if options.detach:
        raise CommandLineError(
            "`--detach` leaves a run to a server, and there is none", "give `--server URL`, or set `PENSTOCK_SERVER`"
        )
    return _run_here(options)


def _run_here(options: Namespace) -> int:
    from penstock.app.embedded import embedded  # Commands for a server do not need the engine.

    file = Path(options.file)
    payload = inputs.workload(options.payload, options.set)
    if kind_of_file(file) == "joblet":
        raise CommandLineError(
            f"`{file}` is a joblet, which runs only as a part of a job",
            f'call it from a job beside it, with the type "@{file.stem}"',
        )
    # Compiled before the state folder is touched: a document that cannot run leaves nothing behind.
    documents = Library(strict=options.strict).documents()
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
            trace_id=os.urandom(16).hex(),
            context=options.context,
            keep=tuple(options.keep),
        )

    foreground = ForegroundRun(
        engine=engine,
        run=run,
        begin=begin,
        options=options,
        home=home,
        net=net,
        where=positions_in(documents, document),
    )
    if not options.ui:
        return foreground.drive()
    from penstock.cli.commands.page import Beside  # Only this needs a server.

    with Beside(home, file, run.execution_id, options) as page:
        engine.observers.append(page.observe)
        engine.progress_observers.append(page.rows)
        code = foreground.drive()
        page.stay()
        return code


def _warn(documents: Documents, document: Pinned, file: str) -> None:
    _, compiled = documents.compile(document)
    if compiled.problems:
        from penstock.cli.errors import tell_pressing  # Only problems of documents need it.
        from penstock.dialects.report import summary

        tell_pressing(compiled.problems, sources_of(compiled))
        say(f"{summary(compiled.problems)} in {file}; `penstock lint {file}` shows them")


def new_trace() -> str:
    return os.urandom(16).hex()


def resume(options: Namespace) -> int:
    url = server_of(options)
    if url is not None:
        from penstock.cli.remote import commands  # Only runs at a server need the client.

        return commands.resume(options, url)
    from penstock.app.embedded import embedded  # Commands for a server do not need the engine.
    from penstock.cli.errors import tell_changes
    from penstock.server.changes import changes, text_on_disk

    home = state_folder.known_home(options.store)
    engine = embedded(home)
    state_folder.remember(home)
    header = find_run(engine.log, options.run)
    documents = engine.documents()
    run = engine.run(header.execution_id, documents)
    document = Pinned.from_bytes(engine.log.document(header.execution_id))
    net, _ = documents.compile(document)
    found = changes(document, text_on_disk)
    goes_on = options.failed or header.status not in ENDED_WELL
    if not options.json and goes_on and not engine.log.has_owner(header.execution_id):
        tell_changes(found, document.file)
    return ForegroundRun(
        engine=engine,
        run=run,
        begin=partial(run.resume, failed_only=options.failed),
        options=options,
        home=home,
        net=net,
        where=positions_in(documents, document),
        changed=[change.as_json() for change in found],
    ).drive()


def watch(options: Namespace) -> int:
    # Only `watch` needs these.
    from penstock.cli.remote.feed import ServerFeed
    from penstock.cli.show.local_feed import LocalFeed

    with looking(options) as (engine, target):
        header = run_named(engine.log, options.run)
        run_id, title = header.execution_id, near(header.path)
        if not engine.is_remote:
            watched = Watched(engine, LocalFeed(engine, run_id), run_id, options, title, engine.home)
        else:
            engine.client.patience_s = options.patience
            watched = Watched(engine, ServerFeed(engine.client, run_id), run_id, options, title, target)
        # A run without events was just registered, and no process has claimed it yet.
        is_running = status_of(header, engine.log) == "running" or (header.status == "running" and not header.last_seq)
        return watched.followed() if is_running else watched.summarised()


def replay(options: Namespace) -> int:
    with looking_at(options) as (engine, header):
        difference = asyncio.run(engine.replay(header.execution_id))
    described = difference.describe() if difference is not None else None
    code = 0 if described is None else 1
    if options.json:
        status = "same" if described is None else "different"
        put_json({"execution_id": header.execution_id, "status": status, "exit_code": code, "difference": described})
    elif described is None:
        say(f"run {header.execution_id}: {header.last_seq:,} events, and every decision is the same")
    else:
        put(safe(described))
    return code
