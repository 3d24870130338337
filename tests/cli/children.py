"""Commands that go on until they are stopped: servers and workers, and what they say."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import warm
from tests.cli.support import PATIENCE_S, environment


class Child:
    """A command that goes on, and what it says."""

    def __init__(self, *words: str, **variables: str) -> None:
        self.said = Path(f"said-{time.monotonic_ns()}")
        with self.said.open("wb") as file:
            self.process = warm.starting(
                *words, stdout=file, stderr=subprocess.STDOUT, env={**environment(), **variables}
            )

    @property
    def text(self) -> str:
        return self.said.read_text()

    def until(self, is_so: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := is_so()):
            assert self.process.poll() is None, self.text
            assert time.monotonic() < deadline, self.text
            time.sleep(0.05)
        return found

    def until_said(self, pattern: str) -> re.Match[str]:
        found = self.until(lambda: re.search(pattern, self.text))
        assert isinstance(found, re.Match)
        return found

    @property
    def url(self) -> str:
        return self.until_said(r"serving (http\S+)")[1]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def running(*words: str, **variables: str) -> Iterator[Child]:
    child = Child(*words, **variables)
    try:
        yield child
    finally:
        if child.process.poll() is None:
            child.process.terminate()
            child.process.wait(PATIENCE_S)
        assert "Traceback" not in child.text, child.text
