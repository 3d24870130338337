"""What a converter is: something that recognises a file of a tool, and says what it is as documents of ours.

Law: a converter invents nothing. What it cannot carry over it names, and what could mean two things it leaves to the author.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol


class Became(Enum):
    REWRITTEN = "rewritten"
    DECIDE = "needs a decision"
    LOST = "cannot be carried over"


@dataclass(frozen=True, slots=True)
class Remark:
    """What became of one thing in the file. Line 0 is the file as a whole."""

    became: Became
    line: int
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Converted:
    text: str
    """The document in today's words."""
    remarks: tuple[Remark, ...] = ()

    @property
    def is_whole(self) -> bool:
        return all(remark.became is Became.REWRITTEN for remark in self.remarks)


class Converter(Protocol):
    name: str
    """The tool whose files it reads."""

    def recognises(self, path: Path, text: str) -> bool:
        """Is it a file of that tool? Asked of every file, so it should look no further than it has to."""
        ...

    def convert(self, path: Path, text: str) -> Converted: ...
