"""The result store: large values by reference, addressed by what they contain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from penstock.kernel.values import Json, JsonMap

REF_MARK = "$ref"


@dataclass(frozen=True, slots=True)
class ResultRef:
    """Where a large result lies. This, and never the value, is what the log holds."""

    store: str
    key: str
    size: int
    checksum: str
    media: str = "application/json"
    schema_hint: Json = None

    def as_json(self) -> JsonMap:
        return {
            REF_MARK: "result",
            "store": self.store,
            "key": self.key,
            "size": self.size,
            "checksum": self.checksum,
            "media": self.media,
            "schema_hint": self.schema_hint,
        }

    @staticmethod
    def from_json(data: JsonMap) -> ResultRef:
        return ResultRef(
            store=str(data["store"]),
            key=str(data["key"]),
            size=int(str(data["size"])),
            checksum=str(data["checksum"]),
            media=str(data.get("media", "application/json")),
            schema_hint=data.get("schema_hint"),
        )


def is_ref(value: object) -> bool:
    return isinstance(value, dict) and value.get(REF_MARK) == "result"


class BlobStore(Protocol):
    """`put` returns only when the bytes are durable: a reference in the log must never dangle."""

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        """Store the bytes, once for all equal ones. Unavailable when they cannot be stored; then nothing is left behind."""
        ...

    def get(self, ref: ResultRef) -> bytes:
        """The bytes, checked against size and checksum. Unavailable when they are missing or damaged."""
        ...

    def path(self, ref: ResultRef) -> str:
        """A local file with the same bytes, for readers that want to stream; only its size has been checked."""
        ...

    def delete(self, ref: ResultRef) -> None:
        """Let go of the bytes; of bytes that are not there, too. The caller knows that nothing refers to them."""
        ...
