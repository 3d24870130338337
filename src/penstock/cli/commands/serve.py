"""`penstock serve`: a server, until it is told to stop."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.cli.output import say
from penstock.cli.places import addresses_of, hosts_of, places_of, slots_of
from penstock.cli.processes import run_until_told


def main(options: Namespace) -> int:
    from penstock.app.server_process import ServeSettings, Service

    settings = ServeSettings(
        places_of(options),
        options.listen,
        options.lease,
        slots_of(options),
        options.name,
        Path(options.tls_cert) if options.tls_cert else None,
        Path(options.tls_key) if options.tls_key else None,
        options.no_auth,
        options.max_body,
        options.grace,
        addresses_of(options),
        hosts_of(options),
    )
    service = Service(settings, say)
    run_until_told(service.run, service.stop)
    return 0
