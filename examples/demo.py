"""What `make demo` runs: a playbook against a small local API, then a job over files; their results, and the engine's own account
of why.

Needs no services and leaves nothing behind: the API is a thread of this program, the state a temporary folder.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from api import serving

HERE = Path(__file__).resolve().parent
PLAYBOOK = HERE / "orders" / "orders.yaml"
JOB = HERE / "daily-orders" / "daily-orders.yaml"


def penstock(*words: str, home: Path, shown: str | None = None, keep: bool = False) -> str:
    """The command line as a person would type it. What it says goes to the terminal; `keep` takes its data back instead."""
    print(f"\n$ penstock {shown or ' '.join(words)}", flush=True)
    environment = {**os.environ, "PENSTOCK_HOME": str(home / "state"), "XDG_STATE_HOME": str(home / "xdg")}
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *words],
        env=environment,
        cwd=HERE.parent,
        stdout=subprocess.PIPE if keep else None,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


def table(rows: list[dict[str, Any]]) -> str:
    names = list(rows[0])
    cells = [names, *([str(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    numeric = [isinstance(rows[0][name], (int, float)) for name in names]

    def line(values: list[str]) -> str:
        padded = zip(values, widths, numeric, strict=True)
        return (
            "  "
            + "  ".join(text.rjust(width) if right else text.ljust(width) for text, width, right in padded).rstrip()
        )

    return "\n".join(map(line, [cells[0], ["-" * width for width in widths], *cells[1:]]))


def play(home: Path) -> None:
    """The playbook: steps that call an API, a loop, retries, a join."""
    shown = PLAYBOOK.relative_to(HERE.parent)
    with serving() as (url, _):
        print("A playbook. A small API is up, with 60 orders in pages of 6 and a list of customers that fails twice.")
        inputs = ["--set", f"api_url={url}", "--set", f"database={home / 'orders.duckdb'}"]
        result = json.loads(penstock("run", str(shown), *inputs, home=home, shown=f"run {shown}", keep=True))
    print(f"\nThe report, from {sum(one['pages'] for one in result['regions'])} pages of orders:\n")
    print(table(result["totals"]))
    penstock("explain", "@last", "load_customers", home=home)


def work(home: Path) -> None:
    """The job: rows through components, with rejects and their reasons."""
    shown = JOB.relative_to(HERE.parent)
    print("\n\nA job. A day's orders as CSV: some lines are broken, and one order belongs to nobody.")
    inputs = ["--context", "prod", "--set", f"out={home / 'out'}"]
    penstock("run", str(shown), *inputs, home=home, shown=f"run {shown} --context prod")
    print("\nWhat was rejected, and why:\n")
    with (home / "out" / "rejects.csv").open(encoding="utf-8", newline="") as file:
        print(table([{name: row[name] for name in ("line", "error_message")} for row in csv.DictReader(file)]))
    penstock("explain", "@last", "too_many", home=home)
    penstock("replay", "@last", home=home)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
        home = Path(folder)
        play(home)
        work(home)
    print(f"\nThese were {PLAYBOOK.relative_to(HERE.parent)} and {JOB.relative_to(HERE.parent)}.")
    print("Next: README.md, docs/how-to/first-playbook.md, docs/how-to/first-job.md, docs/examples.md.")


if __name__ == "__main__":
    main()
