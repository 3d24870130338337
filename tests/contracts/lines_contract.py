"""What every store of lines keeps to. An adapter's test class inherits this and says how one is opened."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.kernel.values import JsonMap
from penstock.ports.lines import Line, LineStore


def said(count: int, word: str = "line", first: int = 0) -> list[Line]:
    return [Line(1000.5 + n, "load@0", f"load@0/print#{n}", f"{word} {n}") for n in range(first, first + count)]


def told(count: int, word: str = "line", first: int = 0) -> list[JsonMap]:
    """The same as it is read."""
    return [line.record() for line in said(count, word, first)]


def starting(records: list[JsonMap], word: str) -> list[JsonMap]:
    return [record for record in records if str(record["line"]).startswith(word)]


def in_threads(*works: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class LinesContract(ABC):
    @abstractmethod
    def opened(self) -> LineStore:
        """On the same store each time it is called within a test, as another process would open it."""

    @contextmanager
    def store(self) -> Iterator[LineStore]:
        store = self.opened()
        try:
            yield store
        finally:
            store.close()

    def test_lines_are_read_as_they_were_said_and_in_that_order(self) -> None:
        with self.store() as store:
            store.append("run-1", said(3))
            store.append("run-1", said(2, first=3))
            store.flush()
            assert store.read("run-1") == told(5)

    def test_lines_are_counted_from_any_number_on(self) -> None:
        with self.store() as store:
            assert store.count("run-1") == 0
            store.append("run-1", [*said(25), Line(1.0, "", None, "long " * 500_000), *said(2)])
            store.append("run-2", said(3))
            store.flush()
            assert [store.count("run-1", after) for after in range(29)] == [28] * 29
            assert store.count("run-2") == 3
            store.append("run-1", said(1))
            store.flush()
            assert store.count("run-1", 28) == 29
            store.read("run-1", 0, 5)
            assert store.count("run-1", 5) == 29

    def test_reading_goes_on_behind_any_number(self) -> None:
        with self.store() as store:
            store.append("run-1", said(25))
            store.flush()
            assert [store.read("run-1", after) for after in range(27)] == [told(25)[after:] for after in range(27)]

    def test_reading_page_by_page_gives_each_line_once(self) -> None:
        with self.store() as store:
            store.append("run-1", said(23))
            store.flush()
            found: list[JsonMap] = []
            while page := store.read("run-1", len(found), limit=5):
                assert len(page) <= 5
                found += page
            assert found == told(23)
            assert store.read("run-1", 0, limit=0) == []

    def test_a_follower_sees_what_is_said_later(self) -> None:
        with self.store() as store, self.store() as reader:
            seen: list[JsonMap] = []
            for turn in range(4):
                store.append("run-1", said(3, f"turn {turn}"))
                store.flush()
                seen += reader.read("run-1", len(seen))
            assert seen == [record for turn in range(4) for record in told(3, f"turn {turn}")]

    def test_executions_do_not_see_each_others_lines(self) -> None:
        with self.store() as store:
            for name in ("run-1", "run-10", "run-2"):
                store.append(name, said(2, name))
            store.append("run-1", said(1, "again"))
            store.flush()
            assert store.read("run-1") == [*told(2, "run-1"), *told(1, "again")]
            assert store.read("run-10") == told(2, "run-10")

    def test_an_execution_that_has_said_nothing_has_no_lines(self) -> None:
        with self.store() as store:
            store.append("run-1", [])
            store.flush()
            for name in ("run-1", "unknown", "", "..", "a/b", "nul\0"):
                assert store.read(name) == []

    def test_what_other_processes_said_before_is_there(self) -> None:
        with self.store() as first:
            first.append("run-1", said(2))
        with self.store() as second:
            second.append("run-1", said(2, first=2))
            second.flush()
            assert second.read("run-1") == told(4)

    def test_two_that_write_to_one_execution_lose_nothing_and_keep_their_own_order(self) -> None:
        with self.store() as left, self.store() as right:

            def talk(store: LineStore, word: str) -> None:
                for n in range(40):
                    store.append("run-1", said(3, word, 3 * n))
                    if n % 10 == 0:
                        store.flush()
                store.flush()

            in_threads(lambda: talk(left, "left"), lambda: talk(right, "right"))
            found = left.read("run-1")
            assert len(found) == 240
            assert starting(found, "left") == told(120, "left")
            assert starting(found, "right") == told(120, "right")

    def test_lines_may_come_from_any_thread(self) -> None:
        with self.store() as store:

            def talk(word: str) -> None:
                for n in range(50):
                    store.append("run-1", said(1, word, n))

            in_threads(*(lambda word=word: talk(word) for word in "abcd"))
            store.flush()
            found = store.read("run-1")
            assert [starting(found, word) for word in "abcd"] == [told(50, word) for word in "abcd"]

    def test_any_text_is_kept_without_breaking_those_around_it(self) -> None:
        texts = ["", "two\nlines", "tab\t and 'quotes' \"here\"", "naïve ☃ 𝄞", "\r", "{}", "x" * 10_000]
        strange = ["a\0b", "half \ud800 of a pair"]
        with self.store() as store:
            store.append("run-1", [Line(1.0, "", None, text) for text in (*texts, *strange, "end")])
            store.flush()
            found = [record["line"] for record in store.read("run-1")]
            assert found[: len(texts)] == texts
            assert (len(found), found[-1]) == (len(texts) + len(strange) + 1, "end")

    def test_what_is_dropped_has_been_said_by_nobody_and_the_others_keep_theirs(self) -> None:
        with self.store() as store:
            for name in ("run-1", "run-2", "run-3"):
                store.append(name, said(2, name))
            store.flush()
            store.drop(["run-1", "run-3", "unknown", "../run-2", ""])
            store.drop([])
            assert [store.read("run-1"), store.read("run-3")] == [[], []]
            assert store.read("run-2") == told(2, "run-2")
            store.append("run-1", said(1))
            store.flush()
            assert store.read("run-1") == told(1)

    def test_closing_keeps_what_was_waiting_and_can_be_done_twice(self) -> None:
        with self.store() as store, self.store() as other:
            store.append("run-1", said(500))
            store.close()
            store.close()
            assert other.read("run-1") == told(500)

    def test_many_lines_of_many_executions(self) -> None:
        with self.store() as store:
            for n in range(300):
                store.append(f"run-{n % 30}", said(10, "x", 10 * (n // 30)))
            store.flush()
            for n in range(30):
                assert store.read(f"run-{n}") == told(100, "x")
