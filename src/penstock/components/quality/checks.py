"""The checks of `assert_rows`, as an author writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from penstock.tools.parameters import Positive

Count = Annotated[int, Meta(ge=0)]
Place = tuple[str | int, ...]

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|m|h|d|w|second|minute|hour|day|week)s?\s*\Z", re.ASCII)


class Freshness(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    column: Annotated[str, Meta(description="A date or timestamp.")]
    max_age: Annotated[
        Positive | str, Meta(description="How old the newest value may be: seconds, or text such as `24h`, `7 days`.")
    ]

    def __post_init__(self) -> None:
        self.seconds()

    def seconds(self) -> float:
        if not isinstance(self.max_age, str):
            return float(self.max_age)
        found = _DURATION.match(self.max_age)
        if found is None:
            raise ValueError(f"`max_age: {self.max_age}` is no duration; `90s`, `30m`, `24h`, `7d` are")
        return float(found[1]) * _UNITS[found[2][0]]


class RowCount(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    min: Annotated[Count | None, Meta(description="At least so many rows.")] = None
    max: Annotated[Count | None, Meta(description="At most so many rows.")] = None

    def __post_init__(self) -> None:
        if self.min is None and self.max is None:
            raise ValueError("`row_count` needs `min`, `max` or both")


class Check(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One kind of check, for one or more columns."""

    name: Annotated[str | None, Meta(description="What the check is called in messages and in `error_code`.")] = None
    not_null: Annotated[list[str] | None, Meta(description="Columns that must have a value.")] = None
    unique: Annotated[
        list[str] | None, Meta(description="Columns that together occur once; a row repeating an earlier one fails.")
    ] = None
    range: Annotated[
        dict[str, tuple[Any, Any]] | None,
        Meta(description="Column -> `[lowest, highest]`, both allowed; null for an open end."),
    ] = None
    regex: Annotated[dict[str, str] | None, Meta(description="Column -> pattern that its whole text must match.")] = (
        None
    )
    in_: Annotated[dict[str, list[Any]] | None, Meta(description="Column -> the values it may have.")] = msgspec.field(
        name="in", default=None
    )
    expression: Annotated[str | None, Meta(description="A condition in SQL that must not be false.")] = None
    freshness: Annotated[Freshness | None, Meta(description="How old the newest row may be.")] = None
    row_count: Annotated[RowCount | None, Meta(description="How many rows there must be.")] = None

    def __post_init__(self) -> None:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            wanted = ", ".join(f"`{kind.rstrip('_')}`" for kind in KINDS)
            found = " and ".join(f"`{kind.rstrip('_')}`" for kind in given) or "none"
            raise ValueError(f"a check has exactly one of {wanted}; this one has {found}")

    @property
    def is_of_rows(self) -> bool:
        return self.freshness is None and self.row_count is None


KINDS = ("not_null", "unique", "range", "regex", "in_", "expression", "freshness", "row_count")


def named_columns(checks: Sequence[Check]) -> Iterator[tuple[Place, str]]:
    """Every column that a check names, with its place in the parameters."""
    for number, check in enumerate(checks):
        for kind in ("not_null", "unique"):
            for index, column in enumerate(getattr(check, kind) or ()):
                yield ("checks", number, kind, index), column
        for kind in ("range", "regex", "in_"):
            for column in getattr(check, kind) or ():
                yield ("checks", number, kind.rstrip("_"), column), column
        if check.freshness is not None:
            yield ("checks", number, "freshness", "column"), check.freshness.column
