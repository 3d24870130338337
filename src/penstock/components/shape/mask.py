"""`mask`: columns whose values are digested, redacted or partly hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components.base import Known, Mistake, PlanCall
from penstock.components.queries import case, changed, function, picked, text
from penstock.components.transform.base import Parameters, Transform, actual, missing
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about

Method = Literal["sha256", "md5", "redact", "clear", "keep"]


class Masking(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    method: Annotated[Method, about("As in `columns`.")] = "redact"
    first: Annotated[int, about("With `keep`: characters at the start that stay.", ge=0)] = 0
    last: Annotated[int, about("With `keep`: characters at the end that stay.", ge=0)] = 0
    text: Annotated[
        str, about("With `redact` the text in its place; with `keep` what stands for each hidden character.")
    ] = "***"

    def __post_init__(self) -> None:
        if self.method == "keep" and not self.first and not self.last:
            raise ValueError("`keep` needs `first`, `last` or both")


class MaskParams(Parameters):
    columns: Annotated[
        dict[str, Method | Masking],
        about(
            "Column -> `sha256` or `md5` (a digest), `redact` (a fixed text), `clear` (NULL), or a mapping with "
            "`method: keep` and how many characters stay.",
            min_length=1,
        ),
    ]
    salt: Annotated[
        str, about("Put before every value that is digested, so that digests cannot be looked up. Keep it secret.")
    ] = ""


class Mask(Transform[MaskParams]):
    """Hide what stands in columns.

    A digest is the same for the same value and `salt`, so joins and counts still work; without a salt, short values such as
    telephone numbers can be found by trying all of them. Missing values stay missing, except with `redact`. `keep` shows the
    first or last characters and one `text` (`*` by default) for each of the others; a value so short that nothing would be
    hidden is hidden wholly. Masked columns are text.
    """

    type = "mask"
    keeps_count: ClassVar[bool] = True

    def wrong(self, params: MaskParams, inputs: Known) -> Iterable[Mistake]:
        for name in params.columns:
            yield from missing(("columns", name), name, inputs.get("input"))

    def queries(self, params: MaskParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:
        schema = inputs["input"]
        values = {
            there: hidden(there, Masking(method=how) if isinstance(how, str) else how, params.salt)
            for name, how in params.columns.items()
            if (there := actual(name, schema)) is not None
        }
        return {"main": picked(changed(schema, values), "input")}


def hidden(name: str, how: Masking, salt: str) -> exp.Expr:
    value = text(select.column(name))
    match how.method:
        case "sha256" | "md5":
            return function(how.method, exp.DPipe(this=select.literal(salt), expression=value) if salt else value)
        case "redact":
            return select.literal(how.text)
        case "clear":
            return select.cast(select.literal(None), "VARCHAR")
        case "keep":
            return _kept(value, how)


def _kept(value: exp.Expr, how: Masking) -> exp.Expr:
    mark = select.literal("*" if how.text == "***" else how.text)
    length = function("length", value)
    shown = select.literal(how.first + how.last)
    covered = function("repeat", mark, exp.Sub(this=length, expression=shown))
    pieces = [
        function("left", value, select.literal(how.first)),
        covered,
        function("right", value, select.literal(how.last)),
    ]
    whole: exp.Expr = pieces[0]
    for piece in pieces[1:]:
        whole = exp.DPipe(this=whole, expression=piece)
    too_short = exp.LTE(this=length, expression=shown)
    return case([(too_short, function("repeat", mark, length))], whole)
