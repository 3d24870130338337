"""What is known of a word of another engine: where it stands, what it means, and what replaces it.

The one table of them: the door reads documents by it, and the reference page and the JSON Schema are made from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from penstock.dialects.source.edits import Drop, Edit, Move, Path
from penstock.dialects.source.node import SourceNode


class Treatment(Enum):
    ALIAS = "alias"
    """Read as today's word: it means the same."""
    HINT = "hint"
    """Read as today's word, with a warning that shows the rewrite."""
    IGNORED = "ignored"
    """It has no effect, in any engine or in this one, and a warning says so."""
    REFUSED = "refused"
    """An error that names the remedy; where the rewrite is mechanical, `convert` makes it."""


@dataclass(frozen=True, slots=True)
class Here:
    """A mapping in which a word stands."""

    root: SourceNode
    path: Path
    node: SourceNode
    takes: Callable[[str], bool]
    """Does the tool of this task have a parameter of that name?"""

    def under(self, *parts: str | int) -> Path:
        return (*self.path, *parts)

    def text(self, key: str) -> str | None:
        value = self.node.get(key)
        return None if value is None else value.text()


@dataclass(frozen=True, slots=True)
class Reading:
    """What a word in its place is read as: edits in the order in which they are made. Of a refused word they are what `convert`
    would write."""

    edits: tuple[Edit, ...] = ()
    treatment: Treatment | None = None
    """Where this use of the word is treated otherwise than the word."""
    message: str = ""
    hint: str = ""


Rule: TypeAlias = "Callable[[Here], Reading | None]"
"""None: it is today's word that stands there."""

_KEY = re.compile(r"[a-z_]+")


@dataclass(frozen=True, slots=True)
class Alias:
    scope: str
    """`root`, `step`, `loop`, `then`; `task` for every tool, `sql` for those of databases, or the kind of a tool."""
    word: str
    """As it is written. What it begins with is the key by which it is found."""
    meaning: str
    treatment: Treatment
    instead: str
    """Today's word, or what to do."""
    rule: Rule | None = None
    """None for what the door leaves as it is: a parameter of the tool, or a name that expressions know."""
    since: str = "0.2"
    replaces: str = ""
    """A required word in whose place it may stand."""

    @property
    def key(self) -> str:
        found = _KEY.match(self.word)
        return "" if found is None else found[0]


def renamed(word: str, to: str) -> Rule:
    """Today's word under another name. Both at once are a mistake of the author's."""

    def read(here: Here) -> Reading | None:
        if to in here.node.entries:
            return refusal(f"`{word}` and `{to}` are the same, and both are given", "keep one of the two")
        return Reading((move(here, word, to),))

    return read


def move(here: Here, source: str, *target: str) -> Edit:
    return Move(here.under(source), here.under(*target))


def dropped(word: str) -> Rule:
    return lambda here: Reading((Drop(here.under(word)),))


def refused(message: str, hint: str) -> Rule:
    return lambda here: Reading(message=message, hint=hint)


def refusal(message: str, hint: str) -> Reading:
    return Reading((), Treatment.REFUSED, message, hint)
