"""Make the pictures of the README: the graph of the orders example, and terminals in the middle of a playbook and of a job.

python docs/images/make.py            # all of them
python docs/images/make.py graphs     # only the graphs of the examples
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
PLAYBOOK = "examples/orders/orders.yaml"
REGIONS = ("north", "coast", "hills", "south", "lakes", "plain", "delta", "west")
sys.path.insert(0, str(PROJECT / "examples"))

from api import serving  # noqa: E402


def frames(command: list[str], environment: dict[str, str]) -> list[str]:
    """What a terminal showed, picture by picture."""
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(terminal, 65536):
            said += piece
    except OSError:  # the other end of a terminal closes with an error
        pass
    process.communicate()
    os.close(terminal)
    text = said.decode().replace("\r\n", "\n").replace("\r", "")
    return re.split(r"(?:\x1b\[2K|\x1b\[1A)+", text)


def screenshot(frame: str, shown: str = PLAYBOOK) -> str:
    import io

    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    console = Console(record=True, width=72, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ penstock run {shown}\n{frame}"))
    return console.export_svg(title="penstock", theme=MONOKAI, unique_id="penstock")


JOB = """\
kind: Job
metadata: { name: journeys }
components:
  - name: journeys
    type: generate_rows
    params: { count: 900000, columns: { id: i, pump: i % 5, litres: "(i * 7919) % 1000" } }
  - name: usable
    type: filter
    params: { where: litres >= 10 }
  - name: classified
    type: python
    params:
      mode: row
      code: |
        row["size"] = "large" if row["litres"] > 500 else "small"
  - name: per_pump
    type: aggregate
    params: { by: [pump, size], measures: { litres: sum(litres) } }
  - { name: keep, type: write_parquet, params: { path: litres.parquet } }
  - { name: too_small, type: write_parquet, params: { path: small.parquet } }
  - { name: report, type: warn, params: { message: "{{ global.keep.NB_LINE }} groups" } }
connections:
  data: |
    journeys.main -> usable.input
    usable.main -> classified.input
    usable.reject -> too_small.input
    classified.main -> per_pump.input
    per_pump.main -> keep.input
  control: |
    keep (subjob_ok) report
"""


def job_run(folder: str) -> None:
    """A job while its Python component works: rows and rows a second on the links."""
    path = Path(folder) / "journeys.yaml"
    path.write_text(JOB, encoding="utf-8")
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "72", "LINES": "24", "PENSTOCK_HOME": folder}
    shown = frames([sys.executable, "-m", "penstock", "run", str(path)], environment)
    telling = [frame for frame in shown if "rows/s" in frame and "classified" in frame]
    frame = telling[len(telling) // 2].replace(f"{folder}/", "")
    (HERE / "run-journeys.svg").write_text(screenshot(frame, path.name), encoding="utf-8")


def graphs() -> None:
    """The orders playbook, and of each folder with a README its job: `FOLDER.yaml`, or the first one there is."""
    drawn = {"orders": Path(PLAYBOOK)}
    for folder in sorted(path.parent for path in (PROJECT / "examples").glob("*/README.md")):
        jobs = [path for path in sorted(folder.glob("*.yaml")) if "\nkind: Job\n" in path.read_text(encoding="utf-8")]
        named = [path for path in jobs if path.stem == folder.name]
        drawn[folder.name] = [*named, *jobs][0].relative_to(PROJECT)
    for name, path in drawn.items():
        words = [sys.executable, "-m", "penstock", "graph", str(path), "-o", str(HERE / f"graph-{name}.svg")]
        subprocess.run(words, cwd=PROJECT, check=True)


def main() -> None:
    graphs()
    if sys.argv[1:] == ["graphs"]:
        return
    with tempfile.TemporaryDirectory() as folder:
        job_run(folder)
    penstock = [sys.executable, "-m", "penstock"]
    with tempfile.TemporaryDirectory() as folder, serving(delay=0.12) as (url, _):
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "72", "LINES": "20", "PENSTOCK_HOME": folder}
        # Regions without orders are through at once, so the bar has moved while the customers still wait for their next try.
        settings = [
            f"api_url={url}",
            f"database={folder}/orders.duckdb",
            "page_size=4",
            f"regions=[{', '.join(REGIONS)}]",
        ]
        inputs = [word for setting in settings for word in ("--set", setting)]
        shown = frames([*penstock, "run", PLAYBOOK, *inputs], environment)
    telling = [frame for frame in shown if "next try" in frame and "━" in frame]
    (HERE / "run-orders.svg").write_text(screenshot(telling[len(telling) // 2]), encoding="utf-8")


if __name__ == "__main__":
    main()
