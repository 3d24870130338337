"""What code may read and not change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


def read_only(value: Any, name: str) -> Any:
    """A deep copy that raises when it is written to. It is still a `dict` and a `list` to everything that reads it."""
    if isinstance(value, Mapping):
        return _Fixed(name, {key: read_only(item, name) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return _FixedList(name, [read_only(item, name) for item in value])
    return value


class _Refuses:
    """Every way to write ends here."""

    _name: str

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"`{self._name}` is read-only; values that change during a run belong in `globals`")

    __setitem__ = __delitem__ = __ior__ = __iadd__ = __imul__ = _refuse
    clear = pop = popitem = setdefault = update = append = extend = insert = remove = reverse = sort = _refuse

    def __setattr__(self, name: str, value: Any) -> None:
        self._refuse()


class _Fixed(_Refuses, dict[str, Any]):
    __slots__ = ("_name",)

    def __init__(self, name: str, values: dict[str, Any]) -> None:
        dict.__init__(self, values)
        object.__setattr__(self, "_name", name)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class _FixedList(_Refuses, list[Any]):
    __slots__ = ("_name",)

    def __init__(self, name: str, values: list[Any]) -> None:
        list.__init__(self, values)
        object.__setattr__(self, "_name", name)

    def __reduce__(self) -> Any:
        return list, (list(self),)
