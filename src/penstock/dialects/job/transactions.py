"""Shared transactions: which components of a sub-job take part, and where a transaction ends.

Law: what `transaction: shared` joins is one sub-job, because that is what is kept or run again as a whole. The planner lets the
writers of the same connection join, and puts one component at the end of the sub-job, which all members lead to, and all that
nothing follows: when it is decided, everything else in the sub-job has been. A writer that an `error` link leads to has a
transaction of its own: it records the failure that rolls the shared one back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count

from penstock.dialects.job.drafts import ComponentDraft
from penstock.dialects.job.expand import Expanded, ExpandedSubjob, Unit
from penstock.dialects.job.level import RUN_SQL, WRITE_SQL, Member, Wire
from penstock.dialects.job.order import reached
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Position, Severity
from penstock.dialects.source.node import SourceNode, to_json
from penstock.kernel.net import On
from penstock.ports.components import SHARED_COMMIT, Ports

_SHARED = "shared"
_READERS = ("read_sql", "iterate_query", "wait_for_rows")


def share_transactions(reading: Reading, expanded: Expanded) -> None:
    for scope in expanded.scopes.values():
        for subjob in scope.subjobs:
            _share(reading, expanded, subjob)


def _share(reading: Reading, expanded: Expanded, subjob: ExpandedSubjob) -> None:
    units = [expanded.units[name] for name in subjob.members]
    connections = {_connection(unit) for unit in units if _asks(unit)}
    if not connections:
        return
    after = _after(expanded, subjob)
    led_to = {wire.target for wire in expanded.wires if wire.on is On.ERROR and wire.target in after}
    handlers = led_to.union(*(reached(name, after) for name in led_to))
    for unit in units:
        joins = unit.type == WRITE_SQL and "transaction" not in unit.params and unit.name not in handlers
        if joins and _connection(unit) in connections:
            unit.params["transaction"] = SourceNode("scalar", unit.member.draft.position, _SHARED)
    members = [unit for unit in units if _asks(unit)]
    for connection in sorted(connections):
        having = [unit for unit in members if _connection(unit) == connection]
        if len(having) == 1:
            _report_alone(reading, expanded, having[0])
        _report_beside(reading, expanded, subjob, having, set().union(*(reached(one.name, after) for one in having)))
    _put_commit(reading, expanded, subjob, members)


def _asks(unit: Unit) -> bool:
    node = unit.params.get("transaction")
    return unit.type in (RUN_SQL, WRITE_SQL) and node is not None and node.text() == _SHARED


def _connection(unit: Unit) -> str:
    """The database as the document names it. `connection: warehouse` is the keychain entry, as `auth: warehouse` is."""
    given = {name: to_json(node) for name, node in unit.params.items() if name in ("connection", "auth")}
    connection, auth = given.get("connection"), given.get("auth")
    if isinstance(connection, str) and "://" not in connection and auth is None:
        connection, auth = None, connection
    return json.dumps([connection, auth], sort_keys=True)


def _after(expanded: Expanded, subjob: ExpandedSubjob) -> dict[str, list[str]]:
    """What comes after a component within its sub-job."""
    found: dict[str, list[str]] = {name: [] for name in subjob.members}
    for wire in expanded.wires:
        if wire.source in found and wire.target in found:
            found[wire.source].append(wire.target)
    return found


def _report_alone(reading: Reading, expanded: Expanded, unit: Unit) -> None:
    others = [
        other.name
        for other in expanded.units.values()
        if other is not unit and other.type in (RUN_SQL, WRITE_SQL) and _connection(other) == _connection(unit)
    ]
    elsewhere = f"`{others[0]}` writes to it in another sub-job, which commits by itself" if others else ""
    message = (
        f"`{unit.member.name}` is to share a transaction, and nothing else in its sub-job writes to this connection"
    )
    hint = elsewhere or "a `write_sql` with the same `connection` or `auth` would; or write `transaction: own`"
    reading.report("UNSHARED_TRANSACTION", message, _position(unit), hint=hint)


def _report_beside(
    reading: Reading, expanded: Expanded, subjob: ExpandedSubjob, having: list[Unit], after: set[str]
) -> None:
    """Others that use the database meanwhile."""
    for unit in _inside(expanded, subjob):
        if _connection(unit) != _connection(having[0]) or unit in having:
            continue
        is_reader, is_own = unit.type in _READERS, unit.name in subjob.members
        is_handler = is_own and not is_reader and _is_told_so(unit)
        if is_handler or (is_own and is_reader and unit.name not in after):
            continue  # A reader that nothing of it comes before reads what the transaction begins with.
        what = "reads from" if is_reader else "writes to"
        message = f"`{unit.name}` {what} the database of the transaction that `{having[0].name}` shares, outside of it"
        hint = "put it into another sub-job: `subjob_ok`"
        reading.report("BESIDE_TRANSACTION", message, unit.member.draft.position, hint=hint, severity=Severity.WARNING)


def _is_told_so(unit: Unit) -> bool:
    """The author gave it another transaction, or an error link leads to it."""
    return (
        unit.type == RUN_SQL
        or "transaction" in unit.params
        or any(wire.on is On.ERROR for wire in unit.level.into(unit.member.name))
    )


def _inside(expanded: Expanded, subjob: ExpandedSubjob) -> Iterator[Unit]:
    """Members, and what the iterators and joblets among them open."""
    around = set(subjob.members)
    for unit in expanded.units.values():
        if unit.name in around or unit.container in around:
            around.add(unit.name)
            if unit.type in (RUN_SQL, WRITE_SQL, *_READERS):
                yield unit


def _put_commit(reading: Reading, expanded: Expanded, subjob: ExpandedSubjob, members: list[Unit]) -> None:
    first = members[0]
    local = next(
        name
        for number in count(1)
        if (name := f"commit_{first.member.name}{'' if number == 1 else number}") not in first.level.members
    )
    prefix = first.name.removesuffix(first.member.name)
    draft = ComponentDraft(local, first.member.draft.position, SHARED_COMMIT, _position(first))
    member = Member(draft, len(first.level.members), Ports((), ()), reading.catalog.describe(SHARED_COMMIT))
    full = f"{prefix}{local}"
    unit = Unit(
        full,
        first.local.removesuffix(first.member.name) + local,
        first.container,
        first.prefix,
        first.level,
        member,
        {},
    )
    following = {wire.source for wire in expanded.wires if wire.target in subjob.members and wire.target != wire.source}
    last = [name for name in subjob.members if name not in following]
    sources = dict.fromkeys([*(one.name for one in members), *last])
    expanded.units[full] = unit
    expanded.wires += [Wire(name, full, On.OK, _position(first)) for name in sources]
    expanded.order.append(full)
    subjob.members.append(full)


def _position(unit: Unit) -> Position:
    node = unit.params.get("transaction")
    return node.position if node is not None else unit.member.draft.position
