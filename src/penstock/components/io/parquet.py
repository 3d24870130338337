"""`read_parquet` and `write_parquet`: columns with their types, within the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components.base import Call, ComponentFailure, PlanCall, Port, Sink
from penstock.components.incremental import IncrementalParam
from penstock.components.io import file_paths, parameters, scans
from penstock.components.io.scans import FileReader, scan
from penstock.data import select
from penstock.ports.rows import Column, Copy, Schema
from penstock.tools.parameters import about

_MAGIC = b"PAR1"


class ReadParquetParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.SourcePath
    columns: Annotated[list[str], about("The columns to read, in this order; all of them when left out.")] = []
    by_name: Annotated[bool, about("Files of a pattern may differ in their columns; NULL where one is missing.")] = (
        False
    )
    partitions: Annotated[bool, about("Folders such as `year=2024` in the path are columns, too.")] = False
    file_column: parameters.FileColumn = None
    incremental: IncrementalParam = None


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

    paths: list[Path]
    options: tuple[bool, bool, str | None]
    schema: Schema

    def query(self) -> exp.Query:
        return _query(self.paths, self.options, [column.name for column in self.schema])


def _settled(params: ReadParquetParams, call: PlanCall | Call) -> Reading:
    found = file_paths.all_files(params.path, call)
    for path in found:
        _require_parquet(path)
    options = (params.by_name, params.partitions, params.file_column)
    present = _columns(file_paths.stamps(found), options)
    wanted = params.columns or [column.name for column in call.declared.get("main", ())]
    problem = parameters.missing(wanted, [column.name for column in present], f"`{found[0]}`")
    if problem is not None:
        raise ComponentFailure("columns", problem, path=str(found[0]))
    by_name = {column.name: column for column in present}
    chosen = tuple(by_name[name] for name in wanted) or present
    if wanted and params.file_column is not None and params.file_column not in wanted:
        chosen = (*chosen, by_name[params.file_column])
    return Reading(found, options, chosen)


def _query(found: Sequence[Path], options: tuple[bool, bool, str | None], names: Sequence[str]) -> exp.Query:
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


class WriteParquet(Sink[WriteParquetParams]):
    """Write rows as a Parquet file. It replaces an older one when it is complete.

    The rows go on through `main` when it is connected.
    """

    type = "write_parquet"

    def copy(self, params: WriteParquetParams, schema: Schema, call: PlanCall) -> Copy:
        path = file_paths.resolved(params.path, call)
        file_paths.make_room(path)
        return Copy(path, "parquet", {"compression": params.compression, "row_group_size": params.row_group_size})
