"""A row of the table: what was measured, what is asked for, and what that makes."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.measuring import Figures


@dataclass(frozen=True)
class Row:
    """`required` and `stretch` are upper limits; a row without them is there to compare with."""

    title: str
    measured: float | None
    unit: str
    required: float | None = None
    stretch: float | None = None
    cpu: float | None = None
    remark: str = ""

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return self.remark or "not measured"
        if self.required is None:
            return ""
        if self.stretch is not None and self.measured <= self.stretch:
            return "reached, stretch too"
        return "reached" if self.measured <= self.required else "MISSED"

    @property
    def is_missed(self) -> bool:
        return self.required is not None and (self.measured is None or self.measured > self.required)


def per_unit(title: str, figures: Figures, required: float | None = None, stretch: float | None = None) -> Row:
    return Row(title, figures.median("ms"), "ms", required, stretch, figures.median("cpu_ms"), figures.wrong or "")


def ratio(title: str, one: Figures, floor: Figures, required: float | None = None, stretch: float | None = None) -> Row:
    """Of the medians of runs that took turns."""
    above, below = one.median("ms"), floor.median("ms")
    value = above / below if above is not None and below else None
    return Row(title, value, "×", required, stretch, remark=one.wrong or floor.wrong or "")
