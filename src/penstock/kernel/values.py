"""The values in documents, facts and templates: what JSON can express, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, Union

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
