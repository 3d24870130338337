"""Long runs are shown and explained from the nearest snapshot, and the answers are those of the whole log."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.app.embedded import embedded
from penstock.server import views as server_views
from penstock.server.documents import Documents
from penstock.server.views import Views
from penstock.views.run_view import FORMAT, view_at
from tests.engine import play

LOOP = """
- step: start
  loop: {in: '{{ range(0, 60) }}', iterator: x, spec: {policy: {failure: {mode: best_effort}}}}
  spec: {policy: {failure: {mode: best_effort}}}
  tool:
    - name: check
      kind: python
      args: {x: "{{ iter.x }}"}
      code: |
        if x == 41:
            raise ValueError("41")
        result = x
  next: {arcs: [{step: fin, when: "{{ event.result.failed == 1 }}"}]}
- step: fin
  tool: {kind: noop, value: "{{ ctx }}"}
"""


def asked(home: Path, ask: Callable[[Views, Any], Any]) -> Any:
    engine = embedded(home / ".penstock")
    try:
        header = engine.log.header("run-1")
        return ask(Views(engine.log, engine.blobs, Documents(engine.tools, engine.components)), header)
    finally:
        asyncio.run(engine.close())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run of the loop lies."""
    return play(LOOP, tmp_path_factory.mktemp("loop")).home


@pytest.mark.parametrize("node", ["", "start", "fin", "start[41]", "start/check"])
def test_the_answers_are_the_same_from_a_snapshot(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str
) -> None:
    def ask(views: Views, header: Any) -> Any:
        return views.explained(header, node) if node else views.shown(header)

    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    expected = asked(tmp_path, ask)
    monkeypatch.setattr(server_views, "EVERY", 10)
    monkeypatch.setattr(server_views, "view_at", partial(view_at, every=25))
    assert asked(tmp_path, ask) == expected  # It makes the snapshots,
    monkeypatch.setattr(server_views, "view_at", view_at)
    assert asked(tmp_path, ask) == expected  # and now stands on the last of them.
    seq = asked(tmp_path, lambda views, header: views.log.snapshot("run-1", FORMAT, 1 << 62)[0])
    assert seq % 25 == 0


def test_a_run_as_it_was_at_one_of_its_events(home: Path) -> None:
    def ask(views: Views, header: Any) -> Any:
        fan = views.at(header, 100).executions[""].runs["start@0"].fan
        assert fan is not None
        return fan.total, fan.settled + len(fan.open), views.at(header).seq == header.last_seq

    total, begun, is_last = asked(home, ask)
    assert (total, is_last) == (60, True)
    assert 0 < begun < 60
