"""`penstock resume RUN`"""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from penstock.app import state_folder
from penstock.cli.conducting import Conduct, places
from penstock.cli.remote import server_of
from penstock.server.finding import find_run

ENDED_WELL = ("completed", "cancelled")
"""A resume of these is refused, but for `--failed`: then there is nothing to say about files."""


def main(options: Namespace) -> int:
    url = server_of(options)
    if url is not None:
        from penstock.cli.remote_run import resume

        return resume(options, url)
    from penstock.app.embedded import embedded
    from penstock.cli.changed_files import tell_changes
    from penstock.server.changes import changes, text_on_disk
    from penstock.server.documents import Pinned

    home = state_folder.known_home(options.store)
    engine = embedded(home)
    state_folder.remember(home)
    header = find_run(engine.log, options.run)
    run = engine.run(header.execution_id)
    document = Pinned.from_bytes(engine.log.document(header.execution_id))
    documents = run.world.documents
    net, _ = documents.compile(document)
    found = changes(document, text_on_disk)
    goes_on = options.failed or header.status not in ENDED_WELL
    if not options.json and goes_on and not engine.log.has_owner(header.execution_id):
        tell_changes(found, document.file)
    return Conduct(
        engine,
        run,
        partial(run.resume, failed_only=options.failed),
        options,
        home,
        net,
        places(documents, document),
        [change.as_json() for change in found],
    ).conducted()
