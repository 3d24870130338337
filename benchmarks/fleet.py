"""Penstock on a fleet: one server, two workers of four slots, PostgreSQL between them, all on this machine.

Event times are those of the store's clock, which on one machine is everybody's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks import playbooks
from benchmarks.fleet_scene import CLIENTS, Fleet, fleet, percentile

LEASE_S = 3.0
CHAIN = 50
# Long enough not to end while others are timed beside it.
ENDLESS = 1_000_000_000
BETWEEN_S = 0.1
# How long the slots of all workers are to be busy.
WAITING_S = 30.0
# As many as the others put in with one call.
AT_ONCE = 500
# As often as the others are looked at.
LOOK_S = 0.02
MEMORY_EVERY_S = 0.2
RUN_S = 1_500.0
WAIT_S = 60.0


def per_item(folder: Path, count: int, *, nats: bool = False) -> dict[str, float]:
    return _shards(folder, count, "per_item", nats=nats)


def summary(folder: Path, count: int, *, nats: bool = False) -> dict[str, float]:
    return _shards(folder, count, "summary", nats=nats)


def _shards(folder: Path, count: int, emit: str, *, nats: bool) -> dict[str, float]:
    with fleet(folder, nats=nats) as scene:
        scene.run(playbooks.shards(1_000, emit), WAIT_S)  # Modules are loaded, connections are open.
        server = scene.servers["s0"]
        seen: list[tuple[float, float]] = [(0.0, server.rss_mb)]

        def watch(since_s: float) -> None:
            if since_s > seen[-1][0] + MEMORY_EVERY_S:
                seen.append((since_s, server.rss_mb))

        busy = scene.cpu_s
        ended = scene.run(playbooks.shards(count, emit), RUN_S, watch)
        used = scene.cpu_s - busy
        seen.append((ended.s, server.rss_mb))
        events = scene.header(ended.execution_id).last_seq
    sizes = [size for _, size in seen]
    return {
        "ms": ended.s * 1000 / count,
        "cpu_ms": used * 1000 / count,
        "per_s": count / ended.s,
        "events": events,
        "rss_start_mb": sizes[0],
        "rss_middle_mb": sizes[len(sizes) // 2],
        "rss_end_mb": sizes[-1],
        "rss_grown_mb": max(sizes) - sizes[0],
    }


def submit(folder: Path, count: int, *, nats: bool = False) -> dict[str, float]:
    """From before a run is submitted to an idle fleet until its first task starts on a worker."""
    with fleet(folder, nats=nats) as scene:
        for _ in range(5):
            _first_task_ms(scene)
        return _spread([_first_task_ms(scene) for _ in range(count)])


def _first_task_ms(scene: Fleet) -> float:
    ended = scene.run(playbooks.hops(1), WAIT_S)
    return (scene.times(ended.execution_id, "task.started")[0] - ended.asked_at) * 1000


def hops(folder: Path, count: int, *, nats: bool = False) -> dict[str, float]:
    """From the end of a step's task to the start of the next step's, `count` chains of 50 steps one after the other."""
    took: list[float] = []
    with fleet(folder, nats=nats) as scene:
        scene.run(playbooks.hops(CHAIN), WAIT_S)
        for _ in range(count):
            run = scene.run(playbooks.hops(CHAIN), WAIT_S).execution_id
            starts, ends = scene.times(run, "task.started"), scene.times(run, "task.done")
            took += [(start - end) * 1000 for end, start in zip(ends[:-1], starts[1:], strict=True)]
    return _spread(took)


def runs(folder: Path, count: int, *, at_once: int = 1) -> dict[str, float]:
    """Runs of one task each, what others call a job. With `at_once` that many go in with one request; else eight clients send
    one request for each."""
    text = playbooks.hops(1)
    with fleet(folder) as scene:
        for _ in range(5):
            scene.run(text, WAIT_S)
        busy, began = scene.cpu_s, time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as clients:
            if at_once == 1:
                made = list(clients.map(lambda _: scene.submit(text), range(count)))
            else:
                made = [run for size in _portions(count, at_once) for run in scene.submit_many(text, size)]
        scene.until(lambda: not scene.log.unfinished(), 600.0, "every run has ended", LOOK_S)
        took, used = time.perf_counter() - began, scene.cpu_s - busy
        done = sum(scene.header(one).status == "completed" for one in made)
    if done != count:
        raise RuntimeError(f"{done} runs of {count} have completed")
    return {"ms": took * 1000 / count, "cpu_ms": used * 1000 / count, "per_s": count / took}


def _portions(count: int, most: int) -> list[int]:
    return [min(most, count - first) for first in range(0, count, most)]


def workers(folder: Path, count: int) -> dict[str, float]:
    """Elements that wait, on so many workers: a slot of each is kept for steps, the others are busy with a range each."""
    each_s, slots = 0.05, 8
    places = count * (slots - 1)
    elements = int(places * WAITING_S / each_s)
    with fleet(folder, workers=count, slots=slots) as scene:
        scene.run(playbooks.shards(1_000, "summary"), WAIT_S)
        text = playbooks.shards(elements, "summary", "kind: sleep", f"seconds: {each_s:g}")
        ended = scene.run(text, RUN_S)
    return {"per_s": elements / ended.s, "share": elements * each_s / places / ended.s}


def takeover(folder: Path, count: int, *, steps: int = 200) -> dict[str, float]:
    """From kill -9 of the server that drives a run until another one has written the run's next event.

    The one that takes over reads and checks the document first, so that its length counts.
    """
    text = playbooks.hops(steps, "kind: sleep", "seconds: 0.05")
    with fleet(folder, servers=2, lease_s=LEASE_S) as scene:
        took = [_taken_over(scene, text, f"s{number % 2}", f"s{(number + 1) % 2}") for number in range(count)]
    return {"s": median(took), "worst_s": max(took)}


def _taken_over(scene: Fleet, text: str, dies: str, stays: str) -> float:
    # Once the servers have shared the partitions out, whoever is asked for a run drives it.
    scene.until(lambda: _shares(scene, stays) == 2, WAIT_S, "both servers have a share")
    run = scene.submit(text, server=dies)
    scene.until(lambda: scene.header(run).last_seq > 50, WAIT_S, "the run is under way")
    scene.servers[dies].kill()
    began, before = time.perf_counter(), scene.header(run).last_seq
    scene.until(lambda: scene.header(run).last_seq > before, WAIT_S, "the other server goes on")
    took = time.perf_counter() - began
    _cancelled(scene, run, stays)
    scene.serve(dies)
    return took


def _cancelled(scene: Fleet, run: str, server: str = "s0") -> None:
    scene.cancel(run, server=server)
    scene.until(lambda: scene.header(run).status == "cancelled", WAIT_S, "the run is cancelled")


def _shares(scene: Fleet, server: str) -> int:
    return sum(one["partitions"] > 0 for one in scene.ask("/api/servers", server=server)["servers"])


def lost_worker(folder: Path, count: int) -> dict[str, float]:
    """From kill -9 of the worker that holds a lease until another worker holds it."""
    with fleet(folder, lease_s=LEASE_S) as scene:
        took = [_given_to_another(scene) for _ in range(count)]
    return {"s": median(took), "worst_s": max(took)}


def _given_to_another(scene: Fleet) -> float:
    run = scene.submit(playbooks.hops(1, "kind: sleep", "seconds: 300"))
    scene.until(lambda: _holder(scene, run) is not None, WAIT_S, "a worker holds the lease")
    first = _holder(scene, run)
    name = str(first).partition("#")[0]
    scene.workers[name].kill()
    began = time.perf_counter()
    scene.until(lambda: _holder(scene, run) not in (None, first), WAIT_S, "another worker holds the lease")
    took = time.perf_counter() - began
    _cancelled(scene, run)
    scene.work(name)
    return took


def _holder(scene: Fleet, run: str) -> str | None:
    return next(iter(_held(scene, run)), None)


def fairness(folder: Path, count: int) -> dict[str, float]:
    """As `submit`, while a loop that would go on for an hour fills both workers."""
    with fleet(folder) as scene:
        alone = [_first_task_ms(scene) for _ in range(10)]
        loop = scene.submit(playbooks.shards(ENDLESS, "summary"))
        scene.until(
            lambda: len(set(_held(scene, loop))) == len(scene.workers), WAIT_S, "the loop has filled the workers"
        )
        took: list[float] = []
        for _ in range(count):
            took.append(_first_task_ms(scene))
            time.sleep(BETWEEN_S)
        if scene.header(loop).status != "running":
            raise RuntimeError("the loop has ended, so there was nothing to be fair about")
        _cancelled(scene, loop)
    return {**_spread(took), "alone_ms": median(alone)}


def _held(scene: Fleet, run: str) -> list[str]:
    found = scene.ask(f"/api/leases?execution={run}")["leases"]
    return [str(one["worker"]) for one in found if one["worker"] is not None]


def _spread(took: list[float]) -> dict[str, float]:
    return {"p50_ms": percentile(took, 0.5), "p95_ms": percentile(took, 0.95), "worst_ms": max(took)}


PROBES: dict[str, Callable[..., dict[str, float]]] = {
    "fleet-per-item": per_item,
    "fleet-summary": summary,
    "fleet-submit": submit,
    "fleet-hops": hops,
    "fleet-runs": runs,
    "fleet-many-runs": partial(runs, at_once=AT_ONCE),
    "fleet-workers": workers,
    "fleet-takeover": takeover,
    "fleet-takeover-long": partial(takeover, steps=2_000),
    "fleet-lost-worker": lost_worker,
    "fleet-fairness": fairness,
    "nats-per-item": partial(per_item, nats=True),
    "nats-summary": partial(summary, nats=True),
    "nats-submit": partial(submit, nats=True),
    "nats-hops": partial(hops, nats=True),
}
