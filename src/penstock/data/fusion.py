"""A group of stages becomes as few statements as possible.

A port that one query reads once is not stored: its query is inlined into the reader's. Rows are stored in a table only where
something outside needs them, or where the group branches, so that nothing is read or computed twice. Each statement ends in a
table, in a file, or in a bare count for a port that nobody reads.

Rows are counted once per set of ports that must agree: a stage that keeps the count ties its outputs to its input, a sink ties
its file to its input, and the counts of existing rows, tables and files are known. Only a set without a known count gets a mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.data.atomic_file import AtomicFile
from penstock.data.output_hash import plan_key
from penstock.data.statements import copy_statement, may_differ, over, quoted, stored, uses
from penstock.ports.rows import Relation, Stage, Staged
from penstock.ports.undoing import unless_done

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# Marks count down from the largest UBIGINT, where no connection's number will ever be.
_TOP = 18_446_744_073_709_550_000
_MARK = re.compile(r"current_connection_id\(\) (?:!=|<>) (\d{20})")


def marked(source: str, number: int) -> str:
    held = f"SELECT * FROM {source} TABLESAMPLE SYSTEM(100 PERCENT)"
    passed = f"SELECT * FROM ({held}) WHERE current_connection_id() <> {_TOP + number}"
    return f"(SELECT * FROM ({passed}) TABLESAMPLE SYSTEM(100 PERCENT))"


@dataclass(frozen=True, slots=True)
class _Operator:
    type: str
    rows: int
    mark: int | None
    children: tuple[_Operator, ...]

    @classmethod
    def of(cls, profile: Mapping[str, Any]) -> _Operator:
        kind = str(profile.get("type", ""))
        mark = _MARK.search(str(profile.get("extra_info", {}).get("Expression", ""))) if kind == "FILTER" else None
        return cls(
            kind,
            int(profile.get("intermediate_rows", 0)),
            int(mark.group(1)) - _TOP if mark else None,
            tuple(cls.of(child) for child in profile.get("children", ())),
        )

    def is_held(self) -> bool:
        """The filter was not moved by the optimiser."""
        return len(self.children) == 1 and self.children[0].type == "STREAMING_SAMPLE"


def counts(profile: str) -> dict[int, int]:
    """Boundary -> rows, of those boundaries that the profile of a finished statement is sure about."""
    found: dict[int, int] = {}
    doubtful: set[int] = set()
    for root in json.loads(profile).get("operator", ()):
        for operator, may_be_cut in _walk(_Operator.of(root), False):
            if operator.mark is None:
                continue
            if may_be_cut or operator.mark in found or not operator.is_held():
                doubtful.add(operator.mark)
            found[operator.mark] = operator.rows
    return {number: rows for number, rows in found.items() if number not in doubtful}


def _walk(operator: _Operator, may_be_cut: bool) -> Iterator[tuple[_Operator, bool]]:
    yield operator, may_be_cut
    stops_early = may_be_cut or "LIMIT" in operator.type or operator.type == "RECURSIVE_CTE"
    for child in operator.children:
        others_empty = any(other.rows == 0 for other in operator.children if other is not child)
        yield from _walk(child, stops_early or others_empty)


Output = tuple[str, str]
"""A stage and a port of it; the port `""` is what a sink has written."""

_DEEPEST = 32
"""Stages in one statement. DuckDB's planning grows faster than the depth of a query does; about here a table is cheaper."""


@dataclass(frozen=True, slots=True)
class Step:
    """One statement. `inner` are the outputs whose queries are inlined, readers after what they read."""

    end: Output
    makes: str
    """`table`, `file` or `count`."""
    inner: tuple[Output, ...]


@dataclass(slots=True)
class Fusion:
    """How one group runs."""

    stages: Mapping[str, Stage]
    kept: frozenset[Output]
    steps: tuple[Step, ...]
    agreed: Mapping[Output, Output]
    """Every output -> the representative of all outputs that must have as many rows."""
    marks: Mapping[Output, int]
    _keys: dict[Output, str] = field(default_factory=dict)

    def body(self, output: Output, tables: Mapping[Output, str], inner: Iterable[Output], *, counted: bool) -> str:
        """The query of an output with everything inlined. `tables` names what is stored already."""
        names = {one: f"#{number}" for number, one in enumerate(inner)}
        parts = [
            f"{quoted(name)} AS NOT MATERIALIZED (\n{self._query(one, tables, names, counted)}\n)"
            for one, name in names.items()
        ]
        last = self._query(output, tables, names, counted)
        return f"WITH {', '.join(parts)} SELECT * FROM (\n{last}\n)" if parts else last

    def _query(self, output: Output, tables: Mapping[Output, str], names: Mapping[Output, str], counted: bool) -> str:
        stage = self.stages[output[0]]
        sources = {
            name: self._source(source, tables, names, counted)
            for name, source in stage.inputs.items()
            if not output[1] or uses(stage.selects[output[1]], name)
        }
        if output[1]:
            return over(stage.selects[output[1]], sources)
        return f"SELECT * FROM {next(iter(sources.values()))}"

    def _source(
        self, source: Output | Relation, tables: Mapping[Output, str], names: Mapping[Output, str], counted: bool
    ) -> str:
        if isinstance(source, Relation):
            return stored(source.name)
        if source in tables:
            return stored(tables[source])
        number = self.marks.get(source) if counted else None
        return quoted(names[source]) if number is None else marked(quoted(names[source]), number)

    def key(self, output: Output) -> str:
        """What a hash of the plan is taken of: the same for the same queries over the same rows, however they were fused."""
        if output not in self._keys:
            stage = self.stages[output[0]]
            inputs = {
                name: source.hash if isinstance(source, Relation) else self.key(source)
                for name, source in stage.inputs.items()
            }
            self._keys[output] = plan_key(stage.selects.get(output[1], ""), inputs)
        return self._keys[output]

    def queries(self, outputs: Iterable[Output]) -> Iterator[str]:
        for stage, port in outputs:
            if port:
                yield self.stages[stage].selects[port]

    def inner_of(self, output: Output) -> tuple[Output, ...]:
        return _inner(self.stages, self.kept, output)

    def known(self) -> dict[Output, int]:
        """Counts that are known before the run: of outputs that agree with existing rows."""
        found = {}
        for stage in self.stages.values():
            first = next(iter(stage.inputs.values()), None)
            if isinstance(first, Relation) and (stage.keeps_count or stage.copy):
                for port in stage.selects or ("",):
                    found[self.agreed[stage.name, port]] = first.rows
        return found


def fusion(stages: Sequence[Stage], *, keep_all: bool = False) -> Fusion:
    by_name = {stage.name: stage for stage in stages}
    readers = _readers(stages)
    kept = _kept(stages, readers, keep_all)
    steps = tuple(_steps(by_name, readers, kept))
    agreed = _agreed(stages)
    planned = Fusion(by_name, kept, steps, agreed, {})
    planned.marks = _marks(planned)
    return planned


def _readers(stages: Sequence[Stage]) -> dict[Output, int]:
    """How many times each port is read by the queries of the group."""
    readers = {(stage.name, port): 0 for stage in stages for port in stage.selects}
    for stage in stages:
        for name, source in stage.inputs.items():
            if isinstance(source, Relation):
                continue
            readers[source] += 1 if stage.copy else sum(uses(query, name) for query in stage.selects.values())
    return readers


def _kept(stages: Sequence[Stage], readers: Mapping[Output, int], keep_all: bool) -> frozenset[Output]:
    kept: set[Output] = set()
    depth: dict[Output, int] = {}
    for stage in stages:
        below = 1 + sum(depth[source] for source in stage.inputs.values() if not isinstance(source, Relation))
        for port in stage.selects:
            output = (stage.name, port)
            is_kept = keep_all or port in stage.wanted or readers[output] > 1 or below >= _DEEPEST
            depth[output] = 0 if is_kept else below
            if is_kept:
                kept.add(output)
    return frozenset(kept)


def _steps(stages: Mapping[str, Stage], readers: Mapping[Output, int], kept: frozenset[Output]) -> Iterator[Step]:
    for stage in stages.values():
        for port in stage.selects:
            output = (stage.name, port)
            if output in kept:
                yield Step(output, "table", _inner(stages, kept, output))
            elif not readers[output]:
                yield Step(output, "count", _inner(stages, kept, output))
        if stage.copy:
            yield Step((stage.name, ""), "file", _inner(stages, kept, (stage.name, "")))


def _inner(stages: Mapping[str, Stage], kept: frozenset[Output], output: Output) -> tuple[Output, ...]:
    stage = stages[output[0]]
    found: list[Output] = []
    for name, source in stage.inputs.items():
        if isinstance(source, Relation) or source in kept:
            continue
        if output[1] and not uses(stage.selects[output[1]], name):
            continue
        found += (*_inner(stages, kept, source), source)
    return tuple(found)


@dataclass(slots=True)
class _Sets:
    """Union-find over outputs."""

    parent: dict[Output, Output] = field(default_factory=dict)

    def find(self, output: Output) -> Output:
        self.parent.setdefault(output, output)
        while self.parent[output] != output:
            output = self.parent[output]
        return output

    def join(self, one: Output, other: Output) -> None:
        self.parent[self.find(one)] = self.find(other)


def _agreed(stages: Sequence[Stage]) -> dict[Output, Output]:
    sets = _Sets()
    for stage in stages:
        first = next(iter(stage.inputs.values()), None)
        for port in stage.selects or ("",):
            sets.find((stage.name, port))
            if not (stage.keeps_count or stage.copy) or first is None:
                continue
            if isinstance(first, Relation):
                # Outputs of one stage that keep the count of rows that are there already agree with each other, too.
                sets.join((stage.name, port), (stage.name, next(iter(stage.selects or ("",)))))
            else:
                sets.join((stage.name, port), first)
    return {output: sets.find(output) for output in sets.parent}


def _marks(planned: Fusion) -> dict[Output, int]:
    """One mark for each set of outputs whose count would be unknown."""
    known = {planned.agreed[step.end] for step in planned.steps} | set(planned.known())
    marks: dict[Output, int] = {}
    for step in planned.steps:
        for output in step.inner:
            speaker = planned.agreed[output]
            if speaker not in known:
                known.add(speaker)
                marks[output] = len(marks) + 1
    return marks


# ---- One run of a fused group: its statements in order, its counts, its files; all of it or nothing.

T = TypeVar("T")


class Session(Protocol):
    """What a fused run needs of its engine's session."""

    def own(self) -> AbstractContextManager[DuckDBPyConnection]: ...

    def making(self) -> AbstractContextManager[str]: ...

    def within_memory(self, run: Callable[[bool], T]) -> T: ...

    def relation(self, cursor: DuckDBPyConnection, name: str, rows: int, *, key: str | None = None) -> Relation: ...

    def forget(self, name: str) -> None: ...


class _CannotCount(Exception):
    """A count is missing, and asking for it would run a query that may give other rows the second time."""


def run_fused(session: Session, stages: Sequence[Stage]) -> dict[str, Staged]:
    def run(is_frugal: bool) -> dict[str, Staged]:
        try:
            # What one statement does at once takes the memory of all its stages together.
            return _Attempt(session, fusion(stages, keep_all=is_frugal), is_frugal).run()
        except _CannotCount:
            return _Attempt(session, fusion(stages, keep_all=True), is_frugal).run()

    return session.within_memory(run)


class _Attempt:
    def __init__(self, session: Session, planned: Fusion, is_frugal: bool) -> None:
        self._session = session
        self._planned = planned
        self._is_frugal = is_frugal
        self._tables: dict[Output, str] = {}
        self._rows: dict[Output, int] = planned.known()
        """By the representative of all that agree."""
        self._landings: list[AtomicFile] = []

    def run(self) -> dict[str, Staged]:
        try:
            with unless_done(self._forget_tables):
                for step in self._planned.steps:
                    self._run_step(step)
                staged = self._staged()
                for landing in self._landings:
                    landing.land()
        finally:
            for landing in self._landings:
                landing.discard()
        self._forget_unwanted()
        return staged

    def _forget_tables(self) -> None:
        for name in self._tables.values():
            self._session.forget(name)

    def _run_step(self, step: Step) -> None:
        has_marks = any(output in self._planned.marks for output in step.inner)
        body = self._planned.body(step.end, self._tables, step.inner, counted=True)
        match step.makes:
            case "table":
                with self._session.making() as name:
                    rows, found = self._execute(f"CREATE TABLE {stored(name)} AS {body}", has_marks)
                self._tables[step.end] = name
            case "file":
                rows, found = self._execute(self._copy(step, body), has_marks)
            case _:
                rows, found = self._execute(f"SELECT count(*) FROM (\n{body}\n)", has_marks)
        self._rows[self._planned.agreed[step.end]] = rows
        for output in step.inner:
            number = self._planned.marks.get(output)
            if number is not None:
                self._rows[self._planned.agreed[output]] = found[number] if number in found else self._count(output)

    def _copy(self, step: Step, body: str) -> str:
        copy = self._planned.stages[step.end[0]].copy
        assert copy is not None
        landing = AtomicFile(copy.path)
        self._landings.append(landing)
        return copy_statement(body, copy, str(landing.written), frugal=self._is_frugal)

    def _execute(self, statement: str, has_marks: bool) -> tuple[int, dict[int, int]]:
        with self._session.own() as cursor:
            if has_marks:
                cursor.execute("PRAGMA enable_profiling = 'no_output'")
            try:
                cursor.execute(statement)
                rows = cursor.rowcount if cursor.rowcount >= 0 else int(cursor.fetchall()[0][0])
                found = counts(cursor.get_profiling_information(format="json")) if has_marks else {}
            finally:
                if has_marks:
                    cursor.execute("PRAGMA disable_profiling")
        return rows, found

    def _count(self, output: Output) -> int:
        """Counts a boundary that the profile does not have."""
        inner = self._planned.inner_of(output)
        if any(map(may_differ, self._planned.queries((*inner, output)))):
            raise _CannotCount
        body = self._planned.body(output, self._tables, inner, counted=False)
        return self._execute(f"SELECT count(*) FROM (\n{body}\n)", False)[0]

    def _staged(self) -> dict[str, Staged]:
        return {
            stage.name: Staged(
                {port: self._rows[self._planned.agreed[stage.name, port]] for port in stage.selects or ("",)},
                {port: self._relation((stage.name, port)) for port in stage.selects if port in stage.wanted},
            )
            for stage in self._planned.stages.values()
        }

    def _relation(self, output: Output) -> Relation:
        with self._session.own() as cursor:
            rows = self._rows[self._planned.agreed[output]]
            return self._session.relation(cursor, self._tables[output], rows, key=self._planned.key(output))

    def _forget_unwanted(self) -> None:
        for (stage, port), name in self._tables.items():
            if port not in self._planned.stages[stage].wanted:
                self._session.forget(name)
