"""The hash of an output: of its schema and, independent of order, of its rows.

`rows:` is of the contents: the columns in their order, and the rows in no order. Each row is hashed by DuckDB, and the
hashes are added up, so that a row that stands there twice counts twice. `plan:` is of how the rows were made, for rows that need
not be read once more: the query, the hashes of its inputs, and the number of rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from penstock.data.statements import quoted, stored
from penstock.ports.rows import Relation, Schema

CONTENT_UP_TO = 1_000_000
"""Rows. Up to here a hash of the contents is taken as soon as they are there: some ten milliseconds."""


def content_query(relation_name: str, schema: Schema) -> str:
    """Gives one number, for `content_hash`."""
    return f"SELECT sum(hash({', '.join(quoted(column.name) for column in schema)})) FROM {stored(relation_name)}"


def content_hash(schema: Schema, rows: int, added: int | None) -> str:
    columns = [[column.name, column.type] for column in schema]
    return f"rows:{_digest([columns, rows, str(added or 0)])}"


def plan_key(query: str, inputs: Mapping[str, str]) -> str:
    """Of a query and the hashes of its inputs."""
    return _digest([query, sorted(inputs.items())])


def plan_hash(key: str, rows: int) -> str:
    return f"plan:{_digest([key, rows])}"


def input_hashes(inputs: Mapping[str, Relation]) -> dict[str, str]:
    return {name: relation.hash for name, relation in inputs.items()}


def _digest(value: object) -> str:
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(written.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
