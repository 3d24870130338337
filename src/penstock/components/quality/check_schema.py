"""`check_schema`: separates the rows that have the agreed columns, types and values from those that do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec

from penstock.components.base import ColumnMistake, Known, Mistake, Port
from penstock.components.quality.rules import Flagged, Refusing, RefusingParams, Rule, no_match, seen_before
from penstock.components.queries import called, every_one, is_not, is_null
from penstock.components.shape.patterns import wrong_pattern
from penstock.components.transform.base import actual, repeated, type_of
from penstock.components.types import Conversion, not_that, sql_type, wrong_type
from penstock.data import select
from penstock.data.types import OPEN, MissingColumn
from penstock.ports.rows import Schema
from penstock.tools.parameters import about, similar

if TYPE_CHECKING:
    from sqlglot import exp


class AgreedColumn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, about("Its name.", min_length=1)]
    type: Annotated[str | None, about("Its type; any when left out.")] = None
    nullable: Annotated[bool, about("May a value be missing?")] = True
    key: Annotated[bool, about("Part of the key: never missing, and unique together with the other key columns.")] = (
        False
    )
    pattern: Annotated[str | None, about("A regular expression that the whole text must match.")] = None


class CheckSchemaParams(RefusingParams):
    columns: Annotated[list[AgreedColumn], about("The columns that were agreed on.", min_length=1)]
    mode: Annotated[
        Literal["strict", "lenient"],
        about(
            "`strict`: a missing column, or one too many, is an error. `lenient`: missing ones are filled with NULL, "
            "others pass."
        ),
    ] = "strict"


class CheckSchema(Refusing[CheckSchemaParams]):
    """Hold rows against a schema.

    Rows whose values fit leave through `main`, in the types of the schema: a text `42` in a column that is to be an `integer`
    is the number 42 from here on. Rows with a value that does not fit, that is missing though `nullable` is false, that does
    not match its `pattern`, or whose `key` occurred before, leave through `reject` as they came, with `error_code` (`type`,
    `not_null`, `pattern`, `key`) and `error_message`. When that port is not connected, such a row ends the component in ERROR,
    unless `on_error: skip`.

    Columns that are missing, or that are there and not in the schema, are no matter of single rows: in `strict` mode they are
    an error, before the run where the columns are known by then. In `lenient` mode `main` has the columns of the schema
    first, then the others.

    After-variables, when `reject` is not connected: `NB_LINE_REJECTED`, the rows that were refused.
    """

    type = "check_schema"
    family = "quality"
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="rows that fit the schema, in its types"),
        Port("reject", reject=True, description="rows that do not"),
    )

    def wrong(self, params: CheckSchemaParams, inputs: Known) -> Iterable[Mistake]:
        agreed = [column.name for column in params.columns]
        yield from repeated(("columns",), agreed)
        for number, column in enumerate(params.columns):
            if column.type is not None:
                yield from wrong_type(("columns", number, "type"), column.type)
            if column.pattern is not None:
                yield from wrong_pattern(("columns", number, "pattern"), column.pattern)
        schema = inputs.get("input")
        if schema is not None and params.mode == "strict":
            yield from _strict(agreed, schema)

    def parted(self, params: CheckSchemaParams, schema: Schema) -> tuple[Flagged, Sequence[exp.Expr]]:
        made: list[exp.Expr] = [called(_value(column, schema), column.name) for column in params.columns]
        agreed = {column.name.lower() for column in params.columns}
        made += [select.column(column.name) for column in schema if column.name.lower() not in agreed]
        return Flagged(schema, _rules(params, schema)), made


def _strict(agreed: list[str], schema: Schema) -> Iterable[Mistake]:
    there = [column.name for column in schema]
    extra = [name for name in there if name.lower() not in {OPEN, *map(str.lower, agreed)}]
    for number, name in enumerate(agreed):
        if actual(name, schema) is None:
            near = similar(name, extra)
            message = f"`input` has no column `{name}`{near}"
            missing = MissingColumn(name, "input")
            yield ColumnMistake(("columns", number, "name"), message, kind="column", missing=missing)
    if extra:
        listed = ", ".join(f"`{name}`" for name in extra)
        hint = "add them to `columns`, take them out with `select`, or set `mode: lenient`"
        yield Mistake(
            ("columns",), f"`input` has columns that are not in the schema: {listed}", hint=hint, kind="column"
        )


def _value(column: AgreedColumn, schema: Schema) -> exp.Expr:
    """The column in the type that was agreed on; NULL where it is not there or does not convert."""
    there = actual(column.name, schema)
    if there is None:
        return select.cast(select.literal(None), sql_type(column.type or "string"))
    if column.type is None or sql_type(column.type) == type_of(there, schema):
        return select.column(there)
    return Conversion(sql_type(column.type)).value(select.column(there), type_of(there, schema))


def _rules(params: CheckSchemaParams, schema: Schema) -> list[Rule]:
    found = [rule for column in params.columns for rule in _column_rules(column, schema)]
    keys = [name for column in params.columns if column.key and (name := actual(column.name, schema))]
    return [*found, seen_before(keys, "key")] if keys else found


def _column_rules(column: AgreedColumn, schema: Schema) -> Iterable[Rule]:
    name = actual(column.name, schema)
    absent: list[exp.Expr] = [is_null(_value(column, schema))]
    if name is not None and column.type is not None and sql_type(column.type) != type_of(name, schema):
        wanted = sql_type(column.type)
        lost = Conversion(wanted).loses(select.column(name), type_of(name, schema))
        message = not_that(select.column(name), name, wanted)
        yield Rule("type", f"`{name}` is not {wanted}", lost, (name,), message)
        absent.append(is_not(lost.copy()))
    if not column.nullable or column.key:
        yield Rule("not_null", f"`{column.name}` has no value", every_one(absent))
    if name is not None and column.pattern is not None:
        yield no_match(name, column.pattern, "pattern")
