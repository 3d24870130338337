"""The `python` tool: the author's code in a thread of the engine, or in an interpreter of its own."""

from __future__ import annotations

import asyncio
import threading
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from penstock.expr.result_views import readable
from penstock.ports.blobs import ResultRef, is_ref
from penstock.ports.meanings import PYTHON, READS_SCRIPT
from penstock.tools.base import Call, Tool, ToolFailure
from penstock.tools.output import StoppableCode, captured
from penstock.tools.parameters import Positive, about
from penstock.tools.process import shorter
from penstock.tools.python.code import Code, Reply, perform
from penstock.tools.python.isolation import Bounds, prefer, run_isolated


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cpu_s: Annotated[Positive | None, about("CPU seconds; `isolation: process` only.")] = None
    memory_mb: Annotated[
        Positive | None, about("Memory on top of the bare interpreter's; `isolation: process` only.")
    ] = None
    time_s: Annotated[Positive | None, about("Seconds on the wall; `spec.timeout` holds as well.")] = None


class PythonParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    code: Annotated[str | None, about("The code itself. One of `code` and `script` is needed.", schema=PYTHON)] = None
    script: Annotated[
        str | None, about("A file with the code, relative to the document's folder.", schema=READS_SCRIPT)
    ] = None
    args: Annotated[
        dict[str, Any] | None, about("Variables of the code, and arguments of `main` where it asks for them.")
    ] = None
    function: Annotated[str | None, about("The function to call, `main` by default.")] = None
    isolation: Annotated[
        Literal["thread", "process"] | None,
        about("Where the code runs: in a `thread` (default, or from `spec.isolation`) or a `process` of its own."),
    ] = None
    limits: Annotated[Limits, about("What the code may use.")] = Limits()
    env: Annotated[dict[str, str] | None, about("Environment variables of the code; `isolation: process` only.")] = None

    def __post_init__(self) -> None:
        if (self.code is None) == (self.script is None):
            raise ValueError("one of `code` and `script` is needed, and not both")


class PythonTool(Tool[PythonParams]):
    """Run Python code.

    The entries of `args` are variables of the code. If it defines `main`, with `def` or `async def`, that is called with
    those `args` whose names it accepts, and what it returns is the result; otherwise the result is the variable `result`.
    Tuples, sets, data classes, dates, decimals, generators, NumPy values and data frames are turned into what JSON can
    say; bytes become base64 text, NaN null. Anything else is an error of kind `not_serialisable` that names its place.

    What the code prints goes to the run's log. Modules beside the playbook can be imported; files that the code opens are
    relative to the working folder of the process.

    An exception is an error of kind `exception` with `outcome.py.exception_type`; it names the line of the code and of the
    playbook. One that has `retryable = True` says so. Other kinds: `syntax`, `timeout`, `memory`, `not_serialisable`,
    `parameters`, `not_found`, and with `isolation: process` also `cpu_limit`, `crashed`, `too_large`.

    `isolation: process` starts a fresh interpreter for the task, with limits on CPU time and memory and an environment of
    its own (path, home, locale and `env`, none of the engine's secrets). When its time is over it is ended together with
    all it started. It is not a sandbox: the code has the files, the network and the user of the engine. In a thread, code
    that hangs is left behind when its time is over, and is told to stop at its next Python instruction.
    """

    kind: ClassVar[str] = "python"

    async def run(self, params: PythonParams, call: Call) -> object:
        isolation = params.isolation or call.spec.get("isolation") or "thread"
        if isolation == "process":
            reply = await _in_process(params, call)
        elif isolation == "thread":
            _only_in_a_process(params)
            reply = await _in_thread(params, call)
        else:
            raise ToolFailure("parameters", f"`isolation` is `thread` or `process`, not `{isolation}`")
        if reply.failure is None:
            return reply.result
        failure = reply.failure
        raise ToolFailure(
            failure["kind"],
            failure["message"],
            retryable=failure["retryable"],
            helpers=failure["helpers"],
            **failure["detail"],
        )


def _only_in_a_process(params: PythonParams) -> None:
    given = {"limits.cpu_s": params.limits.cpu_s, "limits.memory_mb": params.limits.memory_mb, "env": params.env}
    for name, value in given.items():
        if value is not None:
            raise ToolFailure("parameters", f"`{name}` needs `isolation: process`; threads share it with the engine")


async def _in_process(params: PythonParams, call: Call) -> Reply:
    limits = params.limits
    code, arguments = await call.threads.run(lambda: (_code(params, call), _copy(params.args or {}, call)))
    bounds = Bounds(limits.cpu_s, limits.memory_mb, limits.time_s)
    return await run_isolated(code, arguments, call, bounds, params.env or {})


async def _in_thread(params: PythonParams, call: Call) -> Reply:
    limit = shorter(params.limits.time_s, call.timeout())
    run = _ThreadRun(params, call)
    try:
        async with asyncio.timeout(limit):
            reply: Reply = await call.threads.run(run.perform)
    except TimeoutError:
        run.abandon()
        raise ToolFailure("timeout", f"the code was still running after {limit:g} s", retryable=True) from None
    except asyncio.CancelledError:
        run.abandon()
        raise
    return reply


def _code(params: PythonParams, call: Call) -> Code:
    function, must_define = params.function or "main", params.function is not None
    if params.script is not None:
        path = call.resolve(params.script)
        return Code(_script(path, params.script), str(path), 1, params.script, function, must_define)
    line = call.source.lines.get("code", 0)
    return Code(params.code or "", call.source.file if line else "<code>", line, "code", function, must_define)


def _script(path: Path, name: str) -> str:
    try:
        with tokenize.open(str(path)) as file:
            return file.read()
    except FileNotFoundError:
        raise ToolFailure("not_found", f"there is no script `{name}` (looked for `{path}`)") from None
    except OSError as error:
        raise ToolFailure("not_found", f"the script `{name}` cannot be read: {error.strerror}") from None
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ToolFailure("syntax", f"the script `{name}` is not Python text: {error}") from None


def _copy(value: Any, call: Call) -> Any:
    """The code may do with its arguments what it likes: they are its own, and references in them are read."""
    kind = type(value)
    if kind is dict:
        if is_ref(value):
            return _copy(call.load(ResultRef.from_json(value)), call)
        return readable({key: _copy(item, call) for key, item in value.items()})
    if kind is list:
        return [_copy(item, call) for item in value]
    if kind is ResultRef:
        return _copy(call.load(value), call)
    return value


class _ThreadRun(StoppableCode):
    """One run of code in a thread, and the way to stop it from another."""

    def __init__(self, params: PythonParams, call: Call) -> None:
        super().__init__(call.say, call.settings.max_output_bytes)
        self._params = params
        self._call = call
        self._cancel: Callable[[], object] | None = None

    def perform(self) -> Reply:
        code = _code(self._params, self._call)
        prefer(self._call.folder)
        with captured(self._lines):
            self.enter(threading.get_ident())
            try:
                return perform(code, lambda: _copy(self._params.args or {}, self._call), self._cancellable)
            finally:
                self.enter(None)
                self._lines.close()

    def _cancellable(self, cancel: Callable[[], object]) -> None:
        self._cancel = cancel
        if self._is_stopped:
            cancel()

    def abandon(self) -> None:
        """Its caller has stopped waiting: its output is dropped, and it is stopped at its next instruction if it has one."""
        self.drop_output()
        if self._cancel is None:
            self.raise_stopped()
            return
        try:
            self._cancel()
        except RuntimeError:
            pass  # Its event loop is closed already.
