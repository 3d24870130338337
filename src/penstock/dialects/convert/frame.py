"""What a converter is: something that recognises a file of a tool, and says what it is as documents of ours.

Law: a converter invents nothing. What it cannot carry over it names, and what could mean two things it leaves to the author.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from penstock.kernel.errors import Unavailable

GROUP = "penstock.converters"
"""The entry points by which a package brings converters along: each a class that is made without arguments."""


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


@cache
def installed() -> tuple[Converter, ...]:
    """Those that packages bring come before our own: they may know a file better."""
    from penstock.dialects.convert.playbooks import PlaybookConverter  # It loads a parser that only `convert` needs.

    return (*_brought(), PlaybookConverter())


def _brought() -> Iterator[Converter]:
    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        try:
            made: Converter = entry.load()()
        except Exception as error:  # Code of a package that is not ours fails as it likes.
            raise Unavailable(
                f"the converter `{entry.name}` cannot be loaded: {type(error).__name__}: {error}",
                "repair or remove the package that brings it",
            ) from error
        yield made


def converter_for(path: Path, text: str) -> Converter | None:
    return next((one for one in installed() if one.recognises(path, text)), None)
