"""Which type a column of text has.

Law: a type is given only to what would be written the same way again. `007` and a number of nineteen digits are text,
for they are more likely the name of something than a quantity; a column without a value is text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.components.written_numbers import plain_number
from penstock.data import select

_FIRST = 200
_INTEGER = r"-?(0|[1-9][0-9]{0,17})"
_NUMBER = r"-?(0|[1-9][0-9]{0,17})(\.[0-9]+)?([eE][-+]?[0-9]+)?"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_ZONE = r"(Z|[-+][0-9]{2}(:?[0-9]{2})?)"


@dataclass(frozen=True, slots=True)
class Notation:
    """How values are written in a text."""

    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None
    timestamp_format: str | None = None

    def format_of(self, type: str) -> str | None:
        """How a date or time of that type is written, where the author says so."""
        return self.date_format if type == "DATE" else self.timestamp_format if type.startswith("TIMESTAMP") else None

    def written_as(self, type: str) -> str:
        """For a sentence about a value that is none: how it would be written."""
        format = self.format_of(type)
        return "" if format is None else f" written as `{format}`"

    def plain_number(self, text: exp.Expr) -> exp.Expr:
        """The text with its number written as SQL writes numbers."""
        return plain_number(text, self.decimal, self.thousands)


def call(name: str, *arguments: exp.Expr | str) -> exp.Anonymous:
    return exp.Anonymous(
        this=name, expressions=[select.literal(each) if isinstance(each, str) else each for each in arguments]
    )


def try_cast(node: exp.Expr, type: str) -> exp.TryCast:
    return exp.TryCast(this=node, to=select.data_type(type))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A type, and how one knows a value of it: by a pattern, or by the author's own format."""

    type: str
    pattern: str = ""
    format: str | None = None

    def fits(self, column: exp.Expr, notation: Notation) -> exp.Expr:
        text = call("trim", column)
        if self.format is not None:
            return call("try_strptime", text, self.format).is_(exp.null()).not_()
        matches = call("regexp_full_match", text, self.pattern)
        if self.type == "BOOLEAN":
            return matches
        value = notation.plain_number(text) if self.type == "DOUBLE" else text
        return exp.and_(matches, try_cast(value, self.type).is_(exp.null()).not_())


def candidates(notation: Notation) -> list[Candidate]:
    """In the order in which they are preferred. A format that the author gave comes before all."""
    number = _NUMBER
    if notation.thousands is not None:
        grouped = rf"[1-9][0-9]{{0,2}}(\x{ord(notation.thousands):02x}?[0-9]{{3}})*"
        number = number.replace("[1-9][0-9]{0,17}", grouped, 1)
    number = number.replace(r"\.", rf"\x{ord(notation.decimal):02x}")
    found: list[Candidate] = []
    if notation.date_format is not None:
        found.append(Candidate("DATE", format=notation.date_format))
    if notation.timestamp_format is not None:
        found.append(Candidate("TIMESTAMP", format=notation.timestamp_format))
    found += [Candidate("BOOLEAN", "(?i:true|false)"), Candidate("BIGINT", _INTEGER), Candidate("DOUBLE", number)]
    if notation.date_format is None:
        found.append(Candidate("DATE", _DATE))
    if notation.timestamp_format is None:
        # A day without a time among timestamps is that day's midnight.
        found.append(Candidate("TIMESTAMP", f"{_DATE}({_CLOCK})?"))
        found.append(Candidate("TIMESTAMP WITH TIME ZONE", _DATE + _CLOCK + _ZONE))
    return found


Asked = Mapping[str, Sequence[Candidate]]


def _question(asked: Asked, source: exp.Query, notation: Notation) -> exp.Select:
    """One row that says for each column and candidate, in turn, whether all values fit; NULL when there are none."""
    wanted = [
        exp.case().when(select.column(name).is_(exp.null()), exp.null()).else_(each.fits(select.column(name), notation))
        for name, possible in asked.items()
        for each in possible
    ]
    named = [exp.alias_(call("bool_and", each), f"q{index}") for index, each in enumerate(wanted)]
    return exp.select(*named).from_(source.subquery(select.name("sample")))


def found_types(
    names: Sequence[str],
    source: exp.Select,
    notation: Notation,
    ask: Callable[[exp.Select], Sequence[bool | None]],
) -> dict[str, str]:
    """Column -> type. `ask` runs a query that gives one row."""
    left: dict[str, list[Candidate]] = {name: candidates(notation) for name in names}
    # The first rows rule most candidates out, so that few are left to try on all of them.
    for rows, is_left in ((source.copy().limit(_FIRST), (True, None)), (source, (True,))):
        asked = {name: possible for name, possible in left.items() if possible}
        if asked:
            told = iter(ask(_question(asked, rows, notation)))
            left = {name: [each for each in possible if next(told) in is_left] for name, possible in asked.items()}
    return {name: next((each.type for each in left.get(name, ())), "VARCHAR") for name in names}
