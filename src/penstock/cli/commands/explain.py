"""`penstock explain RUN NODE`: why."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from penstock.cli.engine import looking_at, views_of
from penstock.cli.output import BOLD, painted, put, put_json, safe
from penstock.cli.waiting import TITLE, lines_of, waits_of


def main(options: Namespace) -> int:
    with looking_at(options) as (engine, header):
        answer: Any = views_of(engine).explained(header, options.node)
        waits = waits_of(engine, header, options.node)
    if waits:
        answer["waiting"] = waits
        answer["because"].insert(0, {"title": TITLE, "lines": lines_of(waits)})
        for one in waits:
            if not one["is_range"]:
                running = f"`{one['scope']}` is running"
                answer["headline"] = answer["headline"].replace(running, f"`{one['scope']}` {TITLE}")
    if options.json:
        put_json(answer)
    else:
        put(_page(answer))
    return 0


def _page(answer: dict[str, Any]) -> str:
    lines = [painted(safe(answer["headline"]), BOLD, sys.stdout)]
    for section in answer["because"]:
        title = painted(safe(section["title"]), BOLD, sys.stdout)
        lines += ["", title, *(f"  {safe(line)}" for line in section["lines"])]
    return "\n".join(lines)
