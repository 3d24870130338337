"""What result stores far away have in common: bytes go through a local file on their way in, and are read from a local copy.

Law: what `put` sends is known by size and SHA-256 before the first byte leaves, so it can be sent again after a failure,
and bytes that the store has already are only made young. Memory is flat in both directions.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

from penstock.adapters.files.blobs import BlobFolder, Written, check, guarding, is_intact, pieces, verified
from penstock.kernel.values import Json
from penstock.ports.blobs import ResultRef, checksum_of, own_key

# ---- Local copies of results that lie in a store far away: a folder of bounded size that any number of processes may share.
# Law: nothing depends on a copy being there, and no copy is believed: its SHA-256 is looked at when a process first uses it.
# What was used longest ago goes first. A copy that was handed out a short time ago stays even when that is too much, because
# whoever got its path may open it later, and more than once.

LIMIT_BYTES = 10 * 1024**3
HOLD_SECONDS = 6 * 3600.0
# The folder is looked through after so many parts of the limit were added, and emptied to leave room for as many.
PARTS = 16
REMEMBERED = 10_000


class Copy(NamedTuple):
    path: Path
    size: int


class BlobCache:
    def __init__(
        self,
        folder: Path,
        limit: int = LIMIT_BYTES,
        hold_s: float = HOLD_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = BlobFolder(folder)
        self._limit = limit
        self._hold_ns = int(hold_s * 1e9)
        self._clock = clock
        self._mutex = threading.Lock()
        self._added = limit
        self._checked: OrderedDict[str, tuple[int, int, int]] = OrderedDict()

    def written(self, chunks: Iterable[bytes]) -> AbstractContextManager[Written]:
        """All of `chunks` in a local file, which `keep` makes a copy of."""
        return self._folder.written(chunks)

    def keep(self, written: Written) -> Copy:
        path = self._folder.settle(written)
        self._folder.change(path, self._use)
        self._remember(written.key, os.fstat(written.descriptor))
        self._make_room(written)
        return Copy(path, written.size)

    def find(self, key: str) -> Copy | None:
        """The copy, fit for use. One that has been damaged is thrown away."""
        path = self._folder.file(key)
        with guarding(path):
            try:
                stat = path.stat()
            except FileNotFoundError:
                return None
        if self._checked.get(key) != _identity(stat):
            with guarding(path):
                if not is_intact(path, stat.st_size, checksum_of(key)):
                    path.unlink(missing_ok=True)
                    return None
            self._remember(key, stat)
        return Copy(path, stat.st_size) if self._folder.change(path, self._use) else None

    def drop(self, key: str) -> None:
        path = self._folder.file(key)
        with guarding(path):
            path.unlink(missing_ok=True)

    def _use(self, path: Path, stat: os.stat_result) -> bool:
        """The time of access says when a copy was last used; its time of change stays what it was when it was checked."""
        os.utime(path, ns=(int(self._clock() * 1e9), stat.st_mtime_ns))
        return True

    def _remember(self, key: str, stat: os.stat_result) -> None:
        with self._mutex:
            self._checked[key] = _identity(stat)
            if len(self._checked) > REMEMBERED:
                self._checked.popitem(last=False)

    def _make_room(self, written: Written) -> None:
        with self._mutex:
            self._added += written.size
            if self._added * PARTS < self._limit:
                return
            self._added = 0
        self._evict(self._limit - self._limit // PARTS, written.key)

    def _evict(self, limit: int, spared: str) -> None:
        copies = sorted((stat.st_atime_ns, stat.st_size, key) for key, stat in self._folder.files())
        total = sum(size for _, size, _ in copies)
        youngest = int(self._clock() * 1e9) - self._hold_ns
        for used, size, key in copies:
            if total <= limit or used > youngest:
                return
            if key != spared:
                self._folder.change(self._folder.file(key), partial(_unlink_unless_used, used))
                total -= size


def _unlink_unless_used(used: int, path: Path, stat: os.stat_result) -> bool:
    if stat.st_atime_ns > used:
        return False
    path.unlink()
    return True


def _identity(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


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
