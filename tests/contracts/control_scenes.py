"""A control store to play scenes on, as several processes see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import TypeVar

import pytest

from penstock.ports.control import ControlStore, Filed, Hook, Schedule

T = TypeVar("T")

ANY_TEXT = "ä 🚰 \u0000\u001a0\u001a1 \r\n\t'\"\\ {{ x }} \u2028"
NIGHTLY = Schedule("nightly", "0 2 * * *", "sales/orders")
PUSHED = Hook("pushed", "sales/orders")


class ControlScenes(ABC):
    """`open_control` opens the same store each time it is called within a test, as another process would."""

    @abstractmethod
    def open_control(self) -> ControlStore: ...

    @abstractmethod
    def pass_time(self, seconds: float) -> None: ...

    @contextmanager
    def opened(self) -> Iterator[ControlStore]:
        control = self.open_control()
        try:
            yield control
        finally:
            control.close()

    @pytest.fixture
    def control(self) -> Iterator[ControlStore]:
        with self.opened() as control:
            yield control

    @pytest.fixture
    def other(self) -> Iterator[ControlStore]:
        """Another process on the same store."""
        with self.opened() as control:
            yield control


def filed(control: ControlStore, path: str = "sales/orders", text: str = "one", by: str = "") -> Filed:
    return control.file(path, text, "playbook", f"digest of {text}", {}, by)


def at_once(count: int, call: Callable[[int], T]) -> list[T]:
    """`call(0)` to `call(count - 1)`, each in a thread of its own, all starting together."""
    start = Barrier(count)

    def one(number: int) -> T:
        start.wait(30)
        return call(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(one, range(count)))
