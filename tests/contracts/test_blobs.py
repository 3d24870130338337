from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import nats
import obstore
import psycopg
import pytest
from obstore.store import from_url

from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.adapters.nats.blobs import NatsBlobs
from penstock.adapters.objects import ObjectBlobs
from penstock.adapters.postgres.blobs import PostgresBlobs
from penstock.ports.blobs import KeptBlobs, ResultRef, checksum_of
from tests.contracts.blobs_child import IN_A_FOLDER
from tests.contracts.blobs_contract import BlobsContract, SharedBlobsContract
from tests.contracts.blobs_servers import S3, nats_url, s3  # noqa: F401
from tests.servers import postgres_server, postgres_url  # noqa: F401


class TestMemoryBlobs(BlobsContract):
    @pytest.fixture
    def place(self) -> None:
        self.store = MemoryBlobs()

    def opened(self) -> KeptBlobs:
        return self.store

    def damage(self, ref: ResultRef) -> None:
        self.store._blobs[ref.key] = b"C" + self.store._blobs[ref.key][1:]


class TestFileBlobs(SharedBlobsContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> None:
        self.home = tmp_path / "state"

    def opened(self) -> KeptBlobs:
        return FileBlobs(self.home)

    def opened_elsewhere(self) -> KeptBlobs:
        return FileBlobs(self.home)

    def spec(self) -> str:
        return f"file:{self.home}"

    def damage(self, ref: ResultRef) -> None:
        with Path(self.opened().path(ref)).open("r+b") as file:
            file.write(b"C")


class FarBlobsContract(SharedBlobsContract):
    """A store that keeps copies here: each one that is opened elsewhere has none."""

    caches: Path
    machines = 0

    def opened(self) -> KeptBlobs:
        return self.with_cache(self.caches / "here")

    def opened_elsewhere(self) -> KeptBlobs:
        self.machines += 1
        return self.with_cache(self.caches / f"machine-{self.machines}")

    def with_cache(self, cache: Path) -> KeptBlobs:
        raise NotImplementedError

    def forget_copy(self, ref: ResultRef) -> None:
        """So that damage in the store shows, which nobody here would have noticed."""
        (self.caches / "here" / checksum_of(ref.key)[:2] / checksum_of(ref.key)[2:]).unlink()


class TestPostgresBlobs(FarBlobsContract):
    @pytest.fixture
    def place(self, tmp_path: Path, postgres_url: str) -> None:  # noqa: F811
        self.url, self.caches = postgres_url, tmp_path / "caches"

    def with_cache(self, cache: Path) -> KeptBlobs:
        return PostgresBlobs(self.url, cache)

    def spec(self) -> str:
        return self.url

    def damage(self, ref: ResultRef) -> None:
        self.forget_copy(ref)
        with psycopg.connect(self.url) as connection:
            connection.execute("UPDATE result_piece SET body = set_byte(body, 0, 67)")


class TestNatsBlobs(FarBlobsContract):
    @pytest.fixture
    def place(self, tmp_path: Path, nats_url: str) -> None:  # noqa: F811
        self.url, self.bucket, self.caches = nats_url, f"test_{uuid.uuid4().hex[:12]}", tmp_path / "caches"

    def with_cache(self, cache: Path) -> KeptBlobs:
        return NatsBlobs(self.url, self.bucket, cache)

    def spec(self) -> str:
        return f"{self.url}/{self.bucket}"

    def damage(self, ref: ResultRef) -> None:
        """Its one piece is replaced by another."""
        self.forget_copy(ref)

        async def replace_piece() -> None:
            client = await nats.connect(self.url)
            stream = client.jetstream()
            piece = await stream.get_last_msg(f"OBJ_{self.bucket}", f"$O.{self.bucket}.C.>")
            await stream.delete_msg(f"OBJ_{self.bucket}", piece.seq or 0)
            await stream.publish(piece.subject or "", b"C" + (piece.data or b"")[1:])
            await client.close()

        asyncio.run(replace_piece())


class ObjectBlobsContract(FarBlobsContract):
    """Here an object serves those who put the same again only for a moment, so that a test can see it getting younger."""

    url: str

    def with_cache(self, cache: Path) -> KeptBlobs:
        place, _, query = self.url.partition("?")
        options = {name: {"true": True}.get(value, value) for name, value in parse_qsl(query)}
        return ObjectBlobs(place, cache, reuse_s=0.0, **options)

    def objects(self) -> Any:
        """The objects of this test's store, behind its back."""

    def damage(self, ref: ResultRef) -> None:
        self.forget_copy(ref)
        objects = self.objects()
        (found,) = (meta for page in obstore.list(objects, ref.key) for meta in page)
        obstore.put(objects, found["path"], b"C" + bytes(obstore.get(objects, found["path"]).bytes())[1:])


class TestObjectBlobsInAFolder(ObjectBlobsContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> None:
        self.url, self.caches = f"file://{tmp_path / 'objects'}", tmp_path / "caches"

    def objects(self) -> Any:
        return from_url(self.url)

    def spec(self) -> str:
        return IN_A_FOLDER + self.url


@pytest.mark.xdist_group("s3")
class TestObjectBlobsOverS3(ObjectBlobsContract):
    tick = 1.01
    rounds = 2

    @pytest.fixture
    def place(self, tmp_path: Path, s3: S3) -> None:  # noqa: F811
        self.server, self.prefix = s3, f"results/of test {uuid.uuid4().hex}"
        self.url, self.caches = s3.spec(self.prefix), tmp_path / "caches"

    def objects(self) -> Any:
        return self.server.bucket(self.prefix)

    def spec(self) -> str:
        return self.url
