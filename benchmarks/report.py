"""The table: on the terminal, as JSON, and between two marks in the README."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.rows import Row

START, END = "<!-- figures:start -->", "<!-- figures:end -->"
HEADINGS = ("case", "measured", "CPU", "required", "verdict")


def table(rows: Sequence[Row]) -> str:
    lines = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]

    def drawn(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([drawn(lines[0]), rule, *map(drawn, lines[1:])])


def machine_line(machine: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in machine.items())


def as_json(machine: Mapping[str, str], rows: Sequence[Row], kept: Mapping[str, Any]) -> str:
    told = [{**asdict(row), "title": row.title.strip(), "verdict": row.verdict} for row in rows]
    return json.dumps({"machine": dict(machine), "rows": told, "probes": dict(kept)}, indent=2) + "\n"


def into_readme(readme: Path, machine: Mapping[str, str], rows: Sequence[Row]) -> None:
    """Rewrites what stands between the marks and nothing else."""
    text = readme.read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"{readme} has no `{START}` followed by `{END}`")
    block = f"\n{table(rows)}\n\nMedians of one run of `make bench`. Machine: {machine_line(machine)}.\n"
    readme.write_text(f"{before}{START}{block}{END}{after}", encoding="utf-8")


def _cells(row: Row) -> tuple[str, ...]:
    required = "" if row.required is None else f"≤ {_number(row.required)} {row.unit}"
    if row.stretch is not None:
        required += f" (stretch {_number(row.stretch)})"
    measured = "" if row.measured is None else f"{_number(row.measured)} {row.unit}"
    cpu = "" if row.cpu is None else f"{_number(row.cpu)} {row.unit}"
    indent = len(row.title) - len(row.title.lstrip())
    return (f"{'– ' if indent else ''}{row.title.strip()}", measured, cpu, required, row.verdict)


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
