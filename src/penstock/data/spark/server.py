"""A Spark on this machine, for development and tests: a Connect server in local mode, in a process of its own.

It is started when it is first asked for, serves all jobs of this process, and ends with it, also when that is killed: the shell
that watches over it waits for the end of its input.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path

from penstock.ports.rows import RowsFailed

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_PATIENCE_S = 120.0
_WATCH = '"$@" & echo $!; cat >/dev/null; kill -9 $! 2>/dev/null'
"""The server in the background; at the end of the input, the end of the server."""


def require_client() -> None:
    """Raises RowsFailed when this installation cannot talk to Spark."""
    if find_spec("pyspark") is None or find_spec("grpc") is None:
        raise RowsFailed("not_installed", "the engine `spark` needs its client: `pip install 'penstock[spark]'`")


def _home() -> Path:
    require_client()
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    if not (home / "jars").is_dir():
        raise RowsFailed(
            "not_installed",
            "`master` starts a Spark on this machine, and only its client is installed: `pip install 'penstock[spark-local]'`",
        )
    java = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (java and Path(java, "bin", "java").exists()):
        raise RowsFailed(
            "not_installed",
            "`master` starts a Spark on this machine, which needs Java 17: `apt install openjdk-17-jre-headless`",
        )
    return home


def _linked(home: Path, folder: Path) -> Path:
    """A home of Spark in which its workers may keep their files: the installed one is not ours to write to."""
    folder.mkdir()
    for part in home.iterdir():
        (folder / part.name).symlink_to(part)
    return folder


class LocalSpark:
    """One server."""

    def __init__(self, master: str, conf: dict[str, str] | None = None, port: int | None = None) -> None:
        home = _home()
        self.port = port or _free_port()
        self._folder = tempfile.mkdtemp(prefix="penstock-spark-")
        if master.startswith("local-cluster"):
            home = _linked(home, Path(self._folder, "home"))
        settings = {
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": f"{self._folder}/warehouse",
            "spark.local.dir": self._folder,
            **(conf or {}),
        }
        command = [str(home / "bin" / "spark-submit"), "--class", _SERVER, "--master", master]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        environ = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
        self._log = Path(self._folder, "server.log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _WATCH, "spark", *command, "spark-internal"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environ, cwd=self._folder,
                start_new_session=True,
            )  # fmt: skip
        assert self._process.stdout is not None
        self.pid = int(self._process.stdout.readline())
        """Of the server itself."""
        self._wait()

    @property
    def remote(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def _wait(self) -> None:
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if not self.is_alive:
                break
            time.sleep(0.1)
        said = [
            line
            for line in self._log.read_text(errors="replace").splitlines()
            if "ERROR" in line or "Exception" in line
        ]
        self.stop()
        raise RowsFailed(
            "connection", f"the local Spark did not start: {said[0] if said else 'it said nothing'}", retryable=True
        )

    @property
    def is_alive(self) -> bool:
        try:
            with open(f"/proc/{self.pid}/stat") as about:
                return about.read().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return _answers(self.pid) if not os.path.isdir("/proc/self") else False

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


_lock = threading.Lock()
_running: dict[str, LocalSpark] = {}


def local_spark(master: str) -> LocalSpark:
    """The one server of this process for a master; another in its place when it has died."""
    with _lock:
        found = _running.get(master)
        if found is None or not found.is_alive:
            if found is None and not _running:
                atexit.register(_stop_all)
            elif found is not None:
                found.stop()
            found = _running[master] = LocalSpark(master)
        return found


def _stop_all() -> None:
    for server in _running.values():
        server.stop()
