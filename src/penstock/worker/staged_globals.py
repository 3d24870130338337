"""Globals as a component's own code has them: reads what is visible, keeps what it writes until the component has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from penstock.expr.job_names import GlobalsView
from penstock.kernel.flow.views import View
from penstock.ports.results import LazyResult, materialised


class StagedGlobals(MutableMapping[str, Any]):
    def __init__(self, view: View, prefixes: tuple[str, ...]) -> None:
        self._seen = GlobalsView(view, prefixes)
        self.written: dict[str, Any] = {}
        self._lent: dict[str, Any] = {}
        """Copies of committed values that the code has in its hands."""

    def __getitem__(self, key: str) -> Any:
        if key in self.written:
            return self.written[key]
        if key in self._lent:
            return self._lent[key]
        value = self._seen[key]
        if isinstance(value, dict | list | LazyResult):
            value = self._lent[key] = materialised(value)
        return value

    def staged(self) -> dict[str, Any]:
        """What is to be committed. A committed value is everyone's, so code has a copy of it, and what it does to that copy
        (`globals["seen"].append(…)`) is a write of its own."""
        changed = {key: copy for key, copy in self._lent.items() if copy != _plain(self._seen[key])}
        return {**changed, **self.written}

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str) or not key:
            raise TypeError(f"the name of a global is text, not {key!r}")
        self.written[key] = value

    def __delitem__(self, key: str) -> None:
        """A global lasts as long as the job; one that only this component has seen can be taken back."""
        if key not in self.written:
            raise TypeError(f"the global `{key}` cannot be deleted; set it to None instead")
        del self.written[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._seen, *self.written]))

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
