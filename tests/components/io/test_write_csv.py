"""`write_csv`: a file that appears whole, in the notation that was asked for."""

from __future__ import annotations

import datetime
import gzip
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from penstock.components.io.csv import WriteCsv, WriteCsvParams
from tests.components.harness import mistakes, run, schema

ROWS = [{"id": 1, "name": "a;b", "amount": 1.5}, {"id": 2, "name": None, "amount": None}]


def write(folder: Path, rows: Any = ROWS, connected: Any = (), name: str = "out.csv", **params: Any) -> bytes:
    run("write_csv", {"path": name, **params}, {"input": rows}, connected=connected, folder=folder)
    return (folder / name).read_bytes()


def test_rows_are_written_with_a_header(tmp_path: Path) -> None:
    assert write(tmp_path) == b"id,name,amount\n1,a;b,1.5\n2,,\n"
    assert write(tmp_path, header=False) == b"1,a;b,1.5\n2,,\n"


def test_the_notation_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    rows = [{"day": datetime.date(2024, 1, 31), "text": "x\ty", "none": None, "amount": Decimal("1.50")}]
    shape = {"input": schema(day="DATE", text="VARCHAR", none="VARCHAR", amount="DECIMAL(10,2)")}
    params = {"path": "out.csv", "delimiter": "tab", "quote": "'", "null": "-", "date_format": "%d.%m.%Y"}
    run("write_csv", params, {"input": rows}, connected=[], folder=tmp_path, schemas=shape)
    assert (tmp_path / "out.csv").read_text() == "day\ttext\tnone\tamount\n31.01.2024\t'x\ty'\t-\t1.50\n"
    run("write_csv", {**params, "decimal": ","}, {"input": rows}, connected=[], folder=tmp_path, schemas=shape)
    assert (tmp_path / "out.csv").read_text().endswith("\t1,50\n")


def test_a_decimal_comma_changes_numbers_and_nothing_else(tmp_path: Path) -> None:
    assert write(tmp_path, [{"a": 1.5, "b": "1.5"}], delimiter=";", decimal=",") == b"a;b\n1,5;1.5\n"


def test_all_values_can_be_put_in_quotes(tmp_path: Path) -> None:
    assert write(tmp_path, [{"a": 1, "b": "x"}], quote_all=True).endswith(b'"1","x"\n')


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig"])
def test_other_encodings_are_written_and_read_back(tmp_path: Path, encoding: str) -> None:
    data = write(tmp_path, [{"name": "é"}, {"name": "ü"}], encoding=encoding)
    assert data.decode(encoding) == "name\né\nü\n"
    ran = run("read_csv", {"path": "out.csv", "encoding": encoding}, connected=["main"], folder=tmp_path)
    assert ran.main == [{"name": "é"}, {"name": "ü"}]


def test_a_character_that_the_encoding_does_not_have_ends_in_an_error_and_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("old")
    with pytest.raises(ComponentFailure, match="line 3: `€` cannot be written in `iso8859-1`; hint: `encoding: utf-8`"):
        write(tmp_path, [{"a": "x"}, {"a": "€"}], encoding="latin-1")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "old"


def test_rows_are_added_to_a_file_without_a_second_header(tmp_path: Path) -> None:
    write(tmp_path, [{"a": 1}], append=True)
    assert write(tmp_path, [{"a": 2}], append=True) == b"a\n1\n2\n"
    write(tmp_path, [{"a": "é"}], name="wide.csv", encoding="utf-16", append=True)
    assert (
        write(tmp_path, [{"a": "ü"}], name="wide.csv", encoding="utf-16", append=True).decode("utf-16") == "a\né\nü\n"
    )


def test_a_failed_append_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, [{"a": "x"}], append=True, encoding="latin-1")
    with pytest.raises(ComponentFailure):
        write(tmp_path, [{"a": "y"}, {"a": "€"}], append=True, encoding="latin-1")
    assert (tmp_path / "out.csv").read_bytes() == b"a\nx\n"


def test_folders_that_are_missing_are_made(tmp_path: Path) -> None:
    assert write(tmp_path, [{"a": 1}], name="deep/er/out.csv") == b"a\n1\n"
    assert write(tmp_path, [{"a": 1}], name="deep/est/out.csv", append=True) == b"a\n1\n"


def test_a_place_that_cannot_be_written_to_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ComponentFailure, match=r"a part of `.*/file` is a file, not a folder"):
        write(tmp_path, name="file/out.csv")
    with pytest.raises(ComponentFailure, match="no permission to write in the folder `/proc/sys`") as failed:
        run("write_csv", {"path": "/proc/sys/out.csv"}, {"input": ROWS}, connected=[])
    assert failed.value.kind == "permission"
    with pytest.raises(ComponentFailure, match="is a folder, and a file is to be written"):
        run("write_csv", {"path": "."}, {"input": ROWS}, connected=[], folder=tmp_path)


def test_the_rows_go_on_through_main(tmp_path: Path) -> None:
    for params in ({}, {"append": True}):
        ran = run("write_csv", {"path": "out.csv", **params}, {"input": ROWS}, connected=["main"], folder=tmp_path)
        assert ran.main == ROWS


def test_a_packed_file_is_packed(tmp_path: Path) -> None:
    assert gzip.decompress(write(tmp_path, [{"a": 1}], name="out.csv.gz")) == b"a\n1\n"
    (mistake,) = mistakes("write_csv", {"path": "out.csv.gz", "append": True}, {"input": schema(a="BIGINT")})
    assert mistake.path == ("append",)


def test_no_rows_make_a_file_with_a_header(tmp_path: Path) -> None:
    run(
        "write_csv",
        {"path": "out.csv"},
        {"input": []},
        connected=[],
        folder=tmp_path,
        schemas={"input": schema(a="DATE")},
    )
    assert (tmp_path / "out.csv").read_text() == "a\n"


def test_it_is_part_of_a_larger_query_unless_it_needs_two_steps() -> None:
    assert WriteCsv().is_fusable(WriteCsvParams(path="a.csv"), frozenset())
    assert not WriteCsv().is_fusable(WriteCsvParams(path="a.csv"), frozenset({"main"}))
    for special in ({"append": True}, {"encoding": "cp1252"}, {"decimal": ","}):
        assert not WriteCsv().is_fusable(WriteCsvParams(path="a.csv", **special), frozenset())  # type: ignore[arg-type]


@pytest.mark.clause("J8.3")
@pytest.mark.parametrize(
    ("type_", "params"),
    [
        ("write_csv", {"encoding": "cp1252"}),
        ("write_csv", {"append": True}),
        ("write_csv", {}),
        ("write_file", {"column": "text"}),
        ("write_xml", {}),
    ],
)
def test_a_disk_that_is_full_is_an_error_and_leaves_the_old_file(tmp_path: Path, type_: str, params: Any) -> None:
    (tmp_path / "out").write_text("old")
    rows = [{"text": "x" * 1_000}] * 500
    with no_file_larger_than(300_000), pytest.raises(ComponentFailure) as failed:
        run(type_, {"path": "out", **params}, {"input": rows}, connected=[], folder=tmp_path)
    assert failed.value.kind == "disk"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "old"


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """A disk that is full, as far as any one file is concerned."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
