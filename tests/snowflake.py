"""An emulator of Snowflake (fakesnow) in a process of its own, and the drivers that a test imports for it. Name the fixtures in the
module of the test, and `pytestmark` as well: both drivers warn of what is missing on a machine that has never seen them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.packages import python_packages

__all__ = ["snowflake_drivers", "snowflake_port"]
PACKAGES = ("fakesnow[server]==0.12.1", "snowflake-connector-python==4.8.1", "adbc-driver-snowflake==1.11.0")
WARNINGS = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def snowflake_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    log = tmp_path_factory.mktemp("snowflake") / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "fakesnow", "-s", "-p", str(port)],
            env={**os.environ, "PYTHONPATH": str(_packages())},
            stdout=said,
            stderr=said,
        )
    try:
        for _ in range(1_000):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        else:
            raise RuntimeError(f"the emulator does not answer: {log.read_text()}")
        yield port
    finally:
        process.kill()
        process.wait()
        _forget(_packages())


def _forget(packages: Path) -> None:
    """What the drivers bring along is not there for the tests that follow in this process."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(packages)):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def snowflake_drivers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last on the path: what both have is ours."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(_packages())])
    monkeypatch.setenv("PASSWORD", "a-password-of-mine")


def _packages() -> Path:
    return python_packages("snowflake", *PACKAGES)
