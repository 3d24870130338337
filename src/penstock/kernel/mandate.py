"""What is decided here: on a fleet an execution is decided in several places.

The server decides when step runs and sub-jobs start, closes them, and settles what leads from one to another. Whoever holds a
step run, a sub-job, or some elements of an iterator, decides what happens inside, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.kernel.shards import ElementRange
from penstock.kernel.state import Death, Run

NOTHING = "-"
"""For `only`: no sub-job of the execution itself is decided here."""


@dataclass(slots=True)
class Mandate:
    elsewhere: set[str] = field(default_factory=set)
    """Sub-jobs of the execution itself that are held by others."""
    only: str | None = None
    """The one sub-job of the execution itself that is decided here; None where all are but those elsewhere."""
    fan: str = ""
    elements: ElementRange | None = None
    """Of the fan of this run only these elements are decided here."""
    is_held: bool = False
    """Nothing starts and nothing is skipped for the time being."""
    deaths: list[Death] = field(default_factory=list)
    """What makes the job die, as far as the holder of a part of it was told: the log of that has not come here."""

    @property
    def is_whole(self) -> bool:
        return self.only is None

    def decides(self, subjob: str) -> bool:
        return subjob not in self.elsewhere and self.only in (None, subjob)

    def elements_of(self, run: Run) -> ElementRange | None:
        return self.elements if self.elements is not None and self.fan == run.place.id else None
