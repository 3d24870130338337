"""Several result stores as one: new results go to the default, a reference is read where it says that it lies.

Law: the keeper's side is that of the default alone. What lies in the others may belong to another log, so nothing here deletes
there by itself; `delete` follows the reference it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.kernel.errors import Refused
from penstock.kernel.values import Json
from penstock.ports.blobs import KeptBlobs, ResultRef


class RoutedBlobs:
    def __init__(self, default: KeptBlobs, *others: KeptBlobs) -> None:
        self._default = default
        self._all = (default, *others)
        self._by_store: dict[str, KeptBlobs] = {}
        for blobs in self._all:
            for store in blobs.stores:
                if store in self._by_store:
                    raise Refused(
                        f"there are two {store} stores, and a reference says only `{store}`",
                        "give one of each kind",
                    )
                self._by_store[store] = blobs

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(self._by_store)

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        return self._default.put(chunks, media, schema_hint)

    def get(self, ref: ResultRef) -> bytes:
        return self._of(ref).get(ref)

    def path(self, ref: ResultRef) -> str:
        return self._of(ref).path(ref)

    def delete(self, ref: ResultRef) -> None:
        self._of(ref).delete(ref)

    def read(self, ref: ResultRef) -> Iterator[bytes]:
        return self._of(ref).read(ref)

    def seen(self, key: str) -> float | None:
        return self._default.seen(key)

    def size(self, key: str) -> int | None:
        return self._default.size(key)

    def keys(self, older_than: float) -> Iterator[tuple[str, float]]:
        return self._default.keys(older_than)

    def discard(self, key: str, seen: float) -> bool:
        return self._default.discard(key, seen)

    def tidy(self, older_than: float) -> None:
        self._default.tidy(older_than)

    def close(self) -> None:
        for blobs in self._all:
            blobs.close()

    def _of(self, ref: ResultRef) -> KeptBlobs:
        blobs = self._by_store.get(ref.store)
        if blobs is None:
            known = ", ".join(f"`{store}`" for store in self._by_store)
            raise Refused(
                f"`{ref.store}:{ref.key}` lies in a {ref.store} store, and none is open here",
                f"open the store it was written to as well; open are {known}",
            )
        return blobs
