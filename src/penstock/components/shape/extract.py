"""`extract_regex`, `extract_json`, `extract_delimited`, `extract_positional`: new columns out of one column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta
from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Known, Mistake, Port
from penstock.components.quality.rules import Flagged, Refusing, RefusingParams, Rule
from penstock.components.shape.patterns import group_count, group_names, problem, wrong_path, wrong_pattern
from penstock.components.transform.base import actual, missing, repeated
from penstock.components.types import Conversion, is_nested, is_text, not_that, sql_type, wrong_type
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about

CODE = "EXTRACT"


@dataclass(frozen=True, slots=True)
class Piece:
    """A new column: how it is read from the whole, the type it is to have, and the one it has as it is read."""

    value: exp.Expr
    type: str | None = None
    raw: str = "VARCHAR"

    def converted(self) -> exp.Expr:
        return self.value if self.type is None else Conversion(self.type).value(self.value, self.raw)


@dataclass(frozen=True, slots=True)
class Extraction:
    column: str
    whole: exp.Expr
    """The column taken apart: a list, a structure, a document. Goes by the name `WHOLE`."""
    fails: exp.Expr
    """True where it cannot be. A row without a value in the column has no pieces, and is not refused."""
    says: str
    pieces: Mapping[str, Piece]

    def parted(self, schema: Schema, keep: bool) -> tuple[Flagged, list[exp.Expr]]:
        """The rules that a row may break, and the columns of one that breaks none."""
        apart = build.picked([*build.every(schema), build.called(self.whole, WHOLE)], "input")
        flagged = Flagged(schema, self._rules(), apart, [WHOLE])
        kept = tuple(column for column in schema if keep or column.name != self.column)
        made = [build.called(piece.converted(), name) for name, piece in self.pieces.items()]
        return flagged, [*build.every(kept), *made]

    def _rules(self) -> list[Rule]:
        column = select.column(self.column)
        shown = build.function("left", select.cast(column, "VARCHAR"), select.literal(60))
        message: exp.Expr = build.function(
            "concat", select.literal(f"`{self.column}`: `"), shown, select.literal(f"` {self.says}")
        )
        found = [
            Rule(CODE, self.says, build.every_one([build.is_not_null(column), self.fails]), (self.column,), message)
        ]
        for name, piece in self.pieces.items():
            if piece.type is not None and piece.type != piece.raw:
                lost = build.every_one(
                    [build.is_not_true(self.fails), Conversion(piece.type).loses(piece.value, piece.raw)]
                )
                message = not_that(piece.value, name, piece.type)
                found.append(Rule("CONVERSION", f"`{name}` is not {piece.type}", lost, (self.column,), message))
        return found


WHOLE = "__whole"


def whole() -> exp.Column:
    return select.column(WHOLE)


def wanted_type(text: str | None) -> str | None:
    """A type as an author wrote it; None for text, which needs no conversion."""
    made = None if text is None else sql_type(text)
    return None if made == "VARCHAR" else made


Names = list[str] | dict[str, str]


class ExtractParams(RefusingParams, kw_only=True):
    column: Annotated[str, about("The column to take apart.")]
    keep: Annotated[bool, about("Keep the column itself beside the new ones.")] = True


E_ = TypeVar("E_", bound=ExtractParams)


class Extract(Refusing[E_]):
    """What the four have in common."""

    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows with the new columns"),
        Port("reject", reject=True, description="rows that could not be taken apart, as they came"),
    )

    def new_columns(self, params: E_) -> dict[str, str | None]:
        """New column -> its type as the author wrote it."""
        raise NotImplementedError

    def extraction(self, params: E_, column: str, type: str) -> Extraction:
        """How this column, of this type, is taken apart."""
        raise NotImplementedError

    def wrong(self, params: E_, inputs: Known) -> Iterable[Mistake]:
        schema = inputs.get("input")
        yield from missing(("column",), params.column, schema)
        for name, type in self.new_columns(params).items():
            if type is not None:
                yield from wrong_type(self.param_path(params, name), type)
            there = None if schema is None else actual(name, schema)
            if there is not None and (params.keep or there.lower() != params.column.lower()):
                hint = "choose another name" if params.keep else "choose another name, or set `keep: false`"
                yield Mistake(self.param_path(params, name), f"`{name}` is a column already", hint=hint)

    def param_path(self, params: E_, name: str) -> tuple[str | int, ...]:
        return ("into",)

    def parted(self, params: E_, schema: Schema) -> tuple[Flagged, Sequence[exp.Expr]]:
        column = next(each for each in schema if each.name == actual(params.column, schema))
        return self.extraction(params, column.name, column.type).parted(schema, params.keep)


class ExtractFields(Extract[E_]):
    """Those whose `fields` name the new columns: by how each is found, or by a mapping that may have its type."""

    def new_columns(self, params: E_) -> dict[str, str | None]:
        fields: Mapping[str, Any] = msgspec.structs.asdict(params)["fields"]
        return {name: getattr(field, "type", None) for name, field in fields.items()}

    def param_path(self, params: E_, name: str) -> tuple[str | int, ...]:
        return ("fields", name)


def _typed(into: Names) -> dict[str, str | None]:
    return dict(into) if isinstance(into, dict) else dict.fromkeys(into)


class ExtractRegexParams(ExtractParams, kw_only=True):
    pattern: Annotated[str, about("A regular expression (RE2); each group gives one new column.", min_length=1)]
    into: Annotated[
        Names, about("The new columns, one per group: a list of names, or name -> type. Not needed for named groups.")
    ] = msgspec.field(default_factory=list)


class ExtractRegex(Extract[ExtractRegexParams]):
    """Take a text apart with a regular expression.

    The pattern is looked for anywhere in the text; begin it with `^` and end it with `$` to match all of it. Each group in
    parentheses gives a new column, text unless `into` says otherwise, NULL where the group matched nothing. A pattern without
    groups gives one column, with what it matched. Rows without a value pass, with NULL in the new columns.

    Rows that do not match, or with a piece that is not of its type, go to `reject` with `error_code` `EXTRACT` or `CONVERSION`.
    When that port is not connected they end the component in ERROR, unless `on_error: skip`. After-variables, when it is not
    connected: `NB_LINE_REJECTED`.
    """

    type = "extract_regex"

    def new_columns(self, params: ExtractRegexParams) -> dict[str, str | None]:
        return _typed(params.into or group_names(params.pattern))

    def wrong(self, params: ExtractRegexParams, inputs: Known) -> Iterable[Mistake]:
        yield from wrong_pattern(("pattern",), params.pattern)
        if problem(params.pattern) is None:
            groups, names = group_count(params.pattern), list(params.into) or group_names(params.pattern)
            if not names:
                yield Mistake(("pattern",), "`into` names no columns, and the pattern has no named groups")
            elif groups is not None and max(groups, 1) != len(names):
                yield Mistake(("into",), f"the pattern has {groups} groups, and `into` names {len(names)} columns")
            yield from repeated(("into",), names)
        yield from super().wrong(params, inputs)

    def extraction(self, params: ExtractRegexParams, column: str, type: str) -> Extraction:

        return by_regex(column, params.pattern, self.new_columns(params))


class JsonField(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("Where the value is: `$.customer.name`, `$.lines[0]`.", min_length=1)]
    type: Annotated[str | None, about("Its type; text when left out.")] = None
    required: Annotated[bool, about("Refuse rows that do not have it.")] = False


class ExtractJsonParams(ExtractParams, kw_only=True):
    fields: Annotated[
        dict[str, str | JsonField],
        about("New column -> a path such as `$.customer.name`, or a mapping with `path` and `type`.", min_length=1),
    ]


class ExtractJson(ExtractFields[ExtractJsonParams]):
    """Take values out of a column of JSON.

    The column is text with JSON in it, or a structure. A path begins with `$`; a value that is not there gives NULL, or refuses
    the row when the field is `required`. The type `json` keeps a part as it is; lists take types such as `integer[]`.

    Rows whose text is not JSON go to `reject` with `error_code` `EXTRACT`, those with a value that is not of its type with
    `CONVERSION`. When that port is not connected they end the component in ERROR, unless `on_error: skip`. After-variables, when
    it is not connected: `NB_LINE_REJECTED`.
    """

    type = "extract_json"

    def wrong(self, params: ExtractJsonParams, inputs: Known) -> Iterable[Mistake]:
        for name, field in params.fields.items():
            path = field if isinstance(field, str) else field.path
            place = ("fields", name) if isinstance(field, str) else ("fields", name, "path")
            yield from wrong_path(place, path)
        yield from super().wrong(params, inputs)

    def extraction(self, params: ExtractJsonParams, column: str, type: str) -> Extraction:

        return by_json(column, type, params.fields)


class ExtractDelimitedParams(ExtractParams, kw_only=True):
    separator: Annotated[str, about("The delimiter between two pieces.", min_length=1)] = ","
    into: Annotated[Names, about("The new columns in their order: names, or name -> type.")]
    trim: Annotated[bool, about("Take blanks off the ends of each piece.")] = True
    ragged: Annotated[
        bool, about("Accept rows with fewer pieces (the rest is NULL) or more (the rest is left out).")
    ] = False


class ExtractDelimited(Extract[ExtractDelimitedParams]):
    """Take a text apart at a separator.

    Every piece gives one of the columns of `into`, in order; an empty piece is NULL. Quotation marks mean nothing here; a whole
    file of such lines is for `read_csv`.

    Rows with another number of pieces, unless `ragged` is set, go to `reject` with `error_code` `EXTRACT`, those with a piece
    that is not of its type with `CONVERSION`. When that port is not connected they end the component in ERROR, unless
    `on_error: skip`. After-variables, when it is not connected: `NB_LINE_REJECTED`.
    """

    type = "extract_delimited"

    def new_columns(self, params: ExtractDelimitedParams) -> dict[str, str | None]:
        return _typed(params.into)

    def wrong(self, params: ExtractDelimitedParams, inputs: Known) -> Iterable[Mistake]:
        if not params.into:
            yield Mistake(("into",), "at least one new column is needed")
        yield from repeated(("into",), list(params.into))
        yield from super().wrong(params, inputs)

    def extraction(self, params: ExtractDelimitedParams, column: str, type: str) -> Extraction:

        return by_separator(column, params.separator, _typed(params.into), params.trim, params.ragged)


class Stretch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    start: Annotated[int, about("The place of the first character, counted from 1.", ge=1)]
    length: Annotated[int, about("How many characters.", ge=1)]
    type: Annotated[str | None, about("Its type; text when left out.")] = None


Width = Annotated[int, Meta(ge=1)]


class ExtractPositionalParams(ExtractParams, kw_only=True):
    fields: Annotated[
        dict[str, Width | Stretch],
        about(
            "New column -> its width, one after another; or a mapping with `start`, `length` and `type`.", min_length=1
        ),
    ]
    trim: Annotated[bool, about("Take blanks off the ends of each piece.")] = True
    ragged: Annotated[bool, about("Accept texts that end too early; what is missing is NULL.")] = False


class ExtractPositional(ExtractFields[ExtractPositionalParams]):
    """Take a text apart by the places of its characters.

    A width begins where the field before it ended. A piece of blanks only is NULL. A whole file of such lines is for
    `read_positional`.

    Rows whose text is too short for the last field, unless `ragged` is set, go to `reject` with `error_code` `EXTRACT`, those
    with a piece that is not of its type with `CONVERSION`. When that port is not connected they end the component in ERROR,
    unless `on_error: skip`. After-variables, when it is not connected: `NB_LINE_REJECTED`.
    """

    type = "extract_positional"

    def extraction(self, params: ExtractPositionalParams, column: str, type: str) -> Extraction:

        return by_position(column, params.fields, params.trim, params.ragged)


Types = Mapping[str, str | None]


def by_regex(column: str, pattern: str, types: Types) -> Extraction:
    value, matcher = build.text(select.column(column)), select.literal(pattern)
    places = [str(number) for number in range(1, len(types) + 1)]
    if group_count(pattern) == 0:
        taken: exp.Expr = build.function("regexp_extract", value, matcher)
        read: list[exp.Expr] = [whole()]
    else:
        taken = build.function("regexp_extract", value, matcher, select.literal(places))
        read = [build.function("struct_extract", whole(), select.literal(place)) for place in places]
    pieces = {
        name: Piece(_or_nothing(part), wanted_type(type))
        for part, (name, type) in zip(read, types.items(), strict=True)
    }
    fails = build.is_not(build.function("regexp_matches", value, matcher))
    return Extraction(column, taken, fails, f"does not match `{pattern}`", pieces)


def by_separator(column: str, separator: str, types: Types, trim: bool, ragged: bool) -> Extraction:
    taken = build.function("string_split", build.text(select.column(column)), select.literal(separator))
    pieces = {
        name: Piece(
            _or_nothing(build.function("list_extract", whole(), select.literal(number)), trim), wanted_type(type)
        )
        for number, (name, type) in enumerate(types.items(), 1)
    }
    other = exp.NEQ(this=build.function("len", whole()), expression=select.literal(len(types)))
    fails: exp.Expr = exp.false() if ragged else other
    return Extraction(column, taken, fails, f"does not have {len(types)} pieces between `{separator}`", pieces)


def by_position(column: str, fields: Mapping[str, int | Stretch], trim: bool, ragged: bool) -> Extraction:
    pieces: dict[str, Piece] = {}
    after, last = 1, 0
    for name, field in fields.items():
        start, length = (after, field) if isinstance(field, int) else (field.start, field.length)
        type = None if isinstance(field, int) else wanted_type(field.type)
        part = build.function("substr", whole(), select.literal(start), select.literal(length))
        pieces[name] = Piece(_or_nothing(part, trim), type)
        after, last = start + length, max(last, start + length - 1)
    short = exp.LT(this=build.function("length", whole()), expression=select.literal(last))
    fails: exp.Expr = exp.false() if ragged else short
    return Extraction(column, build.text(select.column(column)), fails, f"is shorter than {last} characters", pieces)


def by_json(column: str, type: str, fields: Mapping[str, str | JsonField]) -> Extraction:
    value = select.column(column)
    valid = build.case([(build.function("json_valid", value), select.cast(value, "JSON"))])
    taken = valid if is_text(type) else build.function("to_json", value)
    pieces: dict[str, Piece] = {}
    fails = [build.is_null(whole())]
    for name, field in fields.items():
        path = select.literal(field if isinstance(field, str) else field.path)
        wanted = None if isinstance(field, str) else wanted_type(field.type)
        if wanted is not None and is_nested(wanted):
            pieces[name] = Piece(build.function("json_extract", whole(), path), wanted, "JSON")
        else:
            pieces[name] = Piece(build.function("json_extract_string", whole(), path), wanted)
        if not isinstance(field, str) and field.required:
            fails.append(build.is_null(build.function("json_extract_string", whole(), path)))
    says = "is not JSON" if len(fails) == 1 else "is not JSON, or lacks a field that is required"
    return Extraction(column, taken, build.some(fails), says, pieces)


def _or_nothing(value: exp.Expr, trim: bool = False) -> exp.Expr:
    return build.function("nullif", build.function("trim", value) if trim else value, select.literal(""))
