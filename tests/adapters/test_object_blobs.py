from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import obstore
import pytest

from penstock.adapters import objects as object_blobs
from penstock.adapters.blob_stores import open_blobs
from penstock.adapters.objects import ObjectBlobs
from penstock.kernel.errors import Refused, Unavailable
from tests.contracts.blobs_servers import BUCKET, S3, SECRET_KEY, s3  # noqa: F401


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_equal_contents_are_one_object_while_it_is_young(tmp_path: Path) -> None:
    far = tmp_path / "far"
    store = ObjectBlobs(f"file://{far}", tmp_path / "cache")
    ref = store.put([b"content"])
    other = ObjectBlobs(f"file://{far}", tmp_path / "other cache")
    assert other.put([b"content"]) == ref
    (object_,) = files(far)
    assert object_.parent == far / "sha256" / ref.checksum[:2] / ref.checksum[2:]
    assert object_.read_bytes() == b"content"


def test_an_object_counts_as_put_until_nobody_can_have_put_the_same_again_with_it(tmp_path: Path) -> None:
    store = ObjectBlobs(f"file://{tmp_path / 'far'}", tmp_path / "cache", reuse_s=600.0)
    ref = store.put([b"content"])
    (object_,) = files(tmp_path / "far")
    assert store.seen(ref.key) == pytest.approx(object_.stat().st_mtime + 600.0)


def test_an_old_object_is_left_alone_and_a_new_one_written(tmp_path: Path) -> None:
    store = ObjectBlobs(f"file://{tmp_path / 'far'}", tmp_path / "cache")
    ref = store.put([b"content"])
    (old,) = files(tmp_path / "far")
    os.utime(old, (1_000.0, 1_000.0))
    listed = dict(store.keys(2_000.0))
    store.put([b"content"])
    assert old in files(tmp_path / "far")
    assert len(files(tmp_path / "far")) == 2
    assert not store.discard(ref.key, listed[ref.key])
    assert ObjectBlobs(f"file://{tmp_path / 'far'}", tmp_path / "elsewhere").get(ref) == b"content"


def test_tidying_removes_old_second_objects_and_keeps_the_newest(tmp_path: Path) -> None:
    store = ObjectBlobs(f"file://{tmp_path / 'far'}", tmp_path / "cache", reuse_s=0.0)
    ref = store.put([b"content"])
    for time in (1_000.0, 2_000.0, 3_000.0):
        newest = max(files(tmp_path / "far"), key=lambda path: path.stat().st_mtime)
        os.utime(newest, (time, time))
        store.put([b"content"])
    store.tidy(2_500.0)
    times = sorted(path.stat().st_mtime for path in files(tmp_path / "far"))
    assert times[0] == 3_000.0
    assert len(times) == 2
    store.tidy(4e9)
    assert len(files(tmp_path / "far")) == 1
    assert ObjectBlobs(f"file://{tmp_path / 'far'}", tmp_path / "elsewhere").get(ref) == b"content"


def test_other_objects_beside_the_results_are_left_alone(tmp_path: Path) -> None:
    store = ObjectBlobs(f"file://{tmp_path / 'far'}", tmp_path / "cache", reuse_s=0.0)
    ref = store.put([b"content"])
    for name in ("a", "b"):
        (tmp_path / "far" / "sha256" / name).write_text("of another program")
    store.tidy(4e9)
    assert [key for key, _ in store.keys(4e9)] == [ref.key]
    assert len(files(tmp_path / "far")) == 3


def test_a_store_in_memory_is_there_for_tests(tmp_path: Path) -> None:
    store = ObjectBlobs("memory:///", tmp_path / "cache")
    ref = store.put([b"content"])
    assert (ref.store, store.get(ref)) == ("object", b"content")


@pytest.mark.xdist_group("s3")
class TestOverS3:
    @pytest.fixture
    def spec(self, s3: S3, tmp_path: Path) -> str:  # noqa: F811
        return s3.spec(f"of/{tmp_path.name}")

    def test_large_results_go_in_parts(self, s3: S3, spec: str, tmp_path: Path) -> None:  # noqa: F811
        content = os.urandom(object_blobs.PART_BYTES * 2 + 1_000)
        ref = open_blobs(spec, tmp_path / "here").put([content])
        (found,) = (meta for page in obstore.list(s3.bucket(f"of/{tmp_path.name}")) for meta in page)
        assert (found["size"], str(found["e_tag"]).strip('"')[-2:]) == (len(content), "-3")
        assert open_blobs(spec, tmp_path / "elsewhere").get(ref) == content

    def test_credentials_may_come_from_the_environment(
        self,
        s3: S3,  # noqa: F811
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        options = s3.options()
        for name in ("access_key_id", "secret_access_key", "region", "endpoint"):
            monkeypatch.setenv(f"AWS_{name}".upper(), options[name])
        store = open_blobs(f"s3://{BUCKET}/of/{tmp_path.name}?allow_http=true", tmp_path)
        assert store.get(store.put([b"content"])) == b"content"

    def test_a_wrong_key_is_told_without_the_key(self, s3: S3, tmp_path: Path) -> None:  # noqa: F811
        store = open_blobs(s3.spec("x", secret="not the one"), tmp_path)
        with pytest.raises(Unavailable, match=rf"`s3://{BUCKET}/x` cannot be used: .*403") as error:
            store.put([b"content"])
        assert "credentials" in str(error.value.hint)
        assert "not the one" not in error.value.message
        assert SECRET_KEY not in error.value.message
        assert "Debug" not in error.value.message

    def test_a_bucket_that_is_not_there_is_told(self, s3: S3, tmp_path: Path) -> None:  # noqa: F811
        store = open_blobs(s3.spec("x", bucket="no-such-bucket"), tmp_path)
        for act in (lambda: store.put([b"content"]), lambda: list(store.keys(4e9))):
            with pytest.raises(Unavailable, match=r"`s3://no-such-bucket/x` cannot be used: .*NoSuchBucket"):
                act()


def test_a_server_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(object_blobs.RETRY, "max_retries", 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        keys = {"access_key_id": "a", "secret_access_key": "b", "region": "c"}
        store = ObjectBlobs("s3://bucket/x", tmp_path, endpoint=endpoint, allow_http=True, **keys)
        with pytest.raises(Unavailable, match="`s3://bucket/x` cannot be used"):
            store.put([b"content"])


@pytest.mark.parametrize(
    ("url", "options", "told"),
    [
        ("s3://bucket/x", {"colour": "red"}, "`s3://bucket/x` is not a result store: .*colour"),
        ("file://relative", {}, "does not name a folder"),
        ("file:///tmp/x", {"region": "here"}, "does not name a folder"),
        ("ftp://host/x", {}, "`ftp://host/x` is not a result store"),
    ],
)
def test_what_cannot_be_a_store_is_refused(url: str, options: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=told):
        ObjectBlobs(url, tmp_path, **options)
