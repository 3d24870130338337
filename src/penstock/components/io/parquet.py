"""`read_parquet` and `write_parquet`: columns with their types, within the query."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components.base import Call, ComponentFailure, Known, Mistake, PlanCall, Port, Sink
from penstock.components.flow.tool_calls import place_failures
from penstock.components.incremental import IncrementalParam
from penstock.components.io import file_paths, parameters, scans
from penstock.components.io.file_paths import place_at
from penstock.components.io.scans import FileReader, scan
from penstock.components.queries import everything
from penstock.data import select
from penstock.kernel.values import Json
from penstock.ports.rows import Column, Copy, Schema
from penstock.tools.file_changes import chunks_of
from penstock.tools.parameters import about
from penstock.tools.places.base import again, is_elsewhere

_MAGIC = b"PAR1"
_FILES = re.compile(r"[*?\[]|\.parquet$")


class ReadParquetParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.SourcePath
    columns: Annotated[list[str], about("The columns to read, in this order; all of them when left out.")] = []
    by_name: Annotated[bool, about("Files of a pattern may differ in their columns; NULL where one is missing.")] = (
        False
    )
    partitions: Annotated[
        bool, about("Folders such as `year=2024` in the path are columns, too. `path` may be the folder above them.")
    ] = False
    file_column: parameters.FileColumn = None
    incremental: IncrementalParam = None
    credentials: parameters.Credentials = None


class ReadParquet(FileReader[ReadParquetParams]):
    """Read rows from Parquet files. Only the columns and parts of the file that the job needs are read.

    `path` may be a pattern such as `in/**/*.parquet`. The files of a pattern have the same columns, unless `by_name:
    true`.
    """

    type = "read_parquet"
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def settled(self, params: ReadParquetParams, call: PlanCall | Call) -> Reading:
        return _settled(params, call)


@dataclass(frozen=True, slots=True)
class Reading:
    """Files, how they are read, and the columns that are wanted of them."""

    paths: Sequence[Path | str]
    options: tuple[bool, bool, str | None]
    schema: Schema

    def query(self) -> exp.Query:
        return _query(self.paths, self.options, [column.name for column in self.schema])


def _settled(params: ReadParquetParams, call: PlanCall | Call) -> Reading:
    if params.partitions and not _FILES.search(params.path):
        params = msgspec.structs.replace(params, path=f"{params.path.rstrip('/')}/**/*.parquet")
    options = (params.by_name, params.partitions, params.file_column)
    mounted = _mounted(params, call)
    found: Sequence[Path | str]
    if mounted is not None and call.engine is not None:
        found, present = mounted, call.engine.describe(select.sql(_query(mounted, options, [])), {})
    else:
        found = paths = file_paths.all_files(params.path, call, params.credentials)
        for path in paths:
            _require_parquet(path)
        present = _columns(file_paths.stamps(paths), options)
    wanted = params.columns or [column.name for column in call.declared.get("main", ())]
    problem = parameters.missing(wanted, [column.name for column in present], f"`{found[0]}`")
    if problem is not None:
        raise ComponentFailure("columns", problem, path=str(found[0]))
    by_name = {column.name: column for column in present}
    chosen = tuple(by_name[name] for name in wanted) or present
    if wanted and params.file_column is not None and params.file_column not in wanted:
        chosen = (*chosen, by_name[params.file_column])
    return Reading(found, options, chosen)


def _mounted(params: ReadParquetParams, call: PlanCall | Call) -> list[str] | None:
    """The URLs of files elsewhere, which the engine reads in parts; None where there are only whole files."""
    if not is_elsewhere(params.path) or call.engine is None or not call.engine.is_here or find_spec("fsspec") is None:
        return None
    mirror = file_paths.mirror(params.path, call)
    with place_failures():
        parts = mirror.parts(params.path, params.credentials)
    if parts is None:
        return None
    engine = call.engine
    mirror.keep(params.path, lambda: engine.mount(parts))
    return [one.url for one in parts]


def _query(found: Sequence[Path | str], options: tuple[bool, bool, str | None], names: Sequence[str]) -> exp.Query:
    by_name, partitions, file_column = options
    given = {"union_by_name": by_name or None, "hive_partitioning": partitions, "filename": file_column}
    wanted: list[exp.Expr] = [select.column(name) for name in names]
    return exp.select(*(wanted or [exp.Star()])).from_(scan("read_parquet", found, given))


@lru_cache(maxsize=256)
def _columns(found: tuple[file_paths.Stamp, ...], options: tuple[bool, bool, str | None]) -> tuple[Column, ...]:
    return scans.columns(_query([Path(path) for path, _, _ in found], options, []))


def _require_parquet(path: Path) -> None:
    with path.open("rb") as file:
        begins = file.read(4)
        size = file.seek(0, 2)
        file.seek(max(size - 4, 0))
        ends = file.read(4)
    if begins != _MAGIC or ends != _MAGIC:
        what = "is empty" if not size else "is cut off" if begins == _MAGIC else "is not a Parquet file"
        raise ComponentFailure("format", f"`{path}` {what}", path=str(path))


class WriteParquetParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.TargetPath
    compression: Annotated[
        Literal["zstd", "snappy", "gzip", "lz4", "uncompressed"], about("How the columns are packed.")
    ] = "zstd"
    row_group_size: Annotated[int, about("Rows of one group, the part that can be read by itself.", ge=2048)] = 122_880
    partition_by: Annotated[
        list[str],
        about(
            "Columns whose values become folders, as `year=2024/month=5`; `path` is the folder above them. A partition "
            "that the rows belong to is replaced, the others stay as they are."
        ),
    ] = []
    append: Annotated[bool, about("With `partition_by`: add files to the partitions instead of replacing them.")] = (
        False
    )
    credentials: parameters.Credentials = None


class WriteParquet(Sink[WriteParquetParams]):
    """Write rows as a Parquet file, or with `partition_by` as a folder of them. A file replaces an older one when it is
    complete.

    Of a partition the new files appear first, each of them whole, and the old ones are deleted then: a run that is killed
    between the two leaves both, and the next one deletes the old. The rows go on through `main` when it is connected.
    """

    type = "write_parquet"

    def check(self, params: WriteParquetParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        if params.append and not params.partition_by:
            return [Mistake(("append",), "a Parquet file cannot be added to; hint: `partition_by`")]
        schema = inputs.get("input")
        names = [] if schema is None else [column.name for column in schema]
        problem = parameters.missing(params.partition_by, names, "the input") if names else None
        if problem is not None:
            return [Mistake(("partition_by",), problem, kind="column")]
        if names and set(params.partition_by) >= set(names):
            return [Mistake(("partition_by",), "one column at least must be left for the files")]
        return []

    def is_fusable(self, params: WriteParquetParams, connected: frozenset[str]) -> bool:
        return not connected and not params.partition_by

    def run(self, params: WriteParquetParams, call: Call) -> None:
        rows = call.input()
        query = {"input": rows}
        if not params.partition_by:
            call.engine.copy(select.sql(everything("input")), query, self.copy(params, rows.schema, call.plan()))
        else:
            parameters.require(params.partition_by, rows.schema)
            with tempfile.TemporaryDirectory(prefix="partitions-", dir=call.work) as folder, place_failures():
                _write_partitions(params, call, Path(folder))
        if "main" in call.connected:
            call.put("main", rows)

    def copy(self, params: WriteParquetParams, schema: Schema, call: PlanCall) -> Copy:
        path = file_paths.target(params.path, call, params.credentials)
        file_paths.make_room(path)
        return Copy(path, "parquet", {"compression": params.compression, "row_group_size": params.row_group_size})


def _write_partitions(params: WriteParquetParams, call: Call, folder: Path) -> None:
    # The same in a run that is resumed, so that it replaces what its first attempt has left.
    name = f"part-{hashlib.sha256(call.idempotency_key.encode()).hexdigest()[:12]}"
    options: dict[str, Json] = {
        "compression": params.compression,
        "row_group_size": params.row_group_size,
        "partition_by": [*params.partition_by],
        "filename_pattern": f"{name}-{{i}}",
    }
    made = folder / "made"
    call.engine.copy(select.sql(everything("input")), {"input": call.input()}, Copy(made, "parquet", options))
    place, root = place_at(params.path, call, params.credentials)
    base = root.rstrip("/")
    new = {path.relative_to(made).as_posix(): path for path in sorted(made.rglob("*.parquet"))}
    for relative, path in new.items():
        again(lambda path=path, to=f"{base}/{relative}": place.write(to, chunks_of(path)))  # type: ignore[misc]
    if params.append:
        return
    for partition in sorted({relative.rpartition("/")[0] for relative in new}):
        for each in [*place.entries(f"{base}/{partition}", recursive=False)]:
            is_old = f"{partition}/{each.relative}" not in new and each.path.endswith(".parquet")
            if is_old and not each.is_folder:
                place.delete(each.path)
