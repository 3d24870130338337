"""Whatever a component raised, as the one failure it ends in: a kind, a sentence an author understands, and where."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from penstock.components.base import Call, Component, ComponentFailure
from penstock.kernel.errors import PenstockError
from penstock.kernel.values import JsonMap
from penstock.ports.rows import RowsFailed
from penstock.tools.base import ToolFailure

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
    from penstock.data.sql_rules import SqlMistake

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
    told = frames[frames.index(mine[0]) :] if mine else frames
    lines = [_named(frame) for frame in told[-MAX_FRAMES:]]
    detail: JsonMap = {"exception": type(shown).__name__, "traceback": [*lines]}
    if mine:
        detail["raised_at"] = _named(mine[-1])
        message = f"{message} (raised at {detail['raised_at']})"
    return _with(ComponentFailure("exception", message), detail)


def _named(frame: traceback.FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno} in {frame.name}"


def _own_frames(frames: Sequence[traceback.FrameSummary], component: Component[Any]) -> list[traceback.FrameSummary]:
    """The frames in the code of whoever wrote the component: not in a library that it calls, and not in ours."""
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
