"""How the iterations of a loop are combined: which writes conflict, and how iterations and the loop fail."""

from __future__ import annotations

from penstock.kernel.facts import IterationEnded
from penstock.kernel.patches import Staged, claims
from penstock.kernel.state import Loop, Pipeline
from penstock.kernel.values import Json, JsonMap

MOST_COLUMNS, LONGEST_VALUE = 6, 60
"""So many columns of a row, with values so long, are told of it when it failed."""


def iteration_end(loop: Loop, index: int, pipeline: Pipeline) -> IterationEnded:
    """The fact that ends an iteration whose pipeline has ended."""
    clash = conflict(loop, index, pipeline.staged) if loop.isolated and pipeline.staged else None
    if clash is not None:
        return IterationEnded(index, "failed", clash)
    writes = pipeline.staged.as_writes()
    if pipeline.ended == "failed":
        return IterationEnded(index, "failed", pipeline.error, writes)
    return IterationEnded(index, "done", None, writes)


def given_up(loop: Loop, index: int, pipeline: Pipeline, failure: JsonMap) -> IterationEnded:
    """The fact that ends an iteration whose step run is being given up, whether or not its pipeline has ended."""
    if pipeline.ended is not None:
        return iteration_end(loop, index, pipeline)
    return IterationEnded(index, "failed", failure, pipeline.staged.as_writes())


def conflict(loop: Loop, index: int, staged: Staged) -> JsonMap | None:
    """The error if the writes of iteration `index` conflict with those of earlier ones; None if they do not."""
    for key, value in staged.ctx.items():
        first = loop.writers.get(key, index)
        if first != index and loop.staged.ctx.get(key) != value:
            return _conflicting(first, index, key)
    for claim, others in claims(staged.as_writes()):
        for other in others:
            first = loop.writers.get(other, index)
            if first != index:
                return _conflicting(first, index, claim.removesuffix("[]"))
    return None


def _conflicting(first: int, index: int, key: str) -> JsonMap:
    return {
        "kind": "ctx_conflict",
        "message": f"iterations {first} and {index} of a parallel loop write different values to `ctx.{key}`",
        "retryable": False,
        "key": key,
        "writers": [first, index],
    }


def of_row(error: Json, row: Json) -> JsonMap:
    """The error of an element that is a claimed row: it says which one."""
    found = error if isinstance(error, dict) else {}
    columns: JsonMap = {name: value for name, value in row.items() if _is_short(value)} if isinstance(row, dict) else {}
    columns = dict(list(columns.items())[:MOST_COLUMNS])
    which = ", ".join(
        f"{name} = {value!r}" if isinstance(value, str) else f"{name} = {value}" for name, value in columns.items()
    )
    return {**found, "message": f"{found.get('message', 'no reason given')} (row {which})", "row": columns}


def _is_short(value: Json) -> bool:
    return value is None or isinstance(value, (int, float)) or (isinstance(value, str) and len(value) <= LONGEST_VALUE)


def failure_of(step: str, first_failed: int | None, first_error: Json, failed: int) -> JsonMap:
    """The failure of a loop step: that of its first failed iteration, worded as the step's."""
    first = first_error if isinstance(first_error, dict) else {}
    return {
        **first,
        "kind": first.get("kind", "iteration"),
        "message": f"iteration {first_failed} of step `{step}` failed: {first.get('message', 'no reason given')}",
        "retryable": first.get("retryable", False),
        "iteration": first_failed,
        "failed": failed,
    }
