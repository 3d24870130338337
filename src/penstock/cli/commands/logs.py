"""`penstock logs RUN`: what tools and components said while they ran."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.engine import looking_at
from penstock.cli.output import put, safe, say

if TYPE_CHECKING:
    from penstock.app import Embedded

POLL_S = 0.2
CHUNK = 1 << 16


def main(options: Namespace) -> int:
    from msgspec import DecodeError

    from penstock.ports.results import decode
    from penstock.ports.wire import step_of, step_run_of
    from penstock.projections.jobs_names import is_of_component

    def wanted(scope: str) -> bool:
        if header.kind == "job":
            return is_of_component(scope, options.step)
        return options.step in (step_of(scope), step_run_of(scope), scope)

    with looking_at(options.store, options.run) as (engine, header):
        path = engine.home / "logs" / f"{header.execution_id}.ndjson"
        if not path.exists() and not options.follow:
            say("the tools and components of this run have said nothing")
            return 0
        for line in _lines(path, engine, header.execution_id, follow=options.follow):
            try:
                record: Any = decode(line)
                scope = str(record["scope"])
            except (DecodeError, KeyError, TypeError):  # The last line of a process that was killed may be cut off.
                continue
            if options.step and not wanted(scope):
                continue
            if options.json:
                put(line.decode("utf-8", "replace"))
            else:
                clock = time.strftime("%H:%M:%S", time.localtime(float(record["ts"])))
                put(f"{clock} {scope} | {safe(str(record['line']))}")
    return 0


def _lines(path: Path, engine: Embedded, execution_id: str, *, follow: bool) -> Iterator[bytes]:
    rest = b""
    file = None
    try:
        while True:
            header = engine.log.header(execution_id)
            is_over = header is None or header.status != "running" or not engine.log.has_owner(execution_id)
            if file is None and path.exists():
                file = path.open("rb")
            while file is not None and (data := file.read(CHUNK)):
                *whole, rest = (rest + data).split(b"\n")
                yield from whole
            sys.stdout.flush()
            if not follow or is_over:
                break
            time.sleep(POLL_S)
        if rest:
            yield rest
    finally:
        if file is not None:
            file.close()
