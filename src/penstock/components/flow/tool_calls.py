"""A component that does what a tool already does: the tool's call is made from the component's, and its failures are taken over.

Law: nothing a tool raises leaves a component as it is. Kinds that speak of files are spelled as all components spell them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import msgspec

from penstock.components.base import Call, ColumnMistake, ComponentFailure, missing_of
from penstock.data.types import MissingColumn
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef
from penstock.ports.components import Mistake
from penstock.ports.rows import Schema
from penstock.tools.base import Call as ToolCall
from penstock.tools.base import ToolFailure, local_path, os_failure

_OF_FILES = {"not_found": "missing_file", "exists": "file_exists", "is_directory": "file", "disk_full": "disk"}


def tool_call(call: Call, spec: JsonMap | None = None) -> ToolCall:
    """The call that a tool is given when a component lets it work. `spec` has the tool's runtime knobs, time-outs first."""

    def load(ref: ResultRef) -> Json:
        value: Json = msgspec.json.decode(call.blobs.get(ref))
        return value

    return ToolCall(
        task=call.component,
        task_run_id=call.place,
        attempt=1,
        execution_id=call.execution_id,
        idempotency_key=call.idempotency_key,
        folder=call.folder,
        spec=spec or {},
        clock=call.clock,
        blobs=call.blobs,
        resources=call.resources,
        threads=call.threads,
        settings=call.settings,
        source=call.source,
        credential=call.credential,
        say=call.say,
        play=call.play,
        load=load,
        holds_secret=call.holds_secret,
    )


def failure_from(failed: ToolFailure) -> ComponentFailure:
    """A tool's failure as a component's. `exit_code` among its details is a detail, not the code the job ends with."""
    made = ComponentFailure(failed.kind, failed.message, retryable=failed.retryable)
    made.detail.update(failed.detail)
    return made


@contextmanager
def tool_failures() -> Iterator[None]:
    try:
        yield
    except ToolFailure as failed:
        raise failure_from(failed) from failed


@contextmanager
def place_failures() -> Iterator[None]:
    """The same for places of files: kinds that speak of files are spelled as all components spell them."""
    try:
        yield
    except ToolFailure as failed:
        raise _of_file(failed) from failed


@contextmanager
def file_failures(path: Path) -> Iterator[None]:
    """`path` is what the author knows: it is named when the system names nothing, or a temporary file of ours."""
    try:
        yield
    except ToolFailure as failed:
        raise _of_file(failed) from failed
    except OSError as error:
        named = error.filename2 or error.filename
        known = isinstance(named, str) and not named.endswith((".tmp", ".part"))
        raise _of_file(os_failure(error, Path(named) if known else path)) from error


def _of_file(failed: ToolFailure) -> ComponentFailure:
    made = failure_from(failed)
    made.kind = _OF_FILES.get(made.kind, made.kind)
    return made


def local_file(path: str, call: Call) -> Path:
    """A path from a parameter, absolute; relative ones start at the document's folder."""
    with tool_failures():
        return local_path(path, tool_call(call))


def require(mistakes: Sequence[Mistake]) -> None:
    """What the check before the run could not see yet, because a template stood in its place, is a failure now."""
    if mistakes:
        messages = "; ".join(each.message for each in mistakes)
        raise ComponentFailure("parameters", messages, missing=missing_of(mistakes))


def missing_columns(wanted: Sequence[tuple[tuple[str | int, ...], str]], schema: Schema | None) -> list[Mistake]:
    """A mistake for each name that is no column; `wanted` has the names with their places in the parameters.

    Columns are found whatever their case, as in SQL.
    """
    if schema is None:
        return []
    known = {column.name.casefold(): column.name for column in schema}
    mistakes: list[Mistake] = []
    for place, name in wanted:
        if name.casefold() not in known:
            near = get_close_matches(name.casefold(), list(known), 1)
            hint = f"did you mean `{known[near[0]]}`?" if near else f"there are `{'`, `'.join(known.values())}`"
            message = f"`{place[0]}`: there is no column `{name}`; {hint}"
            missing = MissingColumn(name)
            mistakes.append(
                ColumnMistake(place, message, label="no such column", hint=hint, kind="column", missing=missing)
            )
    return mistakes
