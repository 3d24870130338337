"""Turns what a tool returned into the one outcome of its task run: JSON only, free of secrets, large results by reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore, ResultRef
from penstock.ports.json_text import unwritable
from penstock.ports.leases import Keys
from penstock.ports.outcome import Failure, Outcome
from penstock.ports.results import (
    LazyResult,
    Load,
    decode,
    encodable,
    encodable_tree,
    encode,
    schema_hint,
    thawed,
    view,
)
from penstock.ports.wire import REF_BYTES
from penstock.tools.base import ToolFailure

PLAIN = (type(None), bool, int)


class Normaliser:
    def __init__(self, blobs: BlobStore, keys: Keys, limit: int, load: Load) -> None:
        self._blobs = blobs
        self._keys = keys
        self._limit = limit
        self._load = load

    def result(self, value: object) -> Any:
        """The value as the log will return it, or a view of it if it is too large for the log. Raises TypeError."""
        if type(value) in PLAIN or isinstance(value, LazyResult):
            return value
        if isinstance(value, ResultRef):
            return view(value, self._load)
        data = self._keys.hide_bytes(encode(value))
        if len(data) > self._limit:
            return self._stored(data, value)
        plain = decode(data)
        return thawed(plain, self._load) if REF_BYTES in data else plain

    def _stored(self, data: bytes, value: object) -> Any:
        reference = self._blobs.put([data], schema_hint=self._keys.hide_tree(schema_hint(value)))
        return view(reference, self._load)

    def writes(self, writes: JsonMap) -> JsonMap:
        """Patches are subject to the same limit, value by value."""
        return {kind: {key: self.result(value) for key, value in values.items()} for kind, values in _maps(writes)}

    def ok(self, value: object, meta: JsonMap, helpers: dict[str, JsonMap]) -> Outcome:
        try:
            return Outcome("ok", self.result(value), None, meta, self._helpers(helpers))
        except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
            words = self._keys.hide(unwritable(value, "result", error))
            failure = Failure("not_serialisable", f"the result cannot be written as JSON: {words}")
            return Outcome("error", None, failure, meta, self._helpers(helpers))

    def failed(self, failure: Failure, meta: JsonMap, helpers: dict[str, JsonMap]) -> Outcome:
        """Errors carry the tool's own words, which may quote a secret."""
        hidden = Failure(
            failure.kind,
            encodable(self._keys.hide(failure.message)),
            failure.retryable,
            self._bounded(failure.detail),
        )
        return Outcome("error", None, hidden, meta, self._helpers(helpers))

    def _helpers(self, helpers: dict[str, JsonMap]) -> dict[str, JsonMap]:
        """Helpers quote the other side, which may have echoed a secret."""
        return {name: self._bounded(fields) for name, fields in helpers.items()} if helpers else helpers

    def _bounded(self, detail: JsonMap) -> JsonMap:
        if not detail:
            return detail
        try:
            try:
                data = encode(detail)
            except UnicodeEncodeError:
                data = encode(encodable_tree(detail))
            data = self._keys.hide_bytes(data)
        except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
            return {"note": "the details could not be written as JSON"}
        if len(data) > self._limit:
            return {"note": f"the details were {len(data)} bytes and were left out"}
        plain = decode(data)
        assert isinstance(plain, dict)
        return plain


def _maps(writes: JsonMap) -> list[tuple[str, dict[str, Json]]]:
    return [(kind, values) for kind, values in writes.items() if isinstance(values, dict)]


# ---- the failure of a playbook or a job that another one ran
#
# In nested documents the innermost failure is the one worth reading; the path to it is told in one line, however deep it is.


MOST_SHOWN = 4


def child_failure(path: str, played: Any, **detail: Json) -> ToolFailure:
    error = played.error if isinstance(played.error, dict) else {}
    chain: list[Json] = [path]
    if error.get("kind") in ("playbook", "job") and isinstance(error.get("cause"), dict):
        inner = error.get("chain")
        chain += inner if isinstance(inner, list) else []
        error = error["cause"]
    message = f"{played.kind} `{path}` {played.status}: {error.get('message', 'no reason given')}"
    if len(chain) > 1:
        message = f"{message} (called through {_shown([str(each) for each in chain])})"
    failure = ToolFailure(played.kind, message, cause=error, status=played.status, chain=chain)
    failure.detail.update(detail)
    return failure


def _shown(chain: Sequence[str]) -> str:
    names = [f"`{each}`" for each in chain]
    if len(names) > MOST_SHOWN:
        return " -> ".join([*names[: MOST_SHOWN - 1], "…", names[-1]]) + f", {len(names)} deep"
    return " -> ".join(names)
