"""The result store as tools get it if there are secrets: what they stream into it is redacted first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from penstock.kernel.values import Json
from penstock.ports.blobs import BlobStore, ResultRef

# Held back from each piece, so that a secret split between two pieces is seen whole with the next one.
HELD_BACK = 8192


class VeiledBlobs:
    def __init__(self, store: BlobStore, hide: Callable[[bytes], bytes]) -> None:
        self._store = store
        self._hide = hide

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        return self._store.put(self._veiled(chunks), media, schema_hint)

    def _veiled(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        rest = b""
        for chunk in chunks:
            rest = self._hide(rest + chunk)
            if len(rest) > HELD_BACK:
                yield rest[:-HELD_BACK]
                rest = rest[-HELD_BACK:]
        yield rest

    def get(self, ref: ResultRef) -> bytes:
        return self._store.get(ref)

    def path(self, ref: ResultRef) -> str:
        return self._store.path(ref)

    def delete(self, ref: ResultRef) -> None:
        self._store.delete(ref)
