"""A NATS with JetStream for a fleet, its store in a folder on the same disk.

PostgreSQL holds the truth here as well; only what goes between servers and workers goes over NATS.
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
