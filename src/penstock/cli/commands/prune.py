"""`penstock prune`: old runs go, and then the results that nothing refers to any more."""

from __future__ import annotations

from argparse import Namespace

from penstock.cli.doors import door_of
from penstock.cli.output import put_json, say
from penstock.projections.wording import counted
from penstock.remote.client import at


def main(options: Namespace) -> int:
    asked = {"older_than_s": options.older_than, "keep_failed": options.keep_failed, "dry_run": options.dry_run}
    done = door_of(options, for_servers=False).post(at("prune"), asked)
    if options.json:
        put_json({**done, "exit_code": 0})
    elif options.dry_run:
        say(
            f"{counted(done['runs'], 'run')} and {counted(done['results'], 'result')} ({done['bytes']:,} bytes) would go"
        )
    else:
        say(f"{counted(done['runs'], 'run')} and {counted(done['results'], 'result')} are gone")
    return 0
