"""Literals in parameters, before the run: URLs, files, code, names of secrets, paths of other documents.

The expanded job is checked, in which the parameters of joblets have the values of each call.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from penstock.dialects import literals
from penstock.dialects.calls import JOB_CALLS, DocumentCall, call_in
from penstock.dialects.job.context import target_of
from penstock.dialects.job.expand import Expanded, Unit
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Position, Severity
from penstock.dialects.reader import is_template
from penstock.dialects.source.positions import position_in_text
from penstock.expr.check import inspect
from penstock.kernel.net import On
from penstock.kernel.values import JsonMap

_MANY_FILES = frozenset({"file_unarchive", "file_transfer"})
_HANDLES = frozenset({On.ERROR, On.SUBJOB_ERROR})
_RETURN_HINT = "set `output`, `result` or `reject`; code here returns nothing"


@dataclass(slots=True)
class Found:
    """What the literals of a job bring along."""

    calls: list[DocumentCall] = field(default_factory=list)
    entries: list[JsonMap] = field(default_factory=list)
    """Secrets that are named and not declared: declared by their use, so that they are looked up before anything runs."""
    positions: dict[str, Position] = field(default_factory=dict)


@dataclass(slots=True)
class Literals:
    """The check of one job. `folders`: component -> where its paths begin. `looks`: can files be looked for here?"""

    reading: Reading
    expanded: Expanded
    declared: frozenset[str]
    folders: Mapping[str, Path | None]
    texts: Mapping[str, str]
    written: Set[str]
    """The files that the job itself makes."""
    looks: bool
    is_joblet: bool
    context: Set[str] = frozenset()
    """The names that the job's inputs have."""
    found: Found = field(default_factory=Found)
    _named: set[str] = field(default_factory=set)
    _targets: dict[str, list[str]] = field(default_factory=dict)

    def check(self) -> Found:
        for unit in self.expanded.units.values():
            self._unit(unit)
        return self.found

    def _unit(self, unit: Unit) -> None:
        description = unit.member.description
        if description is None:
            return
        for literal in literals.literals(unit.params, description.schema, unit.type):
            self._flaw(literal)
            self._file(unit, literal)
            if (name := literal.entry) is not None:
                self._entry(name, literal)
        for literal in literals.named_by_templates(unit.params, description.schema, unit.type):
            self._entry_to_come(literal)
        if unit.type in JOB_CALLS:
            made = any(self._makes(other, None) for other in self._others(unit))
            folder = self.folders.get(unit.name)
            may_be_absent = made or self._is_foreseen(unit)
            call = call_in(unit.name, unit.params, JOB_CALLS[unit.type], folder=folder, may_be_absent=may_be_absent)
            self.found.calls += [call] if call is not None else []

    def _flaw(self, literal: literals.Literal) -> None:
        flaw = literals.code_flaw(literal)
        if flaw is not None:
            hint = _RETURN_HINT if "'return' outside" in flaw.message else flaw.hint
            self.reading.report("BAD_PYTHON", flaw.message, self._position(literal, flaw), label=flaw.label, hint=hint)
        elif (flaw := literals.url_flaw(literal)) is not None:
            self.reading.report("BAD_URL", flaw.message, literal.node.position, label=flaw.label, hint=flaw.hint)

    def _position(self, literal: literals.Literal, flaw: literals.Flaw) -> Position:
        node = literal.node
        if flaw.offset is None:
            return node.position
        return position_in_text(node, flaw.offset, flaw.offset + 1, self.texts.get(node.position.file, ""))

    # ---- secrets

    def _entry(self, name: str, literal: literals.Literal) -> None:
        if name in self.declared or name in self._named or self.is_joblet:
            return
        self._named.add(name)
        flaw, position = literals.undeclared_flaw(literal, self.declared), literal.node.position
        self.reading.report(
            "UNDECLARED_SECRET", flaw.message, position, label=flaw.label, hint=flaw.hint, severity=Severity.WARNING
        )
        self._declare(name, position)

    def _entry_to_come(self, literal: literals.Literal) -> None:
        """A name that follows from the inputs is looked up before the run, too; another one when its component starts."""
        inspection = inspect(literal.text)
        if literal.text in self._named or self.is_joblet or inspection.findings or not inspection.uses:
            return
        if all(use.path[0] == "context" or use.path[0] in self.context for use in inspection.uses):
            self._named.add(literal.text)
            self._declare(literal.text, literal.node.position)

    def _declare(self, name: str, position: Position) -> None:
        self.found.entries.append({"name": name, "kind": "secret_manager"})
        self.found.positions[name] = position

    # ---- files

    def _file(self, unit: Unit, literal: literals.Literal) -> None:
        folder = self.folders.get(unit.name)
        looked_for = literals.missing_file(literal, folder) if self.looks and folder is not None else None
        if looked_for is None or os.path.abspath(looked_for) in self.written:
            return
        is_certain = self._runs_at_once(unit) and not any(self._makes(other, literal) for other in self._others(unit))
        flaw = literals.missing_flaw(literal, looked_for, unit.name, is_certain=is_certain)
        severity = literals.missing_severity(literal, is_certain=is_certain, is_foreseen=self._is_foreseen(unit))
        self.reading.report("MISSING_FILE", flaw.message, literal.node.position, hint=flaw.hint, severity=severity)

    def _runs_at_once(self, unit: Unit) -> bool:
        """It starts with the job, whatever else happens, and nothing in the job answers its failure."""
        around = {unit.name, *_callers(unit.name)}
        if (unit.container and unit.container not in around) or self._is_foreseen(unit):
            return False
        return not any(wire.target in around and wire.source not in around for wire in self.expanded.wires)

    def _is_foreseen(self, unit: Unit) -> bool:
        """The author expects that it may fail or not run: it has an outgoing `error` link or an incoming `if` link."""
        around = {unit.name, *_callers(unit.name)}
        subjobs = [one for scope in self.expanded.scopes.values() for one in scope.subjobs]
        beside = {name for one in subjobs if unit.name in one.members for name in one.members} | around
        return any(
            (wire.on in _HANDLES and wire.source in beside) or (wire.on is On.IF and wire.target in around)
            for wire in self.expanded.wires
        )

    def _others(self, unit: Unit) -> Iterator[Unit]:
        """Components that could run before it: all but those that it leads to."""
        if not self._targets:
            for wire in self.expanded.wires:
                self._targets.setdefault(wire.source, []).append(wire.target)
        after: set[str] = {unit.name}
        waiting = [unit.name]
        while waiting:
            for target in self._targets.get(waiting.pop(), ()):
                if target not in after:
                    after.add(target)
                    waiting.append(target)
        return (other for name, other in self.expanded.units.items() if name not in after)

    def _makes(self, unit: Unit, wanted: literals.Literal | None) -> bool:
        description = unit.member.description
        if description is None or not description.makes_files:
            return False
        # A writer makes what it names, and nothing else; what is unpacked or fetched has names of its own.
        target = target_of(unit) if wanted is not None and unit.type not in _MANY_FILES else None
        return target is None or is_template(target)


def _callers(name: str) -> Iterator[str]:
    """The joblet calls that a component lies in."""
    while ".__" in name:
        name = name.rpartition(".__")[0]
        yield name
