"""What becomes of the values that Python code returns."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import io
import ipaddress
import itertools
import pathlib
import sqlite3
import uuid
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.tools.python.code import NotFriendly, to_json_friendly
from tests.cases import cases
from tests.depth import times

UTC = datetime.UTC


@dataclasses.dataclass
class Point:
    x: int
    y: Any = None


class Pair(NamedTuple):
    left: int
    right: int


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Words(str):
    pass


class Structure(msgspec.Struct):
    a: int
    b: list[int]


class Frame:
    """Shaped like a pandas frame."""

    columns = ("a",)

    def to_dict(self, orient: str) -> Any:
        return [{"a": 1, "when": datetime.date(2024, 1, 2)}] if orient == "records" else None


class OtherFrame:
    """Shaped like a Polars frame."""

    columns = ("a",)

    def to_dicts(self) -> Any:
        return [{"a": Array([1, 2])}]

    def to_dict(self) -> Any:
        raise AssertionError


class Kind:
    kind = "f"


class Array:
    """Shaped like a NumPy array or scalar."""

    dtype = Kind()

    def __init__(self, value: Any) -> None:
        self.value = value

    def tolist(self) -> Any:
        return self.value


class Model:
    """Shaped like a pydantic model."""

    def model_dump(self) -> Any:
        return {"tags": {"b", "a"}}


def row() -> sqlite3.Row:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    found: sqlite3.Row = connection.execute("select 1 as a, 'x' as b").fetchone()
    connection.close()
    return found


@cases(
    "value, expected",
    [
        ((1, (2, 3)), [1, [2, 3]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({"b", 1, None}, [None, 1, "b"]),
        ({(2, 1), (1, 2)}, [[1, 2], [2, 1]]),
        (Point(1, Point(2)), {"x": 1, "y": {"x": 2, "y": None}}),
        (Pair(1, 2), {"left": 1, "right": 2}),
        (Structure(1, [2]), {"a": 1, "b": [2]}),
        (datetime.datetime(2024, 1, 2, 3, 4, tzinfo=UTC), "2024-01-02T03:04:00+00:00"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (datetime.time(3, 4), "03:04:00"),
        (datetime.timedelta(minutes=1, milliseconds=500), 60.5),
        (decimal.Decimal("12"), 12),
        (decimal.Decimal("12.50"), 12.5),
        (decimal.Decimal("0.1"), 0.1),
        (decimal.Decimal("1E+3"), 1000),
        (decimal.Decimal("0.12345678901234567890123"), "0.12345678901234567890123"),
        (decimal.Decimal("NaN"), None),
        (b"\x00ab", "AGFi"),
        (bytearray(b"ab"), "YWI="),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Words("x"), "x"),
        (True, True),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
        ((n * n for n in range(3)), [0, 1, 4]),
        (range(3), [0, 1, 2]),
        (map(str, [1, 2]), ["1", "2"]),
        (collections.deque([1, 2]), [1, 2]),
        (array.array("i", [1, 2]), [1, 2]),
        ({"b": 1, "a": 2}.keys(), ["b", "a"]),
        ({"b": 1}.items(), [["b", 1]]),
        (collections.OrderedDict(b=1), {"b": 1}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.ChainMap({"a": 1}, {"b": 2}), {"b": 2, "a": 1}),
        ({1: "a", None: "b", 2.5: "c"}, {"1": "a", "null": "b", "2.5": "c"}),
        ({True: 1}, {"true": 1}),
        ({Colour.RED: 1, datetime.date(2024, 1, 2): 2}, {"red": 1, "2024-01-02": 2}),
        (float("nan"), None),
        ([1.5, float("nan")], [1.5, None]),
        (Frame(), [{"a": 1, "when": "2024-01-02"}]),
        (OtherFrame(), [{"a": [1, 2]}]),
        (Array(2.5), 2.5),
        (Model(), {"tags": ["a", "b"]}),
        (row(), {"a": 1, "b": "x"}),
        (2**70, 2**70),
        ("ä€😀", "ä€😀"),
    ],
)
def test_what_a_reader_would_expect_is_what_comes_out(value: Any, expected: Any):
    made = to_json_friendly(value)
    assert made == expected
    assert type(made) is type(expected)
    assert msgspec.json.decode(msgspec.json.encode(made)) == expected


@cases(
    "value, place, reason",
    [
        ({"rows": [1, {"when": object()}]}, "result.rows[1].when", "is of type `object`, which JSON cannot say"),
        ({"a b": len}, "result['a b']", "is of type `builtin_function_or_method`, which JSON cannot say"),
        (Point(1, 3j), "result.y", "is of type `complex`, which JSON cannot say"),
        ([float("inf")], "result[0]", "is an infinite number"),
        (decimal.Decimal("-Infinity"), "result", "is an infinite number"),
        (["\ud800"], "result[0]", "is text that is not valid Unicode"),
        pytest.param([10**5000], "result[0]", "is an integer of more than 4,000 digits", id="many digits"),
        ({(1, 2): 3}, "result", "has a key of type `tuple`, and keys must be text"),
        ({1: "a", "1": "b"}, "result", "has two keys that both become `1`"),
        (fractions.Fraction(1, 3), "result", "is of type `Fraction`, which JSON cannot say"),
        (io.StringIO("text"), "result", "is of type `StringIO`, which JSON cannot say"),
        (Point, "result", "is of type `type`, which JSON cannot say"),
        (ValueError("x"), "result", "is of type `ValueError`, which JSON cannot say"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_place(value: Any, place: str, reason: str):
    with pytest.raises(NotFriendly) as caught:
        to_json_friendly(value)
    assert (caught.value.place("result"), caught.value.reason) == (place, reason)


def test_what_contains_itself_is_refused():
    value: dict[str, Any] = {"list": []}
    value["list"].append((1, value))
    with pytest.raises(NotFriendly, match="contains itself") as caught:
        to_json_friendly(value)
    assert caught.value.place("result") == "result.list[0][1]"


def test_the_same_value_twice_is_not_a_cycle():
    shared = [1]
    assert to_json_friendly([shared, shared, {"a": shared}]) == [[1], [1], {"a": [1]}]


def test_what_is_very_deep_is_refused_and_its_place_is_short():
    value: Any = 1
    for _ in range(50_000):
        value = [value]
    with pytest.raises(NotFriendly, match="nested more than 200 levels deep") as caught:
        to_json_friendly(value)
    assert len(caught.value.place("result")) < 220


def test_a_conversion_that_leads_back_to_its_own_kind_ends():
    class Endless:
        def to_list(self) -> Any:
            return Endless()

    with pytest.raises(NotFriendly, match="200 levels"):
        to_json_friendly(Endless())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(json_values)
def test_what_json_can_say_comes_out_equal_and_shares_nothing(value: Any):
    made = to_json_friendly(value)
    assert made == value
    if isinstance(value, (list, dict)):
        assert made is not value


@settings(max_examples=times(20))
@given(
    st.recursive(
        json_values | st.binary() | st.dates() | st.decimals(), lambda inner: st.lists(inner) | st.tuples(inner)
    )
)
def test_whatever_comes_out_can_be_written_as_json(value: Any):
    try:
        made = to_json_friendly(value)
    except NotFriendly:
        return
    assert msgspec.json.decode(msgspec.json.encode(made)) == made


def test_a_generator_without_end_is_refused_before_it_takes_all_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.tools.python.code.MAX_DRAWN", 1000)
    with pytest.raises(NotFriendly, match="gives more than 1,000 values, perhaps without end"):
        to_json_friendly(itertools.count())
    assert to_json_friendly(n for n in range(1000)) == list(range(1000))
