"""Run an author's Python code and say what came of it, in the author's own lines.

`perform` never raises: it gives a `Reply`, either the result as JSON-like values or the failure as a mapping. The same
function serves a thread of the engine and the interpreter of an isolated task, so both say the same things.
Standard library only, and little of it at import: this module is on the start-up path of every isolated task.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, ModuleType, TracebackType
from typing import Any, NamedTuple

from penstock.tools.python.values import NotFriendly, to_json_friendly

__all__ = ["Code", "Reply", "perform", "syntax_hint", "to_json_friendly"]

MAX_MESSAGE = 2_000
MAX_TRACEBACK = 8_000
_numbers = itertools.count(1)

_HINTS = (
    ("'await' outside", "top-level `await` is not supported: put it into `async def main(): …`"),
    ("'async with' outside", "top-level `async with` is not supported: put it into `async def main(): …`"),
    ("'async for' outside", "top-level `async for` is not supported: put it into `async def main(): …`"),
    ("asynchronous comprehension outside", "put it into `async def main(): …`"),
    ("'return' outside function", "set `result = …`, or put the code into `def main(): …`"),
)


def syntax_hint(reason: str) -> str:
    """What to do about it, where the compiler's reason is one that comes from how code blocks are run."""
    return next((hint for start, hint in _HINTS if start in reason), "")


class Code(NamedTuple):
    """A piece of code and where it stands: `line` is the line of `file` that holds its first line, 0 when that is not known."""

    text: str
    file: str
    line: int = 1
    label: str = "code"
    """The parameter or the file that an author would call it by."""
    function: str = "main"
    must_define: bool = False
    """The author named the function, so its absence is a mistake."""

    @property
    def is_script(self) -> bool:
        return self.label != "code"


class Reply(NamedTuple):
    result: Any = None
    failure: dict[str, Any] | None = None
    """`kind`, `message`, `retryable`, `helpers`, `detail`."""


class _Stop(Exception):
    """A mistake that has a kind of its own."""

    def __init__(self, kind: str, message: str, helpers: dict[str, Any] | None = None, **detail: Any) -> None:
        super().__init__(message)
        self.failure = {
            "kind": kind,
            "message": message,
            "retryable": False,
            "helpers": helpers or {},
            "detail": detail,
        }


def perform(
    code: Code,
    arguments: Callable[[], dict[str, Any]],
    cancellable: Callable[[Callable[[], object]], None] | None = None,
) -> Reply:
    """Compile, run, convert. `cancellable` is given the function that cancels an `async def main` from another thread."""
    module = ModuleType(f"penstock_task_{next(_numbers)}")
    # Data classes, type hints and pickle look their module up by its name.
    sys.modules[module.__name__] = module
    try:
        value = _run(code, module, arguments(), cancellable)
        return Reply(result=to_json_friendly(value))
    except _Stop as stop:
        return Reply(failure=stop.failure)
    except NotFriendly as problem:
        return Reply(failure=_not_serialisable(problem))
    except BaseException as error:  # code under test of no rules: SystemExit and KeyboardInterrupt included
        return Reply(failure=_describe(error, code, module.__name__))
    finally:
        sys.modules.pop(module.__name__, None)


def _run(code: Code, module: ModuleType, arguments: dict[str, Any], cancellable: Any) -> Any:
    names = module.__dict__
    names.update(arguments)
    if code.is_script:
        names["__file__"] = code.file
    exec(_compiled(code), names)
    function = names.get(code.function)
    if callable(function):
        positional, named = _accepted(function, code.function, arguments)
        value = function(*positional, **named)
        return _awaited(value, cancellable) if hasattr(value, "__await__") else value
    if code.must_define:
        raise _Stop("parameters", f"the code defines no function `{code.function}`")
    return names.get("result")


def _compiled(code: Code) -> CodeType:
    try:
        return _compile(code.text, code.file, max(code.line, 1))
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise _syntax(error, code) from None


@lru_cache(maxsize=256)
def _compile(text: str, file: str, line: int) -> CodeType:
    # Empty lines in front make every line number, in frames as in syntax errors, one of the author's file.
    return compile("\n" * (line - 1) + text, file, "exec", dont_inherit=True)


def _accepted(function: Callable[..., Any], name: str, arguments: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that the function's signature asks for, by name."""
    import inspect

    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [], dict(arguments)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    missing: list[str] = []
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        if each.name not in arguments and each.default is each.empty:
            missing.append(each.name)
        elif each.kind is each.POSITIONAL_ONLY:
            positional.append(arguments.get(each.name, each.default))
        elif each.name in arguments:
            named[each.name] = arguments[each.name]
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        own = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
        named.update({name: value for name, value in arguments.items() if name not in own})
    if missing:
        wanted, given = _listed(missing), _listed(arguments)
        has = f"only {given}" if arguments else "nothing"
        raise _Stop("parameters", f"`{name}` needs {wanted}, and `args` gives {has}", missing=missing)
    return positional, named


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _awaited(value: Any, cancellable: Callable[[Callable[[], object]], None] | None) -> Any:
    """An `async def main` has an event loop of its own, so that it cannot block the engine's."""
    import asyncio

    async def whole() -> Any:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        if cancellable is not None and task is not None:
            cancellable(lambda: loop.call_soon_threadsafe(task.cancel))
        return await value

    return asyncio.run(whole())


def _not_serialisable(problem: NotFriendly) -> dict[str, Any]:
    place = problem.place("result")
    return {
        "kind": "not_serialisable",
        "message": f"`{place}` {problem.reason}",
        "retryable": False,
        "helpers": {},
        "detail": {"path": place, "type": problem.type_name},
    }


def _where(code: Code, line_in_file: int) -> tuple[str, dict[str, Any]]:
    """How an author would name a line, and the same as fields."""
    line = line_in_file - max(code.line, 1) + 1
    if code.is_script:
        return f"line {line} of `{code.label}`", {"line": line}
    if not code.line:
        return f"line {line} of `code`", {"line": line}
    return f"line {line} of `code`, {code.file}:{line_in_file}", {"line": line, "yaml_line": line_in_file}


def _helpers(error: BaseException, module: str) -> dict[str, Any]:
    kind = type(error)
    own = kind.__module__ == module
    return {"py": {"exception_type": kind.__name__, "exception_module": "__main__" if own else str(kind.__module__)}}


def _syntax(error: BaseException, code: Code) -> _Stop:
    reason = str(getattr(error, "msg", "") or error) or "the code is too complex to compile"
    hint = syntax_hint(reason)
    fields: dict[str, Any] = {}
    where = ""
    line = getattr(error, "lineno", None)
    if line:
        where, fields = _where(code, line)
        column = getattr(error, "offset", None) or 0
        shown = _source(code, line)
        caret = " " * max(column - 1 - (len(shown) - len(shown.lstrip())), 0) + "^"
        fields["traceback"] = f'  File "{code.file}", line {line}\n    {shown.strip()}\n    {caret}'
    name = type(error).__name__ if isinstance(error, SyntaxError) else "SyntaxError"
    message = f"{name}: {reason}" + (f" ({where})" if where else "") + (f"; {hint}" if hint else "")
    helpers = {"py": {"exception_type": name, "exception_module": "builtins"}}
    return _Stop("syntax", _bounded(message, MAX_MESSAGE), helpers, **fields)


def _describe(error: BaseException, code: Code, module: str) -> dict[str, Any]:
    """A failure that names the author's line, and keeps the frames from the author's code on."""
    detail: dict[str, Any] = {}
    where = ""
    lines = [line for frame, line in _frames(error.__traceback__) if frame.co_filename == code.file]
    if lines:
        where, detail = _where(code, lines[-1])
    raised_at = _raised_at(error, code)
    if raised_at:
        where = f"{where}; raised at {raised_at}" if where else f"raised at {raised_at}"
        detail["raised_at"] = raised_at
    text = _traceback(error, code, set()).replace(f"{module}.", "")
    detail["traceback"] = _bounded(text, MAX_TRACEBACK)
    kind, retryable = "memory" if isinstance(error, MemoryError) else "exception", _flag(error, "retryable")
    message = f"{type(error).__name__}: {_said(error)}".removesuffix(": ").replace(f"{module}.", "")
    helpers = _helpers(error, module)
    base = sys.modules.get("penstock.tools.base")
    if base is not None and isinstance(error, base.ToolFailure):
        kind, message = error.kind, error.message
        detail = {**_friendly_or_empty(error.detail), **detail}
        helpers = {**_friendly_or_empty(error.helpers), **helpers}
    return {
        "kind": kind,
        "message": _bounded(message, MAX_MESSAGE) + (f" ({where})" if where else ""),
        "retryable": retryable,
        "helpers": helpers,
        "detail": detail,
    }


def _raised_at(error: BaseException, code: Code) -> str:
    """Where in a module of the author's, beside the code, it happened; "" when it happened in the code itself."""
    for frame, line in reversed(_frames(error.__traceback__)):
        if frame.co_filename == code.file:
            return ""
        if not frame.co_filename.startswith("<") and not _is_library(frame.co_filename):
            return f"{frame.co_filename}:{line} in {frame.co_name}"
    return ""


def _friendly_or_empty(fields: dict[str, Any]) -> dict[str, Any]:
    try:
        return dict(to_json_friendly(fields))
    except NotFriendly:
        return {}


def _flag(error: BaseException, name: str) -> bool:
    try:
        return getattr(error, name, False) is True
    except Exception:  # an author's property may raise anything
        return False


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an author's __str__ may raise anything
        return "(its text cannot be shown)"


def _frames(traceback: TracebackType | None) -> list[tuple[CodeType, int]]:
    found = []
    while traceback is not None:
        found.append((traceback.tb_frame.f_code, traceback.tb_lineno))
        traceback = traceback.tb_next
    return found


def _source(code: Code, line: int) -> str:
    lines = code.text.split("\n")
    index = line - max(code.line, 1)
    return lines[index] if 0 <= index < len(lines) else ""


def _traceback(error: BaseException, code: Code, seen: set[int]) -> str:
    """As Python prints it, causes first, with the author's frames alone: code, and modules beside it."""
    import linecache

    seen.add(id(error))
    frames = _frames(error.__traceback__)
    first = next((index for index, (frame, _) in enumerate(frames) if frame.co_filename == code.file), len(frames))
    lines: list[str] = []
    for frame, line in frames[first:]:
        own = frame.co_filename == code.file
        if not own and _is_library(frame.co_filename):
            continue
        source = _source(code, line) if own else linecache.getline(frame.co_filename, line)
        lines.append(f'  File "{frame.co_filename}", line {line}, in {frame.co_name}\n    {source.strip()}'.rstrip())
    if len(lines) > 20:
        lines[5:-15] = [f"  … {len(lines) - 20} more frames …"]
    kind = type(error)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__name__}"
    lines.append(f"{name}: {_said(error)}".removesuffix(": "))
    if isinstance(error, BaseExceptionGroup):
        lines.extend(f"  - {type(inner).__name__}: {_said(inner)}" for inner in error.exceptions[:10])
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is None or id(cause) in seen or len(seen) >= 4:
        return "\n".join(lines)
    joint = (
        "The above was the direct cause of:" if error.__cause__ else "While that was handled, another error occurred:"
    )
    return _traceback(cause, code, seen) + f"\n{joint}\n" + "\n".join(lines)


def _is_library(file: str) -> bool:
    standard = os.path.dirname(os.__file__)
    return file.startswith((standard, "<frozen")) or "site-packages" in file or "dist-packages" in file


def _bounded(text: str, limit: int) -> str:
    clean = text.encode("utf-8", "replace").decode()  # an exception's text may hold what JSON cannot
    return clean if len(clean) <= limit else clean[: limit * 2 // 3] + " … " + clean[-(limit // 3) :]
