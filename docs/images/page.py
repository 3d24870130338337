"""Make the README's pictures of the web page, in a real browser and from runs of the examples.

python -m docs.images.page
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import ROOT
from benchmarks.page_scene import CARD, WIDTH, Served, Tab, browsing, serving

HERE = Path(__file__).resolve().parent
LEFT_BY_RUNS = shutil.ignore_patterns(".penstock", "out")
FAILED = 1


def ran(folder: Path, served: Served, example: str, *words: str, code: int = 0) -> str:
    """Runs the job of an example as somebody in a terminal does, and gives the id of the run."""
    shutil.copytree(ROOT / "examples" / example, folder / "project" / example, ignore=LEFT_BY_RUNS)
    command = [sys.executable, "-m", "penstock", "run", f"{example}/{example}.yaml", *words, "--quiet"]
    done = subprocess.run(
        [*command, "--store", str(folder / "home")], cwd=folder / "project", capture_output=True, check=False
    )
    if done.returncode != code:
        raise SystemExit(f"`{example}` gave exit code {done.returncode}, not {code}")
    newest = served.ask("/api/executions?limit=1")["runs"][0]
    return str(newest["execution_id"])


def graph(tab: Tab, run: str) -> None:
    """A job, how many rows went along each of its links, and what was rejected."""
    tab.page.set_viewport_size({"width": WIDTH, "height": 900})  # Fit to views main sub-job is in view.
    tab.open(f"/runs/{run}?node=reasons&panel=data")
    tab.page.locator(CARD).first.wait_for()
    kept(tab, "page-graph")


def slider(tab: Tab, run: str) -> None:
    """The moment at which a job failed, and why."""
    first = tab.served.ask(f"/api/executions/{run}/marks")["first_error"]
    tab.open(f"/runs/{run}?at={first}&node=plausible&panel=why")
    tab.page.locator(CARD).first.wait_for()
    kept(tab, "page-slider")


def kept(tab: Tab, name: str) -> None:
    tab.page.mouse.move(0, 0)
    tab.page.wait_for_timeout(2_000)
    tab.page.screenshot(path=HERE / f"{name}.png", animations="disabled")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder) as served, browsing() as opened:
            orders = ran(folder, served, "daily-orders", "--context", "prod", "--keep", "reasons")
            repair = ran(folder, served, "repair", code=FAILED)
            graph(opened(served), orders)
            slider(opened(served), repair)


if __name__ == "__main__":
    main()
