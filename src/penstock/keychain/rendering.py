"""What a document declares in `keychain`, with its templates filled in: a playbook's see its workload, a job's its context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from penstock.expr.template import ExpressionError, Names, render
from penstock.kernel.values import JsonMap
from penstock.keychain.errors import KeychainError, KeychainProblem


def rendered_entries(entries: Sequence[JsonMap], kind: str, inputs: Mapping[str, Any]) -> list[JsonMap]:
    """`kind` is the document's. A field that reads what is not there is an error: nothing is no place to find a secret."""
    scope = Names({**inputs, ("context" if kind == "job" else "workload"): inputs})
    made: list[JsonMap] = []
    problems: list[KeychainProblem] = []
    for number, entry in enumerate(entries):
        try:
            made.append(cast(JsonMap, render(entry, scope)))
        except ExpressionError as error:
            field = f"`{error.path[0]}`: " if error.path else ""
            hint = "give it a default in `context`" if kind == "job" else "give it a default in `workload`"
            problems.append(KeychainProblem(str(entry.get("name") or f"number {number + 1}"), f"{field}{error}", hint))
    if problems:
        raise KeychainError(problems)
    return made
