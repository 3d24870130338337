"""The result store in memory, for tests and for runs that leave nothing behind."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path

from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import Json
from penstock.ports.blobs import ResultRef

STORE = "memory"


class MemoryBlobs:
    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._folder: Path | None = None

    def put(self, chunks: Iterable[bytes], media: str = "application/json", schema_hint: Json = None) -> ResultRef:
        data = b"".join(chunks)
        checksum = hashlib.sha256(data).hexdigest()
        key = f"sha256/{checksum[:2]}/{checksum[2:]}"
        self._blobs[key] = data
        return ResultRef(STORE, key, len(data), checksum, media, schema_hint)

    def get(self, ref: ResultRef) -> bytes:
        if ref.store != STORE:
            raise Refused(f"`{ref.store}:{ref.key}` is not a reference into the memory store")
        data = self._blobs.get(ref.key)
        if data is None:
            raise Unavailable(f"the stored result `{ref.key}` is not there", "run the step that made it again")
        if len(data) != ref.size or hashlib.sha256(data).hexdigest() != ref.checksum:
            raise Unavailable(f"the stored result `{ref.key}` is damaged", "run the step that made it again")
        return data

    def path(self, ref: ResultRef) -> str:
        data = self.get(ref)
        path = self._files() / ref.checksum
        if not path.exists():
            path.write_bytes(data)
        return str(path)

    def delete(self, ref: ResultRef) -> None:
        if ref.store != STORE:
            raise Refused(f"`{ref.store}:{ref.key}` is not a reference into the memory store")
        self._blobs.pop(ref.key, None)
        if self._folder:
            (self._folder / ref.checksum).unlink(missing_ok=True)

    def _files(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="penstock-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder
