"""The result store on local files: `<home>/blobs/ab/cdef…`, named after the SHA-256 of what is in them.

Law: a file under its final name is whole and durable: it is written and synchronised under another name first.
Equal contents are stored once, so delete only what nothing refers to any more.
A file's time of change is when its content was last put.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

from penstock.adapters.files.folders import make_folder, make_home, sync_folder, unavailable_file
from penstock.kernel.errors import Unavailable
from penstock.kernel.values import Json
from penstock.ports.blobs import Missing, ResultRef, checksum_of, key_of, own_key
from penstock.ports.state_folder import PRIVATE_FOLDER, opener

# ---- A folder of files named after the SHA-256 of what is in them: `ab/cdef…`, written under another name first.
# Law: a file under its final name is whole. Code that refreshes the age of a file and code that removes an old one hold
# the folder's lock for that moment, so the one who comes second sees what the first has done.

READ_BYTES = 1024 * 1024
# Unfinished files of processes that died are swept once they are this old.
STALE_SECONDS = 24 * 3600.0
# The lock is held for microseconds; longer only by a process that was frozen while it had it.
LOCK_SECONDS = 30.0
PAUSE_SECONDS = 0.001
HINT = "put it back from a backup, or run the step that made it again"


@dataclass(frozen=True, slots=True)
class Written:
    """A whole file under its first name, open for as long as the context that wrote it."""

    path: Path
    descriptor: int
    size: int
    checksum: str

    @property
    def key(self) -> str:
        return key_of(self.checksum)


class BlobFolder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unfinished = folder / "unfinished"
        self._lock = folder / "lock"
        self._ready = False

    def file(self, key: str) -> Path:
        checksum = checksum_of(key)
        return self.folder / checksum[:2] / checksum[2:]

    @contextmanager
    def written(self, chunks: Iterable[bytes]) -> Iterator[Written]:
        """Writes `chunks` to a new file, which is deleted with the context unless it was given its final name."""
        self._get_ready()
        digest = hashlib.sha256()
        size = 0
        with guarding(self._unfinished):
            descriptor, name = tempfile.mkstemp(dir=self._unfinished)
        try:
            # An error of the source of the chunks passes through unchanged.
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                with guarding(self.folder):
                    _write_all(descriptor, chunk)
            yield Written(Path(name), descriptor, size, digest.hexdigest())
        finally:
            os.close(descriptor)
            Path(name).unlink(missing_ok=True)

    def settle(self, written: Written) -> Path:
        """Give a written file its final name. It is as durable as the caller has made it."""
        target = self.file(written.key)
        make_folder(target.parent, PRIVATE_FOLDER)
        with guarding(target):
            os.utime(written.descriptor)
            with self._locked():
                written.path.replace(target)
        return target

    def change(self, path: Path, act: Callable[[Path, os.stat_result], bool]) -> bool:
        """Runs `act`, which depends on the age of the file, under the lock. Also False when there is no such file."""
        with guarding(path), suppress(FileNotFoundError), self._locked():
            return act(path, path.stat())
        return False

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Every whole file by its key; only those of one sub-folder at a time are held in memory."""
        for number in range(256):
            prefix = f"{number:02x}"
            with guarding(self.folder):
                found = list(_stats(self.folder / prefix))
            for name, stat in found:
                yield key_of(prefix + name), stat

    def sweep_unfinished(self, older_than: float) -> None:
        with guarding(self._unfinished), suppress(FileNotFoundError):
            for file in self._unfinished.iterdir():
                with suppress(FileNotFoundError):
                    if file.stat().st_mtime < older_than:
                        file.unlink()

    def _get_ready(self) -> None:
        if not self._ready:
            if not self.folder.parent.exists():
                make_home(self.folder.parent)
            make_folder(self.folder, PRIVATE_FOLDER)
            make_folder(self._unfinished, PRIVATE_FOLDER)
            self.sweep_unfinished(time.time() - STALE_SECONDS)
            self._ready = True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_folder(self.folder, PRIVATE_FOLDER)
        descriptor = opener(str(self._lock), os.O_RDWR | os.O_CREAT)
        try:
            deadline = time.monotonic() + LOCK_SECONDS
            while not _try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"`{self._lock}` is held by a process that does not go on",
                        "see whether a process that uses this folder has been stopped, and end it",
                    )
                time.sleep(PAUSE_SECONDS)
            yield
        finally:
            os.close(descriptor)


@contextmanager
def guarding(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unavailable_file(error, path) from error


def pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(READ_BYTES):
            yield chunk


def is_intact(path: Path, size: int, checksum: str) -> bool:
    """Whether the file exists and has exactly these bytes."""
    try:
        if path.stat().st_size != size:
            return False
        digest = hashlib.sha256()
        for chunk in pieces(path):
            digest.update(chunk)
    except FileNotFoundError:
        return False
    return digest.hexdigest() == checksum


def verified(chunks: Iterable[bytes], key: str, where: object) -> Iterator[bytes]:
    """The same chunks, and Unavailable after the last when they are not what the key says."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != checksum_of(key):
        raise damaged(where, f"its SHA-256 is not `{checksum_of(key)}`")


def check(where: object, size: int, checksum: str, data_size: int, data_checksum: str) -> None:
    """What a reference says against what is there."""
    if data_size != size:
        raise damaged(where, f"it has {data_size} bytes and should have {size}")
    if data_checksum != checksum:
        raise damaged(where, f"its SHA-256 is not `{checksum}`")


def damaged(where: object, how: str) -> Unavailable:
    return Unavailable(f"the stored result `{where}` is damaged: {how}", HINT)


def missing(key: str, where: str) -> Missing:
    return Missing(f"the stored result `{key}` is not there: {where}", HINT)


def _stats(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if len(entry.name) == 62 and entry.is_file(follow_symlinks=False):
                    yield entry.name, entry.stat(follow_symlinks=False)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_all(descriptor: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(descriptor, view) :]


STORE = "file"


class FileBlobs:
    stores = (STORE,)

    def __init__(self, home: Path | str) -> None:
        self._folder = BlobFolder(Path(home) / "blobs")

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        with self._folder.written(chunks) as written:
            self._make_durable(written)
            return ResultRef(STORE, written.key, written.size, written.checksum, media, schema_hint)

    def get(self, ref: ResultRef) -> bytes:
        path = self._file(ref)
        with guarding(path):
            try:
                data = path.read_bytes()
            except FileNotFoundError as error:
                raise _missing(ref, path) from error
        check(path, ref.size, ref.checksum, len(data), hashlib.sha256(data).hexdigest())
        return data

    def path(self, ref: ResultRef) -> str:
        path = self._file(ref)
        with guarding(path):
            try:
                size = path.stat().st_size
            except FileNotFoundError as error:
                raise _missing(ref, path) from error
        check(path, ref.size, ref.checksum, size, ref.checksum)
        return str(path)

    def delete(self, ref: ResultRef) -> None:
        path = self._file(ref)
        with guarding(path):
            path.unlink(missing_ok=True)

    def read(self, ref: ResultRef) -> Iterator[bytes]:
        path = self._file(ref)
        with guarding(path):
            try:
                yield from verified(pieces(path), ref.key, path)
            except FileNotFoundError as error:
                raise _missing(ref, path) from error

    def seen(self, key: str) -> float | None:
        found = self._stat(key)
        return None if found is None else found.st_mtime

    def size(self, key: str) -> int | None:
        found = self._stat(key)
        return None if found is None else found.st_size

    def _stat(self, key: str) -> os.stat_result | None:
        path = self._folder.file(key)
        with guarding(path):
            try:
                return path.stat()
            except FileNotFoundError:
                return None

    def keys(self, older_than: float) -> Iterator[tuple[str, float]]:
        for key, stat in self._folder.files():
            if stat.st_mtime < older_than:
                yield key, stat.st_mtime

    def discard(self, key: str, seen: float) -> bool:
        def unlink_if_old(path: Path, stat: os.stat_result) -> bool:
            if stat.st_mtime > seen:
                return False
            path.unlink()
            return True

        return self._folder.change(self._folder.file(key), unlink_if_old)

    def tidy(self, older_than: float) -> None:
        self._folder.sweep_unfinished(older_than)

    def close(self) -> None:
        """Nothing is held between calls."""

    def _file(self, ref: ResultRef) -> Path:
        return self._folder.file(own_key(ref, STORE))

    def _make_durable(self, written: Written) -> None:
        """Under its final name. An existing equal file is kept and its age reset, unless it is damaged."""
        target = self._folder.file(written.key)
        with guarding(target):
            make_folder(target.parent, PRIVATE_FOLDER)
            kept = is_intact(target, written.size, written.checksum) and self._folder.change(target, _make_young)
            if not kept:
                os.fsync(written.descriptor)
                self._folder.settle(written)
            sync_folder(target.parent)


def _make_young(path: Path, _: os.stat_result) -> bool:
    os.utime(path)
    return True


def _missing(ref: ResultRef, path: Path) -> Missing:
    return missing(ref.key, f"`{path}` is missing")


# ---- What result stores far away have in common: bytes go through a local file on their way in, and are read from a local
# copy.
# Law: what `put` sends is known by size and SHA-256 before the first byte leaves, so it can be sent again after a failure,
# and bytes that the store has already are only made young. Memory is flat in both directions.

# ---- Local copies of results that lie in a store far away: a folder of bounded size that any number of processes may share.
# Law: nothing depends on a copy being there, and no copy is believed: its SHA-256 is looked at when a process first uses it.
# The least recently used copies are evicted first. A copy that was handed out recently stays even above the limit, because the
# caller may open its path later, and more than once.

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
        """The copy, verified. A damaged one is deleted."""
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


# Threads that need the same bytes wait for the one that fetches them; a few locks serve all keys.
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
