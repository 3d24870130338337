"""A run that stands still because no worker can take its work: `show` and `explain` say so, and what is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.api.service import PATIENCE_S, Api, Crew, serving
from tests.cli.support import Called, call, write
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

STEPS = """
- step: start
  tool: [{name: n, kind: noop}]
  next: {spec: {mode: inclusive}, arcs: [{step: other}, {step: train}, {step: each}]}
- step: other
  spec: {pool: large}
  tool: [{name: n, kind: noop}]
- step: train
  spec: {needs: [gpu]}
  tool: [{name: n, kind: noop}]
- step: each
  spec: {loop_mode: fanout, needs: [gpu], fanout: {range_size: 1}}
  loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel, max_in_flight: 3}}
  tool: [{name: n, kind: noop}]
"""


@pytest.fixture(params=["memory", "postgres"])
def url(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if request.param == "memory":
        with serving(folder / "home", name="alone") as running:
            yield running.url
        return
    database = request.getfixturevalue("postgres_url")
    with serving(folder / "home", database) as running, Crew(folder / "w", database, name="alone", beat_s=1.0):
        yield running.url


def until(asked: Callable[[], Called], *words: str) -> Called:
    deadline = time.monotonic() + PATIENCE_S
    while not all(word in (said := asked()).out for word in words):
        assert time.monotonic() < deadline, said
        time.sleep(0.1)
    return said


def test_what_no_worker_can_take_is_told_with_what_is_missing(
    capsys: pytest.CaptureFixture[str], folder: Path, url: str
) -> None:
    at = ("--server", url)
    call(capsys, "run", write("p.yaml", STEPS), "--name", "stuck", "--detach", *at)
    said = until(lambda: call(capsys, "show", "stuck", *at), "other@", "train@", "each@").out
    waits = said.partition("waits for a worker\n")[2]
    assert "no worker is in pool `large`, only 1 worker in `default`" in waits
    assert "a worker of pool `default` with `gpu`, `noop`" in waits
    assert "lacks `gpu`" in waits
    why = call(capsys, "explain", "stuck", "other", *at).out
    assert why.startswith("`other@0.0.0` waits for a worker")
    assert "no worker is in pool `large`" in why
    assert "gpu" not in why
    why = until(lambda: call(capsys, "explain", "stuck", "each", *at), "waits for a worker").out
    assert "`alone#" in why
    assert "no worker of pool `default` can take it" in why
    told = call(capsys, "explain", "stuck", "train", "--json", *at).json["waiting"]
    assert [(one["pool"], one["needs"], one["is_stuck"]) for one in told] == [("default", ["gpu", "noop"], True)]
    assert "waiting" not in call(capsys, "explain", "stuck", "start", "--json", *at).json
    api = Api(url)
    leases = api.get("/api/leases").json()["leases"]
    assert {tuple(one["needs"]) for one in leases} == {("noop",), ("gpu", "noop")}
    api.close()
    assert call(capsys, "cancel", "stuck", *at).code == 0
    assert "waits for a worker" not in call(capsys, "show", "stuck", *at).out
