"""`scd`: dimensions of types 1 and 2."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.components.harness import Ran, columns, mistakes, run, schema

DIMENSION = schema(
    id="BIGINT", name="VARCHAR", city="VARCHAR", valid_from="DATE", valid_to="DATE", is_current="BOOLEAN"
)
SOURCE = schema(id="BIGINT", name="VARCHAR", city="VARCHAR")
OLD, NOW = date(2025, 1, 1), date(2026, 3, 1)


class Noon:
    def now(self) -> float:
        return datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing sleeps here")


def version(
    id: int, name: str | None, city: str | None, start: Any = OLD, end: Any = None, current: bool = True
) -> Any:
    return {"id": id, "name": name, "city": city, "valid_from": start, "valid_to": end, "is_current": current}


def row(id: int, name: str | None, city: str | None) -> dict[str, Any]:
    return {"id": id, "name": name, "city": city}


def load(source: list[Any], dimension: list[Any] | None, **params: Any) -> Ran:
    given = {"keys": ["id"], "type1": ["name"], "type2": ["city"], "as_of": "2026-03-01", **params}
    inputs: dict[str, Any] = {"input": source} | ({} if dimension is None else {"dimension": dimension})
    return run("scd", given, inputs, schemas={"input": SOURCE, "dimension": DIMENSION})


def test_the_first_load_makes_a_version_of_every_row():
    ran = load([row(1, "Ann", "Ulm"), row(2, "Bob", "Kiel")], None)
    versions = [version(1, "Ann", "Ulm", NOW), version(2, "Bob", "Kiel", NOW)]
    assert ran.outputs == {"main": versions, "insert": versions, "update": [], "unchanged": []}
    assert ran.schemas["main"] == DIMENSION


def test_an_empty_dimension_is_a_first_load():
    assert load([row(1, "Ann", "Ulm")], []).outputs["insert"] == [version(1, "Ann", "Ulm", NOW)]


def test_a_change_of_type_2_ends_a_version_and_begins_another():
    ran = load([row(1, "Ann", "Bonn")], [version(1, "Ann", "Ulm")])
    closed, begun = version(1, "Ann", "Ulm", OLD, NOW, False), version(1, "Ann", "Bonn", NOW)
    assert ran.outputs == {"main": [closed, begun], "insert": [begun], "update": [closed], "unchanged": []}


def test_a_change_of_type_1_is_written_into_the_version():
    ran = load([row(1, "Anne", "Ulm")], [version(1, "Ann", "Ulm")])
    changed = version(1, "Anne", "Ulm")
    assert ran.outputs == {"main": [changed], "insert": [], "update": [changed], "unchanged": []}


def test_a_change_of_both_types_leaves_the_old_version_as_it_was():
    ran = load([row(1, "Anne", "Bonn")], [version(1, "Ann", "Ulm")])
    assert ran.outputs["update"] == [version(1, "Ann", "Ulm", OLD, NOW, False)]
    assert ran.outputs["insert"] == [version(1, "Anne", "Bonn", NOW)]


def test_what_is_the_same_is_unchanged_and_what_is_gone_is_kept():
    dimension = [version(1, "Ann", "Ulm"), version(2, "Bob", None), version(3, "Cyd", "Jena")]
    ran = load([row(1, "Ann", "Ulm"), row(2, "Bob", None)], dimension)
    assert ran.outputs == {"main": dimension, "insert": [], "update": [], "unchanged": dimension[:2]}


def test_gone_close_ends_the_version_of_what_is_gone():
    ended = version(3, "Cyd", "Jena", OLD, NOW, False)
    past = version(4, "Dan", "Trier", date(2024, 1, 1), OLD, False)
    ran = load([], [version(3, "Cyd", "Jena"), past], gone="close")
    assert ran.outputs == {"main": [ended, past], "insert": [], "update": [ended], "unchanged": []}


def test_history_is_left_alone_and_a_key_that_returns_begins_anew():
    past = version(1, "Ann", "Ulm", OLD, date(2025, 6, 1), False)
    ran = load([row(1, "Ann", "Ulm")], [past])
    assert ran.main == [past, version(1, "Ann", "Ulm", NOW)]


def test_missing_values_are_values_like_others():
    assert load([row(1, "Ann", None)], [version(1, "Ann", "Ulm")]).outputs["insert"] == [version(1, "Ann", None, NOW)]
    assert load([row(1, "Ann", "Ulm")], [version(1, "Ann", None)]).outputs["insert"] == [version(1, "Ann", "Ulm", NOW)]


def test_running_the_same_input_again_changes_nothing():
    source = [row(1, "Ann", "Bonn"), row(2, "Bob", "Kiel")]
    first = load(source, [version(1, "Ann", "Ulm")])
    again = load(source, first.main, as_of="2026-03-02")
    assert again.main == first.main
    assert (again.outputs["insert"], again.outputs["update"]) == ([], [])


def test_of_several_rows_with_one_key_the_last_counts():
    assert load([row(1, "Ann", "Bonn"), row(1, "Ann", "Jena")], None).main == [version(1, "Ann", "Jena", NOW)]


def test_all_columns_but_the_keys_are_tracked_when_nothing_is_said():
    ran = run("scd", {"keys": ["id"], "as_of": "2026-03-01"}, {"input": [row(1, "Anne", "Ulm")], "dimension": [version(1, "Ann", "Ulm")]},
              schemas={"input": SOURCE, "dimension": DIMENSION})  # fmt: skip
    assert ran.outputs["insert"] == [version(1, "Anne", "Ulm", NOW)]


def test_an_open_end_can_be_a_date_far_away():
    far = date(9999, 12, 31)
    assert load([row(1, "Ann", "Ulm")], None, open_end="9999-12-31").main == [version(1, "Ann", "Ulm", NOW, far)]


def test_a_surrogate_key_counts_on():
    keyed = (*schema(key="BIGINT"), *DIMENSION)
    given = {"keys": ["id"], "type2": ["city"], "as_of": "2026-03-01", "surrogate_key": "key"}
    inputs = {
        "input": [row(1, "Ann", "Bonn"), row(2, "Bob", "Kiel"), row(3, "Cyd", "Jena")],
        "dimension": [{"key": 7, **version(1, "Ann", "Ulm")}, {"key": 4, **version(2, "Bob", "Kiel")}],
    }
    ran = run("scd", given, inputs, schemas={"input": SOURCE, "dimension": keyed})
    assert [(one["key"], one["id"]) for one in ran.outputs["insert"]] == [(8, 1), (9, 3)]
    first = run("scd", given, {"input": inputs["input"]}, schemas={"input": SOURCE})
    assert [one["key"] for one in first.main] == [1, 2, 3]


def test_columns_that_the_input_does_not_have_go_on_from_version_to_version():
    wide = (*DIMENSION, *schema(note="VARCHAR"))
    ran = run(
        "scd",
        {"keys": ["id"], "type2": ["city"], "as_of": "2026-03-01"},
        {
            "input": [row(1, "Ann", "Bonn"), row(2, "Bob", "Kiel")],
            "dimension": [{**version(1, "Ann", "Ulm"), "note": "vip"}],
        },
        schemas={"input": SOURCE, "dimension": wide},
    )
    assert [one["note"] for one in ran.outputs["insert"]] == ["vip", None]


def test_keys_of_several_columns_and_other_letters_work():
    ran = run(
        "scd",
        {"keys": ["Country", "ID"], "type2": ["City"], "as_of": "2026-03-01"},
        {"input": [{"country": "DE", "id": 1, "city": "Ulm"}, {"country": "FR", "id": 1, "city": "Lyon"}]},
    )
    assert [(one["country"], one["city"]) for one in ran.main] == [("DE", "Ulm"), ("FR", "Lyon")]


def test_without_as_of_the_time_is_that_of_the_run():
    given = {"keys": ["id"], "type2": ["city"]}
    first = run("scd", given, {"input": [row(1, "Ann", "Ulm")]}, schemas={"input": SOURCE}, clock=Noon())
    assert first.main[0]["valid_from"] == datetime(2026, 3, 1, 12)
    dated = run("scd", given, {"input": [row(1, "Ann", "Ulm")], "dimension": []},
                schemas={"input": SOURCE, "dimension": DIMENSION}, clock=Noon())  # fmt: skip
    assert dated.main[0]["valid_from"] == NOW


def test_the_order_of_a_large_dimension_is_kept():
    dimension = [version(n, "x", "Ulm") for n in range(3_000)]
    ran = load([row(n, "x", "Bonn" if n % 2 else "Ulm") for n in range(3_500)], dimension)
    assert [one["id"] for one in ran.main] == [*range(3_000), *(n for n in range(3_500) if n % 2 or n >= 3_000)]
    assert len(ran.outputs["update"]) == len(ran.outputs["unchanged"]) == 1_500


def test_columns_are_known_before_the_run():
    params = {"keys": ["id"], "as_of": "2026-03-01 10:00"}
    assert columns("scd", params, {"input": SOURCE}, "insert") == {
        "id": "BIGINT",
        "name": "VARCHAR",
        "city": "VARCHAR",
        "valid_from": "TIMESTAMP",
        "valid_to": "TIMESTAMP",
        "is_current": "BOOLEAN",
    }


@pytest.mark.parametrize(
    ("params", "path", "message"),
    [
        ({"keys": ["idd"]}, ("keys", 0), "`input` has no column `idd`; did you mean `id`?"),
        (
            {"keys": ["id"], "type1": ["city"], "type2": ["city"]},
            (),
            "`city` is named twice among `keys`, `type1` and `type2`",
        ),
        ({"keys": ["id"], "valid_from": "name"}, ("valid_from",), "`name` is a column of `input`, and it is made here"),
        ({"keys": ["id"], "as_of": "soon"}, ("as_of",), "`soon` is neither a date nor a time"),
    ],
)
def test_mistakes_are_found_before_the_run(params: Any, path: Any, message: str):
    (mistake,) = mistakes("scd", params, {"input": SOURCE})
    assert (mistake.path, mistake.message) == (path, message)


def test_a_dimension_without_its_columns_is_found_before_the_run():
    found = mistakes("scd", {"keys": ["id"]}, {"input": SOURCE, "dimension": SOURCE})
    assert [mistake.path for mistake in found] == [("valid_from",), ("valid_to",), ("current",)]
