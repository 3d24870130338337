from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import nats
import pytest
from nats.js import JetStreamContext

from penstock.adapters.nats import blobs as nats_blobs
from penstock.adapters.nats.blobs import NatsBlobs
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.blobs import Missing
from tests.contracts.blobs_servers import nats_server, nats_url  # noqa: F401

T = TypeVar("T")


@pytest.fixture
def bucket() -> str:
    return f"test_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def store(nats_url: str, bucket: str, tmp_path: Path) -> Iterator[NatsBlobs]:  # noqa: F811
    store = NatsBlobs(nats_url, bucket, tmp_path / "cache", patience_s=20.0)
    yield store
    store.close()


def asked(url: str, act: Callable[[JetStreamContext], Awaitable[T]]) -> T:
    async def ask() -> T:
        client = await nats.connect(url)
        try:
            return await act(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(ask())


def messages(url: str, bucket: str) -> int:
    return asked(url, lambda js: js.stream_info(f"OBJ_{bucket}")).state.messages


def test_other_clients_of_the_object_store_can_read_the_results(
    store: NatsBlobs,
    nats_url: str,  # noqa: F811
    bucket: str,
) -> None:
    content = bytes(range(256)) * 3_000
    ref = store.put([content])

    async def read(js: JetStreamContext) -> tuple[bytes | None, list[str]]:
        objects = await js.object_store(bucket)
        return (await objects.get(ref.key)).data, [info.name for info in await objects.list()]

    assert asked(nats_url, read) == (content, [ref.key])


def test_results_are_kept_on_disk(store: NatsBlobs, nats_url: str, bucket: str) -> None:  # noqa: F811
    store.put([b"content"])
    assert asked(nats_url, lambda js: js.stream_info(f"OBJ_{bucket}")).config.storage == "file"


def test_equal_results_are_stored_once(store: NatsBlobs, nats_url: str, bucket: str) -> None:  # noqa: F811
    for _ in range(4):
        store.put([b"content"])
    assert messages(nats_url, bucket) == 2


def test_a_deleted_result_leaves_no_message_behind(store: NatsBlobs, nats_url: str, bucket: str) -> None:  # noqa: F811
    first, second = store.put([b"first"]), store.put([b"second" * 100_000])
    store.delete(first)
    store.discard(second.key, 4e9)
    assert messages(nats_url, bucket) == 0


def test_a_result_that_lost_a_piece_is_damaged_and_healed_by_putting_it_again(
    store: NatsBlobs,
    nats_url: str,  # noqa: F811
    bucket: str,
    tmp_path: Path,
) -> None:
    content = b"x" * (nats_blobs.PIECE_BYTES + 10)
    ref = store.put([content])
    asked(nats_url, lambda js: js.delete_msg(f"OBJ_{bucket}", 1))
    elsewhere = NatsBlobs(nats_url, bucket, tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="is damaged"):
        elsewhere.path(ref)
    store.put([content])
    assert elsewhere.get(ref) == content
    assert messages(nats_url, bucket) == 3
    elsewhere.close()


def test_tidying_removes_pieces_whose_writer_died(store: NatsBlobs, nats_url: str, bucket: str) -> None:  # noqa: F811
    ref = store.put([b"content"])

    async def leave_pieces(js: JetStreamContext) -> None:
        for number in range(3):
            await js.publish(f"$O.{bucket}.C.dead", bytes([number]), headers={nats_blobs.KEY_HEADER: ref.key})
        await js.publish(f"$O.{bucket}.C.foreign", b"of another program")

    asked(nats_url, leave_pieces)
    store.tidy(1_000.0)
    assert messages(nats_url, bucket) == 6
    store.tidy(4e9)
    assert messages(nats_url, bucket) == 3
    assert store.get(ref) == b"content"


def test_objects_of_other_programs_are_no_keys_of_the_store(
    store: NatsBlobs,
    nats_url: str,  # noqa: F811
    bucket: str,
) -> None:
    ref = store.put([b"content"])

    async def put(js: JetStreamContext) -> None:
        await (await js.object_store(bucket)).put("report.pdf", b"of another program")

    asked(nats_url, put)
    assert [key for key, _ in store.keys(4e9)] == [ref.key]


def test_a_bucket_that_was_removed_is_made_again(store: NatsBlobs, nats_url: str, bucket: str) -> None:  # noqa: F811
    """A broker may lose its streams: what was in them is missing, and what is put from then on is there."""
    ref = store.put([b"content"])
    asked(nats_url, lambda js: js.delete_stream(f"OBJ_{bucket}"))
    store._cache.drop(ref.key)
    with pytest.raises(Missing):
        store.get(ref)
    store.put([b"content"])
    assert store.seen(ref.key) is not None


def test_pieces_fit_into_the_messages_that_the_server_takes(tmp_path: Path) -> None:
    content = bytes(range(256)) * 300
    with nats_server(tmp_path / "server", config="max_payload: 10240") as (url, _):
        store = NatsBlobs(url, "results", tmp_path / "cache")
        ref = store.put([content])
        elsewhere = NatsBlobs(url, "results", tmp_path / "elsewhere")
        assert elsewhere.get(ref) == content
        for one in (store, elsewhere):
            one.close()


def test_a_server_that_is_killed_and_started_again_is_waited_for(tmp_path: Path) -> None:
    with nats_server(tmp_path / "server") as (url, process):
        store = NatsBlobs(url, "results", tmp_path / "cache", patience_s=30.0)
        first = store.put([b"first"])
        process.kill()
        process.wait()
        seconds: list[object] = []
        putting = threading.Thread(target=lambda: seconds.append(store.put([b"second"])))
        putting.start()
    with nats_server(tmp_path / "server", int(url.rpartition(":")[2])):
        putting.join()
        assert len(seconds) == 1
        assert store.seen(first.key) is not None
        store.close()


def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    store = NatsBlobs("nats://me:hidden@127.0.0.1:1", "results", tmp_path / "cache", patience_s=3_600.0)
    with pytest.raises(Unavailable, match=r"NATS at `127.0.0.1:1` cannot be used") as error:
        store.put([b"content"])
    assert "hidden" not in error.value.message
    store.close()


def test_closing_gives_up_what_others_wait_for(tmp_path: Path) -> None:
    with nats_server(tmp_path / "server") as (url, process):
        store = NatsBlobs(url, "results", tmp_path / "cache", patience_s=3_600.0)
        store.put([b"first"])
        process.kill()
        process.wait()
        refusals: list[Refused] = []

        def put() -> None:
            try:
                store.put([b"second"])
            except Refused as error:
                refusals.append(error)

        putting = threading.Thread(target=put)
        putting.start()
        store.close()
        putting.join()
    assert len(refusals) == 1
    with pytest.raises(Refused, match="has been closed"):
        store.put([b"third"])


@pytest.mark.parametrize("bucket", ["", "with space", "a.b", "*", "ü"])
def test_a_name_that_no_bucket_can_have_is_refused(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be the name of a bucket"):
        NatsBlobs("nats://127.0.0.1:1", bucket, tmp_path)
