"""Which names an expression sees: a scope looks up a name, and answers MISSING when it does not know it.

The expressions of a job see `context`, `global`, `iteration`, `execution` and bare names. Globals have dotted names inside
joblets (`caller.__inner__NAME`), and components have after-variables (`global.component.NB_LINE`): both are read through one
view, which looks up on access (D17, D41)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

from penstock.expr.error_words import NOETL_KIND, noetl_kind
from penstock.expr.values import MISSING, item
from penstock.kernel.globals import View, Written
from penstock.kernel.values import Json, JsonMap


class Scope(Protocol):
    def lookup(self, name: str) -> object:
        """The value of a name, or MISSING. `x.data` of a result without a field `data` is the whole result."""
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
    """The args that bare names see. If an arc passed nothing to a joined step, the name of its source means that step's
    result."""
    if not joins:
        return args
    return {name: value for name, value in args.items() if value or name not in joins}


class OutcomeView(Mapping[str, Any]):
    """`output`: a view on an outcome (D66). Its own fields are the outcome's, of which the error also has NoETL's word; any other
    name is looked up in the result, and as a whole it is the result."""

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
            own = self.outcome[key]
            return {**own, NOETL_KIND: noetl_kind(self.outcome)} if key == "error" and isinstance(own, dict) else own
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


_NAME = re.compile(r"(?!__)[^\W\d][\w-]*\Z")


def why_not_a_global(name: str) -> str | None:
    """What is wrong with the name that an author gives to a global; None for a good one."""
    if _NAME.match(name):
        return None
    rule = "a name begins with a letter and goes on with letters, digits, `_` or `-`"
    if name.startswith("__"):
        rule = "`__` in front is kept for joblets"
    elif "." in name:
        rule = "a dot stands between a component and its own variables"
    return f"`{name}` cannot be the name of a global: {rule}"


class GlobalsView(Mapping[str, Any]):
    """Read-only. `prefixes` are the joblet calls around the reader, outermost first."""

    __slots__ = ("_path", "_prefixes", "_view")

    def __init__(self, view: View, prefixes: tuple[str, ...] = (), path: str = "") -> None:
        self._view = view
        self._prefixes = prefixes
        self._path = path

    def __getitem__(self, name: str) -> Any:
        if not self._path:
            for prefix in reversed(self._prefixes):
                found = self._within(prefix, name)
                if found is not MISSING:
                    return found
        return self._at(f"{self._path}{name}", name)

    def _at(self, full: str, name: str) -> Any:
        written = self._view.get(full)
        if written is not None and not written.deleted:
            return written.value
        if self._path:
            own = self._view.seen().after.get(self._path[:-1], {})
            if name in own:
                return own[name]
        if self._is_prefix(full):
            return GlobalsView(self._view, (), f"{full}.")
        raise KeyError(name)

    def _is_prefix(self, full: str) -> bool:
        dotted = f"{full}."
        return full in self._view.seen().after or any(
            key.startswith(dotted) for key in [*self._view.values(), *self._view.seen().after]
        )

    def _within(self, prefix: str, name: str) -> Any:
        """Under a joblet call: a global that any of its components wrote, or the after-variables of one of them."""
        found = self._inside(prefix, name)
        if found:
            return max(found.values(), key=lambda written: written.stamp).value
        inner = f"{prefix}.__{name}"
        return GlobalsView(self._view, (), f"{inner}.") if inner in self._view.seen().after else MISSING

    def _inside(self, prefix: str, name: str) -> dict[str, Written]:
        start, end = f"{prefix}.__", f"__{name}"
        return {
            key: written
            for key, written in self._view.seen().shared.items()
            if key.startswith(start) and key.endswith(end) and not written.deleted
        }

    def keys_of(self, name: str) -> list[str]:
        """The full names of what a bare name means here: in a joblet, what any of its components wrote under it."""
        for prefix in reversed(self._prefixes):
            found = self._inside(prefix, name)
            if found:
                return sorted(found)
        written = self._view.get(name)
        return [name] if written is not None and not written.deleted else []

    def __iter__(self) -> Iterator[str]:
        if not self._path:
            return iter(self._view.values())
        names = [key.removeprefix(self._path) for key in self._view.values() if key.startswith(self._path)]
        return iter([*self._view.seen().after.get(self._path[:-1], {}), *names])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class JobNames:
    """A scope for the templates and conditions of one component. `after` are the after-variables that are known by bare name."""

    __slots__ = ("after", "context", "fixed", "globals", "keychain")

    def __init__(
        self,
        context: Mapping[str, Any],
        globals: Mapping[str, Any],
        *,
        iteration: Mapping[str, Any] | None = None,
        execution: JsonMap | None = None,
        after: Mapping[str, Json] | None = None,
        keychain: Mapping[str, Any] | None = None,
        state: Mapping[str, Json] | None = None,
    ) -> None:
        self.context = context
        self.globals = globals
        self.after = after or {}
        self.keychain = keychain
        self.fixed: dict[str, Any] = {
            "context": context,
            "global": globals,
            "globals": globals,
            "iteration": iteration if iteration is not None else MISSING,
            "execution": execution or {},
            "execution_id": (execution or {}).get("id", MISSING),
        }
        if state is not None:
            self.fixed["state"] = state

    def lookup(self, name: str) -> object:
        if name in self.fixed:
            return self.fixed[name]
        if name == "keychain" and self.keychain is not None:
            return self.keychain
        for values in (self.after, self.globals, self.context):
            if name in values:
                return values[name]
        return MISSING
