"""The failure of a playbook or a job that another one ran.

In nested documents the innermost failure is the one worth reading; the path to it is told in one line, however deep it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.kernel.values import Json
from penstock.tools.base import ToolFailure

MOST_SHOWN = 4


def child_failure(path: str, played: Any, **detail: Json) -> ToolFailure:
    error = played.error if isinstance(played.error, dict) else {}
    chain: list[Json] = [path]
    if error.get("kind") in ("playbook", "job") and isinstance(error.get("cause"), dict):
        inner = error.get("chain")
        chain += inner if isinstance(inner, list) else []
        error = error["cause"]
    message = f"{played.kind} `{path}` {played.status}: {error.get('message', 'no reason given')}"
    if len(chain) > 1:
        message = f"{message} (called through {_shown([str(each) for each in chain])})"
    failure = ToolFailure(played.kind, message, cause=error, status=played.status, chain=chain)
    failure.detail.update(detail)
    return failure


def _shown(chain: Sequence[str]) -> str:
    names = [f"`{each}`" for each in chain]
    if len(names) > MOST_SHOWN:
        return " -> ".join([*names[: MOST_SHOWN - 1], "…", names[-1]]) + f", {len(names)} deep"
    return " -> ".join(names)
