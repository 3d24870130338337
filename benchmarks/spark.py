"""The ETL of `jobs.py` on Spark, by Penstock and by hand in PySpark, and on DuckDB.

One Spark in local mode serves both, turn by turn, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from statistics import median

from benchmarks import jobs, tables
from penstock.data.spark.server import LocalSpark
from tests.packages import java

TURNS = 3


def by_hand(remote: str, orders: Path, customers: Path, out: Path) -> float:
    from pyspark.sql.connect import functions as f
    from pyspark.sql.connect.session import SparkSession

    began = time.perf_counter()
    spark = SparkSession.builder.remote(remote).create()
    read = spark.read.option("header", "true")
    left = read.schema("id BIGINT, customer BIGINT, amount DOUBLE, status STRING, day DATE, note STRING").csv(
        str(orders)
    )
    right = read.schema("customer BIGINT, name STRING, region STRING").csv(str(customers))
    good = left.where("status <> 'cancelled' AND amount > 10").join(right, "customer")
    totals = good.groupBy("region", "day").agg(f.count(f.lit(1)).alias("n"), f.sum("amount").alias("total"))
    totals.write.mode("overwrite").parquet(str(out))
    spark.stop()
    return time.perf_counter() - began


def by_penstock(engine: str, folder: Path, orders: Path, customers: Path, count: int) -> float:
    text = jobs.ETL.format(orders=orders, customers=customers, fuse="true", memory="4GB")
    folder.mkdir()
    text = text.replace("engine: { kind: duckdb, fuse: true }", f"engine: {engine}")
    return jobs.run_job(folder, text, count)["s"]


def etl(root: Path, count: int) -> dict[str, float]:
    """Seconds of each, and their ratios; medians of turns that follow one in which the server warms up."""
    java()
    server = LocalSpark("local[*]", {"spark.driver.memory": "4g"})
    try:
        took: dict[str, list[float]] = {"by_hand_s": [], "s": [], "duckdb_s": []}
        engine = f'{{ kind: spark, remote: "{server.remote}" }}'
        for turn in range(TURNS + 1):
            folder = root / str(turn)
            folder.mkdir()
            orders, customers = tables.made(folder, count)
            found = {
                "by_hand_s": by_hand(server.remote, orders, customers, folder / "by-hand"),
                "s": by_penstock(engine, folder / "spark", orders, customers, count),
                "duckdb_s": by_penstock("{ kind: duckdb }", folder / "duckdb", orders, customers, count),
            }
            shutil.rmtree(folder)
            if turn:
                for name, seconds in found.items():
                    took[name].append(seconds)
    finally:
        server.stop()
    middle = {name: median(all_of) for name, all_of in took.items()}
    ratios = [own / hand for own, hand in zip(took["s"], took["by_hand_s"], strict=True)]
    return {**middle, "ratio": median(ratios), "to_duckdb": middle["s"] / middle["duckdb_s"]}


PROBES = {"spark-etl": etl}
