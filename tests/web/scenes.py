"""Real servers for tests of the page, as processes, each with a state folder and a project folder of its own.

    with page_of(tmp_path) as local:            # `penstock ui`
        run = local.api.done(FAILS)
        local.sign_in(page.context)
        local.open(page, f"/runs/{run}")

    with served(tmp_path) as server:            # `penstock serve`
        secret = server.token("reader", "read")

What a process says is kept; a Traceback in it fails the test.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page

from tests import warm
from tests.api.service import Api
from tests.cli.support import SOURCE
from tests.web.documents import DOCUMENTS

PATIENCE_S = 60.0


def environment(folder: Path) -> dict[str, str]:
    """Nothing of this machine's user is in sight."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_") and name != "NO_COLOR"}
    path = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH", "")]))
    return {**own, "PYTHONPATH": path, "XDG_STATE_HOME": str(folder / "xdg"), "TERM": "dumb"}


class Process:
    """A command that goes on, and what it says."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self._said = folder.parent / f"said-{time.monotonic_ns()}"
        with self._said.open("wb") as file:
            self.process = warm.starting(
                *words, cwd=folder, stdout=file, stderr=subprocess.STDOUT, env=environment(folder.parent)
            )

    @property
    def said(self) -> str:
        return self._said.read_text(encoding="utf-8")

    def until(self, is_so: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := is_so()):
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.02)
        return found

    def until_said(self, pattern: str) -> re.Match[str]:
        found = self.until(lambda: re.search(pattern, self.said))
        assert isinstance(found, re.Match)
        return found

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


class Server(Process):
    """`penstock serve`, or `penstock ui` when it has a token of its own."""

    url: str
    api: Api
    secret: str | None = None

    def token(self, name: str, scope: str) -> str:
        answer = self.api.post("/api/tokens", {"name": name, "scope": scope})
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["secret"])

    def sign_in(self, context: BrowserContext, secret: str | None = None) -> None:
        """As the page does it when somebody has given it a token."""
        answer = context.request.post(
            f"{self.url}/api/session", data={"token": secret or self.secret}, headers={"Origin": self.url}
        )
        assert answer.ok, answer.text()

    def open(self, page: Page, path: str) -> None:
        page.goto(f"{self.url}{path}")

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def page_of(folder: Path, *words: str, listen: str = "127.0.0.1:0") -> Iterator[Server]:
    """`penstock ui` on `folder/project`, with its state in `folder/home`."""
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    server = Server(project, "ui", "--no-open", "--listen", listen, "--store", "../home", "--grace", "0", *words)
    with _closed(server):
        found = server.until_said(r"the page: (http://\S+?)/?#token=(\S+)")
        server.url, server.secret = found[1], found[2]
        server.api = Api(server.url, server.secret)
        yield server


@contextmanager
def served(folder: Path, *words: str, listen: str = "127.0.0.1:0") -> Iterator[Server]:
    """`penstock serve` in `folder/project`, with its state in `folder/home`."""
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    server = Server(project, "serve", "--listen", listen, "--store", "../home", "--grace", "0", *words)
    with _closed(server):
        server.url = server.until_said(r"serving (http\S+)")[1]
        server.api = Api(server.url)
        yield server


@contextmanager
def _closed(server: Server) -> Iterator[None]:
    try:
        yield
    finally:
        if hasattr(server, "api"):
            server.api.close()
        server.stop()
        assert "Traceback" not in server.said, server.said


def write(folder: Path, *names: str) -> None:
    """Documents of tests/web/documents.py, as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.yaml").write_text(DOCUMENTS[name], encoding="utf-8")
