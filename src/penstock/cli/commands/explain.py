"""`penstock explain RUN NODE`: why."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from penstock.cli.engine import looking_at, views_of
from penstock.cli.output import BOLD, painted, put, put_json, safe


def main(options: Namespace) -> int:
    with looking_at(options) as (engine, header):
        answer: Any = views_of(engine).explained(header, options.node)
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
