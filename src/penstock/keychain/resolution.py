"""From what the document declares to a keychain that a run can use. All that is wrong is reported at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from penstock.expr.template import ExpressionError, Names, render
from penstock.kernel.errors import PenstockError
from penstock.kernel.values import JsonMap
from penstock.keychain.errors import KeychainError, KeychainProblem, NotAsked, Unresolved, did_you_mean
from penstock.keychain.kinds import KINDS, Kind
from penstock.keychain.lookup import Lookup
from penstock.keychain.redaction import Redaction
from penstock.keychain.resolved import Entry, Keychain
from penstock.keychain.store import LocalStore
from penstock.keychain.surroundings import Surroundings
from penstock.ports.ambient import Clock
from penstock.tools.addresses import OPEN, Addresses


async def resolve(
    entries: Sequence[JsonMap],
    *,
    folder: Path,
    home: Path,
    environ: Mapping[str, str],
    clock: Clock,
    redaction: Redaction | None = None,
    allowed: Addresses = OPEN,
) -> Keychain:
    """The keychain of a run. Raises KeychainError. A sub-playbook is given its parent's `redaction` to share."""
    shared = redaction if redaction is not None else Redaction()
    where = Surroundings(folder, home, environ, clock, shared, allowed)
    lookups = _lookups(entries, where)
    found, problems = await _looked_up(entries, lookups)
    if problems:
        raise KeychainError(problems)
    warnings = [warning for lookup in lookups for warning in lookup.warnings]
    if entries and LocalStore(home, environ).key_is_open_to_others():
        warnings.append(
            f"others on this machine can read the key of the local keychain: `chmod 600 {home / 'keychain.key'}`"
        )
    return Keychain(found, clock=clock, redaction=where.redaction, warnings=warnings)


async def missing(
    entries: Sequence[JsonMap], *, folder: Path, home: Path, environ: Mapping[str, str], clock: Clock
) -> list[KeychainProblem]:
    """The entries for which a run would be refused, as far as this machine knows: no service is asked, and nothing is kept."""
    where = Surroundings(folder, home, environ, clock, Redaction(), asks=False)
    return (await _looked_up(entries, _lookups(entries, where)))[1]


def _lookups(entries: Sequence[JsonMap], where: Surroundings) -> list[Lookup]:
    return [Lookup(_name_of(entry, number), where) for number, entry in enumerate(entries)]


async def _looked_up(
    entries: Sequence[JsonMap], lookups: list[Lookup]
) -> tuple[dict[str, Entry], list[KeychainProblem]]:
    problems = _double_names([lookup.name for lookup in lookups])
    found: dict[str, Entry] = {}
    for lookup, result in zip(lookups, await asyncio.gather(*map(_resolved, entries, lookups)), strict=True):
        if isinstance(result, Entry):
            found[lookup.name] = result
        elif result is not None:
            problems += [KeychainProblem(lookup.name, each.message, each.hint) for each in (result, *result.also)]
    return found, problems


def _name_of(entry: JsonMap, number: int) -> str:
    name = entry.get("name")
    return name if isinstance(name, str) and name.strip() else f"number {number + 1}"


def _double_names(names: list[str]) -> list[KeychainProblem]:
    doubles = {name: names.count(name) for name in names if names.count(name) > 1}
    return [
        KeychainProblem(name, f"{count} entries have this name", "give each its own") for name, count in doubles.items()
    ]


async def _resolved(entry: JsonMap, lookup: Lookup) -> Entry | Unresolved | None:
    """None if only a service could tell."""
    given: JsonMap = {name: value for name, value in entry.items() if value is not None}
    try:
        kind = _kind_of(given)
        kind.check(given)
        return await kind.resolve(kind, given, lookup)
    except NotAsked:
        return None
    except Unresolved as error:
        return error
    except PenstockError as error:
        return Unresolved(error.message, error.hint or "")


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
    return KINDS[str(kind)]


# ---- What a document declares in `keychain`, with its templates filled in: a playbook's see its workload, a job's its
# context.


def rendered_entries(entries: Sequence[JsonMap], kind: str, inputs: Mapping[str, Any]) -> list[JsonMap]:
    """`kind` is the document's. A field that reads an undefined value is an error."""
    scope = Names({**inputs, ("context" if kind == "job" else "workload"): inputs})
    made: list[JsonMap] = []
    problems: list[KeychainProblem] = []
    for number, entry in enumerate(entries):
        try:
            made.append(cast(JsonMap, render(entry, scope)))
        except ExpressionError as error:
            field = f"`{error.path[0]}`: " if error.path else ""
            hint = "give it a default in `context`" if kind == "job" else "give it a default in `workload`"
            problems.append(KeychainProblem(str(entry.get("name") or f"number {number + 1}"), f"{field}{error}", hint))
    if problems:
        raise KeychainError(problems)
    return made
