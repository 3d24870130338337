"""Lines of files as a collection that is read page by page."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from penstock.tools.base import ToolFailure
from penstock.tools.pages import lines as pages_lines
from tests.cases import cases
from tests.tools.paging import Collection, all_of, check, failing, played
from tests.tools.support import make_call

LINES = {"kind": "lines", "path": "it.txt"}


def write(folder: Path, text: str | bytes, name: str = "it.txt", encoding: str = "utf-8") -> None:
    data = text if isinstance(text, bytes) else text.encode(encoding)
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


@pytest.mark.clause("F2.1")
@cases(
    "text, lines",
    [
        ("", []),
        ("\n", [""]),
        ("one", ["one"]),
        ("one\n", ["one"]),
        ("one\ntwo", ["one", "two"]),
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("one\n\n\nfour\n", ["one", "", "", "four"]),
        ("a\rb\nc\x0bd\u2028e\n", ["a\rb", "c\x0bd\u2028e"]),
        ("\ufeffone\ntwo\n", ["one", "two"]),
        ("".join(f"{n}\n" for n in range(6)), [str(n) for n in range(6)]),
    ],
)
@cases("name", ["it.txt", "it.gz"])
def test_every_line_is_an_element_whatever_its_end(tmp_path: Path, text: str, lines: list[str], name: str) -> None:
    write(tmp_path, text, name)
    check(tmp_path, {"kind": "lines", "path": name}, lines)


@cases("encoding", ["utf-8", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "cp500", "utf-8-sig"])
def test_text_may_be_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    write(tmp_path, "naïve\ncafé\n\nend", encoding=encoding)
    check(tmp_path, {**LINES, "encoding": encoding}, ["naïve", "café", "", "end"])


@pytest.mark.parametrize("name", ["it.txt", "it.gz"])
def test_lines_at_the_beginning_can_be_skipped_and_keys_are_the_numbers_of_lines(tmp_path: Path, name: str) -> None:
    write(tmp_path, "id,name\n1,ada\n2,bob\n", name)
    call = make_call(tmp_path)
    collection = Collection({"kind": "lines", "path": name, "skip": 1}, call)

    async def scene() -> None:
        await collection.check(["1,ada", "2,bob"])
        (read,) = await collection.walk(10)
        assert read.page.keys == ["2", "3"]

    played(call, scene)
    check(tmp_path, {"kind": "lines", "path": name, "skip": 3}, [])
    check(tmp_path, {"kind": "lines", "path": name, "skip": 30}, [])


def test_many_lines(tmp_path: Path) -> None:
    expected = [f"line {n} " + "x" * (n % 50) for n in range(30_000)]
    write(tmp_path, "\n".join(expected))
    write(tmp_path, "\n".join(expected), "it.gz")
    for name in ("it.txt", "it.gz"):
        assert all_of({"kind": "lines", "path": name}, make_call(tmp_path), 4_000) == expected


def test_a_page_that_is_read_again_ends_where_it_ended_though_the_file_has_grown(tmp_path: Path) -> None:
    write(tmp_path, "one\ntwo\nthr")
    call = make_call(tmp_path)
    collection = Collection(LINES, call)

    async def scene() -> None:
        first, second = await collection.walk(2)
        with (tmp_path / "it.txt").open("a") as file:
            file.write("ee\nfour\n")
        assert list((await collection.again(first)).items) == ["one", "two"]
        assert list((await collection.again(second, 10)).items) == ["thr"]
        assert (await collection.page(first.page.next, 10)).items == ["three", "four"]

    played(call, scene)


@pytest.mark.parametrize("text", ["", "one\n", "x" * 40], ids=["empty", "shorter", "other lines"])
def test_a_file_that_was_changed_is_not_taken_for_the_one_it_was(tmp_path: Path, text: str) -> None:
    write(tmp_path, "one\ntwo\nthree\nfour\n")
    call = make_call(tmp_path)
    collection = Collection(LINES, call)

    async def scene() -> None:
        _, second = await collection.walk(2)
        write(tmp_path, text)
        with pytest.raises(ToolFailure, match="has been changed since the loop began"):
            await collection.again(second)

    played(call, scene)


def test_a_packed_file_is_read_on_from_where_it_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    open_regular = pages_lines.open_regular

    def counted(path: Path) -> Any:
        opened.append(path)
        return open_regular(path)

    monkeypatch.setattr(pages_lines, "open_regular", counted)
    write(tmp_path, "".join(f"{n}\n" for n in range(100)), "it.gz")
    assert len(all_of({"kind": "lines", "path": "it.gz"}, make_call(tmp_path), 7)) == 100
    assert len(opened) == 1


def test_a_page_of_long_lines_ends_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_lines, "PAGE_BYTES", 100)
    expected = ["x" * 60] * 5
    write(tmp_path, "\n".join(expected))
    call = make_call(tmp_path)

    async def scene() -> None:
        reads = await Collection(LINES, call).walk(1000)
        assert [len(read.items) for read in reads] == [2, 2, 1]

    played(call, scene)
    check(tmp_path, LINES, expected)


def test_what_is_wrong_with_a_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = make_call(tmp_path)
    missing = failing(LINES, call)
    assert (missing.kind, missing.message) == ("not_found", f"there is no `{tmp_path / 'it.txt'}`")
    (tmp_path / "it.txt").mkdir()
    assert failing(LINES, call).kind == "is_directory"
    (tmp_path / "it.txt").rmdir()
    write(tmp_path, b"good\nb\xff\xfed\n")
    wrong = failing(LINES, call)
    assert wrong.kind == "decode"
    assert "line 2, is not in the encoding `utf-8`" in wrong.message
    (tmp_path / "it.gz").write_bytes(b"no gzip")
    assert failing({"kind": "lines", "path": "it.gz"}, call).kind == "decode"
    (tmp_path / "it.gz").write_bytes(gzip.compress(b"x\n" * 5)[:-4])
    assert "is not a whole `.gz` file" in failing({"kind": "lines", "path": "it.gz"}, call).message
    monkeypatch.setattr(pages_lines, "LONGEST_LINE", 10)
    write(tmp_path, "short\n" + "x" * 11)
    assert "line 2 of" in failing(LINES, call).message


@cases(
    "more, words",
    [
        ({"encoding": "morse"}, "`morse` is not an encoding of text"),
        ({"encoding": "rot13"}, "`rot13` is not an encoding of text"),
        ({"skip": -1}, "`skip`"),
        ({"pth": "x"}, "`pth`: there is no such parameter; did you mean `path`?"),
        ({"path": "s3://bucket/it"}, "`s3://` is not supported here"),
    ],
)
def test_what_is_wrong_with_a_description_is_told(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    assert words in failing({**LINES, **more}, make_call(tmp_path)).message
