"""What is measured, and what is asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import fleet_cases, growth, page_cases
from benchmarks.measuring import Bench, Figures, Probe, run
from benchmarks.rows import Row, per_unit, ratio

CHAIN = 1_000
FAN = 10_000
REQUESTS = 3_000
EVENTS = 1_000_000
ROWS = 10_000_000
PYTHON_ROWS = 2_000_000
LARGE_ROWS = 20_000_000
SQL_ROWS = 1_000_000
MEMORY = (10_000, 100_000, 1_000_000)
# Peers take seconds to minutes for what the others do in half a second; their repeats tell nothing new.
PEER_LIMIT_S = 600.0


def chain(bench: Bench) -> list[Row]:
    count = CHAIN
    own, bare, unsynced = bench.together(
        [Probe("chain", count), Probe("floor-fsync", count), Probe("floor-no-fsync", count)]
    )
    compiling = bench.one(Probe("compiling", count))
    return [
        per_unit(f"chain of {count:,} tasks, per task", own, 0.15, 0.1),
        per_unit("  reading and checking that document, per task", compiling),
        per_unit("  floor: one fsync per event", bare),
        per_unit("  floor: no fsync", unsynced),
        ratio("  Penstock / floor without fsync", own, unsynced),
    ]


def strict(bench: Bench) -> list[Row]:
    return _beside_floor(
        f"chain of {CHAIN:,} tasks, `durability: strict`, per task", bench.one(Probe("strict", CHAIN)), 1.5
    )


def hops(bench: Bench) -> list[Row]:
    return _beside_floor(f"chain of {CHAIN:,} steps, per step", bench.one(Probe("hops", CHAIN)))


def _beside_floor(title: str, figures: Figures, required: float | None = None) -> list[Row]:
    floor, times = figures.median("floor_ms"), figures.median("ratio")
    return [
        per_unit(title, figures),
        Row("  floor: one fsync per event", floor, "ms", remark=figures.wrong or ""),
        Row("  Penstock / floor with fsync", times, "×", required, remark=figures.wrong or ""),
    ]


def fan(bench: Bench) -> list[Row]:
    own, grouped = bench.together([Probe("fan", FAN), Probe("floor-grouped", FAN)])
    return [
        per_unit(f"parallel loop of {FAN:,} iterations, per iteration", own, 0.1, 0.05),
        per_unit("  floor: grouped commits, one event per iteration", grouped),
        ratio("  Penstock (4 events per iteration) / floor", own, grouped),
    ]


def http(bench: Bench) -> list[Row]:
    raw, hand, own, python = bench.together(
        [Probe(name, REQUESTS) for name in ("http-aiohttp", "http-httpx", "http-loop", "http-python")]
    )
    above, below = python.median("ms"), own.median("ms")
    more = above - below if above is not None and below is not None else None
    return [
        per_unit(f"loop of {REQUESTS:,} `http` tasks, 20 in flight, per request", own),
        per_unit("  aiohttp by hand", raw),
        ratio("  Penstock / aiohttp by hand", own, raw, 3.0),
        per_unit("  httpx by hand", hand),
        ratio("  Penstock / httpx by hand", own, hand, 1.0),
        Row("  a `python` task behind each, in addition", more, "ms", 0.25, remark=python.wrong or own.wrong or ""),
    ]


def memory(bench: Bench) -> list[Row]:
    counts = MEMORY[:-1] if bench.quick else MEMORY
    rows: list[Row] = []
    peaks: list[float | None] = []
    for count in counts:
        figures = bench.one(Probe("fan", count, limit_s=900.0), 1)
        peaks.append(figures.median("rss_mb"))
        rows.append(Row(f"  peak memory, {count:,} iterations", peaks[-1], "MB", remark=figures.wrong or ""))
    least, most = peaks[0], peaks[-1]
    grown = (most - least) * 1024 * 1024 / (counts[-1] - counts[0]) if least and most else None
    # A bit per iteration is kept, so that a loop can be resumed; 16 bytes leave room for the allocator's habits. Those are
    # megabytes either way, so that only a million iterations can tell.
    required = None if bench.quick else 16.0
    head = Row(f"memory growth per iteration, {counts[0]:,} to {counts[-1]:,}", grown, "bytes", required)
    return [head, *rows]


def start(bench: Bench) -> list[Row]:
    bench.one(Probe("one-task"), 1)  # Leaves the compiled modules behind.
    one, words, bare = bench.together(
        [Probe("one-task"), Probe("help"), Probe("python")], max(bench.repeats, 3 if bench.quick else 7)
    )
    huey, dbos = bench.together([Probe("one-huey-task"), Probe("one-dbos-task")], 3)
    return [
        Row("`penstock run` of one task, command to end", one.median("s"), "s", 0.35, remark=one.wrong or ""),
        Row("  one Huey task, process start to end", huey.median("s"), "s", remark=huey.wrong or ""),
        Row("  one DBOS step, process start to end", dbos.median("s"), "s", remark=dbos.wrong or ""),
        Row("`penstock --help`", words.median("s"), "s", 0.25, remark=words.wrong or ""),
        Row("  floor: `python -c pass`", bare.median("s"), "s", remark=bare.wrong or ""),
    ]


def resume(bench: Bench) -> list[Row]:
    count = EVENTS // 10 if bench.quick else EVENTS
    title, required = f"resume of a run with {count:,} events", 10.0 * count / EVENTS
    with tempfile.TemporaryDirectory(dir=bench.folder, prefix="log-") as name:
        folder = Path(name)
        said, wrong = run(Probe("interrupted", count, limit_s=900.0), folder, bench.folder / "bytecode")
        if wrong is not None:
            return [Row(title, None, "s", required, remark=f"its log was not made: {wrong}")]
        figures = bench.one(Probe("resume", limit_s=120.0, home=folder / "home"))
        seen = bench.one(Probe("moments", limit_s=120.0, home=folder / "home"))
        size = sum(path.stat().st_size for path in (folder / "home").glob("penstock.db*"))
    return [
        Row(title, figures.median("s"), "s", required, cpu=figures.median("cpu_s"), remark=figures.wrong or ""),
        Row("  peak memory of that resume", figures.median("rss_mb"), "MB"),
        Row("  size of its log, per event", size / said["events"], "bytes"),
        Row("the same run as it was at a random event", seen.median("s"), "s", 1.0, remark=seen.wrong or ""),
        Row("  the slowest of them", seen.median("worst_s"), "s", 1.0),
        Row("  the first look, which makes the snapshots", seen.median("first_s"), "s"),
        Row("  size of a snapshot", seen.median("snapshot_kb"), "kB"),
        Row("  peak memory of looking", seen.median("rss_mb"), "MB"),
    ]


def peers(bench: Bench) -> list[Row]:
    fan_count = FAN // 10 if bench.quick else FAN
    rows: list[Row] = []
    for title, own, others, count in (
        (f"chain of {CHAIN:,}, per task", "chain", ("huey-chain", "dbos-chain"), CHAIN),
        (f"fan-out of {fan_count:,}, per item", "fan", ("huey-fan", "dbos-fan"), fan_count),
    ):
        mine, huey, dbos = bench.together([Probe(name, count, PEER_LIMIT_S) for name in (own, *others)], 1)
        rows.append(per_unit(f"{title}: Penstock", mine))
        rows += [per_unit(f"  {name} on SQLite", figures) for name, figures in (("Huey", huey), ("DBOS", dbos))]
        rows += [ratio(f"  {name} / Penstock", figures, mine) for name, figures in (("Huey", huey), ("DBOS", dbos))]
    return rows


def etl(bench: Bench) -> list[Row]:
    """The same table through all of them, turn by turn. petl has a tenth of it, and is compared per row."""
    count = _rows(bench)
    own, hand, unfused = bench.together(
        [Probe(name, count, 600.0) for name in ("job-etl", "duckdb-by-hand", "job-unfused")]
    )
    polars, pandas = bench.together([Probe(name, count, 600.0) for name in ("polars", "pandas")], 3)
    petl = bench.one(Probe("petl", count // 10, 600.0), 1)
    return [
        _seconds(f"{count:,} rows of CSV: filter, join, aggregate, Parquet", own),
        _seconds("  DuckDB by hand", hand),
        ratio("  Penstock / DuckDB by hand", own, hand, 1.2, 1.1),
        Row("  memory: Penstock / DuckDB by hand", _over(own, hand, "rss_mb"), "×", 1.5),
        _seconds("  Penstock, not fused", unfused),
        ratio("  not fused / DuckDB by hand", unfused, hand, 3.0),
        _seconds("  Polars, streaming", polars),
        _seconds("  pandas", pandas),
        ratio("  petl / DuckDB by hand, per row", petl, hand),
    ]


def _rows(bench: Bench) -> int:
    return bench.rows or (ROWS // 10 if bench.quick else ROWS)


def spark(bench: Bench) -> list[Row]:
    """The same work on one Spark, turn by turn in one process: a server takes long to start and to warm up."""
    count = _rows(bench)
    found = bench.one(Probe("spark-etl", count, 1_800.0), 1)
    return [
        _seconds(f"{count:,} rows of CSV on Spark in local mode: filter, join, aggregate, Parquet", found),
        Row("  PySpark by hand", found.median("by_hand_s"), "s"),
        Row("  Penstock / PySpark by hand", found.median("ratio"), "×", 1.15, remark=found.wrong or ""),
        Row("  on Spark / on DuckDB, both by Penstock", found.median("to_duckdb"), "×"),
    ]


def rows(bench: Bench) -> list[Row]:
    count = PYTHON_ROWS // 4 if bench.quick else PYTHON_ROWS
    each = bench.one(Probe("job-python", count, 300.0))
    large = bench.one(Probe("job-large", LARGE_ROWS // 4 if bench.quick else LARGE_ROWS, 600.0), 1)
    speed = each.median("rows_per_s")
    return [
        Row(
            "Python code per row, thousand rows a second",
            speed / 1000 if speed else None,
            "k/s",
            remark=each.wrong or "",
        ),
        Row("  time per thousand rows", 1_000_000 / speed if speed else None, "ms", 1_000 / 300),
        _seconds("sort of four times the memory limit", large),
        Row("  its memory limit", large.median("limit_mb"), "MB"),
        Row("  its peak memory", large.median("rss_mb"), "MB"),
    ]


def components(bench: Bench) -> list[Row]:
    chain, each = bench.together([Probe("job-chain", CHAIN), Probe("job-iterator", FAN, 300.0)])
    return [
        per_unit(f"chain of {CHAIN:,} empty components, per component", chain, 0.3),
        per_unit(f"iterator over {FAN:,} rows, two components each, per iteration", each, 1.5, 0.5),
    ]


def databases(bench: Bench) -> list[Row]:
    """Rows out of servers and into them, beside the fastest way by hand; what a run needs to begin is part of neither."""
    found: list[Row] = []
    for name, count, words in (
        ("sql-read", SQL_ROWS, "read {:,} rows of PostgreSQL into Parquet"),
        ("sql-insert", SQL_ROWS // 5, "insert {:,} rows into PostgreSQL"),
        ("sql-upsert", SQL_ROWS // 5, "upsert {:,} rows, half of them there"),
        ("mysql-read", SQL_ROWS // 5, "read {:,} rows of MariaDB into Parquet"),
        ("mysql-insert", SQL_ROWS // 5, "insert {:,} rows into MariaDB"),
        ("mysql-upsert", SQL_ROWS // 5, "upsert {:,} rows in MariaDB, half of them there"),
    ):
        size = count // 4 if bench.quick else count
        own, hand = bench.together([Probe(name, size, 300.0), Probe(f"{name}-by-hand", size, 300.0)])
        found += [
            _seconds(words.format(size), own),
            _seconds("  by hand", hand),
            ratio("  Penstock / by hand", own, hand, 1.3),
        ]
    size = SQL_ROWS // 4 if bench.quick else SQL_ROWS
    own, steps, once = bench.together(
        [Probe(f"sql-inside{more}", size, 300.0) for more in ("", "-step-by-step", "-at-once")]
    )
    found += [
        _seconds(f"filter and sum up {size:,} rows inside PostgreSQL", own),
        _seconds("  the same statements by hand", steps),
        ratio("  Penstock / the same statements", own, steps, 2.0),
        _seconds("  one statement, which counts nothing", once),
    ]
    for name in ("read", "insert"):
        count = SQL_ROWS // 2 if bench.quick else SQL_ROWS
        few = bench.one(Probe(f"sql-{name}-in-little", count, 300.0), 1)
        many = bench.one(Probe(f"sql-{name}-in-little", count * 5, 600.0), 1)
        found += [
            Row(f"memory to {name} {size:,} rows, limit 128 MB", each.median("rss_mb"), "MB", remark=each.wrong or "")
            for size, each in ((count, few), (count * 5, many))
        ]
    return found


def _seconds(title: str, figures: Figures) -> Row:
    return Row(title, figures.median("s"), "s", remark=figures.wrong or "")


def _over(one: Figures, other: Figures, key: str) -> float | None:
    above, below = one.median(key), other.median(key)
    return above / below if above is not None and below else None


CASES: dict[str, Callable[[Bench], list[Row]]] = {
    "chain": chain,
    "strict": strict,
    "hops": hops,
    "fan": fan,
    "http": http,
    "memory": memory,
    "start": start,
    "resume": resume,
    "peers": peers,
    "etl": etl,
    "rows": rows,
    "components": components,
    "databases": databases,
    "spark": spark,
    **fleet_cases.CASES,
    **page_cases.CASES,
    **growth.CASES,
}

JOBS = frozenset({"etl", "rows", "components", "databases", "spark"})


def group_of(case: str) -> str:
    """The part of docs/figures.md that a case is shown in."""
    if case in fleet_cases.CASES:
        return "fleet"
    if case in page_cases.CASES:
        return "page"
    if case in growth.CASES:
        return "growth"
    return "jobs" if case in JOBS else "playbooks"
