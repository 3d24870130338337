"""What NoETL calls an error, by what Penstock calls it.

Law: `outcome.error.kind` is Penstock's word. `output.error` has NoETL's beside it, as `noetl_kind`, made when it is read. A
condition that compares `output.error.kind` holds when it holds for one of the two, so public playbooks and Penstock's
own mean what they say: `output.error.kind == 'rate_limit'` and `output.error.kind == 'http_status'` are both true of a 429.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from penstock.expr import nodes
from penstock.expr.nodes import Expr, path_of

NOETL_KIND: Final = "noetl_kind"
UNKNOWN: Final = "unknown"

_OF_STATUS = {401: "auth", 403: "auth", 404: "not_found", 429: "rate_limit"}
_OF_DATABASE = {
    "connect": "db_connection",
    "constraint": "db_constraint",
    "serialization": "db_deadlock",
    "timeout": "db_timeout",
}
_OF_KIND = {
    "connect": "connection", "connection": "connection", "dns": "connection", "tls": "connection",
    "protocol": "connection", "closed": "connection",
    "timeout": "timeout",
    "auth": "auth", "credential": "auth", "permission": "auth",
    "not_found": "not_found",
    "parameters": "schema", "columns": "schema",
    "decode": "parse", "syntax": "parse",
}  # fmt: skip
_DATABASES = frozenset({"pg", "mysql", "sqlite", "duckdb"})
"""The fields that SQL tools have in an outcome."""

WORDS = frozenset(
    {*_OF_STATUS.values(), *_OF_DATABASE.values(), *_OF_KIND.values(), "client_error", "server_error", UNKNOWN}
)


def noetl_kind(outcome: Mapping[str, Any]) -> str:
    """NoETL's word for the error of an outcome."""
    error = outcome["error"]
    kind, status = error.get("kind"), error.get("status")
    if kind == "http_status" and isinstance(status, int):
        return _OF_STATUS.get(status) or {4: "client_error", 5: "server_error"}.get(status // 100, UNKNOWN)
    if kind in _OF_DATABASE and ("statement" in error or not _DATABASES.isdisjoint(outcome)):
        return _OF_DATABASE[kind]
    return _OF_KIND.get(kind, UNKNOWN)


# ---- Comparisons

_KIND = ("output", ("error", "kind"))
EITHER, NEITHER = frozenset({"==", "in"}), frozenset({"!=", "not in"})


def in_noetl_words(node: nodes.Compare) -> nodes.Compare | None:
    """The comparison as it is made with NoETL's word, if it is one of `output.error.kind`."""
    if len(node.rest) != 1 or node.rest[0][0] not in EITHER | NEITHER:
        return None
    ((sign, operand),) = node.rest
    first, second = _translated(node.first), _translated(operand)
    if first is None and second is None:
        return None
    return replace(node, first=first or node.first, rest=((sign, second or operand),))


def _translated(node: Expr) -> Expr | None:
    """The same expression of the other word, also where filters such as `default` are applied to it."""
    if isinstance(node, nodes.Get) and path_of(node) == _KIND:
        return replace(node, key=nodes.Const(node.key.start, node.key.end, NOETL_KIND))
    if isinstance(node, nodes.Word) and node.kind == "filter" and node.of is not None:
        of = _translated(node.of)
        return None if of is None else replace(node, of=of)
    return None
