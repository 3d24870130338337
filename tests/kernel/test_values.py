"""`frozen` and `mutable`: what a dataclass promises, without compiling its methods."""

from __future__ import annotations

from dataclasses import field, replace

import pytest

from penstock.kernel.values import frozen, mutable


@frozen
class Point:
    x: int
    y: int = 0
    label: str = field(default="", compare=False, repr=False)


@frozen
class Named:
    name: str

    def __repr__(self) -> str:
        return self.name


@mutable
class Counter:
    n: int = 0
    seen: list[int] = field(default_factory=list)


@mutable
class Twice(Counter):
    factor: int = 2


def test_they_are_compared_by_their_fields_and_their_type() -> None:
    assert Point(1, 2, "a") == Point(1, 2, "b") != Point(1, 3)
    assert Counter(1) == Counter(1) != Counter(2)
    assert Counter(1) != Twice(1) == Twice(1) != Twice(1, factor=3)


def test_a_frozen_one_is_hashed_by_its_fields_and_a_mutable_one_not_at_all() -> None:
    assert {Point(1, 2, "a"), Point(1, 2, "b")} == {Point(1, 2)}
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter())


def test_they_are_printed_by_their_fields_unless_they_say_how() -> None:
    assert repr(Point(1, 2, "a")) == "Point(x=1, y=2)"
    assert repr(Twice(1)) == "Twice(n=1, seen=[], factor=2)"
    assert repr(Named("a")) == "a"


def test_they_have_slots_and_can_be_replaced() -> None:
    with pytest.raises(AttributeError):
        Counter().other = 1  # type: ignore[attr-defined]
    assert replace(Point(1, 2), y=5) == Point(1, 5)
