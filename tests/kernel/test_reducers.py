"""Reducers: one answer, whatever the order and the pieces in which the elements are heard."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernel.reducers import (
    OPERATIONS,
    ReducerError,
    combine,
    final_value,
    final_values,
    lift,
    merged,
    with_reduced,
)
from penstock.ports.results import decode, encode
from tests.cases import cases
from tests.depth import times

whole = st.integers(-(2**70), 2**70)
real = st.floats(allow_nan=False, allow_infinity=False, width=64)
small = st.integers(-5, 5) | st.sampled_from([0.5, 1.0, -2.0]) | st.text("ab", max_size=2)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "sum": whole | real,
    "count": st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    "min": st.none() | small,
    "max": st.none() | small,
    "append": small | st.lists(small, max_size=3),
    "merge": st.dictionaries(st.sampled_from("abc"), small, max_size=3),
}


def rounded(exact: Fraction) -> float | int:
    try:
        return float(exact)
    except OverflowError:
        return math.floor(exact)


def plain(operation: str, values: list[Any]) -> Any:
    """What the author expects: the values one after another, in the order of the elements."""
    if operation == "count":
        return sum(value is not None and value is not False for value in values)
    if operation == "append":
        return [one for value in values for one in (value if isinstance(value, list) else [value])]
    if operation == "merge":
        joined: dict[str, Any] = {}
        for value in values:
            joined.update(value)
        return joined
    if operation == "sum":
        exact = sum((Fraction(value) for value in values), Fraction(0))
        return int(exact) if all(isinstance(value, int) for value in values) else rounded(exact)
    raise AssertionError(operation)


def reduced(operation: str, parts: list[Any], cuts: list[int]) -> Any:
    """Put together in pieces that end at `cuts`, each of which travels as JSON."""
    pieces: list[Any] = []
    for start, end in zip([0, *cuts], [*cuts, len(parts)], strict=True):
        if start == end:
            continue
        piece = parts[start]
        for part in parts[start + 1 : end]:
            piece = combine(operation, piece, part)
        pieces.append(decode(encode(piece)))
    if not pieces:
        return None
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = combine(operation, whole, piece)
    return final_value(operation, whole)


@pytest.mark.clause("F5.1")
@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=times(20), deadline=None, derandomize=True)
@given(data=st.data())
def test_order_and_pieces_make_no_difference(operation: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES[operation], min_size=1, max_size=12))
    parts = [lift(operation, value, index) for index, value in enumerate(values)]
    order = data.draw(st.permutations(parts))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(parts)), max_size=4)))
    in_order = reduced(operation, parts, [])
    assert encode(reduced(operation, order, cuts)) == encode(in_order)
    if operation not in ("min", "max"):
        assert in_order == plain(operation, values)


@pytest.mark.clause("F5.1")
@settings(max_examples=times(20), deadline=None, derandomize=True)
@given(st.lists(real, min_size=1, max_size=30))
def test_a_sum_of_floats_is_rounded_once_at_the_end(values: list[float]) -> None:
    total = reduced("sum", [lift("sum", value, index) for index, value in enumerate(values)], [])
    exact = sum(map(Fraction, values), Fraction(0))
    assert total == rounded(exact)


def test_a_sum_that_no_float_can_hold_is_a_whole_number():
    largest = 1.7976931348623157e308
    assert final_value("sum", combine("sum", lift("sum", largest, 0), lift("sum", largest, 1))) == 2 * int(largest)


def test_many_tenths_are_summed_without_drift():
    parts = [lift("sum", 0.1, index) for index in range(10_000)]
    assert reduced("sum", parts, [5_000]) == float(10_000 * Fraction(0.1)) == 1_000.0
    assert sum([0.1] * 10_000) != 1_000.0


@cases(
    "operation, values, expected",
    [
        ("min", [3, 1, 2], 1),
        ("max", [3, "b", 2], "b"),
        ("min", [None, None], None),
        ("max", [None, 0.5], 0.5),
        ("count", [True, 0, "", None, False], 3),
        ("append", [[1, 2], 3, []], [1, 2, 3]),
        ("merge", [{"a": 1}, {"a": 2, "b": 1}], {"a": 2, "b": 1}),
        ("sum", [1, 2.5], 3.5),
        ("sum", [2**64, 2**64], 2**65),
    ],
)
def test_each_reducer_does_what_it_is_called(operation: str, values: list[Any], expected: Any) -> None:
    parts = [lift(operation, value, index) for index, value in enumerate(values)]
    assert reduced(operation, parts, []) == expected


@cases(
    "operation, value",
    [
        ("sum", "5"),
        ("sum", True),
        ("sum", None),
        ("sum", float("inf")),
        ("sum", float("nan")),
        ("min", [1]),
        ("max", True),
        ("merge", [1]),
        ("merge", None),
        ("average", 1),
    ],
)
def test_what_a_reducer_cannot_take_is_refused(operation: str, value: Any) -> None:
    with pytest.raises(ReducerError, match=operation):
        lift(operation, value, 0)


def test_a_key_that_no_element_added_to_has_the_value_of_nothing():
    operations = {operation: operation for operation in OPERATIONS}
    assert final_values(operations, {}) == {"sum": 0, "count": 0, "min": None, "max": None, "append": [], "merge": {}}
    assert with_reduced({"ctx": {"x": 1}}, final_values({"n": "sum"}, {})) == {"ctx": {"x": 1, "n": 0}}
    assert with_reduced({"append": {"x": [1]}}, {}) == {"append": {"x": [1]}}


def test_parts_are_added_key_by_key():
    into: dict[str, Any] = {"n": 1}
    merged({"n": "sum", "m": "max"}, into, {"n": 2, "m": [7]})
    assert into == {"n": 3, "m": [7]}


def test_what_is_added_to_leaves_the_parts_as_they_are():
    operations, into = {"all": "append", "seen": "merge"}, {}
    first = {"all": lift("append", 1, 0), "seen": lift("merge", {"a": 1}, 0)}
    merged(operations, into, first)
    merged(operations, into, {"all": lift("append", 2, 1), "seen": lift("merge", {"a": 2}, 1)})
    assert final_values(operations, into) == {"all": [1, 2], "seen": {"a": 2}}
    assert first == {"all": [[0, [1]]], "seen": {"a": [0, 1]}}
