"""Back-pressure: a limit slows a sender down and never stops a job."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.data.queues import PortQueue, QueueClosed, pump


def fill(queue: PortQueue[list[int]], batches: list[list[int]]) -> None:
    for batch in batches:
        queue.put(batch, len(batch))
    queue.end()


@pytest.mark.clause("J10.3")
def test_with_no_consumer_yet_what_is_above_the_limit_goes_to_disk_in_order(tmp_path: Path) -> None:
    queue: PortQueue[list[int]] = PortQueue(10, None, tmp_path / "spill")
    batches = [[number] * 4 for number in range(20)]
    fill(queue, batches)
    assert (queue.waits, queue.peak_rows) == (0, 8)
    assert queue.spilled_bytes > 0
    assert list(queue.take()) == batches
    assert list((tmp_path / "spill").iterdir()) == []


@pytest.mark.clause("J10.3")
def test_with_a_consumer_the_sender_waits_until_some_was_taken(tmp_path: Path) -> None:
    queue: PortQueue[list[int]] = PortQueue(10, None, tmp_path)
    taken = queue.take()
    consumer_may_go = threading.Event()
    found: list[list[int]] = []

    def consume() -> None:
        consumer_may_go.wait(10)
        found.extend(taken)

    consumer = threading.Thread(target=consume)
    consumer.start()
    batches = [[number] * 4 for number in range(50)]
    sender = threading.Thread(target=fill, args=(queue, batches))
    sender.start()
    while not queue.waits:
        assert sender.is_alive()
    # It waits with two batches in the queue: a third would be above the limit.
    assert queue.peak_rows == 8
    consumer_may_go.set()
    consumer.join(10)
    sender.join(10)
    assert found == batches
    assert queue.peak_rows <= 10
    assert queue.spilled_bytes == 0


@pytest.mark.clause("J10.3")
@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_sizes_and_whoever_comes_first_everything_arrives_in_order(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    most_rows = chance.choice([None, 1, 5, 50])
    queue: PortQueue[list[int]] = PortQueue(most_rows, chance.choice([None, 10, 300]), tmp_path)
    batches = [[number] * chance.choice([0, 1, 3, 10, 80]) for number in range(200)]
    early = chance.randint(0, 200)

    def send() -> None:
        for number, batch in enumerate(batches):
            if number == early:
                consumer.start()
            queue.put(batch, len(batch), 8 * len(batch))
        queue.end()

    found: list[list[int]] = []
    consumer = threading.Thread(target=lambda: found.extend(queue.take()))
    sender = threading.Thread(target=send)
    sender.start()
    sender.join(30)
    assert not sender.is_alive()
    if early == 200:
        consumer.start()
    consumer.join(30)
    assert found == batches
    assert list(tmp_path.iterdir()) == []


@pytest.mark.clause("J10.3")
def test_a_batch_larger_than_the_limit_passes_alone(tmp_path: Path) -> None:
    queue: PortQueue[list[int]] = PortQueue(2, None, tmp_path)
    found: list[list[int]] = []
    pump(queue, (([number] * 100, 100, 0) for number in range(5)), found.extend)
    assert found == [[number] * 100 for number in range(5)]
    assert queue.peak_rows == 100


@pytest.mark.clause("J10.3")
def test_a_sender_and_a_consumer_in_one_thread_never_wait_for_each_other(tmp_path: Path) -> None:
    queue: PortQueue[list[int]] = PortQueue(1, None, tmp_path)
    taken = queue.take()
    found = []
    for number in range(10):
        for part in range(3):
            queue.put([number, part], 2)
        found += [next(taken), next(taken)]
    queue.end()
    found += taken
    assert found == [[number, part] for number in range(10) for part in range(3)]


def test_a_consumer_that_leaves_releases_the_sender_and_cleans_up(tmp_path: Path) -> None:
    queue: PortQueue[list[int]] = PortQueue(2, None, tmp_path)
    for number in range(5):
        queue.put([number, number], 2)
    taken = queue.take()
    assert next(taken) == [0, 0]
    taken.close()  # type: ignore[attr-defined]
    with pytest.raises(QueueClosed):
        queue.put([1], 1)
    assert list(tmp_path.iterdir()) == []


def test_a_consumer_that_fails_fails_the_sender(tmp_path: Path) -> None:
    queue: PortQueue[list[int]] = PortQueue(2, None, tmp_path)

    def consume(batches: Iterator[list[int]]) -> None:
        next(batches)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        pump(queue, (([1, 2], 2, 0) for _ in range(1000)), consume)


def test_a_sender_that_fails_fails_the_consumer(tmp_path: Path) -> None:
    queue: PortQueue[list[int]] = PortQueue(2, None, tmp_path)
    seen: list[list[int]] = []

    def batches() -> Iterator[tuple[list[int], int, int]]:
        yield [1], 1, 0
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        pump(queue, batches(), seen.extend)
    assert seen in ([], [[1]])


def test_a_queue_has_one_consumer_and_an_end(tmp_path: Path) -> None:
    queue: PortQueue[list[int]] = PortQueue(None, None, tmp_path)
    queue.end()
    assert list(queue.take()) == []
    with pytest.raises(RuntimeError, match="this queue has a consumer already"):
        queue.take()
