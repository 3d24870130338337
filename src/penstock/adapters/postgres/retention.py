"""How long the PostgreSQL log keeps what: entries lie in one table per month, and leave it with their execution.

Law: all entries of an execution lie in the month it was born in. An execution goes as a whole, in one transaction; a month
that is over and has no execution left is dropped with whatever is still in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from functools import partial

import psycopg
from psycopg import sql

from penstock.adapters.admission import unknown
from penstock.adapters.postgres.database import SQL, Connection, Database
from penstock.adapters.postgres.ownership import check_free
from penstock.adapters.postgres.rows import given, kept

# Deleting what an execution of millions of entries leaves takes its time.
LONG_SECONDS = 600.0


class Months:
    """The tables of the months."""

    def __init__(self) -> None:
        self._known: set[date] = set()

    def ensure(self, connection: Connection, born: date) -> None:
        """A table for the entries of who was born on that day, inside the caller's transaction."""
        first = born.replace(day=1)
        if first in self._known:
            return
        connection.execute(SQL["lock_schema"])
        if first not in months(connection):
            connection.execute(_about(SQL["make_month"], first))
            connection.execute(_about(SQL["attach_month"], first))

    def remember(self, born: date) -> None:
        """The transaction that made sure of the table is committed."""
        self._known.add(born.replace(day=1))


def months(connection: Connection) -> list[date]:
    """The first days of those that have a table."""
    names = [name for (name,) in connection.execute(SQL["months"])]
    return sorted(date(int(name[-7:-3]), int(name[-2:]), 1) for name in names)


def forget(database: Database, execution_id: str) -> None:
    tried = False

    def job(connection: Connection) -> None:
        nonlocal tried
        name = {"execution_id": kept(execution_id)}
        row = connection.execute(SQL["lock_execution"], name).fetchone()
        if row is None:
            if tried:
                return  # by a transaction of ours whose end we were not told
            raise unknown(execution_id)
        check_free(connection, execution_id)
        tried = True
        with _unhurried(connection):
            connection.execute(SQL["delete_executions"], {"names": [kept(execution_id)]})
            connection.execute(SQL["delete_entries"], {"names": [kept(execution_id)], "born": row[0]})

    database.transact(job)


def prune(database: Database, before: float, limit: int) -> list[str]:
    """Forget what ended before that time: the ids, the earliest first."""
    chosen: dict[str, None] = {}

    def job(connection: Connection) -> set[str]:
        rows = connection.execute(SQL["lock_ended"], {"before": before, "limit": limit}).fetchall()
        chosen.update((name, None) for name, _ in rows)
        by_day: dict[date, list[str]] = defaultdict(list)
        for name, born in rows:
            by_day[born].append(name)
        with _unhurried(connection):
            connection.execute(SQL["delete_executions"], {"names": [name for name, _ in rows]})
            # The entries of a month that is left empty go when the month is dropped.
            empty = set(_empty_months(connection))
            for born, names in by_day.items():
                if born.replace(day=1) not in empty:
                    connection.execute(SQL["delete_entries"], {"names": names, "born": born})
        return {name for name, _ in rows}

    gone = database.transact(job)
    if doubtful := [name for name in chosen if name not in gone]:
        # Chosen in a transaction whose end we were not told: it is gone if it was committed.
        there = database.run(lambda one: one.execute(SQL["still_there"], {"names": doubtful}).fetchall())
        gone |= set(doubtful) - {name for (name,) in there}
    _drop_empty_months(database)
    return [given(name) for name in chosen if name in gone]


def _empty_months(connection: Connection) -> list[date]:
    rows = connection.execute(SQL["empty_months"], {"firsts": months(connection)}).fetchall()
    return [first for (first,) in rows]


def _drop_empty_months(database: Database) -> None:
    """Each in a transaction of its own. One that is being read just now is left for the next time."""
    for first in database.run(_empty_months):
        with suppress(psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            database.transact_once(partial(_drop_month, first))


def _drop_month(first: date, connection: Connection) -> None:
    connection.execute(SQL["brief_lock"])
    connection.execute(SQL["lock_schema"])
    if first in _empty_months(connection):
        connection.execute(_about(SQL["drop_month"], first))


@contextmanager
def _unhurried(connection: Connection) -> Iterator[None]:
    """Statements of this transaction may take long."""
    usual = connection.limit_s
    connection.execute(SQL["long_statements"], {"ms": str(round(LONG_SECONDS * 1000))})
    connection.limit_s = LONG_SECONDS + usual
    try:
        yield
    finally:
        connection.limit_s = usual


def _about(statement: str, first: date) -> sql.Composed:
    following = (first + timedelta(days=31)).replace(day=1)
    names = {
        "month": sql.Identifier(f"entry_{first:%Y_%m}"),
        "first": sql.Literal(first.isoformat()),
        "next": sql.Literal(following.isoformat()),
    }
    used = {name: value for name, value in names.items() if f"{{{name}}}" in statement}
    return sql.SQL(statement).format(**used)
