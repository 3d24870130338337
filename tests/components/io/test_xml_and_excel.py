"""`read_xml`, `write_xml`, `read_excel`, `write_excel`."""

from __future__ import annotations

import datetime
import re
import sys
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from penstock.components.io.excel import Area, area_of, letters
from tests.components.harness import columns, mistakes, run, schema

XML = """<?xml version="1.0"?>
<s:shop xmlns:s="urn:shop">
  <order id="1" day="2024-01-31"><customer vip="true"><name>Ada &amp; Co</name></customer><tag>a</tag><tag>b</tag>
    <total cur="EUR">12.50</total></order>
  <order id="2"><customer><name/></customer><total cur="USD">3</total></order>
</s:shop>
"""
PLACES = {
    "id": "@id",
    "name": "customer/name",
    "vip": "customer/@vip",
    "total": {"path": "total", "type": "decimal(8,2)"},
    "tags": {"path": "tag", "many": True},
}


def read(folder: Path, text: str | bytes, connected: Any = ("main",), **params: Any) -> Any:
    (folder / "it.xml").write_bytes(text.encode() if isinstance(text, str) else text)
    return run("read_xml", {"path": "it.xml", "rows": "order", **params}, connected=connected, folder=folder)


@pytest.mark.parametrize("rows", ["order", "/shop/order", "/s:shop/order", "//order", "shop/order", "/*/order"])
def test_elements_are_rows_and_paths_are_columns(tmp_path: Path, rows: str) -> None:
    assert read(tmp_path, XML, rows=rows, columns=PLACES).main == [
        {"id": 1, "name": "Ada & Co", "vip": True, "total": Decimal("12.50"), "tags": ["a", "b"]},
        {"id": 2, "name": None, "vip": None, "total": Decimal("3.00"), "tags": None},
    ]


def test_without_columns_the_attributes_and_children_are(tmp_path: Path) -> None:
    ran = read(tmp_path, '<a><r id="1"><x>5</x><id>7</id></r><r>text</r></a>', rows="r")
    assert ran.main == [
        {"id": 1, "x": 5, "id_2": 7, "text": None},
        {"id": None, "x": None, "id_2": None, "text": "text"},
    ]


def test_columns_are_known_before_the_run_when_their_types_are(tmp_path: Path) -> None:
    params = {"path": "x", "rows": "r", "columns": {"a": {"path": "a", "type": "date"}, "b": "b"}}
    assert columns("read_xml", params) is None
    assert columns("read_xml", {**params, "types": {"b": "integer"}}) == {"a": "DATE", "b": "BIGINT"}


def test_rows_with_wrong_values_are_rejected_with_their_line(tmp_path: Path) -> None:
    text = "<a>\n<r><d>2024-01-01</d></r>\n<r><d>01.02.2024</d></r>\n</a>"
    params: dict[str, Any] = {"rows": "r", "columns": {"d": {"path": "d", "type": "date"}}}
    ran = read(tmp_path, text, ["main", "reject"], **params)
    assert ran.main == [{"d": datetime.date(2024, 1, 1)}]
    assert [(row["line"], row["column"], row["error_message"], row["raw_line"]) for row in ran.outputs["reject"]] == [
        (3, "d", "`01.02.2024` is not a DATE", '{"d": "01.02.2024"}')
    ]
    with pytest.raises(ComponentFailure, match=r"it\.xml`, line 3, column `d`: `01\.02\.2024` is not a DATE"):
        read(tmp_path, text, **params)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<a><r></a>", r"line 1, column \d+: this is not XML: mismatched tag"),
        ("", "this is not XML: no element found"),
        ("id,name\n", "this is not XML: syntax error"),
    ],
)
def test_what_is_no_xml_is_an_error_that_names_the_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ComponentFailure, match=words):
        read(tmp_path, text)


def test_a_document_without_rows_gives_none_and_says_so(tmp_path: Path) -> None:
    ran = read(tmp_path, "<a/>")
    assert ran.main == []
    assert "has no elements `order` with anything in them" in ran.said[0]


def test_documents_with_entities_are_refused(tmp_path: Path) -> None:
    laughs = '<!DOCTYPE a [<!ENTITY l "lol"><!ENTITY m "&l;&l;&l;&l;">]><a><order>&m;</order></a>'
    outside = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a><order>&x;</order></a>'
    for text in (laughs, outside):
        with pytest.raises(
            ComponentFailure, match=r"line 1: it declares the entity `[lx]`, and documents with entities"
        ) as failed:
            read(tmp_path, text)
        assert failed.value.kind == "refused"
    deep = "<a>" * 2_000 + "</a>" * 2_000
    with pytest.raises(ComponentFailure, match="nested more than 1000 deep"):
        read(tmp_path, deep)


def test_the_encoding_is_the_one_the_document_names(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="{}"?><a><order>é</order></a>'
    for encoding in ("iso-8859-1", "utf-16", "windows-1252"):
        assert read(tmp_path, text.format(encoding).encode(encoding)).main == [{"text": "é"}]
    with pytest.raises(ComponentFailure, match="this is not XML"):
        read(tmp_path, "<a><order>é</order></a>".encode("latin-1"))


def test_rows_are_written_as_xml_and_read_back(tmp_path: Path) -> None:
    rows = [{"id": 1, "name": 'Ada & "Co" <x>', "total": 12.5}, {"id": 2, "name": None, "total": None}]
    params = {"path": "out.xml", "root": "orders", "row": "order"}
    places = {"id": "@id", "name": "customer/name", "total": "total"}
    ran = run("write_xml", {**params, "columns": places}, {"input": rows}, folder=tmp_path)
    assert ran.main == rows
    assert (tmp_path / "out.xml").read_text() == (
        '<?xml version="1.0" encoding="utf-8"?>\n<orders>\n'
        '  <order id="1"><customer><name>Ada &amp; "Co" &lt;x&gt;</name></customer><total>12.5</total></order>\n'
        '  <order id="2"/>\n</orders>\n'
    )
    back = {"path": "out.xml", "rows": "/orders/order", "columns": places}
    assert run("read_xml", back, connected=["main"], folder=tmp_path).main == rows


def test_characters_that_the_encoding_does_not_have_are_references(tmp_path: Path) -> None:
    run("write_xml", {"path": "out.xml", "encoding": "ascii"}, {"input": [{"a": "é"}]}, folder=tmp_path)
    assert b"<a>&#233;</a>" in (tmp_path / "out.xml").read_bytes()
    run(
        "write_xml",
        {"path": "out.xml", "encoding": "utf-16", "namespace": "urn:x"},
        {"input": [{"a": "é"}]},
        folder=tmp_path,
    )
    ran = run("read_xml", {"path": "out.xml", "rows": "row"}, connected=["main"], folder=tmp_path)
    assert ran.main == [{"a": "é"}]


def test_what_xml_cannot_hold_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure, match="row 1 has a control character, which XML cannot hold"):
        run("write_xml", {"path": "out.xml"}, {"input": [{"a": "\x01"}]}, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    (mistake,) = mistakes("write_xml", {"path": "out.xml"}, {"input": schema(**{"a b": "VARCHAR"})})
    assert "`a b` cannot be the name of an XML element" in mistake.message
    (mistake,) = mistakes("write_xml", {"path": "out.xml", "columns": {"b": "b"}}, {"input": schema(a="VARCHAR")})
    assert (mistake.path, mistake.kind) == (("columns",), "column")
    (mistake,) = mistakes("write_xml", {"path": "out.xml", "root": "1"}, {"input": schema(a="VARCHAR")})
    assert mistake.path == ("root",)


def sheet(path: Path, rows: list[list[Any]], name: str = "Sheet1") -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = name
    for row in rows:
        book.active.append(row)
    book.create_sheet("Other").append(["x"])
    book.save(path)


TABLE: list[list[Any]] = [
    ["id", "name", "amount", "day", None],
    [1, "ada", 1.5, datetime.datetime(2024, 1, 31), None],
    [None, None, None, None, None],
    [2, 7, 2, datetime.datetime(2024, 2, 1, 12, 30), None],
]


def excel(folder: Path, rows: list[list[Any]], connected: Any = ("main",), **params: Any) -> Any:
    sheet(folder / "it.xlsx", rows)
    return run("read_excel", {"path": "it.xlsx", **params}, connected=connected, folder=folder)


def test_cells_are_rows_with_the_types_they_have(tmp_path: Path) -> None:
    ran = excel(tmp_path, TABLE)
    assert ran.schemas["main"] == schema(id="BIGINT", name="VARCHAR", amount="DOUBLE", day="TIMESTAMP")
    assert ran.main == [
        {"id": 1, "name": "ada", "amount": 1.5, "day": datetime.datetime(2024, 1, 31)},
        {"id": 2, "name": "7", "amount": 2.0, "day": datetime.datetime(2024, 2, 1, 12, 30)},
    ]


def test_a_cell_with_a_fraction_is_no_whole_number(tmp_path: Path) -> None:
    ran = excel(tmp_path, [["n"], [7], [9.95], [8.0]], connected=("main", "reject"), types={"n": "integer"})
    assert [row["n"] for row in ran.main] == [7, 8]
    assert [(row["line"], row["error_message"]) for row in ran.outputs["reject"]] == [(3, "`9.95` is not a BIGINT")]


def test_a_formula_whose_value_was_never_saved_is_not_read_as_nothing(tmp_path: Path) -> None:
    rows = [["id", "total"], [1, 5], [2, "=1+1"], [3, None]]
    ran = excel(tmp_path, rows, connected=("main", "reject"))
    assert ran.main == [{"id": 1, "total": 5}, {"id": 3, "total": None}]
    (reject,) = ran.outputs["reject"]
    assert (reject["line"], reject["column"]) == (3, None)
    assert "the cell in column B is the formula `=1+1`, whose value was never saved" in reject["error_message"]
    with pytest.raises(ComponentFailure, match=r"line 3: .*`=1\+1`, whose value was never saved"):
        excel(tmp_path, rows)


def test_a_formula_whose_value_is_an_empty_text_is_read_as_nothing(tmp_path: Path) -> None:
    sheet(tmp_path / "made.xlsx", [["id", "note"], [1, "=A2"], [2, "x"]])
    with zipfile.ZipFile(tmp_path / "made.xlsx") as made, zipfile.ZipFile(tmp_path / "it.xlsx", "w") as saved:
        for name in made.namelist():
            text = made.read(name)
            if name == "xl/worksheets/sheet1.xml":
                text, changed = re.subn(rb'<c r="B2"[^>]*>.*?</c>', b'<c r="B2" t="str"><f>A2</f><v></v></c>', text)
                assert changed == 1
            saved.writestr(name, text)
    ran = run("read_excel", {"path": "it.xlsx"}, connected=("main", "reject"), folder=tmp_path)
    assert (ran.main, ran.outputs["reject"]) == ([{"id": 1, "note": None}, {"id": 2, "note": "x"}], [])


def test_sheets_ranges_and_columns_are_picked(tmp_path: Path) -> None:
    assert excel(tmp_path, TABLE, columns=["name", {"name": "id", "type": "string"}]).main[0] == {
        "name": "ada",
        "id": "1",
    }
    assert excel(tmp_path, TABLE, range="B1:B2").main == [{"name": "ada"}]
    assert excel(tmp_path, TABLE, range="A2:B", header=False).main == [{"A": 1, "B": "ada"}, {"A": 2, "B": "7"}]
    for name in ("Other", 2, "2"):
        assert excel(tmp_path, TABLE, sheet=name, header=False).main == [{"A": "x"}]
    with pytest.raises(
        ComponentFailure, match=r"has no sheet `Othr`; did you mean `Other`\?; it has `Sheet1`, `Other`"
    ):
        excel(tmp_path, TABLE, sheet="Othr")
    with pytest.raises(ComponentFailure, match=r"has no column `nmae`; did you mean `name`\?"):
        excel(tmp_path, TABLE, types={"nmae": "string"})


def test_ranges_are_read_as_excel_writes_them() -> None:
    assert area_of("B3:AA20") == Area(3, 2, 20, 27)
    assert area_of("$B$3") == Area(3, 2)
    assert [letters(number) for number in (1, 26, 27, 703)] == ["A", "Z", "AA", "AAA"]
    for wrong in ("B", "3:4", "B3:A1", "B0", "x!A1"):
        (mistake,) = mistakes("read_excel", {"path": "x.xlsx", "range": wrong})
        assert mistake.path == ("range",)


def test_rows_with_errors_or_wrong_values_are_rejected_with_their_row(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["id", "n"], [1, 2], ["x", 3], [3, "#DIV/0!"], [4, 5, 6]]
    ran = excel(tmp_path, rows, ["main", "reject"], types={"id": "integer"})
    assert ran.main == [{"id": 1, "n": 2}]
    assert [(row["line"], row["column"], row["error_message"]) for row in ran.outputs["reject"]] == [
        (3, "id", "`x` is not a BIGINT"),
        (4, None, "the cell in column B is the error `#DIV/0!`"),
        (5, None, "there is a value in column C, beyond the last column that is named"),
    ]
    with pytest.raises(ComponentFailure, match=r"it\.xlsx`, line 3, column `id`: `x` is not a BIGINT"):
        excel(tmp_path, rows, types={"id": "integer"})


def test_a_sheet_with_only_a_header_has_columns_and_one_with_nothing_is_an_error(tmp_path: Path) -> None:
    ran = excel(tmp_path, [["id", "name"]], types={"id": "integer"})
    assert (ran.main, ran.schemas["main"]) == ([], schema(id="BIGINT", name='"NULL"'))
    with pytest.raises(ComponentFailure, match="has no cells in that place"):
        excel(tmp_path, [])


def test_what_is_no_excel_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    for name, data in {"it.xlsx": b"", "it.xls": b"\xd0\xcf\x11\xe0"}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ComponentFailure, match="is not an Excel file"):
            run("read_excel", {"path": name}, connected=["main"], folder=tmp_path)


def test_rows_are_written_as_cells_and_read_back(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "text": "=1+1", "amount": 1.5, "flag": True, "day": datetime.date(2024, 1, 31), "big": 2**60},
        {"id": 2, "text": None, "amount": None, "flag": None, "day": None, "big": None},
    ]
    ran = run("write_excel", {"path": "out.xlsx", "sheet": "Data"}, {"input": rows}, folder=tmp_path)
    assert ran.main == rows
    back = run("read_excel", {"path": "out.xlsx", "sheet": "Data"}, connected=["main"], folder=tmp_path)
    assert back.main == [{**rows[0], "big": str(2**60)}, rows[1]]


def test_other_sheets_are_kept_when_asked(tmp_path: Path) -> None:
    import openpyxl

    sheet(tmp_path / "out.xlsx", [["old"]])
    params = {"path": "out.xlsx", "sheet": "Sheet1", "keep": True}
    run("write_excel", params, {"input": [{"a": "=x"}]}, folder=tmp_path)
    book = openpyxl.load_workbook(tmp_path / "out.xlsx")
    assert book.sheetnames == ["Sheet1", "Other"]
    assert [cell.value for cell in book["Sheet1"]["A"]] == ["a", "=x"]
    assert book["Sheet1"]["A2"].data_type == "s"
    run("write_excel", {"path": "out.xlsx"}, {"input": [{"a": 1}]}, folder=tmp_path)
    assert openpyxl.load_workbook(tmp_path / "out.xlsx").sheetnames == ["Sheet1"]


def test_what_a_cell_cannot_hold_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    for value, words in {"\x01": "row 1 has a control character", "x" * 40_000: "a text of 40000 characters"}.items():
        with pytest.raises(ComponentFailure, match=words):
            run("write_excel", {"path": "out.xlsx"}, {"input": [{"a": value}]}, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "it.xlsx").write_bytes(b"x")
    for name in [name for name in sys.modules if name.partition(".")[0] == "openpyxl"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ComponentFailure, match=r"need the package `openpyxl`; hint: `pip install penstock\[excel\]`"):
        run("read_excel", {"path": "it.xlsx"}, connected=["main"], folder=tmp_path)
