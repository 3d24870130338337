"""How much a document may hold. What an alias repeats counts each time it is repeated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLimits:
    max_bytes: int = 10 * 1024 * 1024
    depth: int = 64
    nodes: int = 100_000
    aliases: int = 100


DEFAULT_LIMITS = SourceLimits()
