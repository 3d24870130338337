"""log_catcher, flow_meter and stats: the standing of a job as rows."""

from __future__ import annotations

from typing import Any

from penstock.kernel.values import JsonMap
from tests.components.harness import columns

from .support import Ran, run

STANDING: JsonMap = {
    "components": {
        "read": {"state": "OK", "rows_in": {}, "rows_out": {"main": 10}, "ms": 1.5, "error": None},
        "clean": {"state": "OK", "rows_in": {"input": 10}, "rows_out": {"main": 7, "reject": 3}, "ms": 2},
        "load": {"state": "ERROR", "rows_in": {"input": 7}, "rows_out": {}, "ms": 4, "error": {"kind": "sql", "message": "no table"}},
        "stop": {"state": "ERROR", "error": {"kind": "die", "message": "enough", "exit_code": 3}},
        "tell": {"state": "OK", "ms": 0, "after": {"WARN_MESSAGE": "few", "WARN_CODE": 10}},
        "late": {"state": "WAIT"},
        "it": {"state": "RUNNING"},
    },
    "edges": [
        {"from": "read.main", "to": "clean.input", "on": "data", "rows": 10},
        {"from": "clean.main", "to": "load.input", "on": "data", "rows": 7},
        {"from": "clean", "to": "tell", "on": "ok", "rows": 0},
    ],
}  # fmt: skip


def measure(type: str, params: dict[str, Any] | None = None, **named: Any) -> Ran:
    return run(type, params or {}, standing=lambda: STANDING, **named)


def test_a_log_catcher_has_a_row_for_each_error_and_warning() -> None:
    ran = measure("log_catcher")
    assert [tuple(row.values()) for row in ran.main] == [
        ("load", "error", "sql", "no table", None),
        ("stop", "die", "die", "enough", 3),
        ("tell", "warning", "warn", "few", 10),
    ]
    assert (ran.result, ran.after) == ({"count": 3}, {"COUNT": 3})


def test_a_log_catcher_catches_only_what_it_is_told_to() -> None:
    assert [row["component"] for row in measure("log_catcher", {"catch": ["die"]}).main] == ["stop"]


def test_a_log_catcher_finds_warnings_among_the_after_variables() -> None:
    ran = run(
        "log_catcher",
        {},
        standing=lambda: {"components": {"w": {"state": "OK"}}, "edges": []},
        globals={"w": {"WARN_MESSAGE": "hm", "WARN_CODE": 1}},
    )
    assert [tuple(row.values()) for row in ran.main] == [("w", "warning", "warn", "hm", 1)]


def test_a_job_in_which_nothing_happened_has_no_rows() -> None:
    for type in ("log_catcher", "flow_meter", "stats"):
        assert run(type, {}).main == []


def test_a_flow_meter_has_a_row_for_each_data_link() -> None:
    assert [tuple(row.values()) for row in measure("flow_meter").main] == [
        ("read.main", "clean.input", 10),
        ("clean.main", "load.input", 7),
    ]
    assert [row["rows"] for row in measure("flow_meter", {"components": ["load"]}).main] == [7]


def test_stats_have_a_row_for_each_component_but_themselves() -> None:
    rows = [tuple(row.values()) for row in measure("stats").main]
    assert rows[:2] == [("read", "OK", 0, 10, 1.5), ("clean", "OK", 10, 10, 2.0)]
    assert [row[0] for row in rows] == ["read", "clean", "load", "stop", "tell", "late"]
    assert [row["component"] for row in measure("stats", {"components": ["load", "nix"]}).main] == ["load"]


def test_the_columns_are_known_before_the_run() -> None:
    assert columns("stats", {}) == {
        "component": "VARCHAR",
        "state": "VARCHAR",
        "rows_in": "BIGINT",
        "rows_out": "BIGINT",
        "ms": "DOUBLE",
    }
    assert list(columns("log_catcher", {}) or {}) == ["component", "severity", "kind", "message", "code"]
    assert list(columns("flow_meter", {}) or {}) == ["source", "target", "rows"]
