"""`penstock serve`, `worker` and `up`: the processes of a fleet, which run until they are stopped.

The first signal stops a process in order, the second at once. `up` supervises a server and workers: each line they print is
printed with their name, and one that dies is started again.

Law: a process that dies again and again is restarted after longer and longer pauses; one that refuses to run at all (exit 2) is
not restarted, because it would refuse again, and everything stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.output import safe, say
from penstock.cli.targets import addresses_of, hosts_of, locations_of, pool_of, slots_of
from penstock.tools.addresses import VARIABLE

if TYPE_CHECKING:
    from penstock.app.worker import OpenWorker


FIRST_REST_S = 0.5
LONGEST_REST_S = 30.0
GOOD_S = 30.0
"""After a process has run this long, the next pause is short again."""
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
        # Workers first, so that a server is still there when they return their leases.
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
            if code == 0 and child is not self._server:
                self._tell(child, "was drained, and is not started again")
                return
            if time.monotonic() - started > GOOD_S:
                child.rest_s = FIRST_REST_S
            self._tell(child, f"died ({_ending(code)}); again in {child.rest_s:g} s")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(child.rest_s):
                    await self._stopping.wait()
            child.rest_s = min(LONGEST_REST_S, child.rest_s * 2)

    async def _life(self, child: Child) -> int:
        """Runs the process to its end and returns its exit code."""
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
            start_new_session=True,  # The children ignore Ctrl-C: this process stops them in order.
        )
        assert child.process.stdout is not None
        try:
            while line := await child.process.stdout.readline():
                self._tell(child, line.decode("utf-8", "replace").rstrip())
        except ValueError:  # The line is too long: the rest of it is dropped, and does not block the process.
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


def _ending(code: int) -> str:
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name


def up(options: Namespace) -> int:
    from penstock.app.stores import private_postgres  # Only fleets need it.

    locations = locations_of(options)
    # Mistakes on the command line are reported before anything starts.
    reached = [f"--allow-address={word}" for word in _reached(options)]
    served = _served(options)
    with (
        private_postgres(locations.home) if locations.database is None else nullcontext(locations.database) as database
    ):
        if options.verbose:
            say(f"database {database}")
        settings = {
            "PENSTOCK_DATABASE": database,
            "PENSTOCK_HOME": str(locations.home),
            "PENSTOCK_RESULTS": locations.results,
            "PENSTOCK_DISPATCH": locations.dispatch,
            "PENSTOCK_BASE": None if locations.base is None else str(locations.base),
        }
        environment = {name: value for name, value in settings.items() if value is not None}
        common = ["--lease", str(options.lease), "--grace", str(options.grace)]
        work = [*common, *reached, "--pool", pool_of(options), "--slots", str(slots_of(options))]
        server = Child("server", ["serve", *common, *reached, *served], environment)
        workers = [
            Child(f"worker-{number}", ["worker", *work], environment) for number in range(1, options.workers + 1)
        ]
        supervisor = Supervisor(server, workers, options.grace)
        run_until_stopped(supervisor.run, supervisor.stop)
    say("all have stopped")
    return supervisor.exit_code


def _reached(options: Namespace) -> list[str]:
    """On a trial machine, databases and test servers are local; addresses that are given replace this default."""
    addresses_of(options)  # Refused here, once, and not by each process.
    return options.allow_address or [word for word in (os.environ.get(VARIABLE),) if word] or ["loopback"]


def _served(options: Namespace) -> list[str]:
    given = ["--listen", options.listen]
    for name in ("tls_cert", "tls_key", "max_body"):
        value = getattr(options, name)
        if value is not None:
            given += [f"--{name.replace('_', '-')}", str(Path(value).absolute() if name.startswith("tls") else value)]
    hosts_of(options)  # Refused here, once, and not again and again by the server.
    given += [f"--allow-host={name}" for name in options.allow_host]
    return [*given, "--no-auth"] if options.no_auth else given


def worker(options: Namespace) -> int:
    job = _Crew(options)
    run_until_stopped(job.run, job.stop)
    return 0


class _Crew:
    def __init__(self, options: Namespace) -> None:
        self._options = options
        self._worker: OpenWorker | None = None
        self._draining: asyncio.Task[None] | None = None

    async def run(self) -> None:
        from penstock.app.worker import open_worker  # Each process loads only what it runs.

        options = self._options
        worker = open_worker(
            locations_of(options),
            name=options.name,
            pool=pool_of(options),
            slots=slots_of(options),
            labels=frozenset(options.label),
            beat_s=options.lease / 3,
            addresses=addresses_of(options),
            grace_s=options.grace,
        )
        self._worker = worker
        card = worker.worker.card
        say(f"worker {card.id} in pool `{card.pool}`, {card.slots} at a time")
        await worker.run()
        if self._draining is not None:
            await self._draining
        say(f"worker {card.id} has stopped")

    def stop(self) -> None:
        if self._worker is not None:
            self._draining = asyncio.ensure_future(self._worker.worker.drain(self._options.grace))


SIGNALS = (signal.SIGINT, signal.SIGTERM)
AT_ONCE = 3


def run_until_stopped(main: Callable[[], Awaitable[None]], stop: Callable[[], None]) -> None:
    """Runs `main` to its end. The first signal calls `stop` on the event loop."""
    asyncio.run(_Stoppable(stop).run(main))


# What a process has loaded stays for as long as it lives: the garbage collector need not look through it again and again.
SETTLED_S = 2.0
COLLECT_EVERY = 10_000


def _settle() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY)


class _Stoppable:
    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._is_stopping = False

    async def run(self, main: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(SETTLED_S, _settle)
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            await main()
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _on_signal(self, number: int) -> None:
        if self._is_stopping:
            with suppress(OSError):
                sys.stderr.flush()
            os._exit(AT_ONCE)
        self._is_stopping = True
        say(f"{signal.Signals(number).name}: stopping; once more ends it at once")
        self._stop()


def serve(options: Namespace) -> int:
    from penstock.app.server_process import ServeSettings, Service  # Each process loads only what it runs.

    settings = ServeSettings(
        locations=locations_of(options),
        listen=options.listen,
        lease_s=options.lease,
        slots=slots_of(options),
        name=options.name,
        tls_cert=Path(options.tls_cert) if options.tls_cert else None,
        tls_key=Path(options.tls_key) if options.tls_key else None,
        no_auth=options.no_auth,
        max_body=options.max_body,
        grace_s=options.grace,
        addresses=addresses_of(options),
        hosts=hosts_of(options),
    )
    service = Service(settings, say)
    run_until_stopped(service.run, service.stop)
    return 0
