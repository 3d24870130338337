"""What the files tool reads and writes: formats, bounds, and writing that is whole or not at all."""

from __future__ import annotations

import base64
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.ports.blobs import ResultRef
from penstock.tools import file_changes
from tests.cases import cases

from .filing import do, failed, visible
from .support import make_call


@pytest.fixture
def doc(tmp_path: Path) -> Path:
    folder = tmp_path / "doc"
    folder.mkdir()
    return folder


# ---- read and write


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "grüße\r\nzwei\n"),
        ("a.json", {"é": [1, 2.5, None, True, 12345678901234567890]}),
        ("a.jsonl", [{"a": 1}, "two", [3]]),
        ("a.csv", [{"a": "1", "b": 'x,"y"\nz'}, {"a": "", "b": "ä"}]),
    ],
)
def test_what_is_written_is_what_is_read(tmp_path: Path, name: str, content: Any) -> None:
    written = do(tmp_path, "write", f"new/folder/{name}", content=content)
    read = do(tmp_path, "read", f"new/folder/{name}")
    assert read["data"] == content
    assert read["size"] == written["size"] == (tmp_path / "doc/new/folder" / name).stat().st_size
    assert read["path"] == str(tmp_path / "doc/new/folder" / name)


def test_text_is_written_as_it_is_whatever_the_name(tmp_path: Path, doc: Path) -> None:
    do(tmp_path, "write", "a.json", content='{"already": "json"}')
    assert (doc / "a.json").read_text() == '{"already": "json"}'
    do(tmp_path, "write", "a.json", content="a text", format="json")
    assert (doc / "a.json").read_text() == '"a text"\n'


def test_a_value_without_a_format_is_written_as_json(tmp_path: Path, doc: Path) -> None:
    for content, text in (({"a": 1}, '{"a": 1}'), (5, "5"), (None, "null"), (True, "true")):
        do(tmp_path, "write", "a.txt", content=content)
        assert (doc / "a.txt").read_text() == text


def test_csv_has_the_columns_of_all_rows_and_any_delimiter(tmp_path: Path, doc: Path) -> None:
    do(tmp_path, "write", "a.csv", content=[{"a": 1}, {"b": True, "a": None}, {"b": {"x": 1}}], delimiter=";")
    assert (doc / "a.csv").read_text() == 'a;b\n1;\n;true\n;"{""x"": 1}"\n'
    assert do(tmp_path, "read", "a.csv", delimiter=";")["data"][1] == {"a": "", "b": "true"}


def test_an_empty_csv_has_no_rows(tmp_path: Path) -> None:
    do(tmp_path, "write", "a.csv", content=[])
    assert do(tmp_path, "read", "a.csv")["data"] == []


def test_other_encodings_are_read_and_written(tmp_path: Path, doc: Path) -> None:
    do(tmp_path, "write", "a.csv", content=[{"ä": "ß"}], encoding="cp1252")
    assert (doc / "a.csv").read_bytes() == "ä\nß\n".encode("cp1252")
    assert do(tmp_path, "read", "a.csv", encoding="cp1252")["data"] == [{"ä": "ß"}]


def test_a_byte_order_mark_is_not_part_of_the_content(tmp_path: Path, doc: Path) -> None:
    (doc / "a.csv").write_text("a,b\r\n1,2\r\n", encoding="utf-8-sig", newline="")
    assert do(tmp_path, "read", "a.csv")["data"] == [{"a": "1", "b": "2"}]


def test_bytes_are_read_into_the_result_store_and_written_from_it(tmp_path: Path, doc: Path) -> None:
    content = os.urandom(3_000_000)
    (doc / "a.bin").write_bytes(content)
    ref = do(tmp_path, "read", "a.bin", format="bytes")["data"]
    assert make_call(doc).blobs.get(ResultRef.from_json(ref)) == content
    do(tmp_path, "write", "b.bin", content=ref)
    assert (doc / "b.bin").read_bytes() == content


def test_bytes_are_written_from_base64(tmp_path: Path, doc: Path) -> None:
    do(tmp_path, "write", "a.bin", content=base64.b64encode(b"\x00\xff").decode(), format="bytes")
    assert (doc / "a.bin").read_bytes() == b"\x00\xff"
    assert failed(tmp_path, "write", "a.bin", content="?", format="bytes").kind == "parameters"


@cases(
    "name, content, words",
    [
        ("a.json", b"{", "is not JSON"),
        ("a.json", b"", "is not JSON"),
        ("a.jsonl", b'{"a": 1}\n\n{"a": \n', "line 3 is not JSON"),
        ("a.csv", b"a,b\n1,2,3\n", "line 2 is not CSV: 3 values for 2 columns"),
        ("a.csv", b"a,a\n1,2\n", "`a` is there twice"),
        ("a.txt", b"ok \xff", "byte 3 does not fit"),
    ],
)
def test_content_that_is_not_in_its_format_is_told_by_its_place(
    tmp_path: Path, doc: Path, name: str, content: bytes, words: str
) -> None:
    (doc / name).write_bytes(content)
    failure = failed(tmp_path, "read", name)
    assert failure.kind == "decode"
    assert words in failure.message
    assert str(doc / name) in failure.message


def test_a_read_is_bounded(tmp_path: Path, doc: Path) -> None:
    (doc / "a.txt").write_bytes(b"x" * 101)
    failure = failed(tmp_path, "read", "a.txt", max_bytes=100)
    assert (failure.kind, failure.detail["limit"]) == ("too_large", 100)
    assert failed(tmp_path, "read", "a.txt", max_bytes=100, format="bytes").kind == "too_large"
    assert do(tmp_path, "read", "a.txt", max_bytes=101)["size"] == 101


def test_a_pipe_or_a_device_is_not_read_or_replaced(tmp_path: Path, doc: Path) -> None:
    os.mkfifo(doc / "pipe")
    assert failed(tmp_path, "read", "pipe").kind == "io"
    assert failed(tmp_path, "write", "pipe", content="x").kind == "io"
    assert failed(tmp_path, "append", "pipe", content="x").kind == "io"
    assert failed(tmp_path, "read", "/dev/zero").kind == "io"


# ---- writing is whole or not at all


def test_a_write_that_fails_leaves_the_old_file_and_no_other(doc: Path) -> None:
    (doc / "a.txt").write_text("old")

    def breaks() -> Any:
        yield b"new"
        raise OSError(errno.ENOSPC, "no space")

    with pytest.raises(OSError, match="no space"):
        file_changes.replace(doc / "a.txt", breaks(), overwrite=True)
    assert (doc / "a.txt").read_text() == "old"
    assert visible(doc) == ["a.txt"]


def test_a_reader_sees_the_old_content_or_the_new_one(doc: Path) -> None:
    path, done, seen = doc / "a.txt", threading.Event(), set()
    path.write_text("0" * 100_000)

    def watch() -> None:
        while not done.is_set():
            seen.add(path.read_text())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(1, 10):
        file_changes.replace(path, [str(number).encode() * 50_000, str(number).encode() * 50_000], overwrite=True)
    done.set()
    watcher.join()
    assert seen <= {str(number) * 100_000 for number in range(10)}


def test_permissions_and_links_survive_a_write(tmp_path: Path, doc: Path) -> None:
    (doc / "a.sh").write_text("old")
    (doc / "a.sh").chmod(0o751)
    (doc / "link").symlink_to("a.sh")
    do(tmp_path, "write", "link", content="new")
    assert (doc / "link").is_symlink()
    assert (doc / "a.sh").read_text() == "new"
    assert do(tmp_path, "stat", "a.sh")["mode"] == "0751"


def test_a_new_file_has_the_permissions_of_any_other_new_file(tmp_path: Path, doc: Path) -> None:
    (doc / "plain").touch()
    do(tmp_path, "write", "written", content="x")
    assert (doc / "written").stat().st_mode == (doc / "plain").stat().st_mode


@pytest.mark.parametrize("action", ["write", "copy", "move"])
def test_overwrite_false_keeps_what_is_there(tmp_path: Path, doc: Path, action: str) -> None:
    (doc / "a.txt").write_text("old")
    (doc / "b.txt").write_text("new")
    given = {"path": "a.txt", "content": "new"} if action == "write" else {"path": "b.txt", "to": "a.txt"}
    failure = failed(tmp_path, action, **given, overwrite=False)
    assert failure.kind == "exists"
    assert str(doc / "a.txt") in failure.message
    assert (doc / "a.txt").read_text() == "old"
    do(tmp_path, action, **given)
    assert (doc / "a.txt").read_text() == "new"


def test_overwrite_false_writes_what_is_not_there(tmp_path: Path, doc: Path) -> None:
    do(tmp_path, "write", "a.txt", content="new", overwrite=False)
    assert visible(doc) == ["a.txt"]


# ---- append


def test_append_adds_to_the_end(tmp_path: Path, doc: Path) -> None:
    for word in ("one ", "two"):
        do(tmp_path, "append", "new/a.txt", content=word)
    assert (doc / "new/a.txt").read_text() == "one two"


def test_lines_are_appended_to_whole_lines(tmp_path: Path, doc: Path) -> None:
    (doc / "a.jsonl").write_text('{"a": 0}')
    do(tmp_path, "append", "a.jsonl", content={"a": 1})
    do(tmp_path, "append", "a.jsonl", content=[{"a": 2}, {"a": 3}])
    assert [row["a"] for row in do(tmp_path, "read", "a.jsonl")["data"]] == [0, 1, 2, 3]


def test_rows_are_appended_in_the_order_of_the_columns_there(tmp_path: Path, doc: Path) -> None:
    do(tmp_path, "append", "a.csv", content=[{"a": 1, "b": 2}])
    do(tmp_path, "append", "a.csv", content={"b": 4, "a": 3})
    assert (doc / "a.csv").read_text() == "a,b\n1,2\n3,4\n"
    assert "`c`" in failed(tmp_path, "append", "a.csv", content={"c": 5}).message


def test_a_json_file_is_not_appended_to(tmp_path: Path) -> None:
    assert "jsonl" in failed(tmp_path, "append", "a.json", content={"a": 1}).message
