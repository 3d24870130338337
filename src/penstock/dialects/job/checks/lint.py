"""Lint: notes about what is valid and probably not intended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from penstock.dialects.job.checks.names import AFTER_VARIABLES, Site, read_of, sites
from penstock.dialects.job.expand import Expanded, Unit
from penstock.dialects.job.level import PROXY, SET_GLOBAL, Level, Member, Wire
from penstock.dialects.job.lower import early_starts
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Severity, closest
from penstock.dialects.reader import did_you_mean, is_template, texts_in
from penstock.expr.check import Use

_WRITES_ANYTHING = ("context_load", "run_job", "playbook")
_QUIET = ("code", "orchestrate", "iterate", "file")
"""Families whose outputs need not be connected."""


def lint(reading: Reading, expanded: Expanded, *, starts_whole: bool = False) -> None:
    _early_starts(reading, expanded, starts_whole=starts_whole)
    _unread_outputs(reading, expanded)
    _unwritten_globals(reading, expanded)


def _early_starts(reading: Reading, expanded: Expanded, *, starts_whole: bool) -> None:
    """D58: by the rulebook a source starts at T=0, where people who know other tools expect it to wait for its sub-job."""
    for early in early_starts(expanded):
        if starts_whole and not early.is_needed:
            continue
        unit, trigger = early.source, early.triggers[0]
        fires_at, starts_at = trigger.position, unit.member.draft.position
        at = f"line {fires_at.line}" if fires_at.file == starts_at.file else str(fires_at)
        message = f"`{unit.name}` starts with the job and not when its sub-job is triggered by `{_written_as(trigger)}` ({at})"
        link = f"`{trigger.source} ({trigger.on.value}) {unit.member.name}`"
        hint = f"`job_config: {{ start: subjob }}` lets it wait; so does a control link of its own: {link}"
        if early.is_needed:
            hint = "it cannot wait, because what triggers its sub-job needs its rows"
        reading.report("EARLY_START", message, unit.member.draft.position, hint=hint, severity=Severity.WARNING)


def _written_as(wire: Wire) -> str:
    return f"{wire.source} ({wire.on.value}) {wire.target}"


def _unread_outputs(reading: Reading, expanded: Expanded) -> None:
    read = {(wire.source, wire.port) for wire in expanded.wires if wire.is_data}
    mapped = {
        (id(unit.level), wire.source, wire.port) for unit in expanded.units.values() for wire in unit.level.into(PROXY)
    }
    for unit in expanded.units.values():
        description = unit.member.description
        if description is None or description.family in _QUIET or unit.member.ports is None:
            continue
        for port in unit.member.ports.outputs:
            is_read = (unit.name, port.name) in read or (id(unit.level), unit.member.name, port.name) in mapped
            if not (port.reject or port.is_wild or is_read):
                message = f"nobody reads the output `{port.name}` of `{unit.member.name}`"
                hint = "join it to something, or leave the component out"
                reading.report("UNREAD_OUTPUT", message, unit.member.draft.position, hint=hint, severity=Severity.NOTE)


def _unwritten_globals(reading: Reading, expanded: Expanded) -> None:
    units = expanded.units.values()
    levels: dict[int, Level] = {id(unit.level): unit.level for unit in units}
    components = {name: member for level in levels.values() for name, member in level.members.items()}
    written = None if any(unit.type in _WRITES_ANYTHING for unit in units) else _written(units)
    quoted = _quoted_words(units)
    for level in levels.values():
        for site in sites(level):
            for use in _reads(site):
                name = use.path[1]
                known = {*(written or ()), *quoted, *level.draft.components, *components}
                if name in components:
                    reported = _after_variable(use, components[name])
                elif name in known or "." in name:
                    reported = None
                else:
                    reported = _unwritten(use, [*(written or ()), *components], is_known=written is not None)
                if reported is not None:
                    message, label, severity = reported
                    hint = (
                        ""
                        if label
                        else "`set_global` or the code of a component would; a default is read with `| default(…)`"
                    )
                    position = site.excerpt.position(use.start, use.end, level.text)
                    reading.report("UNWRITTEN_GLOBAL", message, position, label=label, hint=hint, severity=severity)


_Said = tuple[str, str, Severity]


def _unwritten(use: Use, known: Iterable[str], *, is_known: bool) -> _Said | None:
    """A condition on a global that is never written is silently false (D40), so a name close to another one is a warning."""
    name = use.path[1]
    if len(use.path) > 2 and _AFTER.fullmatch(use.path[2]):
        return (
            f"there is no component `{name}`, so there is no `{use.path[2]}` of it",
            did_you_mean(name, known),
            Severity.WARNING,
        )
    if not is_known:
        return None
    label = did_you_mean(name, known)
    return f"nothing in this job writes the global `{name}`", label, Severity.WARNING if label else Severity.NOTE


def _after_variable(use: Use, member: Member) -> _Said | None:
    """Components define their own after-variables, so only a name close to a documented one is reported."""
    if len(use.path) < 3 or member.description is None or member.ports is None:
        return None
    name = use.path[2]
    own = {*AFTER_VARIABLES, *_AFTER.findall(member.description.doc)}
    own |= {f"NB_LINE_OUT_{port.name}" for port in member.ports.outputs if not port.is_wild}
    meant = None if name in own or not _AFTER.fullmatch(name) else closest(name, sorted(own))
    if meant is None:
        return None
    return f"`{member.name}` sets no `{name}`", f"did you mean `{meant}`?", Severity.WARNING


_AFTER = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)*\b")


def _reads(site: Site) -> Iterator[Use]:
    for use in read_of(site).uses:
        if use.path[0] in ("global", "globals") and len(use.path) > 1 and not use.guarded:
            yield use


def _written(units: Iterable[Unit]) -> set[str] | None:
    """The globals that are set by name; None when some are named by a template."""
    found: set[str] = set()
    for unit in units:
        found.update(unit.member.draft.exports)
        values = unit.params.get("values") if unit.type == SET_GLOBAL else None
        if values is not None and values.kind != "mapping":
            return None
        found.update(() if values is None else values.entries)
    return found


def _quoted_words(units: Iterable[Unit]) -> set[str]:
    """Words that stand in quotes in some parameter, as `globals['total']` does in code: any of them may be written there."""
    found: set[str] = set()
    for unit in units:
        if unit.type == SET_GLOBAL:
            continue
        for node in unit.params.values():
            for text in texts_in(node):
                if not is_template(text):
                    found.update(match[1] for match in re.finditer(r"[\"']([^\"'\n]+)[\"']", str(text.value)))
    return found
