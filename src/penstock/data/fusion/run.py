"""One run of a fused group: its statements in order, its counts, its files; all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from penstock.data.fusion.plan import Fusion, Place, Step, counts, fusion
from penstock.data.landing import Landing
from penstock.data.statements import copy_statement, may_differ, stored
from penstock.ports.rows import Relation, Stage, Staged
from penstock.ports.undoing import unless_done

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
        self._tables: dict[Place, str] = {}
        self._rows: dict[Place, int] = planned.known()
        """By the place that speaks for all that agree."""
        self._landings: list[Landing] = []

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
        has_marks = any(place in self._planned.marks for place in step.inner)
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
        for place in step.inner:
            number = self._planned.marks.get(place)
            if number is not None:
                self._rows[self._planned.agreed[place]] = found[number] if number in found else self._count(place)

    def _copy(self, step: Step, body: str) -> str:
        copy = self._planned.stages[step.end[0]].copy
        assert copy is not None
        landing = Landing(copy.path)
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

    def _count(self, place: Place) -> int:
        """A boundary that the profile is silent about, counted by itself."""
        inner = self._planned.inner_of(place)
        if any(map(may_differ, self._planned.queries((*inner, place)))):
            raise _CannotCount
        body = self._planned.body(place, self._tables, inner, counted=False)
        return self._execute(f"SELECT count(*) FROM (\n{body}\n)", False)[0]

    def _staged(self) -> dict[str, Staged]:
        return {
            stage.name: Staged(
                {port: self._rows[self._planned.agreed[stage.name, port]] for port in stage.selects or ("",)},
                {port: self._relation((stage.name, port)) for port in stage.selects if port in stage.wanted},
            )
            for stage in self._planned.stages.values()
        }

    def _relation(self, place: Place) -> Relation:
        with self._session.own() as cursor:
            rows = self._rows[self._planned.agreed[place]]
            return self._session.relation(cursor, self._tables[place], rows, key=self._planned.key(place))

    def _forget_unwanted(self) -> None:
        for (stage, port), name in self._tables.items():
            if port not in self._planned.stages[stage].wanted:
                self._session.forget(name)
