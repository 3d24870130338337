"""The `python` tool: the author's code in a thread of the engine, or in an interpreter of its own."""

from __future__ import annotations

import asyncio
import io
import keyword
import threading
import tokenize
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from penstock.expr.result_views import readable
from penstock.ports.blobs import ResultRef, is_ref
from penstock.ports.meanings import PYTHON_BODY, READS_SCRIPT
from penstock.ports.results import materialised
from penstock.tools.base import Call, Tool, ToolFailure
from penstock.tools.output import StoppableCode, captured
from penstock.tools.parameters import Positive, about
from penstock.tools.process import shorter
from penstock.tools.python.code import Code, Reply, context_keys, perform
from penstock.tools.python.isolation import Bounds, prefer, run_isolated
from penstock.tools.scripts import Script, ScriptSource, text_of


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cpu_s: Annotated[Positive | None, about("CPU seconds; `isolation: process` only.")] = None
    memory_mb: Annotated[
        Positive | None, about("Memory on top of the bare interpreter's; `isolation: process` only.")
    ] = None
    time_s: Annotated[Positive | None, about("Seconds on the wall; `spec.timeout` holds as well.")] = None


_Code = Annotated[str | None, about("The code itself, for `inline`.", schema=PYTHON_BODY)]


class PythonSource(ScriptSource, kw_only=True, forbid_unknown_fields=True):
    code: _Code = None


class PythonScript(Script, kw_only=True, forbid_unknown_fields=True):
    code: _Code = None
    source: Annotated[PythonSource, about("Where it comes from.")] = msgspec.field(default_factory=PythonSource)


class Name(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A name in a module: `{from: datetime, import: date}`."""

    module: Annotated[str, about("The module.")] = msgspec.field(name="from")
    name: Annotated[str, about("What is imported from it.")] = msgspec.field(name="import")


class PythonParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    code: Annotated[str | None, about("The code itself. One of `code` and `script` is needed.", schema=PYTHON_BODY)] = (
        None
    )
    script: Annotated[
        str | PythonScript | None,
        about(
            "A file with the code, relative to the document's folder; or `{uri, source: {type: file, inline or http}}`.",
            schema=READS_SCRIPT,
        ),
    ] = None
    libs: Annotated[
        dict[str, str | Name] | None,
        about(
            "Modules that the code names without importing them: `{np: numpy, day: {from: datetime, import: date}}`."
        ),
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
        for alias in self.libs or {}:
            if not alias.isidentifier() or keyword.iskeyword(alias):
                raise ValueError(f"`{alias}` in `libs` cannot be a name in Python")
            if alias in (self.args or {}):
                raise ValueError(f"`libs` and `args` both give `{alias}`; name one of them differently")


class PythonTool(Tool[PythonParams]):
    """Run Python code.

    The entries of `args` are variables of the code. If it defines `main`, with `def` or `async def`, that is called with
    those `args` whose names it accepts, and what it returns is the result; otherwise the result is the variable `result`.
    A `return` outside of any function ends the code and gives the result, before `main` and `result`. Tuples, sets, data
    classes, dates, decimals, generators, NumPy values and data frames are turned into what JSON can say; bytes become base64
    text, NaN null. Anything else is an error of kind `not_serialisable` that names its place.

    Some names are there for code that uses them, unless `args` has them: `input_data` and `args`, each a mapping of the
    `args`; `execution_id`; and `context`, a read-only mapping of what templates can name: results by the names of steps and
    tasks, the keys of `workload`, `ctx`, `iter` and the token's args by themselves, and `workload`, `ctx`, `iter`, `args`,
    `execution` and `execution_id`. Values in it are the code's own copies. There are no secrets in it: pass those in `args`.

    `libs` are imported before the code runs; if one cannot be, the error is of kind `import`, and nothing has run. Nothing
    is ever installed.

    A `script` is a file, or a mapping: `{uri: lib/x.py, source: {type: file}}`, `{source: {type: inline, code}}`, or
    `{source: {type: http, endpoint, method, headers, timeout}}`, whose server has to answer with 2xx and at most 10 MiB, and
    to be one that tasks may reach. A file that is not found from the document's folder is looked for from the caller's, the
    working folder of the `penstock run` or the Python program that runs the document, and a line in the log says so; a
    resume looks from the folder that it is called in, and on a fleet there is none.

    What the code prints goes to the run's log. Modules beside the playbook can be imported; files that the code opens are
    relative to the working folder of the process.

    An exception is an error of kind `exception` with `outcome.py.exception_type`; it names the line of the code and of the
    playbook. One that has `retryable = True` says so. Other kinds: `syntax`, `timeout`, `memory`, `not_serialisable`,
    `parameters`, `import`, `not_found`, those of `http` for a script from a web server, and with `isolation: process` also
    `cpu_limit`, `crashed`, `too_large`.

    `isolation: process` starts a fresh interpreter for the task, with limits on CPU time and memory and an environment of
    its own (path, home, locale and `env`, none of the engine's secrets). When its time is over it is ended together with
    all it started. It is not a sandbox: the code has the files, the network and the user of the engine. In a thread, code
    that hangs is left behind when its time is over, and is told to stop at its next Python instruction.
    """

    kind: ClassVar[str] = "python"
    one_of: ClassVar[tuple[str, ...]] = ("code", "script")

    async def run(self, params: PythonParams, call: Call) -> object:
        isolation = params.isolation or call.spec.get("isolation") or "thread"
        if isolation not in ("thread", "process"):
            raise ToolFailure("parameters", f"`isolation` is `thread` or `process`, not `{isolation}`")
        if isolation == "thread":
            _only_in_a_process(params)
        code = await _code(params, call)
        around: dict[str, Any] = {"execution_id": call.execution_id}
        if "context" in code.text:
            around["context"] = _Context(call)
        run = _in_process if isolation == "process" else _in_thread
        reply = await run(code, params, call, around)
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


async def _in_process(code: Code, params: PythonParams, call: Call, around: dict[str, Any]) -> Reply:
    def copied() -> tuple[dict[str, Any], dict[str, Any]]:
        context = around.get("context")
        more = {} if context is None else {"context": {key: context[key] for key in context_keys(code, context)}}
        return _copy(params.args or {}, call), {**around, **more}

    limits = params.limits
    arguments, around = await call.threads.run(copied)
    bounds = Bounds(limits.cpu_s, limits.memory_mb, limits.time_s)
    return await run_isolated(code, arguments, call, bounds, params.env or {}, around)


async def _in_thread(code: Code, params: PythonParams, call: Call, around: dict[str, Any]) -> Reply:
    limit = shorter(params.limits.time_s, call.timeout())
    run = _ThreadRun(code, params, call, around)
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


async def _code(params: PythonParams, call: Call) -> Code:
    function, must_define = params.function or "main", params.function is not None
    libs = [
        (alias, lib, "") if isinstance(lib, str) else (alias, lib.module, lib.name)
        for alias, lib in (params.libs or {}).items()
    ]
    if params.script is None:
        line = call.source.lines.get("code", 0)
        file = call.source.file if line else "<code>"
        return Code(params.code or "", file, line, "code", function, must_define, libs)
    script = await text_of(params.script, call, _decoded)
    if not script.place:
        return Code(script.text, "<code>", 0, "code", function, must_define, libs)
    return Code(script.text, script.place, 1, script.name, function, must_define, libs)


def _decoded(data: bytes, name: str) -> str:
    """As Python reads a file: in the encoding that its first lines name."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return io.TextIOWrapper(io.BytesIO(data), encoding).read()
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ToolFailure("syntax", f"the script `{name}` is not Python text: {error}") from None


class _Context(Mapping[str, Any]):
    """What the code sees as `context`: the names as they were when the task began, each copied when it is first looked at."""

    def __init__(self, call: Call) -> None:
        self._names = call.names()
        self._call = call
        self._copies: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._copies:
            self._copies[key] = _copy(materialised(self._names[key]), self._call)
        return self._copies[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, key: object) -> bool:
        return key in self._names


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

    def __init__(self, code: Code, params: PythonParams, call: Call, around: Mapping[str, Any]) -> None:
        super().__init__(call.say, call.settings.max_output_bytes)
        self._code = code
        self._params = params
        self._call = call
        self._around = around
        self._cancel: Callable[[], object] | None = None

    def perform(self) -> Reply:
        prefer(self._call.folder)
        with captured(self._lines):
            self.enter(threading.get_ident())
            try:
                return perform(self._code, self._arguments, self._cancellable, self._around)
            finally:
                self.enter(None)
                self._lines.close()

    def _arguments(self) -> dict[str, Any]:
        return dict(_copy(self._params.args or {}, self._call))

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
