"""The columns that an author asks for, with their types, against those that a file has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from sqlglot import exp

from penstock.components.base import ComponentFailure, Mistake, ParamPath
from penstock.components.io.file_paths import codec
from penstock.data import select
from penstock.data.types import NOTHING, MissingColumn, TypeMistake, duckdb_type
from penstock.ports.meanings import KEYCHAIN_ENTRY, READS_ANYWHERE, WRITES_ANYWHERE
from penstock.ports.rows import Schema
from penstock.tools.parameters import about, similar

Character = Annotated[str, Meta(min_length=1, max_length=1)]
Filled = Annotated[str, Meta(min_length=1)]
AtLeastOne = Annotated[int, Meta(ge=1)]

SourcePath = Annotated[
    str,
    about(
        "The file, relative to the document's folder; or a pattern such as `in/*.csv`, whose files are read in "
        "the order of their names. Or a URL of such: `s3://`, `gs://`, `az://`, `https://`, `sftp://`.",
        min_length=1,
        schema=READS_ANYWHERE,
    ),
]
OneSourcePath = Annotated[
    str,
    about(
        "The file, relative to the document's folder; or a URL: `s3://`, `gs://`, `az://`, `https://`, `sftp://`.",
        min_length=1,
        schema=READS_ANYWHERE,
    ),
]
TargetPath = Annotated[
    str,
    about(
        "The file, relative to the document's folder; folders that are missing are made. It appears whole or not "
        "at all. Or a URL: `s3://`, `gs://`, `az://`, `sftp://`.",
        min_length=1,
        schema=WRITES_ANYWHERE,
    ),
]
Credentials = Annotated[
    str | dict[str, Any] | None,
    about(
        "For a URL: the keychain entry with what its place wants: `access_key_id`, `secret_access_key`, `region` and "
        "`endpoint` of S3, `username` and `password`, a `token` or a `private_key`.",
        schema=KEYCHAIN_ENTRY,
    ),
]
Append = Annotated[
    bool,
    about("Add to the end of the file, if there is one, instead of replacing it. Running the job again adds again."),
]
Delimiter = Annotated[
    str, about("The delimiter between two values; `tab` for a tab character.", min_length=1, max_length=4)
]
Encoding = Annotated[
    str, about("How the text is written in bytes: `utf-8`, `latin-1`, `cp1252`, `utf-16` … as Python names them.")
]
NullTexts = Annotated[str | list[str], about("How a missing value is written; a list when there are several ways.")]
Decimal = Annotated[str, about("The decimal mark of numbers: `.` or `,`.", min_length=1, max_length=1)]
Thousands = Annotated[Character | None, about("The separator of thousands in a number.")]
DateFormat = Annotated[str | None, about("How dates are written, such as `%d/%m/%Y`; `2024-12-31` when left out.")]
TimestampFormat = Annotated[
    str | None, about("How timestamps are written, such as `%d/%m/%Y %H:%M`; `2024-12-31 23:59:59` when left out.")
]
OnError = Annotated[
    Literal["fail", "skip"],
    about(
        "What a line that cannot be read does when the `reject` port is not connected: `fail` ends the component in "
        "ERROR and names the line, `skip` leaves it out and counts it."
    ),
]
FileColumn = Annotated[Filled | None, about("The name of a further column with the path of the file each row is from.")]
Types = Annotated[dict[str, str], about("Types of some columns, such as `{id: integer, price: 'decimal(10,2)'}`.")]
Header = Annotated[bool, about("The first line names the columns.")]


class NamedColumn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A column and its type."""

    name: Annotated[str, about("Its name.", min_length=1)]
    type: Annotated[str | None, about("Its type, such as `integer`; inferred when left out.")] = None


Columns = list[str | NamedColumn]


def sql_type(text: str) -> str:
    """DuckDB's name for a type. Raises ComponentFailure when there is no such type."""
    try:
        return duckdb_type(text)
    except TypeMistake as mistake:
        message = f"{mistake.message}; {mistake.hint}" if mistake.hint else mistake.message
        raise ComponentFailure("parameters", message) from None


def named(columns: Sequence[str | NamedColumn], declared: Schema | None) -> dict[str, str | None]:
    """Name -> type or None, in the author's order: from `columns`, else from the schema that the document declares."""
    if not columns and declared:
        return {column.name: column.type for column in declared}
    return {
        (each if isinstance(each, str) else each.name): (
            None if isinstance(each, str) or each.type is None else sql_type(each.type)
        )
        for each in columns
    }


def type_mistakes(columns: Sequence[str | NamedColumn], types: Mapping[str, str]) -> list[Mistake]:
    """Types that are none, and columns that are named twice."""
    found: list[Mistake] = []
    seen: set[str] = set()
    for index, each in enumerate(columns):
        name = each if isinstance(each, str) else each.name
        if name.lower() in seen:
            found.append(Mistake(("columns", index), f"`{name}` is named twice"))
        seen.add(name.lower())
        if isinstance(each, NamedColumn) and each.type is not None:
            found += _type_mistake(each.type, ("columns", index, "type"))
    for name, type in types.items():
        found += _type_mistake(type, ("types", name))
    return found


def _type_mistake(type: str, path: ParamPath) -> list[Mistake]:
    try:
        sql_type(type)
    except ComponentFailure as failure:
        return [Mistake(path, failure.message, kind="type")]
    return []


def encoding_mistakes(encoding: str) -> list[Mistake]:
    try:
        codec(encoding)
    except ComponentFailure as failure:
        return [Mistake(("encoding",), failure.message)]
    return []


def missing(wanted: Sequence[str], present: Sequence[str], where: str) -> str | None:
    """What to say of the first column that is asked for and not there; None when all are."""
    for name in wanted:
        if name not in present:
            known = ", ".join(f"`{each}`" for each in present) or "none"
            return f"{where} has no column `{name}`{similar(name, present)}; it has {known}"
    return None


def require(wanted: Sequence[str], rows: Schema) -> None:
    """Raises ComponentFailure for the first column that the input should have and has not."""
    present = [column.name for column in rows]
    if (problem := missing(wanted, present, "the input")) is not None:
        first = next(name for name in wanted if name not in present)
        raise ComponentFailure("columns", problem, missing=MissingColumn(first))


def missing_value(name: str, type: str) -> exp.Expr:
    """NULL under a name, in a type."""
    # A bare NULL is of that type, and the only one: nothing can be cast to it.
    value = exp.null() if type == NOTHING else select.cast(exp.null(), type)
    return exp.alias_(value, select.name(name))


def no_rows(schema: Schema) -> exp.Select:
    return exp.select(*(missing_value(column.name, column.type) for column in schema)).where(exp.false())
