from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.adapters.blob_stores import open_blobs
from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.nats.blobs import NatsBlobs
from penstock.kernel.errors import Refused

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "{}"])
def test_a_folder_may_be_written_in_several_ways(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    ref = open_blobs(form.format(str(folder)), tmp_path / "home").put([b"content"])
    assert FileBlobs(folder).get(ref) == b"content"


def test_a_folder_in_a_url_may_be_quoted(tmp_path: Path) -> None:
    ref = open_blobs(f"file://{tmp_path}/with%20space", tmp_path / "home").put([b"content"])
    assert FileBlobs(tmp_path / "with space").get(ref) == b"content"


def test_without_a_folder_the_state_folder_is_meant(tmp_path: Path) -> None:
    for spec in ("file:", ""):
        ref = open_blobs(spec, tmp_path).put([b"content"])
        assert FileBlobs(tmp_path).get(ref) == b"content"


def test_a_relative_folder_is_relative_to_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_blobs("file:results", tmp_path / "home")
    monkeypatch.chdir("/")
    ref = store.put([b"content"])
    assert FileBlobs(tmp_path / "results").get(ref) == b"content"


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("memory:", "memory"),
        ("postgresql://me@host/database", "postgres"),
        ("postgres://me@host/database", "postgres"),
        ("nats://host:4222", "nats"),
        ("nats://one:4222,nats://two:4222/results", "nats"),
        ("tls://host:4222/results", "nats"),
        ("s3://bucket/prefix?region=here&endpoint=http://localhost:9000&allow_http=true", "object"),
        ("gs://bucket/prefix", "object"),
        ("az://container/prefix?account_name=me&access_key=aGlkZGVu", "object"),
    ],
)
def test_the_kind_of_store_is_read_from_the_setting(spec: str, kind: str, tmp_path: Path) -> None:
    """Opening asks no server anything yet."""
    store = open_blobs(spec, tmp_path)
    assert store.stores == (kind,)
    store.close()


@pytest.mark.parametrize(
    ("spec", "servers", "bucket"),
    [
        ("nats://host:4222", "nats://host:4222", "penstock"),
        ("nats://host:4222/", "nats://host:4222", "penstock"),
        ("nats://me:x@host:4222/results", "nats://me:x@host:4222", "results"),
        ("nats://one,nats://two:4222/results", "nats://one,nats://two:4222", "results"),
    ],
)
def test_a_nats_setting_may_name_the_bucket(spec: str, servers: str, bucket: str, tmp_path: Path) -> None:
    store = open_blobs(spec, tmp_path)
    assert isinstance(store, NatsBlobs)
    assert (store._connection._url, store._bucket) == (servers, bucket)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("ftp://host/x", r"`ftp:` is not a kind of result store"),
        ("file://host/folder", r"`file://host/folder` names a machine"),
        ("s3://bucket?colour=red", r"`s3://bucket` is not a result store: .*colour"),
        ("nats://host/two words", r"`two words` cannot be the name of a bucket"),
        ("postgresql://me:se%cret@host/x", r"this is no PostgreSQL URL"),
    ],
)
def test_what_names_no_store_is_refused(spec: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=told) as error:
        open_blobs(spec, tmp_path)
    assert "cret" not in error.value.message
    assert error.value.hint


LAZY = """
import sys
from pathlib import Path
from penstock.adapters.blob_stores import open_blobs
open_blobs("file:x", Path("."))
heavy = {"psycopg", "nats", "obstore"} & set(sys.modules)
assert not heavy, heavy
"""

WITHOUT = """
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path

class Nowhere(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == PACKAGE:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Nowhere())
from penstock.adapters.blob_stores import open_blobs
from penstock.kernel.errors import Refused
try:
    open_blobs(SPEC, Path("."))
except Refused as error:
    print(error.message, "|", error.hint)
"""


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT / "src")}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_package_is_loaded_when_a_store_needs_it_and_not_before() -> None:
    python(LAZY)


@pytest.mark.parametrize(
    ("package", "spec", "install"),
    [
        ("nats", "nats://host/results", "penstock[nats]"),
        ("obstore", "s3://bucket", "penstock[objects]"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_what_to_install(package: str, spec: str, install: str) -> None:
    said = python(f"PACKAGE, SPEC = {package!r}, {spec!r}\n{WITHOUT}")
    assert f"needs the package `{package}`, which is not installed" in said
    assert f"`pip install '{install}'`" in said
