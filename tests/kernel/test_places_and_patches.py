"""Places, logical clocks and the merging of writes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from penstock.kernel.patches import Staged, applied, assign
from penstock.kernel.places import Place, child_place, iteration_place, next_paths, run_place
from penstock.kernel.state import Bitmap


def test_a_chain_counts_hops_in_one_number() -> None:
    assert next_paths((41,), 1) == [(42,)]


def test_a_fork_gives_all_but_the_last_branch_numbers_of_their_own() -> None:
    assert next_paths((5,), 3) == [(5, 0, 0), (5, 1, 0), (6,)]


def test_a_run_that_fires_nothing_leads_nowhere() -> None:
    assert next_paths((5,), 0) == []


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(0, 2**32))
def test_paths_are_unique_and_a_run_sorts_after_the_one_that_led_to_it(fans: list[int], seed: int) -> None:
    order = random.Random(seed)
    open_paths, seen = [(0,)], {(0,)}
    for fan in fans:
        if not open_paths:
            break
        parent = open_paths.pop(order.randrange(len(open_paths)))
        for child in next_paths(parent, fan):
            assert child > parent
            assert child not in seen
            seen.add(child)
            open_paths.append(child)


def test_places_say_where_a_scope_stands() -> None:
    run = run_place(Place("", ()), "fetch", (2, 0, 1))
    iteration = iteration_place(run, 3, 5)
    child = child_place("fetch@2.0.1[5]/call#1", (*iteration.clock, 2))
    inner = run_place(child, "start", (0,))
    assert (run.id, iteration.id, inner.id) == ("fetch@2.0.1", "fetch@2.0.1[5]", "fetch@2.0.1[5]/call#1/start@0")
    assert run.clock < iteration.clock < inner.clock


def test_dotted_keys_reach_into_mappings_without_touching_the_original() -> None:
    before = {"a": {"b": 1, "c": 2}}
    after = applied(before, {"ctx": {"a.b": 9, "x.y.z": 1}})
    assert after == {"a": {"b": 9, "c": 2}, "x": {"y": {"z": 1}}}
    assert before == {"a": {"b": 1, "c": 2}}


def test_a_mapping_replaces_what_was_no_mapping() -> None:
    target: dict[str, object] = {"a": 5}
    assign(target, "a.b", 1)  # type: ignore[arg-type]
    assert target == {"a": {"b": 1}}


def test_a_later_write_in_one_scope_replaces_the_earlier_one() -> None:
    staged = Staged()
    staged.add({"ctx": {"k": 1}})
    staged.add({"ctx": {"k": 2}, "append": {"l": [1]}})
    staged.add({"append": {"l": [2]}})
    assert staged.applied_to({}) == {"k": 2, "l": [1, 2]}


@given(st.lists(st.integers(0, 400), unique=True))
def test_a_bitmap_knows_its_members_and_the_lowest_that_is_missing(indexes: list[int]) -> None:
    bitmap = Bitmap()
    for index in indexes:
        bitmap.add(index)
    held = set(indexes)
    assert {index for index in range(402) if index in bitmap} == held
    assert bitmap.low == next(index for index in range(402) if index not in held)
    for index in indexes[: len(indexes) // 2]:
        bitmap.discard(index)
        held.discard(index)
    assert {index for index in range(402) if index in bitmap} == held
