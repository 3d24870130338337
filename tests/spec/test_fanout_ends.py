"""D63: an element of a fanned-out loop has one end, names of its own, and counts in a reducer once, and only if it is done."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.engine import Played, play, resume
from tests.fanning import Shaky, play_with

CLASHING = """
- step: start
  spec: {{loop_mode: {mode}, fanout: {{{more}}}, reducers: {{c: count, all: append}}{spec}}}
  loop: {{in: {given}, iterator: n, spec: {{mode: parallel}}}}
  tool:
    {tool}
"""
ONE_KEY = '{kind: noop, set_shared: {c: 1, all: "{{ iter.n }}"}, set: {ctx.k: "{{ iter.n }}"}}'


def clashing(
    more: str = "allow_partial: true",
    *,
    given: str = "[1, 2, 3]",
    tool: str = ONE_KEY,
    mode: str = "fanout",
    spec: str = "",
) -> str:
    return CLASHING.format(more=more, given=given, tool=tool, mode=mode, spec=spec)


def ends(run: Played) -> dict[str, list[str]]:
    """Shard -> the types of the events that ended it. Of a range of several elements the event names the range."""
    found: dict[str, list[str]] = {}
    for event in run.events:
        payload: Any = event["payload"]
        if event["event_type"] in ("loop.shard.done", "loop.shard.failed") and not payload.get("again"):
            found.setdefault(str(event["shard_id"]), []).append(str(event["event_type"]))
    return found


@pytest.mark.clause("F5.1")
@pytest.mark.parametrize(
    "more", ["", "range_size: 1", "range_size: 2", "emit: per_item", "emit: per_item, range_size: 2"]
)
def test_an_element_whose_writes_are_in_conflict_adds_nothing_to_a_reducer(tmp_path: Path, more: str) -> None:
    run = play(clashing(", ".join(filter(None, ("allow_partial: true", more)))), tmp_path)
    (fanin,) = run.payloads("loop.fanin.completed")
    assert (fanin["succeeded"], fanin["failed"], fanin["shared"]) == (1, 2, {"all": [1], "c": 1})
    assert run.ctx == {"k": 1, "c": 1, "all": [1]}
    assert run.payloads("loop.done")[0]["result"] == {
        "total": 3, "done": 1, "failed": 2, "results": [None, None, None],
    }  # fmt: skip
    assert run.summary.counts["iterations"] == 3


@pytest.mark.clause("F5.1")
def test_both_modes_count_the_same_where_writes_are_in_conflict(tmp_path: Path) -> None:
    found = []
    tool = (
        '{kind: noop, value: "{{ iter.n }}", set_shared: {c: 1, all: "{{ iter.n }}"}, set: {ctx.k: "{{ iter.n % 3 }}"}}'
    )
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        spec = ", policy: {failure: {mode: best_effort}}"
        run = play(clashing("range_size: 4", given="{range: 20}", mode=mode, spec=spec, tool=tool), home)
        result = run.payloads("loop.done")[0]["result"]
        found.append((run.ctx, result))
    assert found[0] == found[1]
    assert found[0][0]["all"] == [0, 3, 6, 9, 12, 15, 18]
    assert found[0][1]["results"] == [n if n % 3 == 0 else None for n in range(20)]


@pytest.mark.clause("F6.1")
@pytest.mark.parametrize("more", ["range_size: 1", "emit: per_item", "emit: per_item, max_job_retries: 1"])
def test_a_shard_has_one_event_that_ends_it(tmp_path: Path, more: str) -> None:
    tool = """
      - {name: check, kind: python, args: {n: "{{ iter.n }}"}, code: "assert n != 4"}
      - {name: write, kind: noop, set: {ctx.k: "{{ iter.n % 2 }}"}}
    """
    run = play(clashing(f"allow_partial: true, {more}", given="{range: 9}", tool=tool), tmp_path)
    ended = ends(run)
    assert {name: len(types) for name, types in ended.items()} == {f"start@0[{n}]": 1 for n in range(9)}
    done = [name for name, types in ended.items() if types == ["loop.shard.done"]]
    assert sorted(done) == [f"start@0[{n}]" for n in (0, 2, 6, 8)]
    assert len(run.of("loop.shard.failed")) == (6 if "retries" in more else 5)


@pytest.mark.clause("F5.1")
@pytest.mark.parametrize("emit", ["", ", emit: per_item"])
def test_a_resume_counts_every_element_once(tmp_path: Path, emit: str) -> None:
    """Whichever way it failed before: by itself, by a conflict, or not at all."""
    flag = tmp_path / "flag"
    tool = f"""
      - name: risky
        kind: python
        args: {{n: "{{{{ iter.n }}}}"}}
        code: |
          import pathlib
          fixed = pathlib.Path("{flag}").exists()
          if n == 5 and not fixed:
              raise ValueError("not yet")
          result = 0 if fixed else n % 2
        set_shared: {{c: 1, all: "{{{{ iter.n }}}}"}}
        set: {{ctx.k: "{{{{ output.data }}}}"}}
    """
    text = clashing(f"fail_fast: false, range_size: 3{emit}", given="{range: 10}", tool=tool)
    first = play(text, tmp_path)
    assert (first.status, first.ctx["c"], first.ctx["all"]) == ("failed", 5, [0, 2, 4, 6, 8])
    again = resume(tmp_path)
    assert again.ctx == first.ctx
    flag.touch()
    last = resume(tmp_path)
    assert last.status == "completed", last.error
    assert last.ctx == {"k": 0, "c": 10, "all": list(range(10))}
    fanin = last.payloads("loop.fanin.completed")[-1]
    assert (fanin["total"], fanin["succeeded"], fanin["failed"], fanin["skipped"]) == (10, 10, 0, 0)
    assert last.payloads("loop.done")[0]["result"]["results"] == [0] * 10


@pytest.mark.clause("F5.1")
@pytest.mark.parametrize("seed", [1, 2, 4, 7])
def test_lost_ranges_change_nothing_of_what_conflicts_come_to(tmp_path: Path, seed: int) -> None:
    force: list[Shaky] = []

    def hire(usual: Any) -> Shaky:
        force.append(Shaky(usual, seed))
        return force[-1]

    tool = """{kind: python, code: "result = 1", set_shared: {c: 1, all: "{{ iter.n }}"}, set: {ctx.k: "{{ iter.n % 4 }}"}}"""
    more = "allow_partial: true, max_job_retries: 50, range_size: 3" + (", emit: per_item" if seed % 2 else "")
    run = play_with(hire, clashing(more, given="{range: 24}", tool=tool), tmp_path)
    assert force[0].lost > 0
    assert run.ctx == {"k": 0, "c": 6, "all": [0, 4, 8, 12, 16, 20]}
    (fanin,) = run.payloads("loop.fanin.completed")
    assert (fanin["succeeded"], fanin["failed"], fanin["skipped"]) == (6, 18, 0)


def test_an_element_that_failed_and_one_of_its_range_that_was_not_tried_are_both_tried_once_after_a_resume(
    tmp_path: Path,
) -> None:
    """With fail_fast a range that nobody takes in time fails with its first element, and the others are not tried."""
    from tests.fanning import Idle

    text = clashing("queue_ttl_s: 5", given="{range: 4}", tool='{kind: noop, set_shared: {c: 1, all: "{{ iter.n }}"}}')
    failed = play_with(lambda usual: Idle(usual, "stale"), text, tmp_path)
    assert failed.status == "failed"
    run = resume(tmp_path)
    assert (run.status, run.ctx) == ("completed", {"c": 4, "all": [0, 1, 2, 3]})
    assert run.payloads("loop.done")[0]["result"]["done"] == 4


def test_a_local_iteration_in_conflict_adds_once_when_it_is_run_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    tool = f"""
      - {{name: first, kind: noop, set_shared: {{c: 1}}}}
      - name: last
        kind: python
        args: {{n: "{{{{ iter.n }}}}"}}
        code: |
          import pathlib
          result = 0 if pathlib.Path("{flag}").exists() else n
        set_shared: {{all: "{{{{ iter.n }}}}"}}
        set: {{ctx.k: "{{{{ output.data }}}}"}}
        spec: {{policy: {{rules: [{{else: {{then: {{do: continue, append_ctx: {{seen: "{{{{ iter.n }}}}"}}}}}}}}]}}}}
    """
    text = clashing("", given="[0, 1, 2]", tool=tool, mode="local")
    failed = play(text, tmp_path)
    assert failed.status == "failed"
    flag.touch()
    run = resume(tmp_path)
    assert run.status == "completed", run.error
    assert run.ctx == {"k": 0, "seen": [0, 1, 2], "c": 3, "all": [0, 1, 2]}


# ---- names and events


@pytest.mark.clause("F2.2")
@pytest.mark.parametrize("emit", ["", ", emit: per_item"])
def test_every_event_of_shards_names_them(tmp_path: Path, emit: str) -> None:
    run = play(clashing(f"allow_partial: true, range_size: 4{emit}", given="{range: 10}"), tmp_path)
    shards = [event for event in run.events if str(event["event_type"]).startswith("loop.shard.")]
    assert {event["event_type"] for event in shards} >= {"loop.shard.enqueued", "loop.shard.started"}
    assert all(str(event["shard_id"]).startswith("start@0[") for event in shards)
    named = {event["shard_id"] for event in run.of("loop.shard.started")}
    each = {f"start@0[{n}]" for n in range(10)}
    assert named == (each if emit else {"start@0[0:4]", "start@0[4:8]", "start@0[8:10]"})
    if emit:
        kinds = Counter(event["event_type"] for event in shards)
        assert kinds["loop.shard.enqueued"] == kinds["loop.shard.started"] == kinds["loop.shard.reported"] == 10


@pytest.mark.clause("F6.1", "F2.2")
def test_the_tasks_of_shards_are_told_of_as_in_a_local_loop(tmp_path: Path) -> None:
    """D63: the same events with the same payloads, times apart, and with the names of their shard."""
    found = []
    tool = """
      - {name: a, kind: noop, value: "{{ iter.n }}"}
      - name: b
        kind: python
        args: {n: "{{ iter.n }}", attempt: "{{ _attempt }}"}
        code: |
          assert n != 3 or attempt > 1
          result = n
        spec: {policy: {rules: [{when: "{{ outcome.error }}", then: {do: retry, attempts: 2, delay: 0}}]}}
    """
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        run = play(clashing("emit: per_item, range_size: 2", given="{range: 5}", tool=tool, mode=mode), home)
        assert run.summary.counts["tasks"] == 11
        told: dict[str, list[Any]] = {}
        for event in run.events:
            payload: Any = event["payload"]
            if str(event["event_type"]).startswith("task."):
                outcome = payload.get("outcome", {})
                kept = (event["event_type"], event["task_run_id"], event["iter_index"], event["iter_key"])
                more = (payload["task"], payload["attempt"], outcome.get("status"), outcome.get("result"))
                told.setdefault(str(event["shard_id"]), []).append((*kept, *more))
        found.append(told)
    assert found[0] == found[1]
    assert set(found[1]) == {f"start@0[{n}]" for n in range(5)}


@pytest.mark.clause("F2.2")
def test_tasks_of_a_shard_that_is_tried_again_after_a_resume_keep_its_names(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    tool = f'{{kind: python, name: a, code: "import pathlib; assert pathlib.Path(\\"{flag}\\").exists()"}}'
    assert play(clashing("emit: per_item, fail_fast: false", tool=tool), tmp_path).status == "failed"
    flag.touch()
    run = resume(tmp_path)
    assert run.status == "completed"
    for event in run.events:
        if event["task_run_id"] is not None:
            assert event["loop_id"] == "start@0"
            assert str(event["task_run_id"]).startswith(f"{event['shard_id']}/")
