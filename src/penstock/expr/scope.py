"""Which names an expression sees: a scope looks up a name, and answers MISSING when it does not know it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

from penstock.expr.values import MISSING, item


class Scope(Protocol):
    def lookup(self, name: str) -> object:
        """The value of a name, or MISSING. `x.data` is looked up when the value of `x` has no `data`: for a result it is
        the whole result."""
        ...


class Names(dict[str, Any]):
    """The simplest scope: a dict of names."""

    __slots__ = ()

    def lookup(self, name: str) -> object:
        return self.get(name, MISSING)


# ---- The names that an expression of a playbook sees.
#
# Namespaces (`ctx`, `workload`, `iter` …) always mean themselves. A bare name is looked up in args, then ctx, then iter,
# then workload, then among the results of this pipeline's tasks and of the steps before it.


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


class OutcomeView(Mapping[str, Any]):
    """`output`: a view on an outcome (D66). Its own fields are the outcome's, any other name is looked up in the result, and as a
    whole it is the result."""

    __slots__ = ("outcome",)

    OWN = frozenset({"status", "data", "result", "error", "http", "pg", "py", "meta"})

    def __init__(self, outcome: Mapping[str, Any]) -> None:
        self.outcome = outcome

    def whole(self) -> Any:
        return self.outcome.get("result")

    def opened(self) -> Any:
        """The result, read from where it is kept when it is large."""
        value = self.whole()
        return value.opened() if hasattr(value, "opened") else value

    def __getitem__(self, key: Any) -> Any:
        if key == "data":
            return self.whole()
        if key in self.OWN:
            return self.outcome[key]
        found = item(self.whole(), key)
        # Further tool families have fields of their own in an outcome; what the result has goes before them.
        return self.outcome[key] if found is MISSING else found

    def __iter__(self) -> Iterator[str]:
        return iter(self.outcome)

    def __len__(self) -> int:
        return len(self.outcome)


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
