"""Python code in an interpreter of its own: what it breaks is its own, and it ends when it is told to.

This is not a sandbox. The code runs as the same user, with the same files and network; the limits keep an honest mistake from
taking the engine with it, and the short environment keeps the engine's secrets out of it, no more.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from penstock.ports.folders import CatalogFolder
from penstock.tools.base import Call, ToolFailure
from penstock.tools.output import Lines
from penstock.tools.process import Child, shorter, signal_name, start
from penstock.tools.python.code import Code, Reply

MAX_RESULT_BYTES = 256 * 1024 * 1024
EXIT_SECONDS = 5.0
"""For what the interpreter does at its end: open files are written out, `atexit` functions run."""
_INHERITED = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
    *("LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)


@dataclass(frozen=True, slots=True)
class Bounds:
    cpu_s: float | None = None
    memory_mb: float | None = None
    time_s: float | None = None
    result_bytes: int = MAX_RESULT_BYTES


@dataclass(slots=True)
class _Mail:
    """The reply as it comes in: eight bytes of length, then JSON."""

    limit: int
    complete: asyncio.Future[None]
    data: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> None:
        if len(self.data) <= self.limit + 8:
            self.data += data
        if self.is_complete() and not self.complete.done():
            self.complete.set_result(None)

    def is_complete(self) -> bool:
        return len(self.data) >= 8 and len(self.data) >= 8 + int.from_bytes(self.data[:8], "big")

    def reply(self) -> Reply | None:
        if not self.is_complete():
            return None
        try:
            message = msgspec.json.decode(self.data[8:], type=_Message)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None  # the code has written into a pipe that is not its own
        return Reply(message.result, message.failure)


class _Message(msgspec.Struct):
    result: Any = None
    failure: dict[str, Any] | None = None


async def run_isolated(
    code: Code,
    arguments: dict[str, Any],
    call: Call,
    bounds: Bounds,
    env: dict[str, str],
    around: Mapping[str, Any] = MappingProxyType({}),
) -> Reply:
    """The reply of the code, or a ToolFailure that says how its interpreter ended without one. `around`: as `perform` has it."""
    lines = [Lines(call.say, call.settings.max_output_bytes) for _ in range(2)]
    mail = _Mail(bounds.result_bytes, asyncio.get_running_loop().create_future())
    child = start(
        [sys.executable, "-I", str(Path(__file__).with_name("isolated_main.py"))],
        env={**{name: os.environ[name] for name in _INHERITED if name in os.environ}, **env},
        cwd=None,
        stdin=_request(code, arguments, around, call, bounds),
        stdout=lines[0].feed,
        stderr=lines[1].feed,
        hold_stdin=True,
        reply=mail.feed,
    )
    limit = shorter(bounds.time_s, call.timeout())
    try:
        async with asyncio.timeout(limit):
            exit_code = await _conversation(child, mail)
    except TimeoutError:
        raise ToolFailure("timeout", f"the code was still running after {limit:g} s", retryable=True) from None
    finally:
        child.close()
        for each in lines:
            each.close()
    reply = mail.reply()
    if reply is None:
        raise _ended_without_reply(exit_code, bounds)
    return reply


async def _conversation(child: Child, mail: _Mail) -> int:
    await asyncio.wait([mail.complete, child.exited], return_when=asyncio.FIRST_COMPLETED)
    if mail.complete.done():
        await asyncio.wait([child.exited], timeout=EXIT_SECONDS)
        if not child.exited.done():
            return child.close()
    return await child.ended()


def _request(
    code: Code, arguments: dict[str, Any], around: Mapping[str, Any], call: Call, bounds: Bounds
) -> bytes:
    data = msgspec.json.encode(
        {
            "code": list(code),
            "args": arguments,
            "around": dict(around),
            "path": [*(os.path.abspath(entry) for entry in sys.path), str(call.folder)],
            "cpu_s": bounds.cpu_s,
            "memory_mb": bounds.memory_mb,
            "max_bytes": bounds.result_bytes,
        }
    )
    return len(data).to_bytes(8, "big") + data


def _ended_without_reply(code: int, bounds: Bounds) -> ToolFailure:
    if -code in (signal.SIGXCPU, signal.SIGPROF) and bounds.cpu_s is not None:
        return ToolFailure(
            "cpu_limit", f"the code used more than its {bounds.cpu_s:g} s of CPU time", cpu_s=bounds.cpu_s
        )
    if code < 0:
        name = signal_name(-code)
        return ToolFailure("crashed", f"the code's interpreter was ended by {name}", signal=name)
    return ToolFailure(
        "crashed", f"the code ended its interpreter with exit code {code}, without a result", exit_code=code
    )


# ---- Modules beside a document: code in it may import them by their names.
# A process keeps one module of a name, and a project has other files in every version: so modules of another project or
# version that have a name which this one has, too, are let go before its code begins. Code that imports while it runs,
# beside code of another version in the same process, may still see that one's; code in a process of its own does not.

_lock = threading.Lock()
_of_projects: set[str] = set()
"""Folders of projects that are among those which modules are looked for in."""


def prefer(folder: Path) -> None:
    """Modules in that folder can be imported; one there never hides an installed one."""
    entry = str(folder)
    with _lock:
        if isinstance(folder, CatalogFolder) and folder.around.files is not None:
            _let_go(entry)
            _of_projects.add(entry)
            sys.path[:] = [one for one in sys.path if one not in _of_projects] + [
                entry,
                *(one for one in sys.path if one in _of_projects and one != entry),
            ]
        elif entry not in sys.path:
            sys.path.append(entry)


def _let_go(entry: str) -> None:
    try:
        names = {name.partition(".")[0] for name in os.listdir(entry)}
    except OSError:
        return
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] not in names or not isinstance(file, str):
            continue
        home = next((one for one in _of_projects if file.startswith(one + os.sep)), None)
        if home is not None and home != entry:
            del sys.modules[name]
    importlib.invalidate_caches()
