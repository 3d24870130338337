"""An iteration whose body has ended is not run again, though what handles its end had not: only that runs (J12.6)."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from penstock.ports.log import Entry
from penstock.ports.wire import to_fact
from tests.chaos.engines import MemoryHome, Told, resumed, virtually
from tests.chaos_jobs import jobs
from tests.chaos_jobs.homes import DecisionLog, leftovers, started
from tests.depth import some, times
from tests.flow.kept import ended_with_their_iterations
from tests.replaying import assert_engine_replays
from tests.spec_jobs.support import each, job, python
from tests.views.support import standing as job_standing

NUMBERED = """
import os
def numbers(one):
    return (numbers(one['parent']) if 'parent' in one else []) + [str(one['index'])]
with open('marks', 'a') as traces:
    traces.write({!r} + ' ' + '.'.join(numbers(iteration)) + '\\n')
"""
TELLING = "globals['seen'] = [{!r} + ' ' + '.'.join(numbers(iteration))]\n"
NUMBER = re.compile(r"#(\d+)")
BAD = "if iteration['index'] == 1:\n    raise ValueError('bad')\n"
NOT_YET = "if iteration['index'] == 1 and not os.path.exists('there'):\n    raise ValueError('not there')\n"


def silent(name: str, code: str = "", **more: Any) -> dict[str, Any]:
    """Leaves its name and the number of its iteration in the file `marks`."""
    return python(NUMBERED.format(name) + code, **more)


def numbered(name: str, code: str = "", **more: Any) -> dict[str, Any]:
    """And in a global."""
    return silent(name, TELLING.format(name) + code, **more)


def strict(*links: str, **more: Any) -> str:
    return job(*links, config={"durability": "strict", **more.pop("config", {})}, **more)


PLAIN = ("it (iterate) body", "it (iteration_ok) good")
GOES_ON = {"fail_strategy": "continue"}
CASES = {
    "one component": strict(*PLAIN, it=each(1, 2, 3), body=numbered("body"), good=numbered("good")),
    "one after another": strict(
        *PLAIN, "good (ok) tell", it=each(1, 2), body=numbered("body"), good=numbered("good"), tell=numbered("tell")
    ),
    "beside each other": strict(
        *PLAIN,
        "it (iteration_ok) also",
        it=each(1, 2),
        body=numbered("body"),
        good=numbered("good"),
        also=numbered("also"),
    ),
    "of an error": strict(
        *PLAIN,
        "it (iteration_error) bad",
        "bad (ok) tell",
        it=each(1, 2, 3),
        body=numbered("body", BAD),
        good=numbered("good"),
        bad=numbered("bad"),
        tell=numbered("tell"),
        config=GOES_ON,
    ),
    "of an error that halts": strict(
        "it (iterate) body",
        "it (iteration_error) bad",
        it=each(1, 2, 3),
        body=numbered("body", BAD),
        bad=numbered("bad"),
    ),
    "of an error with which the job dies": strict(
        "it (iterate) body",
        "it (iteration_error) bad",
        it=each(1, 2, 3),
        body=numbered("body", BAD, die_on_error=True),
        bad=numbered("bad"),
        config=GOES_ON,
    ),
    "that fails": strict(*PLAIN, it=each(1, 2, 3), body=numbered("body"), good=numbered("good", BAD), config=GOES_ON),
    "two at a time": strict(*PLAIN, it=each(1, 2, 3, 4, parallel=2), body=numbered("body"), good=numbered("good")),
    "of two iterators": strict(
        *PLAIN,
        "other (iterate) that",
        "other (iteration_ok) fine",
        it=each(1, 2),
        body=numbered("body"),
        good=numbered("good"),
        other=each(1, 2),
        that=numbered("that"),
        fine=numbered("fine"),
    ),
    "around a nested iterator": strict(
        *PLAIN,
        "body (ok) inner",
        "inner (iterate) deep",
        "inner (iteration_ok) fine",
        it=each(1, 2),
        inner=each("a", "b"),
        body=numbered("body"),
        deep=numbered("deep"),
        fine=numbered("fine"),
        good=numbered("good"),
    ),
    "that iterates": strict(
        *PLAIN,
        "good (iterate) deep",
        "good (iteration_ok) fine",
        it=each(1, 2),
        body=numbered("body"),
        good=each("a", "b"),
        deep=numbered("deep"),
        fine=numbered("fine"),
    ),
    "in a joblet": strict("first (ok) call", "call (ok) last", call={"type": "@iterating"}),
    "that is a joblet": strict(*PLAIN, it=each(1, 2), body=numbered("body"), good={"type": "@forked"}),
    "after a body of several sub-jobs": strict(
        "it (iteration_ok) good",
        "it (iteration_ok) also",
        it=each(1, 2, body="@forked"),
        good=numbered("good"),
        also=numbered("also"),
    ),
    "that takes rows from the body": strict(
        *PLAIN,
        "it (iteration_ok) also",
        "it (iteration_ok) inner",
        "inner (iterate) deep",
        data=(
            "body.main -> good.input",
            "call.kept -> also.input",
            "body.main -> call.rows",
            "body.main -> deep.input",
        ),
        it=each(1, 2),
        body=numbered("body", "output = [{'n': iteration['index']}]"),
        call={"type": "@passing"},
        good=numbered("good", "globals['n'] = [row['n'] for row in inputs['input']]"),
        also=numbered("also", "globals['k'] = [row['n'] for row in inputs['input']]"),
        inner=each("a", "b"),
        deep=numbered("deep", "globals['m'] = [row['n'] for row in inputs['input']]"),
    ),
    "of a condition": strict(
        *PLAIN,
        it={"type": "iterate_while", "params": {"while": "iteration.index < 2"}},
        body=numbered("body"),
        good=numbered("good"),
    ),
}
FAILING = ("of an error that halts", "of an error with which the job dies")
ITERATING = job(*PLAIN, it=each(1, 2), body=numbered("body"), good=numbered("good"))
PASSING = job(kept=python("output = inputs['input']"))
FORKED = job(
    "p (parallelise) q, r",
    "q, r (synchronise) s",
    p=numbered("p"),
    q=numbered("q"),
    r=numbered("r"),
    s=numbered("s"),
)


def furnished(folder: Path, text: str) -> Path:
    ports = '{"kind": "Joblet", "inputs": {"rows": "kept.input"}, "outputs": {"kept": "kept.main"},'
    for name, joblet in {"iterating": ITERATING, "forked": FORKED, "passing": PASSING}.items():
        head = ports if name == "passing" else '{"kind": "Joblet",'
        (folder / f"{name}.yaml").write_text(head + joblet.removeprefix("{"))
    path = folder / "job.yaml"
    path.write_text(text)
    return path


def mark_of(scope: str) -> str:
    """`it[#1].inner[#0].deep` leaves the mark `deep 1.0`."""
    name = scope.rpartition(".")[2].removeprefix("__")
    return f"{name} {'.'.join(NUMBER.findall(scope))}"


def done(entries: list[Entry]) -> set[str]:
    return {mark_of(scope) for scope in ended_with_their_iterations([to_fact(entry, None) for entry in entries])}


async def again(engine: Embedded) -> Told:
    told = await resumed(engine)
    await assert_engine_replays(engine)
    return told


def shown(told: Told, *, lists: bool = True) -> Any:
    """What `show` says: without what was kept, which an unbroken run has nothing of."""
    standing = job_standing(told.entries, None, with_iterations=lists)
    subjobs = [{key: value for key, value in one.items() if key != "kept"} for one in standing.subjobs]
    return standing.iterations, {name: one["state"] for name, one in standing.components.items()}, subjobs


@pytest.mark.clause("J12.6")
@pytest.mark.clause("J7.2")
@pytest.mark.parametrize("case", CASES)
def test_wherever_the_log_ends_only_what_handles_a_body_that_has_ended_is_run(folder: Path, case: str) -> None:
    home, file = MemoryHome.at(folder / ".penstock"), furnished(folder, CASES[case])
    log = DecisionLog(MemoryLog(home.store))
    unbroken: Told = virtually(partial(home.open, log), lambda engine: started(engine, file))
    ends = [entry for entry in unbroken.entries if entry.type in ("iteration.ok", "iteration.error")]
    assert len(ends) >= 2
    assert unbroken.status == ("failed" if case in FAILING else "completed"), unbroken.summary.error
    for at in sorted(log.appended)[: -1 : max(1, 9 // times(1))]:  # Every one with PENSTOCK_TEST_DEPTH=9.
        cut = home.cut(at)
        second = DecisionLog(MemoryLog(cut.store))
        (folder / "marks").unlink(missing_ok=True)
        told: Told = virtually(partial(cut.open, second), again)
        assert told.outcome == unbroken.outcome, at
        assert not done(unbroken.entries[:at]) & set(jobs.marks(folder)), at
        assert shown(told) == shown(unbroken), at
        assert shown(told, lists=False)[0]["iterators"] == shown(unbroken, lists=False)[0]["iterators"], at
        later = sorted(second.appended)[len(second.appended) // 2]
        if later < len(told.entries):
            (folder / "marks").unlink(missing_ok=True)
            twice: Told = virtually(cut.cut(later).open, again)
            assert twice.outcome == unbroken.outcome, (at, later)
            assert not done(told.entries[:later]) & set(jobs.marks(folder)), (at, later)
    assert leftovers(home.folder) == []


BOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: book}
workflow:
  - step: start
    tool: {name: load, kind: job, path: job.yaml}
"""
LOADS = (
    "import pathlib\nif 'bad' in pathlib.Path(iteration['item']['path']).read_text():\n    raise ValueError('bad')\n"
)
HALTS = {"it": each(1, 2, 3), "body": numbered("body"), "good": numbered("good", NOT_YET)}
FAILED: dict[str, tuple[str, dict[str, int], dict[str, int]]] = {
    # The job; what runs when it is resumed in vain, and when what was missing is there.
    "halts the iterator": (
        strict(*PLAIN, **HALTS),
        {"good 1": 1},
        {"good 1": 1, "body 2": 1, "good 2": 1},
    ),
    "is one of two": (
        strict(
            *PLAIN, "it (iteration_ok) also", "good (ok) more", also=numbered("also"), more=numbered("more"), **HALTS
        ),
        {"good 1": 1},
        {"good 1": 1, "more 1": 1, "body 2": 1, "good 2": 1, "also 2": 1, "more 2": 1},
    ),
    "fails what comes after the iterator": (
        strict(
            *PLAIN,
            "it (ok) last",
            last=python("import os\nif not os.path.exists('there'):\n    raise ValueError('not there')\n"),
            config=GOES_ON,
            it=each(1, 2, 3),
            body=silent("body"),  # A global of the second iteration would come late for the third, which is kept.
            good=silent("good", NOT_YET),
        ),
        {"good 1": 1},
        {"good 1": 1},
    ),
    "lies in a joblet": (strict(call={"type": "@failing"}), {"good 1": 1}, {"good 1": 1, "body 2": 1, "good 2": 1}),
    "takes rows from the body": (
        strict(
            *PLAIN,
            data=("body.main -> good.input",),
            it=each(1, 2, 3),
            body=numbered("body", "output = [{'n': iteration['index']}]"),
            good=numbered("good", NOT_YET + "globals['n'] = [row['n'] for row in inputs['input']]\n"),
        ),
        {"good 1": 1},
        {"good 1": 1, "body 2": 1, "good 2": 1},
    ),
    "is that of an error": (
        strict(
            "it (iterate) body",
            "it (iteration_error) bad",
            it=each(1, 2, 3),
            body=numbered("body", NOT_YET),
            bad=numbered("bad"),
        ),
        {"body 1": 1, "bad 1": 1},  # A body that failed is run again (D30).
        {"body 1": 1, "body 2": 1},
    ),
}


@pytest.mark.clause("J12.6")
@pytest.mark.parametrize("file", ["job.yaml", "book.yaml"])
@pytest.mark.parametrize("case", FAILED)
def test_after_a_failure_of_what_handles_a_body_that_ended_ok_only_that_is_run_again(
    folder: Path, case: str, file: str
) -> None:
    text, in_vain, at_last = FAILED[case]
    furnished(folder, text)
    (folder / "failing.yaml").write_text('{"kind": "Joblet",' + job(*PLAIN, **HALTS).removeprefix("{"))
    (folder / "book.yaml").write_text(BOOK)
    home = MemoryHome.at(folder / ".penstock")
    first: Told = virtually(home.open, lambda engine: started(engine, folder / file))
    assert first.status == "failed"
    for _ in range(2):
        (folder / "marks").unlink()
        told: Told = virtually(home.open, again)
        assert (told.status, jobs.marks(folder)) == ("failed", in_vain)
    (folder / "marks").unlink()
    (folder / "there").touch()
    log = DecisionLog(MemoryLog(home.store))
    whole: Told = virtually(partial(home.open, log), again)
    assert (whole.status, jobs.marks(folder)) == ("completed", at_last)
    cuts = [at for at in sorted(log.appended)[:-1] if at > len(told.entries)]
    for at in some(cuts, 3):
        (folder / "marks").unlink(missing_ok=True)
        told = virtually(home.cut(at).open, again)
        assert told.outcome == whole.outcome, at
        assert set(jobs.marks(folder)) <= set(at_last), at
    assert leftovers(home.folder) == []


@pytest.mark.clause("J12.6")
def test_a_file_that_was_loaded_is_not_loaded_again_when_the_job_stopped_before_it_was_moved(folder: Path) -> None:
    """As in the job of the page about iterators: what is loaded goes to `done`, what is broken to `broken`."""
    moved = {"path": "{{ iteration.item.path }}", "missing_ok": True}
    text = strict(
        "files (iterate) load",
        "files (iteration_ok) archive",
        "files (iteration_error) aside",
        files={"type": "iterate_files", "params": {"path": "drop", "pattern": "*.txt"}},
        load=numbered("load", LOADS),
        archive={"type": "file_move", "params": {**moved, "to": "done/{{ iteration.item.name }}"}},
        aside={"type": "file_move", "params": {**moved, "to": "broken/{{ iteration.item.name }}"}},
        config=GOES_ON,
    )
    file = furnished(folder, text)
    jobs.furnish(folder)
    home = MemoryHome.at(folder / ".penstock")
    log = DecisionLog(MemoryLog(home.store))
    unbroken: Told = virtually(partial(home.open, log), lambda engine: started(engine, file))
    assert unbroken.status == "completed"
    handlers = ["files[#0].archive", "files[#1].aside", "files[#2].archive"]
    starts = {entry.scope: entry.seq for entry in unbroken.entries if entry.type == "component.started"}
    for number, handler in enumerate(handlers):
        assert starts[handler] in log.appended
        # The files have been moved by now. Had it to load one of those again, it would not find it.
        (folder / "marks").unlink(missing_ok=True)
        (folder / "drop" / "c.txt").write_text("3")
        told: Told = virtually(home.cut(starts[handler]).open, again)
        assert told.status == "completed"
        assert f"load {number}" not in jobs.marks(folder)
        assert told.summary.ctx["seen"] == unbroken.summary.ctx["seen"] == ["load 0", "load 2"]
