"""A fleet runs what an embedded engine runs, to the same canonical timeline, whoever dies on the way."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from penstock.app.embedded import embedded
from penstock.kernel.values import JsonMap
from penstock.views.canonical import canonical
from tests.depth import times
from tests.engine import document, play
from tests.fleet.deaths import with_deaths
from tests.fleet.scene import Fleet, on_fleet

MIXED = """
- step: start
  tool:
  - {name: wait, kind: sleep, seconds: 2}
  - name: a
    kind: noop
    value: 5
  next:
    spec: {mode: inclusive}
    arcs:
    - {step: each, args: {n: 6}}
    - {step: fan}
    - {step: side}
- step: each
  loop:
    in: "{{ [1, 2, 3, 4, 5, 6] }}"
    iterator: x
    spec: {mode: parallel, max_in_flight: 2}
  tool:
  - {name: wait, kind: sleep, seconds: "{{ iter.x }}"}
  - name: out
    kind: noop
    value: "{{ iter.x * args.n }}"
    spec:
      policy:
        rules:
        - else: {then: {do: continue, append_ctx: {seen: "{{ outcome.result }}"}}}
  next: {arcs: [{step: done}]}
- step: fan
  spec: {loop_mode: fanout, fanout: {range_size: 5}}
  loop: {in: {range: 40}, iterator: i}
  tool:
  - {name: wait, kind: sleep, seconds: 0.7}
  - {name: out, kind: noop, value: "{{ iter.i * 2 }}"}
  next: {arcs: [{step: done, args: {fan: "{{ event.result.results }}"}}]}
- step: side
  tool:
  - name: flaky
    kind: noop
    value: "{{ _attempt }}"
    spec:
      policy:
        rules:
        - when: "{{ outcome.result < 3 }}"
          then: {do: retry, attempts: 5, delay: 4}
        - else: {then: {do: continue, set_ctx: {tries: "{{ outcome.result }}"}}}
- step: done
  spec: {join: [each, fan]}
  tool:
  - {name: wait, kind: sleep, seconds: 1}
  - {name: z, kind: noop, value: "{{ ctx.seen }}"}
"""


def embedded_timeline(text: str, home: Path) -> list[JsonMap]:
    played = play(text, home, virtual=True)
    assert played.status == "completed", played.error

    async def read() -> list[JsonMap]:
        engine = embedded(home / ".penstock")
        try:
            return list(canonical(engine.log.read("run-1"), "run-1"))
        finally:
            await engine.close()

    return asyncio.run(read())


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> list[JsonMap]:
    return embedded_timeline(MIXED, tmp_path_factory.mktemp("embedded"))


def shown(timeline: list[JsonMap]) -> list[JsonMap]:
    """What the two ways to run have in common: everything but where the document lies."""
    return [{**event, "payload": _placeless(event["payload"])} for event in timeline]


def _placeless(payload: object) -> object:
    return {key: value for key, value in payload.items() if key != "digest"} if isinstance(payload, dict) else payload


def test_a_fleet_comes_to_the_timeline_of_an_embedded_run(tmp_path: Path, unbroken: list[JsonMap]) -> None:
    async def scenario(scene: Fleet) -> list[JsonMap]:
        await scene.serve()
        scene.work("w1")
        scene.work("w2")
        file = tmp_path / "p.yaml"
        file.write_text(document(MIXED))
        run = await scene.submit(file)
        assert (await scene.ended(run)).status == "completed"
        await scene.check_replay(run)
        return scene.canonical(run)

    assert shown(on_fleet(tmp_path, scenario)) == shown(unbroken)


@pytest.mark.parametrize("seed", range(times(8)))
def test_whoever_dies_the_timeline_is_the_same(tmp_path: Path, unbroken: list[JsonMap], seed: int) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(document(MIXED))
    timeline = on_fleet(tmp_path, lambda scene: with_deaths(scene, file, random.Random(seed), (1, 4), apart_s=8.0))
    assert shown(timeline) == shown(unbroken)
