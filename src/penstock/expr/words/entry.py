"""What an entry in the table of words is, and how it is called: paid for first, refused when the value does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from penstock.expr.budget import HEADER, SLOT, Frame, cost_of
from penstock.expr.values import MISSING

WordKind: TypeAlias = Literal["filter", "test", "function", "method"]


class Entry(Struct, frozen=True):
    """`run` takes the value first (functions: their first argument), and before it the frame when `framed`.

    A call pays for looking at all elements and characters of its arguments once, and for a result of that size. A word that
    does more, or makes more, is `framed` and pays for that itself, before it does it.

    ours       Jinja has no such word
    cheap      costs the same whatever the size of the value
    slow       costs more than others before it looks at anything: dates, encodings
    undefined  is asked about undefined values too; all other words give undefined for undefined
    """

    name: str
    kind: WordKind
    run: Callable[..., Any]
    summary: str
    ours: bool = False
    cheap: bool = False
    slow: bool = False
    undefined: bool = False
    framed: bool = False

    def parameters(self) -> tuple[tuple[str, ...], int, bool, bool]:
        """The names of the arguments, how many of them are required, and whether more may come by place or by name."""
        code = self.run.__code__
        skipped = (0 if self.kind == "function" else 1) + self.framed
        names = code.co_varnames[skipped : code.co_argcount]
        required = len(names) - len(self.run.__defaults__ or ())
        return names, max(0, required), bool(code.co_flags & 0x04), bool(code.co_flags & 0x08)

    def signature(self) -> str:
        """How it is written, for the reference: `replace(old, new, count=none)`."""
        names, required, more, named = self.parameters()
        defaults = (self.run.__defaults__ or ())[-(len(names) - required) :] if len(names) > required else ()
        parts = [*names[:required]]
        for name, value in zip(names[required:], defaults, strict=True):
            parts.append(f"{name}={_written(value)}")
        parts += ["…"] if more or named else []
        return f"{self.name}({', '.join(parts)})" if parts or self.kind in ("function", "method") else self.name

    def complaint(self, positional: int, keywords: tuple[str, ...]) -> str:
        """What is wrong with so many arguments, or nothing."""
        names, required, more, named = self.parameters()
        if positional > len(names) and not more:
            most = f"at most {len(names)} argument{'s' if len(names) != 1 else ''}" if names else "no arguments"
            return f"takes {most}, not {positional}"
        for keyword in keywords:
            if keyword in names[:positional]:
                return f"is given `{keyword}` twice"
            if keyword not in names and not named:
                return f"has no argument `{keyword}`"
        missing = [name for name in names[positional:required] if name not in keywords]
        return f"needs the argument `{missing[0]}`" if missing else ""


FILTERS: dict[str, Entry] = {}
TESTS: dict[str, Entry] = {}
FUNCTIONS: dict[str, Entry] = {}
METHODS: dict[str, Entry] = {}
TABLES: dict[WordKind, dict[str, Entry]] = {"filter": FILTERS, "test": TESTS, "function": FUNCTIONS, "method": METHODS}


_CALL = 2
_SLOW = 20


def call(entry: Entry, frame: Frame, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Undefined goes in, undefined comes out; the work is paid for before it is done."""
    everything = (*arguments, *named.values()) if named else arguments
    if not entry.undefined:
        for argument in everything:
            if argument is MISSING:
                return MISSING
    if entry.cheap:
        frame.spend(1)
    else:
        frame.spend((_SLOW if entry.slow else _CALL) + sum(map(cost_of, everything)))
    if entry.framed:
        return entry.run(frame, *arguments, **named)
    result = entry.run(*arguments, **named)
    if type(result) is str:
        frame.hold(HEADER + (len(result) if result.isascii() else 4 * len(result)))
    elif type(result) is list:
        frame.hold(HEADER + SLOT * len(result))
    return result


def _written(value: object) -> str:
    if value is MISSING:
        return "…"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return repr(value)
