"""`penstock watch RUN`: a run that another process or a server works on, shown as `penstock run` shows it."""

from __future__ import annotations

from argparse import Namespace

from penstock.cli.engine import looking, run_named, status_of
from penstock.cli.watched import Watched


def main(options: Namespace) -> int:
    from penstock.app.embedded import Embedded
    from penstock.cli.book import near
    from penstock.cli.local_feed import LocalFeed
    from penstock.cli.server_feed import ServerFeed

    with looking(options) as (engine, place):
        header = run_named(engine, options.run)
        run_id, title = header.execution_id, near(header.path)
        if isinstance(engine, Embedded):
            watched = Watched(engine, LocalFeed(engine, run_id), run_id, options, title, engine.home)
        else:
            engine.client.patience_s = options.patience
            watched = Watched(engine, ServerFeed(engine.client, run_id), run_id, options, title, place)
        # Without an event it was registered a moment ago, and nobody has taken it up yet.
        is_running = status_of(header, engine) == "running" or (header.status == "running" and not header.last_seq)
        return watched.followed() if is_running else watched.summarised()
