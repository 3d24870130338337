"""`penstock up`: a server and workers on this machine, each a process of its own, looked after from here."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path

from penstock.cli.output import say
from penstock.cli.places import addresses_of, hosts_of, places_of, pool_of, slots_of
from penstock.cli.processes import run_until_told
from penstock.tools.addresses import VARIABLE


def main(options: Namespace) -> int:
    from penstock.app.stores import private_postgres
    from penstock.cli.supervising import Child, Supervisor

    places = places_of(options)
    # What is wrong with the words is said before anything starts.
    reached = [f"--allow-address={word}" for word in _reached(options)]
    served = _served(options)
    with private_postgres(places.home) if places.database is None else nullcontext(places.database) as database:
        if options.verbose:
            say(f"database {database}")
        said = {
            "PENSTOCK_DATABASE": database,
            "PENSTOCK_HOME": str(places.home),
            "PENSTOCK_RESULTS": places.results,
            "PENSTOCK_DISPATCH": places.dispatch,
            "PENSTOCK_BASE": None if places.base is None else str(places.base),
        }
        environment = {name: value for name, value in said.items() if value is not None}
        common = ["--lease", str(options.lease), "--grace", str(options.grace)]
        work = [*common, *reached, "--pool", pool_of(options), "--slots", str(slots_of(options))]
        server = Child("server", ["serve", *common, *reached, *served], environment)
        workers = [
            Child(f"worker-{number}", ["worker", *work], environment) for number in range(1, options.workers + 1)
        ]
        supervisor = Supervisor(server, workers, options.grace)
        run_until_told(supervisor.run, supervisor.stop)
    say("all have stopped")
    return supervisor.exit_code


def _reached(options: Namespace) -> list[str]:
    """A trial on one machine has its databases and test servers there; whoever names addresses names all of them."""
    addresses_of(options)  # Refused here, once, and not by each process.
    return options.allow_address or [word for word in (os.environ.get(VARIABLE),) if word] or ["loopback"]


def _served(options: Namespace) -> list[str]:
    given = ["--listen", options.listen]
    for name in ("tls_cert", "tls_key", "max_body"):
        value = getattr(options, name)
        if value is not None:
            given += [f"--{name.replace('_', '-')}", str(Path(value).absolute() if name.startswith("tls") else value)]
    hosts_of(options)  # Refused here, once, and not again and again by the server.
    given += [f"--allow-host={name}" for name in options.allow_host]
    return [*given, "--no-auth"] if options.no_auth else given
