"""F: loops that are handed out in ranges. The same playbook, its collection never written out, its elements known by name."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.kernel.ranges import ElementsEnded
from tests.depth import times
from tests.engine import Played, play, resume
from tests.fanning import Idle, Instant, Shaky, play_with

FAN = """
- step: start
  spec: {{loop_mode: {mode}, fanout: {{range_size: 3{more}}}{spec}}}
  loop: {{in: {given}, iterator: n{loop}}}
  tool:
{tool}
  next: {{arcs: [{{step: end, when: "{{{{ event.name in ['loop.done', 'step.failed'] }}}}", args: {{fanin: "{{{{ fanin }}}}"}}}}]}}
- step: end
  tool: {{kind: noop, value: "{{{{ args.fanin }}}}"}}
"""
DOUBLE = '    - {name: double, kind: noop, value: "{{ iter.n * 2 }}"}'
RISKY = """\
    - name: risky
      kind: python
      args: {n: "{{ iter.n }}"}
      code: |
        if n in (4, 7):
            raise ValueError(f"no {n}")
        result = n * 2"""


def fan(
    mode: str = "fanout",
    *,
    given: str = "{range: 10}",
    more: str = "",
    spec: str = "",
    loop: str = "",
    tool: str = DOUBLE,
) -> str:
    more, spec = (f", {text}" if text else "" for text in (more, spec))
    return FAN.format(mode=mode, given=given, more=more, spec=spec, loop=loop, tool=tool)


def outcome(run: Played) -> tuple[Any, ...]:
    loop = run.payloads("loop.done") or run.payloads("step.failed")
    return run.status, run.ctx, loop[0]["result"], loop[0]["error"], run.result


# ---- F1.1 the same playbook


@pytest.mark.clause("F1.1")
@pytest.mark.parametrize(
    "text",
    [
        {},
        {"given": "[5, 6, 7, 8]"},
        {"given": "[]"},
        {"given": "{range: {start: 10, stop: 0, step: -3}}"},
        {"given": '"{{ workload.many }}"'},
        {
            "given": "{lines: numbers.txt}",
            "tool": '    - {name: a, kind: noop, value: "{{ iter.iter_key }}: {{ iter.n }}"}',
        },
        {"tool": RISKY, "spec": "policy: {failure: {mode: best_effort}}"},
        {"loop": ", spec: {mode: parallel, max_in_flight: 3}"},
        {
            "spec": "reducers: true",
            "tool": '    - {name: a, kind: noop, value: "{{ iter.n }}", '
            'set_shared: {total: {sum: "{{ iter.n / 10 }}"}, seen: {append: "{{ iter.n }}"}}}',
        },
        {
            "tool": '    - {name: a, kind: noop, spec: {policy: {rules: [{else: {do: continue, append_ctx: {all: "{{ iter.n }}"}}}]}}}'
        },
    ],
)
def test_the_same_playbook_comes_to_the_same_in_both_modes(tmp_path: Path, text: dict[str, str]) -> None:
    ends = []
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        (home / "numbers.txt").write_text("".join(f"line {number}\n" for number in range(8)))
        run = play(fan(mode, **text), home, {"many": list(range(25))})
        assert ("loop.fanout.started" in run.types()) is (mode == "fanout")
        ends.append(outcome(run))
    assert ends[0] == ends[1]


@pytest.mark.clause("F1.1")
def test_what_the_executor_says_holds_for_every_loop_unless_its_step_says_otherwise(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {loop_mode: fanout}}
        workflow:
          - step: start
            loop: {in: [1, 2], iterator: n}
            tool: {kind: noop}
            next: {arcs: [{step: here}]}
          - step: here
            spec: {loop_mode: local}
            loop: {in: [1, 2], iterator: n}
            tool: {kind: noop}
        """,
        tmp_path,
    )
    assert [event["step"] for event in run.of("loop.fanout.started")] == ["start"]
    assert [event["step"] for event in run.of("loop.started")] == ["here"]


@pytest.mark.clause("F1.1")
def test_a_loop_whose_tasks_run_playbooks_gives_the_same_on_one_worker(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: child}\nworkload: {n: 0}\n"
        'workflow: [{step: start, tool: {kind: noop, value: "{{ workload.n * 3 }}"}}]\n'
    )
    run = play(fan(tool='    - {name: a, kind: playbook, path: child.yaml, args: {n: "{{ iter.n }}"}}'), tmp_path)
    assert run.payloads("loop.done")[0]["result"]["results"] == [n * 3 for n in range(10)]
    assert run.types("loop.fanout.started") == []


# ---- F2.1 never written out


@pytest.mark.clause("F2.1")
def test_twenty_million_elements_are_handed_out_with_flat_memory(tmp_path: Path) -> None:
    force: list[Instant] = []

    def hire(usual: Any) -> Instant:
        force.append(Instant(usual))
        return force[0]

    text = """
        - step: start
          spec: {loop_mode: fanout, reducers: {n: count}}
          loop: {in: {range: 20000000}, iterator: n}
          tool: {kind: noop, set_shared: {n: true}}
    """
    tracemalloc.start()
    try:
        run = play_with(hire, text, tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    result = run.payloads("loop.done")[0]["result"]
    assert (result["total"], result["done"], run.ctx) == (20_000_000, 20_000_000, {"n": 20_000_000})
    assert result["results"] is None
    assert run.summary.counts["iterations"] == 20_000_000
    assert force[0].handed_out < 600
    assert force[0].most_out <= 32
    assert peak < 32 * 1024 * 1024


@pytest.mark.clause("F2.1")
@pytest.mark.parametrize(
    ("given", "elements"),
    [
        ("{range: {start: 5, stop: 11, step: 2}}", [5, 7, 9]),
        ("{lines: {path: numbers.txt, skip: 1}}", ["line 1", "line 2", "line 3", "line 4", "line 5", "line 6"]),
        ("{files: 'box/*.csv'}", ["a.csv", "b.csv"]),
        (
            "{sql: {kind: sqlite, path: x.db, query: select * from t, key: id}}",
            [{"id": 1, "v": "x"}, {"id": 2, "v": "y"}],
        ),
    ],
)
def test_a_collection_is_pinned_by_its_description_and_read_where_it_is_worked_on(
    tmp_path: Path, given: str, elements: list[Any]
) -> None:
    import sqlite3

    (tmp_path / "numbers.txt").write_text("".join(f"line {number}\n" for number in range(7)))
    (tmp_path / "box").mkdir()
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / "box" / name).write_text("x")
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.executescript(
            "create table t (id integer primary key, v text); insert into t values (2, 'y'), (1, 'x')"
        )
    database.close()
    run = play(
        fan(given=given, tool='    - {name: a, kind: noop, value: "{{ iter.n.name | default(iter.n) }}"}'), tmp_path
    )
    assert run.payloads("loop.done")[0]["result"]["results"] == elements
    started = run.payloads("loop.fanout.started")[0]
    assert "items" not in started["collection"]
    assert run.payloads("loop.fanin.completed")[0]["total"] == len(elements)


@pytest.mark.clause("F2.1")
def test_a_collection_that_cannot_be_read_fails_the_step_and_says_why(tmp_path: Path) -> None:
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        run = play(fan(mode, given="{lines: missing.txt}"), home)
        assert run.status == "completed"
        error = run.payloads("step.failed")[0]["error"]
        assert (error["kind"], "`loop.in` of step `start`" in error["message"]) == ("not_found", True)


def test_a_mapping_among_the_data_is_data_whatever_its_key_is_called(tmp_path: Path) -> None:
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        text = fan(
            mode, given='"{{ workload.found }}"', tool='    - {name: a, kind: noop, value: "{{ iter.n.value }}"}'
        )
        run = play(text, home, {"found": {"files": "/etc/*"}})
        assert run.payloads("loop.done")[0]["result"]["results"] == ["/etc/*"]


# ---- F2.2 names


NAMED = """\
    - name: a
      kind: python
      args: {ids: ["{{ iter.loop_id }}", "{{ iter.shard_id }}", "{{ iter.index }}", "{{ iter.iter_key }}"], n: "{{ iter.n }}"}
      code: |
        result = ids
        if n == 4:
            raise ValueError("no")"""
IDS = ("loop_id", "shard_id", "iter_index", "iter_key")


@pytest.mark.clause("F2.2")
def test_an_element_has_the_same_names_in_templates_and_on_events_in_both_modes(tmp_path: Path) -> None:
    expected = [["start@0", f"start@0[{n}]", n, str(n)] for n in range(6)]
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        text = fan(mode, given="{range: 6}", more="emit: per_item, allow_partial: true", tool=NAMED)
        run = play(text.replace("fanout: {", "policy: {failure: {mode: best_effort}}, fanout: {"), home)
        results = run.payloads("loop.done")[0]["result"]["results"]
        assert results == [None if n == 4 else expected[n] for n in range(6)]
        per_element = [event for event in run.events if event["shard_id"] is not None]
        named = {tuple(event[name] for name in IDS) for event in per_element}
        assert named == {tuple(ids) for ids in expected}
        for event in run.events:
            if str(event["event_type"]).startswith("loop."):
                assert event["loop_id"] == "start@0"
            elif event["step"] == "end":
                assert [event[name] for name in IDS] == [None] * 4
        for event in run.of("task.done"):
            if event["step"] == "start":
                meta = event["payload"]["outcome"]["meta"]  # type: ignore[index, call-overload]
                assert [meta[name] for name in IDS] == [event[name] for name in IDS]


@pytest.mark.clause("F2.2")
def test_the_names_are_the_same_after_a_restart_and_after_a_failure(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    tool = f"""\
    - name: a
      kind: python
      args: {{ids: ["{{{{ iter.loop_id }}}}", "{{{{ iter.shard_id }}}}", "{{{{ iter.iter_key }}}}"], n: "{{{{ iter.n }}}}"}}
      code: |
        import pathlib
        if n == 4 and not pathlib.Path("{flag}").exists():
            raise ValueError("not yet")
        result = ids"""
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        text = fan(mode, given="{range: 6}", tool=tool).replace(", 'step.failed'", "")
        assert play(text, home).status == "failed"
        flag.touch()
        run = resume(home)
        flag.unlink()
        assert run.status == "completed"
        assert run.payloads("loop.done")[0]["result"]["results"] == [
            ["start@0", f"start@0[{n}]", str(n)] for n in range(6)
        ]


@pytest.mark.clause("F2.2")
def test_keys_of_the_collection_name_its_elements(tmp_path: Path) -> None:
    (tmp_path / "numbers.txt").write_text("".join(f"line {number}\n" for number in range(4)))
    tool = """\
    - name: a
      kind: python
      args: {key: "{{ iter.iter_key }}"}
      code: |
        if key == "3":
            raise ValueError("no")
        result = key"""
    run = play(fan(given="{lines: numbers.txt}", more="allow_partial: true", tool=tool), tmp_path)
    (failed,) = run.of("loop.shard.failed")
    assert [failed[name] for name in IDS] == ["start@0", "start@0[2]", 2, "3"]
    assert run.payloads("loop.done")[0]["result"]["results"] == ["1", "2", None, "4"]


# ---- F4 fan-in


@pytest.mark.clause("F4.2")
@pytest.mark.parametrize(
    ("tool", "more", "status", "boundary"),
    [
        (DOUBLE, "", "complete", "loop.done"),
        (RISKY, "allow_partial: true", "partial", "loop.done"),
        (RISKY, "fail_fast: false", "failed", "step.failed"),
        (RISKY, "fail_fast: true", "failed", "step.failed"),
    ],
)
def test_a_fan_out_ends_complete_partial_or_failed_and_only_then_arcs_are_asked(
    tmp_path: Path, tool: str, more: str, status: str, boundary: str
) -> None:
    run = play(fan(more=more, tool=tool), tmp_path)
    assert run.result["status"] == status
    assert run.types("loop.shard.done", "loop.fanin.completed", boundary, "next.selected", "next.enqueued")[-6:] == [
        "loop.shard.done", "loop.fanin.completed", boundary, "next.selected", "next.enqueued", "next.selected",
    ] or status == "failed"  # fmt: skip
    order = run.types("loop.fanin.completed", boundary, "next.selected")
    assert order == ["loop.fanin.completed", boundary, "next.selected", "next.selected"]
    fanin = run.result
    assert fanin["succeeded"] + fanin["failed"] + fanin["skipped"] == fanin["total"] == 10
    assert fanin["refs"] == {"loop_id": "start@0", "execution_id": "run-1"}
    if more != "fail_fast: true":
        assert fanin["failed"] == (0 if tool == DOUBLE else 2)
        assert fanin["skipped"] == 0


@pytest.mark.clause("F4.2")
def test_the_end_of_a_fanned_out_loop_is_the_servers_word_and_that_of_a_local_one_the_workers(tmp_path: Path) -> None:
    sources = {}
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        sources[mode] = play(fan(mode), home).of("loop.done")[0]["source"]
    assert sources == {"local": "worker", "fanout": "server"}


# ---- F5.1 reducers


SHARING = """\
    - name: a
      kind: python
      args: {n: "{{ iter.n }}"}
      code: "result = n"
      set_shared:
        total: {sum: "{{ iter.n }}"}
        n: {count: true}
        least: {min: "{{ iter.n }}"}
        most: {max: "{{ iter.n }}"}
        all: {append: "{{ iter.n }}"}
        by: {merge: {last: "{{ iter.n }}"}}"""
SHARED = {
    "total": 780,
    "n": 40,
    "least": 0,
    "most": 39,
    "all": list(range(40)),
    "by": {"last": 39},
}


@pytest.mark.clause("F5.1")
@pytest.mark.parametrize("seed", range(times(3)))
def test_reducers_count_every_element_once_however_many_ranges_are_lost(tmp_path: Path, seed: int) -> None:
    force: list[Shaky] = []

    def hire(usual: Any) -> Shaky:
        force.append(Shaky(usual, seed))
        return force[-1]

    text = fan(given="{range: 40}", more="max_job_retries: 50", spec="reducers: true", tool=SHARING)
    run = play_with(hire, text, tmp_path)
    assert force[0].lost > 0
    assert run.status == "completed", run.error
    assert run.ctx == SHARED
    assert run.result["shared"] == SHARED
    assert (run.result["succeeded"], run.result["failed"]) == (40, 0)


@pytest.mark.clause("F5.1")
def test_an_element_that_fails_and_is_tried_again_adds_once(tmp_path: Path) -> None:
    tool = f"""\
    - {{name: before, kind: noop, set_shared: {{tries: {{count: true}}}}}}
    - name: risky
      kind: python
      args: {{n: "{{{{ iter.n }}}}"}}
      code: |
        import pathlib
        seen = pathlib.Path("{tmp_path}") / f"seen-{{n}}"
        if n % 3 == 1 and not seen.exists():
            seen.touch()
            raise ValueError("the first time")
        result = n"""
    run = play(fan(more="max_job_retries: 1", spec="reducers: true", tool=tool), tmp_path)
    assert run.status == "completed"
    assert run.ctx == {"tries": 10}
    assert (run.result["retried"], run.result["status"]) == (3, "complete")
    again = run.of("loop.shard.failed")
    assert {event["iter_index"] for event in again} == {1, 4, 7}


@pytest.mark.clause("F5.1")
def test_what_no_element_added_to_has_the_value_of_nothing(tmp_path: Path) -> None:
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        run = play(fan(mode, given="[]", spec="reducers: true", tool=SHARING), home)
        assert run.ctx == {"total": 0, "n": 0, "least": None, "most": None, "all": [], "by": {}}


@pytest.mark.clause("F5.1")
def test_a_value_that_a_reducer_cannot_take_fails_its_element(tmp_path: Path) -> None:
    tool = '    - {name: a, kind: noop, set_shared: {total: {sum: "{{ iter.n }}"}}}'
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        text = fan(mode, given="[1, two, 3]", spec="reducers: true, policy: {failure: {mode: best_effort}}", tool=tool)
        run = play(text, home)
        assert run.ctx == {"total": 4}
        (failed,) = [*run.of("loop.shard.failed"), *run.of("loop.iteration.failed")]
        error = failed["payload"]["error"]  # type: ignore[index, call-overload]
        assert (error["kind"], "`sum` takes numbers" in error["message"]) == ("reducer", True)


@pytest.mark.clause("F5.1")
def test_elements_that_write_one_key_differently_are_in_conflict_in_both_modes(tmp_path: Path) -> None:
    ends = []
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        tool = '    - {name: a, kind: noop, value: "{{ iter.n }}", set: {ctx.odd: "{{ iter.n % 2 }}"}}'
        spec = "policy: {failure: {mode: best_effort}}"
        run = play(fan(mode, tool=tool, spec=spec, loop=", spec: {mode: parallel}"), home)
        ends.append(outcome(run))
    assert ends[0] == ends[1]
    assert ends[0][4]["failed"] == 5


# ---- F6.1 events


@pytest.mark.clause("F6.1")
def test_the_events_of_a_fan_out_add_up(tmp_path: Path) -> None:
    run = play(fan(more="allow_partial: true, max_job_retries: 1", tool=RISKY), tmp_path)
    counts = Counter(run.types())
    assert counts["loop.fanout.started"] == counts["loop.fanin.completed"] == counts["loop.done"] == 1
    assert (
        counts["loop.shard.enqueued"] == counts["loop.shard.started"] == 6
    )  # Four ranges of 3, and 4 and 7 once more.
    assert counts["loop.shard.failed"] == 4
    assert sum(payload["done"] for payload in run.payloads("loop.shard.done")) == 8
    sources = {str(event["event_type"]): event["source"] for event in run.events}
    assert {name: sources[name] for name in sources if name.startswith("loop.")} == {
        "loop.fanout.started": "server",
        "loop.shard.enqueued": "server",
        "loop.shard.started": "worker",
        "loop.shard.done": "worker",
        "loop.shard.failed": "worker",
        "loop.fanin.completed": "server",
        "loop.done": "server",
    }
    assert run.payloads("loop.fanout.started")[0]["total"] == 10
    assert run.summary.counts["iterations"] == 10


@pytest.mark.clause("F6.1")
def test_each_element_has_an_event_of_its_own_when_asked_for(tmp_path: Path) -> None:
    run = play(fan(more="emit: per_item"), tmp_path)
    done = run.of("loop.shard.done")
    assert sorted((event["iter_index"], event["iter_key"], event["shard_id"]) for event in done) == [
        (n, str(n), f"start@0[{n}]") for n in range(10)
    ]
    assert run.payloads("loop.done")[0]["result"]["results"] == [n * 2 for n in range(10)]


@pytest.mark.parametrize("emit", ["summary", "per_item"])
@pytest.mark.parametrize("lines", [0, 1, 3, 6])
def test_pages_end_where_the_collection_does(tmp_path: Path, emit: str, lines: int) -> None:
    (tmp_path / "numbers.txt").write_text("".join(f"{number}\n" for number in range(lines)))
    tool = '    - {name: a, kind: noop, value: "{{ iter.n }}"}'
    run = play(fan(given="{lines: numbers.txt}", more=f"emit: {emit}", tool=tool), tmp_path)
    assert run.payloads("loop.done")[0]["result"]["results"] == [str(number) for number in range(lines)]


def test_each_elements_end_has_its_own_result_also_when_a_report_of_them_is_large(tmp_path: Path) -> None:
    tool = "    - {name: a, kind: noop, value: \"{{ 'x' * 30000 ~ iter.n }}\"}"
    run = play(fan(more="emit: per_item", tool=tool), tmp_path)
    results = [payload["results"]["same"] for payload in run.payloads("loop.shard.done")]
    assert sorted(results) == [f"{'x' * 30000}{n}" for n in range(10)]


# ---- F7 limits and policies


@pytest.mark.clause("F7.1")
def test_a_collection_with_more_elements_than_allowed_fails_before_any_is_tried(tmp_path: Path) -> None:
    run = play(fan(more="max_shards: 9"), tmp_path)
    error = run.payloads("step.failed")[0]["error"]
    assert (error["kind"], "10 elements" in error["message"], "`fanout.max_shards`" in error["message"]) == (
        "limit",
        True,
        True,
    )
    assert run.types("loop.shard.enqueued") == []


@pytest.mark.clause("F7.1")
def test_pages_beyond_the_limit_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "numbers.txt").write_text("".join(f"{number}\n" for number in range(50)))
    run = play(fan(given="{lines: numbers.txt}", more="max_shards: 9"), tmp_path)
    assert run.payloads("step.failed")[0]["error"]["kind"] == "limit"
    assert len(run.types("loop.shard.enqueued")) <= 4


@pytest.mark.clause("F7.1")
@pytest.mark.parametrize(("limit", "slots"), [(1, 8), (2, 8), (5, 2), (7, 3)])
def test_no_more_elements_are_worked_on_at_a_time_than_allowed(tmp_path: Path, limit: int, slots: int) -> None:
    at_work, most = 0, 0

    class Counting(Shaky):
        def start_range(self, lease: Any, reports: Any) -> None:
            nonlocal at_work, most
            at_work += lease.range.lanes
            most = max(most, at_work)

            class Watched:
                def __getattr__(self, name: str) -> Any:
                    return getattr(reports, name)

                def report(self, lease: Any, report: Any) -> None:
                    nonlocal at_work
                    if isinstance(report, ElementsEnded) and report.hi == lease.range.elements.hi:
                        at_work -= lease.range.lanes
                    reports.report(lease, report)

            super().start_range(lease, Watched())

    tool = "    - {name: a, kind: sleep, seconds: 0.001}"
    text = fan(given="{range: 30}", more=f"max_concurrent: {limit}", tool=tool)
    run = play_with(lambda usual: Counting(usual, 1, share=0.0, slots=slots), text, tmp_path)
    assert run.status == "completed"
    assert 0 < most <= limit


@pytest.mark.clause("F7.1")
def test_elements_that_nobody_takes_in_time_fail(tmp_path: Path) -> None:
    text = fan(more="queue_ttl_s: 5, allow_partial: true", given="{range: 4}")
    run = play_with(lambda usual: Idle(usual, "stale"), text, tmp_path)
    assert (run.result["status"], run.result["failed"]) == ("partial", 4)
    error = run.payloads("loop.shard.failed")[0]["error"]
    assert (error["kind"], "`fanout.queue_ttl_s` of 5 s" in error["message"]) == ("queue_ttl", True)


@pytest.mark.clause("F7.3")
def test_fail_fast_stops_at_the_first_failure(tmp_path: Path) -> None:
    run = play(fan(given="{range: 1000}", tool=RISKY), tmp_path)
    assert run.result["status"] == "failed"
    assert 0 < run.result["skipped"] < 1000
    assert run.payloads("step.failed")[0]["error"]["iteration"] in (4, 7)


@pytest.mark.clause("F7.3")
def test_allow_partial_goes_on_to_the_end(tmp_path: Path) -> None:
    run = play(fan(given="{range: 100}", more="allow_partial: true", tool=RISKY), tmp_path)
    assert (run.result["status"], run.result["succeeded"], run.result["failed"]) == ("partial", 98, 2)


@pytest.mark.clause("F7.3")
@pytest.mark.parametrize(("retries", "lost"), [(0, 1), (2, 3)])
def test_elements_whose_worker_is_lost_too_often_fail_with_that(tmp_path: Path, retries: int, lost: int) -> None:
    text = fan(more=f"max_job_retries: {retries}, allow_partial: true", given="{range: 4}")
    run = play_with(lambda usual: Idle(usual, "lost"), text, tmp_path)
    assert run.result["failed"] == 4
    errors = {payload["error"]["message"] for payload in run.payloads("loop.shard.failed")}
    assert errors == {f"the worker that had it was lost{f' {lost} times' if lost > 1 else ''}"}
    assert {payload["attempt"] for payload in run.payloads("loop.shard.failed")} == {retries}


@pytest.mark.clause("F7.3")
def test_an_element_that_failed_is_tried_again_as_often_as_allowed_under_the_same_names(tmp_path: Path) -> None:
    run = play(fan(more="max_job_retries: 2, fail_fast: true", tool=RISKY), tmp_path)
    of_four = [event for event in run.of("loop.shard.failed") if event["iter_index"] == 4]
    assert {event["shard_id"] for event in of_four} == {"start@0[4]"}
    assert {event["iter_key"] for event in of_four} == {"4"}
    tries = [event["payload"]["attempt"] for event in of_four]  # type: ignore[index, call-overload]
    assert tries == list(range(len(tries)))
    assert run.result["status"] == "failed"


# ---- F8.1 pagination inside a shard


@pytest.mark.clause("F8.1")
def test_pages_are_read_inside_a_shard_as_in_a_local_loop(tmp_path: Path) -> None:
    """Each endpoint has three pages; a jump goes on to the next until there is none."""
    text = """
        - step: start
          spec: {{loop_mode: {mode}, fanout: {{range_size: 1}}, reducers: true}}
          loop: {{in: [a, b, c, d], iterator: endpoint}}
          tool:
            - name: fetch
              kind: noop
              value: {{page: "{{{{ iter.page | default(1) }}}}", more: "{{{{ (iter.page | default(1)) < 3 }}}}"}}
              set_shared: {{pages: {{count: true}}}}
              spec:
                policy:
                  rules:
                    - when: "{{{{ outcome.result.more }}}}"
                      then: {{do: jump, to: fetch, set_iter: {{page: "{{{{ (iter.page | default(1)) + 1 }}}}"}}}}
                    - else:
                      then: {{do: break}}
    """
    for mode in ("local", "fanout"):
        home = tmp_path / mode
        home.mkdir()
        run = play(text.format(mode=mode), home)
        assert run.status == "completed"
        assert [result["page"] for result in run.result["results"]] == [3, 3, 3, 3]
        assert run.ctx == {"pages": 12}


# ---- stopping and going on


def test_a_fanned_out_loop_that_failed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    tool = f"""\
    - name: a
      kind: python
      args: {{n: "{{{{ iter.n }}}}"}}
      code: |
        import pathlib
        with open("{tmp_path}/tried", "a") as log:
            log.write(f"{{n}}\\n")
        if n == 4 and not pathlib.Path("{flag}").exists():
            raise ValueError("not yet")
        result = n
      set_shared: {{total: {{sum: "{{{{ iter.n }}}}"}}}}"""
    text = fan(spec="reducers: true", tool=tool).replace(", 'step.failed'", "")
    assert play(text, tmp_path).status == "failed"
    flag.touch()
    run = resume(tmp_path)
    assert run.status == "completed"
    assert run.ctx == {"total": 45}
    assert run.payloads("loop.done")[0]["result"]["results"] == list(range(10))
    tried = Counter((tmp_path / "tried").read_text().split())
    done_before = {str(n) for n in range(10)} - {"4"}
    assert tried["4"] == 2
    assert all(tried[n] >= 1 for n in done_before)
