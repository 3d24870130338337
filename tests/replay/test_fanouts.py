"""A fan-out that was recorded otherwise than it would be decided now is found out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.replay.corpus import play
from tests.replay.test_doctored import doctored

FAN = """
- step: start
  spec: {loop_mode: fanout, fanout: {range_size: 4, allow_partial: true}, reducers: {total: sum}}
  loop: {in: {range: 8}, iterator: n}
  tool:
    - name: a
      kind: noop
      value: "{{ iter.n }}"
      set_shared: {total: "{{ iter.n }}"}
      spec: {policy: {rules: [{when: "{{ iter.n == 5 }}", then: {do: fail}}]}}
  next: {arcs: [{step: end, when: "{{ fanin.failed == 1 }}"}]}
- step: end
"""


@pytest.mark.clause("P9.3", "F4.2")
@pytest.mark.parametrize(
    ("event_type", "scope", "changes", "found_at"),
    [
        ("loop.fanin.completed", "start@0", {"status": "complete"}, "loop.fanin.completed"),
        ("loop.fanin.completed", "start@0", {"shared": {"total": 1}}, "loop.fanin.completed"),
        ("loop.shard.done", "start@0", {"shared": {"total": 1}}, "loop.fanin.completed"),
        ("loop.shard.done", "start@0", {"done": 1}, "loop.fanin.completed"),
        ("loop.shard.done", "start@0", {"results": [9, 9, 9, 9]}, "loop.done"),
        ("loop.done", "start@0", {"writes": {}}, "loop.done"),
        ("loop.fanout.started", "start@0", {"policy__allow_partial": False}, "loop.fanout.started"),
    ],
)
def test_a_changed_fan_out_is_found_where_it_shows(
    tmp_path: Path, event_type: str, scope: str, changes: dict[str, Any], found_at: str
) -> None:
    difference = doctored(play(tmp_path, FAN), event_type, scope, **changes)
    assert difference is not None
    assert difference.recorded is not None
    assert difference.recorded["event_type"] == found_at


def test_in_which_ranges_elements_went_out_is_no_difference(tmp_path: Path) -> None:
    assert doctored(play(tmp_path, FAN), "loop.shard.enqueued", "start@0", most=99) is None
