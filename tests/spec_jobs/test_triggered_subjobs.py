"""A source in a sub-job that has a trigger (D58): it starts with the job, which is warned of; with `start: subjob` it waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.components.registry import ComponentRegistry
from penstock.dialects.job.compile import CompiledJob, compile_file
from penstock.dialects.problems import Severity
from tests.jobs import resume_job, run_job
from tests.spec_jobs.support import FAILS, job, python, rows, sets
from tests.spec_jobs.test_resume import Shop

WHOLE = {"start": "subjob"}
LINKS = ("load (subjob_ok) show",)
DATA = ("orders.main -> show.input",)


def compiled(text: str, home: Path) -> CompiledJob:
    path = home / "job.yaml"
    path.write_text(text)
    return compile_file(path, ComponentRegistry())


def early(found: CompiledJob) -> list[str]:
    return [
        problem.message
        for problem in found.problems
        if problem.code == "J0314" and problem.severity is Severity.WARNING
    ]


@pytest.mark.clause("J13.1")
def test_a_source_starts_with_the_job_and_the_warning_names_it_and_the_trigger(tmp_path: Path) -> None:
    text = job(*LINKS, data=DATA, orders=rows(1), show={"type": "log_rows"})
    [message] = early(compiled(text, tmp_path))
    assert "`orders` starts with the job" in message
    assert "`load (subjob_ok) show` (line " in message
    assert sorted(run_job(text, tmp_path).started()[:2]) == ["load", "orders"]


def test_with_start_subjob_it_waits_and_nothing_is_warned_of(tmp_path: Path) -> None:
    text = job(*LINKS, data=DATA, orders=rows(1), show={"type": "log_rows"}, config=WHOLE)
    assert not early(compiled(text, tmp_path))
    run = run_job(text, tmp_path)
    assert run.started() == ["load", "orders", "show"]
    assert run.fired() == ["load (subjob_ok) show"]


WITHIN = ("orders.main -> tail.input",)
"""Into a member that is not led to by the trigger itself: a link into that one would be cut (D35)."""


@pytest.mark.parametrize(
    ("links", "more"),
    [
        (("load (parallelise) show, other", "show (ok) tail"), {}),
        (("fork (parallelise) load, other", "load, other (synchronise) show", "show (ok) tail"), {}),
        (("load (subjob_error) show", "show (ok) tail"), {"load": FAILS}),
    ],
)
def test_every_trigger_of_a_sub_job_is_waited_for(tmp_path: Path, links: tuple[str, ...], more: dict[str, Any]) -> None:
    text = job(*links, data=WITHIN, orders=rows(1), tail={"type": "log_rows"}, config=WHOLE, **more)
    run = run_job(text, tmp_path)
    assert run.states()["tail"] == run.states()["orders"] == "OK"
    kinds = ("component.started", "component.ok", "component.error")
    at = [event["scope"] for event in run.events if event["event_type"] in kinds]
    assert at.index("orders") > max(place for place, scope in enumerate(at) if scope == "load")


@pytest.mark.parametrize("link", ["load (subjob_ok) show", "load (parallelise) show, other"])
def test_a_dead_trigger_skips_the_whole_sub_job(tmp_path: Path, link: str) -> None:
    text = job(link, "show (ok) tail", data=WITHIN, load=FAILS, orders=rows(1), tail={"type": "log_rows"}, config=WHOLE)
    run = run_job(text, tmp_path)
    assert {run.states()[name] for name in ("orders", "show", "tail")} == {"SKIPPED"}
    assert run.subjobs()["orders"] == "SKIPPED"


def test_after_a_resume_it_still_waits(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    text = job(
        *LINKS,
        data=DATA,
        load=shop.fails("load"),
        orders=shop.does("output = [{'n': 1}]", "orders"),
        show={"type": "log_rows"},
        config=WHOLE,
    )
    assert run_job(text, tmp_path).status == "failed"
    assert shop.ran == ["load"]
    shop.mend()
    assert resume_job(tmp_path).status == "completed"
    assert shop.ran == ["load", "load", "orders"]


def test_inside_a_joblet_it_waits_for_the_trigger_there(tmp_path: Path) -> None:
    inner = job(
        *LINKS, data=DATA, orders=python("output = [{'n': globals['x']}]"), load=sets(x=1), show={"type": "log_rows"}
    )
    (tmp_path / "inner.yaml").write_text('{"kind": "Joblet", ' + inner.lstrip()[1:])
    text = job("call (ok) after", call={"type": "@inner"}, config=WHOLE)
    started = run_job(text, tmp_path).started()
    assert started.index("call.__orders") > started.index("call.__load")


def test_what_is_marked_startable_is_meant_to_start_with_the_job(tmp_path: Path) -> None:
    text = job(*LINKS, data=DATA, orders={**rows(1), "startable": True}, show={"type": "log_rows"}, config=WHOLE)
    assert not early(compiled(text, tmp_path))
    assert sorted(run_job(text, tmp_path).started()[:2]) == ["load", "orders"]


def test_a_source_that_the_trigger_needs_cannot_wait_and_that_is_said(tmp_path: Path) -> None:
    """`orders` feeds a branch whose end triggers the sub-job of `orders`: to wait for that would be to wait for itself."""
    text = job(
        "fork (parallelise) left, right",
        "left (subjob_ok) last",
        "last (ok) tail",
        data=("orders.main -> left.input", "orders.main -> tail.input"),
        orders=rows(1),
        left={"type": "log_rows"},
        tail={"type": "log_rows"},
        config=WHOLE,
    )
    [message] = early(compiled(text, tmp_path))
    assert "`orders` starts with the job" in message
    run = run_job(text, tmp_path)
    assert run.status == "completed"
    assert set(run.states().values()) == {"OK"}
