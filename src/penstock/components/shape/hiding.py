"""A column with its values hidden, as an expression."""

from __future__ import annotations

from sqlglot import exp

from penstock.components.queries import function
from penstock.components.shape.mask import Masking
from penstock.components.shape.terms import case, text
from penstock.data import select


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
