"""Which names an expression sees, by the place it stands in.

Namespaces (`ctx`, `workload`, `iter` …) always mean themselves. A bare name is looked up in args, then ctx, then iter, then
workload, then among the results of this pipeline's tasks and of the steps before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.expr.scope import MISSING


class ResultMapping(dict[str, Any]):
    """A task's or step's result under its name: `.data` is the result's own `data` if it has one, else the result itself (D48)."""

    __slots__ = ()

    def __missing__(self, key: str) -> Any:
        if key == "data":
            return dict(self)
        raise KeyError(key)


class ResultList(list[Any]):
    __slots__ = ()

    @property
    def data(self) -> list[Any]:
        return list(self)


def named_result(value: Any) -> Any:
    if type(value) is dict and "data" not in value:
        return ResultMapping(value)
    if type(value) is list:
        return ResultList(value)
    return value


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
                return named_result(values[name])
        return MISSING
