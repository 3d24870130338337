"""Spark as one job run sees it, through Spark Connect.

Rows that are kept are Parquet in a folder that Spark and this process both see: they survive a server that dies, another engine
reads them where they are, and nothing is collected to look at them. DuckDB stands beside Spark for what needs no cluster: it
finds the columns and types of a query, hashes what came out, and takes in the rows that components make themselves.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import warnings
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4
from zlib import crc32

from sqlglot import exp

from penstock.data.binder import Binder
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.data.fusion import Fusion, Output, Step, fusion
from penstock.data.output_hash import CONTENT_UP_TO, input_hashes, plan_hash, plan_key
from penstock.data.spark.files import Target, saved, scanned, target_of
from penstock.data.spark.server import local_spark, require_client
from penstock.data.spark.sql import cast_columns, spark_query, spark_schema, spark_type, ticked, written
from penstock.data.sql_rules import SqlMistake
from penstock.data.statements import may_differ
from penstock.data.translation import SCANS
from penstock.ports.rows import Copy, Parts, Program, Relation, RowsFailed, Schema, SqlText, Stage, Staged

T = TypeVar("T")
Frame = Any
"""A DataFrame of pyspark's, which is not loaded unless Spark is asked for."""

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.autoBroadcastJoinThreshold": "67108864",
    # They leave out what a join with nothing need not read, and with it the count of what was to be read.
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation",
}
_BROADCAST_UP_TO = 256_000_000
"""Bytes of a lookup. What is larger is left to Spark's own judgement."""
_LOST = re.compile(
    r"UNAVAILABLE|DEADLINE_EXCEEDED|failed to connect|Connection refused|Connection reset|Socket closed|SESSION_NOT_FOUND|"
    r"SESSION_CLOSED|SESSION_CHANGED|OPERATION_NOT_FOUND|RETRIES_EXCEEDED|ExecutorLost|Executor heartbeat|FetchFailed|"
    r"SparkContext was shut down|stopped SparkContext",
    re.IGNORECASE,
)
_OF_PROGRAM = re.compile(r"penstock-failure:([A-Za-z0-9+/=]+);")
_NO_FILE = re.compile(r"PATH_NOT_FOUND|FILE_NOT_EXIST|FileNotFoundException")
_OF_A_VALUE = re.compile(
    r"CAST_INVALID_INPUT|CAST_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE|ARITHMETIC_OVERFLOW|CANNOT_PARSE|MALFORMED_RECORD"
)


def rows_failed(error: Exception) -> RowsFailed:
    """What Spark or the way to it raised, for the author of a job."""
    text = str(error)
    if told := _OF_PROGRAM.search(text):
        return RowsFailed("program", b64decode(told[1]).decode())
    first = " ".join(text.split("\n\nJVM stacktrace")[0].split("\n== SQL")[0].split())[:1_000]
    if "OPERATION_CANCELED" in text or ("INTERRUPTED" in text.upper() and "interrupt" in text.lower()):
        return RowsFailed("interrupted", "interrupted")
    if _LOST.search(text) or type(error).__name__ in ("_InactiveRpcError", "_MultiThreadedRendezvous"):
        return RowsFailed("connection", f"Spark was lost: {first}", retryable=True)
    message = re.sub(r"\A(?:\([\w.]+\) )?\[[\w.]+\] ", "", first)
    message = re.sub(r" SQLSTATE: \w+.*\Z", "", message)
    if _NO_FILE.search(text):
        return RowsFailed("missing_file", message)
    if _OF_A_VALUE.search(text):
        return RowsFailed("conversion", message)
    if "USER_RAISED_EXCEPTION" in text:
        return RowsFailed("data", message)
    return RowsFailed("engine" if "AnalysisException" not in type(error).__name__ else "sql", f"Spark: {message}")


class Cluster:
    """The connection of one job run, made anew when it was lost."""

    def __init__(self, remote: Callable[[], str], conf: Mapping[str, str]) -> None:
        self._remote = remote
        self._conf = conf
        self._lock = threading.RLock()
        self._spark: Any = None

    def spark(self) -> Any:
        with self._lock:
            if self._spark is None:
                require_client()
                self._spark = self._connected()
            return self._spark

    def _connected(self) -> Any:
        # A failure says the same, where it is seen.
        warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql.connect.client import DefaultChannelBuilder  # An extra, and takes seconds to load.
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession

            # Otherwise a server that has come back is not asked before the pause for the one that was gone is over.
            options = [("grpc.use_local_subchannel_pool", 1)]
            channel = DefaultChannelBuilder(self._remote(), channelOptions=options)
            spark = SparkSession.builder.channelBuilder(channel).create()
        # Theirs goes on for ten minutes: a job should say sooner that its cluster is gone.
        spark.client.set_retry_policies([DefaultPolicy(max_retries=4, max_backoff=2_000)])
        for name, value in {**SETTINGS, **self._conf}.items():
            spark.conf.set(name, value)
        return spark

    @contextmanager
    def failing_plainly(self) -> Iterator[None]:
        try:
            yield
        except RowsFailed:
            raise
        except SqlMistake as mistake:
            raise RowsFailed(
                "sql", f"{mistake.message}; {mistake.hint}" if mistake.hint else mistake.message
            ) from mistake
        except Exception as error:  # pyspark and grpc are an extra: their errors are known by their module.
            if not type(error).__module__.startswith(("pyspark", "grpc")):
                raise
            failed = rows_failed(error)
            if failed.kind == "connection":
                self.forget()
            raise failed from error

    def forget(self) -> None:
        with self._lock:
            self._spark = None

    def close(self) -> None:
        with self._lock:
            spark, self._spark = self._spark, None
        if spark is not None:
            try:
                spark.stop()
            except Exception:  # It ends with the server at the latest, and the job has its rows.
                return


class SparkSession:
    is_here = False
    runs_python = True
    place = None

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine
        self._cluster = engine.cluster
        self._near = engine.near.session()
        self._tag = f"penstock-{uuid4().hex}"
        self._is_interrupted = False
        self._made: set[str] = set()

    @contextmanager
    def _running(self) -> Iterator[Any]:
        """Spark, in this thread, under the tag by which it can be interrupted."""
        if self._is_interrupted:
            raise RowsFailed("interrupted", "interrupted")
        with self._cluster.failing_plainly():
            spark = self._cluster.spark()
            spark.addTag(self._tag)
            try:
                yield spark
            finally:
                spark.removeTag(self._tag)

    def interrupt(self) -> None:
        if self._is_interrupted:
            return
        self._is_interrupted = True
        self._near.interrupt()

        def stop() -> None:
            # A cluster that is gone runs nothing any more.
            with suppress(RowsFailed), self._cluster.failing_plainly():
                self._cluster.spark().interruptTag(self._tag)

        threading.Thread(target=stop, name="interrupt", daemon=True).start()

    # Queries

    def describe(self, query: SqlText, inputs: Mapping[str, Relation]) -> Schema:
        return self._engine.columns_of(query, {name: one.schema for name, one in inputs.items()})

    def _frame(self, query: SqlText, frames: Mapping[str, Frame], schemas: Mapping[str, Schema], spark: Any) -> Frame:
        """The rows of a query, lazily. Each column has the type that DuckDB finds for it."""
        schema = self._engine.columns_of(query, schemas)
        tree = spark_query(query, schemas, lambda part: self._engine.columns_of(part, schemas))
        given = dict(frames)
        for number, node in enumerate(list(tree.find_all(exp.Table))):
            if isinstance(node.this, exp.Anonymous) and str(node.this.this).lower() in SCANS:
                name = f"__scan_{number}"
                given[name] = scanned(spark, node.this, self._engine.columns_of)
                node.set("this", exp.Identifier(this=name, quoted=True))
        numbers = {name: f"p{number}" for number, name in enumerate(given)}
        text = written(tree)
        if numbers:
            # Only where it puts frames into a text does Spark take braces for its own.
            body = text.replace("{", "{{").replace("}", "}}")
            heads = ", ".join(f"`{name}` AS (SELECT * FROM {{{key}}})" for name, key in numbers.items())
            text = f"WITH {heads} SELECT * FROM (\n{body}\n)"
        found = spark.sql(text, **{key: given[name] for name, key in numbers.items()})
        plain = [f"c{number}" for number in range(len(schema))]
        return found.toDF(*plain).selectExpr(*cast_columns(plain, schema))

    def frame(self, relation: Relation, spark: Any) -> Frame:
        return self._engine.frame(relation, spark)

    def _over(self, query: SqlText, inputs: Mapping[str, Relation], spark: Any) -> Frame:
        frames = {name: _hinted(name, relation, self.frame(relation, spark)) for name, relation in inputs.items()}
        return self._frame(query, frames, {name: one.schema for name, one in inputs.items()}, spark)

    def select(self, query: SqlText, inputs: Mapping[str, Relation]) -> Relation:
        schema = self.describe(query, inputs)
        with self._running() as spark:
            rows, path, _ = self.write(self._over(query, inputs, spark))
        return self.relation(path, schema, rows, plan_key(query, input_hashes(inputs)))

    def write(self, frame: Frame) -> tuple[int, str, Counts]:
        """Keep the rows of a frame. Their number, where they are, and the counts that were taken on the way."""
        path = self._engine.new_path()
        self._made.add(path)
        rows, counts = put(frame, lambda found: saved(found, found.write.format("parquet"), path))
        return rows, path, counts

    def relation(self, path: str, schema: Schema, rows: int, key: str) -> Relation:
        size = sum(one.stat().st_size for one in Path(path).glob("*.parquet"))
        relation = Relation(path, schema, rows, plan_hash(key, rows), size, spilled=True)
        if rows > CONTENT_UP_TO:
            return relation
        return Relation(path, schema, rows, self._engine.content_hash(relation), size, spilled=True)

    def run(self, statement: SqlText, inputs: Mapping[str, Relation] | None = None, values: Sequence[Any] = ()) -> int:
        raise RowsFailed("engine", "a statement for DuckDB cannot run on Spark; run this sub-job on `duckdb`")

    def rows(
        self, query: SqlText, inputs: Mapping[str, Relation], size: int = 10_000
    ) -> Iterator[list[tuple[Any, ...]]]:
        if not _LOOKS.match(query):
            made = self.select(query, inputs)
            query, inputs = 'SELECT * FROM "made"', {"made": made}
        with self._engine.nearby(inputs) as relations:
            yield from self._near.rows(query, relations, size)

    def arrow(self, query: SqlText, inputs: Mapping[str, Relation]) -> Any:
        return self._near.arrow(query, self._engine.attached_near(inputs))

    def copy(self, query: SqlText, inputs: Mapping[str, Relation], copy: Copy) -> int:
        schema = self.describe(query, inputs)
        with self._running() as spark:
            return self._put_file(self._over(query, inputs, spark), schema, copy)

    def _put_file(self, frame: Frame, schema: Schema, copy: Copy) -> int:
        target: Target = target_of(copy, schema)
        try:
            rows, _ = put(frame, target.write)
            target.land()
        finally:
            target.discard()
        return rows

    def run_program(self, program: Program, rows: Relation, schema: Schema) -> Relation:
        with self._running() as spark:
            # pyarrow comes with the client.
            from pyspark.sql.pandas.types import to_arrow_schema

            made = ", ".join(f"CAST(NULL AS {spark_type(one.type)}) AS {ticked(one.name)}" for one in schema)
            columns = spark.sql(f"SELECT {made}").schema
            arrow = to_arrow_schema(columns, timezone="UTC").serialize().to_pybytes()
            found = self.frame(rows, spark).mapInArrow(_on_workers(program, arrow), columns)
            count, path, _ = self.write(found)
        return self.relation(path, schema, count, plan_key(program.told, input_hashes({"input": rows})))

    # Fused groups

    def fuse(self, stages: Sequence[Stage]) -> dict[str, Staged]:
        with self._running() as spark:
            return _Attempt(self, self._engine, fusion(stages), spark).run()

    def stage_frame(
        self, query: SqlText, frames: Mapping[str, Frame], schemas: Mapping[str, Schema], spark: Any
    ) -> Frame:
        return self._frame(query, frames, schemas, spark)

    # Rows that components make

    def empty(self, schema: Schema) -> Relation:
        return self._taken(self._near.empty(schema))

    def load(self, schema: Schema, batches: Iterable[Sequence[Sequence[Any]]]) -> Relation:
        return self._taken(self._near.load(schema, batches))

    def load_mappings(self, batches: Iterable[Sequence[Mapping[str, Any]]], schema: Schema | None = None) -> Relation:
        return self._taken(self._near.load_mappings(batches, schema))

    def load_arrow(
        self, stream: Any, schema: Schema | None = None, seen: Callable[[int], None] | None = None
    ) -> Relation:
        return self._taken(self._near.load_arrow(stream, schema, seen))

    def mount(self, files: Sequence[Parts]) -> Callable[[], None]:
        raise RowsFailed("engine", "files elsewhere are copied before Spark reads them")

    def _taken(self, near: Relation) -> Relation:
        path = Path(self._engine.new_path() + ".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._made.add(str(path))
        self._engine.near.export(near, path)
        self._engine.near.drop(near)
        return Relation(str(path), near.schema, near.rows, near.hash, path.stat().st_size, spilled=True)

    def forget(self, path: str) -> None:
        self._made.discard(path)
        self._engine.remove(path)

    def close(self, handed_over: Collection[Relation] | None = None) -> None:
        if handed_over is not None:
            for path in self._made - {relation.name for relation in handed_over}:
                self._engine.remove(path)
        self._made.clear()
        self._near.close(() if handed_over is not None else None)


_LOADING = """
def loading(texts, main, told, schema):
    def run(batches):
        import types

        modules = {name: types.ModuleType(name) for name in texts}
        for name, module in modules.items():
            exec(compile(texts[name], f"<{name}>", "exec"), module.__dict__)
        first = modules.pop(main)
        yield from first.program(told, schema, **modules)(batches)

    return run
"""


def _on_workers(program: Program, schema: bytes) -> Any:
    """A function that is pickled with its body, since it is in no module that a worker could import."""
    names: dict[str, Any] = {"__name__": "penstock_program"}
    exec(_LOADING, names)
    return names["loading"](dict(program.texts), program.main, program.told, schema)


_LOOKS = re.compile(r'\s*SELECT \* FROM "?\w+"?(?: LIMIT \d+)?\s*\Z', re.IGNORECASE)
"""A look at rows as they are: they lie in files that need no cluster to be read."""
ROWS = "rows"
"""The name of the count of what is written."""
Counts = Mapping[str, int | None]
"""Rows on the way to what is written; None of those that have to be counted again."""
_FIRST = "__penstock_first"
_PLACES = 32_768
"""Partitions that one bitmap of Spark's tells apart."""


def counted(frame: Frame, name: str) -> Frame:
    """The same rows, counted on their way.

    Spark counts a partition once more whenever it computes it once more: when an executor was lost with what it had made, when
    it samples rows to sort them, when a query reads them twice. So it is noted which partitions were counted, and how often.
    """
    from pyspark.sql.connect import functions  # An extra, and takes seconds to load.

    # A row's number begins with that of its partition, and counts from zero in it.
    number = "monotonically_increasing_id()"
    first = f"CASE WHEN {number} & {2**33 - 1} = 0 THEN shiftright({number}, 33) END AS {_FIRST}"
    asked = {
        "n": "count(1)",
        "times": f"count({_FIRST})",
        "sum": f"sum(crc32(CAST(CAST({_FIRST} AS STRING) AS BINARY)))",
        "places": f"bitmap_construct_agg({_FIRST} % {_PLACES})",
    }
    observed = frame.selectExpr("*", first).observe(
        name, *(functions.expr(text).alias(one) for one, text in asked.items())
    )
    return observed.drop(_FIRST)


def _exact(found: Mapping[str, Any]) -> int | None:
    """The rows that were counted; None when some were counted oftener than others."""
    rows, times = int(found["n"]), int(found["times"])
    places = _numbers_in(bytes(found["places"]))
    if times == len(places):
        return rows
    # All of them twice, as when they were sampled. The sum tells that from one thrice beside another once.
    is_twice = times == 2 * len(places) and found["sum"] == 2 * sum(crc32(str(one).encode()) for one in places)
    return rows // 2 if is_twice else None


def _numbers_in(bitmap: bytes) -> list[int]:
    return [at * 8 + bit for at, byte in enumerate(bitmap) if byte for bit in range(8) if byte >> bit & 1]


def put(frame: Frame, write: Callable[[Frame], Frame]) -> tuple[int, Counts]:
    """Write a frame. The number of rows written, and the counts on the way. `write` gives what it wrote in the end."""
    from pyspark.sql.connect import functions  # An extra, and takes seconds to load.

    # The tasks that write are each counted once, however often they are begun.
    written = write(frame.observe(ROWS, functions.count(functions.lit(1)).alias("n")))
    # An Observation would not see the counts of frames that a query names: the client looks for them in the last one only.
    about = written.executionInfo
    found = {name: pairs for name, pairs in about.flows if pairs.get("n") is not None} if about else {}
    rows = int(found.pop(ROWS, {"n": 0})["n"])
    return rows, {name: _exact(pairs) for name, pairs in found.items()}


def _hinted(name: str, relation: Relation, frame: Frame) -> Frame:
    is_small = name.startswith("lookup") and relation.bytes <= _BROADCAST_UP_TO
    return frame.hint("broadcast") if is_small else frame


class _Attempt:
    """One run of a fused group: a lazy frame for each stage, one action for each of the steps."""

    def __init__(self, session: SparkSession, engine: SparkEngine, planned: Fusion, spark: Any) -> None:
        self._session = session
        self._engine = engine
        self._planned = planned
        self._spark = spark
        self._schemas: dict[Output, Schema] = {}
        self._tables: dict[Output, Relation] = {}
        self._rows: dict[Output, int] = planned.known()
        self._targets: list[Target] = []

    def run(self) -> dict[str, Staged]:
        try:
            for step in self._planned.steps:
                self._run_step(step)
            for target in self._targets:
                target.land()
        except BaseException:
            for table in self._tables.values():
                self._session.forget(table.name)
            raise
        finally:
            for target in self._targets:
                target.discard()
        staged = {
            stage.name: Staged(
                {port: self._rows[self._planned.agreed[stage.name, port]] for port in stage.selects or ("",)},
                {port: self._tables[stage.name, port] for port in stage.selects if port in stage.wanted},
            )
            for stage in self._planned.stages.values()
        }
        for (stage_name, port), table in self._tables.items():
            if port not in self._planned.stages[stage_name].wanted:
                self._session.forget(table.name)
        return staged

    def _run_step(self, step: Step) -> None:
        frame = self._frame(step.end, is_counted=True)
        match step.makes:
            case "table":
                rows, path, found = self._session.write(frame)
                key = self._planned.key(step.end)
                self._tables[step.end] = self._session.relation(path, self._schema(step.end), rows, key)
            case "file":
                copy = self._planned.stages[step.end[0]].copy
                assert copy is not None
                target = target_of(copy, self._schema(step.end))
                self._targets.append(target)
                rows, found = put(frame, target.write)
            case _:
                rows, found = put(frame, lambda whole: saved(whole, whole.write.format("noop").mode("overwrite")))
        self._rows[self._planned.agreed[step.end]] = rows
        self._note(step, rows, found)

    def _note(self, step: Step, rows: int, found: Counts) -> None:
        """The counts on the way. One below a LIMIT, or beside something empty, may have been cut short: it is taken again, as is
        one of partitions that were computed oftener than others."""
        inner = [output for output in step.inner if output in self._planned.marks]
        counts = {output: found.get(_mark(self._planned, output)) for output in inner}
        is_cut = (
            rows == 0
            or 0 in counts.values()
            or any(source.rows == 0 for source in self._read_by(step))
            or any(
                re.search(r"\blimit\b|\bexists\b", query, re.IGNORECASE)
                for query in self._planned.queries((*step.inner, step.end))
            )
        )
        for output, number in counts.items():
            self._rows[self._planned.agreed[output]] = self._count(output) if number is None or is_cut else number

    def _read_by(self, step: Step) -> Iterator[Relation]:
        for stage, _ in (*step.inner, step.end):
            for source in self._planned.stages[stage].inputs.values():
                if isinstance(source, Relation):
                    yield source
                elif source in self._tables:
                    yield self._tables[source]

    def _count(self, output: Output) -> int:
        inner = self._planned.inner_of(output)
        if any(map(may_differ, self._planned.queries((*inner, output)))):
            raise RowsFailed("engine", "the rows cannot be counted a second time")
        return int(self._frame(output, is_counted=False).count())

    def _frame(self, output: Output, *, is_counted: bool) -> Frame:
        stage = self._planned.stages[output[0]]
        frames = {name: self._source(name, source, is_counted) for name, source in stage.inputs.items()}
        if not output[1]:
            return next(iter(frames.values()))
        query = stage.selects[output[1]]
        return self._session.stage_frame(query, frames, self._inputs(stage), self._spark)

    def _source(self, name: str, source: Output | Relation, is_counted: bool) -> Frame:
        if isinstance(source, Relation):
            return _hinted(name, source, self._session.frame(source, self._spark))
        if source in self._tables:
            return self._session.frame(self._tables[source], self._spark)
        frame = self._frame(source, is_counted=is_counted)
        return counted(frame, _mark(self._planned, source)) if is_counted and source in self._planned.marks else frame

    def _inputs(self, stage: Stage) -> dict[str, Schema]:
        return {
            name: source.schema if isinstance(source, Relation) else self._schema(source)
            for name, source in stage.inputs.items()
        }

    def _schema(self, output: Output) -> Schema:
        if output not in self._schemas:
            stage = self._planned.stages[output[0]]
            inputs = self._inputs(stage)
            self._schemas[output] = (
                self._engine.columns_of(stage.selects[output[1]], inputs) if output[1] else next(iter(inputs.values()))
            )
        return self._schemas[output]


def _mark(planned: Fusion, output: Output) -> str:
    return f"m{planned.marks[output]}"


class SparkEngine:
    def __init__(
        self,
        folder: Path,
        *,
        remote: str | None = None,
        master: str | None = None,
        shared: str | None = None,
        conf: Mapping[str, str] | None = None,
        is_offline: bool = False,
    ) -> None:
        def where() -> str:
            if remote is not None:
                return remote
            assert master is not None
            return local_spark(master).remote

        self._folder = (Path(shared) / folder.name if shared is not None else folder) / "spark"
        self.cluster = Cluster(where, dict(conf or {}))
        self.near = DuckDbEngine(folder / "near", is_offline=is_offline)
        self._binder = Binder()
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._foreign: dict[str, Path] = {}
        """Relations in files that this engine did not write, or that DuckDB wrote for it."""

    def session(self) -> SparkSession:
        return SparkSession(self)

    def columns_of(self, query: SqlText, inputs: Mapping[str, Schema]) -> Schema:
        return self._binder.schema(query, inputs)

    def new_path(self) -> str:
        return str(self._folder / f"r{next(self._numbers)}")

    def frame(self, relation: Relation, spark: Any) -> Frame:
        if not relation.name.endswith(".parquet"):
            return spark.read.schema(spark_schema(relation.schema)).parquet(relation.name)
        names = [column.name for column in relation.schema]
        return spark.read.parquet(relation.name).selectExpr(*cast_columns(names, relation.schema))

    # What stands near

    def attached_near(self, inputs: Mapping[str, Relation]) -> dict[str, Relation]:
        return {name: self.near.attach(Path(one.name), one.schema, one.rows, one.hash) for name, one in inputs.items()}

    @contextmanager
    def nearby(self, inputs: Mapping[str, Relation]) -> Iterator[dict[str, Relation]]:
        attached = self.attached_near(inputs)
        try:
            yield attached
        finally:
            for relation in attached.values():
                self.near.drop(relation)

    def content_hash(self, relation: Relation) -> str:
        with self.nearby({"it": relation}) as attached:
            return self.near.content_hash(attached["it"])

    # Rows

    def remove(self, path: str) -> None:
        found = Path(path)
        if self._folder not in found.parents:
            return
        if found.is_dir():
            shutil.rmtree(found, ignore_errors=True)
        else:
            found.unlink(missing_ok=True)

    def drop(self, relation: Relation) -> None:
        self.remove(relation.name)

    def export(self, relation: Relation, path: Path) -> None:
        with self.nearby({"it": relation}) as attached:
            self.near.export(attached["it"], path)

    def attach(self, path: Path, schema: Schema, rows: int, hash: str) -> Relation:
        if not path.exists():
            raise RowsFailed("missing_file", f"there is no file `{path}` to read rows from")
        # Spark tells Parquet by its name, and a file of the result store is called by its hash.
        name = Path(f"{self.new_path()}.parquet")
        name.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, name)
        except OSError:
            shutil.copyfile(path, name)
        return Relation(str(name), schema, rows, hash, path.stat().st_size, spilled=True)

    def spill(self, relation: Relation) -> Relation:
        return relation

    def close(self) -> None:
        self.cluster.close()
        self.near.close()
        shutil.rmtree(self._folder, ignore_errors=True)
