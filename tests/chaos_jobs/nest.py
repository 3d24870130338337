"""Jobs in playbooks in jobs in iterations: what runs inside, at every depth."""

from __future__ import annotations

from pathlib import Path

from tests.spec_jobs.support import each, job, python, sleeps

NEST = {
    "inner.yaml": job("x (ok) y", x={"type": "playbook", "params": {"path": "book.yaml"}}, y=sleeps(1)),
    "book.yaml": (
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: book}\nworkflow:\n"
        "  - step: start\n    tool: {name: wait, kind: sleep, seconds: 1}\n    next: {arcs: [{step: load}]}\n"
        "  - step: load\n    tool: {name: load, kind: job, path: leaf.yaml}\n"
    ),
    "leaf.yaml": job("p (ok) q", p=sleeps(1), q=sleeps(1)),
    "let.yaml": "kind: Joblet\ncomponents:\n  - {name: call, type: run_job, params: {path: inner.yaml}}\n",
    "nest.yaml": job(
        "fork (parallelise) a, it",
        "it (iterate) body",
        "it (iteration_ok) good",
        "it (iteration_error) bad",
        "a, it (synchronise) met",
        "a (subjob_ok) after",
        a={"type": "@let"},
        it=each(1, 2, 3, parallel=2),
        body=python("if iteration['index'] == 1:\n    raise ValueError('no')\n"),
        good=sleeps(1),
        bad=sleeps(1),
        config={"fail_strategy": "continue"},
    ),
    "outer.yaml": job(
        "first (subjob_ok) it",
        "it (iterate) pre",
        "pre (ok) call",
        "call (ok) book",
        "book (ok) last",
        "it (iterator_complete) after",
        first={"type": "run_job", "params": {"path": "leaf.yaml"}},
        it=each(1, 2, parallel=2),
        pre=sleeps(1),
        call={"type": "run_job", "params": {"path": "inner.yaml"}},
        book={"type": "playbook", "params": {"path": "book.yaml"}},
        last=sleeps(1),
    ),
}


def write_nest(folder: Path) -> None:
    for name, text in NEST.items():
        (folder / name).write_text(text)
