"""The ways of taking a column apart."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from penstock.components.queries import function
from penstock.components.shape.extract import JsonField, Stretch
from penstock.components.shape.extracting import Extraction, Piece, wanted_type, whole
from penstock.components.shape.patterns import group_count
from penstock.components.shape.terms import case, is_not, is_null, some, text
from penstock.components.types import is_nested, is_text
from penstock.data import select

Types = Mapping[str, str | None]


def by_regex(column: str, pattern: str, types: Types) -> Extraction:
    value, matcher = text(select.column(column)), select.literal(pattern)
    places = [str(number) for number in range(1, len(types) + 1)]
    if group_count(pattern) == 0:
        taken: exp.Expr = function("regexp_extract", value, matcher)
        read: list[exp.Expr] = [whole()]
    else:
        taken = function("regexp_extract", value, matcher, select.literal(places))
        read = [function("struct_extract", whole(), select.literal(place)) for place in places]
    pieces = {
        name: Piece(_or_nothing(part), wanted_type(type))
        for part, (name, type) in zip(read, types.items(), strict=True)
    }
    fails = is_not(function("regexp_matches", value, matcher))
    return Extraction(column, taken, fails, f"does not match `{pattern}`", pieces)


def by_separator(column: str, separator: str, types: Types, trim: bool, ragged: bool) -> Extraction:
    taken = function("string_split", text(select.column(column)), select.literal(separator))
    pieces = {
        name: Piece(_or_nothing(function("list_extract", whole(), select.literal(number)), trim), wanted_type(type))
        for number, (name, type) in enumerate(types.items(), 1)
    }
    other = exp.NEQ(this=function("len", whole()), expression=select.literal(len(types)))
    fails: exp.Expr = exp.false() if ragged else other
    return Extraction(column, taken, fails, f"does not have {len(types)} pieces between `{separator}`", pieces)


def by_position(column: str, fields: Mapping[str, int | Stretch], trim: bool, ragged: bool) -> Extraction:
    pieces: dict[str, Piece] = {}
    after, last = 1, 0
    for name, field in fields.items():
        start, length = (after, field) if isinstance(field, int) else (field.start, field.length)
        type = None if isinstance(field, int) else wanted_type(field.type)
        part = function("substr", whole(), select.literal(start), select.literal(length))
        pieces[name] = Piece(_or_nothing(part, trim), type)
        after, last = start + length, max(last, start + length - 1)
    short = exp.LT(this=function("length", whole()), expression=select.literal(last))
    fails: exp.Expr = exp.false() if ragged else short
    return Extraction(column, text(select.column(column)), fails, f"is shorter than {last} characters", pieces)


def by_json(column: str, type: str, fields: Mapping[str, str | JsonField]) -> Extraction:
    value = select.column(column)
    valid = case([(function("json_valid", value), select.cast(value, "JSON"))])
    taken = valid if is_text(type) else function("to_json", value)
    pieces: dict[str, Piece] = {}
    fails = [is_null(whole())]
    for name, field in fields.items():
        path = select.literal(field if isinstance(field, str) else field.path)
        wanted = None if isinstance(field, str) else wanted_type(field.type)
        if wanted is not None and is_nested(wanted):
            pieces[name] = Piece(function("json_extract", whole(), path), wanted, "JSON")
        else:
            pieces[name] = Piece(function("json_extract_string", whole(), path), wanted)
        if not isinstance(field, str) and field.required:
            fails.append(is_null(function("json_extract_string", whole(), path)))
    says = "is not JSON" if len(fails) == 1 else "is not JSON, or lacks a field that is required"
    return Extraction(column, taken, some(fails), says, pieces)


def _or_nothing(value: exp.Expr, trim: bool = False) -> exp.Expr:
    return function("nullif", function("trim", value) if trim else value, select.literal(""))
