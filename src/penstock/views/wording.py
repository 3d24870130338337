"""How values, errors and conditions are put into one line."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.kernel.values import Json
from penstock.ports.results import LazyResult, encode

WIDEST_VALUE = 80
WIDEST_GUARD = 160


def shown(value: object, widest: int = WIDEST_VALUE) -> str:
    """A value as JSON, cut short. Stored results are not loaded for this."""
    if isinstance(value, LazyResult):
        return f"a stored result of {value.ref.size:,} bytes"
    if isinstance(value, (Mapping, list, tuple)) and len(value) > 1000:
        return f"{'a list' if not isinstance(value, Mapping) else 'a mapping'} of {len(value):,}"
    try:
        text = encode(value).decode()
    except TypeError:
        text = str(value)
    return shortened(text, widest)


def shortened(text: str, widest: int = WIDEST_VALUE) -> str:
    line = " ".join(text.split())
    return line if len(line) <= widest else line[: widest - 1] + "…"


def condition(guard: str) -> str:
    return f"`{shortened(guard, WIDEST_GUARD)}`"


def error_line(error: Json) -> str:
    """`kind: message`, on one line."""
    if not isinstance(error, dict):
        return shortened(str(error), 300)
    kind, message = error.get("kind"), shortened(str(error.get("message", "")), 300)
    return f"{kind}: {message}" if kind else message


def seconds(value: float) -> str:
    if value < 0.0995:
        return f"{value * 1000:.0f} ms"
    if value < 99.5:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def elements(lo: int, hi: int | None) -> str:
    """`[5]`, `[5] to [9]`; `hi` is one past the last, and None of a page that nobody has read."""
    if hi is None:
        return f"the page that begins at [{lo}]"
    return f"[{lo}] to [{hi - 1}]" if hi - lo > 1 else f"[{lo}]"


def listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " and " + quoted[-1] if quoted else "none"
