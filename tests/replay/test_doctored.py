"""A log that was tampered with, or written by a server that decided otherwise, is found out at the first difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.ports.results import decode, encode
from penstock.server.replay import Difference
from tests.chaos.engines import MemoryHome, virtually
from tests.replay.corpus import CORPUS, play


def doctored(home: MemoryHome, event_type: str, scope: str, **changes: Any) -> Difference | None:
    """Replay with the first event of that type and scope changed; `a__b=1` reaches into a mapping."""
    entries = home.store.executions["run-1"].entries
    home.store.executions["run-1"].checksums.clear()  # As if it had been written so.
    at = next(n for n, entry in enumerate(entries) if (entry.type, entry.scope) == (event_type, scope))
    payload: Any = decode(entries[at].payload)
    for path, value in changes.items():
        *outer, last = path.split("__")
        inner = payload
        for key in outer:
            inner = inner[key]
        inner[last] = value
    entries[at] = entries[at]._replace(payload=encode(payload))
    difference: Difference | None = virtually(home.open, lambda engine: engine.replay("run-1"))
    return difference


PLAYBOOK = """
- step: start
  tool:
    - name: get
      kind: noop
      value: 5
      spec:
        policy:
          rules:
            - {when: "{{ outcome.result > 3 }}", then: {do: continue, set_ctx: {big: true}}}
            - {else: {then: {do: jump, to: end}}}
    - {name: middle, kind: noop}
    - {name: end, kind: noop, value: 1}
  next: {arcs: [{step: yes, when: "{{ ctx.big }}", args: {n: 1}}, {step: no}]}
- step: yes
  spec: {policy: {admit: {rules: [{when: "{{ args.n == 1 }}", then: {allow: true}}]}}}
  tool: {kind: noop, value: "{{ args.n }}"}
- step: no
"""


@pytest.mark.clause("P9.3")
@pytest.mark.parametrize(
    ("event_type", "scope", "changes"),
    [
        ("task.done", "start@0", {"do": "jump", "next": 2}),
        ("task.done", "start@0", {"rule": 1}),
        ("task.done", "start@0", {"writes": {"ctx": {"big": False}}}),
        ("next.selected", "start@0", {"arcs": [1], "steps": ["no"]}),
        ("next.selected", "start@0", {"writes": {"ctx": {"x": 1}}}),
        ("token.created", "yes@1", {"args": {"n": 2}}),
        ("step.scheduled", "yes@1", {"rule": None}),
        ("step.done", "start@0", {"result": 2}),
        ("step.done", "yes@1", {"writes": {"ctx": {"late": 1}}}),
        ("playbook.completed", "", {"status": "failed"}),
        ("playbook.started", "", {"digest": "another document"}),
    ],
)
def test_a_changed_decision_is_the_first_difference(
    tmp_path: Path, event_type: str, scope: str, changes: dict[str, Any]
) -> None:
    home = play(tmp_path, PLAYBOOK)
    difference = doctored(home, event_type, scope, **changes)
    assert difference is not None
    assert difference.recorded is not None
    assert (difference.recorded["event_type"], difference.recorded["scope"]) == (event_type, scope)
    assert difference.replayed is not None
    assert difference.replayed["payload"] != difference.recorded["payload"]
    assert event_type in difference.describe()
    assert difference.as_json()["at"] == difference.at


@pytest.mark.clause("P9.3")
def test_a_changed_outcome_shows_in_the_decision_that_depends_on_it(tmp_path: Path) -> None:
    difference = doctored(play(tmp_path, PLAYBOOK), "task.done", "start@0", outcome__result=2)
    assert difference is not None
    assert difference.recorded is not None
    assert difference.replayed is not None
    recorded: Any = difference.recorded["payload"]
    replayed: Any = difference.replayed["payload"]
    assert (recorded["do"], recorded["rule"]) == ("continue", 0)
    assert (replayed["do"], replayed["rule"]) == ("jump", 1)


FORK = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
- step: a
  tool: {kind: noop, value: 5}
  next: {arcs: [{step: c, when: "{{ event.result > 3 }}"}, {step: d}]}
- step: b
  tool: {kind: sleep, seconds: 9}
  next: {arcs: [{step: d}]}
- step: c
  tool: {kind: sleep, seconds: 1}
- step: d
"""


@pytest.mark.clause("P9.3")
def test_a_replay_that_takes_another_way_ends_although_some_wait_for_what_never_comes(tmp_path: Path) -> None:
    difference = doctored(play(tmp_path, FORK), "task.done", "a@0.0.0", outcome__result=1)
    assert difference is not None
    assert difference.recorded is not None
    assert (difference.recorded["event_type"], difference.recorded["scope"]) == ("step.done", "a@0.0.0")


@pytest.mark.clause("P9.3")
@pytest.mark.parametrize("drop", ["next.enqueued", "task.started", "step.done"])
def test_an_event_that_is_missing_is_found(tmp_path: Path, drop: str) -> None:
    home = play(tmp_path, PLAYBOOK)
    entries = home.store.executions["run-1"].entries
    home.store.executions["run-1"].checksums.clear()  # As if it had been written so.
    at = next(n for n, entry in enumerate(entries) if entry.type == drop)
    del entries[at]
    home.store.executions["run-1"].standing.last_seq -= 1
    difference = virtually(home.open, lambda engine: engine.replay("run-1"))
    assert difference is not None


@pytest.mark.clause("P9.3")
@pytest.mark.parametrize(
    ("event_type", "scope", "changes"),
    [
        ("loop.iteration.done", "each@0.0.0[2]", {"status": "failed"}),
        ("loop.done", "each@0.0.0", {"result__done": 3}),
        ("playbook.completed", "each@0.0.0[1]/inner#1/", {"error": {"message": "x"}}),
        ("step.failed", "risky@0.2.0", {"error__kind": "other"}),
        ("token.refused", "closed@1", {"rule": 0}),
    ],
)
def test_differences_inside_loops_and_sub_playbooks_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event_type: str, scope: str, changes: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    home = CORPUS["everything at once"](tmp_path)
    difference = doctored(home, event_type, scope, **changes)
    assert difference is not None
    assert difference.recorded is not None
    assert (difference.recorded["event_type"], difference.recorded["scope"]) == (event_type, scope)


def test_an_unknown_run_and_one_that_never_started_are_refused(tmp_path: Path) -> None:
    from penstock.kernel.errors import Refused

    home = play(tmp_path, PLAYBOOK)
    with pytest.raises(Refused, match="there is no run `run-2`"):
        virtually(home.open, lambda engine: engine.replay("run-2"))
    empty = home.cut(0)
    with pytest.raises(Refused, match="never started"):
        virtually(empty.open, lambda engine: engine.replay("run-1"))


def test_a_run_that_was_begun_before_guards_left_failures_alone_is_replayed_as_it_was_begun(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The log of release 0.1.0 says nothing of rules: there, a guard over data alone took a failure as well (D57)."""
    from penstock.kernel import decide

    monkeypatch.setattr(decide, "RULES", 1)
    home = play(
        tmp_path,
        """
        - step: start
          tool: {kind: python, code: "raise ValueError('no')"}
          next: {arcs: [{step: last, when: "{{ start.more != true }}"}]}
        - step: last
        """,
    )
    monkeypatch.undo()
    entries = home.store.executions["run-1"].entries
    payload: Any = decode(entries[0].payload)
    assert payload.pop("rules") == 1
    entries[0] = entries[0]._replace(payload=encode(payload))
    home.store.executions["run-1"].checksums.clear()  # As if it had been written so.
    assert [entry.type for entry in entries][-1] == "playbook.completed"
    assert virtually(home.open, lambda engine: engine.replay("run-1")) is None
