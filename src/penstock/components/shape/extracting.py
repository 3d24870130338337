"""One column taken apart into several: what all the ways of doing it have in common.

The column is taken apart once, and the pieces are read from what that gives. They are texts unless they are given a type. A row
that cannot be taken apart, or one of whose pieces is not of its type, is refused as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from penstock.components.conversion import Conversion, not_that
from penstock.components.quality.flagging import Flagged
from penstock.components.quality.rules import Rule
from penstock.components.queries import called, every, function, is_not_true, picked
from penstock.components.shape.terms import every_one, is_not_null
from penstock.components.types import sql_type
from penstock.data import select
from penstock.ports.rows import Schema

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
        apart = picked([*every(schema), called(self.whole, WHOLE)], "input")
        flagged = Flagged(schema, self._rules(), apart, [WHOLE])
        kept = tuple(column for column in schema if keep or column.name != self.column)
        made = [called(piece.converted(), name) for name, piece in self.pieces.items()]
        return flagged, [*every(kept), *made]

    def _rules(self) -> list[Rule]:
        column = select.column(self.column)
        shown = function("left", select.cast(column, "VARCHAR"), select.literal(60))
        said: exp.Expr = function(
            "concat", select.literal(f"`{self.column}`: `"), shown, select.literal(f"` {self.says}")
        )
        found = [Rule(CODE, self.says, every_one([is_not_null(column), self.fails]), (self.column,), said)]
        for name, piece in self.pieces.items():
            if piece.type is not None and piece.type != piece.raw:
                lost = every_one([is_not_true(self.fails), Conversion(piece.type).loses(piece.value, piece.raw)])
                said = not_that(piece.value, name, piece.type)
                found.append(Rule("CONVERSION", f"`{name}` is not {piece.type}", lost, (self.column,), said))
        return found


WHOLE = "__whole"


def whole() -> exp.Column:
    return select.column(WHOLE)


def wanted_type(text: str | None) -> str | None:
    """A type as an author wrote it; None for text, which needs no conversion."""
    made = None if text is None else sql_type(text)
    return None if made == "VARCHAR" else made
