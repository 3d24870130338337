"""From what the document declares to a keychain that a run can use. All that is wrong is reported at once.

Law: an entry sees the document's inputs, and the entries that it names in a template; those are resolved before it, all others
beside it. What a template makes of a secret is a secret, whatever field it stands in, and is made anew when that is renewed. An
entry whose own name is a template stands for the credential of a task's `auth`: without a name it is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, cast

from penstock.expr.check import inspect
from penstock.expr.template import ExpressionError, Names, is_template, render
from penstock.kernel.errors import PenstockError, Refused
from penstock.kernel.values import Json, JsonMap
from penstock.keychain.errors import KeychainError, KeychainProblem, NotAsked, Unresolved, did_you_mean
from penstock.keychain.kinds import KINDS, Kind
from penstock.keychain.lookup import Lookup
from penstock.keychain.providers import usual
from penstock.keychain.redaction import Redaction
from penstock.keychain.resolved import Entry, Grant, Keychain, fill_in, frozen, secrets_in
from penstock.keychain.secret import Secret, marker_of, reveal
from penstock.keychain.store import LocalStore
from penstock.keychain.surroundings import Surroundings
from penstock.ports.ambient import Clock
from penstock.tools.addresses import OPEN, Addresses


@dataclass(frozen=True, slots=True)
class Inputs:
    """What templates of entries see beside other entries: a playbook's workload, a job's context."""

    values: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "playbook"

    @property
    def space(self) -> str:
        return "context" if self.kind == "job" else "workload"

    def scope(self, keychain: Mapping[str, object]) -> Names:
        return Names({**self.values, self.space: self.values, "keychain": keychain})


async def resolve(
    entries: Sequence[JsonMap],
    *,
    folder: Path,
    home: Path,
    environ: Mapping[str, str],
    clock: Clock,
    inputs: Inputs | None = None,
    redaction: Redaction | None = None,
    allowed: Addresses = OPEN,
) -> Keychain:
    """The keychain of a run. Raises KeychainError. A sub-playbook is given its parent's `redaction` to share."""
    shared = redaction if redaction is not None else Redaction()
    where = Surroundings(folder, home, environ, clock, shared, allowed)
    resolution = _Resolution(entries, inputs or Inputs(), where)
    problems = await resolution.run()
    if problems:
        raise KeychainError(problems)
    warnings = [where.redaction.hide(warning) for one in resolution.wanted for warning in one.lookup.warnings]
    if entries and LocalStore(home, environ).key_is_open_to_others():
        warnings.append(
            f"others on this machine can read the key of the local keychain: `chmod 600 {home / 'keychain.key'}`"
        )

    def look_up(name: str) -> Entry:
        lookup = Lookup(name, where.for_data())
        value = usual(name, lookup.where)
        return Entry(lookup.classified(value)) if isinstance(value, dict) else lookup.single(str(value))

    return Keychain(resolution.found, clock=clock, redaction=shared, warnings=warnings, look_up=look_up)


async def missing(
    entries: Sequence[JsonMap],
    *,
    folder: Path,
    home: Path,
    environ: Mapping[str, str],
    clock: Clock,
    inputs: Inputs | None = None,
    is_here: bool = True,
) -> list[KeychainProblem]:
    """The entries for which a run would be refused, as far as this machine knows: no service is asked, and nothing is kept.
    `is_here`: the run would be on this machine."""
    where = Surroundings(folder, home, environ, clock, Redaction(), asks=False, is_here=is_here)
    return await _Resolution(entries, inputs or Inputs(), where).run()


def read_in(value: Json) -> frozenset[str] | None:
    """The entries that templates in `value` read; None when it may be any."""
    found: set[str] = set()
    for text in _templates(value):
        for use in inspect(text).uses:
            if use.path[0] == "keychain":
                if len(use.path) < 2:
                    return None
                found.add(str(use.path[1]))
    return frozenset(found)


def _templates(value: Json) -> Iterator[str]:
    match value:
        case str() if is_template(value):
            yield value
        case dict():
            for inner in value.values():
                yield from _templates(inner)
        case list():
            for inner in value:
                yield from _templates(inner)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One entry to resolve. `declared`: its name as the document has it, where that is a template."""

    entry: JsonMap
    lookup: Lookup
    needs: tuple[str, ...]
    declared: str = ""

    @property
    def name(self) -> str:
        return self.lookup.name

    def problem(self, message: str, hint: str) -> KeychainProblem:
        hide = self.lookup.where.redaction.hide
        return KeychainProblem(self.name, hide(message), hide(hint), declared=self.declared)


class _Resolution:
    def __init__(self, entries: Sequence[JsonMap], inputs: Inputs, where: Surroundings) -> None:
        self._inputs = inputs
        self.found: dict[str, Entry] = {}
        names = [_name_of(entry, number) for number, entry in enumerate(entries)]
        known = frozenset(name for name in names if not is_template(name))
        self.wanted = [
            _Wanted(entry, Lookup(name, where), _needs(entry, known))
            for entry, name in zip(entries, names, strict=True)
            if not is_template(name)
        ]
        taken = set(known)
        for entry, name in zip(entries, names, strict=True):
            meant = self._meant(name) if is_template(name) else None
            if meant is not None and meant not in taken:
                taken.add(meant)
                self.wanted.append(_Wanted({**entry, "name": meant}, Lookup(meant, where.for_data()), (), name))

    def _meant(self, template: str) -> str | None:
        """The name that a task's `auth` gives with these inputs. One that is undefined is the task's own problem."""
        try:
            name = render(template, self._inputs.scope({}))
        except ExpressionError:
            return None
        return name if isinstance(name, str) and name.strip() and "://" not in name else None

    async def run(self) -> list[KeychainProblem]:
        problems = _double_names([one.name for one in self.wanted])
        cycle = self._cycle()
        if cycle:
            return [*problems, cycle]
        order = TopologicalSorter({one.name: one.needs for one in self.wanted}).static_order()
        rank = {name: at for at, name in enumerate(order)}
        tasks: dict[str, asyncio.Task[Entry | Unresolved | None]] = {}
        running = []
        for one in sorted(self.wanted, key=lambda each: rank[each.name]):
            tasks[one.name] = asyncio.ensure_future(self._after([tasks[need] for need in one.needs], one))
            running.append((one, tasks[one.name]))
        await asyncio.gather(*(task for _, task in running))
        for one, task in running:
            result = task.result()
            if isinstance(result, Entry):
                self.found[one.name] = result
            elif result is not None:
                problems += [one.problem(each.message, each.hint) for each in (result, *result.also)]
        return problems

    def _cycle(self) -> KeychainProblem | None:
        try:
            TopologicalSorter({one.name: one.needs for one in self.wanted}).prepare()
        except CycleError as error:
            around = " → ".join(f"`{name}`" for name in error.args[1])
            return KeychainProblem(
                error.args[1][0], f"it reads itself: {around}", "write one of them without the others"
            )
        return None

    async def _after(
        self, needs: Sequence[asyncio.Task[Entry | Unresolved | None]], one: _Wanted
    ) -> Entry | Unresolved | None:
        """None if only a service could tell, or if an entry that it reads cannot be had: that one is reported."""
        there = [await each for each in needs]
        if not all(isinstance(each, Entry) for each in there):
            return None
        held = dict(zip(one.needs, cast("list[Entry]", there), strict=True))
        try:
            entry = await self._resolved(one, held)
        except NotAsked:
            return None
        except Unresolved as error:
            return error
        except PenstockError as error:
            return Unresolved(error.message, error.hint or "")
        return entry

    async def _resolved(self, one: _Wanted, needs: Mapping[str, Entry]) -> Entry:
        """Raises NotAsked, Unresolved or a PenstockError."""
        given: JsonMap = {name: value for name, value in self._rendered(one, needs).items() if value is not None}
        kind = _kind_of(given)
        kind.check(given)
        entry = await kind.resolve(kind, given, one.lookup)
        ends = [each.renew_at for each in (entry, *needs.values()) if each.renew_at is not None]
        if not any(each.renew for each in needs.values()):
            return entry

        async def again() -> Grant:
            """What it needs has been renewed before."""
            try:
                made = await self._resolved(one, needs)
            except Unresolved as error:
                raise Refused(f"keychain entry `{one.name}`: {error.message}", error.hint) from error
            return Grant(made.content, made.renew_at, made.fields)

        return replace(entry, renew=again, renew_at=min(ends, default=None), needs=one.needs)

    def _rendered(self, one: _Wanted, needs: Mapping[str, Entry]) -> JsonMap:
        """The fields with their templates filled in, in plain text."""
        scope = self._inputs.scope({name: frozen(entry.content) for name, entry in needs.items()})
        try:
            values = render(one.entry, scope)
        except ExpressionError as error:
            field = f"`{error.path[0]}`: " if error.path else ""
            hint = f"give it a default in `{self._inputs.space}`" if not needs else ""
            raise Unresolved(f"{field}{error}", hint) from error
        secrets = {marker_of(each): each for entry in needs.values() for _, each in secrets_in(entry.content)}
        return cast(JsonMap, _plain(values, secrets, one.lookup))


def _plain(value: Any, secrets: Mapping[str, Secret], lookup: Lookup) -> Json:
    match value:
        case Secret():
            return lookup.derive(reveal(value))
        case str():
            text = fill_in(value, secrets)
            return text if text == value else lookup.derive(text)
        case Mapping():
            return {name: _plain(each, secrets, lookup) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each, secrets, lookup) for each in value]
        case _:
            return cast(Json, value)


def _needs(entry: JsonMap, known: frozenset[str]) -> tuple[str, ...]:
    """What it reads, as far as it is declared: the rest is undefined, and reported as such."""
    read = read_in(entry)
    return tuple(sorted(known - {entry.get("name")} if read is None else known & read))


def _name_of(entry: JsonMap, number: int) -> str:
    name = entry.get("name")
    return name if isinstance(name, str) and name.strip() else f"number {number + 1}"


def _double_names(names: list[str]) -> list[KeychainProblem]:
    doubles = {name: names.count(name) for name in names if names.count(name) > 1}
    return [
        KeychainProblem(name, f"{count} entries have this name", "give each its own") for name, count in doubles.items()
    ]


def _kind_of(given: JsonMap) -> Kind:
    wrong = []
    if not isinstance(given.get("name"), str) or not str(given["name"]).strip():
        wrong.append(Unresolved("`name` is missing or not a text"))
    kind = given.get("kind")
    known = f"it is one of {', '.join(f'`{each}`' for each in KINDS)}"
    if kind is None:
        wrong.append(Unresolved("`kind` is missing", known))
    elif not isinstance(kind, str) or kind not in KINDS:
        wrong.append(Unresolved(f"`{kind}` is not a kind of keychain entry", did_you_mean(str(kind), KINDS) or known))
    if wrong:
        raise Unresolved.together(wrong)
    return KINDS[str(kind)].of(given)
