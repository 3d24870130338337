"""What a SQL task asks for, as a list of steps that its driver runs in order and in one transaction.

command / commands / query / script / upsert        what the author wrote
    └── Command | Upsert (| the tool's own, such as postgres's copy)      one result each
            └── Bound                      one statement, ready for the driver
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, TypeVar, cast

import msgspec

from penstock.expr.errors import ExpressionError
from penstock.expr.scope import Visible
from penstock.expr.template import render
from penstock.kernel.values import JsonMap
from penstock.ports.blobs import ResultRef, is_ref
from penstock.ports.meanings import READS_SCRIPT
from penstock.tools.base import Call, ToolFailure
from penstock.tools.parameters import about
from penstock.tools.scripts import Script, ScriptText, text_of
from penstock.tools.sql.results import Table
from penstock.tools.sql.text import Bound, Dialect, Statement, bind, quote_table, split

# ---- An effect that happens once: what a task writes is committed together with the name of its effect, or not at all.
# Law: the name stands in a table of the database that is written to, under a unique key. A task that is run again, because
# the worker that had it was lost after the commit and before it could tell, finds the name there, changes nothing, and gives
# what it gave then. Two that run at the same time wait for each other at that key.
# claim the name ─┬─ it is new ──── the commands ── keep their result ── COMMIT ├─ it is there ── ROLLBACK ── the result that
# was kept └─ no such table ─ ROLLBACK ── make it ── claim again

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
        str, about("The table, made when it is not there; `schema.table` is understood.", min_length=1)
    ] = TABLE


Idempotency = Annotated[
    bool | EffectTable,
    about(
        "Commit the commands together with the name of this task's effect, in the table `penstock_effects` or the "
        "one given: a task that is run again after it was committed changes nothing, and gives the same result."
    ),
]


class NoTable(Exception):
    """The table of effects is not there yet."""


class Happened(Exception):
    """The name is there already: the effect has happened before."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a task, and what policies see of its effect."""

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


Bindings = dict[str, Any] | list[Any] | None
DEFAULT_MAX_ROWS = 100_000
_SHORT = 20_000


class UpsertRows(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Rows to write so that doing it twice changes nothing: new keys are inserted, known ones updated."""

    table: Annotated[str, about("The table, spelled as the database keeps it; `schema.table` is understood.")]
    rows: Annotated[Any, about("The rows: a list of mappings from column to value.")]
    keys: Annotated[
        list[str], about("Columns that identify a row; the table needs a unique constraint on them.", min_length=1)
    ]
    columns: Annotated[list[str] | None, about("Columns to write; every key of the rows when left out.")] = None
    update: Annotated[
        list[str] | None,
        about("Columns to change in a row that is there already; all but the keys when left out, none when empty."),
    ] = None


class CommandItem(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One entry of `commands`."""

    command: Annotated[str | None, about("SQL text.")] = None
    params: Annotated[Bindings, about("Values for this command; the task's own `params` when left out.")] = None
    upsert: Annotated[UpsertRows | None, about("Rows to insert or update instead of a command.")] = None


class CommonParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What all SQL tools are told in the same words."""

    command: Annotated[
        str | list[str] | None, about("SQL to run; several statements are separated by `;` or given as a list.")
    ] = None
    query: Annotated[str | list[str] | None, about("Another word for `command`.")] = None
    script: Annotated[
        str | Script | None,
        about(
            "A file with what `command` would say, relative to the document's folder; or `{uri, source: {type: file, inline or "
            "http}}`.",
            schema=READS_SCRIPT,
        ),
    ] = None
    params: Annotated[
        Bindings, about("Values to bind, never pasted: a mapping for `:name` or `%(name)s`, a list for `%s` or `$1`.")
    ] = None
    args: Annotated[
        dict[str, Any] | None, about("More values for `:name`, as tasks of all kinds can be given them.")
    ] = None
    upsert: Annotated[UpsertRows | None, about("Rows to insert or update by their keys: safe to run again.")] = None
    idempotency: Idempotency = False
    max_rows: Annotated[int, about("More rows than this in one result are an error of kind `too_large`.", ge=1)] = (
        DEFAULT_MAX_ROWS
    )


class SqlParams(CommonParams, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a SQL tool that has no kinds of step of its own."""

    commands: Annotated[
        list[str | CommandItem] | str | None,
        about(
            "Several commands, run in order in one transaction: a list of SQL texts, `{command, params}` and `{upsert}`, or a "
            "text as in `command`."
        ),
    ] = None


class Step:
    """One thing to do that has a result of its own."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Command(Step):
    """Statements that give one result: that of the last."""

    statements: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Upsert(Step):
    table: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    update: tuple[str, ...]
    rows: list[list[Any]]

    @property
    def excerpt(self) -> str:
        return f"upsert into {self.table}"


def texts_of(steps: Sequence[Step]) -> list[str]:
    return [statement.text for step in steps if isinstance(step, Command) for statement in step.statements]


def verbs_of(steps: Sequence[Step]) -> set[str]:
    return {statement.verb for step in steps if isinstance(step, Command) for statement in step.statements}


def rows_of(given: Any, call: Call, what: str) -> list[Any]:
    """Rows from a parameter: a list, or a reference to one in the result store."""
    if is_ref(given):
        given = call.load(ResultRef.from_json(given))
    if not isinstance(given, list):
        raise ToolFailure("parameters", f"{what} takes a list of rows, not {_article(given)}")
    return given


def _article(value: Any) -> str:
    names = {
        dict: "a mapping",
        str: "text",
        int: "a number",
        float: "a number",
        bool: "a boolean",
        type(None): "nothing",
    }
    return names.get(type(value), type(value).__name__)


def columns_of(rows: Sequence[Any], what: str) -> list[str]:
    """All keys of the rows, in the order in which they first appear."""
    seen: dict[str, None] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ToolFailure(
                "parameters", f"{what}: row {index} is {_article(row)}; a row is a mapping from column to value"
            )
        seen.update(dict.fromkeys(row))
    return list(seen)


def upsert_step(wanted: UpsertRows, call: Call) -> Upsert:
    rows = rows_of(wanted.rows, call, "`upsert.rows`")
    found = columns_of(rows, "`upsert.rows`")
    columns = wanted.columns or found or list(wanted.keys)
    missing = [key for key in wanted.keys if key not in columns]
    if missing:
        raise ToolFailure(
            "parameters", f"the key `{missing[0]}` of `upsert` is not among the columns {_listed(columns)}"
        )
    update = wanted.update
    if update is None:
        update = [column for column in columns if column not in wanted.keys]
    strange = [column for column in update if column not in columns]
    if strange:
        raise ToolFailure(
            "parameters", f"`upsert.update` names `{strange[0]}`, which is not among the columns {_listed(columns)}"
        )
    values = [[row.get(column) for column in columns] for row in rows]
    return Upsert(wanted.table, tuple(wanted.keys), tuple(columns), tuple(update), values)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_TRANSACTION_VERBS = {"begin", "commit", "rollback", "end", "abort"}


def _refuse_own_transaction(statements: Sequence[Statement]) -> None:
    """A COMMIT in the middle would break the promise that a task's commands count together or not at all."""
    for statement in statements:
        starts = statement.verb == "start" and "transaction" in statement.words
        back_to_savepoint = statement.verb == "rollback" and "to" in statement.words
        if (statement.verb in _TRANSACTION_VERBS or starts) and not back_to_savepoint:
            word = statement.text.split()[0].rstrip(";").upper()
            raise ToolFailure(
                "parameters",
                f"`{word}` in the command: a task is one transaction already; remove it, or set `autocommit: true`",
            )


class Planner:
    """Turns the shared parameters into steps. `own_transactions`: may the text hold BEGIN and COMMIT?"""

    def __init__(self, dialect: Dialect, call: Call, *, own_transactions: bool = False) -> None:
        self.dialect = dialect
        self.call = call
        self.own_transactions = own_transactions

    def plan(self, params: CommonParams, commands: Sequence[str | CommandItem] | str | None) -> list[Step]:
        if params.upsert is not None:
            return [upsert_step(params.upsert, self.call)]
        values = values_of(params)
        given = next((one for one in (params.command, params.query, commands) if one is not None), ())
        items = [given] if isinstance(given, str) else given
        if not items:
            raise ToolFailure("parameters", "the list of commands is empty")
        if len(items) == 1 and isinstance(items[0], str):
            # `params` is there to be used; `args` may be there for other reasons.
            bound = self.text if params.params else self.shared
            # A text by itself: each of its statements gives a result.
            return [Command((statement,)) for statement in bound(items[0], values)]
        return [self.item(item, values) for item in items]

    def text(self, text: str, params: Bindings) -> list[Bound]:
        bound = self.shared(text, params)
        if params and all(statement.args is None for statement in bound):
            name = next(iter(params)) if isinstance(params, dict) else "name"
            raise ToolFailure("parameters", f"`params` is given, but the command has no placeholder such as `:{name}`")
        return bound

    def item(self, item: str | CommandItem, params: Bindings) -> Step:
        if isinstance(item, str):
            return Command(tuple(self.shared(item, params)))
        if item.upsert is not None and item.command is None:
            return upsert_step(item.upsert, self.call)
        if item.command is None or item.upsert is not None:
            raise ToolFailure("parameters", "an entry of `commands` has exactly one of `command` and `upsert`")
        if item.params is not None:
            return Command(tuple(self.text(item.command, item.params)))
        return Command(tuple(self.shared(item.command, params)))

    def shared(self, text: str, params: Bindings) -> list[Bound]:
        """With the task's own `params`, of which a command need not use every one."""
        statements = split(text, self.dialect)
        if not statements:
            raise ToolFailure("parameters", "the command is empty: it has no SQL, or only comments")
        if not self.own_transactions:
            _refuse_own_transaction(statements)
        if isinstance(params, list) and params and len(statements) > 1:
            raise ToolFailure(
                "parameters",
                f"a list in `params` goes with one statement, and the command has {len(statements)}; "
                "hint: name the values (`:name`), or give each command its own `params`",
            )
        return [bind(statement, params, self.dialect) for statement in statements]


def values_of(params: CommonParams) -> Bindings:
    if not params.args:
        return params.params
    if isinstance(params.params, list):
        raise ToolFailure(
            "parameters", "a list in `params` and a mapping in `args` cannot both be bound; use one of them"
        )
    return {**params.args, **(params.params or {})}


def exactly_one(params: msgspec.Struct, names: Sequence[str]) -> None:
    given = [name for name in names if getattr(params, name) is not None]
    if len(given) != 1:
        found = f"this one has {' and '.join(f'`{name}`' for name in given)}" if given else "this one has none"
        raise ToolFailure("parameters", f"a SQL task has exactly one of {_listed(names)}; {found}")


WORDS = ("command", "commands", "query", "script", "upsert")


def make_plan(params: SqlParams, planner: Planner) -> list[Step]:
    exactly_one(params, WORDS)
    return planner.plan(params, params.commands)


# ---- Scripts: SQL that a task names rather than holds

C = TypeVar("C", bound=CommonParams)
_NAMESPACES = ("args", "ctx", "execution", "execution_id", "iter", "workload")


async def with_script(params: C, call: Call, words: Sequence[str] = WORDS) -> C:
    """The parameters with the text of their script as `command`. What is not part of the document has its templates filled in
    here: with the names that the task's own see, and never with secrets."""
    if params.script is None:
        return params
    exactly_one(params, words)
    script = await text_of(params.script, call)
    text = _filled_in(script, params.args or {}, call) if script.place else script.text
    return msgspec.structs.replace(params, script=None, command=text)


def _filled_in(script: ScriptText, args: dict[str, Any], call: Call) -> str:
    seen = call.names()
    names = {**seen, **args, "args": {**seen.get("args", {}), **args}}
    fixed = {name: names[name] for name in _NAMESPACES if name in names}
    try:
        text = render(script.text, Visible(fixed, (), (names,)))
    except ExpressionError as error:
        line = error.text.count("\n", 0, error.start) + 1
        message = f"in line {line} of the script `{script.name}`: {error}"
        raise ToolFailure("expression", message, variable=error.name) from None
    if not isinstance(text, str):
        raise ToolFailure("parameters", f"the script `{script.name}` gives {_article(text)}, not SQL")
    return text


async def off_the_loop(params: CommonParams, call: Call, make: Callable[[], list[Step]]) -> list[Step]:
    """The plan, made in a thread unless it is quickly done: megabytes of SQL or rows take their time to go through."""
    given = params.command or params.query or ""
    texts = given if isinstance(given, list) else [given]
    if any(texts) and sum(map(len, texts)) < _SHORT:
        return make()
    steps: list[Step] = await call.threads.run(make)
    return steps
