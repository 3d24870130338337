"""Columns of which nothing is known but the name: those of a file that has no rows today.

Their type is DuckDB's own for a column that has never had a value, which goes with nearly every other. Where it does not, since a
function of dates cannot tell which of its forms is meant, the query is bound under some type that it does accept: without a row,
any such type is as right as another. Nothing here is reached by a query whose columns all have types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from penstock.ports.rows import Column, Schema

NOTHING = '"NULL"'
"""DuckDB's type of a column that has never had a value. Text would not go with numbers, and a day without rows would break a job
that adds up its amounts."""

OPEN = "(no columns)"
"""The name of the one column of rows that never came, from a source whose rows alone say what the columns are."""
UNKNOWN_COLUMNS: Schema = (Column(OPEN, NOTHING),)

_GUESSES = ("TIMESTAMP", "DATE", "VARCHAR", "DOUBLE", "BOOLEAN", "VARCHAR[]")
"""What functions that refuse the type above are for, the likeliest first."""

Place = tuple[str, str]
Inputs = Mapping[str, Schema]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bound(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class Stuck:
    """The query did not bind. `at` grows with how far the binding came; None when it says nothing about types."""

    at: int | None


def is_open(schema: Schema) -> bool:
    """May there be columns that nobody has seen?"""
    return any(column.name == OPEN for column in schema)


def has_untyped(inputs: Inputs) -> bool:
    return any(column.type == NOTHING for schema in inputs.values() for column in schema)


def bound_under_some_types(text: str, inputs: Inputs, bind: Callable[[Inputs], Bound[T] | Stuck]) -> T | None:
    """What `bind` gives under the first types that it accepts for the untyped columns that the text names; None without any."""
    named = [place for place in _untyped(inputs) if place[1].lower() in text.lower()]
    settled: dict[Place, str] = {}
    reached = bind(inputs)
    if isinstance(reached, Bound):
        return reached.value
    if reached.at is None:
        return None
    for guess in _GUESSES:
        for place in named:
            found = bind(retyped(inputs, settled | {place: guess})) if place not in settled else reached
            if isinstance(found, Bound):
                return found.value
            if found.at is not None and found.at > reached.at:
                settled[place], reached = guess, found
        # Two columns that are taken from each other, say, have to be of one type at once.
        found = bind(retyped(inputs, dict.fromkeys(named, guess) | settled))
        if isinstance(found, Bound):
            return found.value
    return None


def retyped(inputs: Inputs, types: Mapping[Place, str]) -> dict[str, Schema]:
    return {
        name: tuple(replace(column, type=types.get((name, column.name), column.type)) for column in schema)
        for name, schema in inputs.items()
    }


def _untyped(inputs: Inputs) -> Iterator[Place]:
    for name, schema in inputs.items():
        for column in schema:
            if column.type == NOTHING:
                yield name, column.name
