"""The result store: large values by reference, addressed by content.

Law: a key is made of the SHA-256 of the bytes, so equal bytes have one key in every store, and bytes never change under a
key. Users of results see a `BlobStore`; maintenance (`penstock prune`, the composition root) sees `KeptBlobs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import Json, JsonMap

REF_MARK = "$ref"
KEY = re.compile(r"sha256/([0-9a-f]{2})/([0-9a-f]{62})")


class Missing(Unavailable):
    """There are no bytes under the key: unlike other errors of a store, waiting does not help."""


def key_of(checksum: str) -> str:
    """The key of bytes with this SHA-256 in hexadecimal digits; two levels, because file systems do not like folders with
    millions of files."""
    return f"sha256/{checksum[:2]}/{checksum[2:]}"


def checksum_of(key: str) -> str:
    """The SHA-256 contained in a key."""
    return key[7:9] + key[10:]


@dataclass(frozen=True, slots=True)
class ResultRef:
    """Where a large result is stored. The log holds this, never the value."""

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


def own_key(ref: ResultRef, store: str) -> str:
    """The key, if `ref` leads into `store`. It comes from the log, which other programs can write, so any other form is
    rejected."""
    if ref.store != store or KEY.fullmatch(ref.key) is None:
        raise Refused(f"`{ref.store}:{ref.key}` is not a reference into the {store} store")
    return ref.key


class BlobStore(Protocol):
    """`put` returns only when the bytes are durable: a reference in the log must never dangle. All methods may be called
    from any thread, and those of a shared store from any number of processes."""

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        """Store the bytes; equal bytes are stored once. Unavailable if they cannot be stored; then nothing is left behind."""
        ...

    def get(self, ref: ResultRef) -> bytes:
        """The bytes, checked against size and checksum. Unavailable if they are damaged, Missing if they do not exist."""
        ...

    def path(self, ref: ResultRef) -> str:
        """A local file with the same bytes, for readers that stream; only its size has been checked."""
        ...

    def delete(self, ref: ResultRef) -> None:
        """Delete the bytes, if they exist. The caller knows that nothing refers to them."""
        ...


class KeptBlobs(BlobStore, Protocol):
    """A store as its maintainer sees it: what is in it, how old that is, and how to remove what nothing refers to. Times are
    seconds since 1970 on the store's own clock. Putting bytes again renews their time."""

    @property
    def stores(self) -> tuple[str, ...]:
        """The kinds of reference that can be read here; new ones are of the first kind."""
        ...

    def read(self, ref: ResultRef) -> Iterator[bytes]:
        """The bytes in pieces, to save memory; damage is reported after the last piece at the latest."""
        ...

    def seen(self, key: str) -> float | None:
        """When these bytes were last put, or an upper bound of that; None if they do not exist."""
        ...

    def size(self, key: str) -> int | None:
        """How many bytes these are; None if they do not exist."""
        ...

    def keys(self, older_than: float) -> Iterator[tuple[str, float]]:
        """What was last put before `older_than`, in any order, each with its time as `discard` needs it."""
        ...

    def discard(self, key: str, seen: float) -> bool:
        """Delete bytes unless they were put again after `seen`; whichever comes first, no put is undone."""
        ...

    def tidy(self, older_than: float) -> None:
        """Remove old data that is no result: pieces left by writers that died, second copies."""
        ...

    def close(self) -> None:
        """Close connections and threads; closing again does nothing."""
        ...
