"""Each column of a query is traced to the columns of its inputs that its value is made of."""

from __future__ import annotations

from penstock.data.lineage import lineage
from penstock.ports.rows import Column
from tests.cases import cases

INPUTS = {
    "input": (
        Column("id", "BIGINT"),
        Column("amount", "DOUBLE"),
        Column("Status", "VARCHAR"),
        Column("cust", "BIGINT"),
    ),
    "lookup": (Column("cust", "BIGINT"), Column("name", "VARCHAR")),
}


def traced(query: str, columns: list[str] | None = None) -> dict[str, str]:
    """`x` of `input` written as `input.x`; several with a space between."""
    found = lineage(query, INPUTS, columns)
    return {name: " ".join(sorted(f"{table}.{column}" for table, column in sources)) for name, sources in found.items()}


EVERYTHING = {"id": "input.id", "amount": "input.amount", "Status": "input.Status", "cust": "input.cust"}


@cases(
    "query, expected",
    [
        ("SELECT *, amount * 2 AS double FROM input", {**EVERYTHING, "double": "input.amount"}),
        ("SELECT * EXCLUDE (id, amount) FROM input", {"Status": "input.Status", "cust": "input.cust"}),
        ("SELECT * REPLACE (amount + id AS amount) FROM input", {**EVERYTHING, "amount": "input.amount input.id"}),
        ("SELECT i.id, l.name FROM input i JOIN lookup l USING (cust)", {"id": "input.id", "name": "lookup.name"}),
        ('SELECT ID, "Status" FROM input', {"id": "input.id", "Status": "input.Status"}),
        (
            "WITH a AS (SELECT id, amount + id AS x FROM input), b AS (SELECT x * 2 AS y, id FROM a) SELECT y, id FROM b",
            {"y": "input.amount input.id", "id": "input.id"},
        ),
        ("SELECT id FROM input UNION ALL SELECT cust FROM lookup", {"id": "input.id lookup.cust"}),
        (
            "SELECT cust, id FROM input UNION ALL BY NAME SELECT name AS id, cust FROM lookup",
            {"cust": "input.cust lookup.cust", "id": "input.id lookup.name"},
        ),
        (
            "SELECT Status, sum(amount) AS total, count(*) AS n FROM input WHERE id > 1 GROUP BY Status",
            {"Status": "input.Status", "total": "input.amount", "n": ""},
        ),
        (
            "SELECT rank() OVER (PARTITION BY Status ORDER BY amount) AS r FROM input",
            {"r": "input.Status input.amount"},
        ),
        ("SELECT k FROM (SELECT id AS k FROM input) WHERE k > 1", {"k": "input.id"}),
        ("SELECT (SELECT max(name) FROM lookup l WHERE l.cust = i.cust) AS m FROM input i", {"m": "lookup.name"}),
        (
            "SELECT * FROM input PIVOT (sum(amount) FOR Status IN ('a'))",
            {"id": "input.id", "cust": "input.cust", "a": "input.amount"},
        ),
        ("SELECT unnest([id, cust]) AS u FROM input", {"u": "input.cust input.id"}),
        ("SELECT list_transform([id], lambda x: x + amount) AS z FROM input", {"z": "input.amount input.id"}),
        ("SELECT 1 AS one FROM input", {"one": ""}),
        ("SELECT * FROM read_csv('x.csv')", {}),
    ],
)
def test_a_column_is_made_of_what_its_expression_names(query: str, expected: dict[str, str]) -> None:
    assert traced(query) == expected


def test_the_names_of_the_output_can_be_given() -> None:
    assert traced("SELECT id, amount + 1 FROM input", ["ID", "col1"]) == {"ID": "input.id", "col1": "input.amount"}


def test_what_cannot_be_followed_is_traced_by_name() -> None:
    assert traced("SELECT COLUMNS('^a') FROM input", ["amount"]) == {"amount": "input.amount"}
    assert traced("SELECT this is not sql", ["amount", "other"]) == {"amount": "input.amount", "other": ""}
