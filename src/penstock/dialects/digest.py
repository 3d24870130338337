"""The digest of a net: two documents that mean the same have the same digest, and secrets have no part in it.

The digest is a SHA-256 over canonical JSON. What is stored under a digest outlives a release, so the bytes may never change. The
two languages encode a net differently, and each keeps its encoding:

    playbooks   as_json: every field of every dataclass, ASCII only, secrets masked everywhere
    jobs        msgspec: UTF-8, secrets masked in the parameters of components

Fields that nets did not always have are left out where they are empty, so that a document keeps the digest it had before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import msgspec

from penstock.dialects.secrets import masked_tree, without_secrets
from penstock.expr.lexer import is_template
from penstock.kernel.net import Net, Node
from penstock.kernel.values import Json, JsonMap

_LATER = ("open_inputs", "state", "engines")
_LATER_OF_ITERATIONS = "fails"


def _declared(entries: Sequence[JsonMap]) -> list[JsonMap]:
    """Without those that only repeat what a template in a task's `auth` says: there it is a part of the digest."""
    return [entry for entry in entries if not is_template(str(entry.get("name")))]


def with_digest(net: Net) -> Net:
    bare = replace(net, digest="", keychain=tuple(without_secrets(_declared(net.keychain))))
    encoded = _encoded_job(bare) if net.kind == "job" else _encoded_playbook(bare)
    return replace(net, digest=hashlib.sha256(encoded).hexdigest())


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


def _encoded_playbook(net: Net) -> bytes:
    bare = masked_tree(_without_later({field.name: as_json(getattr(net, field.name)) for field in fields(net)}))
    return json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _encoded_job(net: Net) -> bytes:
    bare: dict[str, Any] = {field.name: getattr(net, field.name) for field in fields(net)}
    bare["nodes"] = {name: _masked(node) for name, node in net.nodes.items()}
    return msgspec.json.encode(_without_later(bare), order="sorted")


def _without_later(bare: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in bare.items() if value or name not in _LATER}


def _masked(node: Node) -> Node | JsonMap:
    if any(task.params for task in node.tasks):
        tasks = [replace(task, params=masked_tree(task.params, "params")) for task in node.tasks]  # type: ignore[arg-type]
        node = replace(node, tasks=tuple(tasks))
    if node.iterates is None or node.iterates.fails:
        return node
    bare: JsonMap = msgspec.to_builtins(node)
    iterates = bare["iterates"]
    assert isinstance(iterates, dict)
    del iterates[_LATER_OF_ITERATIONS]
    return bare
