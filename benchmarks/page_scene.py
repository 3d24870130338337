"""The web page in a real browser: `penstock ui` as a process of its own, and Chromium, which Playwright drives.

Law: whatever is measured is the page as people get it, built and compressed, on runs that really ran.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import TYPE_CHECKING, Any

from benchmarks.fleet_scene import Process
from benchmarks.measuring import ROOT
from benchmarks.peers import NotInstalled

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, CDPSession, Page

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
WIDTH, HEIGHT = 1280, 800
PATIENCE_S = 120.0
CARD, WIRE = ".run-card", ".run-wire"

# Says when the first cards and links of a graph are on the screen: in the frame after the one that draws them.
DRAWN = f"""
(() => {{
  const look = () => {{
    if (!document.querySelector("{CARD}") || !document.querySelector("{WIRE}")) return;
    watcher.disconnect();
    requestAnimationFrame(() => requestAnimationFrame((now) => {{ document.documentElement.dataset.drawnAt = now; }}));
  }};
  const watcher = new MutationObserver(look);
  watcher.observe(document, {{ childList: true, subtree: true }});
}})()
"""

# Counts frames for so many seconds.
FRAMES = """
(seconds) => new Promise((resolve) => {
  const times = [];
  const frame = (now) => {
    times.push(now);
    if (now - times[0] < seconds * 1000) requestAnimationFrame(frame);
    else resolve(times);
  };
  requestAnimationFrame(frame);
})
"""


@dataclass
class Served:
    """`penstock ui`, and what an API client asks it."""

    process: Process
    url: str
    token: str

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.token}"}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=60) as response:
            return json.load(response)

    def submit(self, text: str, file: str = "benchmark.yaml") -> str:
        return str(self.ask("/api/executions", {"document": {"text": text, "file": file}})["execution_id"])

    def done(self, text: str, file: str = "benchmark.yaml") -> str:
        """A run that has completed."""
        run = self.submit(text, file)
        self.until(lambda: self.status(run) != "running", f"`{run}` ends")
        if (status := self.status(run)) != "completed":
            raise RuntimeError(f"the run to look at is {status}")
        return run

    def status(self, run: str) -> str:
        return str(self.ask(f"/api/executions/{run}/header")["status"])

    def cancel(self, run: str) -> None:
        self.ask(f"/api/executions/{run}/cancel", {"reason": "the benchmark has seen enough"})

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > end:
                raise RuntimeError(f"not within {PATIENCE_S:g} s: {what}")
            time.sleep(0.05)


@contextmanager
def serving(folder: Path, slots: int = 4) -> Iterator[Served]:
    """`penstock ui` on `folder/project`, with its state in `folder/home`."""
    if not (ROOT / "src" / "penstock" / "web" / "index.html").is_file():
        raise NotInstalled("the page is not built: `make web` builds it")
    project, said = folder / "project", folder / f"ui-{time.monotonic_ns()}.said"
    project.mkdir(exist_ok=True)
    words = ["ui", "--no-open", "--grace", "0", "--slots", str(slots)]
    words += ["--store", str(folder / "home"), "--project", str(project)]
    with said.open("wb") as file:
        command = [sys.executable, "-m", "penstock", *words]
        process = Process("penstock ui", Popen(command, cwd=project, stdin=DEVNULL, stdout=file, stderr=file), said)
    try:
        url, _, token = process.until_said("#token=").split()[-1].partition("/#token=")
        yield Served(process, url, token)
    finally:
        process.stop()


@dataclass
class Tab:
    """A tab of a profile of its own: nothing is in its cache, and whoever opened the page is signed in."""

    served: Served
    context: BrowserContext
    page: Page
    cdp: CDPSession
    _metrics: bool = field(default=False, init=False)

    def open(self, path: str) -> None:
        self.page.goto(self.served.url + path)

    def open_graph(self, run: str) -> float:
        """Opens a run without the pane beside its graph; the seconds until cards and links are drawn."""
        self.page.goto(f"{self.served.url}/runs/{run}?panel=none", wait_until="commit")
        self.page.wait_for_selector("html[data-drawn-at]")
        return float(self.page.evaluate("document.documentElement.dataset.drawnAt")) / 1000

    def show_all(self, cards: int) -> None:
        """All of the graph is in view."""
        self.page.get_by_role("button", name="Fit to view").click()
        self.page.locator(CARD).nth(cards - 1).wait_for()
        self.page.wait_for_timeout(1_000)

    def frame_times(self, seconds: float) -> list[float]:
        """How many milliseconds passed from each frame to the next."""
        times: list[float] = self.page.evaluate(FRAMES, seconds)
        return [after - before for before, after in pairwise(times)]

    def metric(self, name: str) -> float:
        """Of Chromium, after a garbage collection."""
        if not self._metrics:
            self.cdp.send("Performance.enable")
            self._metrics = True
        for _ in range(2):  # What the first one finalizes, the second one frees.
            self.cdp.send("HeapProfiler.collectGarbage")
        found = {one["name"]: float(one["value"]) for one in self.cdp.send("Performance.getMetrics")["metrics"]}
        return found[name]


@contextmanager
def browsing() -> Iterator[Callable[[Served], Tab]]:
    """Opens tabs, each in a profile of its own."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise NotInstalled("Chromium is not there: on Debian, `apt-get install chromium`")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as missing:
        raise NotInstalled(str(missing)) from missing

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))

        def tab(served: Served) -> Tab:
            context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            context.set_default_timeout(PATIENCE_S * 1000)
            signed_in = context.request.post(
                f"{served.url}/api/session", data={"token": served.token}, headers={"Origin": served.url}
            )
            if not signed_in.ok:
                raise RuntimeError(f"the token is refused: {signed_in.text()}")
            context.add_init_script(DRAWN)
            page = context.new_page()
            return Tab(served, context, page, context.new_cdp_session(page))

        try:
            yield tab
        finally:
            browser.close()
