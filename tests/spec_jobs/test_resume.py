"""Sections 7 and 12.7: what a checkpoint holds, and what a resume does not do again. Effects are counted in files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.jobs import resume_job, run_job
from tests.spec_jobs.support import each, job, python, rows, sets


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


class Shop:
    """Components that leave a mark each time they run, some of them failing until a flag is there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.flag = home / "flag"

    @property
    def ran(self) -> list[str]:
        return lines(self.home / "ran")

    def does(self, code: str = "", name: str = "") -> dict[str, Any]:
        place = "iteration['index']" if not name else repr(name)
        return python(
            f"with open({str(self.home / 'ran')!r}, 'a') as file:\n    file.write(str({place}) + '\\n')\n{code}\n"
        )

    def fails(self, name: str = "", condition: str = "True", then: str = "") -> dict[str, Any]:
        check = f"import pathlib\nif {condition} and not pathlib.Path({str(self.flag)!r}).exists():\n    raise ValueError('not yet')"
        return self.does(f"{check}\n{then}", name)

    def mend(self) -> None:
        self.flag.touch()


@pytest.mark.clause("J7.1")
def test_every_sub_job_ends_with_a_checkpoint_of_globals_output_hashes_and_context(tmp_path: Path) -> None:
    text = job(
        "a (ok) b",
        "a (subjob_ok) late",
        data=("source.main -> sink.input",),
        a=sets(x=1),
        b=sets(y=[2]),
        source=rows(1, 2),
        sink=python("result = 1"),
        late=sets(z="{{ global.x }}"),
        context={"who": "ada"},
    )
    run = run_job(text, tmp_path)
    saved = {one["subjob"]: one for one in run.payloads("checkpoint.saved")}
    assert set(saved) == {"a", "source", "late"}
    assert saved["a"]["globals"] == {"x": 1, "y": [2]}
    assert saved["late"]["globals"] == {"x": 1, "y": [2], "z": 1}
    assert {one["status"] for one in saved.values()} == {"ok"}
    assert {one["context"]["who"] for one in saved.values()} == {"ada"}
    hashed = next(
        one["outputs"]["main"]["hash"] for one in run.payloads("component.ok") if one["component"] == "source"
    )
    assert saved["source"]["outputs"] == {"source": {"main": hashed}}
    assert all(one["bytes"] > 0 for one in saved.values())
    kinds = [(event["event_type"], event["scope"]) for event in run.events]
    assert kinds.index(("checkpoint.saved", "<a>")) == kinds.index(("subjob.ok", "<a>")) + 1


@pytest.mark.clause("J7.1")
def test_a_sub_job_that_failed_has_a_checkpoint_that_says_so(tmp_path: Path) -> None:
    run = run_job(job(alone="a", a=python("globals['x'] = 1\n1 / 0")), tmp_path)
    assert [(one["subjob"], one["status"], one["globals"]) for one in run.payloads("checkpoint.saved")] == [
        ("a", "error", {"x": 1})
    ]


@pytest.mark.clause("J7.2")
def test_a_resume_runs_only_the_sub_jobs_at_or_after_the_failure(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job(
        "one (subjob_ok) two",
        "two (ok) two_more",
        "two (subjob_ok) three",
        one=shop.does("globals['x'] = [1, 2]", "one"),
        two=shop.does("globals['y'] = globals['x'] + [3]", "two"),
        two_more=shop.fails("two_more"),
        three=shop.does("result = [globals['x'], globals['y'], context['who']]", "three"),
        context={"who": "ada"},
    )
    first = run_job(text, tmp_path, {"who": "grace"})
    assert (first.status, shop.ran) == ("failed", ["one", "two", "two_more"])
    shop.mend()
    run = resume_job(tmp_path)
    assert run.status == "completed", run.error
    assert shop.ran == ["one", "two", "two_more", "two", "two_more", "three"]
    result = next(one["result"] for one in run.payloads("component.ok") if one["component"] == "three")
    assert result == [[1, 2], [1, 2, 3], "grace"]
    assert run.globals == {"x": [1, 2], "y": [1, 2, 3]}
    starts = run.payloads("job.started")
    assert [one["resumed"] for one in starts] == [False, True]
    assert starts[1]["kept"] == ["<one>"]


@pytest.mark.clause("J7.2")
def test_what_a_resume_keeps_is_shown_as_kept(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job(
        "one (ok) more", "one (subjob_ok) two", "two (ok) rest", one=shop.does(name="one"), two=shop.fails("two")
    )
    run_job(text, tmp_path)
    shop.mend()
    run = resume_job(tmp_path)
    assert {name: one.get("kept", False) for name, one in run.standing.components.items()} == {
        "one": True,
        "more": True,
        "two": False,
        "rest": False,
    }
    assert [one.get("kept", False) for one in run.standing.subjobs] == [True, False]


@pytest.mark.clause("J7.2")
def test_rows_of_a_kept_sub_job_reach_a_resumed_one(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job(
        "fork (parallelise) left, right",
        "left, right (synchronise) met",
        data=("left.main -> met.input_a", "right.main -> met.input_b", "met.main -> sink.input"),
        left=shop.does("output = [{'id': 1}, {'id': 2}]", "left"),
        right=shop.does("output = [{'id': 3}]", "right"),
        met={"type": "union"},
        sink=shop.fails("sink", then="globals['ids'] = sorted(row['id'] for row in inputs['input'])"),
    )
    assert run_job(text, tmp_path).status == "failed"
    shop.mend()
    run = resume_job(tmp_path)
    assert run.status == "completed", run.error
    assert run.globals["ids"] == [1, 2, 3]
    assert Counter(shop.ran) == {"left": 1, "right": 1, "sink": 2}


@pytest.mark.clause("J7.2")
def test_a_failure_that_was_handled_is_not_run_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job(
        "bad (subjob_error) told",
        "told (subjob_ok) last",
        bad=shop.fails("bad", "True"),
        told=shop.does(name="told"),
        last=shop.fails("last"),
    )
    assert run_job(text, tmp_path).status == "failed"
    shop.mend()
    run = resume_job(tmp_path)
    assert run.status == "completed", run.error
    assert Counter(shop.ran) == {"bad": 1, "told": 1, "last": 2}


@pytest.mark.clause("J7.2")
def test_a_resume_of_a_job_that_died_starts_over_where_it_died(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job(
        "one (subjob_ok) bad",
        "bad (error) told",
        "bad (ok) rest",
        one=shop.does(name="one"),
        bad={**shop.fails("bad"), "die_on_error": True},
        told=shop.does(name="told"),
        rest=shop.does(name="rest"),
    )
    first = run_job(text, tmp_path)
    assert first.status == "failed"
    shop.mend()
    run = resume_job(tmp_path)
    assert run.states() == {"one": "OK", "bad": "OK", "told": "SKIPPED", "rest": "OK"}
    assert shop.ran == ["one", "bad", "told", "bad", "rest"]


@pytest.mark.clause("J7.2")
def test_what_did_not_run_because_of_a_failure_runs_after_the_resume(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job("a (ok) b", "b (ok) c", "a (subjob_ok) d", "d (subjob_ok) e", b=shop.fails("b"), d=shop.does(name="d"))
    first = run_job(text, tmp_path)
    assert first.states() == {"a": "OK", "b": "ERROR", "c": "SKIPPED", "d": "SKIPPED", "e": "SKIPPED"}
    shop.mend()
    run = resume_job(tmp_path)
    assert set(run.states().values()) == {"OK"}


@pytest.mark.clause("J7.2")
def test_a_job_may_be_resumed_as_often_as_it_fails(tmp_path: Path) -> None:
    count = tmp_path / "count"
    code = f"import pathlib\npath = pathlib.Path({str(count)!r})\ntries = len(path.read_text()) + 1 if path.exists() else 1\npath.write_text('x' * tries)\nassert tries == 4, tries"
    text = job("a (subjob_ok) b", a=sets(x=1), b=python(code))
    assert run_job(text, tmp_path).status == "failed"
    assert [resume_job(tmp_path).status for _ in range(3)] == ["failed", "failed", "completed"]


@pytest.mark.clause("J7.3")
def test_branches_that_finished_are_not_run_again_and_the_others_start_at_their_fork(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    names = ("fork", "left", "left2", "right", "right2", "third", "met")
    components = {name: shop.does(name=name) for name in names}
    components["right2"] = shop.fails("right2")
    links = (
        "fork (parallelise) left, right, third",
        "left (ok) left2",
        "right (ok) right2",
        "left, right, third (synchronise) met",
    )
    assert run_job(job(*links, **components), tmp_path).status == "failed"
    assert Counter(shop.ran) == {"fork": 1, "left": 1, "left2": 1, "right": 1, "right2": 1, "third": 1}
    shop.mend()
    run = resume_job(tmp_path)
    assert run.status == "completed", run.error
    assert Counter(shop.ran) == {"fork": 1, "left": 1, "left2": 1, "right": 2, "right2": 2, "third": 1, "met": 1}


@pytest.mark.clause("J7.3")
def test_globals_of_kept_and_of_resumed_branches_meet_at_the_join(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    links = ("fork (parallelise) left, right", "right (ok) late", "left, right (synchronise) met")
    text = job(
        *links,
        fork=sets(base=1),
        left=sets(l="{{ global.base }}", who="left"),
        right=sets(r="{{ global.base + 1 }}", who="right"),
        late=shop.fails("late"),
        met=python("result = {key: globals[key] for key in ('base', 'l', 'r', 'who')}"),
    )
    assert run_job(text, tmp_path).status == "failed"
    shop.mend()
    run = resume_job(tmp_path)
    met = next(one["result"] for one in run.payloads("component.ok") if one["component"] == "met")
    assert met == {"base": 1, "l": 1, "r": 2, "who": "right"}


@pytest.mark.clause("J12.6")
def test_after_a_failure_at_iteration_3_of_10_a_resume_runs_3_to_9_only(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job(
        "it (iterate) body", "it (ok) after", it=each(*range(10)), body=shop.fails(condition="iteration['index'] == 3")
    )
    first = run_job(text, tmp_path)
    assert (first.status, shop.ran) == ("failed", ["0", "1", "2", "3"])
    shop.mend()
    run = resume_job(tmp_path)
    assert run.status == "completed", run.error
    assert shop.ran[4:] == ["3", "4", "5", "6", "7", "8", "9"]
    completed = run.payloads("iterator.completed")[-1]
    assert (completed["total"], completed["ok"], completed["failed"]) == (10, 10, 0)


@pytest.mark.clause("J12.6")
def test_every_finished_iteration_has_a_checkpoint(tmp_path: Path) -> None:
    run = run_job(job("it (iterate) body", it=each("a", "b"), body=sets(x="{{ iteration.item }}")), tmp_path)
    saved = [one for one in run.payloads("checkpoint.saved") if "[#" in one["subjob"]]
    assert [(one["subjob"], one["globals"]) for one in saved] == [("it[#0]", {"x": "a"}), ("it[#1]", {"x": "b"})]


@pytest.mark.clause("J12.6")
@pytest.mark.parametrize("mode", ["accumulate", "override", "reset"])
def test_globals_of_kept_iterations_count_as_in_an_unbroken_run(tmp_path: Path, mode: str) -> None:
    shop = Shop(tmp_path)
    then = "globals['seen'] = globals.get('seen', []) + [iteration['item']]\nglobals['last'] = iteration['item']"
    body = shop.fails(condition="iteration['index'] == 2", then=then)
    text = job("it (iterate) body", it=each(*"abcd", globals=mode), body=body)
    run_job(text, tmp_path)
    shop.mend()
    run = resume_job(tmp_path)
    whole = run_job(text, tmp_path, execution_id="run-2")
    assert run.globals == whole.globals
    assert run.globals["last"] == "d"
    assert run.globals["seen"] == {"accumulate": list("abcd"), "override": list("abcd"), "reset": ["d"]}[mode]


@pytest.mark.clause("J12.6")
def test_a_resume_goes_on_over_the_elements_of_the_first_start(tmp_path: Path) -> None:
    """Files that the first run archived are gone; those that have come since are not the business of this run."""
    drop, done = tmp_path / "drop", tmp_path / "done"
    drop.mkdir()
    done.mkdir()
    for name in "abc":
        (drop / f"{name}.csv").touch()
    code = (
        f"import pathlib\nname = pathlib.Path(iteration['item']['path'] if isinstance(iteration['item'], dict) else iteration['item']).name\n"
        f"assert name != 'b.csv' or pathlib.Path({str(tmp_path / 'flag')!r}).exists(), 'not yet'\n"
        f"pathlib.Path({str(drop)!r}, name).rename(pathlib.Path({str(done)!r}, name))\n"
    )
    text = job(
        "it (iterate) body",
        it={"type": "iterate_files", "params": {"path": "drop", "pattern": "*.csv"}},
        body=python(code),
    )
    assert run_job(text, tmp_path).status == "failed"
    assert sorted(path.name for path in done.iterdir()) == ["a.csv"]
    (drop / "0.csv").touch()
    (tmp_path / "flag").touch()
    run = resume_job(tmp_path)
    assert run.status == "completed", run.error
    assert sorted(path.name for path in done.iterdir()) == ["a.csv", "b.csv", "c.csv"]


@pytest.mark.clause("J12.6")
def test_with_continue_a_completed_job_keeps_its_failed_iterations(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    config = {"fail_strategy": "continue"}
    text = job(
        "it (iterate) body",
        "it (ok) last",
        it=each(*range(4)),
        body=shop.fails(condition="iteration['index'] == 1"),
        last=shop.fails("last"),
        config=config,
    )
    assert run_job(text, tmp_path).status == "failed"
    assert shop.ran == ["0", "1", "2", "3", "last"]
    shop.mend()
    run = resume_job(tmp_path)
    assert run.status == "completed", run.error
    assert shop.ran[5:] == ["1", "last"], "the sub-job starts over, but for the iterations that ended OK"


@pytest.mark.clause("J7.2")
def test_a_joblet_call_that_had_ended_is_kept_with_all_of_its_inside(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    (tmp_path / "work.yaml").write_text(job("x (ok) y", "x (subjob_ok) z", x=shop.does(name="x")))
    text = job("j (ok) k", "j (subjob_ok) late", j={"type": "@work"}, late=shop.fails("late"))
    assert run_job(text, tmp_path).status == "failed"
    shop.mend()
    run = resume_job(tmp_path)
    assert run.status == "completed", run.error
    assert Counter(shop.ran) == {"x": 1, "late": 2}
    assert {name for name, one in run.standing.components.items() if one.get("kept")} == {
        "j",
        "k",
        "j.__x",
        "j.__y",
        "j.__z",
    }
