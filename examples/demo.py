"""What `make demo` runs: a playbook against a small local API, its result, and the engine's own account of why.

Needs no services and leaves nothing behind: the API is a thread of this program, the state a temporary folder.
"""

from __future__ import annotations

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


def main() -> None:
    shown = PLAYBOOK.relative_to(HERE.parent)
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder, serving() as (url, _):
        home = Path(folder)
        print("A small API with 60 orders in pages of 6, and a list of customers that fails twice, is up.")
        inputs = ["--set", f"api_url={url}", "--set", f"database={home / 'orders.duckdb'}"]
        result = json.loads(penstock("run", str(shown), *inputs, home=home, shown=f"run {shown}", keep=True))
        print(f"\nThe report, from {sum(one['pages'] for one in result['regions'])} pages of orders:\n")
        print(table(result["totals"]))
        penstock("explain", "@last", "load_customers", home=home)
        penstock("replay", "@last", home=home)
    print("\nThe playbook is examples/orders/orders.yaml. Next: README.md, docs/how-to/first-playbook.md.")


if __name__ == "__main__":
    main()
