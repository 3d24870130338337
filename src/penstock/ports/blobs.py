"""The result store: large values by reference, addressed by what they contain.

Law: a key is made of the SHA-256 of the bytes, so equal bytes have one key in every store, and bytes never change under a key.
Whoever uses results sees a `BlobStore`; whoever keeps house (`penstock prune`, the composition root) sees `KeptBlobs`.
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
    """There are no bytes under the key: unlike other troubles of a store, waiting does not help."""


def key_of(checksum: str) -> str:
    """The key of bytes with this SHA-256 in hexadecimal digits; two levels, because folders do not like millions of files."""
    return f"sha256/{checksum[:2]}/{checksum[2:]}"


def checksum_of(key: str) -> str:
    """The SHA-256 that a key of a store says."""
    return key[7:9] + key[10:]


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


def own_key(ref: ResultRef, store: str) -> str:
    """The key, if `ref` leads into `store`. It comes from the log, which other programs can write: no other shape is let in."""
    if ref.store != store or KEY.fullmatch(ref.key) is None:
        raise Refused(f"`{ref.store}:{ref.key}` is not a reference into the {store} store")
    return ref.key


class BlobStore(Protocol):
    """`put` returns only when the bytes are durable: a reference in the log must never dangle.

    All of it may be called from any thread, and a store that processes share from any number of them.
    """

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        """Store the bytes, once for all equal ones. Unavailable when they cannot be stored; then nothing is left behind."""
        ...

    def get(self, ref: ResultRef) -> bytes:
        """The bytes, checked against size and checksum. Unavailable when they are damaged, Missing when they are not there."""
        ...

    def path(self, ref: ResultRef) -> str:
        """A local file with the same bytes, for readers that want to stream; only its size has been checked."""
        ...

    def delete(self, ref: ResultRef) -> None:
        """Let go of the bytes; of bytes that are not there, too. The caller knows that nothing refers to them."""
        ...


class KeptBlobs(BlobStore, Protocol):
    """A store as its keeper sees it: what is in it, how old that is, and how to remove what nobody refers to.

    Times are seconds since 1970 on the store's own clock. Putting bytes again makes them young again.
    """

    @property
    def stores(self) -> tuple[str, ...]:
        """The kinds of reference that can be read here; new ones are of the first."""
        ...

    def read(self, ref: ResultRef) -> Iterator[bytes]:
        """The bytes in pieces, for those who need little memory; damage is told at the latest after the last piece."""
        ...

    def seen(self, key: str) -> float | None:
        """When these bytes were last put, or at the latest may have been; None when they are not there."""
        ...

    def size(self, key: str) -> int | None:
        """How many bytes these are; None when they are not there."""
        ...

    def keys(self, older_than: float) -> Iterator[tuple[str, float]]:
        """What was last put before `older_than`, in any order, each with its time as `discard` wants it."""
        ...

    def discard(self, key: str, seen: float) -> bool:
        """Delete bytes unless they were put again after `seen`; whichever of the two comes first, no put is undone."""
        ...

    def tidy(self, older_than: float) -> None:
        """Remove what is no result and older: pieces that writers left when they died, second copies."""
        ...

    def close(self) -> None:
        """Let go of connections and threads; closing again does nothing."""
        ...
