"""`generate_rows`: rows made up from their number. The same parameters give the same rows, chance included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Annotated, ClassVar

import msgspec
from sqlglot import exp

from penstock.components import inference
from penstock.components.base import Known, Mistake, PlanCall, Port, Relational
from penstock.components.io.row_types import call
from penstock.data import select
from penstock.ports.rows import Column, Schema, SqlText
from penstock.tools.parameters import about

_NUMBER = "i"
_RANDOM = ("random", "rand")
_UUID = ("uuid", "gen_random_uuid", "uuidv4")
_MANTISSA = 9_007_199_254_740_992.0
"""2 to the 53rd: as many steps as a DOUBLE has between 0 and 1."""


class GenerateRowsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    count: Annotated[int, about("How many rows.", ge=0)]
    columns: Annotated[
        dict[str, str],
        about(
            "Name to SQL expression over `i`, the number of the row from 0. An expression may use the columns "
            "above it. `random()` and `uuid()` depend on `seed` and `i` only.",
            min_length=1,
        ),
    ]
    seed: Annotated[int, about("Another seed gives other random values.")] = 0


def _determined(tree: exp.Expr, seed: int, calls: Iterator[int]) -> exp.Expr:
    """Chance that does not depend on threads: each call of `random()` becomes a hash of the row's number."""

    def replaced(node: exp.Expr) -> exp.Expr:
        name = (
            str(node.this).lower()
            if isinstance(node, exp.Anonymous)
            else node.key
            if isinstance(node, exp.Func)
            else ""
        )
        if name in _RANDOM:
            drawn = call("hash", select.column(_NUMBER, "numbers"), select.literal(f"{seed}:{next(calls)}"))
            bits = exp.IntDiv(this=drawn, expression=select.literal(2048))
            return exp.Paren(this=exp.Div(this=select.cast(bits, "DOUBLE"), expression=select.literal(_MANTISSA)))
        if name in _UUID:
            text = call("concat", f"{seed}:{next(calls)}:", select.column(_NUMBER, "numbers"))
            return select.cast(call("md5", text), "UUID")
        return node

    return tree.transform(replaced)


class GenerateRows(Relational[GenerateRowsParams]):
    """Make up rows: test data, calendars, series.

    Each column is a SQL expression over `i`, which counts the rows from 0, and over the columns above it. `random()`
    (from 0 to 1) and `uuid()` are drawn from `seed`, so that every run gives the same rows; another seed gives
    others.
    """

    type = "generate_rows"
    family = "read"
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def check(self, params: GenerateRowsParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        found: list[Mistake] = []
        seen: dict[str, str] = {_NUMBER: "BIGINT"}
        for name, text in params.columns.items():
            checked = inference.check(text, "value", {"numbers": tuple(Column(*each) for each in seen.items())})
            if checked.mistake is not None:
                found.append(inference.mistake_of(checked.mistake, ("columns", name)))
            seen[name] = checked.type or "VARCHAR"
        return found

    def selects(self, params: GenerateRowsParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, SqlText]:
        calls = count()
        rows = exp.Table(
            this=exp.Anonymous(this="range", expressions=[select.literal(params.count)]),
            alias=exp.TableAlias(this=select.name("numbers"), columns=[select.name(_NUMBER)]),
        )
        wanted = [
            exp.alias_(_determined(select.expression(text), params.seed, calls), select.name(name))
            for name, text in params.columns.items()
        ]
        return {"main": select.sql(exp.select(*wanted).from_(rows))}
