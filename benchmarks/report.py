"""The table: on the terminal, as JSON, and between marks in docs/figures.md; five of its lines in the README."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.rows import Row

HEADINGS = ("case", "measured", "CPU", "required", "verdict")
HEADLINES = (
    ("chain of 1,000 tasks, per task", "one task, recorded", "floor: no fsync", "one row in SQLite"),
    (
        "parallel loop of 10,000 iterations, per iteration",
        "one iteration of a parallel loop, recorded with four events",
        "floor: grouped commits, one event per iteration",
        "one event, commits grouped",
    ),
    (
        "10,000,000 rows of CSV: filter, join, aggregate, Parquet",
        "a job over 10,000,000 rows: read CSV, filter, join, aggregate, write Parquet",
        "DuckDB by hand",
        "DuckDB by hand",
    ),
    (
        "`penstock run` of one task, command to end",
        "`penstock run` of one task, from the command to its end",
        "one DBOS step, process start to end",
        "one step of DBOS",
    ),
    (
        "resume of a run with 1,000,000 events",
        "resume of a run with 1,000,000 events",
        "peak memory of that resume",
        "its peak memory",
    ),
)
"""Case, how the README says it, which row of the case stands beside it, and how the README says that."""


def table(rows: Sequence[Row]) -> str:
    return _aligned([_cells(row) for row in rows])


def _aligned(cells: Sequence[Sequence[str]]) -> str:
    lines = [HEADINGS, *cells]
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


def into_page(page: Path, group: str, machine: Mapping[str, str], rows: Sequence[Row]) -> None:
    """Writes what was measured between the marks of its group; cases that were not measured stay as they are."""

    def written(old: str) -> str:
        known = cases(old)
        known.update(cases(table(rows)))
        lines = [line for case in known.values() for line in case]
        return f"{_aligned(lines)}\n\nMachine: {machine_line(machine)}.\n"

    _between(page, f"figures:{group}", written)


def into_readme(readme: Path, page: Path) -> None:
    """The few figures that people look at first, taken from the page that has them all."""
    _between(readme, "figures", lambda _: headlines(page.read_text(encoding="utf-8")) + "\n")


def headlines(page: str) -> str:
    known = cases(page)
    lines = [("", "measured", "to compare with"), ("-" * 3,) * 3]
    for title, words, compared, compared_words in HEADLINES:
        main, *others = known[title]
        beside = next(line for line in others if line[0] == f"– {compared}")
        lines.append((words, main[1], f"{compared_words}: {beside[1]}"))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cases(text: str) -> dict[str, list[tuple[str, ...]]]:
    """The cases of all tables in a text: title -> its rows, the first of which is its own."""
    found: dict[str, list[tuple[str, ...]]] = {}
    title = ""
    for line in text.splitlines():
        if not line.startswith("|") or line.startswith("|-"):
            continue
        cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
        if cells[0] == HEADINGS[0]:
            continue
        title = title if cells[0].startswith("– ") else cells[0]
        found.setdefault(title, []).append(cells)
    return found


def _between(path: Path, mark: str, written: Callable[[str], str]) -> None:
    """Rewrites what stands between two marks and nothing else."""
    text = path.read_text(encoding="utf-8")
    start_mark, end_mark = f"<!-- {mark}:start -->", f"<!-- {mark}:end -->"
    before, start, rest = text.partition(start_mark)
    old, end, after = rest.partition(end_mark)
    if not start or not end:
        raise ValueError(f"{path} has no `{start_mark}` followed by `{end_mark}`")
    path.write_text(f"{before}{start}\n{written(old)}{end}{after}", encoding="utf-8")


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
