"""Penstock from Python: `run`, `resume`, `replay`, `validate`, the `Run` they give, and the decorators `tool` and `component`.

All of them work anywhere: in a script, and inside a running event loop such as a notebook's, where they run in a thread of their
own. `arun` and `aresume` are for code that is async itself. A document that is not valid raises `DocumentInvalid`; a run that
fails does not raise: look at `Run.status` and `Run.error`. The same methods for a server are in `penstock.python_client`.

A plug-in that only uses `@penstock.tool` does not load the engine: functions that run documents import it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike, urandom
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.app.library import Library, callers_folder
from penstock.app.state_folder import home_for, known_home
from penstock.kernel.errors import Refused
from penstock.kernel.values import Json, JsonMap
from penstock.ports.results import decode, encode
from penstock.ports.wire import envelope
from penstock.server.run_names import find_run
from penstock.tools.base import Tool
from penstock.tools.base import tool as tool_of
from penstock.tools.registry import Registry, register

if TYPE_CHECKING:
    from penstock.app.rows import Rows
    from penstock.dialects.problems import Problem
    from penstock.ports.blobs import BlobStore
    from penstock.ports.log import EventLog, Header
    from penstock.server.changes import Change
    from penstock.server.runs import LocalRun, RunSummary

__all__ = [
    "Replay",
    "Report",
    "Run",
    "aresume",
    "arun",
    "component",
    "replay",
    "resume",
    "rows",
    "run",
    "tool",
    "validate",
]

T = TypeVar("T")


class Store(Protocol):
    """Where runs are kept: a state folder or a server."""

    def events(self, execution_id: str) -> Iterator[JsonMap]: ...

    def rows(self, execution_id: str, name: str) -> Rows: ...


@dataclass(frozen=True, slots=True)
class Run:
    """What a run came to. `status` is completed, failed, cancelled or interrupted; at a server it may be running."""

    execution_id: str
    name: str
    status: str
    error: Json
    ctx: JsonMap
    result: Json
    counts: JsonMap
    duration_ms: float
    home: Path | None
    """The state folder; None for a run of a server."""
    kind: str = "playbook"
    server: str | None = None
    """The URL of the server that it ran at."""
    changed: tuple[Change, ...] = ()
    """Of a run that was resumed: files that have changed since it was started, each with a diff. The old text was used."""
    store: Store | None = field(default=None, repr=False, compare=False)

    @property
    def globals(self) -> JsonMap:
        """The globals of a job."""
        return self.ctx if self.kind == "job" else {}

    @property
    def ok(self) -> bool:
        return self.status == "completed"

    def events(self) -> Iterator[JsonMap]:
        """The events of the run in the order they were recorded, read from the log."""
        return self._store().events(self.execution_id)

    def rows(self, name: str) -> Rows:
        """The rows that came out of `COMPONENT[.PORT]` of a job, if they were kept: `run(…, keep=["COMPONENT.PORT"])`."""
        return self._store().rows(self.execution_id, name)

    def _store(self) -> Store:
        if self.store is not None:
            return self.store
        if self.home is None:
            raise Refused("this run names neither a state folder nor a server")
        return Folder(self.home)

    def __repr__(self) -> str:
        return f"<Run {self.execution_id} of {self.name!r}: {self.status}>"


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with a document: errors, warnings and notes. It can be run when `ok`. As text it is what `penstock lint`
    prints."""

    file: str
    problems: tuple[Problem, ...]
    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(one for one in self.problems if one.severity.value == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(one for one in self.problems if one.severity.value == "warning")

    @property
    def ok(self) -> bool:
        return not self.errors

    def __str__(self) -> str:
        from penstock.dialects.report import render  # Only problems of documents need it.

        return render(self.problems, self.sources, color=False).rstrip("\n") if self.problems else f"{self.file}: valid"


@dataclass(frozen=True, slots=True)
class Replay:
    """A run decided again from its recorded outcomes. `difference` describes the first decision that differs."""

    execution_id: str
    difference: str | None

    @property
    def ok(self) -> bool:
        return self.difference is None


class Folder:
    """A state folder."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def events(self, execution_id: str) -> Iterator[JsonMap]:
        with self._opened(execution_id) as (log, _, header):
            for entry in log.read(execution_id):
                yield envelope(entry, header)

    def rows(self, execution_id: str, name: str) -> Rows:
        from penstock.app.rows import rows_of  # Only rows need it.

        with self._opened(execution_id) as (log, blobs, header):
            return rows_of(header, log.read(header.execution_id), blobs, name)

    @contextmanager
    def _opened(self, run: str) -> Iterator[tuple[EventLog, BlobStore, Header]]:
        from penstock.app.embedded import embedded  # Only what runs documents loads the engine.

        engine = embedded(self._home)
        try:
            yield engine.log, engine.blobs, find_run(engine.log, run)
        finally:
            waited(lambda _: engine.close())


async def arun(
    path: str | PathLike[str],
    inputs: Mapping[str, Any] | None = None,
    *,
    home: str | PathLike[str] | None = None,
    name: str | None = None,
    strict: bool = False,
    context: str | None = None,
    keep: Sequence[str] = (),
) -> Run:
    """Run a playbook or a job on the event loop that is running. `inputs` go over the defaults of its workload or context;
    `context` names a context group of a job, which lies between the two. The rows of the ports in `keep`, `COMPONENT[.PORT]`
    of a job, are stored: `Run.rows` reads them.

    Cancelling this leaves a run that can be resumed.
    """
    return await _started(_Handle(), path, inputs, home=home, name=name, strict=strict, context=context, keep=keep)


def run(
    path: str | PathLike[str],
    inputs: Mapping[str, Any] | None = None,
    *,
    home: str | PathLike[str] | None = None,
    name: str | None = None,
    strict: bool = False,
    context: str | None = None,
    keep: Sequence[str] = (),
) -> Run:
    """Run a playbook or a job and wait for its end. `home` is the state folder: PENSTOCK_HOME, else `.penstock/` beside the
    file. See `arun` for the others."""
    return waited(
        lambda handle: _started(handle, path, inputs, home=home, name=name, strict=strict, context=context, keep=keep)
    )


async def aresume(run: Run | str = "@last", *, home: str | PathLike[str] | None = None) -> Run:
    """Go on with a run that failed, was interrupted or crashed, on the event loop that is running. `run` is one that `run` gave,
    or an id, a unique beginning of one, a label or `@last`. It goes on with the text that it was started with."""
    return await _resumed(_Handle(), run, home)


def resume(run: Run | str = "@last", *, home: str | PathLike[str] | None = None) -> Run:
    """Go on with a run and wait for its end. `home` is the state folder: that of the run, else PENSTOCK_HOME, else `.penstock/`
    here. See `aresume`."""
    return waited(lambda handle: _resumed(handle, run, home))


def replay(run: Run | str = "@last", *, home: str | PathLike[str] | None = None) -> Replay:
    """Decide a run again from its recorded outcomes, without calling a tool, and compare."""

    async def replayed(_: _Handle) -> Replay:
        from penstock.app.embedded import embedded  # Only what runs documents loads the engine.

        engine = embedded(_home_of(run, home))
        try:
            execution_id = find_run(engine.log, name_of(run)).execution_id
            return replay_of(execution_id, await engine.replay(execution_id))
        finally:
            await engine.close()

    return waited(replayed)


def rows(run: Run | str, name: str, *, home: str | PathLike[str] | None = None) -> Rows:
    """The rows that came out of `COMPONENT[.PORT]` of a job, if they were kept: of any run in the state folder."""
    folder = _home_of(run, home)
    return Folder(folder).rows(name_of(run), name)


def validate(
    path: str | PathLike[str],
    inputs: Mapping[str, Any] | None = None,
    *,
    home: str | PathLike[str] | None = None,
    strict: bool = False,
    context: str | None = None,
) -> Report:
    """Check a playbook, job or joblet, and the documents that it calls, without running it: as it would run with `inputs`, and
    with the context group of a job. The secrets that it needs are looked for, too. With `strict`, warnings are errors."""

    file, given = Path(path), jsonable(inputs or {})
    store = home_for(file, None if home is None else str(home))
    found = waited(lambda _: Library(strict=strict).examined(file, given, context, store))
    return Report(str(path), found.problems, found.texts)


# ---- running


class _Handle:
    """A run of this process, for the code that has to stop it."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: LocalRun | None = None

    def takes(self, under_way: LocalRun) -> None:
        self._loop, self._under_way = asyncio.get_running_loop(), under_way

    def interrupt(self) -> None:
        if self._loop is not None and self._under_way is not None:
            self._loop.call_soon_threadsafe(self._under_way.interrupt, "KeyboardInterrupt")


async def _started(
    handle: _Handle,
    path: str | PathLike[str],
    inputs: Mapping[str, Any] | None,
    *,
    home: str | PathLike[str] | None,
    name: str | None,
    strict: bool,
    context: str | None,
    keep: Sequence[str],
) -> Run:
    from penstock.app.embedded import embedded  # Only what runs documents loads the engine.
    from penstock.components.registry import ComponentRegistry
    from penstock.server.documents import Documents
    from penstock.server.inputs import require_known

    file, payload = Path(path), jsonable(inputs or {})
    folder = home_for(file, None if home is None else str(home))
    components = ComponentRegistry(with_lineage=False)
    documents = Documents(Registry(), components, strict=strict, caller=callers_folder())
    document = documents.open(file, payload, context)
    require_known(documents.compile(document)[0], payload)
    engine = embedded(folder, strict=strict)
    try:
        under_way = engine.run(urandom(6).hex(), documents)
        handle.takes(under_way)
        summary = await under_way.start(
            document, payload, label=name, trace_id=urandom(16).hex(), context=context, keep=names_in(keep)
        )
    finally:
        await engine.close()
    return _of(summary, folder)


async def _resumed(handle: _Handle, run: Run | str, home: str | PathLike[str] | None) -> Run:
    from penstock.app.embedded import embedded  # Only what runs documents loads the engine.
    from penstock.server.changes import changes, text_on_disk
    from penstock.server.documents import Pinned

    folder = _home_of(run, home)
    engine = embedded(folder)
    try:
        execution_id = find_run(engine.log, name_of(run)).execution_id
        found = changes(Pinned.from_bytes(engine.log.document(execution_id)), text_on_disk)
        under_way = engine.run(execution_id)
        handle.takes(under_way)
        summary = await under_way.resume()
    finally:
        await engine.close()
    return _of(summary, folder, tuple(found))


def _of(summary: RunSummary, home: Path, changed: tuple[Change, ...] = ()) -> Run:
    return Run(
        execution_id=summary.execution_id,
        name=summary.name,
        status=summary.status,
        error=summary.error,
        ctx=summary.ctx,
        result=summary.result,
        counts=summary.counts,
        duration_ms=summary.duration_ms,
        home=home,
        kind=summary.kind,
        changed=changed,
    )


def _home_of(run: Run | str, home: str | PathLike[str] | None) -> Path:
    if home is None and isinstance(run, Run):
        if run.home is None:
            raise Refused(
                f"run `{run.execution_id}` is one of the server `{run.server}`", "ask `penstock.connect(URL)`"
            )
        return run.home
    return known_home(None if home is None else str(home))


def name_of(run: Run | str) -> str:
    return run.execution_id if isinstance(run, Run) else run


def names_in(keep: Sequence[str]) -> tuple[str, ...]:
    return (keep,) if isinstance(keep, str) else tuple(keep)


def replay_of(execution_id: str, difference: Any) -> Replay:
    return Replay(execution_id, None if difference is None else difference.describe())


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def waited(work: Callable[[_Handle], Awaitable[T]]) -> T:
    """Do what is async from code that is not, which may stand inside a running event loop: then in a thread."""
    handle = _Handle()

    async def done() -> T:
        return await work(handle)

    if not _is_in_a_loop():
        return asyncio.run(done())
    answer: list[T] = []
    failure: list[BaseException] = []

    def in_a_thread() -> None:
        try:
            answer.append(asyncio.run(done()))
        except BaseException as error:  # Raised again where it was asked for.
            failure.append(error)

    thread = threading.Thread(target=in_a_thread, name="penstock", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        handle.interrupt()
        thread.join()
    if failure:
        raise failure[0]
    return answer[0]


def jsonable(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs become part of the log, so they are limited to JSON and copied, so that later changes have no effect."""

    try:
        values = decode(encode(dict(inputs)))
    except TypeError as error:
        raise Refused(f"the inputs cannot be written as JSON: {error}") from error
    assert isinstance(values, dict)
    return values


def tool(kind: str, *, example: str = "") -> Callable[[Callable[..., Any]], type[Tool[Any]]]:
    """Make a tool of a function, and make it known to this process under `kind`.

    Its parameters are the task's parameters, with their types and defaults; its docstring is the reference page.
    """

    def known(function: Callable[..., Any]) -> type[Tool[Any]]:
        return register(tool_of(kind, example=example)(function))

    return known


def component(type: str, **about: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a component of a function, and make it known to this process under `type`.

    Parameters named like input ports get rows, in the form their annotation asks for; the others are the component's params.
    `about` may say `inputs`, `outputs`, `family` and `example`; see docs/how-to/write-a-component.md.
    """
    from penstock.components import function, registry  # Only jobs need components.

    def known(plain: Callable[..., Any]) -> Any:
        return registry.register(function.component(type, **about)(plain))

    return known
