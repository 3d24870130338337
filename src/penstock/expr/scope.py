"""Which names an expression sees: a scope answers one question, and says MISSING when it does not know the name.

MISSING is also what an expression calls undefined: false, equal to nothing but itself, and MISSING again when looked into.
"""

from __future__ import annotations

from typing import Any, Final, Protocol


class Missing:
    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


class Scope(Protocol):
    def lookup(self, name: str) -> object:
        """The value of a name, or MISSING. `x.data` is asked when the value of `x` has no `data`: of a result it is all of it."""
        ...


class Names(dict[str, Any]):
    """The simplest scope: a dict of names."""

    __slots__ = ()

    def lookup(self, name: str) -> object:
        return self.get(name, MISSING)
