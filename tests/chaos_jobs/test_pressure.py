"""Little room, many at once, deep nesting, rude code: nothing deadlocks, nothing is lost, each failure stays where it happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from tests.chaos.engines import MemoryHome, Told, resumed, virtually
from tests.chaos_jobs import jobs
from tests.chaos_jobs.homes import DecisionLog, leftovers, started
from tests.jobs import run_job
from tests.spec_jobs.support import each, job, python, sets


@pytest.mark.clause("J10.3")
@pytest.mark.parametrize("config", [{"max_in_flight_rows": 1}, {"max_in_flight_bytes": 1}, {"max_in_flight_rows": 7}])
def test_a_wide_job_with_hardly_any_room_for_rows_completes(folder: Path, config: dict[str, int]) -> None:
    width = 6
    components: dict[str, Any] = {
        f"made_{n}": {"type": "generate_rows", "params": {"count": 50 + n, "columns": {"id": "i"}}}
        for n in range(width)
    }
    components |= {f"kept_{n}": python("output = inputs['input']") for n in range(width)}
    data = [f"made_{n}.main -> kept_{n}.input" for n in range(width)]
    data += [f"kept_{n}.main -> all.input_{n}" for n in range(width)]
    text = job(
        data=(*data, "all.main -> last.input"),
        **components,
        all={"type": "union"},
        last=python("globals['n'] = len(inputs['input'])"),
        config=config,
    )
    run = run_job(text, folder)
    assert run.status == "completed", run.error
    assert run.globals == {"n": sum(50 + n for n in range(width))}
    assert leftovers(folder / ".penstock") == []


@pytest.mark.clause("J13.2")
def test_a_hundred_branches_meet_again(folder: Path) -> None:
    names = [f"b{n}" for n in range(100)]
    components: dict[str, Any] = {
        name: python(f"globals['{name}'] = 1" if n % 7 else "pass") for n, name in enumerate(names)
    }
    text = job(
        f"fork (parallelise) {', '.join(names)}",
        f"{', '.join(names)} (synchronise) met",
        **components,
        met=python("globals['n'] = sum(key[0] == 'b' for key in globals)"),
    )
    run = run_job(text, folder)
    assert run.status == "completed", run.error
    assert run.globals["n"] == sum(bool(n % 7) for n in range(100))


@pytest.mark.clause("J12.6")
def test_sixteen_iterations_at_once_of_which_some_fail_keep_apart(folder: Path) -> None:
    text = job(
        "it (iterate) body",
        "it (iteration_error) told",
        "it (iterator_complete) last",
        it=each(*range(64), parallel=16),
        body=python(
            "globals['seen'] = [iteration['item']]\nif iteration['item'] % 5 == 3:\n    raise ValueError('three')"
        ),
        told=sets(bad=["{{ iteration.item }}"]),
        config={"fail_strategy": "continue"},
    )
    run = run_job(text, folder)
    assert run.status == "completed", run.error
    done = run.payloads("iterator.completed")[0]
    bad = [n for n in range(64) if n % 5 == 3]
    assert (done["total"], done["ok"], done["failed"]) == (64, 64 - len(bad), len(bad))
    assert run.globals["seen"] == [n for n in range(64) if n % 5 != 3]


def nested(folder: Path) -> Path:
    """Iterator > joblet > iterator > job > playbook > job, each leaf leaving a mark."""
    (folder / "leaf.yaml").write_text(
        job(
            "a (subjob_ok) b",
            a=python(
                "with open('marks', 'a') as traces:\n    traces.write('leaf ' + context['who'] + '\\n')\nglobals['x'] = 1"
            ),
            b=sets(y="{{ global.x + 1 }}"),
            context={"who": ""},
            config={"durability": "strict"},
        )
    )
    (folder / "book.yaml").write_text(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: book}\nworkload: {who: nobody}\nworkflow:\n"
        "  - step: start\n    tool: {name: call, kind: job, path: leaf.yaml, args: {who: '{{ workload.who }}'}}\n"
    )
    (folder / "middle.yaml").write_text(
        job(
            alone="call",
            call={"type": "playbook", "params": {"path": "book.yaml", "args": {"who": "{{ context.who }}"}}},
            context={"who": ""},
            config={"durability": "strict"},
        )
    )
    (folder / "let.yaml").write_text(
        "kind: Joblet\ncomponents:\n  - {name: inner, type: iterate_list, params: {items: [x, y]}}\n"
        "  - name: call\n    type: run_job\n    params: {path: middle.yaml, context: {who: '{{ iteration.item }}'}}\n"
        "connections: {control: inner (iterate) call}\n"
    )
    path = folder / "job.yaml"
    path.write_text(
        job(
            "outer (iterate) let",
            "outer (ok) last",
            outer=each(1, 2),
            let={"type": "@let"},
            last=jobs.marking("last"),
            config={"durability": "strict"},
        )
    )
    return path


@pytest.mark.clause("J12.6")
def test_a_job_nested_in_everything_there_is_can_be_cut_off_in_the_middle_and_resumed(folder: Path) -> None:
    home, file = MemoryHome.at(folder / ".penstock"), nested(folder)
    log = DecisionLog(MemoryLog(home.store))

    async def body(engine: Embedded) -> Told:
        return await started(engine, file)

    unbroken: Told = virtually(lambda: home.open(log), body)
    assert unbroken.status == "completed", unbroken.summary.error
    assert jobs.marks(folder) == {"leaf x": 2, "leaf y": 2, "last": 1}
    appended = sorted(log.appended)
    for at in appended[1:-1:4]:
        cut = home.cut(at)
        (folder / "marks").unlink(missing_ok=True)
        done = sum(
            entry.type == "iteration.ok" and entry.scope in ("outer[#0]", "outer[#1]") for entry in cut.entries()
        )
        again: Told = virtually(cut.open, resumed)
        assert (again.status, again.summary.ctx) == ("completed", unbroken.summary.ctx), at
        assert jobs.marks(folder)["leaf x"] <= 2 - done, at
        assert leftovers(home.folder) == [], at


# ---- code that does what it should not


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.exit(3)",
        "raise KeyboardInterrupt",
        "raise GeneratorExit",
        "raise SystemExit",
        "def deep(n):\n    return deep(n + 1)\ndeep(0)",
        "raise MemoryError",
        "import threading, ctypes\nctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(SystemExit))\nfor _ in range(10**6):\n    pass",
        "globals['x'] = object()",
        "globals['x'] = globals",
        "context['x'] = 1",
        "result = object()",
        "raise StopIteration",
        "import asyncio\nasyncio.run(asyncio.sleep(0))\nraise asyncio.CancelledError",
    ],
)
def test_rude_code_ends_its_component_in_error_and_nothing_else(folder: Path, code: str) -> None:
    run = run_job(job("rude (error) told", "other (ok) fine", rude=python(code)), folder)
    assert run.status == "completed", run.error
    assert run.states() == {"rude": "ERROR", "told": "OK", "other": "OK", "fine": "OK"}
    assert run.component("rude")["cause"] is not None or run.payloads("component.error")[0]["error"]["message"]


def test_code_that_prints_without_end_is_cut_short(folder: Path) -> None:
    run = run_job(job(alone="flood", flood=python("for _ in range(100):\n    print('x' * 1_000_000)")), folder)
    assert run.status == "completed", run.error
    kept = sum(path.stat().st_size for path in (folder / ".penstock").rglob("*") if path.is_file())
    assert kept < 20_000_000
