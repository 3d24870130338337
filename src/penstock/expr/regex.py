"""Regular expressions on an engine that needs no more than linear time: RE2.

Its work is bounded by the length of the text times the size of the compiled pattern, so both are known, and paid for, before it
starts. What RE2 has not (look-around, back-references) is refused when a document is checked. `\\d`, `\\w`, `\\s` and `\\b` are
ASCII; `\\p{L}` and its kin are Unicode; `$` is the end of the text only.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from penstock.expr.budget import Frame, check_items, check_text
from penstock.expr.errors import Misuse
from penstock.expr.words.text import text_of, whole_of

_LONGEST_PATTERN: Final = 1000
# Bounds the compiled program to some 10,000 instructions, and the time to compile it to a few milliseconds.
_PROGRAM_MEMORY: Final = 256 * 1024
# A program this small has so few states that all of them fit into this memory; the engine then never leaves its fastest mode.
_SMALL_PROGRAM: Final = 12
_STATE_MEMORY: Final = 4 * 1024 * 1024
_CHARACTERS_PER_STEP: Final = 16
_INSTRUCTIONS_PER_STEP: Final = 20
_STEPS_PER_MATCH: Final = 20
# What compiling costs; a class such as `\pL` is a thousand instructions.
_STEPS_PER_INSTRUCTION: Final = 3

_UNDERSTOOD = (
    ("(?=", "look-ahead does not exist here"),
    ("(?!", "look-ahead does not exist here"),
    ("(?<=", "look-behind does not exist here"),
    ("(?<!", "look-behind does not exist here"),
    ("(?P=", "back-references do not exist here"),
)
# Part of a pattern, as far as the cost of finding all matches depends on it. Classes hide the signs inside them.
_PART = re.compile(
    r"(?P<class>\[\^?\]?(?:\[:\w+:\]|\\.|[^\]])*\])|\\.|\{(?P<least>\d*)(?P<more>,(?P<most>\d*))?\}|.", re.DOTALL
)
_MOST_REPEATS: Final = 1000


class Pattern:
    """A compiled pattern, and what it costs. Without `captures`, groups only group, which the engine does faster."""

    __slots__ = ("amortised", "engine", "loops", "size", "source")

    def __init__(self, source: str, captures: bool) -> None:
        self.source = source
        self.engine = _compiled(source, captures)
        self.size: int = self.engine.programsize
        alternates, repeats_group, self.loops = _shape(source)
        # Each character is read a bounded number of times in all searches together when every repeat is of a single
        # character: what a search reads behind its match cannot hold the begin of the next one.
        self.amortised = not (alternates or repeats_group)

    def cost(self, characters: int) -> int:
        """The steps of one search in so many characters, at worst."""
        if self.size <= _SMALL_PROGRAM and not self.engine.groups:
            return characters // _CHARACTERS_PER_STEP
        return characters * self.size // _INSTRUCTIONS_PER_STEP

    def cost_of_next(self, characters: int) -> int:
        """The steps of one more match when so many characters are left: what a search may read in vain behind it."""
        if self.amortised:
            return _STEPS_PER_MATCH
        return _STEPS_PER_MATCH + self.cost(characters if self.loops else min(characters, self.size))

    def search(self, text: str, frame: Frame) -> Any:
        frame.spend(_STEPS_PER_MATCH // 2 + self.cost(len(text)))
        try:
            return self.engine.search(text)
        except UnicodeEncodeError:
            raise _not_a_character() from None

    def matches(self, text: str, frame: Frame) -> Any:
        """All matches, each paid for before it is looked for."""
        frame.spend(_STEPS_PER_MATCH // 2 + self.cost(len(text)) * (3 if self.amortised else 1))
        try:
            for match in self.engine.finditer(text):
                yield match
                frame.spend(self.cost_of_next(len(text) - match.start()))
        except UnicodeEncodeError:
            raise _not_a_character() from None


def _not_a_character() -> Misuse:
    return Misuse("the text holds half of a surrogate pair, which a pattern cannot match")


def _compiled(source: str, captures: bool) -> Any:
    import re2  # Only patterns need it.

    if len(source) > _LONGEST_PATTERN:
        raise Misuse(f"a pattern may have at most {_LONGEST_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    options.max_mem = _PROGRAM_MEMORY
    text = _PART.sub(_translated, source)
    try:
        engine = re2.compile(text, options)
        if engine.programsize <= _SMALL_PROGRAM:
            options.max_mem = _STATE_MEMORY
            engine = re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise Misuse(f"the pattern `{source[:60]}` is not allowed: {_reason(source, error)}") from None
    return engine


def _translated(part: re.Match[str]) -> str:
    """What Python writes in another way, and RE2 would take for plain characters: `\\Z`, and repeats such as `{,3}`."""
    if part.group() == "\\Z":
        return r"\z"
    if not part["least"] and not part["most"]:
        return part.group()
    if any(len(count) > 4 or int(count) > _MOST_REPEATS for count in (part["least"], part["most"]) if count):
        raise Misuse(f"the repeat `{part.group()[:40]}` is not allowed: a repeat may count to {_MOST_REPEATS:,}")
    return f"{{{part['least'] or 0}{part['more'] or ''}}}"


def _reason(source: str, error: Exception) -> str:
    for sign, why in _UNDERSTOOD:
        if sign in source:
            return f"{why}; take the text apart in several steps"
    if isinstance(error, UnicodeEncodeError):
        return "it holds half of a surrogate pair"
    argument: object = error.args[0] if error.args else ""
    reason = argument.decode("utf-8", "replace") if isinstance(argument, bytes) else str(argument)
    escape = re.search(r"invalid escape sequence: \\([1-9])", reason)
    if escape:
        return f"back-references such as `\\{escape[1]}` do not exist here"
    if "too large" in reason:
        return "it is too large once its repeats are written out"
    if "repetition size" in reason:
        return f"{reason}; a repeat may count to 1000, repeats inside repeats included"
    return reason


def _shape(source: str) -> tuple[bool, bool, bool]:
    """Does it have alternatives, repeated groups, repeats without an end? Says yes in doubt."""
    if "\\Q" in source:
        return True, True, True
    alternates = repeats_group = loops = False
    before = ""
    for part in _PART.finditer(source):
        sign = part.group()
        if part["class"] is None:
            counted = part["least"] is not None
            alternates = alternates or sign == "|"
            loops = loops or sign in "*+" or (counted and part["more"] == ",")
            repeats_group = repeats_group or (before == ")" and (sign in "*+?" or counted))
        before = sign
    return alternates, repeats_group, loops


@lru_cache(maxsize=128)
def _pattern(source: str, captures: bool) -> Pattern:
    return Pattern(source, captures)


def pattern(source: str, frame: Frame | None = None, captures: bool = True) -> Pattern:
    """The pattern of a source. An evaluation pays for each pattern once, whether or not it is compiled already."""
    if frame is None:
        return _pattern(source, captures)
    key = (source, captures)
    found: Pattern | None = frame.patterns.get(key)
    if found is None:
        frame.spend(100 + 25 * min(len(source), _LONGEST_PATTERN))
        found = _pattern(source, captures)
        frame.spend(found.size * _STEPS_PER_INSTRUCTION)
        frame.patterns = {**frame.patterns, key: found}
    return found


def groups_of(source: str) -> int | None:
    """How many groups a pattern has; None when it is no pattern."""
    try:
        count: int = pattern(source).engine.groups
        return count
    except Misuse:
        return None


def regex_replace(frame: Frame, value: Any, pattern: Any, replacement: Any = "", count: Any = 0) -> str:
    text, new, most = (
        text_of("regex_replace", value),
        text_of("regex_replace", replacement),
        whole_of("regex_replace", count),
    )
    expands = "\\" in new
    found = _of("regex_replace", pattern, frame, captures=expands)
    pieces = _replacement(new, found) if expands else ()
    parts: list[str] = []
    position = 0
    for done, match in enumerate(found.matches(text, frame)):
        if most and done >= most:
            break
        parts.append(text[position : match.start()])
        if expands:
            frame.spend(len(pieces))
            parts.extend(piece if isinstance(piece, str) else match.group(piece) or "" for piece in pieces)
        else:
            parts.append(new)
        frame.write(match.start() - position + sum(map(len, parts[-len(pieces) :] if expands else (new,))))
        position = match.end()
    parts.append(text[position:])
    check_text(sum(map(len, parts)))
    return "".join(parts)


_REPLACED = re.compile(r"\\(?:([1-9][0-9]?)|g<([^>]*)>|(.?))", re.DOTALL)
_PLAIN_ESCAPES = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


def _replacement(new: str, found: Pattern) -> tuple[str | int, ...]:
    """The pieces of a replacement: texts, and numbers of groups."""
    pieces: list[str | int] = []
    position = 0
    names = found.engine.groupindex
    for escape in _REPLACED.finditer(new):
        pieces.append(new[position : escape.start()])
        position = escape.end()
        number, name, plain = escape.groups()
        if plain is not None:
            if plain not in _PLAIN_ESCAPES:
                raise Misuse(f"the replacement `{new[:60]}` has an escape `{escape.group()}` that is not known")
            pieces.append(_PLAIN_ESCAPES[plain])
            continue
        wanted = number or name
        group = int(wanted) if wanted.isdecimal() and len(wanted) < 4 else names.get(wanted)
        if group is None or group > found.engine.groups:
            raise Misuse(f"the replacement `{new[:60]}` does not fit the pattern: there is no group `{wanted}`")
        pieces.append(group)
    return (*pieces, new[position:])


def _of(word: str, source: Any, frame: Frame, captures: bool) -> Pattern:
    return pattern(text_of(word, source), frame, captures)


def regex_search(frame: Frame, value: Any, pattern: Any, group: Any = 0) -> str | None:
    """The first match or a group of it; null when there is none."""
    if type(group) not in (int, str):
        raise Misuse("`regex_search` takes the number or the name of a group")
    found = _of("regex_search", pattern, frame, captures=group != 0)
    match = found.search(text_of("regex_search", value), frame)
    if match is None:
        return None
    try:
        part: str | None = match.group(group)
    except IndexError:
        raise Misuse(f"the pattern has no group `{group}`") from None
    return part


def regex_findall(frame: Frame, value: Any, pattern: Any) -> list[Any]:
    text = text_of("regex_findall", value)
    found: list[Any] = []
    for match in _of("regex_findall", pattern, frame, captures=True).matches(text, frame):
        groups = match.groups("")
        frame.hold(60 * (1 + len(groups)) + match.end() - match.start())
        found.append(match.group() if not groups else groups[0] if len(groups) == 1 else list(groups))
        check_items(len(found))
    return found


def matching(frame: Frame, value: Any, pattern: Any) -> bool:
    text = text_of("matching", value)
    return _of("matching", pattern, frame, captures=False).search(text, frame) is not None
