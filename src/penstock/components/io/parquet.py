"""`read_parquet` and `write_parquet`: columns with their types, within the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta
from sqlglot import exp

from penstock.components.base import ComponentFailure, Mistake, PlanCall, Port, Relational, Sink
from penstock.components.incremental import IncrementalParam
from penstock.components.io import file_paths, parameters, scans
from penstock.components.io.scans import scan
from penstock.data import select
from penstock.ports.rows import Column, Copy, Schema, SqlText

_MAGIC = b"PAR1"


class ReadParquetParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.SourcePath
    columns: Annotated[
        list[str], Meta(description="The columns to read, in this order; all of them when left out.")
    ] = []
    by_name: Annotated[
        bool, Meta(description="Files of a pattern may differ in their columns; NULL where one is missing.")
    ] = False
    partitions: Annotated[bool, Meta(description="Folders such as `year=2024` in the path are columns, too.")] = False
    file_column: parameters.FileColumn = None
    incremental: IncrementalParam = None


class ReadParquet(Relational[ReadParquetParams]):
    """Read rows from Parquet files. Only the columns and parts of the file that the job needs are read.

    `path` may be a pattern such as `in/**/*.parquet`. The files of a pattern have the same columns, unless `by_name:
    true`.
    """

    type = "read_parquet"
    family = "read"
    Params = ReadParquetParams
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def check(self, params: ReadParquetParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        try:
            _settled(params, call)
        except ComponentFailure as failure:
            if failure.kind == "columns":
                return [Mistake(("columns",), failure.message, kind="column")]
        return []

    def schemas(
        self, params: ReadParquetParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
        try:
            return {"main": _settled(params, call)[1]}
        except ComponentFailure:
            return {"main": call.declared.get("main")}

    def prepare(self, params: ReadParquetParams, call: PlanCall) -> None:
        _settled(params, call)

    def selects(self, params: ReadParquetParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, SqlText]:
        try:
            return {"main": select.sql(_settled(params, call)[0])}
        except ComponentFailure:
            return {}  # `prepare` has said so in the run, and before it the file may be missing


def _settled(params: ReadParquetParams, call: PlanCall) -> tuple[exp.Query, Schema]:
    """The query and its columns. Looks at the files; raises ComponentFailure."""
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
    return _query(found, options, [column.name for column in chosen]), chosen


def _query(found: Sequence[Path], options: tuple[bool, bool, str | None], names: Sequence[str]) -> exp.Query:
    by_name, partitions, file_column = options
    said = {"union_by_name": by_name or None, "hive_partitioning": partitions, "filename": file_column}
    wanted: list[exp.Expr] = [select.column(name) for name in names]
    return exp.select(*(wanted or [exp.Star()])).from_(scan("read_parquet", found, said))


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
        Literal["zstd", "snappy", "gzip", "lz4", "uncompressed"], Meta(description="How the columns are packed.")
    ] = "zstd"
    row_group_size: Annotated[
        int, Meta(ge=2048, description="Rows of one group, the part that can be read by itself.")
    ] = 122_880


class WriteParquet(Sink[WriteParquetParams]):
    """Write rows as a Parquet file. It replaces an older one when it is complete.

    The rows go on through `main` when it is connected.
    """

    type = "write_parquet"
    Params = WriteParquetParams

    @classmethod
    def passes(cls, params: Mapping[str, Any]) -> tuple[str, str] | None:
        return "input", "main"

    def copy(self, params: WriteParquetParams, schema: Schema, call: PlanCall) -> Copy:
        path = file_paths.resolved(params.path, call)
        file_paths.make_room(path)
        return Copy(path, "parquet", {"compression": params.compression, "row_group_size": params.row_group_size})
