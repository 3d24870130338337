"""Rows of Python values become relations, whatever they are made of."""

from __future__ import annotations

import enum
from collections import OrderedDict, namedtuple
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest

from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession
from penstock.ports.rows import Column, Relation, RowsFailed
from tests.cases import cases


def values(session: DuckDbSession, relation: Relation) -> list[tuple[Any, ...]]:
    return [row for batch in session.rows("SELECT * FROM t", {"t": relation}) for row in batch]


def types(relation: Relation) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in relation.schema]


def loaded(session: DuckDbSession, *column: Any) -> tuple[str, list[Any]]:
    """A column of values, each in a batch of its own and all in one: the type must be the same."""
    together = session.load_mappings([[{"x": value} for value in column]])
    apart = session.load_mappings([{"x": value}] for value in column)
    assert types(together) == types(apart)
    return together.schema[0].type, [value for (value,) in values(session, together)]


@cases(
    "column, type, read",
    [
        ((1, None, 2), "BIGINT", [1, None, 2]),
        ((1, 2.5), "DOUBLE", [1.0, 2.5]),
        ((True, 2), "BIGINT", [1, 2]),
        ((2**63, 1), "HUGEINT", [2**63, 1]),
        ((2**200, 1), "VARCHAR", [str(2**200), "1"]),
        ((Decimal("1.25"), Decimal("10.5")), "DECIMAL(4,2)", [Decimal("1.25"), Decimal("10.50")]),
        ((Decimal("1.25"), 7), "DECIMAL(21,2)", [Decimal("1.25"), Decimal("7.00")]),
        ((Decimal("1.25"), 0.5), "DOUBLE", [1.25, 0.5]),
        (("a", 1, 2.5, True), "VARCHAR", ["a", "1", "2.5", "true"]),
        ((date(2024, 1, 1), datetime(2024, 1, 1, 5)), "TIMESTAMP", [datetime(2024, 1, 1), datetime(2024, 1, 1, 5)]),
        ((date(2024, 1, 1), "x"), "VARCHAR", ["2024-01-01", "x"]),
        (
            (datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))), datetime(2024, 1, 1)),
            "TIMESTAMP WITH TIME ZONE",
            [datetime(2024, 1, 1, 10, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)],
        ),
        ((time(1, 2, 3),), "TIME", [time(1, 2, 3)]),
        ((timedelta(days=1, seconds=5),), "INTERVAL", [timedelta(days=1, seconds=5)]),
        ((UUID(int=7),), "UUID", [UUID(int=7)]),
        ((b"\x00\xff", None), "BLOB", [b"\x00\xff", None]),
        ((None, None), "VARCHAR", [None, None]),
        (([1, 2], [], None), "BIGINT[]", [[1, 2], [], None]),
        (([1], [2.5]), "DOUBLE[]", [[1.0], [2.5]]),
        (
            ({"a": 1, "b": "x"}, {"b": "y", "a": 2.5}),
            "STRUCT(a DOUBLE, b VARCHAR)",
            [{"a": 1.0, "b": "x"}, {"a": 2.5, "b": "y"}],
        ),
        (({"a": 1}, {"b": 2}), "JSON", ['{"a":1}', '{"b":2}']),
        (({"a": 1}, [1]), "JSON", ['{"a":1}', "[1]"]),
        (([1, {"a": 2}],), "JSON", ['[1,{"a":2}]']),
        (({},), "JSON", ["{}"]),
        (({"a": 1}, "text"), "VARCHAR", ['{"a":1}', "text"]),
        (({"a": 1}, 5), "JSON", ['{"a":1}', "5"]),
        ((float("nan"), 1), "DOUBLE", None),
    ],
)
def test_a_column_has_the_narrowest_type_that_holds_all_of_it(
    session: DuckDbSession, column: tuple[Any, ...], type: str, read: list[Any] | None
) -> None:
    found, back = loaded(session, *column)
    assert found == type
    assert read is None or back == read


class Colour(enum.Enum):
    RED = "red"


class Number(int):
    pass


Point = namedtuple("Point", "x y")


class Boxed:
    """What numpy's scalars look like."""

    def item(self) -> float:
        return 2.5


@cases(
    "value, read",
    [
        (Colour.RED, "red"),
        (Number(3), 3),
        (Point(1, 2), [1, 2]),
        (Path("a/b"), "a/b"),
        (Boxed(), 2.5),
        ((1, 2), [1, 2]),
        ({3}, [3]),
        (bytearray(b"ab"), b"ab"),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (OrderedDict(a=Boxed()), {"a": 2.5}),
    ],
)
def test_values_that_libraries_make_are_taken_for_what_they_stand_for(
    session: DuckDbSession, value: Any, read: Any
) -> None:
    assert loaded(session, value)[1] == [read]


def test_columns_stand_in_the_order_in_which_they_were_first_seen_and_missing_keys_are_null(
    session: DuckDbSession,
) -> None:
    made = session.load_mappings([[{"b": 1, "a": 2}, {"a": 3, "c": "x"}], [{"d": True}]])
    assert types(made) == [("b", "BIGINT"), ("a", "BIGINT"), ("c", "VARCHAR"), ("d", "BOOLEAN")]
    assert values(session, made) == [(1, 2, None, None), (None, 3, "x", None), (None, None, None, True)]


def test_a_column_is_widened_while_it_is_loaded(session: DuckDbSession) -> None:
    batches: list[list[dict[str, Any]]] = [
        [{"x": number, "y": "k"} for number in range(3000)],
        [{"x": 0.5, "y": "k"}],
        [{"x": "last", "y": "k"}],
    ]
    made = session.load_mappings(batches)
    assert (made.rows, made.schema[0].type) == (3002, "VARCHAR")
    assert values(session, made)[-2:] == [("0.5", "k"), ("last", "k")]


def test_with_a_schema_mappings_are_read_by_its_columns(session: DuckDbSession) -> None:
    schema = (Column("b", "DOUBLE"), Column("a", "DATE", nullable=False))
    made = session.load_mappings([[{"a": "2024-01-31", "b": 1, "more": 2}, {"a": date(2024, 2, 1)}]], schema)
    assert made.schema == schema
    assert values(session, made) == [(1.0, date(2024, 1, 31)), (None, date(2024, 2, 1))]


def test_no_rows_at_all_are_a_relation_too(session: DuckDbSession) -> None:
    assert session.load((Column("a", "BIGINT"),), []).rows == 0
    assert session.load_mappings([], (Column("a", "BIGINT"),)).schema == (Column("a", "BIGINT"),)
    assert session.load_mappings([]).rows == 0


def test_a_mapping_in_a_text_or_json_column_is_json(session: DuckDbSession) -> None:
    schema = (Column("t", "VARCHAR"), Column("j", "JSON"))
    made = session.load(schema, [[({"a": [1]}, {"b": None}), ("plain", None), ([1, "x"], (1, 2))]])
    assert values(session, made) == [('{"a":[1]}', '{"b":null}'), ("plain", None), ('[1,"x"]', "[1,2]")]


SCHEMA = (Column("id", "BIGINT"), Column("amount", "INTEGER"))


@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        ([(1, 2), (2, "abc")], "conversion", "row 3, column `amount`: `abc` is not a valid INTEGER"),
        ([(1, 2**40)], "conversion", "row 2, column `amount`: `1099511627776` is not a valid INTEGER"),
        ([(1,)], "data", "row 2 has 1 values; there are 2 columns"),
        ([(1, 2, 3)], "data", "row 2 has 3 values; there are 2 columns"),
        ([(1, object())], "value", "row 2, column `amount`: a value of type `object` cannot stand in a row"),
    ],
)
def test_a_row_that_does_not_fit_is_named(session: DuckDbSession, rows: list[Any], kind: str, message: str) -> None:
    before = [(0, 0)]
    with pytest.raises(RowsFailed) as raised:
        session.load(SCHEMA, [before, rows])
    assert (raised.value.kind, raised.value.message) == (kind, message)
    assert list(session.rows("SELECT count(*) FROM duckdb_tables()", {})) == [[(0,)]]


def test_rows_before_and_after_a_foreign_value_are_all_there_once(session: DuckDbSession) -> None:
    made = session.load(SCHEMA, [[(1, 1)], [(2, 2), (3, Number(3)), (Boxed(), 4)], [(5, 5)]])
    assert values(session, made) == [(1, 1), (2, 2), (3, 3), (2, 4), (5, 5)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"a": 1}, [1]], "row 2 is a `list`, not a mapping of columns to values"),
        ([{}], "rows need at least one column, and these mappings are empty"),
        ([{1: 2}], "a column is named by a text, not by `1`"),
        ([{"a": 1, "A": 2}], "column `A` stands there already in another case: DuckDB knows only one of them"),
        ([{"a": 1}, {"a": object()}], "row 2, column `a`: a value of type `object` cannot stand in a row"),
    ],
)
def test_mappings_that_are_no_rows_are_refused(session: DuckDbSession, rows: list[Any], message: str) -> None:
    with pytest.raises(RowsFailed) as raised:
        session.load_mappings([rows])
    assert raised.value.message == message


def test_what_the_sender_raises_is_raised_and_nothing_stays(session: DuckDbSession) -> None:
    def sender() -> Iterator[list[tuple[int, int]]]:
        yield [(1, 1)]
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        session.load(SCHEMA, sender())
    assert list(session.rows("SELECT count(*) FROM duckdb_tables()", {})) == [[(0,)]]


@pytest.mark.clause("J10.3")
@pytest.mark.parametrize(
    "limits", [{"max_in_flight_rows": 10}, {"max_in_flight_bytes": 2000}, {"max_in_flight_rows": 1}]
)
def test_rows_flow_under_a_limit_and_none_is_lost(tmp_path: Path, limits: dict[str, int]) -> None:
    engine = DuckDbEngine(tmp_path, **limits)  # type: ignore[arg-type]
    session = engine.session()
    batches = [[(number, number) for number in range(start, start + 37)] for start in range(0, 370, 37)]
    made = session.load(SCHEMA, batches)
    assert [row[0] for row in values(session, made)] == list(range(370))
    mapped = session.load_mappings([{"id": a, "amount": b} for a, b in batch] for batch in batches)
    assert [row[0] for row in values(session, mapped)] == list(range(370))
    with pytest.raises(RowsFailed, match="row 38, column `amount`"):
        session.load(SCHEMA, [batches[0], [(1, "x")], *batches])
    engine.close()


@pytest.mark.clause("J10.3")
def test_a_sender_that_fails_under_a_limit_is_not_left_waiting(tmp_path: Path) -> None:
    engine = DuckDbEngine(tmp_path, max_in_flight_rows=5)

    def sender() -> Iterator[list[tuple[int, int]]]:
        yield [(1, 1)] * 50
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        engine.session().load(SCHEMA, sender())
    engine.close()
