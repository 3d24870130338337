"""The iterators: over a list, numbers, rows, groups of rows, files or the rows of a query, and while a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Iterator as Iterates
from decimal import ROUND_CEILING, Decimal
from itertools import groupby
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta
from sqlglot import exp

from penstock.components import queries
from penstock.components.base import Call, ComponentFailure, Elements, Iterator, IteratorParams, Known, PlanCall
from penstock.components.files.inspection import found_in
from penstock.components.files.listing import Exclude, Order, Patterns, Recursive, Sort, What
from penstock.components.flow.tool_calls import missing_columns, require, tool_call
from penstock.components.io.parameters import Credentials
from penstock.components.io.sql.database import Auth, Bindings, Connection, Question, ask_in_thread
from penstock.components.queries import everything
from penstock.data import select
from penstock.kernel.values import Json, JsonMap
from penstock.ports.components import Mistake, Port
from penstock.ports.rows import Relation, Schema
from penstock.tools.parameters import Positive, about
from penstock.tools.sql.results import parsed, to_json

Number = int | float
Count = Annotated[int, Meta(ge=0)]
MOST_ELEMENTS = 10_000_000


class IterateListParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    items: Annotated[list[Any] | str, about("The elements: a list of anything, or text that `separator` takes apart.")]
    separator: Annotated[str, about("Stands between the elements when `items` is text.", min_length=1)] = ","


class IterateList(Iterator[IterateListParams]):
    """Run the body once for each element of a list.

    `items` is a list, often one that a template gives (`{{ global.tables }}`). Text is taken apart at `separator`: spaces
    around an element are dropped, and so are empty elements. No element at all is no error.
    """

    type: ClassVar[str] = "iterate_list"

    def elements(self, params: IterateListParams, call: Call) -> Elements:
        items = params.items
        if isinstance(items, str):
            items = [part.strip() for part in items.split(params.separator) if part.strip()]
        return Elements(items, len(items))


class IterateRangeParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    start: Annotated[Number, about("The first number.")] = 0
    stop: Annotated[
        Number | None, about("Where to end; this number itself is not an element. Either this or `count`.")
    ] = None
    step: Annotated[Number, about("From one number to the next; negative to count down, never 0.")] = 1
    count: Annotated[Count | None, about("How many numbers. Either this or `stop`.")] = None


class IterateRange(Iterator[IterateRangeParams]):
    """Run the body once for each number of a range.

    `start: 0, stop: 3` gives 0, 1 and 2: `stop` is where the range ends, not its last number. `start: 1, count: 3` gives 1, 2
    and 3. With a step that leads away from `stop` there is no element. Fractions are exact: `step: 0.1` gives 0.1, 0.2, 0.3.
    """

    type: ClassVar[str] = "iterate_range"

    def check(self, params: IterateRangeParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        return _mistakes(params)

    def elements(self, params: IterateRangeParams, call: Call) -> Elements:
        require(_mistakes(params))
        start, step = _exact(params.start), _exact(params.step)
        count = params.count
        if count is None:
            assert params.stop is not None
            # Rounded up: of a last step that does not fit whole, the number it begins at is still an element.
            count = max(0, int(((_exact(params.stop) - start) / step).to_integral_value(ROUND_CEILING)))
        if count > MOST_ELEMENTS:
            raise ComponentFailure("parameters", f"the range has {count:,} numbers; at most {MOST_ELEMENTS:,} are run")
        return Elements(_numbers(start, step, count), count)


def _mistakes(params: IterateRangeParams) -> list[Mistake]:
    found = []
    if params.step == 0:
        found.append(Mistake(("step",), "`step` is 0: such a range has no end", hint="give a number other than 0"))
    if (params.stop is None) == (params.count is None):
        had = "neither" if params.stop is None else "both"
        message = f"a range has either `stop` or `count`, and this one has {had}"
        found.append(Mistake(() if params.stop is None else ("count",), message))
    return found


def _exact(number: Number) -> Decimal:
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


def _numbers(start: Decimal, step: Decimal, count: int) -> Iterable[Json]:
    if start == start.to_integral_value() and step == step.to_integral_value():
        return range(int(start), int(start + step * count), int(step))
    return (float(start + step * index) for index in range(count))


class IterateWhileParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    while_: Annotated[
        str | bool, about("A condition in the language of `if` links, evaluated again before each iteration.")
    ] = msgspec.field(name="while")
    max: Annotated[
        Count | None, about("Stop after this many iterations, successfully, whatever the condition says.")
    ] = None


class IterateWhile(Iterator[IterateWhileParams]):
    """Run the body for as long as a condition holds.

    The condition is evaluated before each iteration and sees what the iterations before it wrote: `global.page < 3`. The
    element is the number of the iteration. A global that is missing makes it false. More than 100 evaluations end the job
    with CONDITION_REEVALUATION_LIMIT, so that a condition which never becomes false is found out;
    `job_config.limits.max_reevaluations` allows more. `max` is a limit of the author's own and no error.
    """

    type: ClassVar[str] = "iterate_while"

    def elements(self, params: IterateWhileParams, call: Call) -> Elements:
        raise ComponentFailure("engine", "`iterate_while` has no list of elements: the engine evaluates its condition")


BATCH = 1_000


def _readers(schema: Schema) -> list[Callable[[Any], Json]]:
    return [parsed if column.type == "JSON" else to_json for column in schema]


def mappings(schema: Schema, batches: Iterable[list[tuple[Any, ...]]]) -> Iterates[JsonMap]:
    """Rows as JSON can say them; see `penstock.tools.sql.results` for what becomes of dates and decimals."""
    names, readers = [column.name for column in schema], _readers(schema)
    for batch in batches:
        for row in batch:
            yield {name: read(value) for name, read, value in zip(names, readers, row, strict=True)}


class IterateRowsParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    """Nothing but what all iterators have."""


class IterateRows(Iterator[IterateRowsParams]):
    """Run the body once for each row of the input, in its order.

    In the body the row is `{{ iteration.item }}`, a mapping: `{{ iteration.item.id }}`. Dates and times are ISO text in
    it, decimals are numbers when that is exact and text otherwise.
    """

    type: ClassVar[str] = "iterate_rows"
    inputs: ClassVar[tuple[Port, ...]] = (Port("input"),)

    def elements(self, params: IterateRowsParams, call: Call) -> Elements:
        rows = call.input()
        batches = call.engine.rows(select.sql(everything("input")), {"input": rows}, BATCH)
        return Elements(mappings(rows.schema, batches), rows.rows)


class IterateGroupsParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    by: Annotated[list[str], about("Columns; rows that are equal in all of them are one group.", min_length=1)]


class IterateGroups(Iterator[IterateGroupsParams]):
    """Run the body once for each group of rows.

    `{{ iteration.item.key }}` is a mapping of the columns in `by`, `{{ iteration.item.rows }}` the list of the group's rows,
    each a mapping. Groups come in the order of their first rows, rows within a group in the order of the input; rows whose
    key is null are a group as well. A whole group is in memory at a time.
    """

    type: ClassVar[str] = "iterate_groups"
    inputs: ClassVar[tuple[Port, ...]] = (Port("input"),)

    def check(self, params: IterateGroupsParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        return missing_columns(_named_columns(params), inputs.get("input"))

    def elements(self, params: IterateGroupsParams, call: Call) -> Elements:
        rows = call.input()
        require(missing_columns(_named_columns(params), rows.schema))
        found = {column.name.casefold(): column.name for column in rows.schema}
        by = [found[name.casefold()] for name in params.by]
        batches = call.engine.rows(_grouped(rows, by), {"input": rows}, BATCH)
        return Elements(_groups(rows.schema, by, batches))


def _named_columns(params: IterateGroupsParams) -> list[tuple[tuple[str | int, ...], str]]:
    return [(("by", number), name) for number, name in enumerate(params.by)]


def _grouped(rows: Relation, by: list[str]) -> str:
    """The number of each row's group (the place of its first row) and the row, ordered by both."""
    place = select.column(queries.POSITION)
    first = queries.over(exp.Min(this=place.copy()), queries.columns(by))
    group = "__group"
    columns = queries.columns(queries.names(rows.schema))
    inner = exp.select(exp.Star(), queries.called(first, group)).from_(queries.numbered("input").subquery("numbered"))
    query = exp.select(select.column(group), *columns).from_(inner.subquery("grouped"))
    return select.sql(query.order_by(select.column(group), place))


def _groups(schema: Schema, by: list[str], batches: Iterable[list[tuple[Any, ...]]]) -> Iterates[JsonMap]:
    flat = (row for batch in batches for row in batch)
    for _, members in groupby(flat, key=lambda row: row[0]):
        rows = list(mappings(schema, [[row[1:] for row in members]]))
        yield {"key": {name: rows[0][name] for name in by}, "rows": list(rows)}


class IterateFilesParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[
        str, about("The folder, relative to the document's own; or its URL: `s3://`, `sftp://` and others.")
    ]
    credentials: Credentials = None
    pattern: Patterns = "*"
    exclude: Exclude = None
    recursive: Recursive = False
    what: Annotated[What, about("What to look for.")] = "files"
    sort: Annotated[Sort, about("By what they are ordered.")] = "name"
    order: Annotated[Order, about("The direction of that order.")] = "ascending"
    missing_ok: Annotated[bool, about("A folder that is not there has no files and is no error.")] = False


class IterateFiles(Iterator[IterateFilesParams]):
    """Run the body once for each file of a folder.

    The element is a mapping: `path` (absolute, or the URL), `name`, `stem`, `extension` (without its dot), `folder`, `size` in
    bytes and `modified` (UTC, ISO text). The list is made when the iterator starts; files that come later are left for the next
    run. Names that begin with a dot are found only by a pattern that begins with one. Files of equal size or time are in the
    order of their paths.
    """

    type: ClassVar[str] = "iterate_files"

    def elements(self, params: IterateFilesParams, call: Call) -> Elements:
        found = found_in(params, call)
        return Elements([each.as_json() for each in found], len(found))


class IterateQueryParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[str, about("One query in the database's own SQL.")]
    connection: Connection = None
    auth: Auth = None
    params: Bindings = None
    timeout: Annotated[Positive, about("Seconds the query may take.")] = 300.0
    max_rows: Annotated[
        int, about("More rows than this are an error: read them with `read_sql` into `iterate_rows`.", ge=1)
    ] = 100_000


class IterateQuery(Iterator[IterateQueryParams]):
    """Run the body once for each row of a query.

    The query is run when the iterator starts, in a transaction of its own, and all its rows are taken before the first
    iteration, so the body may change the tables it reads. The element is a mapping of column to value; dates and times are
    ISO text. Without `ORDER BY` the order is the database's, and may differ between runs.
    """

    type: ClassVar[str] = "iterate_query"

    def elements(self, params: IterateQueryParams, call: Call) -> Elements:
        question = Question(
            connection=params.connection,
            auth=params.auth,
            query=params.query,
            bindings=params.params,
            max_rows=params.max_rows,
        )
        answer = ask_in_thread(question, tool_call(call, {"timeout": params.timeout}))
        rows = answer["rows"]
        assert isinstance(rows, list)
        return Elements(rows, len(rows))
