"""`iterate_query`: the body once for each row that a database gives."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from penstock.components.base import Call, Elements, Iterator, IteratorParams
from penstock.components.flow.tool_calls import tool_call
from penstock.components.io.sql.database import Auth, Bindings, Connection, Question, ask_in_thread
from penstock.tools.parameters import Positive


class IterateQueryParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(description="One query in the database's own SQL.")]
    connection: Connection = None
    auth: Auth = None
    params: Bindings = None
    timeout: Annotated[Positive, Meta(description="Seconds the query may take.")] = 300.0
    max_rows: Annotated[
        int, Meta(ge=1, description="More rows than this are an error: read them with `read_sql` into `iterate_rows`.")
    ] = 100_000


class IterateQuery(Iterator[IterateQueryParams]):
    """Run the body once for each row of a query.

    The query is run when the iterator starts, in a transaction of its own, and all its rows are taken before the first
    iteration, so the body may change the tables it reads. The element is a mapping of column to value; dates and times are
    ISO text. Without `ORDER BY` the order is the database's, and may differ between runs.
    """

    type: ClassVar[str] = "iterate_query"
    Params = IterateQueryParams
    example: ClassVar[str] = """\
components:
  - name: shops
    type: fixed_rows
    params: {columns: [id, city], rows: [[1, Utrecht], [2, Porto]]}
  - name: kept
    type: write_sql
    params: {connection: "sqlite:///shops.db", table: shops, mode: replace}
  - name: each
    type: iterate_query
    params:
      connection: sqlite:///shops.db
      query: SELECT id, city FROM shops WHERE id >= :least ORDER BY id
      params: {least: 1}
  - name: tell
    type: warn
    params: {message: "shop {{ iteration.item.id }} in {{ iteration.item.city }}"}
connections:
  data: shops.main -> kept.input
  control: |
    kept (ok) each
    each (iterate) tell
"""

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
