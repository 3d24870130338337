"""file_exists, file_properties, file_list, file_compare, file_checksum."""

from __future__ import annotations

import datetime
import hashlib
import os
from pathlib import Path

import pytest

from tests.components.flow.support import failed, run
from tests.components.harness import columns


def test_either_answer_to_whether_a_file_exists_is_ok(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    for name, there in (("a", True), ("b", False), (".", True), ("gone", False), ("a/b", False)):
        ran = run("file_exists", {"path": name}, folder=tmp_path)
        assert (name, ran.result["exists"], ran.after["EXISTS"]) == (name, there, there)
    assert ran.after["FILENAME"] == str(tmp_path / "a" / "b")


def test_the_properties_of_a_file_are_one_row(tmp_path: Path) -> None:
    path = tmp_path / "report.tar.gz"
    path.write_bytes(b"12345")
    path.chmod(0o640)
    os.utime(path, (1_700_000_000.25, 1_700_000_000.25))
    ran = run("file_properties", {"path": "report.tar.gz"}, folder=tmp_path)
    at = datetime.datetime(2023, 11, 14, 22, 13, 20, 250_000)
    row = {
        "path": str(path),
        "name": "report.tar.gz",
        "stem": "report.tar",
        "extension": "gz",
        "folder": str(tmp_path),
        "type": "file",
        "size": 5,
        "modified": at,
        "mode": "0640",
    }
    assert ran.main == [row]
    assert ran.result == {**row, "modified": "2023-11-14T22:13:20.250Z"}
    assert ran.after == {"FILENAME": str(path), "SIZE": 5, "MODIFIED": "2023-11-14T22:13:20.250Z"}
    assert columns("file_properties", {"path": "x"}) == {column.name: column.type for column in ran.schemas["main"]}
    assert run("file_properties", {"path": "."}, folder=tmp_path, connected=[]).result["type"] == "folder"
    assert failed("file_properties", {"path": "nix"}, folder=tmp_path).kind == "missing_file"


def test_the_files_of_a_folder_are_rows(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.csv", "a.csv", "sub/c.csv"):
        (tmp_path / name).write_text(name)
    ran = run("file_list", {"path": ".", "recursive": True, "what": "both"}, folder=tmp_path)
    assert [(row["name"], row["type"]) for row in ran.main] == [
        ("a.csv", "file"),
        ("b.csv", "file"),
        ("sub", "folder"),
        ("c.csv", "file"),
    ]
    assert (ran.result, ran.after) == ({"count": 4}, {"COUNT": 4})
    assert run("file_list", {"path": ".", "pattern": "*.none"}, folder=tmp_path).main == []
    assert run("file_list", {"path": "nix", "missing_ok": True}, folder=tmp_path).main == []
    assert failed("file_list", {"path": "nix"}, folder=tmp_path).kind == "missing_file"


@pytest.mark.parametrize(
    ("one", "two", "difference"),
    [
        (b"", b"", None),
        (b"abc", b"abc", None),
        (b"abc", b"abd", 2),
        (b"abc", b"ab", 2),
        (b"", b"x", 0),
        (b"x" * 5000 + b"a", b"x" * 5000 + b"b", 5000),
        (b"x" * (2**20 + 7), b"x" * (2**20 + 7) + b"y", 2**20 + 7),
    ],
)
def test_the_first_byte_that_differs_is_found(tmp_path: Path, one: bytes, two: bytes, difference: int | None) -> None:
    (tmp_path / "1").write_bytes(one)
    (tmp_path / "2").write_bytes(two)
    ran = run("file_compare", {"path": "1", "other": "2"}, folder=tmp_path)
    assert ran.after == {"EQUAL": difference is None, "DIFFERENCE": difference}


def test_text_is_compared_by_lines_whatever_their_ends(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"a\r\nb\r\n")
    (tmp_path / "2").write_bytes(b"a\nb\n")
    (tmp_path / "3").write_bytes(b"a\nc")
    params = {"path": "1", "other": "2", "mode": "text"}
    assert run("file_compare", params, folder=tmp_path).result["equal"] is True
    assert run("file_compare", {**params, "other": "3"}, folder=tmp_path).result["difference"] == 2


def test_a_difference_is_a_failure_when_it_is_to_be_checked(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("a\nb\n")
    (tmp_path / "2").write_text("a\n")
    failure = failed("file_compare", {"path": "1", "other": "2", "mode": "text", "check": True}, folder=tmp_path)
    assert (failure.kind, failure.message.endswith("differ from line 2 on")) == ("different", True)
    (tmp_path / "3").write_bytes(b"\xff\xfe")
    wrong = {"path": "1", "other": "3", "mode": "text"}
    assert failed("file_compare", wrong, folder=tmp_path).kind == "decode"
    assert failed("file_compare", {**wrong, "encoding": "nix"}, folder=tmp_path).kind == "parameters"
    assert failed("file_compare", {"path": "1", "other": "9"}, folder=tmp_path).kind == "missing_file"


def test_a_checksum_is_made_and_compared_with_the_one_expected(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    right = hashlib.sha256(b"abc").hexdigest()
    ran = run("file_checksum", {"path": "a", "expected": right.upper()}, folder=tmp_path)
    assert ran.result == {"checksum": right, "algorithm": "sha256", "size": 3, "path": str(tmp_path / "a")}
    assert ran.after == {"CHECKSUM": right, "FILENAME": str(tmp_path / "a")}
    failure = failed("file_checksum", {"path": "a", "algorithm": "md5", "expected": "00"}, folder=tmp_path)
    assert (failure.kind, hashlib.md5(b"abc").hexdigest() in failure.message) == ("checksum", True)
    assert "is not a checksum" in failed("file_checksum", {"path": "a", "algorithm": "x"}, folder=tmp_path).message
    assert failed("file_checksum", {"path": "nix"}, folder=tmp_path).kind == "missing_file"
    assert failed("file_checksum", {"path": "."}, folder=tmp_path).kind == "file"
