"""A process that forks a fresh one per trial, with everything imported and not one thread started: milliseconds each.

with Zygote() as zygote:
    ended = zygote.call(function, argument=…)       # in a process of its own; what it returns must be JSON
    child = zygote.spawn(function, argument=…)      # the same without waiting
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
HANGS_AFTER_S = 60.0


@dataclass(frozen=True)
class Ended:
    """`code` is the exit code, negative for the signal that ended it."""

    code: int
    value: Any = None
    error: str = ""


class Zygote:
    def __enter__(self) -> Zygote:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.zygote"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def call(self, function: Callable[..., Any], **arguments: Any) -> Ended:
        return self.wait(self.spawn(function, **arguments))

    def spawn(self, function: Callable[..., Any], **arguments: Any) -> int:
        """The process id."""
        name = f"{function.__module__}:{function.__qualname__}"
        return int(self._ask({"spawn": name, "arguments": arguments}))

    def wait(self, pid: int) -> Ended:
        return Ended(**self._ask({"wait": pid}))

    def _ask(self, command: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], HANGS_AFTER_S)
            assert ready, f"{command} does not end"
            piece = os.read(self._process.stdout.fileno(), 65536)
            assert piece, "the zygote has died"
            line += piece
        return json.loads(line)


# ---- inside the zygote


def _serve(*modules: str) -> None:
    """Fork for whoever asks, with these modules loaded."""
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # So that the trials share these pages.
    pipes: dict[int, int] = {}
    for line in sys.stdin.buffer:
        command = json.loads(line)
        if "spawn" in command:
            reply: Any = _fork(command["spawn"], command["arguments"], pipes)
        else:
            reply = _reap(command["wait"], pipes)
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def _fork(name: str, arguments: dict[str, Any], pipes: dict[int, int]) -> int:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        for other in pipes.values():
            os.close(other)
        _become(name, arguments, writing)
    os.close(writing)
    pipes[pid] = reading
    return pid


def _become(name: str, arguments: dict[str, Any], writing: int) -> NoReturn:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # standard output belongs to the zygote
    try:
        module, _, function = name.partition(":")
        value = getattr(importlib.import_module(module), function)(**arguments)
        _say(writing, {"value": value})
    except BaseException:
        _say(writing, {"error": traceback.format_exc()})
        os._exit(70)
    os._exit(0)


def _say(writing: int, what: dict[str, Any]) -> None:
    data = json.dumps(what).encode()
    while data:
        data = data[os.write(writing, data) :]


def _reap(pid: int, pipes: dict[int, int]) -> dict[str, Any]:
    reading = pipes.pop(pid)
    data = b""
    while piece := os.read(reading, 65536):
        data += piece
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    said: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        said = json.loads(data)
    return {"code": os.waitstatus_to_exitcode(status), **said}


if __name__ == "__main__":
    _serve("penstock.app.embedded", "penstock.tools.python.tool", "penstock.tools.flow", "tests.chaos.trials")
