"""Section 6: what follows from OK, ERROR and SKIPPED, over every kind of link, and how far a skip goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.jobs import run_job
from tests.spec_jobs.support import FAILS, OK, job, rows

STATES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "OK": ((), {"up": OK}),
    "ERROR": ((), {"up": FAILS}),
    "SKIPPED": (("first (error) up",), {}),
}
EXPECTED = {
    # (state, link): does it fire? A link that does not fire leaves its target SKIPPED.
    ("OK", "ok"): True,
    ("OK", "error"): False,
    ("OK", 'if 1: "True"'): True,
    ("OK", 'if 1: "False"'): False,
    ("OK", "subjob_ok"): True,
    ("OK", "subjob_error"): False,
    ("ERROR", "ok"): False,
    ("ERROR", "error"): True,
    ("ERROR", 'if 1: "True"'): False,
    ("ERROR", "subjob_ok"): False,
    ("ERROR", "subjob_error"): True,
    ("SKIPPED", "ok"): False,
    ("SKIPPED", "error"): False,
    ("SKIPPED", 'if 1: "True"'): False,
    ("SKIPPED", "subjob_error"): False,
}


@pytest.mark.clause("J6.1")
@pytest.mark.parametrize(
    ("feeder", "expected"),
    [(rows(1), ("OK", "OK")), ({"type": "python", "params": {"code": "1 / 0"}}, ("ERROR", "SKIPPED"))],
)
def test_rows_follow_the_matrix(tmp_path: Path, feeder: dict[str, Any], expected: tuple[str, str]) -> None:
    run = run_job(job(data=("up.main -> down.input",), up=feeder, down={"type": "log_rows"}), tmp_path)
    assert (run.component("up")["state"], run.component("down")["state"]) == expected


@pytest.mark.clause("J1.7", "J10.2")
@pytest.mark.parametrize("ports", [("input_1", "input_2"), ("input_1", "input_1")])
def test_some_of_the_rows_are_not_enough_on_one_port_or_on_several(tmp_path: Path, ports: tuple[str, str]) -> None:
    """One source of a union failed: whether the two share a port or not, half of the rows are not passed off as all."""
    text = job(
        data=(f"good.main -> both.{ports[0]}", f"bad.main -> both.{ports[1]}", "both.main -> after.input"),
        good={"type": "fixed_rows", "params": {"columns": ["id"], "rows": [[1]]}},
        bad={"type": "python", "params": {"code": "1 / 0"}},
        both={"type": "union"},
        after={"type": "log_rows"},
    )
    run = run_job(text, tmp_path)
    assert run.states() == {"good": "OK", "bad": "ERROR", "both": "SKIPPED", "after": "SKIPPED"}
    assert f"its input `{ports[1]}` cannot be fed" in run.component("both")["cause"]


@pytest.mark.clause("J6.2")
@pytest.mark.clause("J1.7")
@pytest.mark.parametrize(
    "target",
    [
        {"type": "python", "params": {"code": "result = len(inputs['input'])"}},
        {"type": "sql", "params": {"query": "SELECT * FROM input"}},
    ],
)
def test_a_port_that_need_not_be_connected_must_be_fed_once_it_is(tmp_path: Path, target: dict[str, Any]) -> None:
    feeder = {"type": "python", "params": {"code": "1 / 0", "output_schema": {"id": "BIGINT"}}}
    run = run_job(job(data=("feeder.main -> target.input",), feeder=feeder, target=target), tmp_path)
    assert run.states() == {"feeder": "ERROR", "target": "SKIPPED"}


@pytest.mark.clause("J6.2")
def test_a_skip_of_hundreds_of_components_does_not_run_out_of_stack(tmp_path: Path) -> None:
    links = [f"n{number} (ok) n{number + 1}" for number in range(600)]
    run = run_job(job(*links, n0=FAILS), tmp_path)
    assert list(run.states().values()).count("SKIPPED") == 600
