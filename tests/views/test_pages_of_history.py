"""Pages of events and lines, filtered; parts of large values; what differs between two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.ports.log import Header
from penstock.views import history
from penstock.views.compare import first_difference, node_differences, value_differences
from penstock.views.history import Filter, Place, cause_page_of, event_page_of, line_page_of, node_at
from penstock.views.values import Part, Value, Values, cut, shown_values
from tests.chaos.engines import RUN, MemoryHome
from tests.views.test_folded import Long
from tests.views.test_run_view import logs

HEADER = Header("run", "playbook", "p", "p.yaml", "", "running", 1000.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def header(log: Long) -> Header:
    return Header("run", "playbook", "p", "p.yaml", "", "running", 1000.0, last_seq=len(log.entries))


def pages(log: Long, limit: int, wanted: Filter) -> list[int]:
    found: list[int] = []
    after: int | None = 0
    while after is not None:
        page: Any = event_page_of(log, header(log), after, limit, wanted)
        assert len(page["events"]) <= limit
        assert page["scanned"] <= history.MOST_SCANNED
        found += [event["seq"] for event in page["events"]]
        after = page["next"]
    return found


@pytest.mark.parametrize("limit", [1, 7, 200])
def test_pages_of_events_have_every_event_once(limit: int) -> None:
    log = Long(30)
    assert pages(log, limit, Filter()) == [entry.seq for entry in log.entries]


def test_pages_that_are_filtered_have_every_event_that_is_wanted_once() -> None:
    log = Long(6_000)  # More than are looked at for one page.
    failed = [entry.seq for entry in log.entries if entry.type == "loop.iteration.failed"]
    assert pages(log, 1_000, Filter(frozenset({"loop.iteration.failed"}))) == failed
    of_one = [entry.seq for entry in log.entries if entry.scope == "a@0[5999]"]
    assert pages(log, 1_000, Filter(place=Place.read("a[5999]"))) == of_one
    assert len(pages(log, 1_000, Filter(text="no"))) > len(failed)


@pytest.mark.parametrize(
    ("place", "scope", "is_held"),
    [
        ("fetch", "fetch@2", True),
        ("fetch", "fetch@2[5]", True),
        ("fetch", "call@1/run#1/fetch@0", True),
        ("fetch", "fetcher@2", False),
        ("fetch@2", "fetch@2[5]", True),
        ("fetch@2", "fetch@20", False),
        ("fetch[5]", "fetch@2[5]", True),
        ("fetch[5]", "fetch@2[55]", False),
        ("load", "each[#3].load", True),
        ("each", "each[#3].load", True),
        ("each[#3]", "each[#3].load", True),
        ("each[#3]", "each[#31].load", False),
        ("call@1/", "call@1/run#1/fetch@0", True),
    ],
)
def test_a_place_is_a_node_a_run_an_iteration_or_a_scope(place: str, scope: str, is_held: bool) -> None:
    found = Place.read(place)
    assert found is not None
    assert found.holds(scope) is is_held


@pytest.mark.parametrize(
    ("scope", "node"),
    [
        ("", None),
        ("fetch@2[5]", "fetch"),
        ("call@1/run#1/fetch@0", "fetch"),
        ("each[#3].load", "load"),
        ("each[#3]", "each"),
        ("<load>", None),
        ("j.__a", "j.__a"),
        ("it[#3].__a", "it.__a"),
    ],
)
def test_the_node_that_a_scope_lies_in(scope: str, node: str | None) -> None:
    assert node_at(scope) == node


@pytest.mark.parametrize("kind", ["playbook", "job"])
def test_the_cause_of_an_event_is_found_before_it(folder: Path, kind: str) -> None:
    home = logs(folder, kind, 0)[0]
    log = MemoryLog(home.store)
    caused = [entry for entry in home.entries() if entry.cause is not None]
    assert caused
    for entry in caused:
        page: Any = cause_page_of(log, Header(RUN, kind, "", "", "", "running", 0.0), entry.seq)
        (event,) = page["events"]
        assert event["event_id"] == f"{RUN}/{entry.cause}"
        assert event["seq"] < entry.seq


def test_lines_are_paged_by_number_and_filtered_by_node_and_time() -> None:
    said = [{"ts": float(n), "scope": f"{'ab'[n % 2]}@0", "task_run_id": None, "line": str(n)} for n in range(2_500)]

    def read(after: int, limit: int) -> list[Any]:
        return said[after : after + limit]

    found: list[Any] = []
    after: int | None = 0
    while after is not None:
        page: Any = line_page_of(read, after, 300, Place.read("b"), None)
        found += page["lines"]
        after = page["next"]
    assert [line["number"] for line in found] == list(range(2, 2_501, 2))
    assert {line["node"] for line in found} == {"b"}
    early: Any = line_page_of(read, 0, 1_000, None, 9.0)
    assert [line["line"] for line in early["lines"]] == [str(n) for n in range(10)]
    assert early["next"] is None


# ---- values


def get(value: Any, only: str | None = "v", **part: Any) -> Any:
    found = Values(None, None, [], [Value("v", "value", lambda: value)])
    answer: Any = shown_values(found, lambda ref: None, only, Part(**part))
    return answer["values"][0]


def test_a_large_value_is_cut_and_every_part_of_it_can_be_had() -> None:
    rows = [{"n": n, "text": "x" * 50} for n in range(1_000)]
    first = get(rows, None)
    assert (first["is_whole"], first["total"], len(first["value"])) == (False, 1_000, 100)
    pieces = [one for offset in range(0, 1_000, 300) for one in get(rows, offset=offset, limit=300)["value"]]
    assert pieces == rows
    assert get({"a/b": {"c": rows}}, path="/a~1b/c/999/n")["value"] == 999
    nested = get({"small": 1, "large": rows})
    assert nested["value"] == {"small": 1, "large": {"$more": {"kind": "list", "total": 1_000}}}
    text = get("y" * 100_000, offset=99_990)
    assert (text["value"], text["total"]) == ("y" * 10, 100_000)


def test_a_small_value_is_whole() -> None:
    assert get([1, 2, 3]) == {"id": "v", "title": "value", "value": [1, 2, 3], "size": 7, "is_whole": True, "total": 3}
    assert cut(7, Part(), 1) == (7, None)


# ---- comparing


def test_values_differ_by_their_paths() -> None:
    left, right = {"a": {"b": [1, 2]}, "c": 1, "same": 0}, {"a": {"b": [1, 3, 4]}, "d": None, "same": 0}
    assert value_differences(left, right) == [
        {"path": "a.b[1]", "left": 2, "right": 3},
        {"path": "a.b[2]", "left": None, "right": 4},
        {"path": "c", "left": 1, "right": None},
        {"path": "d", "left": None, "right": None},
    ]


def test_a_run_differs_from_itself_in_nothing(folder: Path) -> None:
    for kind in ("playbook", "job"):
        home = logs(folder, kind, 0)[0]
        side = (MemoryLog(home.store), RUN, len(home.entries()))
        assert first_difference(side, side) == (None, True)


def test_the_first_difference_names_the_events_of_both_runs(folder: Path) -> None:
    def side(home: MemoryHome) -> Any:
        return MemoryLog(home.store), RUN, len(home.entries())

    one, other = (logs(folder, "playbook", seed)[0] for seed in (0, 2))
    found, is_complete = first_difference(side(one), side(other))
    assert is_complete
    assert found is not None
    assert found["left_seq"] is not None or found["right_seq"] is not None
    assert found["left"] or found["right"]


def test_nodes_differ_in_what_people_notice() -> None:
    node = {"status": "ok", "runs": 1, "error": None, "attempt": 1, "rows_in": {}, "rows_out": {"main": 3}, "ms": 10.0}
    slow = {**node, "ms": 1_000.0, "rows_out": {"main": 4}, "attempt": 2}
    found = node_differences({"a": node, "b": node}, {"a": slow, "c": node})
    assert [(one["node"], one["differs"]) for one in found] == [
        ("a", ["attempts", "rows", "time"]),
        ("b", ["status"]),
        ("c", ["status"]),
    ]
