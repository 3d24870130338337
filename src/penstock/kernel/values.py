"""The values in documents, facts and templates: what JSON can express, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, Union, cast, dataclass_transform

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]
JsonMap: TypeAlias = "dict[str, Json]"

# A template is Json whose strings may contain `{{ … }}`; a condition is one such string.
Template: TypeAlias = Json
Condition: TypeAlias = str


def merge_deeply(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` wins; mappings merge, everything else replaces."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = merge_deeply(below, value)
        else:
            merged[key] = value
    return merged


# ---- lean dataclasses
#
# A third of what a short command did before its first task was to compile the methods that `dataclass` writes for each class.
# Here only `__init__` is written. Nor is a field of a frozen one protected at run time: that makes it three times as expensive to
# build, and facts are built for every event. The type checker protects it.


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(made: type[T]) -> type[T]:
    """A slotted dataclass whose fields must not be assigned; compared, hashed and printed by its fields, as frozen ones are."""
    return _lean(made, is_hashable=True)


@dataclass_transform(field_specifiers=(field,))
def mutable(made: type[T]) -> type[T]:
    """A slotted dataclass whose fields may be assigned; compared and printed by its fields, and not hashable."""
    return _lean(made, is_hashable=False)


def _lean(made: type[T], *, is_hashable: bool) -> type[T]:
    kind: Any = dataclass(slots=True, repr=False, eq=False)(made)
    names = [one.name for one in fields(kind) if one.compare]
    values: Callable[[object], object] = attrgetter(*names) if names else lambda _: ()

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    shared = {"__eq__": equal, "__hash__": hashed if is_hashable else None, "__repr__": _shown}
    for name, method in shared.items():
        if name not in vars(made):
            setattr(kind, name, method)
    return cast("type[T]", kind)


def _shown(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
