"""`job_config`: how a job should run."""

from __future__ import annotations

from penstock.dialects.job.drafts import Config, Engine
from penstock.dialects.job.reader import Reading
from penstock.dialects.job.words import ENGINES, FAIL_STRATEGIES, STARTS, SUBJOB_POLICIES
from penstock.dialects.source.loader import SourceNode
from penstock.dialects.words import INPUT_RULES, OPEN
from penstock.kernel.net import Durability, Limits

_FACTORS = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def read_config(reading: Reading, root: SourceNode) -> Config:
    node = reading.section(root, "job_config", "job_config")
    if node is None:
        return Config()
    reading.warn_unrendered(node, "`job_config`")
    strategy = reading.choice(node.get("fail_strategy"), "a fail strategy", FAIL_STRATEGIES)
    policy = reading.choice(node.get("on_subjob_error"), "what to do on an error of a sub-job", SUBJOB_POLICIES)
    return Config(
        halts=strategy in (None, "halt"),
        fails=strategy == "continue_then_fail",
        aborts=policy == "abort",
        starts_whole=reading.choice(node.get("start"), "what starts", STARTS) == "subjob",
        durability=reading.enum(node.get("durability"), "a durability", Durability) or Durability.GROUPED,
        limits=_limits(reading, node),
        engine=_engine(reading, node),
        open_inputs=reading.choice(node.get("inputs"), "a rule for inputs", INPUT_RULES) == OPEN,
    )


def _limits(reading: Reading, node: SourceNode) -> Limits:
    limits = Limits()
    section = reading.section(node, "limits", "limits")
    if section is None:
        return limits
    return Limits(
        max_payload_bytes=reading.whole(section.get("max_payload_bytes"), "`max_payload_bytes`")
        or limits.max_payload_bytes,
        max_reevaluations=reading.whole(section.get("max_reevaluations"), "`max_reevaluations`")
        or limits.max_reevaluations,
    )


def _engine(reading: Reading, node: SourceNode) -> Engine:
    given = node.get("engine")
    kind: str | None = None
    threads: int | None = None
    fuse = True
    if given is not None and given.kind == "mapping":
        reading.words(given, "engine")
        kind = reading.choice(given.get("kind"), "an engine", ENGINES)
        threads = reading.whole(given.get("threads"), "`threads`")
        fuse = reading.flag(given.get("fuse"), "`fuse`", True)
    else:
        kind = reading.choice(given, "an engine", ENGINES)
    return Engine(
        kind=kind or "duckdb",
        threads=threads,
        fuse=fuse,
        memory_limit=reading.size(node.get("memory_limit"), "`memory_limit`"),
        max_in_flight_rows=reading.whole(node.get("max_in_flight_rows"), "`max_in_flight_rows`"),
        max_in_flight_bytes=_bytes(reading.size(node.get("max_in_flight_bytes"), "`max_in_flight_bytes`")),
    )


def _bytes(size: str | None) -> int | None:
    if size is None:
        return None
    number = size.rstrip("BKMGTi")
    return max(1, int(float(number) * _FACTORS[size[len(number) :]]))
