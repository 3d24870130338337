"""What the relational transforms share: parameters are held against the columns that arrive, before the run and again in it.

Before the run a schema may be unknown; then only what does not depend on it is checked. In the run all of them are known, and a
transform builds its queries from columns that are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from penstock.components.base import (
    ColumnMistake,
    ComponentFailure,
    Known,
    Mistake,
    P,
    ParamPath,
    PlanCall,
    Port,
    Relational,
    missing_of,
)
from penstock.data import select
from penstock.data.types import MissingColumn
from penstock.kernel.values import Json
from penstock.ports.rows import Schema, SqlText
from penstock.tools.parameters import similar

if TYPE_CHECKING:
    from sqlglot import exp

MOST_KNOWN = 1_024
_known: dict[tuple[str, bytes, tuple[tuple[str, Schema], ...], frozenset[str]], dict[str, SqlText]] = {}


class Parameters(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the parameters of all transforms."""


class Transform(Relational[P]):
    inputs: ClassVar[tuple[Port, ...]] = (Port("input"),)
    outputs: ClassVar[tuple[Port, ...]] = (Port("main"),)
    is_pure: ClassVar[bool] = True
    """The queries depend on the parameters and the schemas alone."""

    def wrong(self, params: P, inputs: Known) -> Iterable[Mistake]:
        """Mistakes that need no SQL to be bound: missing columns, parameters that contradict each other."""
        return ()

    def unbound(self, params: P, inputs: Mapping[str, Schema]) -> Iterable[Mistake]:
        """Mistakes in SQL that `user_sql` cannot show, because it sees more than the input ports. Asked before the run only."""
        return ()

    def queries(self, params: P, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        """A query for each output port; also for unconnected ones, if that is simpler."""
        raise NotImplementedError

    def check(self, params: P, inputs: Known, call: PlanCall) -> list[Mistake]:
        found = list(self.wrong(params, inputs))
        known = {port: schema for port, schema in inputs.items() if schema is not None}
        if not found and len(known) == len(inputs):
            found += self.unbound(params, known)
        return found

    def selects(self, params: P, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, SqlText]:
        if not self.is_pure:
            return self._built(params, inputs, call)
        # The body of an iterator asks for the same queries a thousand times, and building them takes longer than running them.
        key = (self.type, msgspec.json.encode(params), tuple(inputs.items()), call.connected)
        found = _known.get(key)
        if found is None:
            if len(_known) >= MOST_KNOWN:
                _known.clear()
            found = _known[key] = self._built(params, inputs, call)
        return dict(found)

    def _built(self, params: P, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, SqlText]:
        refuse(self.wrong(params, inputs))
        queries = self.queries(params, inputs, call)
        return {port: select.sql(query) for port, query in queries.items() if port in call.connected}


def refuse(mistakes: Iterable[Mistake]) -> None:
    """In the run a mistake is a failure of the component."""
    found = list(mistakes)
    if found:
        details: list[Json] = [{"parameter": _spelled(one.path), "message": one.message} for one in found]
        messages = [f"`{_spelled(one.path)}`: {one.message}" if one.path else one.message for one in found]
        kind = "column" if found[0].kind == "column" else "parameters"
        raise ComponentFailure(kind, "; ".join(messages), missing=missing_of(found), problems=details)


def _spelled(path: ParamPath) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def actual(name: str, schema: Schema) -> str | None:
    """The column as it is spelled in the schema: SQL takes no notice of case."""
    folded = name.lower()
    return next((column.name for column in schema if column.name.lower() == folded), None)


def type_of(name: str, schema: Schema) -> str:
    return next((column.type for column in schema if column.name.lower() == name.lower()), "")


_WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|INT\d*|DECIMAL(\(.*\))?|DOUBLE|FLOAT|REAL|BIGNUM")
_TIMES = re.compile(r"DATE|TIMESTAMP.*")


def family(kind: str) -> str:
    """Types that can be compared and mixed with each other: `number`, `text`, `date`; any other type is its own family."""
    kind = kind.upper()
    if _WHOLE.fullmatch(kind):
        return "number"
    if _TIMES.fullmatch(kind):
        return "date"
    return "text" if kind.startswith(("VARCHAR", "ENUM")) else kind


def absent(path: ParamPath, names: Iterable[str], schema: Schema | None, whose: str = "input") -> Iterable[Mistake]:
    """A mistake for each name that is no column; `path` leads to the list of names."""
    if schema is not None:
        for index, name in enumerate(names):
            yield from missing((*path, index), name, schema, whose)


def missing(path: ParamPath, name: str, schema: Schema | None, whose: str = "input") -> Iterable[Mistake]:
    """A mistake if the name is no column; `path` leads to the name."""
    if schema is not None and actual(name, schema) is None:
        near = similar(name, [column.name for column in schema])
        known = ", ".join(f"`{column.name}`" for column in schema[:20]) or "none"
        yield ColumnMistake(
            path,
            f"`{whose}` has no column `{name}`{near}",
            hint=f"its columns are {known}{' …' if len(schema) > 20 else ''}",
            offset=0,
            length=max(1, len(name)),
            kind="column",
            missing=MissingColumn(name, whose),
        )


def repeated(path: ParamPath, names: Sequence[str]) -> Iterable[Mistake]:
    """A mistake for each name that stands for the second time."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name.lower() in seen:
            yield Mistake((*path, index), f"`{name}` is named twice", offset=0, length=max(1, len(name)))
        seen.add(name.lower())


def unused(name: str, *schemas: Schema) -> str:
    """The name, lengthened until no column is called so."""
    taken = {column.name.lower() for schema in schemas for column in schema}
    while name.lower() in taken:
        name += "_"
    return name
