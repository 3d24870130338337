"""`sql`: a query of the author's own over the inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from penstock.components.base import PlanCall, Port, UserSql
from penstock.components.transform.base import Parameters, Transform
from penstock.data import select
from penstock.ports.rows import Schema
from penstock.tools.parameters import about

if TYPE_CHECKING:
    from sqlglot import exp


class SqlParams(Parameters):
    query: Annotated[str, about("One SELECT, in DuckDB's dialect. The input ports are its tables.")]


class Sql(Transform[SqlParams]):
    """Run a query over the inputs.

    The ports are named by the links that end here, and each is a table of that name: after `orders.main -> report.orders` the
    query of `report` may say `FROM orders`. It may use anything a SELECT can do in DuckDB over these tables, but it cannot reach
    files, other databases or the network: components do that.
    """

    type = "sql"
    inputs: ClassVar[tuple[Port, ...]] = (Port("*", required=False, description="each is a table in the query"),)

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        return None

    def user_sql(self, params: SqlParams) -> Iterable[UserSql]:
        yield UserSql(("query",), params.query, ("*",), "query")

    def queries(self, params: SqlParams, inputs: Mapping[str, Schema], call: PlanCall) -> Mapping[str, exp.Query]:
        return {"main": select.query(params.query, tables=inputs)}
