"""Every evaluation has a budget of steps and of memory, so that an expression ends the same way on any machine.

Law: an operation pays before it runs, for the most it can cost. What it pays depends on the values alone: nothing here asks a
clock or the allocator. A step stands for some 200 nanoseconds: one turn of a loop, one value that is looked at, 128 characters
that are copied, 16 that are converted one by one. A part that is shared counts every time it is walked: lists that hold one list
many times are small in memory and huge when compared or written out.

Freed memory is not credited to the budget: it bounds the sum of what one evaluation allocates.

A server decides on its event loop, and does nothing else meanwhile: the expressions of one decision share a `SharedBudget`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.expr.errors import Misuse

MAX_STEPS: Final = 500_000
DECISION_STEPS: Final = 4 * MAX_STEPS
MAX_MEMORY: Final = 64 * 1024 * 1024
MAX_TEXT: Final = 10 * 1024 * 1024
MAX_ITEMS: Final = 1_000_000
MAX_RANGE: Final = 10**12
MAX_BITS: Final = 4096
MAX_WIDTH: Final = 10_000
# Far below the interpreter's stack limit, so that the result of an expression does not depend on the caller's depth.
MAX_NESTING: Final = 200

# What a value takes besides its content: the slot in a list, the header of a text or list, a mapping with few keys.
SLOT: Final = 8
HEADER: Final = 56
SMALL_MAPPING: Final = 232

_SCALARS = frozenset({int, float, bool, type(None)})
_CONTAINERS = frozenset({list, dict})
_SHORT_NUMBER: Final = 256


def check_text(length: int) -> None:
    if length > MAX_TEXT:
        raise Misuse(f"the text would be longer than {MAX_TEXT // (1024 * 1024)} MiB")


def check_items(count: int) -> None:
    if count > MAX_ITEMS:
        raise Misuse(f"the list would have more than {MAX_ITEMS:,} elements")


def check_width(width: int) -> None:
    if width > MAX_WIDTH:
        raise Misuse(f"a width of more than {MAX_WIDTH:,} is not allowed")


def check_nesting(depth: int) -> None:
    if depth > MAX_NESTING:
        raise Misuse(f"the values are nested too deeply: more than {MAX_NESTING} levels")


def check_depth(value: Any) -> None:
    """Refuses a value that is too deep for later code to walk. Works level by level, so that deep values need no stack."""
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(MAX_NESTING):
        if not level:
            return
        inside: dict[int, Any] = {}  # What is shared is looked at once.
        for one in level:
            parts = one.values() if type(one) is dict else one
            inside.update({id(part): part for part in parts if type(part) in _CONTAINERS})
        level = list(inside.values())
    check_nesting(MAX_NESTING + 1)


def number_cost(number: int) -> int:
    """What it costs to calculate with a whole number or to write it out: both take the square of its length."""
    bits = number.bit_length()
    return (bits >> 7) + (bits * bits >> 17) if bits > _SHORT_NUMBER else 0


def cost_of(value: Any) -> int:
    """What it costs to look at all elements of a value, or all characters or digits, once."""
    kind = type(value)
    if kind is str:
        return len(value) >> 7
    if kind is int:
        return number_cost(value)
    if kind in _SCALARS:
        return 0
    if isinstance(value, (Mapping, Sequence)):
        return len(value)
    return 0


def search_cost(text: str, wanted: str) -> int:
    """What it costs to search one text in another: for short ones Python uses a nested loop."""
    length, width = len(text), len(wanted)
    return (length >> 6) + (length * width >> 8 if length < 30_000 or width < 6 else 0)


def deep_size(value: Any, limit: int) -> int:
    """How many values and 128-character pieces of text are inside, counting a shared part every time; stops at `limit`."""
    count = 1
    stack = [value]
    while stack:
        current = stack.pop()
        kind = type(current)
        if kind is list:
            count += len(current)
            if count < limit:
                stack += [inner for inner in current if type(inner) not in _SCALARS]
        elif kind is str:
            count += len(current) >> 7
        elif kind in _SCALARS:
            continue
        elif kind is range:
            count += len(current)
        elif kind is dict or isinstance(current, Mapping):
            count += len(current)
            if count < limit:
                stack += [inner for inner in current.values() if type(inner) not in _SCALARS]
                count += sum([len(key) >> 7 for key in current if type(key) is str])
        elif isinstance(current, Sequence) and kind is not bytes:
            count += len(current)
            if count < limit:
                stack += [inner for inner in current if type(inner) not in _SCALARS]
        if count >= limit:
            return limit
    return count


class SharedBudget:
    """A scope whose evaluations share one budget, however many they are."""

    __slots__ = ("lookup", "steps")

    def __init__(self, scope: Any, steps: int = DECISION_STEPS) -> None:
        self.lookup = scope.lookup
        self.steps = steps

    def open(self, text: str) -> None:
        """Pays for reading a text, which may be one of very many."""
        self.steps -= _READING + len(text)
        if self.steps < 0:
            raise Misuse(TOGETHER)

    def settle(self, allowed: int, left: int) -> None:
        self.steps -= allowed - left


_READING: Final = 50
TOGETHER: Final = (
    f"the expressions that are looked at together here need more than {DECISION_STEPS:,} steps; do this work in a task"
)
_NOTHING: dict[Any, Any] = {}


class Frame:
    """One evaluation: the names it sees, what it may still spend, and the variables its statements have set."""

    __slots__ = ("locals", "lookup", "memory", "patterns", "steps", "written")

    def __init__(self, scope: Any) -> None:
        self.lookup = scope.lookup
        self.steps = MAX_STEPS if type(scope) is not SharedBudget else min(MAX_STEPS, scope.steps)
        self.memory = MAX_MEMORY
        self.written = 0
        # Both are replaced and never written into.
        self.locals = _NOTHING
        self.patterns = _NOTHING

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise Misuse(f"the expression needs more than {MAX_STEPS:,} steps; do this work in a task")

    @property
    def is_spent(self) -> bool:
        return self.steps < 0 or self.memory < 0

    def hold(self, size: int) -> None:
        """Pays for so many bytes."""
        self.memory -= size
        if self.memory < 0:
            raise Misuse(
                f"the expression needs more than {MAX_MEMORY // (1024 * 1024)} MiB of memory; do this work in a task"
            )

    def text(self, length: int, *sources: str) -> None:
        """Pays for a text of at most so many characters, made of these."""
        check_text(length)
        self.spend(length >> 7)
        self.hold(HEADER + (length if all(map(str.isascii, sources)) else length * 4))

    def items(self, count: int, size: int = SLOT) -> None:
        """Pays for a list of so many elements, or for so many turns; `size` is what each takes in memory."""
        check_items(count)
        self.spend(count)
        self.hold(HEADER + count * size)

    def copies(self, value: Any, count: int) -> None:
        """Pays for a value that will be referenced so many times: a walk through the result visits all of it each time."""
        if count > 0 and type(value) not in _SCALARS:
            self.spend(deep_size(value, self.steps // count + 2) * count)

    def numbers(self, *values: Any) -> None:
        """Pays for calculating with these."""
        for value in values:
            if type(value) is int:
                self.spend(number_cost(value))

    def write(self, characters: int) -> None:
        self.written += characters
        check_text(self.written)
