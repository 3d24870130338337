"""New executions in the PostgreSQL log.

Law: an id is taken once, and a submission key makes one execution, whoever comes at the same time; a call that is repeated
because its connection broke finds what it made, and makes nothing twice.
"""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import uuid4

from penstock.adapters.postgres.database import SQL, Connection, Database
from penstock.adapters.postgres.retention import Months
from penstock.adapters.postgres.rows import given, kept, kept_or_none
from penstock.kernel.errors import Refused
from penstock.ports.log import Header, partition_of


class _Beaten(Exception):
    """Another call has used the submission key in the meantime."""


def create(database: Database, months: Months, header: Header, document: bytes, key: str | None) -> str:
    """The id of the execution that was made now, or under this key before."""
    values = _values(header, document)
    born: date | None = None

    def job(connection: Connection) -> str:
        nonlocal born
        if known := _submitted(connection, key):
            return known
        row = connection.execute(SQL["create_execution"], values).fetchone()
        if row is None:
            return _found(connection, header, values, key)
        born = row[0]
        months.ensure(connection, row[0])
        if key is not None:
            submission = {"key": kept(key), "execution_id": kept(header.execution_id)}
            if connection.execute(SQL["submit"], submission).fetchone() is None:
                raise _Beaten
        return header.execution_id

    while True:
        try:
            made = database.transact(job)
        except _Beaten:
            continue
        if born is not None:
            months.remember(born)
        return made


def _found(connection: Connection, header: Header, values: dict[str, Any], key: str | None) -> str:
    """The id exists: made by an earlier try of this call, by another call under the same key, or by somebody else."""
    if connection.execute(SQL["is_made_by"], values).fetchone():
        return header.execution_id
    if known := _submitted(connection, key):
        return known
    raise Refused(f"there is already an execution `{header.execution_id}`", "choose another id")


def _submitted(connection: Connection, key: str | None) -> str | None:
    if key is None:
        return None
    row = connection.execute(SQL["submitted"], {"key": kept(key)}).fetchone()
    return given(row[0]) if row else None


def _values(header: Header, document: bytes) -> dict[str, Any]:
    return {
        "execution_id": kept(header.execution_id),
        "kind": kept(header.kind),
        "name": kept(header.name),
        "path": kept(header.path),
        "digest": kept(header.digest),
        "status": header.status,
        "started_at": header.started_at,
        "ended_at": header.ended_at,
        "label": kept_or_none(header.label),
        "trace_id": kept_or_none(header.trace_id),
        "partition": partition_of(header.execution_id),
        "token": uuid4(),
        "document": document,
    }
