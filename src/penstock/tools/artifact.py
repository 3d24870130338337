"""The `artifact` tool: results by reference, as text that can be handed on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET

from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import Missing, ResultRef, is_ref
from penstock.ports.references import SCHEME, reference_to, resolved
from penstock.ports.results import TEXTUAL, encode, schema_hint
from penstock.tools.base import Call, Tool, ToolFailure
from penstock.tools.parameters import about

LARGEST_READ = 64 * 1024
"""A result that is larger stays in the store: what reads the task's result reads it there."""
_REFERENCE = ("result_ref", "ref", "uri")


class ArtifactParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[
        Literal["get", "put"], about("`get` reads what a reference stands for, `put` stores a value.")
    ] = "get"
    result_ref: Annotated[
        str | dict[str, Any] | None, about("`get`: the reference, which `{{ NAME._ref }}` or `put` gave.")
    ] = None
    ref: Annotated[str | dict[str, Any] | None, about("The same as `result_ref`.")] = None
    uri: Annotated[str | None, about("The same as `result_ref`.")] = None
    data: Annotated[Any, about("`put`: the value to store.")] = UNSET
    input: Annotated[dict[str, Any] | None, about("These parameters as one mapping; those beside it go first.")] = None


class ArtifactTool(Tool[ArtifactParams]):
    """Read a result by its reference, or store a value and get one.

    `{{ NAME._ref }}` is the reference of the result of a step or task, as a text that can be kept in ctx, sent to a
    sub-playbook or written to a file, and read in any run that uses the same result store. Of a result that is too large for
    the log it says where it is stored; that of a smaller one carries the result itself. A field `_ref` that a result has of its
    own goes first.

    The result of `get` is what the reference stands for; a large one is not loaded for it. That of `put` is `{ref, size}`.
    Whatever the log mentions is kept until its run is removed.

    A text that is no reference, or leads to another kind of store, is an error of kind `reference`, one to a result that has
    been removed `not_found`. Files elsewhere are read and written by `files`.
    """

    kind: ClassVar[str] = "artifact"
    makes_files: ClassVar[bool] = False

    async def run(self, params: ArtifactParams, call: Call) -> object:
        given: dict[str, Any] = {name: getattr(params, name) for name in (*_REFERENCE, "data")}
        more = params.input or {}
        unknown = [name for name in more if name not in given]
        if unknown:
            raise ToolFailure("parameters", f"`input` has `{unknown[0]}`; it can have `{'`, `'.join(given)}`")
        given = {**more, **{name: value for name, value in given.items() if value is not None and value is not UNSET}}
        references = [given[name] for name in _REFERENCE if given.get(name) is not None]
        if params.action == "put":
            return await call.threads.run(_put, given, references, call)
        if len(references) != 1 or "data" in given:
            raise ToolFailure("parameters", "`action: get` needs one reference in `result_ref`, and nothing else")
        return await call.threads.run(_get, references[0], call)


def _put(given: Mapping[str, Any], references: list[Any], call: Call) -> JsonMap:
    if references:
        hint = "the store says where it is; to write a file elsewhere use `files`"
        raise ToolFailure("parameters", f"`action: put` takes no reference: {hint}")
    if "data" not in given:
        raise ToolFailure("parameters", "`action: put` needs `data`")
    value = given["data"]
    try:
        is_stored = is_ref(value)
        ref = (
            ResultRef.from_json(value) if is_stored else call.blobs.put([encode(value)], schema_hint=schema_hint(value))
        )
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise ToolFailure("parameters", f"`data` cannot be written as JSON: {error}") from error
    except Unavailable as error:
        raise ToolFailure("unavailable", error.message, retryable=True) from error
    return {"ref": reference_to(ref), "size": ref.size}


def _get(given: str | dict[str, Any], call: Call) -> object:
    try:
        found = _referred(given)
        if isinstance(found, tuple):
            return found[0]
        if found.media in TEXTUAL and found.size <= LARGEST_READ:
            return call.load(found)
        call.blobs.path(found)
    except Refused as error:
        raise ToolFailure("reference", error.message + (f"; hint: {error.hint}" if error.hint else "")) from error
    except Missing as error:
        raise ToolFailure("not_found", error.message) from error
    except Unavailable as error:
        raise ToolFailure("unavailable", error.message, retryable=True) from error
    return found


def _referred(given: str | dict[str, Any]) -> ResultRef | tuple[Json]:
    if isinstance(given, dict):
        if not is_ref(given):
            raise Refused("`result_ref` is a mapping, and not the reference of a result", "give `{{ NAME._ref }}`")
        return ResultRef.from_json(given)
    if "://" in given and not given.startswith(SCHEME):
        raise Refused("a URL is not the reference of a result", "files elsewhere are read by `files`")
    return resolved(given.strip())
