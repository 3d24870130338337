"""After a failure a resume goes on inside what failed, however deep it lies: what ended OK there is not run again (D30)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from tests.chaos.engines import MemoryHome, Told, resumed, virtually
from tests.chaos_jobs import jobs
from tests.chaos_jobs.homes import DecisionLog, leftovers, started
from tests.chaos_jobs.jobs import marking
from tests.depth import some
from tests.replaying import assert_engine_replays
from tests.spec_jobs.support import each, job

NOT_YET = "import os\nif {} and not os.path.exists('there'):\n    raise ValueError('not there')\n"
BOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: book}}
workflow:
  - step: start
    tool:
      - {{name: one, kind: python, code: "with open('marks', 'a') as file: file.write('one\\\\n')"}}
      - {{name: load, {}}}
    next: {{arcs: [{{step: last}}]}}
  - step: last
    tool: {{name: last, kind: python, code: "with open('marks', 'a') as file: file.write('last\\\\n')"}}
"""
LET = """\
kind: Joblet
components:
  - {name: fine, type: python, params: {code: "with open('marks', 'a') as file: file.write('fine\\\\n')"}}
  - {name: bad, type: run_job, params: {path: smallest.yaml}}
connections:
  control: fine (subjob_ok) bad
"""
FILES = {
    "leaf.yaml": job(
        "f (parallelise) a, b",
        "b (ok) it",
        "it (iterate) body",
        "a, b (synchronise) j",
        data=("a.main -> j.input",),
        f=marking("f"),
        a=marking("a", "output = [{'n': 1}, {'n': 2}]\nglobals['x'] = 5\n"),
        b=marking("b"),
        it=each("p", "q", "r"),
        body=marking("body", NOT_YET.format("iteration['index'] == 1")),
        j=marking("j", "globals['sum'] = sum(row['n'] for row in inputs['input']) + globals['x']\n"),
    ),
    "smallest.yaml": job("k (subjob_ok) m", k=marking("k"), m=marking("m", NOT_YET.format("True"))),
    "inside.yaml": job("l (subjob_ok) after", l={"type": "@let"}, after=marking("after")),
    "let.yaml": LET,
    "job_in_job.yaml": job(
        "p (subjob_ok) q",
        "q (ok) r",
        p=marking("p"),
        q={"type": "run_job", "params": {"path": "leaf.yaml"}},
        r=marking("r"),
    ),
    "book_in_job.yaml": job(
        "p (subjob_ok) q",
        "q (ok) r",
        p=marking("p"),
        q={"type": "playbook", "params": {"path": "book.yaml"}},
        r=marking("r"),
    ),
    "book.yaml": BOOK.format("kind: job, path: leaf.yaml"),
    "book_of_book.yaml": BOOK.format("kind: playbook, path: book.yaml"),
    "book_of_job_in_job.yaml": BOOK.format("kind: job, path: job_in_job.yaml"),
    "book_of_book_in_job.yaml": BOOK.format("kind: job, path: book_in_job.yaml"),
    "book_of_inside.yaml": BOOK.format("kind: job, path: inside.yaml"),
}
LEAF_AGAIN = {"b": 1, "body": 1}
LEAF_ONCE = {"b": 1, "body": 2, "j": 1}
CASES: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    # What runs when it is resumed in vain, and when what was missing is there.
    "leaf.yaml": (LEAF_AGAIN, LEAF_ONCE),
    "job_in_job.yaml": (LEAF_AGAIN, {**LEAF_ONCE, "r": 1}),
    "book_in_job.yaml": (LEAF_AGAIN, {**LEAF_ONCE, "last": 1, "r": 1}),
    "book.yaml": (LEAF_AGAIN, {**LEAF_ONCE, "last": 1}),
    "book_of_book.yaml": (LEAF_AGAIN, {**LEAF_ONCE, "last": 2}),
    "book_of_job_in_job.yaml": (LEAF_AGAIN, {**LEAF_ONCE, "r": 1, "last": 1}),
    "book_of_book_in_job.yaml": (LEAF_AGAIN, {**LEAF_ONCE, "last": 2, "r": 1}),
    "book_of_inside.yaml": ({"m": 1}, {"m": 1, "after": 1, "last": 1}),
}


def furnished(folder: Path) -> MemoryHome:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return MemoryHome.at(folder / ".penstock")


async def again(engine: Embedded) -> Told:
    told = await resumed(engine)
    await assert_engine_replays(engine)
    return told


def marks_of(folder: Path, home: MemoryHome, *log: Any) -> tuple[str, Counter[str]]:
    (folder / "marks").unlink(missing_ok=True)
    told: Told = virtually(partial(home.open, *log), again)
    return told.status, Counter(jobs.marks(folder))


@pytest.mark.clause("J7.2")
@pytest.mark.parametrize("file", CASES)
def test_what_failed_inside_goes_on_where_it_failed(folder: Path, file: str) -> None:
    home = furnished(folder)
    first: Told = virtually(home.open, lambda engine: started(engine, folder / file))
    assert first.status == "failed"
    in_vain, at_last = CASES[file]
    assert marks_of(folder, home) == ("failed", in_vain)
    assert marks_of(folder, home) == ("failed", in_vain)
    (folder / "there").touch()
    assert marks_of(folder, home) == ("completed", at_last)
    assert leftovers(home.folder) == []


@pytest.mark.parametrize("file", ["book.yaml", "book_of_book_in_job.yaml", "book_of_inside.yaml"])
def test_what_goes_on_inside_can_be_cut_off_anywhere_and_go_on_again(folder: Path, file: str) -> None:
    home = furnished(folder)
    first: Told = virtually(home.open, lambda engine: started(engine, folder / file))
    (folder / "there").touch()
    log = DecisionLog(MemoryLog(home.store))
    _, at_last = CASES[file]
    assert marks_of(folder, home, log) == ("completed", at_last)
    for at in some(sorted(log.appended)[:-1], 6):
        if at > len(first.entries):
            status, marks = marks_of(folder, home.cut(at))
            assert status == "completed", at
            assert set(marks) <= set(at_last), at
            assert max(marks.values(), default=0) <= 2, at


def test_the_rows_and_globals_of_what_was_kept_are_there(folder: Path) -> None:
    home = furnished(folder)
    virtually(home.open, lambda engine: started(engine, folder / "book.yaml"))
    (folder / "there").touch()
    told: Told = virtually(home.open, again)
    done = [entry.payload for entry in told.entries if entry.type == "task.done" and b'"task":"load"' in entry.payload]
    assert b'"globals":{"sum":8,"x":5}' in done[-1]
    assert b'"a":{"state":"OK"' in done[-1]


def test_a_job_whose_callers_time_was_over_goes_on_inside(folder: Path) -> None:
    home = furnished(folder)
    slow = {"type": "sleep", "params": {"seconds": "{{ context.seconds }}"}}
    text = job("a (subjob_ok) b", "b (ok) c", a=marking("a"), b=slow, c=marking("c"), context={"seconds": 60})
    (folder / "slow.yaml").write_text(text)
    (folder / "book.yaml").write_text(BOOK.format("kind: job, path: slow.yaml, spec: {timeout: 100}"))
    told: Told = virtually(home.open, lambda engine: started(engine, folder / "book.yaml"))
    assert told.status == "completed"
    (folder / "slow.yaml").write_text(text.replace("60", "600"))
    home = MemoryHome.at(folder / ".other")
    told = virtually(home.open, lambda engine: started(engine, folder / "book.yaml"))
    assert (told.status, told.summary.error["kind"]) == ("failed", "timeout")  # type: ignore[index,call-overload]
    assert marks_of(folder, home) == ("failed", {})
