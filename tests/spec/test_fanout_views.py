"""F4.1: the fan-in tracker as people and programs read it, while the loop goes on and when it is over."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.show.live import Lines, loops
from penstock.cli.show.progress import Progress
from penstock.kernel.errors import Refused
from penstock.kernel.evolve import evolve
from penstock.kernel.shards import Shards
from penstock.kernel.state import State
from penstock.ports.log import Entry
from penstock.ports.results import decode
from penstock.ports.wire import to_fact
from penstock.views.answers import fanins, step_runs
from penstock.views.run_view import RunView
from tests.cli.support import call
from tests.engine import document, play, resume
from tests.fanning import Idle, Shaky, play_with
from tests.views.support import entries, explained, seen, text_of

Capture = pytest.CaptureFixture[str]

PARTIAL = """
- step: start
  spec: {loop_mode: fanout, fanout: {range_size: 4, allow_partial: true, max_job_retries: 1}, reducers: true}
  loop: {in: {range: 10}, iterator: n}
  tool:
    - name: risky
      kind: python
      args: {n: "{{ iter.n }}"}
      code: |
        if n in (3, 7):
            raise ValueError(f"no {n}")
        result = n
      set_shared: {total: {sum: "{{ iter.n }}"}}
  next: {arcs: [{step: end, when: "{{ fanin.status == 'partial' and fanin.failed < 5 }}"}]}
- step: end
  tool: {kind: noop, value: "{{ ctx.total }}"}
"""


def tracker(home: Path, upto: int | None = None, *, is_live: bool = False) -> Any:
    return fanins(RunView.of(entries(home)[:upto]), is_live=is_live)["start@0"]


@pytest.mark.clause("F4.1")
def test_the_tracker_has_what_was_expected_what_became_of_it_retries_and_references(tmp_path: Path) -> None:
    play(PARTIAL, tmp_path)
    found = tracker(tmp_path)
    (worker,) = found["workers"]
    assert {key: value for key, value in found.items() if key != "failures"} == {
        "loop_id": "start@0",
        "status": "partial",
        "total": 10,
        "next": 10,
        "succeeded": 8,
        "failed": 2,
        "skipped": 0,
        "retried": 2,
        "lost": 0,
        "ranges": 5,
        "out": [],
        "workers": {worker: 12},
        "refs": {"loop_id": "start@0", "execution_id": "run-1"},
        "shared": {"total": 35},
    }
    assert [(one["index"], one["key"], one["attempt"], one["error"]["kind"]) for one in found["failures"]] == [
        (3, "3", 1, "exception"),
        (7, "7", 1, "exception"),
    ]


@pytest.mark.clause("F4.1")
def test_at_every_moment_the_tracker_is_what_the_kernel_knows(tmp_path: Path) -> None:
    text = PARTIAL.replace("max_job_retries: 1", "max_job_retries: 9")
    play_with(lambda usual: Shaky(usual, 5), text, tmp_path)
    known = entries(tmp_path)
    tree, view = State(), RunView()
    for entry in known:
        evolve(tree, to_fact(entry, None), entry.ts)
        view.apply(entry)
        run = tree.root.runs.get("start@0")
        if run is None or not isinstance(run.fan, Shards):
            continue
        state, shown = run.fan, fanins(view, is_live=True)["start@0"]
        assert isinstance(shown, dict)
        assert (shown["next"], shown["ranges"]) == (state.next_index, state.ranges)
        assert (shown["succeeded"], shown["failed"], shown["retried"]) == (state.ok, state.failed, state.retried)
        assert [(one["range"], one["lo"], one["hi"], one["attempt"]) for one in shown["out"]] == [  # type: ignore[union-attr, index, call-overload]
            (held.number, held.lo, held.hi, held.attempt) for _, held in sorted(state.out.items())
        ]


@pytest.mark.clause("F4.1")
def test_while_it_goes_on_the_ranges_that_are_out_are_shown_with_who_has_them(tmp_path: Path) -> None:
    play(PARTIAL, tmp_path)
    known = entries(tmp_path)
    at = next(number for number, entry in enumerate(known, 1) if entry.type == "loop.shard.started")
    worker = known[at - 1].worker
    running = tracker(tmp_path, at, is_live=True)
    assert running["status"] == "running"
    assert running["out"] == [
        {"range": 0, "lo": 0, "hi": 4, "attempt": 0, "worker": worker},
        {"range": 1, "lo": 4, "hi": 8, "attempt": 0, "worker": None},
        {"range": 2, "lo": 8, "hi": 10, "attempt": 0, "worker": None},
    ]
    assert tracker(tmp_path, at)["status"] == "interrupted"
    (step,) = step_runs(RunView.of(known[:at]), is_live=True)
    assert step["iterations"] == {"total": 10, "done": 0, "failed": 0}


@pytest.mark.clause("F4.1")
def test_show_tells_it_on_a_page_and_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fan.yaml").write_text(document(PARTIAL))
    call(capsys, "run", "fan.yaml", "--name", "it")
    view = call(capsys, "show", "it", "--json").json
    assert view["fanin"]["start@0"]["status"] == "partial"
    assert view["counts"]["iterations"] == 10
    assert view["steps"][0]["iterations"] == {"total": 10, "done": 8, "failed": 2}
    page = call(capsys, "show", "it").out
    assert "8 of 10 iterations, 2 failed" in page
    assert "fan-out partial: 5 ranges, 2 retried" in page
    assert f":{os.getpid()} (12)" in page
    assert "[3] failed: exception: ValueError: no 3" in page
    events = call(capsys, "events", "it").out
    assert "10 of range" in events
    assert "range 0: [0] to [3], 3 done, 1 failed" in events
    assert "ValueError: no 3" in events
    assert "partial: 8 of 10 done, 2 failed" in events


def test_a_loop_that_was_given_up_has_failed(tmp_path: Path) -> None:
    play(PARTIAL.replace("{range: 10}", "{lines: missing.txt}"), tmp_path)
    assert tracker(tmp_path)["status"] == "failed"


def test_after_a_resume_what_was_done_stands_in_the_tracker_of_the_new_run(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    code = f"import pathlib\nif n == 3 and not pathlib.Path('{flag}').exists():\n    raise ValueError('not yet')\nresult = n\n"
    text = (
        f"""
        - step: start
          spec: {{loop_mode: fanout, fanout: {{range_size: 4, fail_fast: false}}}}
          loop: {{in: {{range: 10}}, iterator: n}}
          tool: {{kind: python, args: {{n: "{{{{ iter.n }}}}"}}, code: {code!r}}}
    """.replace("\\n", "\\n")
        .replace("'import", '"import')
        .replace("\\n'", '\\n"')
    )
    assert play(text, tmp_path).status == "failed"
    flag.touch()
    assert resume(tmp_path).status == "completed"
    shown = fanins(seen(tmp_path), is_live=False)
    assert [(shown[run]["loop_id"], shown[run]["status"], shown[run]["succeeded"]) for run in shown] == [  # type: ignore[index, call-overload]
        ("start@0", "failed", 9),
        ("start@0", "complete", 10),
    ]
    assert "it was handed out in range 3 ([3])" in text_of(explained(tmp_path, "start[3]"))
    assert "it was done in range 2" in text_of(explained(tmp_path, "start@1[9]"))


# ---- explain


def test_a_step_is_explained_with_its_ranges_its_workers_and_what_failed(tmp_path: Path) -> None:
    play(PARTIAL, tmp_path)
    text = text_of(explained(tmp_path, "start"))
    assert "loop over 10 elements, fanned out: 8 done, 2 failed, 2 tried again" in text
    assert "5 ranges on `" in text
    assert "element [3] failed: exception: ValueError: no 3" in text
    assert '(fanin.status = "partial", fanin.failed = 2)' in text


def test_an_element_is_explained_by_the_ranges_it_was_in(tmp_path: Path) -> None:
    play(PARTIAL, tmp_path)
    done = explained(tmp_path, "start[5]")
    assert (done.node, done.status) == ("start@0[5]", "done")
    assert "its element: n = 5" in text_of(done)
    assert "it was done in range 1 ([4] to [7]), on worker" in text_of(done)
    failed = explained(tmp_path, "start@0[3]")
    assert failed.status == "failed"
    text = text_of(failed)
    assert "it failed, and is tried again: exception: ValueError: no 3" in text
    assert "for the second time" in text
    assert "it failed for good, after 2 tries" in text
    with pytest.raises(Refused, match="has 10 elements, numbered from 0"):
        explained(tmp_path, "start[10]")


def test_an_element_that_was_lost_with_its_worker_is_explained_so(tmp_path: Path) -> None:
    play_with(
        lambda usual: Shaky(usual, 3, share=0.6), PARTIAL.replace("max_job_retries: 1", "max_job_retries: 9"), tmp_path
    )
    for entry in entries(tmp_path):
        if entry.type == "loop.shard.returned":
            data: Any = decode(entry.payload)
            lost = explained(tmp_path, f"start[{data['lo']}]")
            assert "was lost, and with it what it had done of range" in text_of(lost)
            assert lost.status in ("done", "failed")
            return
    raise AssertionError("nothing was lost")


def test_an_element_that_was_never_tried_is_explained_by_the_failure_that_stopped_the_loop(tmp_path: Path) -> None:
    text = PARTIAL.replace("allow_partial: true, max_job_retries: 1", "fail_fast: true").replace(
        "range: 10", "range: 500"
    )
    play(text.replace("fanin.status == 'partial'", "fanin.status == 'failed'"), tmp_path)
    answer = explained(tmp_path, "start[499]")
    assert answer.status == "not started"
    assert "failed and the loop is fail_fast, so no more were tried" in text_of(answer)


def test_while_the_loop_goes_on_an_element_waits_or_is_worked_on(tmp_path: Path) -> None:
    play(PARTIAL, tmp_path)
    known = entries(tmp_path)
    at = next(number for number, entry in enumerate(known, 1) if entry.type == "loop.shard.started")
    assert explained(tmp_path, "start[1]", upto=at, is_live=True).status == "running"
    assert explained(tmp_path, "start[5]", upto=at, is_live=True).status == "waiting"
    assert explained(tmp_path, "start[5]", upto=at).status == "interrupted"
    first = next(number for number, entry in enumerate(known, 1) if entry.type == "loop.fanout.started")
    assert explained(tmp_path, "start[5]", upto=first, is_live=True).status == "not started"


# ---- while it runs


def told(known: list[Entry]) -> list[str]:
    progress = Progress()
    observe = progress.observer()
    for entry in known:
        observe(entry)
    progress.fold(0.0)
    return Lines("").news(progress)


def test_lines_tell_of_elements_and_ranges_that_come_again_but_not_of_thousands(tmp_path: Path) -> None:
    play(PARTIAL, tmp_path)
    lines = "\n".join(told(entries(tmp_path)))
    assert "start: element [3] failed: ValueError: no 3" in lines
    assert "it comes again" in lines
    assert "start: done in" in lines
    assert "10 of 10 iterations, 2 failed" in lines


def test_lines_tell_of_workers_that_were_lost(tmp_path: Path) -> None:
    text = PARTIAL.replace("max_job_retries: 1", "max_job_retries: 1, range_size: 1").replace("range_size: 4, ", "")
    play_with(lambda usual: Idle(usual, "lost"), text.replace("fanin.failed < 5", "true"), tmp_path)
    lines = [line for line in told(entries(tmp_path)) if "was lost with range" in line]
    assert len(lines) == 10
    assert "[0] again" in lines[0]


def test_a_running_loop_is_counted_with_its_ranges_out(tmp_path: Path) -> None:
    play(PARTIAL, tmp_path)
    known = entries(tmp_path)
    at = next(number for number, entry in enumerate(known, 1) if entry.type == "loop.shard.done")
    progress = Progress()
    progress.catch_up(known[:at])
    ((name, settled, words),) = loops(progress)
    fan = progress.runs["start@0"].fan
    assert fan is not None
    assert (name, settled) == ("start@0", fan.ok)
    assert "of 10 iterations" in words
    assert "ranges out" in words
