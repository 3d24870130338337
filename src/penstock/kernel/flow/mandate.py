"""What is decided here: on a fleet a job is decided in several places.

The server decides when sub-jobs start, closes them, and settles what leads from one to another. Whoever holds a sub-job, or some
elements of an iterator, decides what happens inside, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.kernel.fanout import Stretch
from penstock.kernel.flow.state import ComponentState, Death

NOTHING = ""
"""For `only`: no sub-job of the job itself is decided here."""


@dataclass(slots=True)
class Mandate:
    elsewhere: set[str] = field(default_factory=set)
    """Sub-jobs of the job itself that are held by others."""
    only: str | None = None
    """The one sub-job of the job itself that is decided here; None where all are but those elsewhere."""
    stretch: Stretch | None = None
    """The elements of one iterator that are decided here."""
    is_held: bool = False
    """Nothing starts and nothing is skipped for the time being."""
    deaths: list[Death] = field(default_factory=list)
    """What makes the job die, as far as the holder of a part of it was told: the log of that has not come here."""

    @property
    def is_whole(self) -> bool:
        return self.only is None

    def decides(self, subjob: str) -> bool:
        return subjob not in self.elsewhere and self.only in (None, subjob)

    def stretch_of(self, iterator: ComponentState) -> Stretch | None:
        held = self.stretch
        return held if held is not None and held.iterator == iterator.place.id else None
