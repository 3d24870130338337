"""`read_json` and `write_json`."""

from __future__ import annotations

import datetime
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.components.harness import infer, mistakes, run, schema


def read(folder: Path, text: str, connected: Any = ("main",), name: str = "it.json", **params: Any) -> Any:
    (folder / name).write_text(text)
    return run("read_json", {"path": name, **params}, connected=connected, folder=folder)


LIST = '[{"id": 1, "tags": ["a"], "at": {"x": 1}, "day": "2024-01-31"}, {"id": 2, "name": "b"}]'


def test_a_list_of_objects_is_rows_with_all_their_keys(tmp_path: Path) -> None:
    ran = read(tmp_path, LIST)
    assert ran.main == [
        {"id": 1, "tags": ["a"], "at": {"x": 1}, "day": datetime.date(2024, 1, 31), "name": None},
        {"id": 2, "tags": None, "at": None, "day": None, "name": "b"},
    ]
    found = infer("read_json", {"path": "it.json"}, outputs=["main"], folder=tmp_path).outputs["main"]
    assert found == ran.schemas["main"]


@pytest.mark.parametrize("format", ["auto", "lines"])
def test_one_object_a_line_is_rows(tmp_path: Path, format: str) -> None:
    text = '{"id": 1}\n\n{"id": 2}\n'
    assert read(tmp_path, text, name="it.jsonl", format=format).main == [{"id": 1}, {"id": 2}]


def test_objects_over_several_lines_are_rows(tmp_path: Path) -> None:
    assert read(tmp_path, '{\n "id": 1\n}\n{\n "id": 2\n}').main == [{"id": 1}, {"id": 2}]


def test_the_rows_may_be_inside_the_document(tmp_path: Path) -> None:
    text = '{"meta": {"n": 2}, "data": {"items": [{"id": 1, "name": "a"}, {"id": 2}]}, "pages": [{"rows": [{"z": 5}]}]}'
    assert read(tmp_path, text, rows="data.items").main == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    assert read(tmp_path, text, rows="pages.0.rows").main == [{"z": 5}]
    assert read(tmp_path, text, rows="meta").main == [{"n": 2}]
    assert read(tmp_path, '{"v": [1, 2]}', rows="v").main == [{"value": 1}, {"value": 2}]
    ran = read(tmp_path, text, rows="data.items", columns=["name", {"name": "id", "type": "string"}])
    assert ran.main == [{"name": "a", "id": "1"}, {"name": None, "id": "2"}]


def test_a_place_inside_the_document_that_is_not_there_is_named(tmp_path: Path) -> None:
    text = '{"data": {"items": [{"id": 1}]}}'
    with pytest.raises(ComponentFailure, match=r"there is no `itmes` of `rows: data.itmes`; did you mean `items`\?"):
        read(tmp_path, text, rows="data.itmes")
    (mistake,) = infer(
        "read_json", {"path": "it.json", "rows": "dta.items"}, outputs=["main"], folder=tmp_path
    ).mistakes
    assert mistake.path == ("rows",)


def test_columns_are_picked_and_typed_and_a_typed_key_need_not_be_there(tmp_path: Path) -> None:
    ran = read(tmp_path, LIST, columns=["name", {"name": "id", "type": "string"}, {"name": "more", "type": "date"}])
    assert ran.main == [{"name": None, "id": "1", "more": None}, {"name": "b", "id": "2", "more": None}]
    with pytest.raises(ComponentFailure, match=r"has no column `nmae`; did you mean `name`\?"):
        read(tmp_path, LIST, columns=["nmae"])


def test_a_key_that_is_null_everywhere_is_text(tmp_path: Path) -> None:
    assert read(tmp_path, '[{"a": null, "s": {"b": null}}]').schemas["main"] == schema(
        a="VARCHAR", s="STRUCT(b VARCHAR)"
    )


def test_lines_that_are_no_rows_go_to_the_reject_port(tmp_path: Path) -> None:
    text = '{"id": 1, "name": "a"}\n{"id": "x", "name": 5}\nnot json\n\n[1]\n{"id": 4}\n'
    ran = read(tmp_path, text, ["main", "reject"], format="lines", columns=[{"name": "id", "type": "integer"}, {"name": "name", "type": "string"}])  # fmt: skip
    assert ran.main == [{"id": 1, "name": "a"}, {"id": 4, "name": None}]
    assert [tuple(row.values()) for row in ran.outputs["reject"]] == [
        ("bad_value", "`x` is not a BIGINT", str(tmp_path / "it.json"), 2, "id", '{"id": "x", "name": 5}'),
        ("not_json", "this is not JSON", str(tmp_path / "it.json"), 3, None, "not json"),
        ("not_an_object", "this is JSON, but no object", str(tmp_path / "it.json"), 5, None, "[1]"),
    ]
    assert ran.after["NB_LINE_REJECTED"] == 3


def test_elements_of_a_list_with_wrong_values_are_rejected_by_their_number(tmp_path: Path) -> None:
    typed = {"types": {"id": "integer"}, "file_column": "from"}
    ran = read(tmp_path, '[{"id": 1}, {"id": "x"}]', ["main", "reject"], **typed)
    assert ran.main == [{"id": 1, "from": str(tmp_path / "it.json")}]
    assert [(row["line"], row["column"]) for row in ran.outputs["reject"]] == [(2, "id")]
    ran = read(tmp_path, '{"d": [{"id": 1}, {"id": "x"}]}', ["main", "reject"], rows="d", **typed)
    assert [(row["line"], row["column"]) for row in ran.outputs["reject"]] == [(2, "id")]


@pytest.mark.parametrize(
    ("name", "text", "params", "other"),
    [
        *(("it.json", '[{"id": 1, "day": "2024-01-31"}, OTHER, {"id": 2}]', {}, one) for one in ("5", '"x"', "true")),
        ("it.jsonl", '{"id": 1, "day": "2024-01-31"}\nOTHER\n{"id": 2}\n', {}, "[1]"),
        ("it.json", '{"d": {"l": [[{"id": 1, "day": "2024-01-31"}, OTHER, {"id": 2}]]}}', {"rows": "d.l.0"}, "[1]"),
        ("it.json", '[{"id": 1, "day": "2024-01-31"}, OTHER, {"id": 2}]', {"types": {"id": "integer"}}, "5"),
    ],
)
def test_a_row_that_is_no_object_takes_no_column_from_the_others(
    tmp_path: Path, name: str, text: str, params: dict[str, Any], other: str
) -> None:
    text = text.replace("OTHER", other)
    ran = read(tmp_path, text, connected=("main", "reject"), name=name, **params)
    assert ran.main == [{"id": 1, "day": datetime.date(2024, 1, 31)}, {"id": 2, "day": None}]
    (reject,) = ran.outputs["reject"]
    assert (reject["error_code"], reject["line"], reject["raw_line"]) == ("not_an_object", 2, other)
    with pytest.raises(ComponentFailure, match="line 2: this is JSON, but no object"):
        read(tmp_path, text, name=name, **params)


def test_without_a_reject_port_a_wrong_line_is_an_error_or_is_left_out(tmp_path: Path) -> None:
    text = '{"id": 1}\n{"id": 2}\nnot json\n'
    with pytest.raises(ComponentFailure, match=r"it\.json`, line 3: this is not JSON"):
        read(tmp_path, text, format="lines", columns=[{"name": "id", "type": "integer"}])
    ran = read(tmp_path, text, format="lines", columns=[{"name": "id", "type": "integer"}], on_error="skip")
    assert ran.main == [{"id": 1}, {"id": 2}]
    assert ran.said[0].startswith("1 rows were left out")


def test_a_document_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure, match="Malformed JSON"):
        read(tmp_path, '[{"id": 1}, {"id": ')


def test_a_packed_file_is_unpacked_and_a_broken_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "it.json.gz").write_bytes(gzip.compress(b'[{"id": 1}]'))
    assert run("read_json", {"path": "it.json.gz"}, connected=["main"], folder=tmp_path).main == [{"id": 1}]
    (tmp_path / "it.json.gz").write_bytes(b"not packed")
    with pytest.raises(ComponentFailure, match="cannot be read: Not a gzipped file"):
        run("read_json", {"path": "it.json.gz"}, connected=["main"], folder=tmp_path)
    assert infer("read_json", {"path": "it.json.gz"}, outputs=["main"], folder=tmp_path).outputs == {"main": None}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure, match=rf"there is no file `{tmp_path}/no\.json`"):
        run("read_json", {"path": "no.json"}, connected=["main"], folder=tmp_path)
    assert infer("read_json", {"path": "no.json"}, outputs=["main"], folder=tmp_path).outputs == {"main": None}


ROWS = [{"id": 1, "tags": ["a", "b"], "name": "é"}, {"id": 2, "tags": None, "name": None}]


def test_rows_are_written_as_a_list_or_as_lines(tmp_path: Path) -> None:
    run("write_json", {"path": "out.json"}, {"input": ROWS}, connected=[], folder=tmp_path)
    assert json.loads((tmp_path / "out.json").read_text()) == ROWS
    run("write_json", {"path": "out.jsonl"}, {"input": ROWS}, connected=[], folder=tmp_path)
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == ROWS
    ran = run("read_json", {"path": "out.jsonl"}, connected=["main"], folder=tmp_path)
    assert ran.main == ROWS


def test_no_rows_are_an_empty_list(tmp_path: Path) -> None:
    run(
        "write_json",
        {"path": "out.json"},
        {"input": []},
        connected=[],
        folder=tmp_path,
        schemas={"input": schema(a="DATE")},
    )
    assert json.loads((tmp_path / "out.json").read_text()) == []
    ran = run(
        "read_json",
        {"path": "out.json", "columns": [{"name": "a", "type": "date"}]},
        connected=["main"],
        folder=tmp_path,
    )
    assert (ran.main, ran.schemas["main"]) == ([], schema(a="DATE"))


def test_lines_can_be_added_and_a_list_cannot(tmp_path: Path) -> None:
    for _ in range(2):
        ran = run(
            "write_json",
            {"path": "out.jsonl", "append": True},
            {"input": [{"a": 1}]},
            connected=["main"],
            folder=tmp_path,
        )
    assert (tmp_path / "out.jsonl").read_text() == '{"a":1}\n{"a":1}\n'
    assert ran.main == [{"a": 1}]
    (mistake,) = mistakes("write_json", {"path": "out.json", "append": True}, {"input": schema(a="BIGINT")})
    assert "only lines can be added" in mistake.message


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ('[{"n": 7}, {"n": 9.95}, {"n": "8"}, {"n": 2.0}, {"n": null}]', {}),
        ('{"d": [{"n": 7}, {"n": 9.95}, {"n": 8}, {"n": 2.0}, {"n": null}]}', {"rows": "d"}),
    ],
)
def test_a_number_with_a_fraction_is_no_whole_number(tmp_path: Path, text: str, params: dict[str, Any]) -> None:
    params = {**params, "types": {"n": "integer"}}
    ran = read(tmp_path, text, connected=("main", "reject"), **params)
    assert [row["n"] for row in ran.main] == [7, 8, 2, None]
    assert [row["error_message"] for row in ran.outputs["reject"]] == ["`9.95` is not a BIGINT"]
    with pytest.raises(ComponentFailure, match=r"line 2, column `n`: `9.95` is not a BIGINT"):
        read(tmp_path, text, **params)
    assert [row["n"] for row in read(tmp_path, text.replace("9.95", "9"), **params).main] == [7, 9, 8, 2, None]


@pytest.mark.parametrize("connected", [("main",), ("main", "reject")])
@pytest.mark.parametrize(
    ("value", "type", "params", "made"),
    [
        ("31.01.2024", "date", {"date_format": "%d.%m.%Y"}, datetime.date(2024, 1, 31)),
        ("2024-01-31", "date", {"date_format": "%d.%m.%Y"}, datetime.date(2024, 1, 31)),
        ("1/2/24 7:05", "timestamp", {"timestamp_format": "%d/%m/%y %H:%M"}, datetime.datetime(2024, 2, 1, 7, 5)),
    ],
)
def test_dates_are_read_as_they_are_written_whoever_reads_the_rejects(
    tmp_path: Path, value: str, type: str, params: dict[str, str], made: Any, connected: Any
) -> None:
    ran = read(tmp_path, json.dumps([{"at": value}]), connected=connected, types={"at": type}, **params)
    assert ran.main == [{"at": made}]


def test_a_date_that_is_written_in_another_way_is_told_how_it_would_be(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure, match=r"`31/01/2024` is not a DATE written as `%d\.%m\.%Y`"):
        read(tmp_path, '[{"day": "31/01/2024"}]', types={"day": "date"}, date_format="%d.%m.%Y")
