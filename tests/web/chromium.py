"""Debian's Chromium, driven by Playwright, for tests of the page. Playwright's own browsers are not fetched.

def test_the_page_lists_runs(page, served):
    page.goto(served)
    page.get_by_role("link", name="Runs").click()
    screen(page, "runs")                # kept in build/screens
    assert axe(page) == []
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "src" / "penstock" / "web"
SCREENS = ROOT / "build" / "screens"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "chromium")


def chromium() -> str:
    """The path of Chromium. Root may install it, and so these tests do; everybody else is told how."""
    if (found := _installed()) is not None:
        return found
    with (Path(tempfile.gettempdir()) / "penstock-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Tests that run side by side install it once.
        if (found := _installed()) is not None:
            return found
        command = " ".join(INSTALL)
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise RuntimeError(
                f"the tests of the page need Chromium, and it is not installed\nhint: `{command}`, as root"
            )
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (("apt-get", "-qq", "update"), INSTALL):
            done = subprocess.run(step, env=environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"Chromium cannot be installed: `{' '.join(step)}` says: {done.stderr.strip()}")
    found = _installed()
    if found is None:
        raise RuntimeError(f"`{command}` did not bring Chromium")
    return found


def _installed() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


def screen(page: Page, name: str, *, full: bool = False) -> Path:
    """A picture of the page as it is, kept for people to look at: build/screens/NAME.png."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    path = SCREENS / f"{name}.png"
    page.screenshot(path=path, full_page=full, animations="disabled")
    return path


def axe(page: Page, *, within: str | None = None) -> list[str]:
    """What stands in the way of people with disabilities (WCAG 2.2 A and AA), by axe-core; a line for each place."""
    if not AXE.is_file():
        raise RuntimeError("axe-core is not there\nhint: `make web-check` installs what tests of the page need")
    if not page.evaluate("'axe' in window"):
        # Evaluated, not added as a script: the policy of the page forbids inline scripts.
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate(
        """async (within) => axe.run(within ?? document, {
            resultTypes: ["violations"],
            runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
        })""",
        within,
    )
    return [
        f"{problem['id']} ({problem['impact']}): {problem['help']}: {node['target']} {node['html'][:200]}"
        for problem in found["violations"]
        for node in problem["nodes"]
    ]
