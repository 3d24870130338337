"""Objects of an object store as a collection that is read page by page: from a folder, and from a server that speaks S3."""

from __future__ import annotations

import sys
from pathlib import Path

import obstore
import pytest

from penstock.kernel.values import JsonMap
from penstock.tools.addresses import PUBLIC_ONLY
from penstock.tools.base import Settings
from penstock.tools.pages import objects as pages_objects
from tests.contracts.blobs_servers import BUCKET, S3, s3
from tests.tools.fetching import TicklessClock
from tests.tools.paging import Collection, all_of, check, failing, played
from tests.tools.support import make_call

__all__ = ["s3"]

KEYS = ["a.csv", "b/1.csv", "b/2.txt", "b/c/3.csv", "ba.csv", "z.csv"]


def fill(folder: Path, keys: list[str]) -> str:
    folder.mkdir(exist_ok=True)
    for key in keys:
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_text(key)
    return f"file://{folder}"


@pytest.mark.clause("F2.1")
@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_objects_come_in_the_order_of_their_keys(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_objects, "AT_ONCE", 2)
    url = fill(tmp_path / "store", KEYS[:count])
    description: JsonMap = {"kind": "objects", "url": url}
    items = all_of(description, make_call(tmp_path), 2)
    assert [item["key"] for item in items] == KEYS[:count]
    check(tmp_path, description, items)


def test_an_element_says_what_is_known_of_the_object(tmp_path: Path) -> None:
    url = fill(tmp_path / "store", ["b/1.csv"])
    (item,) = all_of({"kind": "objects", "url": f"{url}/"}, make_call(tmp_path))
    assert item.pop("modified").endswith("Z")
    assert item == {"key": "b/1.csv", "name": "1.csv", "size": 7, "url": f"{url}/b/1.csv"}


def test_a_pattern_chooses_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_objects, "AT_ONCE", 1)
    url = fill(tmp_path / "store", KEYS)
    for pattern, expected in {
        "*.csv": [key for key in KEYS if key.endswith("csv")],
        "b/*": KEYS[1:4],
        "?.txt": [],
    }.items():
        found = all_of({"kind": "objects", "url": url, "pattern": pattern}, make_call(tmp_path), 1)
        assert [item["key"] for item in found] == expected


@pytest.mark.clause("F3.1")
def test_objects_that_are_removed_or_added_do_not_change_a_page_that_was_read(tmp_path: Path) -> None:
    url = fill(tmp_path / "store", KEYS)
    call = make_call(tmp_path)
    collection = Collection({"kind": "objects", "url": url}, call)

    async def scene() -> None:
        reads = await collection.walk(2)
        fill(tmp_path / "store", ["0.csv", "aa.csv"])
        (tmp_path / "store" / "b" / "1.csv").unlink()
        for read in reads:
            assert (await collection.again(read)).items == read.items

    played(call, scene)


def test_a_bucket_is_listed_with_the_credential_of_the_keychain(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages_objects, "AT_ONCE", 3)
    prefix = tmp_path.name
    store = s3.bucket(prefix)
    for key in [*KEYS, *(f"many/{n:03d}" for n in range(20))]:
        obstore.put(store, key, b"x")
    call = make_call(tmp_path, credentials={"lake": s3.options()})
    description: JsonMap = {
        "kind": "objects",
        "url": f"s3://{BUCKET}/{prefix}",
        "auth": "lake",
        "options": {"allow_http": True},
    }

    async def scene() -> None:
        collection = Collection(description, call)
        items = [item for read in await collection.walk(4) for item in read.items]
        assert [item["key"] for item in items] == sorted([*KEYS, *(f"many/{n:03d}" for n in range(20))])
        assert items[0]["url"] == f"s3://{BUCKET}/{prefix}/a.csv"
        await collection.check(items, (5, 100))

    played(call, scene)


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    call = make_call(tmp_path, clock=TicklessClock())
    assert "is not the URL of an object store" in failing({"kind": "objects", "url": "orders/2024"}, call).message
    assert "is not the URL of an object store" in failing({"kind": "objects", "url": "ftp://h/x"}, call).message
    assert (
        "there is no keychain entry `lake`"
        in failing({"kind": "objects", "url": "s3://b", "auth": "lake"}, call).message
    )
    wrong = failing({"kind": "objects", "url": "s3://b", "options": {"acess_key_id": "x"}}, call)
    assert wrong.kind == "parameters"
    assert "acess_key_id" in wrong.message
    assert failing({"kind": "objects", "url": f"file://{tmp_path}/nowhere"}, call).kind in ("not_found", "parameters")


def test_an_endpoint_cannot_be_named_where_the_private_network_is_closed(tmp_path: Path) -> None:
    call = make_call(tmp_path, settings=Settings(PUBLIC_ONLY))
    description: JsonMap = {"kind": "objects", "url": "s3://b", "options": {"endpoint": "http://169.254.169.254"}}
    assert failing(description, call).kind == "address_refused"


def test_without_the_package_it_is_said_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    failure = failing({"kind": "objects", "url": "s3://b"}, make_call(tmp_path))
    assert failure.kind == "missing_package"
    assert "pip install 'penstock[objects]'" in failure.message
