"""The result store in memory, for tests and for runs that leave nothing behind."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from penstock.adapters.files.blobs import check, missing, verified
from penstock.kernel.values import Json
from penstock.ports.blobs import ResultRef, checksum_of, key_of, own_key

STORE = "memory"


class MemoryBlobs:
    stores = (STORE,)

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._blobs: dict[str, bytes] = {}
        self._seen: dict[str, float] = {}
        self._folder: Path | None = None
        self._lock = threading.Lock()

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        data = b"".join(chunks)
        checksum = hashlib.sha256(data).hexdigest()
        key = key_of(checksum)
        with self._lock:
            self._blobs[key] = data
            self._seen[key] = self._clock()
        return ResultRef(STORE, key, len(data), checksum, media, schema_hint)

    def get(self, ref: ResultRef) -> bytes:
        data = self._find(ref)
        check(ref.key, ref.size, ref.checksum, len(data), hashlib.sha256(data).hexdigest())
        return data

    def path(self, ref: ResultRef) -> str:
        data = self.get(ref)
        with self._lock:
            path = self._files() / ref.checksum
            if not path.exists():
                path.write_bytes(data)
        return str(path)

    def delete(self, ref: ResultRef) -> None:
        self._drop(own_key(ref, STORE), float("inf"))

    def read(self, ref: ResultRef) -> Iterator[bytes]:
        yield from verified([self._find(ref)], ref.key, ref.key)

    def seen(self, key: str) -> float | None:
        return self._seen.get(key)

    def size(self, key: str) -> int | None:
        data = self._blobs.get(key)
        return None if data is None else len(data)

    def keys(self, older_than: float) -> Iterator[tuple[str, float]]:
        with self._lock:
            found = [(key, seen) for key, seen in self._seen.items() if seen < older_than]
        yield from found

    def discard(self, key: str, seen: float) -> bool:
        return self._drop(key, seen)

    def tidy(self, older_than: float) -> None:
        """Nothing is ever half done here."""

    def close(self) -> None:
        """What was stored stays for as long as the store is referenced."""

    def _find(self, ref: ResultRef) -> bytes:
        data = self._blobs.get(own_key(ref, STORE))
        if data is None:
            raise missing(ref.key, "what is stored in memory goes with its process")
        return data

    def _drop(self, key: str, seen: float) -> bool:
        with self._lock:
            if self._seen.get(key, float("inf")) > seen:
                return False
            self._blobs.pop(key, None)
            was_there = self._seen.pop(key, None) is not None
            if self._folder:
                (self._folder / checksum_of(key)).unlink(missing_ok=True)
            return was_there

    def _files(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="penstock-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder
