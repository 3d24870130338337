"""`penstock resume RUN`"""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from penstock import homes
from penstock.cli.conducting import Conduct, places
from penstock.cli.naming import find_run
from penstock.cli.remote import server_of


def main(options: Namespace) -> int:
    url = server_of(options)
    if url is not None:
        from penstock.cli.remote_run import resume

        return resume(options, url)
    from penstock.app import embedded
    from penstock.server.documents import Pinned

    home = homes.known_home(options.store)
    engine = embedded(home)
    homes.remember(home)
    header = find_run(engine.log, options.run)
    run = engine.run(header.execution_id)
    document = Pinned.from_bytes(engine.log.document(header.execution_id))
    documents = run.world.documents
    net, _ = documents.compile(document)
    begin = partial(run.resume, failed_only=options.failed)
    return Conduct(engine, run, begin, options, home, net, places(documents, document)).conducted()
