"""How one component is run: by itself, or as a stage of a fused query.

Blocking work happens in threads. A run that is cancelled interrupts its queries and waits for its thread to let go, so that
nothing of it touches the engine afterwards. Whatever goes wrong inside a component leaves here as a ComponentFailure.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from penstock.components import columns, incremental, inference
from penstock.components.base import Action, Call, Component, ComponentFailure, Iterator, PlanCall, Relational, Sink
from penstock.components.flow.tool_calls import place_failures
from penstock.components.queries import everything, gathered
from penstock.data import select
from penstock.data.sql_rules import SqlMistake
from penstock.kernel.errors import PenstockError
from penstock.kernel.values import Json, JsonMap
from penstock.ports.rows import Column, Relation, RowsFailed, Schema, Stage
from penstock.tools.base import Threads, ToolFailure
from penstock.tools.places.mirror import Mirror

MAX_MESSAGE = 2_000
MAX_FRAMES = 8
_PENSTOCK = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_DISK_IS_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_OF_FILES: tuple[tuple[type[OSError], str, str], ...] = (
    (FileNotFoundError, "missing_file", "there is no such file or folder"),
    (FileExistsError, "file_exists", "it exists already"),
    (PermissionError, "permission", "permission denied"),
    (IsADirectoryError, "file", "it is a folder, not a file"),
    (NotADirectoryError, "file", "it is not a folder"),
)


def failure_of(error: Exception, component: Component[Any], params: Any, call: Call | None) -> ComponentFailure:
    """The failure to report. A ComponentFailure is what it is; everything else gets a kind and a sentence."""
    failure = _described(error, component, params, call)
    if call is not None and call.mirror is not None:
        # Copies of files elsewhere are nobody's business: the author knows the URL.
        failure.message = call.mirror.shown(failure.message)
        failure.detail = {
            name: call.mirror.shown(value) if isinstance(value, str) else value
            for name, value in failure.detail.items()
        }
    return failure


def _described(error: Exception, component: Component[Any], params: Any, call: Call | None) -> ComponentFailure:
    match error:
        case ComponentFailure():
            return error
        case ToolFailure():
            return _with(ComponentFailure(error.kind, error.message, retryable=error.retryable), error.detail)
        case RowsFailed():
            place = _place(component, params, call)
            message = f"{error.message} ({place['file']}:{place['line']})" if place else error.message
            return _with(ComponentFailure(error.kind, message[:MAX_MESSAGE], retryable=error.retryable), place)
        case PenstockError():
            message = f"{error.message}; {error.hint}" if error.hint else error.message
            return ComponentFailure("refused", message)
        case MemoryError():
            return ComponentFailure("memory", "the component ran out of memory")
        case OSError():
            return _of_the_system(error)
    return _of_sql(error) or _of_code(error, component)


def _with(failure: ComponentFailure, detail: JsonMap) -> ComponentFailure:
    failure.detail.update(detail)
    return failure


def _place(component: Component[Any], params: Any, call: Call | None) -> JsonMap:
    """The line of the author's SQL, when there is only one parameter that it can have come from."""
    pieces = getattr(component, "user_sql", None)
    if pieces is None or call is None:
        return {}
    holders = {str(piece.path[0]) for piece in pieces(params) if piece.path}
    lines = [call.source.lines[name] for name in holders if name in call.source.lines]
    return {"file": call.source.file, "line": lines[0]} if len(holders) == len(lines) == 1 else {}


def _of_sql(error: Exception) -> ComponentFailure | None:
    """An author's SQL that came out of a template cannot be read before the run."""
    if not isinstance(error, SqlMistake):
        return None
    message = f"{error.message}; {error.hint}" if error.hint else error.message
    return ComponentFailure("sql", message)


def _of_the_system(error: OSError) -> ComponentFailure:
    where = f"`{error.filename}`: " if error.filename is not None else ""
    if error.errno in _DISK_IS_FULL:
        return ComponentFailure("disk", f"{where}the disk is full")
    if isinstance(error, (ConnectionError, TimeoutError)):
        reason = error.strerror or str(error) or type(error).__name__
        return ComponentFailure("connection", f"{where}{reason}", retryable=True)
    for family, kind, sentence in _OF_FILES:
        if isinstance(error, family):
            return ComponentFailure(kind, f"{where}{sentence}" if where else str(error) or sentence)
    return ComponentFailure("system", f"{where}{error.strerror or error}")


def _of_code(error: Exception, component: Component[Any]) -> ComponentFailure:
    # A thread cannot hand on SystemExit or StopIteration as they are: it wraps them, and the cause is what the code raised.
    cause = error.__cause__
    shown: BaseException = cause if cause is not None and not isinstance(cause, Exception) else error
    if isinstance(cause, (StopIteration, StopAsyncIteration)):
        shown = cause
    message = f"{type(shown).__name__}: {shown}".rstrip(": ")[:MAX_MESSAGE]
    frames = traceback.extract_tb(shown.__traceback__)
    mine = _own_frames(frames, component)
    # From the first of the author's own frames on: how we came to call it is of no interest.
    relevant = frames[frames.index(mine[0]) :] if mine else frames
    lines = [_named(frame) for frame in relevant[-MAX_FRAMES:]]
    detail: JsonMap = {"exception": type(shown).__name__, "traceback": [*lines]}
    if mine:
        detail["raised_at"] = _named(mine[-1])
        message = f"{message} (raised at {detail['raised_at']})"
    return _with(ComponentFailure("exception", message), detail)


def _named(frame: traceback.FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno} in {frame.name}"


def _own_frames(frames: Sequence[traceback.FrameSummary], component: Component[Any]) -> list[traceback.FrameSummary]:
    """The stack frames in the component author's own code: not in a library that it calls, and not in ours."""
    own = _file_of(component)
    if own is None or own.startswith(_PENSTOCK):
        return []
    folder = os.path.dirname(own)
    beside = "" if _is_library(folder) else folder + os.sep
    return [one for one in frames if one.filename == own or (beside and one.filename.startswith(beside))]


def _file_of(component: Component[Any]) -> str | None:
    """Where the component was written: of a function, the function's file."""
    made_of = getattr(component, "function", None) or type(component)
    module = sys.modules.get(getattr(made_of, "__module__", ""))
    code = getattr(made_of, "__code__", None)
    return code.co_filename if code is not None else getattr(module, "__file__", None)


def _is_library(folder: str) -> bool:
    return "site-packages" in folder or "dist-packages" in folder


AGAIN_SECONDS = 0.02
GRACE_SECONDS = 5.0


class _Work:
    """One call. Of `has_begun` and `is_unwanted` each side sets its own before it looks at the other's, so that a call that was
    cancelled before it began never begins unseen."""

    __slots__ = ("arguments", "function", "has_begun", "has_ended", "is_unwanted")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self.has_begun = False
        self.has_ended = False
        self.is_unwanted = False

    def perform(self) -> Any:
        self.has_begun = True
        try:
            return None if self.is_unwanted else self.function(*self.arguments)
        finally:
            self.has_ended = True


class _Interruptible(Protocol):
    def interrupt(self) -> None: ...


class PatientThreads:
    def __init__(self, threads: Threads, *working: _Interruptible) -> None:
        self._threads = threads
        self._working = working

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        work = _Work(function, arguments)
        try:
            return await self._threads.run(work.perform)
        except asyncio.CancelledError:
            work.is_unwanted = True
            if work.has_begun:
                await self._stop(work)
            raise

    async def _stop(self, work: _Work) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + GRACE_SECONDS
        while not work.has_ended and loop.time() < until:
            for one in self._working:
                one.interrupt()
            await asyncio.sleep(AGAIN_SECONDS)


ERRORS: Schema = (Column("error_code", "VARCHAR"), Column("error_message", "VARCHAR"))
"""What every reject port has beside the columns of the rows it refuses."""

_OF_THE_ROWS = ("conversion", "format", "data")
"""Kinds of failure that lie in what was read, and not in the machine or in the query."""

Inputs = Mapping[str, tuple[str, str] | Relation]


async def run(component: Component[Any], params: Any, call: Call) -> Any:
    """Run a component of any kind but an iterator, by itself. Its rows are in `call.outputs` afterwards; its result is returned.

    Raises ComponentFailure, or CancelledError when the run was cancelled.
    """
    mirror, threads = mirror_of(call), call.threads
    call = replace(call, threads=PatientThreads(call.threads, call.engine, mirror), mirror=mirror)
    try:
        while True:
            try:
                return await _run(component, params, call)
            except Exception as error:  # the component's own code, and that of its author's, may raise anything
                call = await _wider(error, component, params, call)
    finally:
        await close_mirror(mirror, threads)


async def close_mirror(mirror: Mirror, threads: Threads) -> None:
    if mirror.is_used:
        await threads.run(mirror.close)


def mirror_of(call: Call) -> Mirror:
    """Files elsewhere, for one run of a component or of a fused group; whoever asks closes it."""
    return Mirror(call.work, call.credential, call.settings.addresses)


async def _wider(error: Exception, component: Component[Any], params: Any, call: Call) -> Call:
    """The call once more, with a column that was missing from rows that never came. For anything else raises ComponentFailure."""
    failure = failure_of(error, component, params, call)
    wider: Call | None = await call.threads.run(columns.widened, call, error)
    if wider is None:
        raise failure from error
    return wider


def countable(component: Component[Any]) -> frozenset[str]:
    """The output ports whose rows may be made only to count them."""
    if not isinstance(component, Relational) or component.refuses:
        return frozenset()
    return frozenset(port.name for port in component.outputs if not port.is_wild)


def uncounted(component: Component[Any], connected: Collection[str], rejected: Json = 0) -> JsonMap:
    """The row counts of the ports that nothing went out of, because nobody reads them: of those on `reject`, how many there
    would have been when that is known."""
    unread = (port for port in component.outputs if not port.is_wild and port.name not in connected)
    return {f"NB_LINE_OUT_{port.name}": rejected if port.name == "reject" else 0 for port in unread}


async def _run(component: Component[Any], params: Any, call: Call) -> Any:
    try:
        result = await _perform(component, params, call)
    finally:
        known = uncounted(component, {*call.outputs} & call.connected, call.after.get("NB_LINE_REJECTED", 0))
        call.after.update({name: count for name, count in known.items() if name not in call.after})
    missing = sorted(call.connected - {*call.outputs})
    if missing:
        await call.threads.run(_fill, component, missing, call)
    if call.declared:
        await call.threads.run(columns.hold, call)
    if (asked := getattr(params, "incremental", None)) is not None:
        await call.threads.run(incremental.apply, asked, call)
    if call.mirror is not None and call.mirror.has_targets:
        await call.threads.run(send, call.mirror)
    return result


def send(mirror: Mirror) -> None:
    """What was written for places elsewhere goes there."""
    with place_failures():
        mirror.send()


async def elements(iterator: Iterator[Any], params: Any, call: Call) -> list[Any]:
    """What an iterator's body is to run over. Raises ComponentFailure, as `run` does."""
    while True:
        try:
            found: list[Any] = await call.threads.run(_elements, iterator, params, call)
            return found
        except Exception as error:  # as in `run`
            call = await _wider(error, iterator, params, call)


def _elements(iterator: Iterator[Any], params: Any, call: Call) -> list[Any]:
    mirror = mirror_of(call)
    try:
        return list(iterator.elements(params, replace(call, mirror=mirror)).items)
    finally:
        mirror.close()


def wants_fusion(component: Component[Any], params: Any, connected: Iterable[str]) -> bool:
    """Can this use of a component be a stage of a larger query?"""
    if getattr(params, "incremental", None) is not None:  # Its highest value has to be known.
        return False
    return isinstance(component, (Relational, Sink)) and component.is_fusable(params, frozenset(connected))


def stage(
    component: Component[Any],
    name: str,
    params: Any,
    inputs: Inputs,
    schemas: Mapping[str, Schema],
    call: PlanCall,
    wanted: Iterable[str] = (),
) -> Stage:
    """A component as a stage of a fused query. `schemas` are those of its inputs. Blocks: it may look at files.

    Raises ComponentFailure for what is wrong before a row is read.
    """
    try:
        if isinstance(component, Sink):
            (schema,) = schemas.values()
            return Stage(name, {}, inputs, frozenset(wanted), copy=component.copy(params, schema, call))
        assert isinstance(component, Relational)
        component.prepare(params, call)
        selects = component.selects(params, schemas, call)
    except Exception as error:  # as in `run`
        raise failure_of(error, component, params, None) from error
    return Stage(name, selects, inputs, frozenset(wanted), component.keeps_count)


def outputs_of(made: Stage, schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """The columns of each output of a stage, without running it: the next stage is built on them. Raises ComponentFailure."""
    try:
        return {port: inference.schema(query, schemas) for port, query in made.selects.items()}
    except RowsFailed as problem:
        raise ComponentFailure(problem.kind, problem.message) from problem


async def _perform(component: Component[Any], params: Any, call: Call) -> Any:
    if isinstance(component, Sink) and (component.is_fusable(params, call.connected) or not hasattr(component, "run")):
        return await call.threads.run(_write, component, params, call)
    if isinstance(component, Relational) and (
        component.is_fusable(params, call.connected) or not hasattr(component, "run")
    ):
        try:
            is_done = await call.threads.run(_select, component, params, call)
            if is_done or not hasattr(component, "run"):
                return None
        except RowsFailed as failed:
            # A reader that can also run by itself knows which line of which file it was, and what may still be done.
            if failed.kind not in _OF_THE_ROWS or not hasattr(component, "run") or not call.engine.is_here:
                raise
    if not isinstance(component, (Action, Relational, Sink)):
        raise TypeError(f"a component of type `{component.type}` cannot be run by itself")
    return await _act(component, params, call)


async def _act(component: Any, params: Any, call: Call) -> Any:
    if inspect.iscoroutinefunction(component.run):
        return await component.run(params, call)
    result = await call.threads.run(component.run, params, call)
    return await result if inspect.isawaitable(result) else result


def _select(component: Relational[Any], params: Any, call: Call) -> bool:
    """False when the component has no query to say of what it reads."""
    plan = call.plan()
    component.prepare(params, plan)
    inputs = {port: gathered(call, port) for port in call.inputs}
    selects = component.selects(params, {port: rows.schema for port, rows in inputs.items()}, plan)
    for port in sorted(call.connected):
        if port in selects:
            call.put(port, call.engine.select(selects[port], inputs))
    return bool(selects) or not call.connected


def _write(component: Sink[Any], params: Any, call: Call) -> None:
    plan = call.plan()
    (port,) = call.inputs
    rows = gathered(call, port)
    query = select.sql(everything("input"))
    written = call.engine.copy(query, {"input": rows}, component.copy(params, rows.schema, plan))
    component.finish(params, plan, written)
    if "main" in call.connected:
        call.put("main", rows)


def _fill(component: Component[Any], missing: list[str], call: Call) -> None:
    """Ports that are read and were not written: empty when it is known what they would hold."""
    for port in missing:
        description = component.ports({}).output(port)
        schema = call.declared.get(port)
        if schema is None and description is not None and description.reject and call.inputs:
            first = next(iter(call.inputs.values()))
            schema = (*(first[0].schema if first else ()), *ERRORS)
        if schema is None:
            raise ComponentFailure("port", f"`{call.component}` put no rows on its port `{port}`, which is read")
        call.put(port, call.engine.empty(schema))
