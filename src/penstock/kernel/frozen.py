"""Values created by the hundred thousand: frozen by the type checker, not at run time.

A frozen dataclass sets each field through `object.__setattr__`, which makes it three times as expensive to build as a plain one.
Facts and their parts are built for every event, so their immutability is checked by the type checker instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(made: type[T]) -> type[T]:
    """A slotted dataclass whose fields must not be assigned; hashed by its fields, as frozen ones are."""
    return dataclass(slots=True, unsafe_hash=True)(made)
