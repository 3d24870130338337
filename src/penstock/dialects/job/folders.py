"""Which folder the relative paths of each component begin at: that of the document they are written in (D56)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from penstock.dialects.job.expand import Expanded
from penstock.dialects.job.joblets import Whole
from penstock.ports.folders import Base, whole_folder


@dataclass(frozen=True, slots=True)
class Folders:
    job: Path
    bases: Mapping[str, Base] = field(default_factory=dict)

    def of(self, component: str, render: Callable[[str], Any]) -> Path:
        base = self.bases.get(component)
        return self.job if base is None else base.rendered(render)


def find_bases(expanded: Expanded, file: str, whole: Whole = whole_folder) -> dict[str, Base]:
    """Component -> where its paths begin, for those that differ from the job's own file."""

    @cache
    def folder(document: str) -> Path:
        # Whole and without links, as the run has the job's own.
        return Path(whole(str(Path(document).parent)))

    found: dict[str, Base] = {}
    for name, unit in expanded.units.items():
        own = folder(unit.level.file)
        borrowed = tuple((text, folder(lender)) for text, lender in unit.borrowed if folder(lender) != own)
        if borrowed or own != folder(file):
            found[name] = Base(own, borrowed)
    return found
