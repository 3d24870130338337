"""What of a run at a server waits for a worker, as `show` and `explain` tell it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from penstock.cli.output import safe
from penstock.projections.wording import counted, seconds
from penstock.remote.client import at

if TYPE_CHECKING:
    from penstock.cli.engine import Engine
    from penstock.ports.log import Header

TITLE = "waits for a worker"
LONG_S = 2.0
"""Whoever waits for less than that is being served."""


def waits_of(engine: Engine, header: Header, node: str | None = None) -> list[Any]:
    """Of a run at a server; of one step, when that is named. In a job it is sub-jobs that wait, whatever they are called."""
    from penstock.app.embedded import Embedded

    if isinstance(engine, Embedded) or header.status != "running":
        return []
    found = engine.client.get(at("executions", header.execution_id, "waiting"))["waiting"]
    wanted = None if node is None or header.kind == "job" else _step(node)
    return [
        one for one in found if (one["is_stuck"] or one["age_s"] >= LONG_S) and wanted in (None, _step(one["scope"]))
    ]


def _step(scope: str) -> str:
    """The step that a scope, or what people type for it, is of."""
    return re.split(r"[@\[.#]", scope.rpartition("/")[2])[0]


def lines_of(waits: list[Any]) -> list[str]:
    lines = []
    for one in waits:
        needs = ", ".join(f"`{need}`" for need in one["needs"])
        able = f" with {needs}" if needs else ""
        ranges = f", in {counted(one['offers'], 'range')}" if one["offers"] > 1 else ""
        lines.append(
            safe(f"{one['scope']}{ranges}, for {seconds(one['age_s'])}: a worker of pool `{one['pool']}`{able}")
        )
        lines += [f"  {safe(line)}" for line in one["why"]]
    return lines
