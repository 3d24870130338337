"""Columns before the run: each component infers its output columns from its input columns, in topological order.

A component reports a mistake at an offset in a parameter, which is mapped to its position in the file here. Columns that a
document declares are not verified.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from penstock.dialects.job.checks.names import WHILE
from penstock.dialects.job.component import can_become
from penstock.dialects.job.context import Context, Folders, written_files
from penstock.dialects.job.engines import SubjobEngines
from penstock.dialects.job.expand import Expanded, Unit
from penstock.dialects.job.level import Wire
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Position
from penstock.dialects.reader import did_you_mean, is_template, listed
from penstock.dialects.source.node import SourceNode
from penstock.dialects.source.positions import position_in_text
from penstock.kernel.errors import PenstockError
from penstock.ports.components import UNKNOWN, Inferred, Mistake
from penstock.ports.rows import Column, Schema

Origin: TypeAlias = tuple[str, str, str]
"""A component, one of its output ports, and a column there."""

_NAMES = {
    "column": "UNKNOWN_COLUMN",
    "type": "TYPE_MISMATCH",
    "syntax": "BAD_SQL",
    "value": "BAD_PARAM",
    "engine": "NOT_ON_ENGINE",
}
_PASSING = ("transform", "quality")
"""Families whose outputs are made of their inputs, so that a declared column cannot come from anywhere else."""


@dataclass(slots=True)
class Columns:
    schemas: dict[tuple[str, str], Schema | None] = field(default_factory=dict)
    """(component, output port) -> its columns, None where they cannot be known."""
    lineage: dict[tuple[str, str], dict[str, tuple[Origin, ...]]] = field(default_factory=dict)
    """(component, output port) -> column -> where it comes from, one component back."""


def infer(
    reading: Reading,
    expanded: Expanded,
    context: Context,
    folders: Folders,
    texts: Mapping[str, str],
    wrong: Mapping[str, frozenset[str]],
    engines: SubjobEngines,
) -> Columns:
    """`wrong` has the parameters of each component that have been reported already."""
    inference = _Inference(reading, expanded, context, folders, texts, wrong, engines)
    for name in expanded.order:
        inference.unit(expanded.units[name])
    return inference.found


class _Inference:
    def __init__(
        self,
        reading: Reading,
        expanded: Expanded,
        context: Context,
        folders: Folders,
        texts: Mapping[str, str],
        wrong: Mapping[str, frozenset[str]],
        engines: SubjobEngines,
    ) -> None:
        self.reading = reading
        self.context = context
        self.folders = folders
        self.texts = texts
        self.found = Columns()
        self.arrivals: dict[str, list[Wire]] = {}
        self.leaving: dict[str, list[Wire]] = {}
        self.expanded = expanded
        self.units = expanded.units
        self.boundary = expanded.boundary
        self.wrong = wrong
        self.engines = engines
        self.reported: set[tuple[str, Position]] = set()
        self._paths: set[str] | None = None
        for wire in expanded.wires:
            if wire.is_data:
                self.arrivals.setdefault(wire.target, []).append(wire)
                self.leaving.setdefault(wire.source, []).append(wire)

    def unit(self, unit: Unit) -> None:
        if unit.member.description is None:
            self._call(unit)
            return
        inputs = {wire.to_port: self._arriving(unit.name, wire.to_port) for wire in self.arrivals.get(unit.name, ())}
        inputs.update({wire.to_port: None for wire in self.boundary if wire.target == unit.name})
        # The unconnected port has been reported; the component sees an input with unknown columns.
        for port in unit.member.ports.inputs if unit.member.ports else ():
            if port.required and not any(map(port.accepts, inputs)):
                inputs[port.name] = None
        leaving = (*self.leaving.get(unit.name, ()), *(wire for wire in self.boundary if wire.source == unit.name))
        outputs = tuple(sorted({wire.port for wire in leaving}))
        params = {name: self._value(unit, name, node) for name, node in unit.params.items()}
        inferred = self._asked(unit, params, inputs, outputs)
        for mistake in inferred.mistakes:
            self._mistake(unit, params, mistake)
        for port in (*outputs, *(port for port in unit.member.draft.schemas if port not in outputs)):
            self.found.schemas[unit.name, port] = self._schema(unit, port, inferred.outputs.get(port))
        self._lineage(unit, inferred)

    def _call(self, unit: Unit) -> None:
        """A call passes on what comes in; what goes out is known once its inside has been worked out."""
        for wire in self.leaving.get(unit.name, ()):
            self.found.schemas.setdefault((unit.name, wire.port), self._arriving(unit.name, wire.port))

    def _value(self, unit: Unit, name: str, node: SourceNode) -> Any:
        if unit.type == WHILE and name == "while":
            return UNKNOWN
        value = self.context.value(node)
        # What lies there now is not what the job will read: it makes the file itself.
        is_file = name == "path" and _family(unit) == "read" and isinstance(value, str)
        return UNKNOWN if is_file and self._whole(unit, value) in self._made() else value

    def _folder(self, unit: Unit) -> Path:
        return self.folders.of(unit.name, self.context.text)

    def _whole(self, unit: Unit, path: str) -> str:
        return os.path.abspath(self._folder(unit) / path)

    def _made(self) -> set[str]:
        if self._paths is None:
            self._paths = written_files(self.expanded, self.context, self.folders)
        return self._paths

    def _arriving(self, name: str, port: str) -> Schema | None:
        """The columns on an input; of several links those of the first that is known."""
        for wire in self.arrivals.get(name, ()):
            if wire.to_port == port:
                known = self._leaving(wire.source, wire.port)
                if known is not None:
                    return known
        return None

    def _leaving(self, name: str, port: str) -> Schema | None:
        known = self.found.schemas.get((name, port))
        if known is None and self.units[name].member.description is None:
            known = self.found.schemas[name, port] = self._arriving(name, port)
        return known

    def _asked(
        self, unit: Unit, params: dict[str, Any], inputs: dict[str, Schema | None], outputs: tuple[str, ...]
    ) -> Inferred:
        try:
            declared = {port: one.schema for port, one in unit.member.draft.schemas.items()}
            choice = self.engines.of(unit.name)
            return self.reading.catalog.infer(
                unit.type, params, inputs, outputs, self._folder(unit), declared, choice.dialect if choice else "duckdb"
            )
        except PenstockError as error:
            hint = error.hint or ""
            self.reading.report("BAD_PARAM", f"`{unit.name}`: {error.message}", unit.member.draft.position, hint=hint)
            return Inferred()

    def _schema(self, unit: Unit, port: str, inferred: Schema | None) -> Schema | None:
        declared = unit.member.draft.schemas.get(port)
        if declared is None:
            return inferred
        assert unit.member.description is not None
        if inferred is not None and unit.member.description.family in _PASSING:
            known = {column.name: column.type for column in inferred}
            for column, position in zip(declared.schema, declared.positions, strict=True):
                if column.name in known and not can_become(known[column.name], column.type):
                    was = f"`{column.name}` of `{unit.name}` is {known[column.name]}, and is declared as {column.type}"
                    hint = "convert it in an expression or with `convert_types`, or declare what it is"
                    self.reading.report("TYPE_MISMATCH", was, position, hint=hint)
                if column.name not in known:
                    message = f"`{unit.name}` declares the column `{column.name}`, and `{port}` has no such column"
                    label = did_you_mean(column.name, known)
                    self.reading.report(
                        "UNKNOWN_COLUMN", message, position, label=label, hint=f"it has {listed(known)}"
                    )
        return declared.schema

    def _lineage(self, unit: Unit, inferred: Inferred) -> None:
        for port, columns in inferred.lineage.items():
            self.found.lineage[unit.name, port] = {
                column: tuple(
                    dict.fromkeys(
                        origin for source, name in made_of for origin in self._origins(unit.name, source, name)
                    )
                )
                for column, made_of in columns.items()
            }

    def _origins(self, name: str, port: str, column: str) -> list[Origin]:
        """The columns on the other end of the links into a port; calls of joblets are looked through."""
        found: list[Origin] = []
        for wire in self.arrivals.get(name, ()):
            if wire.to_port != port:
                continue
            if self.units[wire.source].member.description is None:
                found += self._origins(wire.source, wire.port, column)
            elif _has(self.found.schemas.get((wire.source, wire.port)), column):
                found.append((wire.source, wire.port, column))
        return found

    # ---- mistakes

    def _mistake(self, unit: Unit, params: dict[str, Any], mistake: Mistake) -> None:
        if mistake.path and mistake.path[0] in self.wrong.get(unit.name, ()):
            return
        message = mistake.message if f"`{unit.name}`" in mistake.message else f"{mistake.message} (in `{unit.name}`)"
        position = self._position(unit, params, mistake)
        # Two calls of one joblet make the same mistake in the same place.
        if (mistake.message, position) in self.reported:
            return
        self.reported.add((mistake.message, position))
        self.reading.report(_NAMES[mistake.kind], message, position, label=mistake.label, hint=mistake.hint)

    def _position(self, unit: Unit, params: dict[str, Any], mistake: Mistake) -> Position:
        if not mistake.path:
            return unit.member.draft.position
        node = unit.params.get(str(mistake.path[0]))
        if node is None:
            return unit.member.draft.type_position
        value: Any = params.get(str(mistake.path[0]))
        for step in mistake.path[1:]:
            inner = _inside(node, step)
            if inner is None:
                return _key(node, step)
            node, value = inner, _inner_value(value, step)
        if mistake.offset is None or node.text() is None:
            return node.position
        return self._in_text(node, value, mistake)

    def _in_text(self, node: SourceNode, value: Any, mistake: Mistake) -> Position:
        assert mistake.offset is not None
        start, end = mistake.offset, mistake.offset + max(1, mistake.length)
        text = str(node.value)
        if is_template(node):
            # The offset is into the rendered text; the word itself may still stand in the author's, if only once.
            word = value[start:end] if isinstance(value, str) else ""
            if not word or text.count(word) != 1:
                return node.position
            start = text.index(word)
            end = start + len(word)
        return position_in_text(node, start, end, self.texts.get(node.position.file, ""))


def _has(schema: Schema | None, column: str) -> bool:
    return schema is None or any(_same(each, column) for each in schema)


def _same(column: Column, name: str) -> bool:
    return column.name.casefold() == name.casefold()


def _inside(node: SourceNode, step: str | int) -> SourceNode | None:
    if node.kind == "sequence":
        index = int(step) if isinstance(step, int) or str(step).isdigit() else -1
        return node.items[index] if 0 <= index < len(node.items) else None
    return node.get(str(step))


def _key(node: SourceNode, step: str | int) -> Position:
    return node.keys.get(str(step), node.position)


def _inner_value(value: Any, step: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(str(step))
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None


def _family(unit: Unit) -> str:
    description = unit.member.description
    return "" if description is None else description.family
