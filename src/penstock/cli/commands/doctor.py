"""`penstock doctor`: is this machine fit to run playbooks and jobs? Exit 0 when it is, 4 when something would fail."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.app.embedded import embedded
from penstock.app.maintenance import Scan
from penstock.app.state_folder import home_here
from penstock.app.stores import StoreLocations, open_log, open_results
from penstock.cli.output import GREEN, RED, YELLOW, painted, put, put_json, safe
from penstock.components.registry import ComponentRegistry
from penstock.kernel.errors import PenstockError
from penstock.keychain import LocalStore
from penstock.tools.plugins import plugin_folders
from penstock.tools.registry import Registry

LEAST_BYTES = 200 * 1024 * 1024
SLOW_FSYNC_S = 0.05
READABLE_BY_OTHERS = 0o044


@dataclass(frozen=True, slots=True)
class Finding:
    """`state`: ok, warning or error."""

    what: str
    state: str
    text: str
    hint: str = ""


def doctor(options: Namespace) -> int:
    home = home_here(options.store)
    findings = [finding for check in CHECKS for finding in _found(check, home)]
    if options.log:
        findings += _log(home, options.database)
    code = 4 if any(one.state == "error" for one in findings) else 0
    if options.json:
        checks = [
            {"what": one.what, "state": one.state, "text": one.text, "hint": one.hint or None} for one in findings
        ]
        put_json({"status": "fit" if code == 0 else "unfit", "exit_code": code, "store": str(home), "checks": checks})
        return code
    marks = {"ok": ("ok", GREEN), "warning": ("warning", YELLOW), "error": ("error", RED)}
    for one in findings:
        word, paint = marks[one.state]
        put(f"{painted(f'{word:<7}', paint, sys.stdout)}  {one.what:<14} {safe(one.text)}")
        if one.hint:
            put(f"{'':<9}{'':<15}hint: {safe(one.hint)}")
    return code


def _found(check: Callable[[Path], Iterator[Finding]], home: Path) -> Iterator[Finding]:
    """A check that fails is a finding as well, and does not stop the others."""
    try:
        yield from check(home)
    except OSError as error:
        text = f"`{error.filename or home}`: {(error.strerror or str(error)).lower()}"
        yield Finding(check.__name__.strip("_").replace("_", " "), "error", text, "is the state folder yours to read?")


def _python(home: Path) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    is_enough = sys.version_info >= (3, 11)
    yield Finding(
        "python",
        "ok" if is_enough else "error",
        f"{version} at {sys.executable}",
        "" if is_enough else "3.11 or newer is needed",
    )


def _sqlite(home: Path) -> Iterator[Finding]:
    is_enough = sqlite3.sqlite_version_info >= (3, 35)
    yield Finding(
        "sqlite", "ok" if is_enough else "error", sqlite3.sqlite_version, "" if is_enough else "3.35 or newer is needed"
    )


def _state_folder(home: Path) -> Iterator[Finding]:
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    probe = existing / f".penstock-doctor-{os.getpid()}"
    try:
        started = time.perf_counter()
        handle = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(handle, b"x" * 4096)
            os.fsync(handle)
        finally:
            os.close(handle)
            probe.unlink()
        took = time.perf_counter() - started
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        yield Finding(
            "state folder",
            "error",
            f"`{existing}` cannot be written: {reason}",
            "choose another with `--store` or `PENSTOCK_HOME`",
        )
        return
    there = "writable" if home.exists() else "will be made, its place is writable"
    yield Finding("state folder", "ok", f"{home}: {there}")
    if home.exists() and home.stat().st_mode & READABLE_BY_OTHERS:
        hint = f"`chmod 700 {home}`, or keep nothing else in it: then the next command does it"
        yield Finding("state folder", "warning", f"others on this machine can list {home}", hint)
    slow = took > SLOW_FSYNC_S
    yield Finding(
        "fsync",
        "warning" if slow else "ok",
        f"{took * 1000:.1f} ms",
        "every durable step waits for this disk" if slow else "",
    )
    free = shutil.disk_usage(existing).free
    is_enough = free >= LEAST_BYTES
    yield Finding(
        "disk",
        "ok" if is_enough else "warning",
        f"{free / 1e9:.1f} GB free",
        "" if is_enough else "make room before long runs",
    )


def _database(home: Path) -> Iterator[Finding]:
    path = home / "penstock.db"
    if not path.exists():
        yield Finding("database", "ok", "none yet")
        return
    try:
        engine = embedded(home)
        try:
            runs = len(engine.log.headers(100_000))
        finally:
            asyncio.run(engine.close())
        yield Finding("database", "ok", f"{path} ({path.stat().st_size / 1e6:.1f} MB, {runs:,} runs)")
    except PenstockError as error:
        yield Finding("database", "error", error.message, error.hint or "")


def _log(home: Path, database: str | None) -> Iterator[Finding]:
    """Checks everything in the log and the results against its checksum."""
    locations = StoreLocations.from_options(home, database)
    if locations.database is None and not (locations.home / "penstock.db").exists():
        yield Finding("log", "ok", "none yet")
        return
    scan, is_whole = Scan(), True
    try:
        log, blobs = open_log(locations, "doctor"), open_results(locations)
        try:
            for damage in scan.damages(log, blobs):
                is_whole = False
                yield Finding("log", "error", damage.text, damage.hint or "")
        finally:
            blobs.close()
            asyncio.run(log.close())
    except PenstockError as error:
        yield Finding("log", "error", error.message, error.hint or "")
        return
    if is_whole:
        read = f"{scan.runs:,} runs, {scan.events:,} events and {scan.results:,} results are as they were written"
        yield Finding("log", "ok", read)


def _tools(home: Path) -> Iterator[Finding]:
    registry = Registry().at(Path.cwd())
    kinds = registry.kinds()
    broken = list(_broken(kinds, registry.get, "tools"))
    yield from broken or [Finding("tools", "ok", f"{len(kinds)} kinds: {', '.join(kinds)}")]


def _components(home: Path) -> Iterator[Finding]:
    registry = ComponentRegistry().at(Path.cwd())
    types = registry.types()
    broken = list(_broken(types, registry.get, "components"))
    yield from broken or [Finding("components", "ok", f"{len(types)} types")]


def _broken(names: list[str], get: Callable[[str], object], what: str) -> Iterator[Finding]:
    for name in names:
        try:
            get(name)
        except PenstockError as error:
            yield Finding(what, "error", f"`{name}`: {error.message}", error.hint or "")


def _plugins(home: Path) -> Iterator[Finding]:
    """The files of the local `plugins` folder that cannot be loaded; what they define is checked with the tools and
    components."""
    for found in plugin_folders(Path.cwd()):
        for one in found.broken:
            yield Finding("plug-ins", "error", f"{one.file}:{one.line}: {one.reason}", "correct the file")
        if not found.broken:
            yield Finding(
                "plug-ins", "ok", f"{found.folder}: {', '.join(name for _, name in found.offers) or 'nothing'}"
            )


def _engine(home: Path) -> Iterator[Finding]:
    try:
        import duckdb  # Only this check needs it.
    except ImportError as error:
        yield Finding("duckdb", "error", f"cannot be loaded: {error}", "install penstock again: jobs need it")
        return
    yield Finding("duckdb", "ok", duckdb.__version__)


def _keychain(home: Path) -> Iterator[Finding]:
    store = LocalStore(home)
    if not store.exists():
        yield Finding("keychain", "ok", "no local secrets")
        return
    try:
        count = len(store.names())
    except PenstockError as error:
        yield Finding("keychain", "error", error.message, error.hint or "")
        return
    if store.key_is_open_to_others():
        yield Finding("keychain", "warning", f"others can read {store.key_path}", "`chmod 600` it")
    else:
        yield Finding("keychain", "ok", f"{count:,} secrets can be opened")


def _terminal(home: Path) -> Iterator[Finding]:
    size = shutil.get_terminal_size()
    kind = (
        f"{os.environ.get('TERM', 'no TERM')}, {size.columns} x {size.lines}"
        if sys.stderr.isatty()
        else "none: plain lines are printed"
    )
    encoding = (sys.stdout.encoding or "ascii").lower()
    is_fancy = encoding.startswith("utf")
    yield Finding(
        "terminal",
        "ok" if is_fancy else "warning",
        f"{kind}, {encoding}",
        "" if is_fancy else "set `PYTHONIOENCODING=utf-8`",
    )


CHECKS: tuple[Callable[[Path], Iterator[Finding]], ...] = (
    _python,
    _sqlite,
    _state_folder,
    _database,
    _tools,
    _components,
    _plugins,
    _engine,
    _keychain,
    _terminal,
)
