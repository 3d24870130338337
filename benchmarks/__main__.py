"""`python -m benchmarks`: measure, print the table, and say what was missed."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.cases import CASES, group_of
from benchmarks.machine import describe
from benchmarks.measuring import ROOT, Bench
from benchmarks.report import as_json, into_page, into_readme, machine_line, table
from benchmarks.rows import Row


def main() -> int:
    options = _options()
    # Beside the code and not in /tmp, which may be a memory disk, on which an fsync costs nothing.
    with tempfile.TemporaryDirectory(dir=options.folder, prefix=".penstock-bench-") as name:
        folder = Path(name)
        machine = describe(folder)
        sys.stderr.write(f"{machine_line(machine)}\n")
        repeats = options.repeats or (3 if options.quick else 5)
        bench = Bench(folder, repeats, quick=options.quick, rows=options.rows)
        by_group: dict[str, list[Row]] = {}
        for case in options.names or CASES:
            sys.stderr.write(f"{case}\n")
            by_group.setdefault(group_of(case), []).extend(CASES[case](bench))
    rows = [row for group in by_group.values() for row in group]
    sys.stdout.write(f"{table(rows)}\n\n{machine_line(machine)}\n")
    if options.json:
        Path(options.json).write_text(as_json(machine, rows, bench.kept), encoding="utf-8")
    if options.write:
        page = ROOT / "docs" / "figures.md"
        for group, measured in by_group.items():
            into_page(page, group, machine, measured)
        into_readme(ROOT / "README.md", page)
    missed = [row.title.strip() for row in rows if row.is_missed]
    for title in missed:
        sys.stderr.write(f"missed: {title}\n")
    return 1 if missed and options.strict else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure Penstock beside floors and peers."
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of: {', '.join(CASES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, smaller logs, no million iterations")
    parser.add_argument("--repeats", type=int, help="how often each probe is run (default: 5, quick 3)")
    parser.add_argument(
        "--rows", type=int, help="rows of the table of `etl` and `spark` (default: 10 million, quick 1)"
    )
    parser.add_argument("--json", metavar="FILE", help="also write every figure to this file")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write what was measured into docs/figures.md, and from there into README.md",
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when a required figure is missed")
    parser.add_argument("--folder", type=Path, default=ROOT, help="where to measure; it says which disk")
    options = parser.parse_args()
    for name in options.names:
        if name not in CASES:
            parser.error(f"`{name}` is not a benchmark; there are {', '.join(CASES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
