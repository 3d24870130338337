"""`lookup`: rows enriched from a table, a file or a database, without a second input.

The source is read once per execution and kept, so that a body that runs a thousand times asks a database once and sees one state
of it. With `cache: false` a file becomes part of the query instead, and is read by each run anew.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from sqlglot import exp

from penstock.components import queries as build
from penstock.components.base import Call, ComponentFailure, Known, Mistake, PlanCall, Port, Relational
from penstock.components.columns import with_columns
from penstock.components.queries import everything, gathered
from penstock.components.registry import ComponentRegistry
from penstock.components.runner import run
from penstock.components.transform import join
from penstock.components.transform.base import Parameters, Transform, absent, actual, missing, refuse
from penstock.data import select
from penstock.data.select import read
from penstock.data.types import is_open
from penstock.ports.meanings import DATABASE, KEYCHAIN_ENTRY, READS_ANYWHERE
from penstock.ports.rows import Column, Copy, Relation, Schema
from penstock.ports.undoing import unless_done_async
from penstock.tools.parameters import about

_READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".parquet": "read_parquet",
    ".json": "read_json",
    ".jsonl": "read_json",
}
_FORMATS = {"csv": "read_csv", "parquet": "read_parquet", "json": "read_json"}


class LookupParams(Parameters):
    on: Annotated[
        join.On,
        about("The key: columns that both sides have, or a mapping of a column of the input to one of the lookup."),
    ]
    rows: Annotated[list[dict[str, Any]] | None, about("The lookup itself: a list of mappings.")] = None
    path: Annotated[str | None, about("A file that holds the lookup, or its URL.", schema=READS_ANYWHERE)] = None
    format: Annotated[
        Literal["csv", "parquet", "json"] | None, about("What the file is; its extension says so by default.")
    ] = None
    connection: Annotated[str | None, about("A database that holds the lookup, as in `read_sql`.", schema=DATABASE)] = (
        None
    )
    auth: Annotated[
        str | None, about("A keychain entry for the database, as in `read_sql`.", schema=KEYCHAIN_ENTRY)
    ] = None
    table: Annotated[str | None, about("The table in the database.")] = None
    query: Annotated[str | None, about("A query in the database's own SQL, instead of a table.")] = None
    options: Annotated[
        dict[str, Any],
        about("Further parameters of `read_csv`, `read_parquet`, `read_json` or `read_sql`; `credentials` of a URL."),
    ] = {}  # noqa: RUF012
    columns: Annotated[
        list[str] | dict[str, str] | None,
        about("Which columns to take from the lookup: names, or a mapping of new name to name. All by default."),
    ] = None
    how: Annotated[
        Literal["left", "inner"],
        about("`left`: a row without a match goes on, with nothing in these columns. `inner`: it is rejected."),
    ] = "left"
    match: Annotated[join.Match, about(join.MATCH_WORDS)] = "unique"
    suffix: Annotated[str, about("What is added to a column of the lookup whose name is taken.", min_length=1)] = (
        "_lookup"
    )
    cache: Annotated[bool, about("Read the source once per execution.")] = True


@dataclass(frozen=True, slots=True)
class Kept:
    """The lookup as it was when it was read."""

    path: Path
    schema: Schema


class Lookup(Transform[LookupParams]):
    """Add columns from a small table, a file or a database.

    The lookup is given in `rows`, lies in a file (`path`) or in a database (`connection` or `auth`, with `table` or `query`). It
    is read once per execution and kept, also when the component runs in the body of an iterator. Rows without a match go on with
    nothing in the new columns; with `how: inner` they leave through `reject` instead. Use `join` or `map` when the lookup is the
    output of another component.
    """

    type = "lookup"
    is_pure: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main"),
        Port("reject", reject=True, description="rows without a match, when `how` is `inner`"),
    )

    def wrong(self, params: LookupParams, inputs: Known) -> Iterable[Mistake]:
        given = [name for name in ("rows", "path", "table", "query") if getattr(params, name) is not None]
        if len(given) != 1:
            yield Mistake((), "exactly one of `rows`, `path`, `table` and `query` is needed")
        elif given[0] in ("table", "query") and (params.connection is None) == (params.auth is None):
            yield Mistake((given[0],), f"`{given[0]}` needs a database: exactly one of `connection` and `auth`")
        elif params.rows is not None and not params.rows:
            yield Mistake(("rows",), "at least one row is needed")
        elif params.path is not None and _reader(params) is None:
            hint = "say `format: csv`, `format: parquet` or `format: json`"
            yield Mistake(("path",), f"what is in `{params.path}` cannot be told from its name", hint=hint)
        for index, (left, _) in enumerate(join.pairs(params.on)):
            where = ("on", left) if isinstance(params.on, dict) else ("on", index)
            yield from missing(where, left, inputs.get("input"))

    def check(self, params: LookupParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        found = super().check(params, inputs, call)
        if found:
            return found
        lookup = _known(params, call)
        return found if lookup is None else list(_unfit(params, inputs.get("input"), lookup))

    def is_fusable(self, params: LookupParams, connected: frozenset[str]) -> bool:
        if params.rows is None and (params.cache or params.path is None):
            return False
        reader, source_params = _source(params)
        return isinstance(reader, Relational) and reader.is_fusable(source_params, frozenset({"main"}))

    def queries(self, params: LookupParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        lookup = _known(params, call)
        if lookup is None:
            return {}
        refuse(_unfit(params, inputs["input"], lookup))
        return _outputs(params, inputs["input"], lookup, _origin(params, call))

    async def run(self, params: LookupParams, call: Call) -> None:
        refuse(self.wrong(params, {"input": call.input().schema}))
        key = ("lookup", str(call.folder), repr(_described(params)))
        kept: Kept = await call.resources.get(key, lambda: _keep(params, call))
        await call.threads.run(_joined, params, kept, call)


def _joined(params: LookupParams, kept: Kept, call: Call) -> None:
    rows = gathered(call, "input")
    refuse(_unfit(params, rows.schema, kept.schema))
    queries = _outputs(params, rows.schema, kept.schema, _parquet(kept.path))
    for port in sorted(call.connected):
        call.put(port, call.engine.select(select.sql(queries[port]), {"input": rows}))


def _reader(params: LookupParams) -> str | None:
    if params.rows is not None:
        return "fixed_rows"
    if params.path is None:
        return "read_sql"
    return _FORMATS.get(params.format or "") or _READERS.get(Path(params.path).suffix.lower())


def _described(params: LookupParams) -> dict[str, Any]:
    """What the reader is told."""
    names = ("rows", "path", "connection", "auth", "table", "query")
    source_params = {name: getattr(params, name) for name in names}
    return {name: value for name, value in source_params.items() if value is not None} | params.options


def _source(params: LookupParams) -> tuple[Any, Any]:
    """The component that reads the lookup, with its parameters. Raises ComponentFailure."""
    registry = ComponentRegistry()
    reader = _reader(params) or ""
    return registry.get(reader), registry.convert(reader, _described(params))


def _known(params: LookupParams, call: PlanCall) -> Schema | None:
    """The columns of the lookup, as far as they can be said without reading it."""
    try:
        reader, source_params = _source(params)
    except ComponentFailure:
        return None
    found: Schema | None = reader.schemas(source_params, {}, _reading(call)).get("main")
    return found


def _reading(call: PlanCall) -> PlanCall:
    return replace(call, connected=frozenset({"main"}), declared={})


def _origin(params: LookupParams, call: PlanCall) -> exp.Query:
    """The lookup as a query of its own, for a fused run."""
    reader, source_params = _source(params)
    reader.prepare(source_params, _reading(call))
    tree = read(reader.selects(source_params, {}, _reading(call))["main"])
    assert isinstance(tree, exp.Query)
    return tree


def _parquet(path: Path) -> exp.Query:
    table = exp.Table(this=build.function("read_parquet", select.literal(str(path))))
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))


async def _keep(params: LookupParams, call: Call) -> tuple[Kept, Callable[[], Awaitable[None]]]:
    """Read the source once; what was read is gone when the execution is over."""
    reader, source_params = _source(params)
    reading = replace(call, inputs={}, connected=frozenset({"main"}), declared={}, outputs={}, after={})
    await run(reader, source_params, reading)
    folder = Path(tempfile.mkdtemp(prefix="penstock-lookup-"))

    async def close() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    rows = await call.threads.run(_with_what_is_asked, reading.outputs["main"], params, call)
    path = folder / "lookup.parquet"
    async with unless_done_async(close):
        await call.threads.run(call.engine.copy, _everything(), {"input": rows}, Copy(path, "parquet"))
    return Kept(path, rows.schema), close


def _with_what_is_asked(rows: Relation, params: LookupParams, call: Call) -> Relation:
    """A lookup without rows may have none of the columns, either; then it has those that are asked for."""
    taken = params.columns or ()
    names = [right for _, right in join.pairs(params.on)]
    names += taken.values() if isinstance(taken, dict) else taken
    return with_columns(rows, names, call) if is_open(rows.schema) else rows


def _everything() -> str:
    return select.sql(everything("input"))


def _taken(params: LookupParams, main: Schema, lookup: Schema) -> dict[str, str]:
    """New name -> column of the lookup."""
    own = [column.name for column in main]
    if params.columns is None:
        return join.beside(own, lookup, [right for _, right in join.pairs(params.on)], params.suffix)
    picked = params.columns if isinstance(params.columns, dict) else {name: name for name in params.columns}
    clear = join.beside(own, tuple(Column(new, "") for new in picked), [], params.suffix)
    return {new: actual(picked[old], lookup) or picked[old] for new, old in clear.items()}


def _unfit(params: LookupParams, main: Schema | None, lookup: Schema) -> Iterable[Mistake]:
    yield from join.wrong_pairs(("on",), params.on, main, lookup, ("input", "lookup"))
    if isinstance(params.columns, dict):
        for new, old in params.columns.items():
            yield from missing(("columns", new), old, lookup, "lookup")
    else:
        yield from absent(("columns",), params.columns or (), lookup, "lookup")


def _outputs(params: LookupParams, main: Schema, lookup: Schema, origin: exp.Query) -> dict[str, exp.Query]:
    names = _taken(params, main, lookup)
    sides = join.Sides(
        main="input",
        main_schema=main,
        lookup=origin,
        lookup_schema=lookup,
        on=join.pairs(params.on),
        names=names,
        how=params.how,
        match=params.match,
    )
    return {"main": join.joined(sides), "reject": join.unmatched(sides)}
