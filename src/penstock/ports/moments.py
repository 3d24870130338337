"""Times as people write them: how long ago, or a date."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, tzinfo

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def seconds_in(text: str) -> float | None:
    """From such as `90s`, `12h`, `30d`; None for anything else."""
    with suppress(ValueError, KeyError, IndexError):
        number = float(text[:-1])
        if 0 <= number < 1e9:
            return number * UNITS[text[-1]]
    return None


def moment_of(text: str, now: float, zone: tzinfo | None = UTC) -> float | None:
    """Seconds since the epoch, from such as `2h`, `3d`, `2026-01-31` or `2026-01-31T06:00:00Z`; None for anything else.

    `zone` is that of a date that names none; None is this machine's.
    """
    ago = seconds_in(text)
    if ago is not None:
        return now - ago
    with suppress(ValueError, OverflowError, OSError):
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo is not None or zone is None else found.replace(tzinfo=zone)).timestamp()
    return None
