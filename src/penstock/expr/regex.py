"""Regular expressions whose work is known before it is done.

Python's engine tries one way after another, so some patterns take for ever on a short text. The graph of a pattern shows where
two ways compete for the same character. Competing ways inside one loop multiply without end and are refused. Other competition
makes the work a power of the length of the text, and then the length is bounded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import factorial
from typing import Any, Final

from penstock.expr.budget import Frame, check_items, check_text
from penstock.expr.errors import Misuse
from penstock.expr.regex_shape import MAX_PLACES, Graph
from penstock.expr.text_words import text_of, whole_of

_MOST_WORK: Final = 100_000_000
_WORK_PER_STEP: Final = 200
# Going round a group once more takes the engine so much longer than one more character of the same kind.
_GROUP_FACTOR: Final = 50
_LONGEST_PATTERN: Final = 1000


class Pattern:
    __slots__ = ("compiled", "degree", "ways")

    def __init__(self, source: str) -> None:
        if len(source) > _LONGEST_PATTERN:
            raise Misuse(f"a pattern may have at most {_LONGEST_PATTERN} characters")
        graph = Graph(source)
        self.degree, self.ways = _work(graph)
        try:
            self.compiled = re.compile(source)
        except (re.error, OverflowError) as error:
            raise Misuse(f"the pattern `{source[:60]}` is not allowed: {error}") from None

    def on(self, text: str, frame: Frame) -> re.Pattern[str]:
        """The engine, once it is known that this text cannot keep it busy for long, and that is paid for."""
        work = len(text) ** self.degree * self.ways // factorial(self.degree)
        if work > _MOST_WORK:
            raise Misuse(
                f"the pattern `{self.compiled.pattern[:60]}` could take too long on a text of {len(text):,} "
                "characters; anchor it with `^`, or make its parts tell each other apart"
            )
        frame.spend(work // _WORK_PER_STEP)
        return self.compiled


@lru_cache(maxsize=256)
def pattern(source: str) -> Pattern:
    return Pattern(source)


def _work(graph: Graph) -> tuple[int, int]:
    """The power of the text's length that bounds the work, and a constant factor."""
    reach = _reachable(graph.follow)
    loops: set[int] = set()
    ways = _GROUP_FACTOR if graph.groups_repeat else 1
    starts = [graph.whole.first] if graph.whole.first else []
    for place, following in enumerate([*graph.follow, *starts]):
        seen: list[int] = []
        for target in following:
            rivals = [other for other in seen if graph.sets[other] & graph.sets[target]]
            seen.append(target)
            if not rivals:
                continue
            looping = place < len(graph.follow) and reach[place] >> place & 1
            if looping and reach[target] >> place & 1 and any(reach[other] >> place & 1 for other in rivals):
                raise Misuse(
                    f"the pattern `{graph.pattern[:60]}` is not allowed: inside a repeat, one text can be matched in several "
                    "ways, which can take for ever; write the repeat so that there is one way, as in `(\\w+,)*`"
                )
            if looping:
                loops.add(place)
            else:
                ways = min(ways * 2, 1 << 40)
    # A search tries again from every character; that costs only when it can run on through a loop and fail behind it.
    runs_on = any(
        reach[place] >> place & 1 and (graph.asserts or place not in graph.whole.last) for place in range(len(reach))
    )
    return 1 + len(loops) + (runs_on and not graph.anchored), ways


def _reachable(follow: list[list[int]]) -> list[int]:
    """For every place, a bit mask of the places that can come after it."""
    assert len(follow) <= MAX_PLACES
    reach = [0] * len(follow)
    for place, targets in enumerate(follow):
        for target in targets:
            reach[place] |= 1 << target
    changed = True
    while changed:
        changed = False
        for place, mask in enumerate(reach):
            wider = mask
            for target in set(follow[place]):
                wider |= reach[target]
            if wider != mask:
                reach[place] = wider
                changed = True
    return reach


def _arguments(frame: Frame, word: str, value: Any, source: Any) -> tuple[str, re.Pattern[str]]:
    text = text_of(word, value)
    return text, pattern(text_of(word, source)).on(text, frame)


def regex_replace(frame: Frame, value: Any, pattern: Any, replacement: Any = "", count: Any = 0) -> str:
    text, engine = _arguments(frame, "regex_replace", value, pattern)
    new, most = text_of("regex_replace", replacement), whole_of("regex_replace", count)
    expands = "\\" in new
    parts: list[str] = []
    length = position = 0
    for done, match in enumerate(engine.finditer(text)):
        if most and done >= most:
            break
        try:
            if expands:
                frame.spend(1 + (len(new) >> 3))  # the engine reads the replacement anew for every match
            parts += (text[position : match.start()], match.expand(new) if expands else new)
        except (re.error, IndexError) as error:
            raise Misuse(f"the replacement `{new[:60]}` does not fit the pattern: {error}") from None
        length += len(parts[-1]) + len(parts[-2])
        check_text(length)
        position = match.end()
    return "".join((*parts, text[position:]))


def regex_search(frame: Frame, value: Any, pattern: Any, group: Any = 0) -> str | None:
    """The first match or a group of it; null when there is none."""
    text, engine = _arguments(frame, "regex_search", value, pattern)
    match = engine.search(text)
    if match is None:
        return None
    if type(group) not in (int, str):
        raise Misuse("`regex_search` takes the number or the name of a group")
    try:
        found: str | None = match.group(group)
    except IndexError:
        raise Misuse(f"the pattern has no group `{group}`") from None
    return found


def regex_findall(frame: Frame, value: Any, pattern: Any) -> list[Any]:
    text, engine = _arguments(frame, "regex_findall", value, pattern)
    found: list[Any] = []
    for match in engine.finditer(text):
        groups = match.groups("")
        found.append(match.group() if not groups else groups[0] if len(groups) == 1 else list(groups))
        check_items(len(found))
    return found


def matching(frame: Frame, value: Any, pattern: Any) -> bool:
    text, engine = _arguments(frame, "matching", value, pattern)
    return engine.search(text) is not None
