"""`penstock replay RUN`: decide it again from its recorded outcomes."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from penstock.cli.engine import looking_at
from penstock.cli.output import put, put_json, safe, say


def main(options: Namespace) -> int:
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
