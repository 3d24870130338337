"""An effect that happens once: what a task writes is committed together with the name of its effect, or not at all.

Law: the name stands in a table of the database that is written to, under a unique key. A task that is run again, because the
worker that had it was lost after the commit and before it could tell, finds the name there, changes nothing, and gives what it
gave then. Two that run at the same time wait for each other at that key.

    claim the name ─┬─ it is new ──── the commands ── keep their result ── COMMIT
                    ├─ it is there ── ROLLBACK ── the result that was kept
                    └─ no such table ─ ROLLBACK ── make it ── claim again
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

from penstock.kernel.values import JsonMap
from penstock.tools.base import Call, ToolFailure
from penstock.tools.sql.binding import Bound, bind
from penstock.tools.sql.lexer import Dialect, split
from penstock.tools.sql.names import quote_table
from penstock.tools.sql.results import Table

TABLE = "penstock_effects"
MOST_BYTES = 1024 * 1024
TRIES = 3

# MySQL commits before and after these by itself, and the name of the effect with it.
COMMITS_BY_ITSELF = {"alter", "analyze", "cache", "check", "create", "drop", "flush", "grant", "install", "lock"}
COMMITS_BY_ITSELF |= {"optimize", "rename", "repair", "reset", "revoke", "truncate", "uninstall", "unlock"}
_COLUMNS = {
    Dialect.POSTGRES: ("text", "text", "text", "timestamptz NOT NULL DEFAULT now()"),
    Dialect.SQLITE: ("TEXT", "TEXT", "TEXT", "TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP"),
    Dialect.DUCKDB: ("VARCHAR", "VARCHAR", "VARCHAR", "TIMESTAMP NOT NULL DEFAULT current_timestamp"),
    Dialect.MYSQL: (
        "CHAR(64) CHARACTER SET ascii",
        "TEXT CHARACTER SET utf8mb4",
        "MEDIUMTEXT CHARACTER SET utf8mb4",
        "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
    ),
}


class EffectTable(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where the names of effects are kept."""

    table: Annotated[
        str, Meta(description="The table, made when it is not there; `schema.table` is understood.", min_length=1)
    ] = TABLE


Idempotency = Annotated[
    bool | EffectTable,
    Meta(
        description="Commit the commands together with the name of this task's effect, in the table `penstock_effects` or the "
        "one given: a task that is run again after it was committed changes nothing, and gives the same result."
    ),
]


class NoTable(Exception):
    """The table of effects is not there yet."""


class Happened(Exception):
    """The name is there already: the effect has happened before."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a task gave, and what policies are told of its effect."""

    result: JsonMap
    helper: JsonMap = field(default_factory=dict)


@dataclass(frozen=True)
class Effect:
    """The name of one task's effect, and the statements that keep it. The name is the same over retries and for a shard that is
    handed out again; another element of the loop has another."""

    call: Call
    table: str
    dialect: Dialect

    @cached_property
    def name(self) -> str:
        element = self.call.element or {}
        parts = [self.call.idempotency_key, str(element.get("iter_key", ""))]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def create(self) -> Bound:
        name, text, result, time = _COLUMNS[self.dialect]
        return self._bound(
            f"CREATE TABLE IF NOT EXISTS {self._quoted} (effect {name} PRIMARY KEY, execution_id {text} NOT NULL, "
            f"loop_id {text}, shard_id {text}, iter_key {text}, task {text} NOT NULL, result {result}, done_at {time})"
        )

    def claim(self) -> Bound:
        element = self.call.element or {}
        values = {
            "effect": self.name,
            "execution_id": self.call.execution_id,
            **{name: element.get(name) for name in ("loop_id", "shard_id", "iter_key")},
            "task": self.call.task,
        }
        into = "INSERT IGNORE INTO" if self.dialect is Dialect.MYSQL else "INSERT INTO"
        otherwise = "" if self.dialect is Dialect.MYSQL else " ON CONFLICT (effect) DO NOTHING"
        marks = ", ".join(f":{name}" for name in values)
        return self._bound(f"{into} {self._quoted} ({', '.join(values)}) VALUES ({marks}){otherwise}", **values)

    def keep(self, result: JsonMap) -> Bound:
        return self._bound(
            f"UPDATE {self._quoted} SET result = :result WHERE effect = :effect", result=_text(result), effect=self.name
        )

    def look(self) -> Bound:
        return self._bound(f"SELECT result FROM {self._quoted} WHERE effect = :effect", effect=self.name)

    @staticmethod
    def found(table: Table) -> JsonMap | None:
        """The result that was kept, from what `look` gave."""
        if not table.rows:
            return None
        kept = cast("dict[str, Any]", table.rows[0])["result"]
        result: JsonMap = json.loads(kept)
        return result

    @staticmethod
    def unsettled() -> ToolFailure:
        return ToolFailure(
            "serialization",
            "another run of this task was writing the same and gave up; it may be tried again",
            retryable=True,
        )

    @property
    def _quoted(self) -> str:
        return quote_table(self.table, self.dialect)

    def _bound(self, text: str, **values: Any) -> Bound:
        (statement,) = split(text, self.dialect)
        return bind(statement, values or None, self.dialect)


def effect_of(params: Any, verbs: Set[str], call: Call, dialect: Dialect) -> Effect | None:
    """What `idempotency` of a SQL tool's parameters asks for, if it does. `verbs` are those of the statements it runs."""
    wanted: bool | EffectTable = params.idempotency
    if wanted is False:
        return None
    if params.autocommit:
        raise ToolFailure(
            "parameters",
            "`idempotency` needs the task to be one transaction: it cannot stand beside `autocommit: true`",
        )
    if dialect is Dialect.MYSQL:
        found = sorted(verbs & COMMITS_BY_ITSELF)
        if found:
            raise ToolFailure(
                "parameters",
                f"`{found[0].upper()}` commits by itself in MySQL, so it cannot be part of a task with `idempotency`",
            )
    return Effect(call, wanted.table if isinstance(wanted, EffectTable) else TABLE, dialect)


def _text(result: JsonMap) -> str:
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MOST_BYTES:
        raise ToolFailure(
            "too_large",
            f"the result of a task with `idempotency` is kept with its effect, and this one has {len(text):,} characters, more "
            f"than {MOST_BYTES:,}; hint: let the commands give fewer rows",
        )
    return text
