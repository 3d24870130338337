"""What a tool is.

A tool is a class with a `kind`, a typed parameter model and `run`; or a function under `@tool`.
It returns a value (an ok outcome), a `Success` (a value with helper fields such as `http`), or raises:

    ToolFailure       the task failed, and this says how: kind, message, retryable, helper fields
    anything else     also an error outcome, kind `exception`

A tool never sees templates, policies or the log: parameters arrive rendered, validated and with secrets filled in.
"""

from __future__ import annotations

import errno
import inspect
import os
import re
import stat
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar, Generic, Protocol, TypeVar, cast, get_args
from urllib.parse import unquote, urlsplit

import msgspec

from penstock.kernel.values import Json, JsonMap, frozen
from penstock.ports.ambient import Clock
from penstock.ports.blobs import BlobStore, ResultRef
from penstock.tools.addresses import OPEN, Addresses


class ToolFailure(Exception):
    """An error outcome. `retryable` is advice for policies; `helpers` become `outcome.http`, `outcome.pg` …"""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retryable: bool = False,
        helpers: dict[str, JsonMap] | None = None,
        **detail: Json,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.helpers = helpers or {}
        self.detail: JsonMap = dict(detail)


@dataclass(frozen=True, slots=True)
class Success:
    """A result together with the tool family's helper fields. A `ResultRef` as `result` is stored as the reference it is."""

    result: object = None
    helpers: dict[str, JsonMap] = field(default_factory=dict)


class Resources(Protocol):
    """Things shared by all tasks of one execution, such as connection pools; closed when it ends."""

    async def get(self, key: object, make: Callable[[], Awaitable[tuple[Any, Callable[[], Awaitable[None]]]]]) -> Any:
        """The resource under `key`, made on first use by `make`, which returns it with the coroutine function that closes it."""
        ...


class Threads(Protocol):
    """Blocking code runs here, never on the event loop."""

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator allows, as opposed to what the author asks for."""

    addresses: Addresses = OPEN
    """Which addresses tasks may reach. Code of their own (`python`, `shell`) is beyond it."""
    max_output_bytes: int = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """Where the task stands in its document, so that errors can name a line the author knows."""

    file: str = "<playbook>"
    lines: dict[str, int] = field(default_factory=dict)
    """Parameter name -> the 1-based line on which the first line of its text stands."""


@frozen
class Call:
    """One task run, as its tool sees it."""

    task: str
    task_run_id: str
    attempt: int
    execution_id: str
    idempotency_key: str
    folder: Path
    """Relative paths in parameters are relative to this, the document's own folder (D56)."""
    spec: JsonMap
    """The effective spec: kind defaults < executor < step < loop < task. Time-outs and other runtime knobs."""
    clock: Clock
    blobs: BlobStore
    resources: Resources
    threads: Threads
    settings: Settings
    source: Source
    credential: Callable[[str], dict[str, Any]]
    """A keychain entry as a plain mapping, secrets included; a scalar one is `{"value": …}`. Raises ToolFailure when unknown."""
    say: Callable[[str], None]
    """A line for the run's log: shown, kept, and redacted. Safe to call from any thread."""
    play: Callable[..., Awaitable[Any]]
    """`await play(path, workload, return_step)` runs a sub-playbook as a child scope and gives its result."""
    load: Callable[[ResultRef], Json]
    """The value behind a reference."""
    element: Mapping[str, Any] | None = None
    """In a loop, the element: `loop_id`, `shard_id`, `iter_key`, `index`, and its value under the iterator's name."""
    holds_secret: Callable[[str], bool] = lambda text: False
    """Is a secret of the keychain in this text, in any of its spellings?"""
    caller: Path | None = None
    """The working folder of the process that was asked to run the document; None where that is another machine's, or unknown."""
    names: Callable[[], Mapping[str, Any]] = dict
    """What the task's templates can name: a snapshot, without secrets, whose values must not be changed. For the event loop."""

    def resolve(self, path: str) -> Path:
        """A path from a parameter, made absolute against the document's folder."""
        given = Path(path).expanduser()
        return given if given.is_absolute() else self.folder / given

    def timeout(self, default: float | None = None) -> float | None:
        """The whole task's time limit in seconds, from `spec.timeout` as a number or as `{total: …}`."""
        value = self.spec.get("timeout")
        if isinstance(value, dict):
            value = value.get("total")
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else default


P = TypeVar("P", bound=msgspec.Struct)


class Parametric(Generic[P]):
    """Has typed parameters: those of the model it is derived with, such as `Tool[MailParams]`, or else `Params`."""

    Params: ClassVar[type[msgspec.Struct]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "Params" not in cls.__dict__:
            for model in (one for base in cls.__dict__.get("__orig_bases__", ()) for one in get_args(base)[:1]):
                if isinstance(model, type) and issubclass(model, msgspec.Struct):
                    cls.Params = model


class Tool(Parametric[P]):
    """Base of all tools. The docstring is its reference page; `Params` fields carry their descriptions in `msgspec.Meta`."""

    kind: ClassVar[str]
    inline: ClassVar[bool] = False
    """True only for tools that neither block nor await: they run without touching the event loop."""
    pure: ClassVar[bool] = False
    """True only for inline tools that compute and nothing else: they look at their parameters alone, and may be called again."""
    needs_secrets: ClassVar[bool] = True
    family: ClassVar[str] = ""
    """The field of its own that every outcome of a failure has, such as `pg`, also when it could not be asked for a code."""
    makes_files: ClassVar[bool] = True
    """Could a call make a file that a later task reads? Says when a file that is missing may still come."""
    gives: ClassVar[tuple[str, ...]] = ()
    """The fields of its result, where they are always the same; others that a document reads are slips."""
    one_of: ClassVar[tuple[str, ...]] = ()
    """Parameters of which a task has exactly one."""
    example: ClassVar[str] = ""
    """A task in YAML for the tool's page. Those of built-in kinds are in `examples/`."""
    defaults: ClassVar[JsonMap] = {}
    """Kind defaults of `spec`: the outermost layer of the overlay."""

    def run_inline(self, params: P, call: Call) -> object:
        raise TypeError(f"tool `{self.kind}` is not inline")

    async def run(self, params: P, call: Call) -> object:
        return self.run_inline(params, call)


_RESERVED = {"call"}


def tool(kind: str, *, example: str = "") -> Callable[[Callable[..., Any]], type[Tool[Any]]]:
    """Make a tool of a function: its parameters are the task's parameters, its docstring the reference page.

    An `async def` runs on the event loop; a plain `def` runs in a thread. A parameter named `call` receives the Call.
    """

    def make(function: Callable[..., Any]) -> type[Tool[Any]]:
        signature = inspect.signature(function, eval_str=True)
        fields: list[Any] = []
        for name, parameter in signature.parameters.items():
            if name in _RESERVED:
                continue
            annotation = object if parameter.annotation is parameter.empty else parameter.annotation
            if parameter.default is parameter.empty:
                fields.append((name, annotation))
            else:
                fields.append((name, annotation, parameter.default))
        model = msgspec.defstruct(f"{kind.title()}Params", fields, kw_only=True, forbid_unknown_fields=True)
        wants_call = "call" in signature.parameters
        is_async = inspect.iscoroutinefunction(function)

        async def run(self: Tool[Any], params: Any, call: Call) -> object:
            arguments = {name: getattr(params, name) for name in model.__struct_fields__}
            if wants_call:
                arguments["call"] = call
            if is_async:
                return await function(**arguments)
            return await call.threads.run(lambda: function(**arguments))

        made = type(
            f"{kind.title()}Tool",
            (Tool,),
            {
                "kind": kind,
                "Params": model,
                "__doc__": function.__doc__,
                "__module__": function.__module__,
                "run": run,
                "example": example,
                "function": staticmethod(function),
            },
        )
        return cast("type[Tool[Any]]", made)

    return make


# ---- Paths from parameters, and what the operating system says about them, in words an author can act on.

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=//)")

_KINDS = {
    errno.ENOENT: ("not_found", "there is no `{path}`"),
    errno.ENOTDIR: ("not_found", "a part of `{path}` is a file, not a folder"),
    errno.EACCES: ("permission", "no permission for `{path}`"),
    errno.EPERM: ("permission", "no permission for `{path}`"),
    errno.EROFS: ("permission", "`{path}` is on a read-only file system"),
    errno.EEXIST: ("exists", "`{path}` exists already"),
    errno.ENOTEMPTY: ("exists", "the folder `{path}` is not empty"),
    errno.EISDIR: ("is_directory", "`{path}` is a folder"),
    errno.ENOSPC: ("disk_full", "no space is left on the disk for `{path}`"),
    errno.EDQUOT: ("disk_full", "the disk quota is used up, no room for `{path}`"),
}
# A disk can be given room and a share can come back; none of the others mends itself.
_RETRYABLE = {"disk_full", "io"}


def os_failure(error: OSError, path: Path) -> ToolFailure:
    """The failure for an error of the operating system: not_found, permission, exists, is_directory, disk_full or io."""
    kind, words = _KINDS.get(error.errno or 0, ("io", "`{path}`: " + (error.strerror or str(error))))
    return ToolFailure(kind, words.replace("{path}", str(path)), retryable=kind in _RETRYABLE, path=str(path))


def require_regular(path: Path) -> os.stat_result:
    """What is known of a regular file. A pipe or a device could block for ever or have no end, so these are refused."""
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailure("io", f"`{path}` is not a regular file", path=str(path))
    return found


def open_regular(path: Path) -> IO[bytes]:
    """A regular file, open for reading."""
    try:
        require_regular(path)
        return path.open("rb")
    except OSError as error:
        raise os_failure(error, path) from error


def local_path(path: str, call: Call) -> Path:
    """A path or `file://` URL from a parameter as an absolute path; relative ones start at the document's folder."""
    given = _without_scheme(path)
    if not given.strip():
        raise ToolFailure("parameters", "the path is empty")
    if "\0" in given:
        raise ToolFailure("parameters", "the path has a NUL character in it")
    try:
        return call.resolve(given)
    except RuntimeError as error:
        raise ToolFailure("not_found", f"`{path}`: there is no such home folder", path=path) from error


def is_only_at_caller(path: str, call: Call) -> bool:
    """Whether a relative path leads to something from the caller's folder, and to nothing from the document's."""
    if call.caller is None or not path or os.path.isabs(path):
        return False
    return os.path.lexists(os.path.join(call.caller, path)) and not os.path.lexists(os.path.join(call.folder, path))


def _without_scheme(path: str) -> str:
    scheme = _SCHEME.match(path)
    if scheme is None:
        return path
    if scheme[1].lower() != "file":
        raise ToolFailure(
            "unsupported_scheme", f"`{scheme[1]}://` is not supported here: give a local path or a `file://` URL"
        )
    url = urlsplit(path)
    if url.netloc not in ("", "localhost"):
        raise ToolFailure(
            "unsupported_scheme", f"`{path}` names the host `{url.netloc}`: write `file:///` for this machine"
        )
    return unquote(url.path)
