"""Globals as a component's own code sees them: reads what is visible, holds its writes until the component has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from penstock.expr.scope import GlobalsView
from penstock.kernel.globals import View
from penstock.ports.results import LazyResult, materialised


class StagedGlobals(MutableMapping[str, Any]):
    def __init__(self, view: View, prefixes: tuple[str, ...]) -> None:
        self._seen = GlobalsView(view, prefixes)
        self.written: dict[str, Any] = {}
        self._lent: dict[str, Any] = {}
        """Copies of committed values that the code has obtained."""
        self._deleted: dict[str, None] = {}

    def __getitem__(self, key: str) -> Any:
        if key in self.written:
            return self.written[key]
        if key in self._deleted:
            raise KeyError(key)
        if key in self._lent:
            return self._lent[key]
        value = self._seen[key]
        if isinstance(value, dict | list | LazyResult):
            value = self._lent[key] = materialised(value)
        return value

    def staged(self) -> dict[str, Any]:
        """What is to be committed. A committed value is shared, so code gets a copy of it, and changing that copy
        (`globals["seen"].append(…)`) is a write of its own."""
        changed = {key: copy for key, copy in self._lent.items() if copy != _plain(self._seen[key])}
        return {**changed, **self.written}

    def deleted(self) -> tuple[str, ...]:
        """The full names of what is to be deleted. A name that is written again afterwards is a write."""
        gone = [key for name in self._deleted for key in self._seen.keys_of(name)]
        return tuple(dict.fromkeys(gone))

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str) or not key:
            raise TypeError(f"the name of a global is text, not {key!r}")
        self.written[key] = value
        self._deleted.pop(key, None)

    def __delitem__(self, key: str) -> None:
        """Also deletes what others wrote (rulebook 13.4): it is gone for everything after this component."""
        if key not in self:
            raise KeyError(key)
        if self._seen.keys_of(key):
            self._deleted[key] = None
        elif key not in self.written:
            raise TypeError(f"`{key}` is a component, and its after-variables cannot be deleted")
        self.written.pop(key, None)
        self._lent.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys([*self._seen, *self.written])
        return iter([name for name in names if name not in self._deleted])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))


def _plain(value: Any) -> Any:
    return value.loaded() if isinstance(value, LazyResult) else value


class ReadOnly(Mapping[str, Any]):
    """The context: the same for the whole run (rulebook 13.4)."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        value = self._values[key]
        return ReadOnly(value) if isinstance(value, dict) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError(f"the context is read-only, so `{key}` cannot be set; use a global")

    def __delitem__(self, key: str) -> None:
        raise TypeError(f"the context is read-only, so `{key}` cannot be deleted")

    def __repr__(self) -> str:
        return repr(self._values)
