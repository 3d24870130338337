"""What a playbook keeps from run to run: set in a run, kept when it completes, seen by the next one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.app.embedded import embedded
from penstock.dialects.playbook import compile_text
from penstock.ports.kept_state import Kept, document_key
from penstock.tools.registry import Registry
from tests.engine import Played, document, play, resume

COUNTS = """
state: {count: 0, seen: []}
workflow:
- step: start
  tool: {kind: noop, set: {state.count: "{{ state.count + 1 }}"}}
  next: {arcs: [{step: fin, set: {state.seen: "{{ state.seen + [state.count] }}"}}]}
- step: fin
  tool: {kind: noop, value: "{{ state.get('count') }} {{ ctx.state.seen }}"}
"""

FAILS_ONCE = """
state: {cursor: 10}
workflow:
- step: start
  tool: {kind: noop, set: {state.cursor: "{{ state.cursor + 5 }}"}}
  next: {arcs: [{step: check}]}
- step: check
  tool:
    kind: python
    args: {gate: "GATE"}
    code: |
      from pathlib import Path
      if not Path(gate).exists():
          raise ValueError("not yet")
      result = "through"
"""


def kept(home: Path) -> dict[str, Any]:
    async def main() -> list[Kept]:
        engine = embedded(home / ".penstock")
        try:
            return engine.log.kept()
        finally:
            await engine.close()

    return {one.key: one.value for one in asyncio.run(main())}


def say(home: Path, key: str, value: Any) -> None:
    async def main() -> None:
        engine = embedded(home / ".penstock")
        try:
            engine.log.keep(Kept(str(home / "playbook.yaml"), "value", key, value, None, 1.0))
        finally:
            await engine.close()

    asyncio.run(main())


def start_of(played: Played) -> Any:
    return played.payloads("playbook.started")[0]["state"]


def test_a_run_begins_with_what_the_last_one_kept(tmp_path: Path) -> None:
    first = play(COUNTS, tmp_path)
    assert first.result == "1 [1]"
    assert start_of(first)["values"] == {"count": 0, "seen": []}
    assert first.payloads("playbook.completed")[0]["state"]["values"] == {"count": [0, 1], "seen": [[], [1]]}
    second = play(COUNTS, tmp_path, execution_id="run-2")
    assert second.result == "2 [1, 2]"
    assert start_of(second) == {
        "document": str(tmp_path / "playbook.yaml"),
        "values": {"count": 1, "seen": [1]},
        "watermarks": {},
    }
    assert kept(tmp_path) == {"count": 2, "seen": [1, 2]}


def test_a_failed_run_keeps_nothing_and_a_resume_goes_on_from_the_same_values(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    text = FAILS_ONCE.replace("GATE", str(gate))
    assert play(text, tmp_path).status == "failed"
    assert kept(tmp_path) == {}
    say(tmp_path, "cursor", 100)  # Changed meanwhile: the run has begun from 10 all the same.
    gate.touch()
    again = resume(tmp_path)
    assert (again.status, again.ctx["state"]) == ("completed", {"cursor": 15})
    assert kept(tmp_path) == {"cursor": 100}  # It did not begin from what is there now.
    assert play(text, tmp_path, execution_id="run-2").ctx["state"] == {"cursor": 105}
    assert kept(tmp_path) == {"cursor": 105}


def test_a_value_may_be_set_to_null_which_is_as_if_it_had_never_been_set(tmp_path: Path) -> None:
    text = "state: {a: 1}\nworkflow:\n- step: start\n  tool: {kind: noop, set: {state.a: '{{ workload.to }}'}}\n"
    play(text, tmp_path, {"to": 5})
    assert kept(tmp_path) == {"a": 5}
    play(text, tmp_path, {"to": None}, execution_id="run-2")
    assert kept(tmp_path) == {}
    assert start_of(play(text, tmp_path, {"to": 5}, execution_id="run-3"))["values"] == {"a": 1}


def test_a_playbook_that_declares_nothing_has_no_state_and_its_own_names_stay_its_own(tmp_path: Path) -> None:
    text = """
    workload: {state: CA}
    workflow:
    - step: start
      tool: {kind: noop, value: "{{ state }}", set: {ctx.state: "{{ state }}!"}}
    """
    played = play(text, tmp_path)
    assert (played.result, played.ctx) == ("CA", {"state": "CA!"})
    assert start_of(played) is None
    assert kept(tmp_path) == {}


def test_sub_playbooks_keep_their_own_and_what_an_earlier_one_of_the_run_set_counts(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(document(COUNTS), encoding="utf-8")
    caller = """
    - step: start
      loop: {in: [1, 2], iterator: n}
      tool: [{name: c, kind: playbook, path: child}]
    """
    assert play(caller, tmp_path).status == "completed"
    assert kept(tmp_path) == {"count": 2, "seen": [1, 2]}
    assert play(caller, tmp_path, execution_id="run-2").status == "completed"
    assert kept(tmp_path)["count"] == 4


def test_what_a_child_set_is_not_kept_when_the_run_as_a_whole_fails(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(document(COUNTS), encoding="utf-8")
    caller = """
    - step: start
      tool: [{name: c, kind: playbook, path: child}, {name: boom, kind: python, code: "raise ValueError('no')"}]
    """
    assert play(caller, tmp_path).status == "failed"
    assert kept(tmp_path) == {}


def test_iterations_write_it_as_they_write_ctx(tmp_path: Path) -> None:
    text = """
    state: {total: 0}
    workflow:
    - step: start
      loop: {in: [1, 2, 3], iterator: n}
      tool: {kind: noop, set: {state.total: "{{ state.total + iter.n }}"}}
    """
    play(text, tmp_path)
    play(text, tmp_path, execution_id="run-2")
    assert kept(tmp_path) == {"total": 12}


def codes(text: str) -> list[str]:
    return [problem.code for problem in compile_text(document(text), "p.yaml", Registry()).problems]


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("tool: {kind: noop, set: {state.cursr: 1}}", "P0830"),
        ("tool: {kind: noop}\n  set: {state.cursr: 1}", "P0830"),
        ("tool: {kind: noop}\n  next: {arcs: [{step: start, when: '{{ false }}', set: {state.cursr: 1}}]}", "P0830"),
    ],
)
def test_a_name_that_is_not_declared_is_an_error(where: str, code: str) -> None:
    assert code in codes(f"state: {{cursor: 1}}\nworkflow:\n- step: start\n  {where}\n")
    assert code not in codes(f"state: {{cursor: 1}}\nworkflow:\n- step: start\n  {where.replace('cursr', 'cursor')}\n")


def test_writing_state_where_nothing_is_declared_is_warned_of() -> None:
    assert codes("- step: start\n  tool: {kind: noop, set: {state.x: 1}}\n") == ["P0831"]


def test_a_document_of_the_catalog_keeps_what_it_keeps_over_its_versions() -> None:
    assert document_key("catalog:/sales/orders@3") == "catalog:/sales/orders"
    assert document_key("catalog:/proj@12/jobs/orders.yaml") == "catalog:/proj/jobs/orders.yaml"
    assert document_key("/home/me@2/p.yaml") == "/home/me@2/p.yaml"
