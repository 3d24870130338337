"""`read_parquet`, `write_parquet`, `read_arrow`, `write_arrow`."""

from __future__ import annotations

import datetime
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import infer, run, schema

ROWS = [
    {"id": 1, "name": "é", "amount": Decimal("1.50"), "day": datetime.date(2024, 1, 31), "tags": ["a"]},
    {"id": 2, "name": None, "amount": None, "day": None, "tags": None},
]
SHAPE = schema(id="BIGINT", name="VARCHAR", amount="DECIMAL(10,2)", day="DATE", tags="VARCHAR[]")


def write(type: str, folder: Path, name: str, **params: Any) -> None:
    run(type, {"path": name, **params}, {"input": ROWS}, connected=[], folder=folder, schemas={"input": SHAPE})


def test_parquet_gives_back_rows_and_types(tmp_path: Path) -> None:
    write("write_parquet", tmp_path, "out/it.parquet")
    ran = run("read_parquet", {"path": "out/it.parquet"}, connected=["main"], folder=tmp_path)
    assert (ran.main, ran.schemas["main"]) == (ROWS, SHAPE)
    assert infer("read_parquet", {"path": "out/it.parquet"}, folder=tmp_path).outputs["main"] == SHAPE
    assert infer("read_parquet", {"path": "out/no.parquet"}, folder=tmp_path).outputs["main"] is None


def test_columns_of_parquet_are_picked(tmp_path: Path) -> None:
    write("write_parquet", tmp_path, "it.parquet")
    params = {"path": "*.parquet", "columns": ["name", "id"], "file_column": "from"}
    ran = run("read_parquet", params, connected=["main"], folder=tmp_path)
    assert ran.main[0] == {"name": "é", "id": 1, "from": str(tmp_path / "it.parquet")}
    with pytest.raises(ComponentFailure, match=r"has no column `nmae`; did you mean `name`\?"):
        run("read_parquet", {"path": "it.parquet", "columns": ["nmae"]}, connected=["main"], folder=tmp_path)
    (mistake,) = infer("read_parquet", {"path": "it.parquet", "columns": ["nmae"]}, folder=tmp_path).mistakes
    assert (mistake.path, mistake.kind) == (("columns",), "column")


def test_folders_of_a_partition_are_columns(tmp_path: Path) -> None:
    write("write_parquet", tmp_path, "year=2024/it.parquet")
    params = {"path": "**/*.parquet", "partitions": True, "columns": ["id", "year"]}
    ran = run("read_parquet", params, connected=["main"], folder=tmp_path)
    assert ran.main == [{"id": 1, "year": 2024}, {"id": 2, "year": 2024}]


def test_what_is_no_parquet_is_an_error_that_says_so(tmp_path: Path) -> None:
    for data, words in {b"": "is empty", b"id\n1\n": "is not a Parquet file", b"PAR1xxxx": "is cut off"}.items():
        (tmp_path / "it.parquet").write_bytes(data)
        with pytest.raises(ComponentFailure, match=words) as failed:
            run("read_parquet", {"path": "it.parquet"}, connected=["main"], folder=tmp_path)
        assert failed.value.kind == "format"


def test_an_older_parquet_file_stays_when_the_new_one_fails(tmp_path: Path) -> None:
    write("write_parquet", tmp_path, "it.parquet")
    before = (tmp_path / "it.parquet").read_bytes()
    with pytest.raises(ComponentFailure):
        run(
            "write_parquet",
            {"path": "it.parquet/x"},
            {"input": ROWS},
            connected=[],
            folder=tmp_path,
            schemas={"input": SHAPE},
        )
    assert (tmp_path / "it.parquet").read_bytes() == before


@pytest.mark.parametrize("params", [{}, {"format": "stream"}, {"compression": "zstd"}])
def test_arrow_gives_back_rows(tmp_path: Path, params: Any) -> None:
    write("write_arrow", tmp_path, "it.arrow", **params)
    ran = run("read_arrow", {"path": "it.arrow"}, connected=["main"], folder=tmp_path)
    assert (ran.main, ran.schemas["main"]) == (ROWS, SHAPE)
    ran = run("read_arrow", {"path": "it.arrow", "columns": ["name"]}, connected=["main"], folder=tmp_path)
    assert ran.main == [{"name": "é"}, {"name": None}]
    with pytest.raises(ComponentFailure, match=r"did you mean `name`\?"):
        run("read_arrow", {"path": "it.arrow", "columns": ["nmae"]}, connected=["main"], folder=tmp_path)


def test_what_is_no_arrow_is_an_error_that_says_so(tmp_path: Path) -> None:
    for data in (b"", b"id,name\n1,a\n", b"ARROW1\0\0xxxx"):
        (tmp_path / "it.arrow").write_bytes(data)
        with pytest.raises(ComponentFailure, match="is not an Arrow file or stream"):
            run("read_arrow", {"path": "it.arrow"}, connected=["main"], folder=tmp_path)


def test_without_the_package_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "it.arrow").write_bytes(b"x")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ComponentFailure, match="need the package `pyarrow`; hint: `pip install") as failed:
        run("read_arrow", {"path": "it.arrow"}, connected=["main"], folder=tmp_path)
    assert failed.value.kind == "missing_package"
