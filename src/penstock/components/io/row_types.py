"""From rows as they were found to rows with types: what does not fit is refused with its place, or ends the run.

A reader that goes through a file by itself (positional, XML, Excel) loads what it found into the engine, a column
`file`, `line` and `raw_line` beside the values and `flaw` for what is wrong with a row as a whole. The rest is SQL,
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from penstock.components.base import Call, ComponentFailure
from penstock.components.types import WHOLE, is_written_whole, plain_number
from penstock.data import select
from penstock.data.types import NOTHING
from penstock.ports.rows import Column, Relation, Schema

REJECTED: Schema = (
    Column("error_code", "VARCHAR"),
    Column("error_message", "VARCHAR"),
    Column("file", "VARCHAR"),
    Column("line", "BIGINT"),
    Column("column", "VARCHAR"),
    Column("raw_line", "VARCHAR"),
)


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
            answers = iter(ask(_question(asked, rows, notation)))
            left = {name: [each for each in possible if next(answers) in is_left] for name, possible in asked.items()}
    return {name: next((each.type for each in left.get(name, ())), "VARCHAR") for name in names}


PLACE: Schema = (
    Column("file", "VARCHAR"),
    Column("line", "BIGINT"),
    Column("raw_line", "VARCHAR"),
    Column("flaw", "VARCHAR"),
)
_NUMBERS = ("DOUBLE", "FLOAT", "REAL", "DECIMAL", *WHOLE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column of the result: from which one it is made, and how."""

    name: str
    source: str
    type: str | None = None
    """Found out from all values when it is not given."""
    notation: Notation = field(default_factory=Notation)


def loading_schema(names: Sequence[str]) -> Schema:
    """Of rows that are all text."""
    return (*PLACE, *(Column(name, "VARCHAR") for name in names))


def settled(found: Relation, wanted: Sequence[Wanted], engine_call: Call) -> list[Wanted]:
    """The same columns, each with a type. A column that is no text has one already."""
    types = {column.name: column.type for column in found.schema}
    unknown = [each for each in wanted if each.type is None and types[each.source] == "VARCHAR"]
    inferred: dict[str, str] = {}
    if not found.rows:
        inferred, unknown = {each.source: NOTHING for each in unknown}, []
    for notation in {each.notation for each in unknown}:
        names = [each.source for each in unknown if each.notation == notation]
        sound = exp.select(exp.Star()).from_(select.table("found")).where(select.column("flaw").is_(exp.null()))
        inferred |= found_types(names, sound, notation, lambda query: _asked(query, found, engine_call))
    return [
        Wanted(each.name, each.source, each.type or inferred.get(each.source, types[each.source]), each.notation)
        for each in wanted
    ]


def _asked(query: exp.Select, found: Relation, engine_call: Call) -> Sequence[bool | None]:
    ((row,),) = list(engine_call.engine.rows(select.sql(query), {"found": found}))
    return row


def _converted(each: Wanted, source_type: str) -> exp.Expr:
    """The value in its type, NULL when it is not of that type."""
    column, type = select.column(each.source), each.type or "VARCHAR"
    if type == source_type:
        return column
    if type == NOTHING:
        return exp.null()
    if type in WHOLE and source_type.startswith(("DOUBLE", "FLOAT", "DECIMAL")):
        return _if(column.eq(call("trunc", column)), try_cast(column, type))
    if source_type != "VARCHAR" or type == "VARCHAR":
        return try_cast(column, type)
    text = call("trim", column)
    notation = each.notation
    if type == "DATE" and notation.date_format is not None:
        return select.cast(call("try_strptime", text, notation.date_format), "DATE")
    if type.startswith("TIMESTAMP") and notation.timestamp_format is not None:
        return select.cast(call("try_strptime", text, notation.timestamp_format), type)
    if not type.startswith(_NUMBERS) or type.endswith("]"):
        return try_cast(text, type)
    number = notation.plain_number(text)
    return _if(is_written_whole(number), try_cast(number, type)) if type in WHOLE else try_cast(number, type)


def _if(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.case().when(condition, value).else_(exp.null())


def parted(found: Relation, wanted: Sequence[Wanted]) -> tuple[exp.Select, exp.Select]:
    """Over the table `found`: the rows that are right, and the rejects."""
    types = {column.name: column.type for column in found.schema}
    wrong = {
        each.name: exp.and_(
            select.column(each.source).is_(exp.null()).not_(), _converted(each, types[each.source]).is_(exp.null())
        )
        for each in wanted
        if each.type not in (types[each.source], "VARCHAR", NOTHING)
    }
    culprit = exp.case().when(select.column("flaw").is_(exp.null()).not_(), exp.null())
    message = exp.case().when(select.column("flaw").is_(exp.null()).not_(), select.column("flaw"))
    for each in wanted:
        if each.name not in wrong:
            continue
        value = call("left", select.cast(select.column(each.source), "VARCHAR"), select.literal(200))
        culprit = culprit.when(wrong[each.name], select.literal(each.name))
        message = message.when(
            wrong[each.name],
            call("concat", "`", value, f"` is not a {each.type}{each.notation.written_as(each.type or '')}"),
        )
    is_wrong = exp.or_(select.column("flaw").is_(exp.null()).not_(), *wrong.values())
    has_flaw = select.column("flaw").is_(exp.null()).not_()
    code = exp.case().when(has_flaw, select.literal("bad_row")).else_(select.literal("bad_value"))
    good = exp.select(
        *(exp.alias_(_converted(each, types[each.source]), select.name(each.name)) for each in wanted)
    ).from_(select.table("found"))
    bad = exp.select(
        exp.alias_(code, select.name("error_code")),
        exp.alias_(message, select.name("error_message")),
        select.column("file"),
        select.column("line"),
        exp.alias_(select.cast(culprit, "VARCHAR"), select.name("column")),
        select.column("raw_line"),
    ).from_(select.table("found"))
    return good.where(exp.Paren(this=is_wrong).not_()), bad.where(is_wrong)


def deliver(found: Relation, wanted: Sequence[Wanted], call: Call, on_error: Literal["fail", "skip"]) -> None:
    """Put the rows on `main` and what is refused on `reject`; raise when `reject` is not connected."""
    good, bad = parted(found, settled(found, wanted, call))
    rejected = call.engine.select(select.sql(bad), {"found": found})
    call.after["NB_LINE_REJECTED"] = rejected.rows
    if "reject" in call.connected:
        call.put("reject", rejected)
    elif rejected.rows:
        failure = first_failure(call, rejected)
        if on_error == "fail":
            raise failure
        call.say(f"{rejected.rows} rows were left out; the first: {failure.message}")
    call.put("main", call.engine.select(select.sql(good), {"found": found}))


def first_failure(call: Call, rejected: Relation) -> ComponentFailure:
    """The failure that the first of the rejects is."""
    query = exp.select(*(select.column(column.name) for column in REJECTED)).from_(select.table("rejected")).limit(1)
    (((code, message, file, line, column, _),),) = list(call.engine.rows(select.sql(query), {"rejected": rejected}))
    where = f"`{file}`, line {line}" + (f", column `{column}`" if column else "")
    more = f" ({rejected.rows} in all)" if rejected.rows > 1 else ""
    hint = "; hint: connect the `reject` port, or set `on_error: skip`"
    return ComponentFailure(code, f"{where}: {message}{more}{hint}", file=file, line=line, column=column)
