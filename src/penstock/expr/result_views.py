"""Other names of what a result holds, as public playbooks read it.

Law: nothing is stored under these names. What a result itself holds goes before them, so they are looked for only where a
look-up has found nothing. A result is known by its fields. Standard library only: an isolated task's interpreter loads this.

    a mapping with                                          is read as      which is
    data, status, headers, url, elapsed_ms     http         status_code     status
                                                            body            data
    rows, row_count, columns                   SQL          command_0       itself
    exit_code, stdout, stderr, data            shell        returncode      exit_code
    total, done, failed, results               a loop       stats           {total, success, failed}
    status, headers, requests                  outcome.http status_code     status
    kind, message, retryable, status, url      its error    status_code     status
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, TypeAlias

View: TypeAlias = Callable[[Mapping[str, Any]], Any]


def _itself(result: Mapping[str, Any]) -> Mapping[str, Any]:
    return result


def _stats(loop: Mapping[str, Any]) -> dict[str, Any]:
    return {"total": loop["total"], "success": loop["done"], "failed": loop["failed"]}


# The field that fewest other mappings have comes first: it is the mark by which one is known to be none.
_HTTP = ("elapsed_ms", "headers", "status", "url", "data")
_SQL = ("row_count", "rows", "columns")
_SHELL = ("exit_code", "stdout", "stderr", "data")
_LOOP = ("done", "results", "total", "failed")
_ANSWER = ("requests", "headers", "status")
_REFUSAL = ("retryable", "kind", "message", "status", "url")
_KNOWN = (_HTTP, _SQL, _SHELL, _LOOP, _ANSWER, _REFUSAL)
_MARKS = frozenset(fields[0] for fields in _KNOWN)

VIEWS: dict[str, tuple[tuple[tuple[str, ...], View], ...]] = {
    "status_code": tuple((fields, itemgetter("status")) for fields in (_HTTP, _ANSWER, _REFUSAL)),
    "body": ((_HTTP, itemgetter("data")),),
    "command_0": ((_SQL, _itself),),
    "returncode": ((_SHELL, itemgetter("exit_code")),),
    "stats": ((_LOOP, _stats),),
}


def viewed(value: Mapping[Any, Any], key: Any, default: Any) -> Any:
    """What `key`, which `value` does not hold, means for such a result; `default` when it means nothing."""
    for fields, view in VIEWS.get(key, ()):
        if all(name in value for name in fields):
            return view(value)
    return default


_NOTHING = object()


class ReadableResult(dict[str, Any]):
    """A result in the hands of Python code, which reads it under the same names. Written as JSON, or copied, it is the plain
    mapping."""

    __slots__ = ()

    def __missing__(self, key: str) -> Any:
        found = viewed(self, key, _NOTHING)
        if found is _NOTHING:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or viewed(self, key, _NOTHING) is not _NOTHING

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default


def readable(value: dict[str, Any]) -> dict[str, Any]:
    """The mapping, as a `ReadableResult` if it is one."""
    # Each row of a large table comes through here, and has none of these.
    if not _MARKS.isdisjoint(value) and any(all(name in value for name in fields) for fields in _KNOWN):
        return ReadableResult(value)
    return value
