from __future__ import annotations

import fcntl
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.kernel.errors import Refused, Unavailable
from penstock.keychain import LocalStore, StoredName
from tests.keychain.support import HandClock
from tests.warm import starting

CANARY = "canary-store-5521"


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_was_set_is_listed_read_and_removed(tmp_path):
    store = LocalStore(tmp_path, {}, HandClock(5.0))
    store.set("token", CANARY)
    store.set("pg", {"host": "h", "password": CANARY})
    assert store.names() == [StoredName("pg", "mapping", 5.0), StoredName("token", "text", 5.0)]
    assert LocalStore(tmp_path, {}).get("token") == CANARY
    assert LocalStore(tmp_path, {}).get("pg") == {"host": "h", "password": CANARY}
    assert store.remove("token") is True
    assert store.remove("token") is False
    assert store.get("token") is None
    assert [each.name for each in store.names()] == ["pg"]


def test_an_absent_store_is_empty_and_asking_does_not_create_it(tmp_path):
    store = LocalStore(tmp_path / "home", {})
    assert store.names() == []
    assert store.get("x") is None
    assert store.remove("x") is False
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("environ", [{}, {"PENSTOCK_KEY": "correct horse"}])
def test_the_files_are_readable_by_their_owner_only_and_hold_nothing_readable(tmp_path, environ):
    before = os.umask(0)
    try:
        LocalStore(tmp_path, environ).set("token", CANARY)
    finally:
        os.umask(before)
    for file in tmp_path.iterdir():
        assert mode(file) == 0o600
        assert CANARY.encode() not in file.read_bytes()
        assert b"token" not in file.read_bytes()
    assert (tmp_path / "keychain.key").exists() is (not environ)


def test_the_same_value_never_looks_the_same_twice(tmp_path):
    store = LocalStore(tmp_path, {})
    store.set("token", CANARY)
    first = store.path.read_bytes()
    store.set("token", CANARY)
    assert store.path.read_bytes() != first


def test_a_wrong_passphrase_is_told_so(tmp_path):
    LocalStore(tmp_path, {"PENSTOCK_KEY": "right"}).set("token", CANARY)
    with pytest.raises(Refused, match="passphrase in `PENSTOCK_KEY` is not the one"):
        LocalStore(tmp_path, {"PENSTOCK_KEY": "wrong"}).get("token")


def test_a_wrong_passphrase_cannot_overwrite_what_it_cannot_read(tmp_path):
    LocalStore(tmp_path, {"PENSTOCK_KEY": "right"}).set("token", CANARY)
    with pytest.raises(Refused):
        LocalStore(tmp_path, {"PENSTOCK_KEY": "wrong"}).set("other", "x")
    assert LocalStore(tmp_path, {"PENSTOCK_KEY": "right"}).get("token") == CANARY


def test_a_store_with_a_passphrase_asks_for_it(tmp_path):
    LocalStore(tmp_path, {"PENSTOCK_KEY": "right"}).set("token", CANARY)
    with pytest.raises(Refused, match="`PENSTOCK_KEY` is not set") as caught:
        LocalStore(tmp_path, {}).get("token")
    assert "PENSTOCK_KEY" in str(caught.value.hint)


def test_a_passphrase_that_is_set_later_takes_over_at_the_next_write(tmp_path):
    LocalStore(tmp_path, {}).set("token", CANARY)
    locked = LocalStore(tmp_path, {"PENSTOCK_KEY": "new"})
    assert locked.get("token") == CANARY
    locked.set("other", "x")
    assert locked.get("token") == CANARY
    with pytest.raises(Refused, match="locked with a passphrase"):
        LocalStore(tmp_path, {}).get("token")


def test_another_key_file_is_told_so(tmp_path):
    store = LocalStore(tmp_path, {})
    store.set("token", CANARY)
    other = LocalStore(tmp_path / "other", {})
    other.set("x", "y")
    store.key_path.write_bytes(other.key_path.read_bytes())
    with pytest.raises(Refused, match="the key file is not the one"):
        store.get("token")


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "is missing"), (b"not base64 !!", "is damaged"), (b"c2hvcnQ=", "32 bytes"), (b"", "32 bytes")],
)
def test_a_missing_or_damaged_key_file_is_told_so(tmp_path, content, says):
    store = LocalStore(tmp_path, {})
    store.set("token", CANARY)
    store.key_path.unlink()
    if content is not None:
        store.key_path.write_bytes(content)
    with pytest.raises(Refused, match=says):
        store.get("token")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff",
        b"[]",
        b"{}",
        b'{"header": 5}',
        b'{"header":{"version":1,"key":"x"},"nonce":"","sealed":""}',
        b"[" * 100_000,
    ],
)
def test_a_store_that_is_no_store_is_called_damaged(tmp_path, content):
    (tmp_path / "keychain.enc").write_bytes(content)
    with pytest.raises(Refused, match="is damaged"):
        LocalStore(tmp_path, {}).get("token")


def test_a_store_of_a_later_version_is_named(tmp_path):
    store = LocalStore(tmp_path, {})
    store.set("token", CANARY)
    document = json.loads(store.path.read_bytes())
    document["header"]["version"] = 2
    store.path.write_text(json.dumps(document))
    with pytest.raises(Refused, match="version `2`"):
        store.get("token")


def test_any_change_to_the_file_is_noticed(tmp_path):
    store = LocalStore(tmp_path, {"PENSTOCK_KEY": "right"})
    store.set("token", CANARY)
    written = store.path.read_bytes()
    for part in ("nonce", "sealed", "salt"):
        document = json.loads(written)
        holder = document["header"] if part == "salt" else document
        holder[part] = ("B" if holder[part][0] == "A" else "A") + holder[part][1:]
        store.path.write_text(json.dumps(document))
        with pytest.raises(Refused, match="cannot be opened"):
            store.get("token")


@pytest.mark.parametrize(("name", "value"), [("", "x"), (" ", "x"), ("n", ""), ("n", {}), ("n", 5), ("n", None)])
def test_only_named_texts_and_mappings_are_stored(tmp_path, name, value):
    with pytest.raises(Refused):
        LocalStore(tmp_path, {}).set(name, value)
    assert not (tmp_path / "keychain.enc").exists()


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: LocalStore(tmp_path, {}).set(f"n{number}", "v"), range(24)))
    assert len(LocalStore(tmp_path, {}).names()) == 24
    assert sorted(file.name for file in tmp_path.iterdir()) == ["keychain.enc", "keychain.key", "keychain.lock"]


def test_processes_at_the_same_time_lose_nothing(tmp_path):
    environ = {**os.environ, "PENSTOCK_HOME": str(tmp_path)}
    environ.pop("PENSTOCK_KEY", None)
    running = []
    for number in range(6):
        (tmp_path / f"value{number}").write_text("v")
        with (tmp_path / f"value{number}").open() as value:
            running.append(starting("keychain", "set", f"n{number}", stdin=value, cwd=tmp_path, env=environ))
    assert [process.wait(60) for process in running] == [0] * 6
    assert len(LocalStore(tmp_path, {}).names()) == 6


def test_a_lock_that_is_never_given_up_is_reported(tmp_path):
    with (tmp_path / "keychain.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match="another process"):
            LocalStore(tmp_path, {}, patience_s=0.0).set("token", CANARY)


def test_a_home_that_cannot_be_written_to_is_a_clear_error(tmp_path):
    (tmp_path / "home").write_text("a file, not a folder")
    with pytest.raises(Unavailable, match="cannot be written to"):
        LocalStore(tmp_path / "home", {}).set("token", CANARY)


def test_a_store_that_cannot_be_read_is_a_clear_error(tmp_path):
    (tmp_path / "keychain.enc").mkdir()
    with pytest.raises(Unavailable, match="cannot be read"):
        LocalStore(tmp_path, {}).get("token")


def test_a_write_that_fails_leaves_the_old_store_and_no_litter(tmp_path):
    store = LocalStore(tmp_path, {})
    store.set("token", CANARY)
    store.path.rename(tmp_path / "kept")
    store.path.mkdir()
    (store.path / "in the way").touch()
    with pytest.raises(Unavailable, match="cannot be written"):
        store._put(store.path, b"x")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kept", "keychain.enc", "keychain.key", "keychain.lock"]


def test_a_passphrase_of_any_bytes_works(tmp_path):
    environ = {"PENSTOCK_KEY": "p\udcff\udc80"}
    LocalStore(tmp_path, environ).set("token", CANARY)
    assert LocalStore(tmp_path, environ).get("token") == CANARY


def test_a_key_file_that_others_can_read_is_noticed(tmp_path):
    store = LocalStore(tmp_path, {})
    assert not store.key_is_open_to_others()
    store.set("token", CANARY)
    assert not store.key_is_open_to_others()
    store.key_path.chmod(0o640)
    assert store.key_is_open_to_others()
