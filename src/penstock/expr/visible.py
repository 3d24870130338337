"""Which names an expression sees, by the place it stands in.

Namespaces (`ctx`, `workload`, `iter` …) always mean themselves. A bare name is looked up in args, then ctx, then iter, then
workload, then among the results of this pipeline's tasks and of the steps before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from penstock.expr.scope import MISSING


def data_of(name: str, shadows: Iterable[Mapping[str, Any]], results: Iterable[Mapping[str, Any]]) -> object:
    """What `x.data` is where `x` has no `data` of its own: `x` itself when it is a result (D48), else MISSING."""
    base = name.removesuffix(".data")
    if base == name or any(base in values for values in shadows):
        return MISSING
    return next((values[base] for values in results if base in values), MISSING)


def bare_args(args: Mapping[str, Any], joins: Collection[str]) -> Mapping[str, Any]:
    """The args that bare names see. A joined step whose arc passed nothing on leaves its name to the step's result."""
    if not joins:
        return args
    return {name: value for name, value in args.items() if value or name not in joins}


class Visible:
    """A scope for expressions. `fixed` are the namespaces; `bare` are the mappings that bare names fall through, in order."""

    __slots__ = ("bare", "fixed", "results")

    def __init__(
        self, fixed: dict[str, Any], bare: tuple[Mapping[str, Any], ...], results: tuple[Mapping[str, Any], ...] = ()
    ) -> None:
        self.fixed = fixed
        self.bare = bare
        self.results = results

    def lookup(self, name: str) -> object:
        value = self.fixed.get(name, MISSING)
        if value is not MISSING:
            return value
        for values in self.bare:
            if name in values:
                return values[name]
        for values in self.results:
            if name in values:
                return values[name]
        return data_of(name, (self.fixed, *self.bare), self.results)
