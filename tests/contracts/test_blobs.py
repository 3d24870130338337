from __future__ import annotations

from pathlib import Path

import pytest

from penstock.adapters.file_blobs import FileBlobs
from penstock.adapters.memory_blobs import MemoryBlobs
from penstock.ports.blobs import BlobStore
from tests.contracts.blobs_contract import BlobsContract


class TestMemoryBlobs(BlobsContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store = MemoryBlobs()

    def open_store(self) -> BlobStore:
        return self.store


class TestFileBlobs(BlobsContract):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> None:
        self.home = tmp_path / "state"

    def open_store(self) -> BlobStore:
        return FileBlobs(self.home)
