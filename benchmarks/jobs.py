"""Jobs, embedded, and the same work by hand and by peers: rows in, filter, join with a lookup, aggregate, Parquet out."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.peers import NotInstalled

ETL = """\
job_config: {{ memory_limit: {memory}, engine: {{ kind: duckdb, fuse: {fuse} }} }}
components:
  - {{ name: orders, type: read_csv, params: {{ path: "{orders}" }} }}
  - {{ name: good, type: filter, params: {{ where: "status <> 'cancelled' AND amount > 10" }} }}
  - {{ name: customers, type: read_csv, params: {{ path: "{customers}" }} }}
  - {{ name: joined, type: join, params: {{ on: [customer], how: inner, match: all }} }}
  - {{ name: totals, type: aggregate, params: {{ by: [region, day], measures: {{ n: count(*), total: sum(amount) }} }} }}
  - {{ name: out, type: write_parquet, params: {{ path: totals.parquet }} }}
connections:
  data:
    - orders.main -> good.input
    - good.main -> joined.main
    - customers.main -> joined.lookup
    - joined.main -> totals.input
    - totals.main -> out.input
"""

LARGE = """\
job_config: {{ memory_limit: {memory} }}
components:
  - name: numbers
    type: generate_rows
    params: {{ count: {count}, columns: {{ id: i, k: "hash(i)", text: "repeat('x', 40) || i" }} }}
  - {{ name: sorted, type: sort, params: {{ by: [k] }} }}
  - {{ name: out, type: write_parquet, params: {{ path: sorted.parquet }} }}
connections:
  data:
    - numbers.main -> sorted.input
    - sorted.main -> out.input
"""

PYTHON = """\
components:
  - name: numbers
    type: generate_rows
    params: {{ count: {count}, columns: {{ id: i, amount: "i * 1.5::DOUBLE", name: "'n' || i" }} }}
  - name: each
    type: python
    params:
      mode: row
      code: |
        output = {{"id": row["id"], "double": row["amount"] * 2}}
  - {{ name: out, type: write_parquet, params: {{ path: doubled.parquet }} }}
connections:
  data:
    - numbers.main -> each.input
    - each.main -> out.input
"""


def etl(folder: Path, count: int) -> dict[str, float]:
    return _etl(folder, count, fuse="true")


def unfused(folder: Path, count: int) -> dict[str, float]:
    return _etl(folder, count, fuse="false")


def _etl(folder: Path, count: int, *, fuse: str) -> dict[str, float]:
    orders, customers = tables.made(folder, count)
    text = ETL.format(orders=orders, customers=customers, fuse=fuse, memory="4GB")
    said = run_job(folder, text, count)
    _check(folder / "totals.parquet", count)
    return said


def by_hand(folder: Path, count: int) -> dict[str, float]:
    import duckdb

    orders, customers = tables.made(folder, count)
    out = folder / "totals.parquet"

    def work() -> None:
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT region, day, count(*) AS n, sum(amount) AS total FROM read_csv('{orders}') o "
                f"JOIN read_csv('{customers}') c USING (customer) WHERE status <> 'cancelled' AND amount > 10 "
                f"GROUP BY region, day) TO '{out}' (FORMAT parquet)"
            )

    said = timed(work, count)
    _check(out, count)
    return said


def polars(folder: Path, count: int) -> dict[str, float]:
    try:
        import polars as pl
    except ImportError as missing:
        raise NotInstalled(str(missing)) from missing
    orders, customers = tables.made(folder, count)

    def work() -> None:
        (
            pl.scan_csv(orders)
            .filter((pl.col("status") != "cancelled") & (pl.col("amount") > 10))
            .join(pl.scan_csv(customers), on="customer")
            .group_by("region", "day")
            .agg(n=pl.len(), total=pl.col("amount").sum())
            .sink_parquet(folder / "totals.parquet")
        )

    return timed(work, count)


def pandas(folder: Path, count: int) -> dict[str, float]:
    try:
        import pandas as pd
    except ImportError as missing:
        raise NotInstalled(str(missing)) from missing
    orders, customers = tables.made(folder, count)

    def work() -> None:
        rows = pd.read_csv(orders)
        rows = rows[(rows["status"] != "cancelled") & (rows["amount"] > 10)].merge(
            pd.read_csv(customers), on="customer"
        )
        totals = rows.groupby(["region", "day"]).agg(n=("id", "size"), total=("amount", "sum")).reset_index()
        totals.to_parquet(folder / "totals.parquet")

    return timed(work, count)


def petl(folder: Path, count: int) -> dict[str, float]:
    try:
        import petl
    except ImportError as missing:
        raise NotInstalled(str(missing)) from missing
    orders, customers = tables.made(folder, count)

    def work() -> None:
        rows = petl.convert(petl.fromcsv(str(orders)), "amount", float)
        rows = petl.select(rows, lambda row: row["status"] != "cancelled" and row["amount"] > 10)
        rows = petl.hashjoin(rows, petl.fromcsv(str(customers)), key="customer")
        totals = petl.aggregate(rows, ("region", "day"), {"n": len, "total": ("amount", sum)})
        petl.tocsv(totals, str(folder / "totals.csv"))

    return timed(work, count)


def large(folder: Path, count: int) -> dict[str, float]:
    """Four times the memory limit, sorted: it must spill, and complete."""
    size = count * 60
    said = run_job(folder, LARGE.format(count=count, memory=f"{size // 4 // 1_000_000}MB"), count)
    import duckdb

    with duckdb.connect() as connection:
        (rows,) = connection.execute(f"SELECT count(*) FROM '{folder / 'sorted.parquet'}'").fetchone() or (0,)
    assert rows == count, rows
    return {**said, "limit_mb": size / 4 / 1e6}


def per_row(folder: Path, count: int) -> dict[str, float]:
    said = run_job(folder, PYTHON.format(count=count), count)
    return {**said, "rows_per_s": count / said["s"]}


def chain(folder: Path, count: int) -> dict[str, float]:
    names = [f"  - {{ name: n{number}, type: noop }}\n" for number in range(count)]
    links = [f"    - n{number} (ok) n{number + 1}\n" for number in range(count - 1)]
    return run_job(folder, f"components:\n{''.join(names)}connections:\n  control:\n{''.join(links)}", count)


def iterator(folder: Path, count: int) -> dict[str, float]:
    text = f"""\
components:
  - {{ name: rows, type: generate_rows, params: {{ count: {count}, columns: {{ id: i, name: "'n' || i" }} }} }}
  - {{ name: each, type: iterate_rows }}
  - {{ name: keep, type: set_global, params: {{ values: {{ last: "{{{{ iteration.item.name }}}}" }} }} }}
  - {{ name: done, type: noop }}
connections:
  data: rows.main -> each.input
  control:
    - each (iterate) keep
    - keep (ok) done
"""
    return run_job(folder, text, count)


def run_job(folder: Path, text: str, count: int) -> dict[str, float]:
    from penstock.app.embedded import embedded
    from penstock.server.documents import Documents

    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")

    async def main() -> None:
        engine = embedded(folder / "home")
        documents = Documents(engine.tools, engine.components)
        document = documents.open(path)
        run = engine.run("benchmark", documents)
        began.append(time.perf_counter())
        busy.append(time.process_time())
        summary = await run.start(document, {}, label=None, trace_id="benchmark")
        ended.append(time.perf_counter())
        busy.append(time.process_time())
        await engine.close()
        assert summary.status == "completed", summary.error

    began: list[float] = []
    ended: list[float] = []
    busy: list[float] = []
    asyncio.run(main())
    return _said(ended[0] - began[0], busy[1] - busy[0], count)


def timed(work: Callable[[], Any], count: int) -> dict[str, float]:
    began, busy = time.perf_counter(), time.process_time()
    work()
    return _said(time.perf_counter() - began, time.process_time() - busy, count)


def _said(took: float, busy: float, count: int) -> dict[str, float]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"s": took, "ms": took * 1000 / count, "cpu_ms": busy * 1000 / count, "rss_mb": peak}


def _check(path: Path, count: int) -> None:
    """The right rows came out, or the time says nothing."""
    import duckdb

    with duckdb.connect() as connection:
        (rows,) = connection.execute(f"SELECT sum(n)::BIGINT FROM '{path}'").fetchone() or (0,)
    assert 0.6 * count < rows < 0.8 * count, rows
