"""From a place in the net back to a place in the file, for errors that happen when it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.dialects.problems import Place


@dataclass(frozen=True, slots=True)
class SourceMap:
    file: str = ""
    steps: dict[str, Place] = field(default_factory=dict)
    tasks: dict[tuple[str, str], Place] = field(default_factory=dict)
    """(step, label) -> where the task's name stands."""
    arcs: dict[tuple[str, int], Place] = field(default_factory=dict)
    """(step, index of the edge) -> where the arc names its target."""
    keychain: dict[str, Place] = field(default_factory=dict)
    """Keychain entry -> where it is declared, or first used."""
    lines: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """(step, label) -> parameter -> the 1-based line on which the first line of its text stands."""

    def lines_of(self, step: str, label: str) -> dict[str, int]:
        return self.lines.get((step, label), {})
