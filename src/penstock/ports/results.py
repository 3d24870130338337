"""Large results as templates and tools see them: views that read through a reference when something looks inside.

A view is encoded as its reference, so a value that only passes through (into ctx, args or the next task) is never loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore, ResultRef, is_ref

TEXTUAL = frozenset({"application/json", "text/plain"})
MOST_KEYS = 20
"""How many keys a hint names; fewer are all of them."""
Load: TypeAlias = Callable[[ResultRef], Json]


def encodable(text: str) -> str:
    """`text` with lone surrogates, which UTF-8 cannot represent, escaped: whatever code says can be reported."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def encodable_tree(value: Json) -> Json:
    match value:
        case str():
            return encodable(value)
        case dict():
            return {encodable(key): encodable_tree(each) for key, each in value.items()}
        case list():
            return [encodable_tree(each) for each in value]
    return value


class LazyResult:
    """Common to both views: loaded on first access, then kept as long as the view lives."""

    __slots__ = ("_load", "_value", "ref")

    def __init__(self, ref: ResultRef, load: Load) -> None:
        self.ref = ref
        self._load = load
        self._value: Any = None

    def loaded(self) -> Any:
        if self._value is None:
            self._value = self._load(self.ref)
        return self._value

    def __repr__(self) -> str:
        return repr(self.loaded())


class LazyMapping(LazyResult, Mapping[str, Any]):
    """A view of a mapping. If the data turns out to be no mapping (a streamed body that only began like one), it is empty."""

    __slots__ = ()

    def _inside(self) -> Any:
        value = self.loaded()
        return value if isinstance(value, dict) else {}

    def __getitem__(self, key: str) -> Any:
        if self._value is None and self._lacks(key):
            raise KeyError(key)
        return self._inside()[key]

    def _lacks(self, key: str) -> bool:
        """Is it known without loading the result that it has no such key?"""
        hint = self.ref.schema_hint
        keys = hint.get("keys") if isinstance(hint, dict) else None
        return isinstance(keys, list) and len(keys) < MOST_KEYS and key not in keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._inside())

    def __len__(self) -> int:
        return len(self._inside())


class LazySequence(LazyResult, Sequence[Any]):
    __slots__ = ()

    def _inside(self) -> Any:
        value = self.loaded()
        return value if isinstance(value, list) else []

    def __getitem__(self, index: Any) -> Any:
        return self._inside()[index]

    def __len__(self) -> int:
        return len(self._inside())


def view(ref: ResultRef, load: Load) -> object:
    """The view for what the reference is known to hold; texts and bytes are loaded, since there is nothing to look inside."""
    hint = ref.schema_hint
    kind = hint.get("type") if isinstance(hint, dict) else None
    if kind == "object":
        return LazyMapping(ref, load)
    if kind == "array":
        return LazySequence(ref, load)
    return LazyOpaque(ref, load)


class LazyOpaque(LazyResult):
    """A text, or bytes that are not JSON. Expressions look at it as text; a tool streams bytes from the store."""

    __slots__ = ()

    def opened(self) -> Any:
        return self.loaded()

    def __str__(self) -> str:
        return str(self.loaded())


def thawed(value: Json, load: Load) -> Any:
    """`value` with every reference in it replaced by its view."""
    if isinstance(value, dict):
        if is_ref(value):
            return view(ResultRef.from_json(value), load)
        return {key: thawed(inner, load) for key, inner in value.items()}
    if isinstance(value, list):
        return [thawed(inner, load) for inner in value]
    return value


def materialised(value: Any, largest: float = float("inf")) -> Any:
    """`value` with every view replaced by what it stands for: what a tool is given. What is larger than `largest` bytes
    stays a reference, and so do bytes: a tool that wants them streams them from the store."""
    if isinstance(value, LazyResult):
        ref = value.ref
        is_wanted = ref.media in TEXTUAL and ref.size <= largest
        return materialised(value.loaded(), largest) if is_wanted else ref.as_json()
    if isinstance(value, dict):
        return {key: materialised(inner, largest) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [materialised(inner, largest) for inner in value]
    if isinstance(value, range):
        return list(value)
    if isinstance(value, Mapping):
        return {key: materialised(inner, largest) for key, inner in value.items()}
    return value


def _as_json(value: object) -> object:
    if isinstance(value, LazyResult):
        return value.ref.as_json()
    if isinstance(value, (range, Mapping)):
        return list(value) if isinstance(value, range) else dict(value)
    raise TypeError(f"a value of type `{type(value).__name__}` cannot be written as JSON")


_encoder = msgspec.json.Encoder(enc_hook=_as_json)
_decoder = msgspec.json.Decoder()


# The methods themselves: a function around them would cost as much as they do.
encode: Callable[[object], bytes] = _encoder.encode
decode: Callable[[bytes], Json] = _decoder.decode


def loader(blobs: BlobStore) -> Load:
    """Reads what a reference stands for: JSON as its value, anything else as text, including what only claims to be JSON."""

    def load(ref: ResultRef) -> Json:
        data = blobs.get(ref)
        if ref.media == "application/json":
            with suppress(msgspec.DecodeError, ValueError, RecursionError):
                value = decode(data)
                return thawed(value, load) if b'"$ref"' in data else value  # A list of large results is large too.
        return data.decode("utf-8", errors="replace")

    return load


def schema_hint(value: object) -> JsonMap:
    """A short description of what is behind a reference: its JSON type, and for rows the columns."""
    if isinstance(value, dict):
        return {"type": "object", "keys": [str(key) for key in list(value)[:MOST_KEYS]]}
    if isinstance(value, (list, tuple)):
        hint: JsonMap = {"type": "array", "length": len(value)}
        if value and isinstance(value[0], dict):
            hint["keys"] = [str(key) for key in list(value[0])[:MOST_KEYS]]
        return hint
    return {"type": "string" if isinstance(value, str) else type(value).__name__}
