"""The result store in object storage: S3 and compatible services, Google Cloud Storage, Azure, a folder.

Law: an object is written once and never again. Putting equal bytes later writes another object under the same key, with a name
of its own (`…/sha256/ab/cdef…/NAME`), so removing the old one removes exactly what was examined: object stores cannot
delete on a condition. For a few minutes an object serves those who put the same again; it counts as put at the end of that time.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from penstock.adapters.files.blobs import BlobCache, CachedBlobs, guarding, missing
from penstock.adapters.files.folders import make_folder, sync_folder
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.blobs import KEY

STORE = "object"
ROOT = "sha256"
# Far less than the grace of any sweep, and enough for a loop that makes the same result in every iteration.
REUSE_SECONDS = 600.0
PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 4
READ_BYTES = 1024 * 1024
# A result may be large and the connection slow: the time without data is limited, and the total time generously.
CLIENT = {"connect_timeout": "10s", "read_timeout": "60s", "timeout": "15m"}
RETRY = {"max_retries": 6, "retry_timeout": timedelta(minutes=2)}
CLIENT_OPTIONS = ("allow_http", "allow_invalid_certificates", "proxy_url", "root_certificate", "timeout")
Found: TypeAlias = tuple[str, float, int]


class ObjectBlobs(CachedBlobs):
    """`options` are those of obstore: `endpoint`, `region`, `allow_http`, `access_key_id` …; what is not given is looked for in
    the environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`) and in what the machine provides."""

    store = STORE

    def __init__(
        self, url: str, cache: BlobCache | Path, *, reuse_s: float = REUSE_SECONDS, **options: str | bool
    ) -> None:
        super().__init__(cache)
        self._where = url.partition("?")[0]
        self._reuse_s = float(reuse_s)
        self._objects: Any = _opened(self._where, options)

    def seen(self, key: str) -> float | None:
        found = self._found(key)
        return found[0][1] if found else None

    def size(self, key: str) -> int | None:
        found = self._found(key)
        return found[0][2] if found else None

    def keys(self, older_than: float) -> Iterator[tuple[str, float]]:
        """A key comes once for each of its objects; only with the time of the newest will it be discarded."""
        for path, seen, _ in self._listed(ROOT):
            key = path.rpartition("/")[0]
            if seen < older_than and KEY.fullmatch(key):
                yield key, seen

    def tidy(self, older_than: float) -> None:
        """Object stores list in the order of names, so the objects of one key come one after the other."""
        for key, objects in groupby(self._listed(ROOT), key=lambda found: found[0].rpartition("/")[0]):
            if KEY.fullmatch(key):
                _, *others = sorted(objects, key=_newest_first)
                self._drop([path for path, seen, _ in others if seen < older_than])

    def close(self) -> None:
        """Connections belong to the library, which lets go of them with the store."""

    def _send(self, key: str, file: Path, size: int) -> None:
        now = time.time()
        if any(seen >= now and found == size for _, seen, found in self._found(key)):
            return
        path = f"{key}/{uuid.uuid4().hex}"
        with self._guarding():
            obstore.put(self._objects, path, file, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
        if isinstance(self._objects, LocalStore):
            _make_durable(Path(str(self._objects.prefix)) / path)

    def _bring(self, key: str) -> Iterator[bytes]:
        for path, _, _ in self._found(key):
            with self._guarding(), suppress(FileNotFoundError):
                stream = obstore.get(self._objects, path).stream(min_chunk_size=READ_BYTES)
                yield from map(bytes, stream)
                return
        raise missing(key, f"`{self._where}` has no such object")

    def _remove(self, key: str) -> None:
        self._drop([path for path, _, _ in self._found(key)])

    def _remove_unless_put_again(self, key: str, seen: float) -> bool:
        found = self._found(key)
        if not found or found[0][1] > seen:
            return False
        self._drop([path for path, _, _ in found])
        return True

    def _found(self, key: str) -> list[Found]:
        """The objects of one key, the newest first."""
        return sorted(self._listed(key), key=_newest_first)

    def _listed(self, prefix: str) -> Iterator[Found]:
        with self._guarding():
            for page in obstore.list(self._objects, prefix):
                for meta in page:
                    yield meta["path"], meta["last_modified"].timestamp() + self._reuse_s, meta["size"]

    def _drop(self, paths: list[str]) -> None:
        for path in paths:
            with self._guarding(), suppress(FileNotFoundError):
                obstore.delete(self._objects, path)

    @contextmanager
    def _guarding(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> Unavailable:
        return Unavailable(
            f"the result store `{self._where}` cannot be used: {_message(error)}",
            "see that the bucket is there, and that credentials, region and endpoint are right",
        )


def _opened(url: str, options: dict[str, str | bool]) -> Any:
    if url.startswith("file:"):
        path = url.removeprefix("file:").removeprefix("//")
        if options or not path.startswith("/"):
            raise Refused(f"`{url}` does not name a folder", "write it as `file:///FOLDER`, without options")
        make_folder(Path(path))
        return LocalStore(path, automatic_cleanup=True)
    client = CLIENT | {name: value for name, value in options.items() if name in CLIENT_OPTIONS}
    config = {name: value for name, value in options.items() if name not in CLIENT_OPTIONS}
    if url.startswith("memory:"):
        return from_url(url)
    try:
        return from_url(url, config=config, client_options=client, retry_config=RETRY)  # type: ignore[call-overload]
    except (BaseError, ValueError) as error:
        raise Refused(
            f"`{url}` is not a result store: {_message(error)}", "for example `s3://BUCKET/PREFIX`"
        ) from error


def _newest_first(found: Found) -> tuple[float, str]:
    return -found[1], found[0]


def _message(error: Exception) -> str:
    """Without the library's own view of itself, which comes after an empty line."""
    return " ".join(str(error).partition("\n\nDebug source")[0].split())


def _make_durable(path: Path) -> None:
    with guarding(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        for folder in (path.parent, *path.parents[1:4]):
            sync_folder(folder)
