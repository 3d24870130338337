"""The whole of an isolated task's interpreter: read a request, limit oneself, run the code, write the reply, end.

Started by path, never imported, with its request on standard input and the pipe for its reply in `PENSTOCK_REPLY_FD`.
A message is eight bytes of length, big end first, and JSON. Standard input stays open as long as the engine lives: its end
is the sign to die, so that a task never outlives an engine that was killed.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import threading
from types import MappingProxyType, ModuleType
from typing import Any

REPORTING_BYTES = 64 * 1024 * 1024
"""Memory above the limit that is set free when the code is done, for the report that it was too little."""


def main() -> None:
    reply_to = int(os.environ.pop("PENSTOCK_REPLY_FD"))
    os.set_inheritable(reply_to, False)
    performer, readable = _load_performer()
    request = json.loads(_read_message(0), object_hook=readable)
    _die_with_the_engine()
    sys.path[:] = request["path"]
    sys.argv[:] = [request["code"][3]]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable(all_threads=False)
    problem = _limit(request["cpu_s"], request["memory_mb"])
    if problem is not None:
        _send(reply_to, {"failure": _failure("parameters", problem)}, request["max_bytes"])
        return
    arguments, around = request.pop("args"), request.pop("around")
    if "context" in around:
        around["context"] = MappingProxyType(around["context"])
    reply = performer.perform(performer.Code(*request["code"]), lambda: arguments, None, around)
    _lift_memory_limit()
    _send(reply_to, {"result": reply.result, "failure": reply.failure}, request["max_bytes"])


def _read_message(descriptor: int) -> bytes:
    def exactly(size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            data = os.read(descriptor, min(size - len(parts), 1 << 20))
            if not data:
                os._exit(1)  # the engine is gone before it said what to do
            parts += data
        return bytes(parts)

    return exactly(int.from_bytes(exactly(8), "big"))


def _send(descriptor: int, message: dict[str, Any], limit: int) -> None:
    try:
        data = json.dumps(message, allow_nan=False).encode()
    except MemoryError:
        data = json.dumps(
            {"failure": _failure("memory", "MemoryError: the result does not fit into the memory limit")}
        ).encode()
    if len(data) > limit:
        text = f"the result has {len(data)} bytes, more than the {limit} an isolated task may give back"
        data = json.dumps({"failure": _failure("too_large", text)}).encode()
    sys.stdout.flush()
    rest = memoryview(len(data).to_bytes(8, "big") + data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.close(descriptor)


def _failure(kind: str, message: str) -> dict[str, Any]:
    return {"kind": kind, "message": message, "retryable": False, "helpers": {}, "detail": {}}


def _die_with_the_engine() -> None:
    life = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def watch() -> None:
        if not os.read(life, 1):
            os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _load_performer() -> Any:
    """`penstock.tools.python.code`, and how its arguments are read, without the packages around them, whose own imports would
    cost every task their time."""
    folder = os.path.dirname(os.path.abspath(__file__))
    tools = os.path.dirname(folder)
    package = os.path.dirname(tools)
    stubs = {"penstock": package, "penstock.tools": tools, "penstock.tools.python": folder}
    stubs["penstock.expr"] = os.path.join(package, "expr")
    for name, path in stubs.items():
        stub = ModuleType(name)
        stub.__path__ = [path]
        sys.modules[name] = stub
    from penstock.expr.result_views import readable  # Behind the stubs.
    from penstock.tools.python import code

    for name in stubs:
        del sys.modules[name]  # the code may import the real ones
    return code, readable


def _limit(cpu_s: float | None, memory_mb: float | None) -> str | None:
    """Set the limits; a sentence when the system does not let us."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        if cpu_s is not None:
            # Whole seconds for this process and all it starts; the timer is exact, for this process.
            whole = -int(-cpu_s // 1)
            _lower(resource.RLIMIT_CPU, whole, whole + 1)
            signal.setitimer(signal.ITIMER_PROF, cpu_s)
        if memory_mb is not None:
            wanted = _address_space() + int(memory_mb * 1024 * 1024)
            _lower(resource.RLIMIT_AS, wanted, wanted + REPORTING_BYTES)
    except (ValueError, OSError) as error:
        return f"the limits cannot be set on this system: {error}"
    return None


def _lower(which: int, soft: int, hard: int) -> None:
    ceiling = resource.getrlimit(which)[1]
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(which, (soft, hard))


def _lift_memory_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _address_space() -> int:
    """What the bare interpreter has already: the author's limit is for the author's code."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


if __name__ == "__main__":
    main()
