"""What `make demo` runs: a playbook against a small local API, then a job over files; their results, and the engine's own account
of why. Last a job that fails on purpose, to be repaired on the web page.

Needs no services: the API is a thread of this program. The documents are copied to a folder of the demo, `.penstock-demo/`, which
also keeps the runs, so that they can be looked at afterwards; it is made anew each time.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from api import serving

HERE = Path(__file__).resolve().parent
CLONE = HERE.parent
DEMO = Path(os.environ.get("PENSTOCK_DEMO") or CLONE / ".penstock-demo")
PLAYBOOK = DEMO / "orders" / "orders.yaml"
JOB = DEMO / "daily-orders" / "daily-orders.yaml"
BROKEN = DEMO / "repair" / "repair.yaml"
LEFT_BY_RUNS = shutil.ignore_patterns(".penstock", "out", "*.duckdb")
FAILED = 1


def penstock(*words: str, shown: str | None = None, keep: bool = False, fails: bool = False) -> str:
    """The command line as a person would type it. What it says goes to the terminal; `keep` takes its data back instead."""
    print(f"\n$ penstock {shown or ' '.join(words)}", flush=True)
    environment = {**os.environ, "PENSTOCK_HOME": str(DEMO / ".penstock"), "XDG_STATE_HOME": str(DEMO / ".xdg")}
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *words],
        env=environment,
        cwd=CLONE,
        stdout=subprocess.PIPE if keep else None,
        text=True,
        check=False,
    )
    if done.returncode != (FAILED if fails else 0):
        sys.exit(done.returncode or FAILED)
    return done.stdout or ""


def near(path: Path) -> str:
    return str(path.relative_to(CLONE) if path.is_relative_to(CLONE) else path)


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


def play() -> None:
    """The playbook: steps that call an API, a loop, retries, a join."""
    shown = near(PLAYBOOK)
    with serving() as (url, _):
        print("A playbook. A small API is up, with 60 orders in pages of 6 and a list of customers that fails twice.")
        inputs = ["--set", f"api_url={url}", "--set", f"database={DEMO / 'orders' / 'orders.duckdb'}"]
        result = json.loads(penstock("run", shown, *inputs, shown=f"run {shown}", keep=True))
    print(f"\nThe report, from {sum(one['pages'] for one in result['regions'])} pages of orders:\n")
    print(table(result["totals"]))
    penstock("explain", "@last", "load_customers")


def work() -> None:
    """The job: rows through components, with rejects and their reasons."""
    shown = near(JOB)
    print("\n\nA job. A day's orders as CSV: some lines are broken, and one order belongs to nobody.")
    penstock("run", shown, "--context", "prod")
    print("\nWhat was rejected, and why:\n")
    with (JOB.parent / "out" / "prod" / "rejects.csv").open(encoding="utf-8", newline="") as file:
        print(table([{name: row[name] for name in ("line", "error_message")} for row in csv.DictReader(file)]))
    penstock("explain", "@last", "too_many")
    penstock("replay", "@last")


def fail() -> None:
    """A job to repair."""
    print("\n\nA job that fails on purpose. You can find out why on the web page, repair it there, and run it again.")
    penstock("run", near(BROKEN), fails=True)


def main() -> None:
    shutil.rmtree(DEMO, ignore_errors=True)
    for name in ("orders", "daily-orders", "repair"):
        shutil.copytree(HERE / name, DEMO / name, ignore=LEFT_BY_RUNS)
    play()
    work()
    fail()
    command = f"{near(Path(sys.executable).parent)}/penstock ui --project {near(DEMO)}"
    print(f"\nThat failure was expected. The documents and their runs are in {near(DEMO)}.")
    print("To look at the runs, drag the slider to the failing moment, and repair the job:")
    print(f"\n  {command}\n")
    print(
        "Next: README.md, docs/how-to/web-page.md, docs/how-to/first-playbook.md, docs/how-to/first-job.md, docs/examples.md."
    )


if __name__ == "__main__":
    main()
