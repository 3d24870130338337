"""`merge_changes`: two states compared."""

from __future__ import annotations

from typing import Any

from tests.components.harness import Ran, columns, mistakes, run, schema

BEFORE = [
    {"id": 1, "price": 10, "note": "a"},
    {"id": 2, "price": 20, "note": None},
    {"id": 3, "price": 30, "note": "c"},
]
AFTER = [{"id": 3, "price": 35, "note": "d"}, {"id": 2, "price": 20, "note": None}, {"id": 4, "price": 40, "note": "e"}]


def compare(params: Any = None, before: Any = BEFORE, after: Any = AFTER) -> Ran:
    given = schema(id="BIGINT", price="BIGINT", note="VARCHAR")
    schemas = {"before": given, "after": given} if not (before and after) else None
    return run("merge_changes", {"on": ["id"], **(params or {})}, {"before": before, "after": after}, schemas=schemas)


def test_rows_are_new_gone_changed_or_the_same():
    assert compare().outputs == {
        "inserted": [AFTER[2]],
        "deleted": [BEFORE[0]],
        "changed": [{**AFTER[0], "changed_columns": "price, note"}],
        "same": [AFTER[1]],
    }


def test_only_the_columns_that_were_named_are_compared():
    ran = compare(
        {"compare": ["note"]}, before=[{"id": 1, "price": 1, "note": "a"}], after=[{"id": 1, "price": 2, "note": "a"}]
    )
    assert ran.outputs["same"] == [{"id": 1, "price": 2, "note": "a"}]


def test_a_missing_key_is_a_key_like_any_other():
    ran = compare(before=[{"id": None, "price": 1, "note": "a"}], after=[{"id": None, "price": 1, "note": "a"}])
    assert len(ran.outputs["same"]) == 1


def test_of_several_rows_with_one_key_the_last_counts():
    ran = compare(
        before=[{"id": 1, "price": 1, "note": "a"}, {"id": 1, "price": 2, "note": "a"}],
        after=[{"id": 1, "price": 2, "note": "a"}],
    )
    assert {port: len(rows) for port, rows in ran.outputs.items()} == {
        "inserted": 0,
        "deleted": 0,
        "changed": 0,
        "same": 1,
    }


def test_an_empty_side_makes_everything_new_or_gone():
    assert len(compare(before=[]).outputs["inserted"]) == 3
    assert len(compare(after=[]).outputs["deleted"]) == 3


def test_inputs_without_common_columns_besides_the_key_are_the_same():
    ran = compare(before=[{"id": 1, "a": 1}], after=[{"id": 1, "b": 2}])
    assert ran.outputs["same"] == [{"id": 1, "b": 2}]


def test_rows_keep_their_order():
    ran = compare(
        before=[{"id": n, "price": 0} for n in range(3_000)],
        after=[{"id": n, "price": n % 2} for n in range(2_999, -1, -1)],
    )
    assert [row["id"] for row in ran.outputs["changed"]] == [n for n in range(2_999, -1, -1) if n % 2]


def test_columns_are_known_before_the_run():
    given = {"before": schema(id="BIGINT", a="DATE"), "after": schema(id="BIGINT", a="DATE")}
    assert columns("merge_changes", {"on": ["id"]}, given, "changed") == {
        "id": "BIGINT",
        "a": "DATE",
        "changed_columns": "VARCHAR",
    }


def test_unknown_columns_are_found_before_the_run():
    given = {"before": schema(id="BIGINT"), "after": schema(key="BIGINT")}
    (mistake,) = mistakes("merge_changes", {"on": ["id"]}, given)
    assert mistake.message == "`after` has no column `id`"
