"""Looking after processes: each line they say is printed with their name, and one that dies is started again.

Law: a process that dies again and again is given longer and longer rests, so that a mistake does not burn the machine; one that
refuses to run at all (exit 2) is not started again, because it would refuse again, and everything stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.cli.output import safe, say

FIRST_REST_S = 0.5
LONGEST_REST_S = 30.0
GOOD_S = 30.0
"""One that lived so long has had a good life: the next rest is short again."""
REFUSED = 2
MORE_S = 5.0
LONGEST_LINE = 1 << 20


@dataclass(slots=True)
class Child:
    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    process: asyncio.subprocess.Process | None = None
    rest_s: float = FIRST_REST_S
    starts: int = field(default=0)


class Supervisor:
    def __init__(self, server: Child, workers: list[Child], grace_s: float) -> None:
        self.exit_code = 0
        self._server, self._workers = server, workers
        self._children = [server, *workers]
        self._grace_s = grace_s
        self._width = max(len(child.name) for child in self._children)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        keepers = [asyncio.ensure_future(self._keep(child)) for child in self._children]
        await self._stopping.wait()
        # Workers first: what they give back is then heard by a server that is still there.
        for group in (self._workers, [self._server]):
            await self._end(group)
        await asyncio.gather(*keepers)

    async def _keep(self, child: Child) -> None:
        while not self._stopping.is_set():
            started = time.monotonic()
            code = await self._life(child)
            if self._stopping.is_set():
                return
            if code == REFUSED:
                self._tell(child, "refuses to run, so everything stops")
                self.exit_code = REFUSED
                self.stop()
                return
            if time.monotonic() - started > GOOD_S:
                child.rest_s = FIRST_REST_S
            self._tell(child, f"died ({_said(code)}); again in {child.rest_s:g} s")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(child.rest_s):
                    await self._stopping.wait()
            child.rest_s = min(LONGEST_REST_S, child.rest_s * 2)

    async def _life(self, child: Child) -> int:
        """From its start to its end: its exit code."""
        child.starts += 1
        child.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "penstock",
            *child.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **child.environment},
            limit=LONGEST_LINE,
            start_new_session=True,  # A Ctrl-C is for us: we tell the others, in their order.
        )
        assert child.process.stdout is not None
        try:
            while line := await child.process.stdout.readline():
                self._tell(child, line.decode("utf-8", "replace").rstrip())
        except ValueError:  # A line without end: what follows is not shown, and does not stop the process either.
            while await child.process.stdout.read(LONGEST_LINE):
                pass
        return await child.process.wait()

    async def _end(self, children: list[Child]) -> None:
        alive = [child.process for child in children if child.process is not None and child.process.returncode is None]
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        waits = [asyncio.ensure_future(process.wait()) for process in alive]
        if waits:
            _, late = await asyncio.wait(waits, timeout=self._grace_s + MORE_S)
            for process in alive if late else ():
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
            await asyncio.gather(*waits)

    def _tell(self, child: Child, text: str) -> None:
        say(f"{child.name:<{self._width}} | {safe(text)}")


def _said(code: int) -> str:
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name
