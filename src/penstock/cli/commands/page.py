"""`penstock ui`, and `penstock run FILE --ui`: the web page on the runs and documents of a folder, for its owner alone.

It is a server without a database on the state folder, which listens on the loopback and asks for a token that it made up. A
second one for the same folder is not started: the address of the first is opened.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app.state_folder import ServerRecord, home_for, home_here, remember, running_servers
from penstock.cli.arguments import CommandLineError
from penstock.cli.commands.processes import run_until_stopped
from penstock.cli.output import CYAN, painted, safe, say
from penstock.cli.targets import DEFAULT_SLOTS, slots_of
from penstock.tools.addresses import OPEN

if TYPE_CHECKING:
    from penstock.app.server_process import Service
    from penstock.ports.log import Entry

LISTEN = "127.0.0.1:0"
START_S = 30.0
POLL_S = 0.05


def ui(options: Namespace) -> int:
    root = _project(options.project)
    # A project that is named has its own state folder, as when it is the current folder.
    home = home_here(options.store) if options.project is None else home_for(root / "document.yaml", options.store)
    found = _served(home) or _fleet(home)
    if found is not None:
        say(f"the page of `{home}` is served already, by process {found.pid}")
        show(found.address, opens=not options.no_open)
        return 0
    service = _service(home, root, options)

    async def serving() -> None:
        opening = asyncio.ensure_future(_announced(service, lambda: show(_address(service), opens=not options.no_open)))
        try:
            await service.run()
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)

    run_until_stopped(serving, service.stop)
    return 0


async def _announced(service: Service, announce: Callable[[], None]) -> None:
    await service.is_ready.wait()
    announce()
    say("Ctrl-C stops it; closing the browser does not")


def _project(given: str | None) -> Path:
    root = Path(given or ".").expanduser().resolve()
    if not root.is_dir():
        raise CommandLineError(f"`--project {given}` is not a folder", "name the folder that your documents are in")
    return root


def _service(home: Path, root: Path, options: Namespace) -> Service:
    # Each process loads only what it runs.
    from penstock.api.sessions import Local
    from penstock.app.server_process import ServeSettings, Service
    from penstock.app.stores import StoreLocations

    remember(home)
    settings = ServeSettings(
        StoreLocations(home),
        listen=getattr(options, "listen", None) or LISTEN,
        slots=slots_of(options) if hasattr(options, "slots") else DEFAULT_SLOTS,
        grace_s=options.grace,
        addresses=OPEN,
        local=Local(root),
    )
    return Service(settings, lambda text: None)


def _address(service: Service) -> str:
    assert service.settings.local is not None
    return ServerRecord(os.getpid(), service.url, None, service.settings.local.secret).address


def _served(home: Path) -> ServerRecord | None:
    """The page of this folder, if a process serves it already."""
    return next((one for one in running_servers(home) if one.token is not None), None)


def _fleet(home: Path) -> ServerRecord | None:
    """The server of a fleet that has this state folder: its runs are in a database, and not in the folder."""
    return next((one for one in running_servers(home) if one.database is not None), None)


def show(address: str, *, opens: bool) -> None:
    tell(address)
    if opens:
        open_browser(address)


def tell(address: str) -> None:
    say(f"the page: {painted(safe(address), CYAN)}")


def open_browser(address: str) -> None:
    """Opens it, unless there is no browser to open it in."""
    if _has_screen():
        threading.Thread(target=_open, args=(address,), daemon=True).start()


def _has_screen() -> bool:
    """Without a screen a browser for terminals would take over this one."""
    named = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in named)


def _open(address: str) -> None:
    import webbrowser  # Only this needs it.

    with suppress(Exception):  # The address was printed: a browser that does not start keeps nobody from opening it.
        webbrowser.open(address)


def at_run(address: str, execution_id: str) -> str:
    """The address of a run, on the page with this address."""
    before, mark, token = address.partition("#")
    return f"{before.rstrip('/')}/runs/{execution_id}{mark}{token}"


# ---- beside a run


class Beside:
    """The page beside a run of this process: served in a thread of its own, unless another process serves it already, and opened
    at the run once that is registered."""

    def __init__(self, home: Path, file: Path, execution_id: str, options: Namespace) -> None:
        self.rows: Callable[[str, str, int], None] = lambda component, port, rows: None
        """Called with the rows that a component has made so far, for those who look."""
        self._run = execution_id
        self._opens = not options.no_open
        self._found = _served(home)
        self._page: _Page | None = None
        self._is_new = threading.Lock()
        if self._found is None:
            here, folder = Path.cwd().resolve(), file.resolve().parent
            service = _service(home, here if folder.is_relative_to(here) else folder, options)
            self.rows = service.beside[execution_id].note
            self._page = _Page(service)

    def __enter__(self) -> Beside:
        if self._page is not None:
            self._page.start()
        tell(self._address)  # Before anything is drawn on the terminal.
        return self

    def __exit__(self, *_: object) -> None:
        if self._page is not None:
            self._page.stop()

    def observe(self, entry: Entry | None) -> None:
        """With the first event of the run there is something to show."""
        if self._opens and self._is_new.acquire(blocking=False):
            open_browser(self._address)

    def stay(self) -> None:
        """After the run, until Ctrl-C; not if another process serves the page."""
        self.observe(None)
        if self._page is not None:
            self._page.wait()

    @property
    def _address(self) -> str:
        if self._found is not None:
            return at_run(self._found.address, self._run)
        assert self._page is not None
        return at_run(self._page.address, self._run)


class _Page:
    """The server of the page in a thread."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="page")

    @property
    def address(self) -> str:
        return _address(self._service)

    def start(self) -> None:
        self._thread.start()
        self._is_ready.wait(START_S)
        if self._error is not None:
            self._thread.join()
            raise self._error

    def wait(self) -> None:
        """Until Ctrl-C, or until the server has failed."""
        say("the page stays open; Ctrl-C stops it")
        told = threading.Event()
        before = {number: signal.signal(number, lambda *_: told.set()) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not told.wait(POLL_S) and self._thread.is_alive():
                pass
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # It has ended by itself.
                self._loop.call_soon_threadsafe(self._service.stop)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # Raised again by whoever starts it.
            self._error = error
        finally:
            self._is_ready.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        serving = asyncio.ensure_future(self._service.run())
        ready = asyncio.ensure_future(self._service.is_ready.wait())
        await asyncio.wait({serving, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        self._is_ready.set()
        await serving
