"""JetStream for a fleet: the broker, and `python -m benchmarks.fleet_nats NATS_URL serve|worker …`, which is `penstock` with it.

PostgreSQL holds the truth here as well; only what goes between servers and workers goes over NATS. Its store is a folder on the
same disk.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers import NotInstalled

START_S = 20.0


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    beside = Path(sys.executable).parent / "nats-server"
    program = str(beside) if beside.exists() else shutil.which("nats-server")
    if program is None:
        raise NotInstalled("nats-server")
    ports = folder / "ports"
    ports.mkdir(parents=True)
    line = [program, "--jetstream", "--store_dir", str(folder / "data"), "--addr", "127.0.0.1", "--port", "-1"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*line, "--ports_file_dir", str(ports)], stdout=log, stderr=log)
    try:
        yield _address(ports)
    finally:
        process.terminate()
        process.wait()


def _address(ports: Path) -> str:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        for path in ports.iterdir():
            try:
                return str(json.loads(path.read_text(encoding="utf-8"))["nats"][0])
            except (ValueError, LookupError):  # It is still being written.
                pass
        time.sleep(0.01)
    raise RuntimeError(f"NATS does not answer after {START_S:g} s")


def main() -> int:
    """The same commands, put together with the other dispatch."""
    url, *words = sys.argv[1:]
    try:
        from penstock.adapters.nats_dispatch import NatsDispatch
        from penstock.adapters.nats_dispatch_intake import NatsIntake
    except ImportError as missing:
        raise NotInstalled(str(missing)) from missing
    from penstock import fleet_stores
    from penstock.adapters.postgres_dispatch import PostgresDispatch
    from penstock.adapters.postgres_dispatch_intake import PostgresIntake
    from penstock.cli.main import main as penstock

    def dispatch(places: Any, hall: Any) -> Any:
        return NatsDispatch(PostgresDispatch(places.database), PostgresIntake(places.database), url)

    def intake(places: Any, hall: Any) -> Any:
        return NatsIntake(url)

    setattr(fleet_stores, "open_dispatch", dispatch)  # noqa: B010  until the commands have an option for it
    setattr(fleet_stores, "_intake", intake)  # noqa: B010
    return int(penstock(words) or 0)


if __name__ == "__main__":
    sys.exit(main())
