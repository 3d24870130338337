"""`read_csv`: what is read, what is refused, and what is said of it."""

from __future__ import annotations

import datetime
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure, PlanCall
from penstock.components.io.csv import ReadCsv, ReadCsvParams
from tests.components.harness import REGISTRY, columns, infer, run, schema

BAD = (
    "id,name,amount,day\n"
    "1,ann,10.5,2024-01-01\n"
    "2,bob,x,2024-01-02\n"
    "3,cy\n"
    '4,"two\nlines",3,2024-01-04\n'
    "5,eve,7,nodate\n"
    "6,fay,8,2024-01-06,extra\n"
    '7,"un"quoted,1,2024-01-01\n'
)
TYPES = {"id": "integer", "amount": "number", "day": "date"}


def read(folder: Path, text: str | bytes, connected: Any = ("main",), **params: Any) -> Any:
    name = params.pop("name", "it.csv")
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return run("read_csv", {"path": name, **params}, connected=connected, folder=folder)


def test_types_are_found_out_and_only_what_is_written_the_same_way_again_is_a_number(tmp_path: Path) -> None:
    text = (
        "zip,whole,real,day,moment,flag,long,mixed,nothing\n"
        "007,1,1.5,2024-01-01,2024-01-01 10:00,true,1234567890123456789,1,\n"
        "123,-2,3,2024-02-29,2024-01-02,FALSE,1,x,\n"
    )
    ran = read(tmp_path, text)
    assert {column.name: column.type for column in ran.schemas["main"]} == {
        "zip": "VARCHAR",
        "whole": "BIGINT",
        "real": "DOUBLE",
        "day": "DATE",
        "moment": "TIMESTAMP",
        "flag": "BOOLEAN",
        "long": "VARCHAR",
        "mixed": "VARCHAR",
        "nothing": "VARCHAR",
    }
    assert ran.main[1] == {
        "zip": "123",
        "whole": -2,
        "real": 3.0,
        "day": datetime.date(2024, 2, 29),
        "moment": datetime.datetime(2024, 1, 2),
        "flag": False,
        "long": "1",
        "mixed": "x",
        "nothing": None,
    }


def test_columns_are_known_before_the_run_when_the_file_is_there(tmp_path: Path) -> None:
    (tmp_path / "it.csv").write_text("id,name\n1,a\n")
    assert infer("read_csv", {"path": "it.csv"}, outputs=["main"], folder=tmp_path).outputs == {
        "main": schema(id="BIGINT", name="VARCHAR")
    }
    assert infer("read_csv", {"path": "later.csv"}, outputs=["main"], folder=tmp_path).outputs == {"main": None}
    assert columns("read_csv", {"path": str(tmp_path / "it.csv"), "types": {"id": "string"}}) == {
        "id": "VARCHAR",
        "name": "VARCHAR",
    }


def test_a_file_that_changed_is_looked_at_again(tmp_path: Path) -> None:
    assert read(tmp_path, "a\n1\n").schemas["main"] == schema(a="BIGINT")
    assert read(tmp_path, "a,b\nx,2\n").schemas["main"] == schema(a="VARCHAR", b="BIGINT")


def test_every_way_of_writing_delimited_text_is_understood(tmp_path: Path) -> None:
    text = (
        "# made by a machine\r\nnr;name;amount;day;moment\r\n"
        "1;'a;''b';1.234,50;31/01/2024;31/01/2024 13:05\r\n2;-;;;\r\n"
    )
    ran = read(
        tmp_path, text, delimiter=";", quote="'", skip=1, decimal=",", thousands=".", null=["", "-"],
        date_format="%d/%m/%Y", timestamp_format="%d/%m/%Y %H:%M",
    )  # fmt: skip
    assert ran.main == [
        {
            "nr": 1,
            "name": "a;'b",
            "amount": 1234.5,
            "day": datetime.date(2024, 1, 31),
            "moment": datetime.datetime(2024, 1, 31, 13, 5),
        },
        {"nr": 2, "name": None, "amount": None, "day": None, "moment": None},
    ]


def test_a_tabulator_can_be_called_by_its_name_and_a_delimiter_may_have_several_characters(tmp_path: Path) -> None:
    assert read(tmp_path, "a\tb\n1\t2\n", delimiter="tab").main == [{"a": 1, "b": 2}]
    assert read(tmp_path, "a||b\n1||2\n", delimiter="||").main == [{"a": 1, "b": 2}]


def test_columns_are_picked_ordered_and_typed(tmp_path: Path) -> None:
    ran = read(tmp_path, "a,b,c\n1,2,x\n", columns=["c", {"name": "a", "type": "decimal(10,2)"}])
    assert ran.main == [{"c": "x", "a": Decimal("1.00")}]


def test_the_schema_that_the_document_declares_is_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "it.csv").write_text("a,b\n1,2\n")
    declared = {"main": schema(b="VARCHAR", a="DOUBLE")}
    ran = run("read_csv", {"path": "it.csv"}, connected=["main"], folder=tmp_path, schemas=declared)
    assert ran.main == [{"b": "2", "a": 1.0}]


def test_without_a_header_columns_are_numbered_or_named(tmp_path: Path) -> None:
    assert read(tmp_path, "1,x\n", header=False).main == [{"column_1": 1, "column_2": "x"}]
    assert read(tmp_path, "1,x\n", header=False, columns=["id", "name"]).main == [{"id": 1, "name": "x"}]
    with pytest.raises(ComponentFailure, match=r"1 columns are named, and the first line of `.*` has 2 values"):
        read(tmp_path, "1,x\n", header=False, columns=["id"])


def test_names_that_are_the_same_or_missing_get_a_number(tmp_path: Path) -> None:
    assert read(tmp_path, "a,A,,a\n1,2,3,4\n").main == [{"a": 1, "A_2": 2, "column_3": 3, "a_3": 4}]


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure, match=r"has no column `nmae`; did you mean `name`\?; it has `id`, `name`"):
        read(tmp_path, "id,name\n1,a\n", columns=["nmae"])
    found = infer("read_csv", {"path": "it.csv", "types": {"nmae": "string"}}, outputs=["main"], folder=tmp_path)
    assert [(mistake.path, mistake.kind) for mistake in found.mistakes] == [(("types",), "column")]


@pytest.mark.parametrize(
    ("params", "path", "words"),
    [
        ({"types": {"a": "integr"}}, ("types", "a"), "did you mean `integer`"),
        ({"columns": ["a", "A"]}, ("columns", 1), "named twice"),
        ({"encoding": "klingon"}, ("encoding",), "no encoding `klingon`"),
        ({"decimal": ",", "thousands": ","}, ("thousands",), "cannot be the same"),
        ({"date_format": "dd.mm.yyyy"}, ("date_format",), "`dd.mm.yyyy` names no part of a date"),
    ],
)
def test_wrong_parameters_are_mistakes_before_the_run(params: Any, path: Any, words: str) -> None:
    (mistake,) = infer("read_csv", {"path": "later.csv", **params}).mistakes
    assert mistake.path == path
    assert words in mistake.message


def test_a_missing_file_is_named_with_its_whole_path(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure) as failed:
        run("read_csv", {"path": "in/nothing.csv"}, connected=["main"], folder=tmp_path)
    assert failed.value.kind == "missing_file"
    assert failed.value.message == f"there is no file `{tmp_path}/in/nothing.csv`"
    with pytest.raises(ComponentFailure, match=r"no file matches `.*/in/\*\.csv`"):
        run("read_csv", {"path": "in/*.csv"}, connected=["main"], folder=tmp_path)
    with pytest.raises(ComponentFailure, match="is a folder; hint: name a file, or a pattern"):
        run("read_csv", {"path": "."}, connected=["main"], folder=tmp_path)


def test_the_files_of_a_pattern_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, text in {"b.csv": "id,x\n2,b\n", "a.csv": "id,x\n1,a\n", "c.csv": "x,id\nc,3\n", "d.csv": ""}.items():
        (tmp_path / name).write_text(text)
    ran = run("read_csv", {"path": "*.csv", "file_column": "from"}, connected=["main"], folder=tmp_path)
    assert [(row["id"], row["x"], Path(row["from"]).name) for row in ran.main] == [
        (1, "a", "a.csv"),
        (2, "b", "b.csv"),
        (3, "c", "c.csv"),
    ]


def test_files_of_a_pattern_with_other_columns_are_refused_unless_they_are_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x\n1,a\n")
    (tmp_path / "b.csv").write_text("id,y\n2,b\n")
    with pytest.raises(ComponentFailure, match=r"b\.csv` has `y`, lacks `x`, unlike `.*a\.csv`; hint: `by_name: true`"):
        run("read_csv", {"path": "*.csv"}, connected=["main"], folder=tmp_path)
    ran = run("read_csv", {"path": "*.csv", "by_name": True}, connected=["main"], folder=tmp_path)
    assert ran.main == [{"id": 1, "x": "a", "y": None}, {"id": 2, "x": None, "y": "b"}]


def test_a_file_name_with_pattern_characters_in_it_is_the_file_of_that_name(tmp_path: Path) -> None:
    assert read(tmp_path, "a\n1\n", name="we[ird]*'.csv").main == [{"a": 1}]


def test_an_empty_file_has_no_columns_unless_they_are_named(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure, match="is empty, so its columns are not known; hint: name them in `columns`"):
        read(tmp_path, "")
    ran = read(tmp_path, "", columns=[{"name": "id", "type": "integer"}], connected=["main", "reject"])
    assert ran.outputs == {"main": [], "reject": []}
    assert ran.schemas["main"] == schema(id="BIGINT")


def test_a_file_with_only_a_header_has_columns_and_no_rows(tmp_path: Path) -> None:
    for text in ("id,name", "id,name\n", "\n\nid,name\r\n"):
        ran = read(tmp_path, text, types={"id": "integer"})
        assert (ran.main, ran.schemas["main"]) == ([], schema(id="BIGINT", name='"NULL"'))


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbfid,name\n1,\xc3\xa9\n").main == [{"id": 1, "name": "é"}]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig"])
def test_other_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    ran = read(tmp_path, "id,name\n1,é\n2,\n".encode(encoding), encoding=encoding, file_column="from")
    assert [(row["id"], row["name"]) for row in ran.main] == [(1, "é"), (2, None)]
    assert ran.main[0]["from"] == str(tmp_path / "it.csv")


def test_the_wrong_encoding_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure) as failed:
        read(tmp_path, "id,name\n1,a\n2,é\n".encode("latin-1"))
    assert failed.value.message.startswith(f"`{tmp_path}/it.csv`, line 3, column `name`: these bytes are not `utf-8`")
    assert "hint: say in `encoding` how the file is written" in failed.value.message
    with pytest.raises(ComponentFailure, match="is not written in `utf-16`"):
        read(tmp_path, b"abc", encoding="utf-16")
    with pytest.raises(ComponentFailure, match="line 2, column `name`: these bytes are not `cp1252`"):
        read(tmp_path, b"id,name\n1,\x81\n", encoding="cp1252")


def test_lines_may_end_now_in_one_way_and_now_in_another(tmp_path: Path) -> None:
    for text in ("id,name\r\n1,a\n2,b\r\n", "id,name\n1,a\r\n2,b\n", "id,name\r1,a\r2,b\r"):
        assert read(tmp_path, text).main == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_packed_files_are_unpacked(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(b"id\n1\n"), name="it.csv.gz").main == [{"id": 1}]


def test_lines_that_cannot_be_read_go_to_the_reject_port_with_their_place(tmp_path: Path) -> None:
    ran = read(tmp_path, BAD, connected=["main", "reject"], types=TYPES)
    assert [row["id"] for row in ran.main] == [1, 4]
    path = str(tmp_path / "it.csv")
    assert [tuple(row.values()) for row in ran.outputs["reject"]] == [
        ("bad_value", "`x` is not a DOUBLE", path, 3, "amount", "2,bob,x,2024-01-02"),
        ("missing_columns", "2 values for 4 columns", path, 4, None, "3,cy"),
        ("bad_value", "`nodate` is not a DATE", path, 7, "day", "5,eve,7,nodate"),
        ("too_many_columns", "5 values for 4 columns", path, 8, None, "6,fay,8,2024-01-06,extra"),
        ("bad_quotes", "a quote is not closed, or text stands beside it", path, 9, "name", '7,"un"quoted,1,2024-01-01'),
    ]
    assert ran.after["NB_LINE_REJECTED"] == 5


def test_of_several_wrong_values_in_a_line_all_are_told_in_one_reject(tmp_path: Path) -> None:
    ran = read(tmp_path, "a,b\n1,2\nx,y\n", connected=["main", "reject"], types={"a": "integer", "b": "integer"})
    (reject,) = ran.outputs["reject"]
    assert reject["error_message"] == "`a`: `x` is not a BIGINT; `b`: `y` is not a BIGINT"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,day\n1,2024-01-01\n2,2024-02-30\n", "line 3, column `day`: `2024-02-30` is not a DATE"),
        ("id,day\n1,2024-01-01\n2\n", "line 3: 1 values for 2 columns; hint: `fill_missing: true`"),
        ('id,day\n"1\n",2024-01-01,3\n', "line 2: 3 values for 2 columns"),
    ],
)
def test_without_a_reject_port_a_bad_line_is_an_error_that_names_file_line_and_column(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(ComponentFailure) as failed:
        read(tmp_path, text, types={"day": "date"})
    assert failed.value.message.startswith(f"`{tmp_path}/it.csv`, {words}")


def test_bad_lines_can_be_left_out_and_are_counted(tmp_path: Path) -> None:
    ran = read(tmp_path, BAD, types=TYPES, on_error="skip")
    assert [row["id"] for row in ran.main] == [1, 4]
    assert ran.after["NB_LINE_REJECTED"] == 5
    assert ran.said[0].startswith("5 lines were left out; the first: `")


def test_rejects_of_several_files_name_their_own_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x\n1,a\nx,b\n")
    (tmp_path / "b.csv").write_text("x,id\nc,3\nd,y\n")
    ran = run("read_csv", {"path": "*.csv", "types": {"id": "integer"}}, connected=["main", "reject"], folder=tmp_path)
    assert [(Path(row["file"]).name, row["line"], row["raw_line"]) for row in ran.outputs["reject"]] == [
        ("a.csv", 3, "x,b"),
        ("b.csv", 3, "d,y"),
    ]


def test_rejects_of_a_recoded_file_name_the_file_of_the_author(tmp_path: Path) -> None:
    text = 'id,x\n1,é\n2,"é\né"\nx,é\n'.encode("latin-1")
    ran = read(tmp_path, text, connected=["main", "reject"], types={"id": "integer"}, encoding="latin-1")
    (reject,) = ran.outputs["reject"]
    assert (reject["file"], reject["line"], reject["raw_line"]) == (str(tmp_path / "it.csv"), 5, "x,é")


def test_short_lines_can_be_filled_up(tmp_path: Path) -> None:
    assert read(tmp_path, 'a,b\n1\n"2\n",3\n', fill_missing=True, types={"a": "string"}).main == [
        {"a": "1", "b": None},
        {"a": "2\n", "b": 3},
    ]


def test_a_huge_field_is_refused_with_a_way_out(tmp_path: Path) -> None:
    text = f"id,text\n1,{'x' * 3_000_000}\n2,b\n"
    with pytest.raises(
        ComponentFailure, match=r"line 2: the line is longer than `max_line_bytes` \(2097152\); hint: raise"
    ):
        read(tmp_path, text)
    assert [len(row["text"]) for row in read(tmp_path, text, max_line_bytes=4_000_000).main] == [3_000_000, 1]


def test_a_value_beyond_the_sample_that_does_not_fit_is_an_error_with_a_hint(tmp_path: Path) -> None:
    text = "id\n1\n2\nthree\n"
    with pytest.raises(
        ComponentFailure, match=r"line 4, column `id`: `three` is not a BIGINT; hint: give the column another"
    ):
        read(tmp_path, text, sample=2)
    assert [row["id"] for row in read(tmp_path, text, sample=-1).main] == ["1", "2", "three"]


def test_it_is_part_of_a_larger_query_only_when_no_line_can_be_refused() -> None:
    component = REGISTRY.get("read_csv")
    assert isinstance(component, ReadCsv)
    main, both = frozenset({"main"}), frozenset({"main", "reject"})
    assert component.is_fusable(ReadCsvParams(path="a.csv"), main)
    assert not component.is_fusable(ReadCsvParams(path="a.csv"), both)
    assert not component.is_fusable(ReadCsvParams(path="a.csv", on_error="skip"), main)
    assert not component.is_fusable(ReadCsvParams(path="a.csv", encoding="cp1252"), main)


def test_the_query_has_its_columns_written_in_it(tmp_path: Path) -> None:
    (tmp_path / "it.csv").write_text("id,name\n1,a\n")
    selects = ReadCsv().selects(ReadCsvParams(path="it.csv"), {}, PlanCall(tmp_path, frozenset({"main"})))
    assert "'id': 'BIGINT'" in selects["main"]
    assert "sample_size := 1" in selects["main"]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_number_with_a_fraction_is_no_whole_number(tmp_path: Path, encoding: str) -> None:
    text = 'id,n,price\n1,7,1.5\n2,9.95,2.5\n3,"x\ny",cheap\n4,1e3,3.5\n5,7.0,4.5\n7,,6.5\n'
    params: dict[str, Any] = {"types": {"n": "integer", "price": "decimal(6,1)"}, "encoding": encoding}
    ran = read(tmp_path, text, connected=("main", "reject"), **params)
    assert [(row["id"], row["n"]) for row in ran.main] == [(1, 7), (4, 1000), (5, 7), (7, None)]
    rejects = [(row["line"], row["column"], row["error_message"], row["raw_line"]) for row in ran.outputs["reject"]]
    assert rejects == [
        (3, "n", "`9.95` is not a BIGINT", "2,9.95,2.5"),
        (4, "n", "`n`: `x…` is not a BIGINT; `price`: `cheap` is not a DECIMAL", '3,"x\ny",cheap'),
    ]
    assert ran.after["NB_LINE_REJECTED"] == 2
    with pytest.raises(ComponentFailure, match=r"line 3, column `n`: `9.95` is not a BIGINT \(2 lines in all\)"):
        read(tmp_path, text, **params)


def test_a_date_that_is_written_in_another_way_is_told_how_it_would_be(tmp_path: Path) -> None:
    wanted = r"`2024-01-31` is not a DATE written as `%d\.%m\.%Y`"
    with pytest.raises(ComponentFailure, match=wanted):
        read(tmp_path, "day\n2024-01-31\n", types={"day": "date"}, date_format="%d.%m.%Y")


@pytest.mark.parametrize("name", ["it.csv", "it.csv.gz"])
def test_a_line_in_another_encoding_is_kept_whole_with_its_bytes(tmp_path: Path, name: str) -> None:
    data = "id,name,mail\n1,ann,a@x\n2,José,j@x\n3,cy,c@x\n".encode("latin-1")
    text = gzip.compress(data) if name.endswith(".gz") else data
    ran = read(tmp_path, text, connected=("main", "reject"), name=name, types={"id": "integer"})
    assert [row["id"] for row in ran.main] == [1, 3]
    (reject,) = ran.outputs["reject"]
    assert (reject["error_code"], reject["line"], reject["raw_line"]) == ("bad_encoding", 3, r"2,Jos\xe9,j@x")
