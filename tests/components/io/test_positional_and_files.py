"""`read_positional`, `write_positional`, `read_file`, `write_file`."""

from __future__ import annotations

import datetime
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import columns, mistakes, run, schema

COLUMNS = [
    {"name": "id", "width": 4},
    {"name": "name", "width": 6},
    {"name": "day", "width": 8, "type": "date", "format": "%Y%m%d"},
    {"name": "amount", "width": 8, "type": "decimal(8,2)"},
]
TEXT = "   1ada   20240131   12.50\n   2bob\n"


def read(folder: Path, text: str | bytes, connected: Any = ("main",), **params: Any) -> Any:
    (folder / "it.txt").write_bytes(text.encode() if isinstance(text, str) else text)
    return run("read_positional", {"path": "it.txt", "columns": COLUMNS, **params}, connected=connected, folder=folder)


def test_values_are_where_they_stand(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT).main == [
        {"id": 1, "name": "ada", "day": datetime.date(2024, 1, 31), "amount": Decimal("12.50")},
        {"id": 2, "name": "bob", "day": None, "amount": None},
    ]


def test_a_column_may_begin_anywhere_and_types_may_be_known_before_the_run(tmp_path: Path) -> None:
    places = [
        {"name": "b", "width": 1, "start": 3, "type": "string"},
        {"name": "a", "width": 1, "start": 1, "type": "integer"},
    ]
    assert read(tmp_path, "1-2\n", columns=places).main == [{"b": "2", "a": 1}]
    assert columns("read_positional", {"path": "x", "columns": places}) == {"b": "VARCHAR", "a": "BIGINT"}
    assert columns("read_positional", {"path": "x", "columns": COLUMNS}) is None


def test_the_numbers_and_nulls_of_other_countries_are_understood(tmp_path: Path) -> None:
    places = [{"name": "a", "width": 8, "type": "number"}, {"name": "b", "width": 3}]
    ran = read(tmp_path, "1.234,50n/a\n", columns=places, decimal=",", thousands=".", null=["", "n/a"])
    assert ran.main == [{"a": 1234.5, "b": None}]


def test_lines_that_cannot_be_read_are_rejected_with_their_place(tmp_path: Path) -> None:
    text = TEXT + "   3cy    2024XX31    1.00\n   4dee   20240101    1.00 and more\n   5" + "é"
    ran = read(tmp_path, text.encode("latin-1"), ["main", "reject"])
    assert [row["id"] for row in ran.main] == [1, 2]
    path = str(tmp_path / "it.txt")
    assert [(row["error_code"], row["error_message"], row["file"], row["line"], row["column"]) for row in ran.outputs["reject"]] == [
        ("bad_value", "`2024XX31` is not a DATE written as `%Y%m%d`", path, 3, "day"),
        ("bad_row", "there is text beyond column 26, where the last value ends", path, 4, None),
        ("bad_row", "these bytes are not `utf-8`", path, 5, None),
    ]  # fmt: skip
    with pytest.raises(
        ComponentFailure,
        match=r"it\.txt`, line 3, column `day`: `2024XX31` is not a DATE written as `%Y%m%d` \(3 in all\)",
    ):
        read(tmp_path, text.encode("latin-1"))
    ran = read(tmp_path, text.encode("latin-1"), on_error="skip")
    assert (len(ran.main), ran.after["NB_LINE_REJECTED"]) == (2, 3)


def test_a_line_that_ends_too_early_can_be_refused(tmp_path: Path) -> None:
    ran = read(tmp_path, TEXT, ["main", "reject"], fill_missing=False)
    assert [row["error_message"] for row in ran.outputs["reject"]] == [
        "the line ends at column 7, before the last value does at 26"
    ]


def test_a_whole_number_is_not_rounded(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure, match=r"`1\.5` is not a BIGINT"):
        read(tmp_path, "1.5\n", columns=[{"name": "a", "width": 3, "type": "integer"}])


def test_encodings_skipped_lines_and_packed_files(tmp_path: Path) -> None:
    name = [{"name": "a", "width": 3}]
    assert read(tmp_path, "header\né\n".encode("utf-16"), columns=name, encoding="utf-16", skip=1).main == [{"a": "é"}]
    (tmp_path / "it.txt.gz").write_bytes(gzip.compress(b"abc\n"))
    ran = run("read_positional", {"path": "it.txt.gz", "columns": name}, connected=["main"], folder=tmp_path)
    assert ran.main == [{"a": "abc"}]
    assert read(tmp_path, "", ["main", "reject"], columns=name).outputs == {"main": [], "reject": []}


def test_rows_are_written_in_columns_of_fixed_width_and_read_back(tmp_path: Path) -> None:
    rows = [{"id": 1, "name": "ada", "day": datetime.date(2024, 1, 31), "amount": Decimal("-12.50")}]
    places = [
        {"name": "id", "width": 4},
        {"name": "name", "width": 6},
        {"name": "day", "width": 8, "format": "%Y%m%d"},
        {"name": "amount", "width": 8, "pad": "0"},
    ]
    shape = {"input": schema(id="BIGINT", name="VARCHAR", day="DATE", amount="DECIMAL(8,2)")}
    ran = run(
        "write_positional", {"path": "it.txt", "columns": places}, {"input": rows}, folder=tmp_path, schemas=shape
    )
    assert (tmp_path / "it.txt").read_text() == "   1ada   20240131-0012.50\n"
    assert ran.main == rows
    assert (
        run("read_positional", {"path": "it.txt", "columns": COLUMNS}, connected=["main"], folder=tmp_path).main == rows
    )
    params = {"path": "it.txt", "columns": places[:2], "append": True, "header": True}
    run("write_positional", params, {"input": rows}, folder=tmp_path, schemas=shape)
    assert (tmp_path / "it.txt").read_text().splitlines()[1] == "   1ada   "


def test_a_value_that_is_too_long_is_an_error_or_is_cut(tmp_path: Path) -> None:
    params: dict[str, Any] = {"path": "it.txt", "columns": [{"name": "a", "width": 3}], "header": True}
    with pytest.raises(ComponentFailure, match="row 2: `longer` is longer than the 3 characters of `a`"):
        run("write_positional", params, {"input": [{"a": "ok"}, {"a": "longer"}]}, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    run(
        "write_positional",
        {**params, "overflow": "cut", "encoding": "cp1252"},
        {"input": [{"a": "löng"}]},
        folder=tmp_path,
    )
    assert (tmp_path / "it.txt").read_bytes() == b"a  \nl\xf6n\n"
    (mistake,) = mistakes("write_positional", params, {"input": schema(aa="VARCHAR")})
    assert mistake.path == ("columns", 0, "name")


def test_a_file_is_one_row(tmp_path: Path) -> None:
    (tmp_path / "it.txt").write_bytes(b"\xef\xbb\xbfone\ntwo")
    ran = run("read_file", {"path": "*.txt"}, folder=tmp_path)
    assert ran.main == [{"path": str(tmp_path / "it.txt"), "size": 10, "content": "one\ntwo"}]
    ran = run("read_file", {"path": "it.txt", "content": "bytes"}, folder=tmp_path)
    assert ran.main[0]["content"] == b"\xef\xbb\xbfone\ntwo"
    ran = run("read_file", {"path": "it.txt", "lines": True}, folder=tmp_path)
    assert [(row["line"], row["text"]) for row in ran.main] == [(1, "one"), (2, "two")]


def test_text_of_another_encoding_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "it.txt").write_bytes(b"a\nb\xe9\n")
    with pytest.raises(ComponentFailure, match="is not written in `utf-8` at byte 3; hint: another `encoding`, or"):
        run("read_file", {"path": "it.txt"}, folder=tmp_path)
    with pytest.raises(ComponentFailure, match="line 2: these bytes are not `utf-8`"):
        run("read_file", {"path": "it.txt", "lines": True}, folder=tmp_path)
    assert run("read_file", {"path": "it.txt", "encoding": "latin-1"}, folder=tmp_path).main[0]["content"] == "a\nbé\n"


def test_text_and_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    rows = [{"content": "é"}, {"content": None}, {"content": "b"}]
    ran = run("write_file", {"path": "x/out.txt", "end": ";"}, {"input": rows}, folder=tmp_path)
    assert (tmp_path / "x/out.txt").read_text() == "é;;b;"
    assert ran.result == {"path": str(tmp_path / "x/out.txt"), "bytes": 6}
    assert ran.main == rows
    run("write_file", {"path": "b.bin", "column": "b"}, {"input": [{"b": b"\x00\xff"}]}, folder=tmp_path)
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\xff"
    for _ in range(2):
        run("write_file", {"path": "flag", "content": "done\n", "append": True}, connected=[], folder=tmp_path)
    assert (tmp_path / "flag").read_text() == "done\ndone\n"


def test_there_must_be_something_to_write(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure, match="there is nothing to write"):
        run("write_file", {"path": "flag"}, connected=[], folder=tmp_path)
    with pytest.raises(ComponentFailure, match=r"the input has no column `content`; did you mean `contents`\?"):
        run("write_file", {"path": "flag"}, {"input": [{"contents": "x"}]}, connected=[], folder=tmp_path)
    assert [
        one.path for one in mistakes("write_file", {"path": "x", "content": "y"}, {"input": schema(content="VARCHAR")})
    ] == [("content",)]
    assert list(tmp_path.iterdir()) == []
