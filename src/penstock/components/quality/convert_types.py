"""`convert_types`: casts columns, and rejects the rows in which that is impossible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Call, Known, Mistake, PlanCall, Port
from penstock.components.quality.rules import Flagged, Refusing, RefusingParams, Rule
from penstock.components.queries import case, changed, picked
from penstock.components.shape.patterns import wrong_time_format
from penstock.components.transform.base import actual, missing, type_of
from penstock.components.types import Conversion, not_that, sql_type, wrong_type
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about

if TYPE_CHECKING:
    from sqlglot import exp


Mark = Annotated[str, Meta(min_length=1, max_length=1)]


class Wanted(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    type: Annotated[str, about("The new type.")]
    format: Annotated[
        str | None, about("How a date or time is written, such as `%d/%m/%Y %H:%M`, in the text it is or becomes.")
    ] = None
    decimal: Annotated[str, about("The decimal mark.", min_length=1, max_length=1)] = "."
    thousands: Annotated[Mark | None, about("The separator of thousands.")] = None
    true_values: Annotated[list[str], about("Texts that mean true; then nothing else does.")] = msgspec.field(
        default_factory=list
    )
    false_values: Annotated[list[str], about("Texts that mean false; then nothing else does.")] = msgspec.field(
        default_factory=list
    )


class ConvertTypesParams(RefusingParams):
    columns: Annotated[
        dict[str, str | Wanted], about("Column -> its new type, or a mapping with `type` and more.", min_length=1)
    ]
    invalid: Annotated[
        Literal["reject", "null", "fail"],
        about("A value that does not convert: its row goes to `reject`, it becomes NULL, or the component fails."),
    ] = "reject"


class ConvertTypes(Refusing[ConvertTypesParams]):
    """Change the types of columns.

    A value that does not convert sends its row, as it came, to `reject` with `error_code` `CONVERSION` and an `error_message`
    that names the columns and the values. When that port is not connected, such a value ends the component in ERROR, unless
    `on_error: skip`. With `invalid: fail` it always does; with `invalid: null` the value becomes NULL and its row goes on.

    A number with decimals does not become an `integer`: round it with `derive` if that is what you want. Blanks around a text
    are no part of the value; a text with nothing else in it becomes NULL.

    All other columns stay as they are, and so does the order of all.

    After-variables, when `reject` is not connected: `NB_LINE_REJECTED`, the rows that were refused.
    """

    type = "convert_types"
    family = "quality"
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", description="the rows with their columns converted"),
        Port("reject", reject=True, description="rows in which a value did not convert, as they came"),
    )

    def wrong(self, params: ConvertTypesParams, inputs: Known) -> Iterable[Mistake]:
        for name, wanted in params.columns.items():
            yield from missing(("columns", name), name, inputs.get("input"))
            if isinstance(wanted, Wanted) and wanted.format is not None:
                yield from wrong_time_format(("columns", name, "format"), wanted.format)
            if isinstance(wanted, str):
                yield from wrong_type(("columns", name), wanted)
            else:
                yield from wrong_type(("columns", name, "type"), wanted.type)

    def is_fusable(self, params: ConvertTypesParams, connected: frozenset[str]) -> bool:
        return params.invalid == "null" or (params.invalid == "reject" and super().is_fusable(params, connected))

    def advice(self, params: ConvertTypesParams) -> str:
        return super().advice(params) if params.invalid == "reject" else "`invalid: reject` sends such rows to `reject`"

    def run(self, params: ConvertTypesParams, call: Call) -> None:
        if params.invalid == "fail":
            # Whoever reads `reject`, nothing is to come out of it.
            call = replace(call, connected=call.connected - {"reject"})
            params = msgspec.structs.replace(params, on_error="fail")
        super().run(params, call)

    def queries(self, params: ConvertTypesParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:
        if params.invalid == "reject":
            return super().queries(params, inputs, call)
        flagged, made = self.parted(params, inputs["input"])
        # The port is there in any case, and nothing comes out of it.
        refused = flagged.failed().where(select.literal(False))
        return {"main": picked(made, "input") if params.invalid == "null" else flagged.passed(made), "reject": refused}

    def parted(self, params: ConvertTypesParams, schema: Schema) -> tuple[Flagged, Sequence[exp.Expr]]:
        rules: list[Rule] = []
        values: dict[str, exp.Expr] = {}
        for name, wanted in params.columns.items():
            there = actual(name, schema) or name
            how, source, column = _conversion(wanted), type_of(there, schema), select.column(there)
            lost, message = how.loses(column, source), not_that(column, there, how.type)
            rules.append(Rule("CONVERSION", f"`{there}` is not {how.type}", lost, (there,), message))
            values[there] = how.value(column, source)
            if params.invalid == "null":
                values[there] = case([(lost, select.literal(None))], values[there])
        return Flagged(schema, rules), changed(schema, values)


def _conversion(wanted: str | Wanted) -> Conversion:
    if isinstance(wanted, str):
        return Conversion(sql_type(wanted))
    return Conversion(
        sql_type(wanted.type),
        wanted.format,
        wanted.decimal,
        wanted.thousands,
        tuple(wanted.true_values),
        tuple(wanted.false_values),
    )
