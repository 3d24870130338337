"""`read_arrow`, `write_arrow`, `read_orc`, `write_orc`: Arrow IPC files and streams, and ORC files. All need pyarrow, an optional
package."""

from __future__ import annotations

from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components.base import Action, Call, ComponentFailure, Port, Writer
from penstock.components.incremental import IncrementalParam
from penstock.components.io import file_paths, parameters
from penstock.components.io.file_paths import import_module_or_fail
from penstock.components.queries import everything
from penstock.data import select
from penstock.ports.rows import Relation
from penstock.tools.parameters import about

_FILE_MAGIC = b"ARROW1"


def _pyarrow() -> ModuleType:
    import_module_or_fail(
        "pyarrow.ipc", "Arrow files need the package `pyarrow`; hint: `pip install 'penstock[frames]'`"
    )
    return import_module("pyarrow")


class ReadArrowParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.OneSourcePath
    columns: Annotated[list[str], about("The columns to read, in this order; all of them when left out.")] = []
    incremental: IncrementalParam = None
    credentials: parameters.Credentials = None


class ReadArrow(Action[ReadArrowParams]):
    """Read rows from an Arrow IPC file or stream (Feather, `.arrow`, `.arrows`); which one it is shows in its first
    bytes.

    Needs the package `pyarrow`.
    """

    type = "read_arrow"
    family = "read"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def run(self, params: ReadArrowParams, call: Call) -> None:
        path = file_paths.one_file(params.path, call, params.credentials)
        pyarrow = _pyarrow()
        with ExitStack() as opened:
            try:
                rows = call.engine.load_arrow(_stream(pyarrow, path, opened))
            except pyarrow.ArrowInvalid as error:
                raise ComponentFailure(
                    "format", f"`{path}` is not an Arrow file or stream: {error}", path=str(path)
                ) from None
            call.put("main", _chosen(rows, params, call, path))


def _stream(pyarrow: ModuleType, path: Path, opened: ExitStack) -> Any:
    source = opened.enter_context(pyarrow.memory_map(str(path)) if path.stat().st_size else path.open("rb"))
    with path.open("rb") as file:
        begins = file.read(len(_FILE_MAGIC))
    if begins != _FILE_MAGIC:
        return opened.enter_context(pyarrow.ipc.open_stream(source))
    reader = opened.enter_context(pyarrow.ipc.open_file(source))
    batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
    return pyarrow.RecordBatchReader.from_batches(reader.schema, batches)


def _chosen(rows: Relation, params: ReadArrowParams | ReadOrcParams, call: Call, path: Path) -> Relation:
    wanted = params.columns or [column.name for column in call.declared.get("main", ())]
    if not wanted:
        return rows
    problem = parameters.missing(wanted, [column.name for column in rows.schema], f"`{path}`")
    if problem is not None:
        raise ComponentFailure("columns", problem, path=str(path))
    query = exp.select(*(select.column(name) for name in wanted)).from_(select.table("rows"))
    return call.engine.select(select.sql(query), {"rows": rows})


class WriteArrowParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.TargetPath
    format: Annotated[
        Literal["file", "stream"], about("`file` can be read from any place in it, `stream` from the start.")
    ] = "file"
    compression: Annotated[Literal["none", "lz4", "zstd"], about("How the columns are packed.")] = "none"
    credentials: parameters.Credentials = None


class WriteArrow(Writer[WriteArrowParams]):
    """Write rows as an Arrow IPC file or stream. It replaces an older one when it is complete.

    Needs the package `pyarrow`. The rows go on through `main` when it is connected.
    """

    type = "write_arrow"

    def run(self, params: WriteArrowParams, call: Call) -> None:
        pyarrow = _pyarrow()
        rows = call.input()
        reader = pyarrow.RecordBatchReader.from_stream(
            call.engine.arrow(select.sql(everything("input")), {"input": rows})
        )
        options = pyarrow.ipc.IpcWriteOptions(compression=None if params.compression == "none" else params.compression)
        make = pyarrow.ipc.new_file if params.format == "file" else pyarrow.ipc.new_stream
        with (
            file_paths.whole_file(file_paths.target(params.path, call, params.credentials)) as file,
            make(file, reader.schema, options=options) as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)
        call.put("main", rows)


class ReadOrcParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.OneSourcePath
    columns: Annotated[list[str], about("The columns to read, in this order; all of them when left out.")] = []
    incremental: IncrementalParam = None
    credentials: parameters.Credentials = None


class ReadOrc(Action[ReadOrcParams]):
    """Read rows from an ORC file, stripe by stripe; of `columns` only these are read.

    Needs the package `pyarrow`.
    """

    type = "read_orc"
    family = "read"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def run(self, params: ReadOrcParams, call: Call) -> None:
        path = file_paths.one_file(params.path, call, params.credentials)
        pyarrow, orc = _pyarrow(), import_module("pyarrow.orc")
        wanted = params.columns or [column.name for column in call.declared.get("main", ())]
        with path.open("rb") as file:
            try:
                reader = orc.ORCFile(file)
                names = list(reader.schema.names)
                if (problem := parameters.missing(wanted, names, f"`{path}`")) is not None:
                    raise ComponentFailure("columns", problem, path=str(path))
                # ORC gives columns in the order of the file, whatever the order they are asked for in.
                kept = [name for name in names if not wanted or name in wanted]
                schema = pyarrow.schema([_in_microseconds(pyarrow, reader.schema.field(name)) for name in kept])
                read = (reader.read_stripe(number, columns=kept) for number in range(reader.nstripes))
                stripes = (stripe.cast(schema, safe=False) for stripe in read)
                rows = call.engine.load_arrow(pyarrow.RecordBatchReader.from_batches(schema, stripes))
            except (pyarrow.ArrowInvalid, OSError) as error:
                raise ComponentFailure("format", f"`{path}` is not an ORC file: {error}", path=str(path)) from None
        call.put("main", _chosen(rows, params, call, path))


def _in_microseconds(pyarrow: ModuleType, field: Any) -> Any:
    """ORC keeps nanoseconds, the engine microseconds."""
    if not pyarrow.types.is_timestamp(field.type):
        return field
    return field.with_type(pyarrow.timestamp("us", field.type.tz))


class WriteOrcParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: parameters.TargetPath
    compression: Annotated[
        Literal["uncompressed", "snappy", "zlib", "lz4", "zstd"], about("How the stripes are packed.")
    ] = "zstd"
    credentials: parameters.Credentials = None


class WriteOrc(Writer[WriteOrcParams]):
    """Write rows as an ORC file. It replaces an older one when it is complete.

    Needs the package `pyarrow`. The rows go on through `main` when it is connected.
    """

    type = "write_orc"

    def run(self, params: WriteOrcParams, call: Call) -> None:
        pyarrow, orc = _pyarrow(), import_module("pyarrow.orc")
        rows = call.input()
        reader = pyarrow.RecordBatchReader.from_stream(
            call.engine.arrow(select.sql(everything("input")), {"input": rows})
        )
        with (
            file_paths.whole_file(file_paths.target(params.path, call, params.credentials)) as file,
            orc.ORCWriter(file, compression=params.compression) as writer,
        ):
            writer.write(pyarrow.Table.from_batches([], reader.schema))
            for batch in reader:
                writer.write(pyarrow.Table.from_batches([batch]))
        call.put("main", rows)
