"""The results of a loop come out in the order of its elements, however they came in."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.ports import loop_results
from penstock.ports.loop_results import LoopResults
from penstock.ports.results import LazySequence, decode, encode, materialised


def value(results: LoopResults, limit: int = 1_000_000) -> object:
    blobs = MemoryBlobs()
    return results.value(blobs, lambda ref: decode(blobs.get(ref)), limit)


@pytest.mark.parametrize("chunk", [8, 1_000_000])
@pytest.mark.parametrize("seed", range(20))
def test_results_stand_in_the_order_of_the_index_and_late_ones_replace_failures(
    monkeypatch: pytest.MonkeyPatch, seed: int, chunk: int
) -> None:
    monkeypatch.setattr(loop_results, "CHUNK", chunk)
    chance = random.Random(seed)
    wanted = [chance.choice([None, index, "text" * chance.randint(0, 9), {"n": [index]}]) for index in range(30)]
    order = list(range(30))
    chance.shuffle(order)
    failing = {index for index in order if chance.random() < 0.3}
    never = {index for index in order if chance.random() < 0.2}
    results = LoopResults()
    for index in order:
        if index in failing:
            results.fail(index)
        elif index not in never:
            results.add(index, wanted[index])
    last = max(index for index in order if index in failing or index not in never)
    gaps = failing | never
    assert value(results) == [None if index in gaps else wanted[index] for index in range(last + 1)]
    for index in chance.sample(sorted(gaps), len(gaps)):
        if chance.random() < 0.3:
            results.fail(index)
        results.add(index, wanted[index])
    assert value(results) == wanted


@pytest.mark.parametrize("seed", range(20))
def test_ranges_of_results_find_their_places_also_after_somebody_asked_for_what_there_was(seed: int) -> None:
    chance = random.Random(seed)
    wanted: list[Any] = [chance.choice([None, index, [index, index], "a,b"]) for index in range(40)]
    bounds = sorted(chance.sample(range(1, 40), 8))
    ranges = list(zip([0, *bounds], [*bounds, 40], strict=True))
    chance.shuffle(ranges)
    results = LoopResults()
    for lo, hi in ranges:
        if chance.random() < 0.3:
            value(results)
        same = wanted[lo]
        if chance.random() < 0.3:
            wanted[lo:hi] = [same] * (hi - lo)
            results.extend(lo, encode(same), hi - lo, is_same=True)
        else:
            results.extend(lo, encode(wanted[lo:hi])[1:-1], hi - lo)
    assert value(results) == wanted
    assert value(LoopResults.restored(b"".join(results.dumped()))) == wanted


def test_whether_they_go_by_reference_depends_on_their_size_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_results, "CHUNK", 4)
    results = LoopResults()
    for index in range(10):
        results.add(index, index)
    size = len("[0,1,2,3,4,5,6,7,8,9]")
    assert value(results, size) == list(range(10))
    stored = value(results, size - 1)
    assert isinstance(stored, LazySequence)
    assert materialised(stored) == list(range(10))


def test_a_loop_without_iterations_has_an_empty_list() -> None:
    assert value(LoopResults()) == []
