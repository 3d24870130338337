"""The scan finds what it is for; without that, finding nothing would mean nothing."""

from __future__ import annotations

import base64
import json
import sqlite3
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from tests.secrets.scan import Scanner, state_folders
from tests.secrets.watch import VARIABLE, canary_text

SECRET = "Cnabcdef123456/+ &=%\"'<>é\\ghijkl7890"


@pytest.mark.parametrize(
    "said",
    [
        f"password: {SECRET}!",
        quote(SECRET),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        json.dumps({"a": SECRET}),
        json.dumps({"a": json.dumps({"b": SECRET})}),
        repr([SECRET]),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(f"user:{SECRET}".encode()).decode(),
        base64.urlsafe_b64encode(f"u:{SECRET}??".encode()).decode(),
        base64.b64encode(f"xy:{SECRET}tail".encode()).decode(),
        f"half of it: {SECRET[:14]}",
    ],
)
def test_a_secret_is_found_in_every_spelling(said: str) -> None:
    assert Scanner([SECRET]).in_text(f"before {said} after", "here")
    assert not Scanner([SECRET]).in_text("nothing of that sort, ***", "here")


def test_a_secret_is_found_in_files_names_and_rows(tmp_path: Path) -> None:
    scanner = Scanner([SECRET])
    home = tmp_path / "deep" / ".penstock"
    home.mkdir(parents=True)
    assert scanner.in_folder(tmp_path) == []
    connection = sqlite3.connect(home / "penstock.db")
    connection.execute("CREATE TABLE event (payload BLOB)")
    # Across the border of two pages: only a look at the rows finds it.
    connection.execute("INSERT INTO event VALUES (?)", (b"x" * 4050 + SECRET.encode() + b"y" * 4096,))
    connection.commit()
    connection.close()
    assert [found.where for found in scanner.in_folder(tmp_path) if "table event" in found.where]
    assert state_folders(tmp_path) == [home]
    (home / "blob").write_bytes(b"\x00\xff" + SECRET.encode())
    assert any(found.where.endswith("blob") for found in scanner.in_folder(home))
    (home / SECRET[:12].replace("/", "")).touch()
    assert any(found.where == "the names of files" for found in scanner.in_folder(home))


def test_the_canary_of_the_session_is_long_and_new_every_time() -> None:
    assert canary_text() != canary_text()
    assert Scanner([canary_text()])
    assert VARIABLE.startswith("PENSTOCK_")
