"""Bodies of iterators: which components run once per element.

A body is what the `iterate` links of an iterator, or its `item` port, reach through data, ok, error and if links (D15). What
`iteration_ok` and `iteration_error` reach belongs to the same iteration and runs after its body has closed (D43). Rows may
come into a body from outside; nothing else may cross its border.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.dialects.job.level import INTO_BODY, ITEM, PROXY, Level, Wire
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Severity
from penstock.kernel.net import On

_FOLLOWED = (On.DATA, On.OK, On.ERROR, On.IF)
_OF_NESTED = (*INTO_BODY, On.ITERATOR_COMPLETE)


def find_bodies(reading: Reading, level: Level) -> bool:
    """Give every member its home. False when a link crosses the border of a body."""
    reaches: dict[str, set[str]] = {}
    handled: dict[str, dict[str, On]] = {}
    for name, member in level.members.items():
        if member.is_iterator:
            seeds = [wire.target for wire in level.out_of(name) if _is_seed(wire)]
            after = {
                wire.target: wire.on
                for wire in level.out_of(name)
                if wire.on in INTO_BODY and wire.on is not On.ITERATE
            }
            if not seeds and member.body is None:
                _empty(reading, level, name)
            reaches[name] = _reached(level, name, [*seeds, *after])
            handled[name] = {each: _handled_by(level, name, each, after) for each in _reached(level, name, list(after))}
    level.homes = {name: _home(reading, level, name, reaches) for name in level.members}
    level.handlers = {name: handled[home][name] for name, home in level.homes.items() if home and name in handled[home]}
    sound = [_is_inside(reading, level, wire) for wire in level.wires]
    return all(sound)


def _is_seed(wire: Wire) -> bool:
    return wire.on is On.ITERATE or (wire.is_data and wire.port == ITEM and wire.target != PROXY)


def _handled_by(level: Level, iterator: str, name: str, targets: Mapping[str, On]) -> On:
    return next((on for target, on in targets.items() if name in _reached(level, iterator, [target])), On.ITERATION_OK)


def _reached(level: Level, iterator: str, seeds: list[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(seeds)
    while waiting:
        name = waiting.pop()
        if name in found or name in (iterator, PROXY):
            continue
        found.add(name)
        is_nested = level.members[name].is_iterator
        followed = (*_FOLLOWED, *_OF_NESTED) if is_nested else _FOLLOWED
        waiting += [wire.target for wire in level.out_of(name) if wire.on in followed]
    return found


def _home(reading: Reading, level: Level, name: str, reaches: dict[str, set[str]]) -> str:
    """The innermost iterator whose body holds the member."""
    around = sorted((body for body in reaches if name in reaches[body]), key=lambda body: len(reaches[body]))
    if not around:
        return ""
    inner = around[0]
    for other in around[1:]:
        if inner not in reaches[other]:
            message = f"`{name}` lies in the bodies of `{inner}` and of `{other}`, which are not inside each other"
            hint = "use one component for each of them, or put what they share into a joblet"
            reading.report("BODY_ESCAPE", message, level.members[name].draft.place, hint=hint)
            break
    return inner


def _empty(reading: Reading, level: Level, name: str) -> None:
    hint = f"add `{name} (iterate) …` under `connections.control`, or name a joblet in its parameter `body`"
    message = f"the iterator `{name}` has no body, so nothing runs per element"
    reading.report("EMPTY_BODY", message, level.members[name].draft.place, hint=hint, severity=Severity.WARNING)


def _is_inside(reading: Reading, level: Level, wire: Wire) -> bool:
    """May this link be, where its ends lie?"""
    here = level.homes.get(wire.source, "")
    there = level.homes.get(wire.target, "")
    if wire.target == PROXY:
        inside = here or (wire.source if wire.port == ITEM and level.members[wire.source].is_iterator else "")
        if inside:
            _outward(reading, level, wire, inside)
        return not inside
    if here == there or (there == wire.source and (wire.on in INTO_BODY or _is_seed(wire))):
        return True
    if here in level.homes_around(there):
        if not wire.is_data:
            _inward(reading, level, wire, there)
        return wire.is_data
    _outward(reading, level, wire, here)
    return False


def _outward(reading: Reading, level: Level, wire: Wire, iterator: str) -> None:
    if wire.target == PROXY:
        message = (
            f"the output `{wire.to_port}` of the joblet comes from `{wire.source}`, inside the body of `{iterator}`"
        )
        hint = "rows of iterations do not leave their body; write them there, or collect them in a global"
    else:
        message = f"`{wire}` leads out of the body of `{iterator}`"
        hint = (
            f"to go on after all iterations write `{iterator} (iterator_complete) {wire.target}`, after each one "
            f"`{iterator} (iteration_ok) {wire.target}`; a body with sub-jobs of its own is a joblet in `params.body`"
        )
    reading.report("BODY_ESCAPE", message, wire.place, hint=hint)


def _inward(reading: Reading, level: Level, wire: Wire, iterator: str) -> None:
    way = next(
        (other for other in level.into(wire.target) if level.homes.get(other.source, "") == iterator and other != wire),
        None,
    )
    through = "" if way is None else f" (through `{way}`)"
    message = f"`{wire}` leads into the body of `{iterator}` from outside: `{wire.target}` is in that body{through}"
    hint = (
        f"to run `{wire.target}` after all iterations, cut it off from the body and write "
        f"`{iterator} (iterator_complete) {wire.target}`; to run it in each, take this link away"
    )
    reading.report("BODY_ESCAPE", message, wire.place, hint=hint)
