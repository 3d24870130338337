"""The net as canonical JSON, and the digest over it. Two documents that mean the same have the same digest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass, replace
from enum import Enum

from penstock.dialects.secrets import masked_tree, without_secrets
from penstock.kernel.net import Net
from penstock.kernel.values import Json

LATER = ("open_inputs", "state")
"""Fields that nets did not always have: where they say nothing, a document keeps the digest it had before."""


def as_json(value: object) -> Json:
    """Any part of a net as plain JSON: dataclasses by field, enums by value, tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return as_json(value.value)
    if isinstance(value, dict):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a net holds no {type(value).__name__}")


def with_digest(net: Net) -> Net:
    bare = as_json(replace(net, digest="", keychain=tuple(without_secrets(net.keychain))))
    assert isinstance(bare, dict)
    for name in LATER:
        if not bare[name]:
            del bare[name]
    bare = masked_tree(bare)
    text = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return replace(net, digest=hashlib.sha256(text.encode()).hexdigest())
