"""The face for Python: `run`, its async twin `arun`, the `Run` they give, and the decorators `tool` and `component`.

`run` works anywhere: in a script, and inside a running event loop such as a notebook's, where it runs in a thread of its own.
A document that is not valid raises `DocumentInvalid`; a run that fails does not raise: look at `Run.status` and `Run.error`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, urandom
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.kernel.errors import Refused
from penstock.kernel.values import Json, JsonMap

if TYPE_CHECKING:
    from penstock.server.runs import RunUnderWay
    from penstock.tools.base import Tool

__all__ = ["Run", "arun", "component", "run", "tool"]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run came to. `status` is completed, failed, cancelled or interrupted."""

    execution_id: str
    name: str
    status: str
    error: Json
    ctx: JsonMap
    result: Json
    counts: JsonMap
    duration_ms: float
    home: Path
    kind: str = "playbook"

    @property
    def globals(self) -> JsonMap:
        """The globals of a job."""
        return self.ctx if self.kind == "job" else {}

    @property
    def ok(self) -> bool:
        return self.status == "completed"

    def events(self) -> Iterator[JsonMap]:
        """The events of the run in the order they were recorded, read from the log."""
        from penstock.adapters.sqlite_log import SqliteLog
        from penstock.ports.wire import envelope

        log = SqliteLog(self.home)
        try:
            header = log.header(self.execution_id)
            if header is None:
                raise Refused(f"there is no run `{self.execution_id}` in `{self.home}`")
            for entry in log.read(self.execution_id):
                yield envelope(entry, header)
        finally:
            _finished(log.close())

    def __repr__(self) -> str:
        return f"<Run {self.execution_id} of {self.name!r}: {self.status}>"


async def arun(
    path: str | PathLike[str],
    inputs: Mapping[str, Any] | None = None,
    *,
    home: str | PathLike[str] | None = None,
    name: str | None = None,
    strict: bool = False,
    context: str | None = None,
) -> Run:
    """Run a playbook or a job on the event loop that is running. `inputs` go over the defaults of its workload or context;
    `context` names a context group of a job, which lies between the two.

    Cancelling this leaves a run that can be resumed.
    """
    return await _Conduct(path, inputs, home, name, strict, context).conducted()


def run(
    path: str | PathLike[str],
    inputs: Mapping[str, Any] | None = None,
    *,
    home: str | PathLike[str] | None = None,
    name: str | None = None,
    strict: bool = False,
    context: str | None = None,
) -> Run:
    """Run a playbook or a job and wait for its end. `home` is the state folder: PENSTOCK_HOME, else `.penstock/` beside the
    file."""
    conduct = _Conduct(path, inputs, home, name, strict, context)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(conduct.conducted())
    return conduct.in_a_thread()


class _Conduct:
    def __init__(
        self,
        path: str | PathLike[str],
        inputs: Mapping[str, Any] | None,
        home: str | PathLike[str] | None,
        name: str | None,
        strict: bool,
        context: str | None,
    ) -> None:
        from penstock.homes import home_for

        self.path = Path(path)
        self.inputs = _jsonable(inputs or {})
        self.home = home_for(self.path, None if home is None else str(home))
        self.name = name
        self.strict = strict
        self.context = context
        self._under_way: RunUnderWay | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def conducted(self) -> Run:
        from penstock.app import embedded
        from penstock.components.registry import ComponentRegistry
        from penstock.server.documents import Documents
        from penstock.server.inputs import require_known
        from penstock.tools.registry import Registry

        self._loop = asyncio.get_running_loop()
        documents = Documents(Registry(), ComponentRegistry(with_lineage=False), strict=self.strict)
        document = documents.open(self.path, self.inputs, self.context)
        require_known(documents.compile(document)[0], self.inputs)
        engine = embedded(self.home, strict=self.strict)
        try:
            under_way = self._under_way = engine.run(urandom(6).hex())
            under_way.world.documents = documents
            summary = await under_way.start(
                document, self.inputs, label=self.name, trace_id=urandom(16).hex(), context=self.context
            )
        finally:
            await engine.close()
        return Run(
            summary.execution_id,
            summary.name,
            summary.status,
            summary.error,
            summary.ctx,
            summary.result,
            summary.counts,
            summary.duration_ms,
            self.home,
            summary.kind,
        )

    def in_a_thread(self) -> Run:
        answer: list[Run] = []
        failure: list[BaseException] = []

        def work() -> None:
            try:
                answer.append(asyncio.run(self.conducted()))
            except BaseException as error:  # Raised again where it was asked for.
                failure.append(error)

        thread = threading.Thread(target=work, name="penstock.run", daemon=True)
        thread.start()
        try:
            thread.join()
        except KeyboardInterrupt:
            self._interrupt()
            thread.join()
        if failure:
            raise failure[0]
        return answer[0]

    def _interrupt(self) -> None:
        if self._loop is not None and self._under_way is not None:
            self._loop.call_soon_threadsafe(self._under_way.interrupt, "KeyboardInterrupt")


def _jsonable(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs become part of the log, so they are what JSON can say, and nobody can change them afterwards."""
    from penstock.ports.results import decode, encode

    try:
        values = decode(encode(dict(inputs)))
    except TypeError as error:
        raise Refused(f"the inputs cannot be written as JSON: {error}") from error
    assert isinstance(values, dict)
    return values


def _finished(coroutine: Any) -> None:
    """Run a coroutine to its end from code that may or may not stand inside an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(coroutine)
        return
    thread = threading.Thread(target=asyncio.run, args=(coroutine,))
    thread.start()
    thread.join()


def tool(kind: str, *, example: str = "") -> Callable[[Callable[..., Any]], type[Tool[Any]]]:
    """Make a tool of a function, and make it known to this process under `kind`.

    Its parameters are the task's parameters, with their types and defaults; its docstring is the reference page.
    """
    from penstock.tools.base import tool as made
    from penstock.tools.registry import register

    def known(function: Callable[..., Any]) -> type[Tool[Any]]:
        return register(made(kind, example=example)(function))

    return known


def component(type: str, **about: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a component of a function, and make it known to this process under `type`.

    Parameters named like input ports get rows, in the form their annotation asks for; the others are the component's params.
    `about` may say `inputs`, `outputs`, `family` and `example`; see docs/how-to/write-a-component.md.
    """
    from penstock.components.function import component as made
    from penstock.components.registry import register

    def known(function: Callable[..., Any]) -> Any:
        return register(made(type, **about)(function))

    return known
