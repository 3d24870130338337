"""The values that travel through documents, facts and templates: what JSON can say, and nothing else."""

from __future__ import annotations

from typing import TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]
JsonMap: TypeAlias = "dict[str, Json]"

# A template is Json whose texts may hold `{{ … }}`; a condition is one such text.
Template: TypeAlias = Json
Condition: TypeAlias = str
