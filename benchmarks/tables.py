"""The tables that the data benchmarks read: made once per count, beside the benchmark's folder, by DuckDB."""

from __future__ import annotations

from pathlib import Path

LOOKUP = 100_000


def made(folder: Path, count: int) -> tuple[Path, Path]:
    """About 47 bytes a row of orders, and a lookup of 100,000 customers."""
    shared = folder.parent / f"tables-{count}"
    orders, customers = shared / "orders.csv", shared / "customers.csv"
    if not customers.exists():
        import duckdb

        shared.mkdir(exist_ok=True)
        with duckdb.connect() as connection:
            connection.execute(
                "COPY (SELECT i AS id, (i * 7919) % $lookup AS customer, round((i * 31 % 100003) / 100.0, 2) AS amount, "
                "['new', 'paid', 'shipped', 'cancelled'][1 + i % 4] AS status, DATE '2026-01-01' + (i % 300)::INT AS day, "
                "'note ' || (i % 1000) AS note FROM range($count) t(i)) TO '" + str(orders) + "' (HEADER)",
                {"count": count, "lookup": LOOKUP},
            )
            connection.execute(
                "COPY (SELECT i AS customer, 'name ' || i AS name, ['north', 'south', 'east', 'west'][1 + i % 4] AS region "
                "FROM range($lookup) t(i)) TO '" + str(customers) + "' (HEADER)",
                {"lookup": LOOKUP},
            )
    return orders, customers
