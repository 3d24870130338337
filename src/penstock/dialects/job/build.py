"""From a document's draft to its level: members, links with ports, bodies, sub-jobs, order. Every step reports what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.dialects.job.checks.names import Names, check_names
from penstock.dialects.job.drafts import ComponentDraft, JobDraft
from penstock.dialects.job.level import INTO_BODY, ITEM, MERGING, POST_JOB, PRE_JOB, PROXY, Level, Member, Wire
from penstock.dialects.job.order import find_order, find_subjobs
from penstock.dialects.job.reader import Reading
from penstock.dialects.job.wiring import check_arity, check_forks, check_joins, wire_up
from penstock.dialects.problems import Position, Severity
from penstock.dialects.reader import is_template
from penstock.dialects.source.node import to_json
from penstock.kernel.errors import PenstockError
from penstock.kernel.net import On
from penstock.ports.components import Port, Ports

_ROLES = {
    PRE_JOB: ("pre-job", "before everything else"),
    POST_JOB: ("post-job", "when everything else has ended"),
}

Find = Callable[[str, Position], Level | None]
"""The joblet of a name, or None when it has been reported."""


def build(reading: Reading, draft: JobDraft, text: str, find: Find, names: Names) -> Level:
    level = Level(draft, text)
    for index, component in enumerate(draft.components.values()):
        member = _member(reading, component, index, find)
        level.members[component.name] = member
    level.wires = wire_up(reading, level)
    check_forks(reading, level)
    leave_out(reading, level)
    inner = [joblet for member in level.members.values() if (joblet := member.joblet or member.body) is not None]
    level.depth = max((joblet.depth + 1 for joblet in inner), default=0)
    level.size = len(level.members) + sum(joblet.size for joblet in inner)
    if not level.members and draft.components:
        reading.findings.error(
            "J0005", "every component is left out", draft.position, hint="one at least must be active"
        )
    check_arity(reading, level)
    is_sound = find_bodies(reading, level)
    check_names(reading, level, names)
    find_subjobs(level)
    check_joins(reading, level)
    _check_roles(reading, level)
    if is_sound:
        find_order(reading, level)
    return level


def _member(reading: Reading, draft: ComponentDraft, index: int, find: Find) -> Member:
    called = draft.calls
    if called is not None:
        joblet = find(called, draft.type_position)
        return Member(draft, index, None if joblet is None else joblet.ports(), joblet=joblet)
    description = reading.describe(draft.type, draft.type_position)
    if description is None:
        return Member(draft, index, None)
    member = Member(draft, index, _ports(reading, draft), description)
    if description.is_iterator:
        member.body = _body(reading, draft, find)
        member.ports = _with_inputs(member)
    return member


def _ports(reading: Reading, draft: ComponentDraft) -> Ports | None:
    params = {name: to_json(param.node) for name, param in draft.params.items()}
    try:
        return reading.catalog.ports(draft.type, params)
    except PenstockError as error:
        hint = error.hint or ""
        reading.report(
            "BAD_PARAM", f"the ports of `{draft.name}` are not clear: {error.message}", draft.position, hint=hint
        )
        return None


def _body(reading: Reading, draft: ComponentDraft, find: Find) -> Level | None:
    param = draft.params.get("body")
    if param is None or param.node.is_null:
        return None
    name = param.node.text()
    if name is None or is_template(param.node):
        hint = "the plan must know it, so it cannot be a template"
        reading.report("BAD_PARAM", "`body` is the name of a joblet, written out", param.node.position, hint=hint)
        return None
    return find(name.removeprefix("@"), param.node.position)


def _with_inputs(member: Member) -> Ports | None:
    """An iterator whose body is a joblet takes the rows for that joblet's other inputs, too."""
    if member.body is None or member.ports is None:
        return member.ports
    item = item_input(member.body)
    known = {port.name for port in member.ports.inputs}
    more = [port for port in member.body.ports().inputs if port.name != item and port.name not in known]
    member.body_inputs = frozenset(port.name for port in more)
    return Ports((*member.ports.inputs, *(Port(port.name, port.required) for port in more)), member.ports.outputs)


def item_input(body: Level) -> str | None:
    """The input of a body's joblet that takes the element: `item`, or its only one."""
    inputs = list(body.draft.inputs)
    return "item" if "item" in inputs else inputs[0] if len(inputs) == 1 else None


def _check_roles(reading: Reading, level: Level) -> None:
    for role in _ROLES:
        members = [member for member in level.members.values() if member.draft.type == role]
        for member in members:
            where = level.homes.get(member.name, "")
            if level.draft.is_joblet or where:
                around = "a joblet" if level.draft.is_joblet else f"the body of `{where}`"
                message = f"`{role}` stands in a job, and `{member.name}` is in {around}"
                reading.report("ROLE_PLACE", message, member.draft.type_position)
            else:
                _check_links_into(reading, level, member)
        if len(members) > 1:
            message = f"there are two components of type `{role}`: `{members[0].name}` and `{members[1].name}`"
            reading.report("ROLE_PLACE", message, members[1].draft.type_position, hint="a job has one at most")


def _check_links_into(reading: Reading, level: Level, member: Member) -> None:
    role, when = _ROLES[member.draft.type]
    for wire in level.into(member.name):
        message = f"`{wire}` leads into the {role} `{member.name}`, which starts by itself {when}"
        hint = f"take this link away; what is to run after `{wire.source}` alone is a component of its own"
        reading.report("ROLE_LINK", message, wire.position, hint=hint)


# ---- Bodies of iterators: which components run once per element
#
# A body is what the `iterate` links of an iterator, or its `item` port, reach through data, ok, error and if links (D15).
# What `iteration_ok` and `iteration_error` reach belongs to the same iteration and runs after its body has closed (D43).
# Rows may come into a body from outside; nothing else may cross its border.


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
            reading.report("BODY_ESCAPE", message, level.members[name].draft.position, hint=hint)
            break
    return inner


def _empty(reading: Reading, level: Level, name: str) -> None:
    hint = f"add `{name} (iterate) …` under `connections.control`, or name a joblet in its parameter `body`"
    message = f"the iterator `{name}` has no body, so nothing runs per element"
    reading.report("EMPTY_BODY", message, level.members[name].draft.position, hint=hint, severity=Severity.WARNING)


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
    reading.report("BODY_ESCAPE", message, wire.position, hint=hint)


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
    reading.report("BODY_ESCAPE", message, wire.position, hint=hint)


# ---- Deactivated components: `active: false`
#
# A deactivated component passes its rows through, from its first input to its main output, and its control links are
# spliced: what let it start lets those start that it would have let start. A fork stays one: what it would have forked into
# are branches still. What can then never run, because its rows or its only trigger came from a component that is gone, is
# left out as well, with a warning.


_SPLICED = (On.OK, On.ITERATOR_COMPLETE, On.PARALLELISE)
_OF_SUBJOBS = (On.SUBJOB_OK, On.SUBJOB_ERROR, On.SYNCHRONISE)


def leave_out(reading: Reading, level: Level) -> None:
    for member in [member for member in level.members.values() if not member.draft.active]:
        if member.name not in level.members:
            continue
        lost = _spliced(level, member)
        _forget(level, member.name)
        _starve(reading, level, lost, member.name)


def _passes(member: Member) -> tuple[str, str] | None:
    if member.ports is None or member.is_iterator:
        return None
    outputs = [port for port in member.ports.outputs if not port.reject]
    if not member.ports.inputs or not outputs:
        return None
    return member.ports.inputs[0].name, outputs[0].name


def _spliced(level: Level, member: Member) -> list[Wire]:
    """Take the member out of the wires; those that nothing could take the place of are returned."""
    name = member.name
    before = [wire for wire in level.into(name) if wire.source != name]
    after = [wire for wire in level.out_of(name) if wire.target != name]
    kept = [wire for wire in level.wires if name not in (wire.source, wire.target)]
    lost: list[Wire] = []
    for wire in after:
        instead = _rows(member, before, wire) if wire.is_data else _control(level, before, after, wire)
        kept += [new for new in instead if new.source != new.target]
        if not instead and not _merely_starts(wire, before):
            lost.append(wire)
    _keep_branches(level, name, (before, after), kept)
    level.wires = kept
    return lost


def _keep_branches(level: Level, name: str, ends: tuple[list[Wire], list[Wire]], kept: list[Wire]) -> None:
    """A branch is one still when its fork is left out; and when its root is, it begins at what came after that."""
    before, after = ends
    forked = {wire.target for wire in kept if wire.on is On.PARALLELISE}
    branches = {wire.target for wire in after if wire.on is On.PARALLELISE} - forked
    if branches:
        level.former_forks[name] = branches
    roots = {wire.target for wire in after if wire.target != PROXY and (wire.is_data or wire.on in _SPLICED)} - forked
    forks = {wire.source for wire in before if wire.on is On.PARALLELISE}
    forks |= {fork for fork, targets in level.former_forks.items() if name in targets}
    for fork in forks if roots else ():
        level.former_forks.setdefault(fork, set()).update(roots)


def _forget(level: Level, name: str) -> None:
    del level.members[name]
    for targets in level.former_forks.values():
        targets.discard(name)


def _merely_starts(wire: Wire, before: list[Wire]) -> bool:
    """Nothing came before the member, so what it let start may start at once."""
    return wire.on in _SPLICED and not before


def _rows(member: Member, before: list[Wire], wire: Wire) -> list[Wire]:
    pair = _passes(member)
    if pair is None or wire.port != pair[1]:
        return []
    # A wild-card stands first where all inputs are alike; then everything passes.
    arrivals = [come for come in before if come.is_data and _is_port(come.to_port, pair[0])]
    return [replace(wire, source=come.source, port=come.port) for come in arrivals]


def _is_port(name: str, port: str) -> bool:
    return name.startswith(port[:-1]) if port.endswith("*") else name == port


def _control(level: Level, before: list[Wire], after: list[Wire], wire: Wire) -> list[Wire]:
    triggers = [come for come in before if not come.is_data]
    feeders = [come for come in before if come.is_data and come.source != PROXY and come.port != ITEM]
    if wire.on in _SPLICED:
        if triggers:
            return [_relayed(come, wire) for come in triggers]
        fires = On.PARALLELISE if wire.on is On.PARALLELISE else On.OK
        return [replace(wire, source=come.source, on=fires) for come in feeders]
    return _of_neighbours(level, before, after, wire) if wire.on in _OF_SUBJOBS else []


def _of_neighbours(level: Level, before: list[Wire], after: list[Wire], wire: Wire) -> list[Wire]:
    """A link of the sub-job begins at any other member of it. A branch without its root may come apart, and a join waits for
    all that is left of it."""
    roots = level.branch_roots()
    near = [come.source for come in before if come.on in MERGING and come.source != PROXY and come.target not in roots]
    near += [go.target for go in after if go.on in MERGING and go.target != PROXY and go.target not in roots]
    chosen = near if wire.on is On.SYNCHRONISE and wire.source in roots else near[:1]
    return [replace(wire, source=source, moved=True) for source in dict.fromkeys(chosen)]


def _relayed(come: Wire, wire: Wire) -> Wire:
    """What fired the member now fires what the member would have: a fork stays a fork."""
    if wire.on is On.PARALLELISE and come.on is On.OK:
        return replace(wire, source=come.source)
    return replace(come, target=wire.target)


def _starve(reading: Reading, level: Level, lost: list[Wire], cause: str) -> None:
    waiting = list(lost)
    while waiting:
        wire = waiting.pop(0)
        member = level.members.get(wire.target)
        if member is None or not _is_starved(level, member, wire):
            continue
        if member.draft.active:
            message = f"`{member.name}` is left out too: it needs `{wire.source}`, which {_why(wire.source, cause)}"
            reading.report("LEFT_OUT", message, member.draft.position, severity=Severity.WARNING)
        waiting += [go for go in level.out_of(member.name) if go.target != member.name]
        level.wires = [other for other in level.wires if member.name not in (other.source, other.target)]
        _forget(level, member.name)


def _why(source: str, cause: str) -> str:
    return "is inactive" if source == cause else f"is left out because `{cause}` is inactive"


def _is_starved(level: Level, member: Member, wire: Wire) -> bool:
    others = list(level.into(member.name))
    if wire.is_data:
        if any(other.is_data and other.to_port == wire.to_port for other in others):
            return False
        port = None if member.ports is None else member.ports.input(wire.to_port)
        is_needed = port is None or port.required or wire.port == ITEM
        return is_needed and not (port is not None and port.is_wild and _is_fed(others, port.name))
    return all(other.is_data for other in others) and not member.draft.startable


def _is_fed(wires: list[Wire], port: str) -> bool:
    return any(wire.is_data and _is_port(wire.to_port, port) for wire in wires)
