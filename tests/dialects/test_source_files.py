"""Whatever a path leads to, loading it gives a tree or a problem, and reads no more than it must."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.dialects.problems import Position, Problem
from penstock.dialects.source.loader import load_file
from penstock.dialects.source.node import SourceLimits, to_json
from tests.cases import cases


def only_problem(path: Path) -> Problem:
    loaded = load_file(path)
    assert loaded.root is None
    assert loaded.file == loaded.problems[0].position.file
    assert len(loaded.problems) == 1
    return loaded.problems[0]


def written(folder: Path, content: bytes) -> Path:
    path = folder / "play.yaml"
    path.write_bytes(content)
    return path


def test_a_file_gives_its_tree_its_text_and_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeffname: Zoë\r\n".encode())
    loaded = load_file(path)
    assert loaded.problems == []
    assert loaded.root is not None
    assert to_json(loaded.root) == {"name": "Zoë"}
    assert (loaded.text, loaded.file) == ("name: Zoë\r\n", str(path))
    assert loaded.root.entries["name"].position == Position(str(path), 1, 7, 10)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    problem = only_problem(tmp_path / "nothing.yaml")
    assert problem.code == "Y0001"
    assert "nothing.yaml`" in problem.message
    assert problem.position == Position.whole(str(tmp_path / "nothing.yaml"))


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    assert only_problem(tmp_path).code == "Y0002"


def test_a_device_is_not_a_file() -> None:
    assert only_problem(Path("/dev/zero")).code == "Y0002"


def test_what_the_system_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    assert only_problem(loop).code == "Y0003"
    inside = written(tmp_path, b"a: 1") / "x.yaml"
    assert only_problem(inside).message == f"`{inside}` cannot be read: not a directory"
    assert only_problem(tmp_path / ("x" * 300)).code == "Y0003"


def test_a_path_that_is_none_is_a_problem() -> None:
    assert only_problem(Path("a\0b")).code == "Y0001"


def test_a_name_that_is_not_utf_8_can_still_be_printed(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yaml"))
    only_problem(path).message.encode()


def test_a_file_of_100_mb_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    problem = only_problem(path)
    assert problem.code == "Y0004"
    assert "100,000,000 bytes" in problem.message


def test_a_file_that_hides_its_size_is_read_only_up_to_the_limit(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a: 12345")
    os.close(writer)
    try:
        loaded = load_file(Path(f"/dev/fd/{reader}"), SourceLimits(max_bytes=4))
    finally:
        os.close(reader)
    assert [problem.code for problem in loaded.problems] == ["Y0004"]


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a: 1")
    os.close(writer)
    try:
        loaded = load_file(Path(f"/dev/fd/{reader}"))
    finally:
        os.close(reader)
    assert loaded.root is not None
    assert to_json(loaded.root) == {"a": 1}


def test_a_named_pipe_that_nobody_writes_to_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert only_problem(tmp_path / "pipe.yaml").code == "Y0007"


@pytest.mark.parametrize("content", [b"", b"\n", b"# nothing\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_a_problem(tmp_path: Path, content: bytes) -> None:
    assert only_problem(written(tmp_path, content)).code == "Y0007"


@cases(
    "content, code, words",
    [
        (b"\x7fELF\x02\x01\x01\0\0", "Y0005", "offset 7, on line 1"),
        (b"a: 1\nb: \0\n", "Y0005", "offset 8, on line 2"),
        (b"\x89PNG\r\n\x1a\n\0\0", "Y0005", "offset 8"),
        ("a: 1".encode("utf-16"), "Y0006", "UTF-16"),
        ("a: 1".encode("utf-16-le"), "Y0005", "NUL byte at offset 1"),
        (b"a: 1\nname: Zo\xeb\n", "Y0006", "0xEB at offset 13"),
    ],
)
def test_a_file_that_is_not_utf_8_text_says_where(tmp_path: Path, content: bytes, code: str, words: str) -> None:
    problem = only_problem(written(tmp_path, content))
    assert problem.code == code
    assert words in problem.message


def test_a_byte_that_is_not_utf_8_is_shown_on_its_line(tmp_path: Path) -> None:
    loaded = load_file(written(tmp_path, b"\xef\xbb\xbfa: \xc3\xa9\r\nname: Zo\xeb\n"))
    place = loaded.problems[0].position
    assert (place.line, place.column) == (2, 9)
    assert loaded.text == "a: é\r\nname: Zo�\n"
