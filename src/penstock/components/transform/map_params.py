"""What an author writes in a `map`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.components.transform.base import Parameters
from penstock.components.transform.matching import MATCH_WORDS, Match, On


class LookupSpec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    on: Annotated[
        On,
        Meta(
            description="The key: columns that the input has under the same name, or a mapping of a column of the lookup to an "
            "SQL expression over the input and the lookups above."
        ),
    ]
    how: Annotated[
        Literal["inner", "left"],
        Meta(
            description="`left`: a row without a match goes on, with nothing in these columns. `inner`: it is rejected."
        ),
    ] = "left"
    match: Annotated[Match, Meta(description=MATCH_WORDS)] = "unique"


class OutputSpec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    columns: Annotated[
        dict[str, str | None] | list[str] | None,
        Meta(
            description="Column name to SQL expression, or a list of columns. Without it, all columns of the input and of the "
            "lookups."
        ),
    ] = None
    where: Annotated[str | None, Meta(description="SQL condition for the rows this output takes.")] = None
    reject: Annotated[
        bool | Literal["filter", "lookup"],
        Meta(
            description="Take the rows that no plain output took: `lookup` those without a match in an inner lookup, `filter` "
            "those that meet no condition, `true` both."
        ),
    ] = False


class MapParams(Parameters):
    lookups: Annotated[dict[str, LookupSpec], Meta(description="Input port -> how its rows are found.")] = {}  # noqa: RUF012
    variables: Annotated[
        dict[str, str], Meta(description="Name to SQL expression, for use below as `name` or `var.name`.")
    ] = {}  # noqa: RUF012
    outputs: Annotated[
        dict[str, OutputSpec], Meta(description="Output port -> what it gives; `main` with all columns by default.")
    ] = {}  # noqa: RUF012
    suffix: Annotated[
        str, Meta(min_length=1, description="What is added to a column of a lookup whose name is taken.")
    ] = "_lookup"
    keep_order: Annotated[
        bool,
        Meta(description="Give the rows in the order of the input, at the cost of sorting them. Otherwise any order."),
    ] = False


def effective_outputs(params: MapParams) -> dict[str, OutputSpec]:
    return params.outputs or {"main": OutputSpec()}
