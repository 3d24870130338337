"""`read_arrow` and `write_arrow`: Arrow IPC files and streams. Both need pyarrow, an optional package."""

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
        path = file_paths.one_file(params.path, call)
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


def _chosen(rows: Relation, params: ReadArrowParams, call: Call, path: Path) -> Relation:
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
            file_paths.whole_file(file_paths.resolved(params.path, call)) as file,
            make(file, reader.schema, options=options) as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)
        call.put("main", rows)
