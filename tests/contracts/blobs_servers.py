"""Real servers for result stores: NATS with JetStream, and one that speaks S3. Each is started when a test first asks for one.

PENSTOCK_TEST_NATS_URL names a NATS server that is there already. S3 is served by SeaweedFS.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import obstore
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

NATS_URL = "PENSTOCK_TEST_NATS_URL"
BUCKET = "tests"
ACCESS_KEY, SECRET_KEY = "tester", "a-secret-of-tests"


def _program(name: str) -> str:
    """A server from PyPI lies beside the Python it was installed for."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    assert found, f"`{name}` is not installed"
    return found


@contextmanager
def _started(folder: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def nats_server(folder: Path, port: int = -1, config: str = "") -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Its URL and its process. A second one on the same folder and port is the same server started again."""
    ports = folder / "ports"
    shutil.rmtree(ports, ignore_errors=True)
    ports.mkdir(parents=True)
    (folder / "config").write_text(config)
    storage = ("--config", str(folder / "config"), "--jetstream", "--store_dir", str(folder / "data"))
    where = ("--addr", "127.0.0.1", "--port", str(port), "--ports_file_dir", str(ports))
    with _started(folder, _program("nats-server"), *storage, *where) as process:
        for _ in range(1_000):
            with suppress(OSError, ValueError, IndexError):
                said = json.loads(next(iter(ports.iterdir()), Path("nowhere")).read_text())
                yield said["nats"][0], process
                return
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.01)
        raise RuntimeError("NATS does not answer")


@pytest.fixture(scope="session")
def nats_url() -> Iterator[str]:
    given = os.environ.get(NATS_URL)
    if given:
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix="penstock-nats-"))
    with nats_server(folder) as (url, _):
        yield url
    shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class S3:
    endpoint: str

    def spec(self, prefix: str, bucket: str = BUCKET, secret: str = SECRET_KEY) -> str:
        options = {**self.options(secret), "allow_http": "true"}
        return f"s3://{bucket}/{prefix}?" + "&".join(f"{name}={quote(value)}" for name, value in options.items())

    def bucket(self, prefix: str = "") -> S3Store:
        """The bucket itself, to look at and to damage what is in it."""
        client = {"allow_http": True}
        return S3Store.from_url(
            f"s3://{BUCKET}/{prefix}", config=self.options(), client_options=client, retry_config={"max_retries": 0}
        )

    def options(self, secret: str = SECRET_KEY) -> dict[str, str]:
        return {
            "endpoint": self.endpoint,
            "region": "eu-central-1",
            "access_key_id": ACCESS_KEY,
            "secret_access_key": secret,
        }


_serving: list[S3] = []


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """One per process, also when several modules import this fixture: it takes seconds to start."""
    if _serving:
        yield _serving[0]
        return
    folder = Path(tempfile.mkdtemp(prefix="penstock-s3-"))
    rights = ["Admin", "Read", "Write", "List"]
    keys = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    (folder / "s3.json").write_text(
        json.dumps({"identities": [{"name": "tester", "credentials": [keys], "actions": rights}]})
    )
    names = [f"-{part}.port{kind}" for part in ("master", "volume", "filer", "s3") for kind in ("", ".grpc")]
    ports = dict(zip(names, _free_ports(len(names)), strict=True))
    where = ("-ip=127.0.0.1", "-ip.bind=127.0.0.1", *(f"{name}={port}" for name, port in ports.items()))
    small = (
        "-master.volumeSizeLimitMB=64",
        "-volume.max=20",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-s3.iam=false",
    )
    serve = ("server", f"-dir={folder}", "-filer", "-s3", f"-s3.config={folder / 's3.json'}")
    with _started(folder, _program("weed"), *serve, *where, *small) as process:
        server = S3(f"http://127.0.0.1:{ports['-s3.port']}")
        for _ in range(1_000):
            with suppress(BaseError, OSError):
                obstore.put(server.bucket(), "first", b"")  # An administrator's first object makes the bucket.
                break
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        _serving.append(server)
        yield server
        _serving.clear()
    shutil.rmtree(folder, ignore_errors=True)


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
