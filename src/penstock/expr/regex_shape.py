"""Reads a regular expression into a graph of single characters, only to learn how much work it may be.

Understood: literals, `.`, classes, `\\d \\w \\s \\b` and their opposites, anchors, groups (also named and `(?:…)`), `|`, greedy
and lazy repeats, and the flags `(?i)`, `(?s)`, `(?m)` in front. Everything else (look-around, back-references …) is refused.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from msgspec import Struct

from penstock.expr.errors import Misuse

MAX_PLACES: Final = 300

# Every character a pattern can tell apart: all of ASCII, and one of each kind beyond. Two characters of one kind count as the
# same, which can only make a pattern look more ambiguous than it is.
_BEYOND = ("é", "É", "٣", " ", "☃")
_ALPHABET = tuple(map(chr, range(128))) + _BEYOND
_REPEAT = re.compile(r"\{(\d*)(?:(,)(\d*))?\}")
_GROUP = re.compile(r"\(\?(?::|P<([^\W\d]\w*)>)")
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_WIDTHLESS = "AZbB"


class Shape(Struct):
    """Part of a pattern. Places are characters it can consume; `nullable` when it can match nothing."""

    first: list[int] = []
    last: list[int] = []
    nullable: bool = True


class Graph:
    """`sets[place]` is a bit mask over the alphabet; `follow[place]` lists next places, once for every way to get there."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.depth = 0
        self.flags = ""
        self.sets: list[int] = []
        self.follow: list[list[int]] = []
        if flags := _FLAGS.match(pattern):
            self.flags = flags.group(1)
            self.position = flags.end()
        self.asserts = False
        self.groups_repeat = False
        self.anchored = "m" not in self.flags and pattern.startswith(("^", "\\A"), self.position) and "|" not in pattern
        self.whole = self._alternatives()
        if self.position < len(pattern):
            self._refuse("`)` closes nothing")

    def _refuse(self, why: str) -> NoReturn:
        raise Misuse(f"the pattern `{self.pattern[:60]}` is not allowed: {why}")

    def _peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _alternatives(self) -> Shape:
        self.depth += 1
        if self.depth > 20:
            self._refuse("it is nested too deeply")
        found = self._sequence()
        while self._peek() == "|":
            self.position += 1
            other = self._sequence()
            found = Shape(found.first + other.first, found.last + other.last, found.nullable or other.nullable)
        self.depth -= 1
        return found

    def _sequence(self) -> Shape:
        found = Shape()
        while self._peek() not in ("", "|", ")"):
            found = self._then(found, self._repeated())
        return found

    def _then(self, left: Shape, right: Shape) -> Shape:
        for place in left.last:
            self.follow[place].extend(right.first)
        first = left.first + right.first if left.nullable else left.first
        last = right.last + left.last if right.nullable else right.last
        return Shape(first, last, left.nullable and right.nullable)

    def _repeated(self) -> Shape:
        begin = self.position
        shape = self._atom()
        least, most = self._bounds()
        if (least, most) == (1, 1):
            return shape
        self.groups_repeat |= self.pattern[begin] == "("
        if self._peek() == "?":
            self.position += 1
        if self._peek() in ("*", "+", "{") and (self._peek() != "{" or _REPEAT.match(self.pattern, self.position)):
            self._refuse("a repeat cannot be repeated; use a group")
        end = self.position
        if most is None or most > 20:
            return self._looped(shape, nullable=shape.nullable or least == 0)
        # A small repeat is so many copies one after another, each of which is read from the pattern again.
        copies = [shape, *(self._again(begin) for _ in range(most - 1))][:most]
        found = Shape()
        for index, copy in enumerate(copies):
            optional = Shape(copy.first, copy.last, True) if index >= least else copy
            found = self._then(found, optional)
        self.position = end
        return found

    def _again(self, begin: int) -> Shape:
        self.position = begin
        return self._atom()

    def _looped(self, shape: Shape, nullable: bool) -> Shape:
        for place in shape.last:
            self.follow[place].extend(shape.first)
        return Shape(shape.first, shape.last, nullable)

    def _bounds(self) -> tuple[int, int | None]:
        sign = self._peek()
        if sign in ("*", "+", "?"):
            self.position += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        match = _REPEAT.match(self.pattern, self.position)
        if match is None or (not match.group(1) and not match.group(3)):
            return 1, 1
        self.position = match.end()
        if len(match.group()) > 12:
            self._refuse("a repeat has too large a number")
        least = int(match.group(1) or 0)
        if match.group(2) is None:
            return least, least
        return least, int(match.group(3)) if match.group(3) else None

    def _atom(self) -> Shape:
        character = self._peek()
        self.position += 1
        if character == "(":
            return self._group()
        if character in "^$":
            self.asserts = True
            return Shape()
        if character == "[":
            return self._place(self._class())
        if character == ".":
            everything = (1 << len(_ALPHABET)) - 1
            return self._place(everything if "s" in self.flags else everything & ~(1 << ord("\n")))
        if character in "*+?":
            self._refuse(f"`{character}` repeats nothing")
        if character == "\\":
            if self._peek() and self._peek() in _WIDTHLESS:
                self.position += 1
                self.asserts = True
                return Shape()
            return self._place(self._escape())
        return self._place(self._mask(character))

    def _group(self) -> Shape:
        if self._peek() == "?":
            opening = _GROUP.match(self.pattern, self.position - 1)
            if opening is None:
                self._refuse("only the groups `(…)`, `(?:…)` and `(?P<name>…)` are known here")
            self.position = opening.end()
        found = self._alternatives()
        if self._peek() != ")":
            self._refuse("`(` is never closed")
        self.position += 1
        return found

    def _place(self, mask: int) -> Shape:
        self.sets.append(mask)
        self.follow.append([])
        place = len(self.sets) - 1
        if place >= MAX_PLACES:
            self._refuse("it is too long")
        return Shape([place], [place], False)

    def _mask(self, source: str) -> int:
        """The characters that a literal, an escape or a class matches, found by asking."""
        try:
            matches = re.compile(
                source if len(source) > 1 else re.escape(source), re.IGNORECASE if "i" in self.flags else 0
            ).fullmatch
        except re.error as error:
            raise Misuse(f"the pattern `{self.pattern[:60]}` is not allowed: {error}") from None
        mask = sum(1 << index for index, character in enumerate(_ALPHABET) if matches(character))
        # A literal beyond ASCII is none of the examples, so it counts as all of them; and so does a letter that is read in either
        # case, since some have a twin there.
        vague = "i" in self.flags or not source.isascii() or any(escape in source for escape in ("\\x", "\\u", "\\U"))
        return mask | (((1 << len(_BEYOND)) - 1) << 128) if vague else mask

    def _escape(self) -> int:
        begin = self.position - 1
        character = self._peek()
        widths = {"x": 3, "u": 5, "U": 9}
        if not character or character.isdigit() or (character.isalpha() and character not in "dDwWsSnrtfvxuU"):
            self._refuse(f"`\\{character}` is not known here")
        self.position += widths.get(character, 1)
        return self._mask(self.pattern[begin : self.position])

    def _class(self) -> int:
        begin = self.position - 1
        if self._peek() == "^":
            self.position += 1
        if self._peek() == "]":
            self.position += 1
        while self._peek() not in ("", "]"):
            if self._peek() == "[" or self.pattern[self.position : self.position + 2] in ("--", "&&", "~~", "||"):
                self._refuse("inside `[…]`, write `[`, `-`, `&`, `~` and `|` with a backslash")
            self.position += 2 if self._peek() == "\\" else 1
        if not self._peek():
            self._refuse("`[` is never closed")
        self.position += 1
        return self._mask(self.pattern[begin : self.position])
