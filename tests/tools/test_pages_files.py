"""Files, and row groups of Parquet files, as collections that are read page by page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.kernel.values import JsonMap
from penstock.tools.base import ToolFailure
from penstock.tools.pages import files as pages_files
from tests.tools.paging import Collection, all_of, check, failing, played
from tests.tools.support import make_call


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def names(tmp_path: Path, **description: Any) -> list[str]:
    found = all_of({"kind": "files", **description}, make_call(tmp_path), 2)
    return [os.path.relpath(item["path"], tmp_path) for item in found]


@pytest.mark.clause("F2.1")
@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_files_come_in_the_order_of_their_paths(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_files, "AT_ONCE", 2)
    (tmp_path / "in").mkdir()
    touch(tmp_path, *(f"in/{n}.csv" for n in reversed(range(count))))
    call = make_call(tmp_path)

    async def scene() -> None:
        collection = Collection({"kind": "files", "path": "in/*.csv"}, call)
        reads = await collection.walk(2)
        items = [item for read in reads for item in read.items]
        assert [item["name"] for item in items] == [f"{n}.csv" for n in range(count)]
        assert [key for read in reads for key in read.page.keys or ()] == [item["path"] for item in items]
        await collection.check(items)

    played(call, scene)


def test_an_element_says_what_is_known_of_the_file(tmp_path: Path) -> None:
    touch(tmp_path, "a.csv")
    os.utime(tmp_path / "a.csv", (1_700_000_000, 1_700_000_000.25))
    assert all_of({"kind": "files", "path": "*"}, make_call(tmp_path)) == [
        {"path": str(tmp_path / "a.csv"), "name": "a.csv", "size": 5, "modified": "2023-11-14T22:13:20.250Z"}
    ]


def test_patterns_folders_and_single_files(tmp_path: Path) -> None:
    touch(tmp_path, "a.csv", "b.txt", "sub/c.csv", "sub/deep/d.csv", ".hidden.csv", "[x].csv", "sub/deep/e.txt")
    (tmp_path / "folder.csv").mkdir()
    assert names(tmp_path, path="*.csv") == ["[x].csv", "a.csv"]
    assert names(tmp_path, path="*.csv", recursive=True) == ["[x].csv", "a.csv", "sub/c.csv", "sub/deep/d.csv"]
    assert names(tmp_path, path="**/*.csv") == ["[x].csv", "a.csv", "sub/c.csv", "sub/deep/d.csv"]
    assert names(tmp_path, path="sub/*/?.csv") == ["sub/deep/d.csv"]
    assert names(tmp_path, path="sub") == ["sub/c.csv"]
    assert names(tmp_path, path="sub/", recursive=True) == ["sub/c.csv", "sub/deep/d.csv", "sub/deep/e.txt"]
    assert names(tmp_path, path="[x].csv") == ["[x].csv"]
    assert names(tmp_path, path=str(tmp_path / "sub" / "*.csv")) == ["sub/c.csv"]
    assert names(tmp_path, path="*.nothing") == []


@pytest.mark.clause("F3.1")
def test_files_that_are_moved_away_or_added_do_not_change_a_page_that_was_read(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{name}.csv" for name in "bdfh"))
    call = make_call(tmp_path)
    collection = Collection({"kind": "files", "path": "*.csv"}, call)

    async def scene() -> None:
        reads = await collection.walk(2)
        touch(tmp_path, "a.csv", "c.csv", "z.csv")
        (tmp_path / "b.csv").unlink()
        (tmp_path / "h.csv").rename(tmp_path / "h.done")
        for read in reads:
            assert (await collection.again(read)).items == read.items

    played(call, scene)


def test_what_is_wrong_with_files_is_told(tmp_path: Path) -> None:
    call = make_call(tmp_path)
    for path in ("not-there.csv", "not-there/*.csv"):
        failure = failing({"kind": "files", "path": path}, call)
        assert failure.kind == "not_found"
        assert "not-there" in failure.message
    assert failing({"kind": "files", "path": "s3://bucket/*"}, call).kind == "unsupported_scheme"
    assert "`path`: is needed" in failing({"kind": "files"}, call).message
    with open(os.fsencode(tmp_path) + b"/\xff.csv", "w"):
        assert failing({"kind": "files", "path": "*.csv"}, call).kind == "decode"


def test_many_files(tmp_path: Path) -> None:
    for n in range(700):
        (tmp_path / f"{n:05d}.json").touch()
    assert len(all_of({"kind": "files", "path": "*.json"}, make_call(tmp_path), 300)) == 700


# ---- row groups


def parquet(path: Path, rows: int) -> None:
    path.parent.mkdir(exist_ok=True)
    duckdb.sql(f"SELECT range AS id, 'x' AS name FROM range({rows})").write_parquet(str(path), row_group_size=2048)


@pytest.mark.clause("F2.1")
def test_row_groups_of_all_files_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_files, "GROUPS_AT_ONCE", 2)
    parquet(tmp_path / "in" / "a.parquet", 5000)
    parquet(tmp_path / "in" / "b.parquet", 10)
    parquet(tmp_path / "in" / "c.parquet", 4096)
    parquet(tmp_path / "in" / "empty.parquet", 0)
    expected: list[JsonMap] = [
        {"path": str(tmp_path / "in" / f"{name}.parquet"), "row_group": group, "rows": rows, "first_row": first}
        for name, group, rows, first in (
            ("a", 0, 2048, 0),
            ("a", 1, 2048, 2048),
            ("a", 2, 904, 4096),
            ("b", 0, 10, 0),
            ("c", 0, 2048, 0),
            ("c", 1, 2048, 2048),
        )
    ]
    check(tmp_path, {"kind": "row_groups", "path": "in/*.parquet"}, expected, (1, 4, 1000))
    check(tmp_path, {"kind": "row_groups", "path": "in/a.parquet"}, expected[:3], (2,))
    check(tmp_path, {"kind": "row_groups", "path": "in/empty.parquet"}, [], (2,))
    first = expected[1]
    rows = duckdb.execute(
        "SELECT min(id), max(id) FROM read_parquet($path, file_row_number = true) "
        "WHERE file_row_number >= $first AND file_row_number < $first + $rows",
        {"path": first["path"], "first": first["first_row"], "rows": first["rows"]},
    ).fetchall()
    assert rows == [(2048, 4095)]


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "a.parquet")
    call = make_call(tmp_path)
    failure = failing({"kind": "row_groups", "path": "*.parquet"}, call)
    assert str(tmp_path / "a.parquet") in failure.message
    assert not failure.retryable
    assert failing({"kind": "row_groups", "path": "b.parquet"}, call).kind == "not_found"


def test_row_groups_of_a_file_that_was_written_anew_are_still_those_of_the_page(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", 5000)
    call = make_call(tmp_path)
    collection = Collection({"kind": "row_groups", "path": "a.parquet"}, call)

    async def scene() -> None:
        first, _ = await collection.walk(2)
        parquet(tmp_path / "a.parquet", 10)
        assert (await collection.again(first)).items == first.items

    played(call, scene)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    from penstock.kernel.errors import Refused
    from penstock.tools.pages.base import open_pages

    with pytest.raises(Refused, match="a loop cannot run over `line`; did you mean `lines`"):
        open_pages({"kind": "line"}, make_call(tmp_path))
    with pytest.raises(ToolFailure):
        open_pages({"kind": "lines"}, make_call(tmp_path))
