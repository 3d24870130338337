"""The web page: what its first load transfers, how soon a graph is drawn, how smoothly it changes, what a long run costs it."""

from __future__ import annotations

import http.client
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benchmarks import playbooks
from benchmarks.engine import EXECUTION
from benchmarks.fleet_scene import percentile
from benchmarks.measuring import ROOT
from benchmarks.page_scene import CARD, Served, Tab, browsing, serving

NODES = 200
LANES = 20
# Played in 15 seconds, ten moments a second: from one moment to the next, a tenth of the nodes and links changes.
ROUNDS = 15
FRAMES_S = 10.0
SETTLED_S = 1.5
MOMENTS = 20
# Live, every lane takes a step in so many seconds: 200 steps a second in the one, 100 in the other.
BUSY_STEP_S = 0.1
CALM_STEP_S = 0.2
SAMPLES = 6
FOR_EVER = 9_000
ELK = re.compile(r"/assets/elk\b")
FIRST_ANSWERS = re.compile(rf"/api/executions/{EXECUTION}/(net|moment|marks)\b")


def load(folder: Path) -> dict[str, float]:
    """What is transferred with an empty cache, headers included: for the list of runs, and for a run."""
    shutil.copytree(ROOT / "examples" / "daily-orders", folder / "project" / "daily-orders")
    with serving(folder) as served, browsing() as opened:
        path = folder / "project" / "daily-orders" / "daily-orders.yaml"
        run = served.done(path.read_text(encoding="utf-8"), str(path))
        runs = _transferred(opened(served), "/runs", "[role=grid] [role=row]")
        one = _transferred(opened(served), f"/runs/{run}", CARD)
    files = [answer for answer in one if not answer.is_of_api and not ELK.search(answer.url)]
    return {
        "runs_kb": _kilobytes(answer for answer in runs if not answer.is_of_api),
        "runs_answers_kb": _kilobytes(answer for answer in runs if answer.is_of_api),
        "run_kb": _kilobytes(files),
        "run_files": len(files),
        "run_headers_kb": sum(answer.headers for answer in files) / 1000,
        "run_answers_kb": _kilobytes(answer for answer in one if answer.is_of_api),
        "elk_kb": _kilobytes(answer for answer in one if ELK.search(answer.url)),
    }


@dataclass(frozen=True)
class Answer:
    """What came over the network, in bytes."""

    url: str
    size: int
    headers: int

    @property
    def is_of_api(self) -> bool:
        return urlsplit(self.url).path.startswith("/api/")


def _kilobytes(answers: Iterable[Answer]) -> float:
    return sum(answer.size for answer in answers) / 1000


def _transferred(tab: Tab, path: str, shown: str) -> list[Answer]:
    urls: dict[str, str] = {}
    sizes: dict[str, int] = {}
    bodies: Counter[str] = Counter()
    asked: list[str] = []
    tab.cdp.on("Network.responseReceived", lambda event: urls.update({event["requestId"]: event["response"]["url"]}))
    tab.cdp.on("Network.dataReceived", lambda event: bodies.update({event["requestId"]: event["encodedDataLength"]}))
    tab.cdp.on("Network.loadingFinished", lambda event: sizes.update({event["requestId"]: event["encodedDataLength"]}))
    tab.context.on("request", lambda request: asked.append(request.url))
    tab.cdp.send("Network.enable")
    tab.open(path)
    tab.page.wait_for_selector(shown)
    tab.page.wait_for_timeout(SETTLED_S * 1000)
    found = [Answer(urls[one], int(size), int(size) - bodies[one]) for one, size in sizes.items()]
    # The scripts of workers are not among the events of the tab.
    missing = {url for url in asked if "/assets/" in url} - {answer.url for answer in found}
    return found + [_fetched(url) for url in sorted(missing)]


def _fetched(url: str) -> Answer:
    """An answer as a browser gets it."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", parts.path, headers={"accept-encoding": "gzip"})
        answer = connection.getresponse()
        body = len(answer.read())
        headers = sum(len(f"{name}: {value}\r\n") for name, value in answer.getheaders())
        return Answer(url, body + headers, headers)
    finally:
        connection.close()


def graph(folder: Path) -> dict[str, float]:
    """From the start of the navigation: once with an empty cache, and once more when the layout is known."""
    with serving(folder, LANES) as served, browsing() as opened:
        run = served.done(playbooks.lanes(NODES, LANES, 1))
        tab = opened(served)
        first = tab.open_graph(run)
        tab.page.wait_for_timeout(SETTLED_S * 1000)
        again = tab.open_graph(run)
        tab.show_all(NODES)
    return {"s": first, "again_s": again}


def frames(folder: Path) -> dict[str, float]:
    """A run of 200 steps, played: ten times a second the page asks for the next moment and draws it. All nodes are in view."""
    with serving(folder, LANES) as served, browsing() as opened:
        run = served.done(playbooks.lanes(NODES, LANES, ROUNDS))
        tab = opened(served)
        tab.open_graph(run)
        tab.show_all(NODES)
        idle = tab.frame_times(2.0)
        shown: list[int] = []
        tab.page.on("requestfinished", lambda request: shown.extend(_moment_of(request.url)))
        tab.page.get_by_role("button", name="Play").click()
        tab.page.wait_for_timeout(1_000)
        shown.clear()
        times = tab.frame_times(FRAMES_S)
        seen = list(shown)
        tab.page.get_by_role("button", name="Pause").click()
        changed = _changed(served, run, seen)
    return {**_of_frames(times), "idle_ms": median(idle), "changes_per_s": len(seen) / FRAMES_S, "changed": changed}


def live(folder: Path) -> dict[str, float]:
    """The same graph while it runs, 200 steps a second."""
    with serving(folder, LANES) as served, browsing() as opened:
        run = served.submit(_endless(BUSY_STEP_S))
        tab = opened(served)
        tab.open_graph(run)
        tab.show_all(NODES)
        shown: list[str] = []
        tab.page.on("requestfinished", lambda request: shown.append(urlsplit(request.url).path))
        before = _events(served, run)
        times = tab.frame_times(FRAMES_S)
        repaints = sum(path.endswith("/moment") for path in shown)
        events = _events(served, run) - before
        served.cancel(run)
    return {**_of_frames(times), "changes_per_s": repaints / FRAMES_S, "events_per_s": events / FRAMES_S}


def _endless(step_s: float) -> str:
    return playbooks.lanes(NODES, LANES, FOR_EVER, "kind: sleep", f"seconds: {step_s}")


def _events(served: Served, run: str) -> int:
    return int(served.ask(f"/api/executions/{run}/header")["events"])


def _moment_of(url: str) -> list[int]:
    parts = urlsplit(url)
    at = parse_qs(parts.query).get("at")
    return [int(at[0])] if parts.path.endswith("/moment") and at is not None else []


def _of_frames(times: list[float]) -> dict[str, float]:
    took = sum(times)
    return {
        "ms": took / len(times),
        "frames_per_s": len(times) * 1000 / took,
        "p95_ms": percentile(times, 0.95),
        "worst_ms": max(times),
    }


def _changed(served: Served, run: str, moments: list[int]) -> float:
    """The share of nodes and links, in percent, that differ from one of these moments to the next."""
    found = [served.ask(f"/api/executions/{run}/moment?at={at}") for at in moments]
    shares = [
        100
        * sum(_differing(one[part], other[part]) for part in ("nodes", "edges"))
        / (len(one["nodes"]) + len(one["edges"]))
        for one, other in pairwise(found)
    ]
    return median(shares)


def _differing(one: dict[str, Any], other: dict[str, Any]) -> int:
    return sum(one[name] != other.get(name) for name in one)


def opening(folder: Path) -> dict[str, float]:
    """A long run that nobody has looked at; then, on a server started anew, with the snapshots that the first look made."""
    with serving(folder) as served, browsing() as opened:
        cold = _opened(served, opened)
        began = time.perf_counter()
        served.until(lambda: _is_folded(served), "all events are folded")
        folded = time.perf_counter() - began
    with serving(folder) as served, browsing() as opened:
        kept = _opened(served, opened)
        last = int(served.ask(f"/api/executions/{EXECUTION}/moment")["last_seq"])
        took = [_moment_s(served, at) for at in range(last // (2 * MOMENTS), last, last // MOMENTS)]
    return {
        "events": last,
        "cold_s": cold["answers_s"],
        "cold_drawn_s": cold["drawn_s"],
        "folded_s": cold["drawn_s"] + folded,
        "s": kept["answers_s"],
        "drawn_s": kept["drawn_s"],
        "moment_s": median(took),
        "worst_moment_s": max(took),
    }


def _opened(served: Served, opened: Callable[[Served], Tab]) -> dict[str, float]:
    """When the graph was drawn, and how long the slowest of the answers took that it needs."""
    tab = opened(served)
    took: dict[str, float] = {}

    def on(request: Any) -> None:
        found = FIRST_ANSWERS.search(request.url)
        if found is not None:
            # Only the first of each kind: a page that is behind asks again.
            took.setdefault(found[1], (request.timing["responseEnd"] - request.timing["requestStart"]) / 1000)

    tab.page.on("requestfinished", on)
    # A graph of one node has no links.
    tab.page.goto(f"{served.url}/runs/{EXECUTION}?panel=none", wait_until="commit")
    tab.page.wait_for_selector(CARD)
    drawn = float(tab.page.evaluate("performance.now()")) / 1000
    tab.page.wait_for_timeout(500)
    return {"answers_s": max(took.values()), "drawn_s": drawn}


def _is_folded(served: Served) -> bool:
    moment = served.ask(f"/api/executions/{EXECUTION}/moment")
    return bool(moment["folded_to"] >= moment["last_seq"])


def _moment_s(served: Served, at: int) -> float:
    began = time.perf_counter()
    served.ask(f"/api/executions/{EXECUTION}/moment?at={at}")
    return time.perf_counter() - began


def memory(folder: Path, seconds: int) -> dict[str, float]:
    """The heap of a tab that follows a run of 200 nodes, 100 steps a second, after a garbage collection."""
    with serving(folder, LANES) as served, browsing() as opened:
        run = served.submit(_endless(CALM_STEP_S))
        tab = opened(served)
        tab.open_graph(run)
        tab.show_all(NODES)
        heaps = [tab.metric("JSHeapUsedSize")]
        nodes = tab.metric("Nodes")
        for _ in range(SAMPLES):
            tab.page.wait_for_timeout(seconds * 1000 / SAMPLES)
            heaps.append(tab.metric("JSHeapUsedSize"))
        events = _events(served, run)
        nodes_after = tab.metric("Nodes")
        served.cancel(run)
    first, middle, last = (heaps[index] / 1e6 for index in (0, SAMPLES // 2, -1))
    return {
        "start_mb": first,
        "middle_mb": middle,
        "end_mb": last,
        "nodes": nodes,
        "nodes_after": nodes_after,
        "events": events,
    }


PROBES: dict[str, Callable[..., dict[str, float]]] = {
    "page-load": load,
    "page-graph": graph,
    "page-frames": frames,
    "page-live": live,
    "page-opening": opening,
    "page-memory": memory,
}
