"""What is measured of a fleet, and what is asked for. Rates are asked for as the time per item, of which less is better."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.fleet import LEASE_S
from benchmarks.measuring import Bench, Figures, Probe
from benchmarks.rows import Row, per_unit, ratio

PER_ITEM = 100_000
SUMMARY = 2_000_000
MANY = 10_000_000
COMMITS = 2_000
PIPELINED = 100_000
COPIED = 500_000
JOBS = 2_000
SUBMITS = 100
CHAINS = 5
DEATHS = 5
# A fleet takes seconds to start and PostgreSQL to make: more repeats would take long and tell little.
REPEATS = 3
LIMIT_S = 600.0
MANY_LIMIT_S = 1_800.0
TAKEOVER_S = LEASE_S + 2.0
GROWTH_MB = 30.0
# JetStream is asked for half of what PostgreSQL does.
HALF = 2.0
# A run of one task is asked to take no longer than a job of those that do nothing else.
AS_FAST = 1.0


def _size(bench: Bench, count: int) -> int:
    return count // 10 if bench.quick else count


def _repeats(bench: Bench) -> int:
    return min(bench.repeats, REPEATS)


def _probe(bench: Bench, name: str, count: int) -> Probe:
    return Probe(name, _size(bench, count), LIMIT_S)


def items(bench: Bench) -> list[Row]:
    each, few, commits, clients, pipelined, copied = bench.together(
        [
            _probe(bench, "fleet-per-item", PER_ITEM),
            _probe(bench, "fleet-summary", SUMMARY),
            _probe(bench, "pg-commits", COMMITS),
            _probe(bench, "pg-two-clients", COMMITS),
            _probe(bench, "pg-pipelined", PIPELINED),
            _probe(bench, "pg-copy", COPIED),
        ],
        _repeats(bench),
    )
    return [
        per_unit(f"fleet: {_size(bench, PER_ITEM):,} elements with an event each, per element", each, 1 / 5),
        _per_second("  elements a second", each),
        ratio("  Penstock / floor: pipelined rows", each, pipelined),
        ratio("  Penstock / floor: COPY", each, copied),
        per_unit(f"fleet: {_size(bench, SUMMARY):,} elements, per element", few, 1 / 200, 1 / 1000),
        _per_second("  elements a second", few),
        ratio("  Penstock / floor: COPY", few, copied),
        per_unit("  floor: one row per commit, one connection", commits),
        per_unit("  floor: one row per commit, two connections", clients),
        per_unit("  floor: pipelined, 256 rows per commit", pipelined),
        per_unit("  floor: COPY", copied),
    ]


def memory(bench: Bench) -> list[Row]:
    count = _size(bench, MANY)
    figures = bench.one(Probe("fleet-summary", count, MANY_LIMIT_S), 1)
    # Only many elements can tell growth from what any run needs.
    required = None if bench.quick else GROWTH_MB
    wrong = figures.wrong or ""
    title = f"fleet: growth of the server's memory over {count:,} elements"
    return [
        Row(title, figures.median("rss_grown_mb"), "MB", required, remark=wrong),
        *(
            Row(f"  memory at the {place}", figures.median(f"rss_{place}_mb"), "MB", remark=wrong)
            for place in ("start", "middle", "end")
        ),
        _per_second("  elements a second", figures),
    ]


def latency(bench: Bench) -> list[Row]:
    submit, hops, beside = bench.together(
        [
            _probe(bench, "fleet-submit", SUBMITS),
            Probe("fleet-hops", 1 if bench.quick else CHAINS, LIMIT_S),
            _probe(bench, "fleet-fairness", SUBMITS),
        ],
        _repeats(bench),
    )
    return [
        *_spread("fleet: submit to first task, idle", submit, 100.0),
        *_spread("fleet: step hop, end to next start", hops, 25.0),
        *_spread("fleet: submit to first task beside a huge loop", beside, 1_000.0),
    ]


def deaths(bench: Bench) -> list[Row]:
    count = 1 if bench.quick else DEATHS
    other, long, worker = bench.together(
        [Probe(name, count, LIMIT_S) for name in ("fleet-takeover", "fleet-takeover-long", "fleet-lost-worker")], 1
    )
    title = f"fleet: takeover after kill -9 of a server, lease {LEASE_S:g} s, worst of {count}"
    return [
        Row(title, other.median("worst_s"), "s", TAKEOVER_S, remark=other.wrong or ""),
        Row("  median", other.median("s"), "s", remark=other.wrong or ""),
        Row("  worst, document of 2,000 steps instead of 200", long.median("worst_s"), "s", remark=long.wrong or ""),
        Row(
            "  kill -9 of a worker until another has its lease",
            worker.median("worst_s"),
            "s",
            remark=worker.wrong or "",
        ),
    ]


def nats(bench: Bench) -> list[Row]:
    """In turns with PostgreSQL's own dispatch; the log is in PostgreSQL either way."""
    names = (("per-item", PER_ITEM), ("summary", SUMMARY), ("submit", SUBMITS))
    probes = [_probe(bench, f"{kind}-{name}", count) for name, count in names for kind in ("fleet", "nats")]
    chains = 1 if bench.quick else CHAINS
    probes += [Probe(f"{kind}-hops", chains, LIMIT_S) for kind in ("fleet", "nats")]
    each, nats_each, few, nats_few, submit, nats_submit, hops, nats_hops = bench.together(probes, _repeats(bench))
    return [
        per_unit("JetStream: elements with an event each, per element", nats_each),
        ratio("  JetStream / PostgreSQL", nats_each, each, HALF),
        per_unit("JetStream: elements, per element", nats_few),
        ratio("  JetStream / PostgreSQL", nats_few, few, HALF),
        *_spread("JetStream: submit to first task, idle", nats_submit),
        _over("  JetStream / PostgreSQL, p95", nats_submit, submit),
        *_spread("JetStream: step hop", nats_hops),
        _over("  JetStream / PostgreSQL, p95", nats_hops, hops),
    ]


def peers(bench: Bench) -> list[Row]:
    """Each beside the peer whose jobs go in as its runs do: many with one call, or one with each."""
    jobs = _size(bench, JOBS)
    many, procrastinate, runs, dbos, each = bench.together(
        [
            Probe("fleet-many-runs", jobs, LIMIT_S),
            Probe("procrastinate-jobs", jobs, LIMIT_S),
            Probe("fleet-runs", jobs, LIMIT_S),
            Probe("dbos-jobs", jobs, LIMIT_S),
            _probe(bench, "fleet-per-item", PER_ITEM),
        ],
        _repeats(bench),
    )
    rows: list[Row] = []
    for title, own, name, other in (
        (f"fleet: {jobs:,} runs of one task, put in 500 at a time", many, "procrastinate", procrastinate),
        (f"fleet: {jobs:,} runs of one task, put in one by one", runs, "DBOS queues", dbos),
    ):
        rows += [
            per_unit(f"{title}, per run", own),
            _per_second("  runs a second", own),
            per_unit(f"  {name} on PostgreSQL, per job", other),
            _per_second(f"  {name}, jobs a second", other),
            ratio(f"  Penstock, run / {name}, job", own, other, AS_FAST),
        ]
    rows.append(per_unit("fleet: an element of a loop, with an event of its own", each))
    for name, other in (("procrastinate", procrastinate), ("DBOS queues", dbos)):
        rows.append(ratio(f"  {name}, job / Penstock, element", other, each))
    return rows


def _per_second(title: str, figures: Figures) -> Row:
    return Row(title, figures.median("per_s"), "/s", remark=figures.wrong or "")


def _spread(title: str, figures: Figures, required: float | None = None) -> list[Row]:
    wrong = figures.wrong or ""
    return [
        Row(f"{title}, p95", figures.median("p95_ms"), "ms", required, remark=wrong),
        Row("  p50", figures.median("p50_ms"), "ms", remark=wrong),
    ]


def _over(title: str, one: Figures, other: Figures) -> Row:
    above, below = one.median("p95_ms"), other.median("p95_ms")
    value = above / below if above is not None and below else None
    return Row(title, value, "×", HALF, remark=one.wrong or other.wrong or "")


CASES: dict[str, Callable[[Bench], list[Row]]] = {
    "fleet": items,
    "fleet-memory": memory,
    "fleet-latency": latency,
    "fleet-deaths": deaths,
    "fleet-nats": nats,
    "fleet-peers": peers,
}
