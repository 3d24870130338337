"""`replace`: other values in the same columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Mistake, PlanCall
from penstock.components.transform.base import Known, Parameters, Transform, actual, missing
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp


class Replacement(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    trim: Annotated[
        bool | Literal["left", "right"], Meta(description="Take blanks off both ends of a text, or off one.")
    ] = False
    spaces: Annotated[bool, Meta(description="Make one space of every run of blanks, tabs and line ends.")] = False
    case: Annotated[Literal["upper", "lower", "title"] | None, Meta(description="Change the case of a text.")] = None
    regex: Annotated[
        dict[str, str],
        Meta(description="Pattern -> what to put in its place, everywhere it is found; `\\1` is its first group."),
    ] = msgspec.field(default_factory=dict)
    values: Annotated[
        dict[str, Any], Meta(description="Old value -> new value, where it is the whole value; new may be null.")
    ] = msgspec.field(default_factory=dict)
    otherwise: Annotated[
        Any, Meta(description="What becomes of values that `values` does not have; they stay when left out.")
    ] = msgspec.UNSET
    missing: Annotated[Any, Meta(description="What to put where there is no value.")] = None
    empty_as_null: Annotated[bool, Meta(description="Take a text with nothing in it for no value.")] = False


class ReplaceParams(Parameters):
    columns: Annotated[dict[str, Replacement], Meta(min_length=1, description="Column -> what to do with its values.")]


class Replace(Transform[ReplaceParams]):
    """Replace values in columns.

    For each column the steps are taken in this order, those that are given: `trim`, `spaces`, `case`, `regex`,
    `empty_as_null`, `values` (with `otherwise`), `missing`. A column keeps its type where the new values allow it, and is text
    otherwise. Values in `values` are compared as they are written: `1` is the number 1 and the text `1`.
    """

    type = "replace"
    Params = ReplaceParams
    keeps_count: ClassVar[bool] = True
    example = """\
components:
  - name: customers
    type: fixed_rows
    params:
      columns: [name, phone, country]
      rows: [['  ann   lee ', 0171/123 456, de], [BOB, +49 30 99, fr], [cyd, null, xx]]
  - name: clean
    type: replace
    params:
      columns:
        name: { trim: true, spaces: true, case: title }
        phone: { regex: { '[^0-9+]': '' }, missing: unknown }
        country: { values: { de: Germany, fr: France }, otherwise: other }
  - name: show
    type: log_rows
connections:
  data:
    - customers.main -> clean.input
    - clean.main -> show.input
"""

    def wrong(self, params: ReplaceParams, inputs: Known) -> Iterable[Mistake]:
        from penstock.components.shape.patterns import wrong_pattern

        for name, how in params.columns.items():
            yield from missing(("columns", name), name, inputs.get("input"))
            for pattern in how.regex:
                yield from wrong_pattern(("columns", name, "regex"), pattern)

    def queries(self, params: ReplaceParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:
        from penstock.components.queries import picked
        from penstock.components.shape.replacing import replaced
        from penstock.components.shape.terms import changed

        schema = inputs["input"]
        types = {column.name: column.type for column in schema}
        values = {
            there: replaced(there, types[there], how)
            for name, how in params.columns.items()
            if (there := actual(name, schema)) is not None
        }
        return {"main": picked(changed(schema, values), "input")}
