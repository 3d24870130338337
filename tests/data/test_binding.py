"""Unknown columns and clashing types are found before a row is read, and pointed at in the author's own text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.data import binder as binder_module
from penstock.data.binder import Binder
from penstock.ports.rows import Column, RowsFailed
from tests.cases import cases

ORDERS = (
    Column("id", "BIGINT"),
    Column("amount", "DOUBLE"),
    Column("status", "VARCHAR"),
    Column("day", "DATE"),
    Column("tags", "VARCHAR[]"),
    Column("näme", "VARCHAR"),
    Column("order date", "DATE"),
)
ONE = {"input": ORDERS}
TWO = {"main": ORDERS, "lookup": (Column("id", "BIGINT"), Column("label", "VARCHAR"))}


@pytest.fixture(scope="module")
def binder() -> Iterator[Binder]:
    binder = Binder()
    yield binder
    binder.close()


@cases(
    "text, form, type",
    [
        ("amount * 2", "value", "DOUBLE"),
        ("upper(näme) || '!' -- loud", "value", "VARCHAR"),
        ("AMOUNT", "value", "DOUBLE"),
        ('"order date" + 1', "value", "DATE"),
        ("input.amount::decimal(10,2)", "value", "DECIMAL(10,2)"),
        ("row_number() over (partition by status order by amount)", "value", "BIGINT"),
        ("sum(amount) over ()", "value", "DOUBLE"),
        ("sum(amount) filter (where id > 1) over ()", "value", "DOUBLE"),
        ("list_transform(tags, x -> upper(x))", "value", "VARCHAR[]"),
        ("list_transform(tags, lambda x: upper(x))", "value", "VARCHAR[]"),
        ("list_sum([amount, id])", "value", "DOUBLE"),
        ("(select max(id) from input)", "value", "BIGINT"),
        ("1", "value", "INTEGER"),
        ("amount > 10 and status = 'x' and day < '2024-01-01'", "condition", "BOOLEAN"),
        ("status in ('a', 'b')", "condition", "BOOLEAN"),
        ("true", "condition", "BOOLEAN"),
        ("sum(amount) / count(*)", "aggregate", "DOUBLE"),
        ("sum(amount) / max(id) + id", "aggregate", "DOUBLE"),
        ("percentile_cont(0.5) within group (order by amount)", "aggregate", "DOUBLE"),
        ("geomean(amount)", "aggregate", "DOUBLE"),
        ("count(*)", "aggregate", "BIGINT"),
        ("42", "aggregate", "INTEGER"),
    ],
)
def test_what_binds_has_a_type(binder: Binder, text: str, form: str, type: str) -> None:
    bound = binder.check(text, form, ONE)
    assert (bound.type, bound.mistake) == (type, None)


@cases(
    "text, form, message, hint, piece",
    [
        ("amont * 2", "value", "there is no column `amont`", "did you mean `amount`?", "amont"),
        ("upper(näme) || stauts", "value", "there is no column `stauts`", "did you mean `status`?", "stauts"),
        ("input.amont", "value", "there is no column `amont` in `input`", "did you mean `amount`?", "input.amont"),
        ("inptu.amount", "value", "`inptu` is not an input here", "did you mean `input`?", "inptu.amount"),
        ('"orderdate"', "value", "there is no column `orderdate`", "did you mean `order date`?", '"orderdate"'),
        ("'abc' + 1", "value", "`+` cannot take a text and a whole number", "cast to a type that fits", "+"),
        (
            "amount > day",
            "condition",
            "DOUBLE and DATE cannot be compared",
            "cast one of them to the other's type",
            "amount > day",
        ),
        ("id > 1 and amount", "condition", None, None, None),
        ("amount", "condition", "a condition is true or false, and this is DOUBLE", "", "amount"),
        ("amount > 'abc'", "condition", "`abc` is not a valid DOUBLE", "", "'abc'"),
        (
            "day between '2024-01-01' and '2024-13-01'",
            "condition",
            "`2024-13-01` is not a valid DATE",
            "",
            "'2024-13-01'",
        ),
        ("id in ('1', 'x')", "condition", "`x` is not a valid BIGINT", "", "'x'"),
        ("uper(status)", "value", "there is no function `uper`", "did you mean `upper`?", "uper(status)"),
        (
            "upper(status, 1)",
            "value",
            "`upper` cannot be called with VARCHAR and a whole number",
            "cast to a type that fits",
            "upper(status, 1)",
        ),
        ("cast(id as intger)", "value", "there is no type `intger`", "", "intger"),
        ("columns(*)", "value", "one value is needed here, and this is 7 columns", "", "columns(*)"),
        ("sum(status)", "aggregate", "`sum` cannot be called with VARCHAR", "cast to a type that fits", "sum(status)"),
        (
            "amount + 1",
            "aggregate",
            "this is not an aggregate: it has a value for each row",
            "wrap it in `sum`, `max`, `count`, `any_value` …",
            "amount + 1",
        ),
        ("id +", "value", "the SQL ends too early, after `+`", "", "+"),
    ],
)
def test_what_does_not_bind_is_pointed_at(
    binder: Binder, text: str, form: str, message: str | None, hint: str | None, piece: str | None
) -> None:
    bound = binder.check(text, form, ONE)
    if message is None:
        assert bound.mistake is None
        return
    found = bound.mistake
    assert found is not None
    assert found.offset is not None
    assert (found.message, found.hint, text[found.offset : found.offset + found.length]) == (message, hint, piece)
    assert bound.type is None


def test_an_aggregate_is_no_value_of_a_row(binder: Binder) -> None:
    for text in ("1 + sum(amount)", "count(*) > 1", "geomean(amount)", "sum(amount) filter (where id > 1)"):
        found = binder.check(text, "value", ONE).mistake
        assert found is not None
        assert "is an aggregate over many rows: one value for each row is needed here" in found.message


def test_columns_of_several_inputs_are_told_apart_by_their_port(binder: Binder) -> None:
    assert binder.check("main.id = lookup.id and label <> ''", "condition", TWO).type == "BOOLEAN"
    found = binder.check("id = 1", "condition", TWO).mistake
    assert found is not None
    assert "mbiguous reference to column name `id`" in found.message
    assert (found.offset, found.length) == (0, 2)


@pytest.mark.parametrize(
    ("text", "message", "piece"),
    [
        ("select id, sum(amount) as t from input group by id", None, None),
        ("with t as (select * from input) select t.*, upper(status) as s from t", None, None),
        ("select id, amont from input", "there is no column `amont`", "amont"),
        (
            "select id, status from input group by id",
            "`status` stands neither in an aggregate nor in GROUP BY",
            "status",
        ),
        ("select * from othr", "`othr` is not an input of this component", "othr"),
        ("select * from input where amount > day", "DOUBLE and DATE cannot be compared", "amount > day"),
    ],
)
def test_a_query_is_bound_over_its_inputs(binder: Binder, text: str, message: str | None, piece: str | None) -> None:
    found = binder.check(text, "query", ONE).mistake
    told = None if found is None else found.message
    assert told == message
    if found is not None and found.offset is not None:
        assert text[found.offset : found.offset + found.length] == piece


def test_mistakes_have_the_kind_that_they_are_reported_under(binder: Binder) -> None:
    kinds = {text: binder.check(text, "condition", ONE).mistake for text in ("nope", "amount > day", "id >", "from x")}
    assert [found.kind for found in kinds.values() if found] == ["column", "type", "syntax", "syntax"]


def test_a_query_of_a_component_has_a_schema(binder: Binder, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,b\n")
    query = f"SELECT input.id, f.* FROM input, read_csv('{tmp_path / 'a.csv'}') f"
    assert binder.schema(query, ONE) == (Column("id", "BIGINT"), Column("x", "BIGINT"), Column("y", "VARCHAR"))


def test_a_schema_that_cannot_be_known_fails_plainly(binder: Binder) -> None:
    with pytest.raises(RowsFailed) as raised:
        binder.schema("SELECT * FROM read_csv('/no/such.csv')", {})
    assert (raised.value.kind, raised.value.message) == ("missing_file", "there is no file `/no/such.csv`")
    with pytest.raises(RowsFailed) as raised:
        binder.schema("SELECT id, nope FROM input", ONE)
    assert (raised.value.kind, raised.value.position) == ("sql", 11)


def test_any_number_of_schemas_can_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binder_module, "_KNOWN_SCHEMAS", 8)
    binder = Binder()
    for number in range(20):
        assert binder.check(f"c{number}", "value", {"input": (Column(f"c{number}", "BIGINT"),)}).type == "BIGINT"
    binder.close()
    binder.close()
