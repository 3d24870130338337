"""What result stores far away have in common: bytes go through a local file on their way in, and are read from a local copy.

Law: what `put` sends is known by size and SHA-256 before the first byte leaves, so it can be sent again after a failure,
and bytes that the store has already are only made young. Memory is flat in both directions.
"""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from penstock.adapters.files.blob_folder import check, pieces, verified
from penstock.adapters.files.cache import BlobCache
from penstock.kernel.values import Json
from penstock.ports.blobs import ResultRef, own_key

# Threads that want the same bytes wait for one of them to bring them; a few locks serve all keys.
LOCKS = 64


class CachedBlobs(ABC):
    store: ClassVar[str]

    def __init__(self, cache: BlobCache | Path) -> None:
        self._cache = cache if isinstance(cache, BlobCache) else BlobCache(cache)
        self._fetching = [threading.Lock() for _ in range(LOCKS)]

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        with self._cache.written(chunks) as written:
            ref = ResultRef(self.store, written.key, written.size, written.checksum, media, schema_hint)
            self._send(ref.key, written.path, written.size)
            self._cache.keep(written)
        return ref

    def get(self, ref: ResultRef) -> bytes:
        data = b"".join(self.read(ref))
        check(f"{self.store}:{ref.key}", ref.size, ref.checksum, len(data), hashlib.sha256(data).hexdigest())
        return data

    def path(self, ref: ResultRef) -> str:
        key = own_key(ref, self.store)
        with self._fetching[hash(key) % LOCKS]:
            copy = self._cache.find(key)
            if copy is None:
                with self._cache.written(self._verified(key)) as written:
                    copy = self._cache.keep(written)
        check(f"{self.store}:{key}", ref.size, ref.checksum, copy.size, ref.checksum)
        return str(copy.path)

    def delete(self, ref: ResultRef) -> None:
        key = own_key(ref, self.store)
        self._cache.drop(key)
        self._remove(key)

    def read(self, ref: ResultRef) -> Iterator[bytes]:
        key = own_key(ref, self.store)
        copy = self._cache.find(key)
        if copy is not None:
            with suppress(FileNotFoundError):  # Another process may have removed it a moment ago.
                yield from pieces(copy.path)
                return
        yield from self._verified(key)

    def discard(self, key: str, seen: float) -> bool:
        if not self._remove_unless_put_again(key, seen):
            return False
        self._cache.drop(key)
        return True

    def _verified(self, key: str) -> Iterator[bytes]:
        return verified(self._bring(key), key, f"{self.store}:{key}")

    @abstractmethod
    def _send(self, key: str, file: Path, size: int) -> None:
        """Store the bytes of a local file under `key`, durably and all at once; make them young if they are there and whole."""

    @abstractmethod
    def _bring(self, key: str) -> Iterator[bytes]:
        """The bytes in pieces. Missing when there are none; whether they are whole is looked at by the caller."""

    @abstractmethod
    def _remove(self, key: str) -> None: ...

    @abstractmethod
    def _remove_unless_put_again(self, key: str, seen: float) -> bool: ...

    @abstractmethod
    def seen(self, key: str) -> float | None: ...

    @abstractmethod
    def size(self, key: str) -> int | None: ...

    @abstractmethod
    def keys(self, older_than: float) -> Iterator[tuple[str, float]]: ...

    @abstractmethod
    def tidy(self, older_than: float) -> None: ...

    @abstractmethod
    def close(self) -> None: ...
