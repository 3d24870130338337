"""The tree of a YAML document: every value has its position in the file.

A value reached through an alias or a merge is the anchored node itself, so its position is where it was written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import field
from functools import lru_cache
from typing import Literal

from penstock.dialects.problems import Position
from penstock.kernel.values import Json, frozen, mutable


@mutable
class SourceNode:
    """A value and its position. Mappings keep the position of each key as well as of each value."""

    kind: Literal["mapping", "sequence", "scalar"]
    position: Position
    value: Json = None
    """Scalars only: the resolved value."""
    items: list[SourceNode] = field(default_factory=list)
    entries: dict[str, SourceNode] = field(default_factory=dict)
    keys: dict[str, Position] = field(default_factory=dict)
    text_line: int = 0
    """Scalars: the 1-based line on which the first line of the content stands (one below `|` for block scalars)."""
    text_column: int = 0
    """Scalars: the 1-based column at which the content's first character stands."""
    style: str = ""
    """Scalars: "" plain, "'" or '"' quoted, "|" or ">" block."""
    end_line: int = 0
    """The 1-based line on which the value ends."""

    def get(self, key: str) -> SourceNode | None:
        """The value of a key; None when there is no such key or this is not a mapping."""
        return self.entries.get(key)

    def text(self) -> str | None:
        """The value when it is text, else None."""
        return self.value if isinstance(self.value, str) else None

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and self.value is None

    @property
    def noun(self) -> str:
        """What the value is, in the words of a message: "a mapping", "a list", "text", "a number" …"""
        if self.kind != "scalar":
            return "a mapping" if self.kind == "mapping" else "a list"
        if self.value is None:
            return "nothing"
        if isinstance(self.value, bool):
            return f"`{str(self.value).lower()}`"
        return "text" if isinstance(self.value, str) else "a number"

    @property
    def shown(self) -> str:
        """The value itself if it is a number or a text, else its kind."""
        return (
            f"`{self.value}`"
            if isinstance(self.value, str | int | float) and not isinstance(self.value, bool)
            else self.noun
        )


def to_json(node: SourceNode) -> Json:
    """The value without its places. Aliased values are copied, so changing one never changes another."""
    if node.kind == "mapping":
        return {key: to_json(value) for key, value in node.entries.items()}
    if node.kind == "sequence":
        return [to_json(item) for item in node.items]
    return node.value


# The breaks the parser counts; `str.splitlines` would also break at form feeds and separators.
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@lru_cache(maxsize=4)
def lines_of(text: str) -> tuple[str, ...]:
    """The lines as the parser numbers them, without their breaks."""
    return tuple(_BREAK.split(text))


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_LONGEST_KEY = 40


def path_part(step: str | int) -> str:
    """One step of a path: `[3]`, `.kind`, or `["two words"]`."""
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_NAME.match(step) and len(step) <= _LONGEST_KEY:
        return f".{step}"
    shown = step if len(step) <= _LONGEST_KEY else step[: _LONGEST_KEY - 1] + "…"
    return '["' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"]'


class Paths:
    """From a place in the file to a path in the document, such as `workflow[2].tool[0].kind`.

    Steps are kept, not texts: a text per node would let one long key fill the memory.
    """

    def __init__(self, root: SourceNode) -> None:
        self._steps: list[tuple[int, str | int]] = [(-1, "")]
        self._exact: dict[tuple[int, int, int], int] = {}
        marks: list[tuple[int, int, int]] = []
        seen: set[int] = set()
        waiting: list[tuple[SourceNode, int]] = [(root, 0)]
        while waiting:
            node, here = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            self._mark(marks, node.position, here)
            children: list[tuple[SourceNode, int]] = []
            for index, item in enumerate(node.items):
                children.append((item, self._step(here, index)))
            for key, value in node.entries.items():
                child = self._step(here, key)
                self._mark(marks, node.keys[key], child)
                children.append((value, child))
            # Reversed, so that an anchor is met before its aliases and the first path to a value wins.
            waiting.extend(reversed(children))
        marks.sort()
        self._marks = marks

    def at(self, position: Position) -> str:
        """The path of the value or key at that place, or of the one that contains it; "" for the whole document."""
        here = self._exact.get((position.line, position.column, position.end_column))
        if here is None:
            index = bisect_right(self._marks, (position.line, position.column, len(self._steps)))
            here = self._marks[index - 1][2] if index else 0
        parts: list[str] = []
        while here > 0:
            here, step = self._steps[here]
            parts.append(path_part(step))
        return "".join(reversed(parts)).removeprefix(".")

    def _step(self, parent: int, step: str | int) -> int:
        self._steps.append((parent, step))
        return len(self._steps) - 1

    def _mark(self, marks: list[tuple[int, int, int]], position: Position, here: int) -> None:
        span = (position.line, position.column, position.end_column)
        # Keys that came through a merge stand where they were first written, and were marked there.
        if span not in self._exact:
            self._exact[span] = here
            marks.append((position.line, position.column, here))


# ---- Limits: what an alias repeats counts each time


@frozen
class SourceLimits:
    max_bytes: int = 10 * 1024 * 1024
    depth: int = 64
    nodes: int = 100_000
    aliases: int = 100


DEFAULT_LIMITS = SourceLimits()
