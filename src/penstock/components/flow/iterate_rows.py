"""Iterators over rows: one by one, or in groups.

Law: elements come in the order of the input. They are read while the body runs, so a large input is never held in memory whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Iterator as Iterates
from itertools import groupby
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from penstock.components.base import Call, Elements, Iterator, IteratorParams, PlanCall
from penstock.components.flow.tool_calls import missing_columns, require
from penstock.kernel.values import Json, JsonMap
from penstock.ports.components import Mistake, Port
from penstock.ports.rows import Relation, Schema

BATCH = 1_000


def _readers(schema: Schema) -> list[Callable[[Any], Json]]:
    from penstock.tools.sql.values import parsed, to_json

    return [parsed if column.type == "JSON" else to_json for column in schema]


def mappings(schema: Schema, batches: Iterable[list[tuple[Any, ...]]]) -> Iterates[JsonMap]:
    """Rows as JSON can say them; see `penstock.tools.sql.values` for what becomes of dates and decimals."""
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
    Params = IterateRowsParams
    inputs: ClassVar[tuple[Port, ...]] = (Port("input"),)
    example: ClassVar[str] = """\
components:
  - name: countries
    type: fixed_rows
    params: {columns: [code, name], rows: [[nl, Netherlands], [pt, Portugal]]}
  - name: each
    type: iterate_rows
  - name: tell
    type: warn
    params: {message: "{{ iteration.index }}: {{ iteration.item.name }}"}
connections:
  data: countries.main -> each.input
  control: each (iterate) tell
"""

    def elements(self, params: IterateRowsParams, call: Call) -> Elements:
        from penstock.components.queries import everything
        from penstock.data import select

        rows = call.input()
        batches = call.engine.rows(select.sql(everything("input")), {"input": rows}, BATCH)
        return Elements(mappings(rows.schema, batches), rows.rows)


class IterateGroupsParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    by: Annotated[
        list[str], Meta(min_length=1, description="Columns; rows that are equal in all of them are one group.")
    ]


class IterateGroups(Iterator[IterateGroupsParams]):
    """Run the body once for each group of rows.

    `{{ iteration.item.key }}` is a mapping of the columns in `by`, `{{ iteration.item.rows }}` the list of the group's rows,
    each a mapping. Groups come in the order of their first rows, rows within a group in the order of the input; rows whose
    key is null are a group as well. A whole group is in memory at a time.
    """

    type: ClassVar[str] = "iterate_groups"
    Params = IterateGroupsParams
    inputs: ClassVar[tuple[Port, ...]] = (Port("input"),)
    example: ClassVar[str] = """\
components:
  - name: orders
    type: fixed_rows
    params:
      columns: [country, amount]
      rows: [[nl, 10], [pt, 20], [nl, 30]]
  - name: countries
    type: iterate_groups
    params: {by: [country]}
  - name: tell
    type: warn
    params: {message: "{{ iteration.item.key.country }} has {{ iteration.item.rows | length }} orders"}
connections:
  data: orders.main -> countries.input
  control: countries (iterate) tell
"""

    def check(self, params: IterateGroupsParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        return missing_columns(_places(params), inputs.get("input"))

    def elements(self, params: IterateGroupsParams, call: Call) -> Elements:
        rows = call.input()
        require(missing_columns(_places(params), rows.schema))
        found = {column.name.casefold(): column.name for column in rows.schema}
        by = [found[name.casefold()] for name in params.by]
        batches = call.engine.rows(_grouped(rows, by), {"input": rows}, BATCH)
        return Elements(_groups(rows.schema, by, batches))


def _places(params: IterateGroupsParams) -> list[tuple[tuple[str | int, ...], str]]:
    return [(("by", number), name) for number, name in enumerate(params.by)]


def _grouped(rows: Relation, by: list[str]) -> str:
    """The number of each row's group (the place of its first row) and the row, ordered by both."""
    from sqlglot import exp

    from penstock.components import queries
    from penstock.data import select

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
