"""The signals that end the showing of a run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def early_signals() -> Iterator[list[int]]:
    """Notes the signals that arrive before the event loop handles them. Without this, Ctrl-C at the moment in which the loop
    starts would leave a coroutine that nobody awaits, and Python would say so."""
    early: list[int] = []
    before = {number: signal.signal(number, lambda number, _: early.append(number)) for number in SIGNALS}
    try:
        yield early
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
