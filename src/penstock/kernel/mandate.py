"""Which decisions are made here: on a fleet an execution is decided in several places.

The server decides when step runs and sub-jobs start, closes them, and settles the edges between them. The holder of a step run, a
sub-job, or some elements of an iterator decides what happens inside it, and nothing else.
"""

from __future__ import annotations

from dataclasses import field

from penstock.kernel.shards import ElementRange
from penstock.kernel.state import Death, Run
from penstock.kernel.values import mutable

NOTHING = "-"
"""For `only`: no sub-job of the execution itself is decided here."""


@mutable
class Mandate:
    elsewhere: set[str] = field(default_factory=set)
    """Sub-jobs of the execution itself that are held elsewhere."""
    only: str | None = None
    """The one sub-job of the execution itself that is decided here; None if all are except those in `elsewhere`."""
    fan: str = ""
    """The id of the run that `elements` belong to."""
    elements: ElementRange | None = None
    """If set, only these elements of the run `fan` are decided here."""
    starts_nothing: bool = False
    """For the time being no node starts or is skipped, and no part of a fan opens."""
    deaths: list[Death] = field(default_factory=list)
    """What makes the job die, as the server has told a holder, which does not have those facts itself."""

    @property
    def is_whole(self) -> bool:
        return self.only is None

    def decides(self, subjob: str) -> bool:
        return subjob not in self.elsewhere and self.only in (None, subjob)

    def elements_of(self, run: Run) -> ElementRange | None:
        return self.elements if self.elements is not None and self.fan == run.place.id else None
