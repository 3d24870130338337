"""Expansion: every joblet call becomes a container, and every component a unit with its own name.

The call stays as a unit. Rows that come in end at the call and begin there again on the inside; rows that go out end at the
call and begin there again on the outside: the call is its own proxy. An inner component is called `caller.__inner`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from penstock.dialects.job.build import item_input
from penstock.dialects.job.checks.names import sites
from penstock.dialects.job.drafts import Excerpt
from penstock.dialects.job.level import ITEM, PROXY, Level, Member, Subjob, Wire
from penstock.dialects.job.reader import Reading
from penstock.dialects.reader import did_you_mean, listed, texts_in
from penstock.dialects.source.node import SourceNode, to_json
from penstock.expr import nodes
from penstock.expr.check import inspect
from penstock.expr.errors import ExpressionError
from penstock.expr.lexer import is_template
from penstock.expr.parse import parse, parse_condition
from penstock.kernel.net import On, Opening
from penstock.kernel.values import Json

MOST_UNITS = 50_000


@dataclass(slots=True)
class Unit:
    """A component of the expanded job."""

    name: str
    local: str
    container: str
    prefix: tuple[str, ...]
    level: Level
    member: Member
    params: dict[str, SourceNode]
    opens: str | None = None
    borrowed: tuple[tuple[str, str], ...] = ()
    """Texts among its parameters that begin with what a caller gave, and the file that this stands in."""

    @property
    def type(self) -> str:
        return "joblet" if self.member.draft.calls is not None else self.member.draft.type

    def gives_out(self) -> dict[str, tuple[str, str]]:
        """Of a joblet call: its outputs, and the (unit, port) that each leads out of."""
        wires = self.member.joblet.wires if self.member.joblet is not None else []
        return {one.to_port: (f"{self.name}.__{one.source}", one.port) for one in wires if one.target == PROXY}


@dataclass(slots=True)
class ExpandedSubjob:
    """A sub-job of the expanded job."""

    name: str
    members: list[str]
    handles: On | None = None


@dataclass(slots=True)
class Scope:
    key: str
    opening: Opening
    subjobs: list[ExpandedSubjob] = field(default_factory=list)


@dataclass(slots=True)
class Expanded:
    units: dict[str, Unit] = field(default_factory=dict)
    wires: list[Wire] = field(default_factory=list)
    """Between units, by their full names."""
    scopes: dict[str, Scope] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    """Units in the order in which columns can be worked out: what feeds a unit comes before it, a call before what is in it."""
    boundary: list[Wire] = field(default_factory=list)
    """Of a joblet that is looked at by itself: the links to a caller that is not there."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a level is put."""

    container: str = ""
    prefix: tuple[str, ...] = ()
    caller: str = ""
    given: Mapping[str, SourceNode] = field(default_factory=dict)
    lenders: Mapping[str, str] = field(default_factory=dict)
    """Parameter of a joblet -> the file in which its value stands."""
    fed: frozenset[str] = frozenset()
    """The inputs of a joblet that its caller feeds."""
    read: frozenset[str] = frozenset()
    """The outputs of a joblet that its caller reads."""
    is_body: bool = False
    """The joblet is the body of an iterator: it has no call that would stand in for its boundary."""

    def full(self, name: str) -> str:
        return f"{self.caller}.__{name}" if self.caller else name

    def local(self, name: str) -> str:
        return f"__{name}" if self.caller else name

    def has(self, wire: Wire) -> bool:
        """Does the boundary that the link begins or ends at lead anywhere?"""
        if wire.source == PROXY:
            return wire.port in self.fed
        return wire.target != PROXY or wire.to_port in self.read


def expand(reading: Reading, level: Level) -> Expanded:
    found = Expanded()
    if level.size > MOST_UNITS:
        message = f"with all its joblets the job has {level.size:,} components, and {MOST_UNITS:,} are allowed"
        reading.report("JOB_TOO_LARGE", message, level.draft.position)
        return found
    found.scopes[""] = Scope("", Opening.JOB)
    found.boundary = [wire for wire in level.wires if PROXY in (wire.source, wire.target)]
    found.order = _Expansion(reading, found).put(level, _Frame(given=_defaults(level)))
    return found


class _Expansion:
    def __init__(self, reading: Reading, found: Expanded) -> None:
        self.reading = reading
        self.found = found
        self.used: dict[int, frozenset[str]] = {}

    def put(self, level: Level, frame: _Frame) -> list[str]:
        """Adds a level and all that its members open; returns the order of its units."""
        for subjob in level.subjobs:
            if not subjob.home:
                self._subjob(level, subjob, frame, frame.container)
        self._wires(level, frame)
        inner: dict[str, list[str]] = {}
        for name, member in level.members.items():
            unit = self._unit(level, member, frame)
            self.found.units[unit.name] = unit
            inner[name] = self._open(unit, frame)
        return [each for name in level.order for each in (frame.full(name), *inner[name])]

    def _unit(self, level: Level, member: Member, frame: _Frame) -> Unit:
        home = level.homes.get(member.name, "")
        name = frame.full(member.name)
        params = {key: self._filled(param.node, frame) for key, param in member.draft.params.items()}
        opens = name if member.joblet is not None or member.is_iterator else None
        container = frame.full(home) if home else frame.container
        borrowed = tuple(self._borrowed(member, frame)) if frame.lenders else ()
        return Unit(
            name=name,
            local=frame.local(member.name),
            container=container,
            prefix=frame.prefix,
            level=level,
            member=member,
            params=params,
            opens=opens,
            borrowed=borrowed,
        )

    def _borrowed(self, member: Member, frame: _Frame) -> Iterator[tuple[str, str]]:
        for param in member.draft.params.values():
            for node in texts_in(param.node):
                name = leading_param(str(node.value))
                if name is not None and name in frame.lenders:
                    with suppress(Unfit):  # Reported where the whole parameter is filled in.
                        for filled in texts_in(substituted(node, frame.given)):
                            yield str(filled.value), frame.lenders[name]

    def _filled(self, node: SourceNode, frame: _Frame) -> SourceNode:
        try:
            return substituted(node, frame.given)
        except Unfit as unfit:
            self.reading.report("BAD_PARAM", str(unfit), node.position)
            return node

    def _condition(self, when: Excerpt | None, frame: _Frame) -> Excerpt | None:
        if when is None:
            return None
        try:
            return substituted_condition(when, frame.given)
        except Unfit as unfit:
            self.reading.report("BAD_PARAM", str(unfit), when.node.position)
            return when

    # ---- scopes

    def _open(self, unit: Unit, frame: _Frame) -> list[str]:
        member, level = unit.member, unit.level
        if unit.opens is None:
            return []
        self.found.scopes[unit.name] = Scope(unit.name, Opening.BODY if member.is_iterator else Opening.JOBLET)
        own = [subjob for subjob in level.subjobs if subjob.home == member.name] if member.is_iterator else []
        for subjob in own:
            if subjob.handles is None:
                self._subjob(level, subjob, frame, unit.name)
        inner = member.joblet or member.body
        order = [] if inner is None else self.put(inner, self._frame(unit, inner, frame))
        for subjob in own:
            if subjob.handles is not None:
                self._subjob(level, subjob, frame, unit.name)
        return order

    def _frame(self, unit: Unit, inner: Level, frame: _Frame) -> _Frame:
        member, level = unit.member, unit.level
        fed = {wire.to_port for wire in level.into(member.name) if wire.is_data and frame.has(wire)}
        read = {wire.port for wire in level.out_of(member.name) if wire.is_data and frame.has(wire)}
        is_body = member.body is not None
        if is_body:
            item = item_input(inner)
            fed, read = fed | ({item} if item is not None else set()), set()
        given = _defaults(inner) if is_body else self._given(unit, inner)
        prefix = (*frame.prefix, unit.name)
        lenders = {} if is_body else _lenders(unit, inner, frame)
        return _Frame(
            container=unit.name,
            prefix=prefix,
            caller=unit.name,
            given=given,
            lenders=lenders,
            fed=frozenset(fed),
            read=frozenset(read),
            is_body=is_body,
        )

    def _subjob(self, level: Level, subjob: Subjob, frame: _Frame, container: str) -> None:
        members = [frame.full(name) for name in subjob.members]
        name = frame.full(subjob.first(level))
        self.found.scopes[container].subjobs.append(ExpandedSubjob(name, members, subjob.handles))

    # ---- parameters of joblets

    def _given(self, unit: Unit, joblet: Level) -> dict[str, SourceNode]:
        draft = unit.member.draft
        if id(joblet) not in self.used:
            self.used[id(joblet)] = frozenset(_used(joblet))
        used = self.used[id(joblet)]
        accepted = [*joblet.draft.params, *sorted(used - set(joblet.draft.params))]
        for name, param in draft.params.items():
            if name not in accepted:
                hint = f"it takes {listed(accepted)}" if accepted else "it takes none"
                message = f"the joblet `{draft.calls}` has no parameter `{name}`"
                label = did_you_mean(name, accepted)
                self.reading.report("UNKNOWN_PARAM", message, param.key, label=label, hint=hint)
        given = {**_defaults(joblet), **unit.params}
        for name in sorted(used - set(given)):
            message = f"the joblet `{draft.calls}` needs the parameter `{name}`"
            self.reading.report("MISSING_PARAM", message, draft.type_position, hint=f"add `{name}` to `params`")
        return given

    # ---- wires

    def _wires(self, level: Level, frame: _Frame) -> None:
        for wire in level.wires:
            is_boundary = PROXY in (wire.source, wire.target)
            if not frame.has(wire) or (is_boundary and frame.is_body):
                continue
            source = frame.caller if wire.source == PROXY else frame.full(wire.source)
            target = frame.caller if wire.target == PROXY else frame.full(wire.target)
            new = replace(wire, source=source, target=target, when=self._condition(wire.when, frame))
            self.found.wires += _into_body(new, level.members.get(wire.target))
        for member in level.members.values():
            if member.body is not None:
                self.found.wires += _items(frame.full(member.name), member.body)


def _into_body(wire: Wire, target: Member | None) -> list[Wire]:
    """Rows for the joblet in an iterator's body go straight to where they are needed."""
    if target is None or target.body is None or not wire.is_data or wire.to_port not in target.body_inputs:
        return [wire]
    return [
        replace(wire, target=f"{wire.target}.__{inner.target}", to_port=inner.to_port)
        for inner in target.body.out_of(PROXY)
        if inner.port == wire.to_port
    ]


def _items(iterator: str, body: Level) -> list[Wire]:
    """The element, from the iterator into the joblet that is its body."""
    item = item_input(body)
    return [
        replace(wire, source=iterator, port=ITEM, target=f"{iterator}.__{wire.target}")
        for wire in body.out_of(PROXY)
        if wire.port == item
    ]


def _defaults(joblet: Level) -> dict[str, SourceNode]:
    return {name: param.node for name, param in joblet.draft.params.items() if not param.node.is_null}


def _lenders(unit: Unit, joblet: Level, frame: _Frame) -> dict[str, str]:
    """A caller that is a joblet itself may only hand on what its own caller gave."""
    found = dict.fromkeys(joblet.draft.params, joblet.file)
    for name, param in unit.member.draft.params.items():
        passed = leading_param(param.node.text() or "")
        found[name] = frame.lenders.get(passed or "", unit.level.file)
    return found


def _used(joblet: Level) -> Iterable[str]:
    for site in sites(joblet):
        yield from used_params(site.excerpt.text, condition=site.is_condition)


# ---- `{{ params.x }}` inside a joblet: replaced by the caller's value when the call is expanded
#
# A text that is nothing but `{{ params.x }}` becomes the value itself, of whatever kind, with its position in the caller's
# file. Inside a longer text or expression the value is written into it: as a literal, or as an expression where the caller
# gave a template.


Given = Mapping[str, SourceNode]
ROOT = "params"


class Unfit(Exception):
    """A value that cannot be written into an expression."""


def used_params(text: str, *, condition: bool = False) -> Iterator[str]:
    """The parameters that a text reads."""
    if ROOT in text:
        for use in inspect(text, condition=condition).uses:
            if use.path[0] == ROOT and len(use.path) > 1:
                yield use.path[1]


def leading_param(text: str) -> str | None:
    """`x` of a text that begins with `{{ params.x }}`: it is a path of the caller's, if it is a path."""
    if ROOT not in text or not is_template(text):
        return None
    try:
        body = parse(text).body
    except ExpressionError:
        return None
    first = body[0] if body else None
    return _param(first.expr) if isinstance(first, nodes.Output) else None


def substituted(node: SourceNode, given: Given) -> SourceNode:
    """The same value with its parameters filled in. Raises Unfit."""
    if node.kind == "mapping":
        return replace(node, entries={key: substituted(value, given) for key, value in node.entries.items()})
    if node.kind == "sequence":
        return replace(node, items=[substituted(item, given) for item in node.items])
    text = node.text()
    if text is None or ROOT not in text or not is_template(text):
        return node
    try:
        template = parse(text)
    except ExpressionError:
        return node
    whole = None if template.single is None else _param(template.single)
    if whole is not None and whole in given:
        return given[whole]
    filled = _written_out(text, template.body, given)
    # The text no longer stands in the file as it is; as a folded one its words are looked for there.
    return node if filled == text else replace(node, value=filled, style=">")


def substituted_condition(excerpt: Excerpt, given: Given) -> Excerpt:
    if ROOT not in excerpt.text:
        return excerpt
    try:
        spans = list(_in_expression(parse_condition(excerpt.text)))
    except ExpressionError:
        return excerpt
    return replace(excerpt, text=_filled(excerpt.text, spans, given))


def _param(node: nodes.Expr) -> str | None:
    """`x` of a bare `params.x`."""
    path = nodes.path_of(node)
    if path is None or path[0] != ROOT or len(path[1]) != 1:
        return None
    return str(path[1][0])


Span = tuple[int, int, str]
"""Start, end, and the parameter that is read there."""


def _written_out(text: str, body: nodes.Body, given: Given) -> str:
    """Plain texts and numbers stand in the text itself, as if the author had written them; all else in its expression."""
    plain: dict[tuple[int, int], str] = {}
    for part in body:
        name = _param(part.expr) if isinstance(part, nodes.Output) else None
        if name is not None and name in given and text.startswith("{{", part.start) and "-" not in _edges(text, part):
            value = given[name].value
            if isinstance(value, str | int) and not isinstance(value, bool) and not set("{}") & set(str(value)):
                plain[part.start, part.end] = str(value)
    rest = [span for span in _spans(body) if not any(start <= span[0] < end for start, end in plain)]
    changes = {(start, end): as_expression(to_json(given[name])) for start, end, name in rest if name in given}
    for (start, end), new in sorted({**plain, **changes}.items(), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _edges(text: str, part: nodes.Statement) -> str:
    """The signs that would trim the white space around an expression."""
    return text[part.start + 2] + text[part.end - 3]


def _spans(body: nodes.Body) -> list[Span]:
    found: list[Span] = []
    for part in body:
        match part:
            case nodes.Output():
                found += _in_expression(part.expr)
            case nodes.Assign():
                found += _in_expression(part.value)
            case nodes.If():
                for test, inner in part.branches:
                    found += [*_in_expression(test), *_spans(inner)]
                found += _spans(part.otherwise)
            case nodes.For():
                found += _in_expression(part.over)
                if part.where is not None:
                    found += _in_expression(part.where)
                found += [*_spans(part.body), *_spans(part.otherwise)]
    return found


def _in_expression(node: nodes.Expr) -> Iterator[Span]:
    name = _param(node)
    if name is not None:
        yield node.start, node.end, name
        return
    for child in nodes.children(node):
        yield from _in_expression(child)


def _filled(text: str, spans: list[Span], given: Given) -> str:
    for start, end, name in sorted(spans, reverse=True):
        if name in given:
            text = text[:start] + as_expression(to_json(given[name])) + text[end:]
    return text


def as_expression(value: Json) -> str:
    """A value as it is written inside an expression. Raises Unfit."""
    match value:
        case None | bool():
            return {None: "none", True: "true", False: "false"}[value]
        case str() if is_template(value):
            return _joined(value)
        case list():
            return f"[{', '.join(as_expression(item) for item in value)}]"
        case dict():
            return "{" + ", ".join(f"{_quoted(key)}: {as_expression(item)}" for key, item in value.items()) + "}"
        case str():
            return _quoted(value)
        case float() if value < 0 or value != value or value in (float("inf"), float("-inf")):
            if value != value or value in (float("inf"), float("-inf")):
                raise Unfit(f"the number `{value}` cannot be written into an expression")
            return f"({value!r})"
    return f"({value})" if isinstance(value, int) and value < 0 else repr(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _joined(text: str) -> str:
    """A template as one expression: its only one, or its parts put together as text."""
    template = parse(text)
    single = template.single
    if single is not None:
        return f"({text[single.start : single.end]})"
    parts: list[str] = []
    for part in template.body:
        match part:
            case nodes.Text():
                parts.append(_quoted(part.value))
            case nodes.Output():
                parts.append(f"({text[part.expr.start : part.expr.end]})")
            case _:
                raise Unfit("a template with statements cannot be written into an expression")
    return f"({' ~ '.join(parts)})"
