"""Every evaluation has a budget of steps and of size, so that an expression ends the same way on any machine.

A step is one turn of a loop times the parts of its body, one element that a word looks at, or 128 characters of text.
Nothing here asks a clock: the same expression over the same values always spends the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.expr.errors import Misuse

MAX_STEPS: Final = 500_000
MAX_TEXT: Final = 10 * 1024 * 1024
MAX_ITEMS: Final = 1_000_000
MAX_RANGE: Final = 10**12
MAX_BITS: Final = 4096
MAX_WIDTH: Final = 10_000

_SCALARS = frozenset({int, float, bool, type(None)})


def check_text(length: int) -> None:
    if length > MAX_TEXT:
        raise Misuse(f"the text would be longer than {MAX_TEXT // (1024 * 1024)} MiB")


def check_items(count: int) -> None:
    if count > MAX_ITEMS:
        raise Misuse(f"the list would have more than {MAX_ITEMS:,} elements")


def check_width(width: int) -> None:
    if width > MAX_WIDTH:
        raise Misuse(f"a width of more than {MAX_WIDTH:,} is not allowed")


def cost_of(value: Any) -> int:
    """What it costs to look at all of a value once."""
    kind = type(value)
    if kind is str:
        return len(value) >> 7
    if kind in _SCALARS:
        return 0
    if isinstance(value, (Mapping, Sequence)):
        return len(value)
    return 0


def deep_size(value: Any, limit: int) -> int:
    """How many values and 128-character pieces of text are inside, counting a shared part every time; stops at `limit`.

    Lists that hold one list many times are small in memory and huge when written out, so memory is no measure.
    """
    count = 0
    stack = [value]
    while stack and count < limit:
        current = stack.pop()
        count += 1
        if type(current) is str:
            count += len(current) >> 7
        elif type(current) in _SCALARS:
            pass
        elif isinstance(current, Mapping):
            stack.extend(current.values())
        elif type(current) is range:
            count += len(current)
        elif isinstance(current, Sequence) and not isinstance(current, (str, bytes)):
            stack.extend(current)
    return count


_NOTHING_SET: dict[str, Any] = {}


def deep_cost_of(value: Any) -> int:
    return deep_size(value, MAX_STEPS + 1)


class Frame:
    """One evaluation: the names it sees, what it may still spend, and the variables its statements have set."""

    __slots__ = ("locals", "lookup", "steps", "written")

    def __init__(self, scope: Any) -> None:
        self.lookup = scope.lookup
        self.steps = MAX_STEPS
        self.written = 0
        self.locals = _NOTHING_SET  # statements replace it and never write into it

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise Misuse(f"the expression needs more than {MAX_STEPS:,} steps; do this work in a task")

    def write(self, characters: int) -> None:
        self.written += characters
        check_text(self.written)
