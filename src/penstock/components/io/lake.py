"""`read_delta`, `write_delta`, `read_iceberg` and `write_iceberg`: tables of a lake, which keep a record of their commits.

Law: an append is committed once. It carries the key of the component run, so that a run that is resumed after its commit finds it
done. What the libraries open sockets for themselves is held to the rule of object stores: an address must be one that was opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

import msgspec
from sqlglot import exp

from penstock.components.base import Action, Call, ComponentFailure, Known, Mistake, PlanCall, Port, Writer
from penstock.components.flow.tool_calls import place_failures
from penstock.components.incremental import IncrementalParam
from penstock.components.io import file_paths, parameters
from penstock.components.io.file_paths import import_module_or_fail
from penstock.components.queries import everything
from penstock.data import select
from penstock.ports.meanings import KEYCHAIN_ENTRY, OBJECT_STORES
from penstock.ports.rows import RowsFailed
from penstock.tools.addresses import Addresses
from penstock.tools.base import ToolFailure
from penstock.tools.network import address_refused
from penstock.tools.parameters import about
from penstock.tools.places.base import Location, fields, is_elsewhere
from penstock.tools.places.objects import store_options

TablePath = Annotated[
    str,
    about(
        "The folder of the table, relative to the document's own; or its URL: `s3://`, `gs://`, `az://`.", min_length=1
    ),
]
ReadColumns = Annotated[list[str], about("The columns to read, in this order; all of them when left out.")]
Where = Annotated[str | None, about("Which rows to read, as a condition of SQL: files without such rows are not read.")]


def _wanted(params: Any, call: Call) -> list[str]:
    return params.columns or [column.name for column in call.declared.get("main", ())]


def _deliver(stream: Any, wanted: list[str], call: Call) -> None:
    rows = call.engine.load_arrow(stream)
    if wanted and wanted != [column.name for column in rows.schema]:
        query = exp.select(*(select.column(name) for name in wanted)).from_(select.table("rows"))
        rows = call.engine.select(select.sql(query), {"rows": rows})
    call.put("main", rows)


# ---- Delta Lake


def _deltalake() -> ModuleType:
    return import_module_or_fail(
        "deltalake", "Delta tables need the package `deltalake`; hint: `pip install 'penstock[delta]'`"
    )


class ReadDeltaParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: TablePath
    columns: ReadColumns = []
    where: Where = None
    version: Annotated[int | None, about("An earlier version of the table; the newest when left out.")] = None
    incremental: IncrementalParam = None
    credentials: parameters.Credentials = None


class ReadDelta(Action[ReadDeltaParams]):
    """Read rows of a Delta table, of its newest version or an earlier one.

    Only the files, row groups and columns that are needed are read. Rows come in no particular order. After-variable: `VERSION`.
    Needs the package `deltalake`.
    """

    type = "read_delta"
    family = "read"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def run(self, params: ReadDeltaParams, call: Call) -> None:
        delta = _deltalake()
        uri, options = _delta_place(params.path, params.credentials, call)
        with _delta_failures(params.path):
            table = delta.DeltaTable(uri, version=params.version, storage_options=options)
            names = [field.name for field in table.schema().fields]
            wanted = _wanted(params, call)
            if (problem := parameters.missing(wanted, names, f"`{params.path}`")) is not None:
                raise ComponentFailure("columns", problem, path=params.path)
            call.after["VERSION"] = table.version()
            _deliver(_Scan(table, wanted or names, params.where), wanted, call)


@dataclass(frozen=True, slots=True)
class _Scan:
    """The rows of a table. The engine asks for the stream more than once, to see its columns, and a reader can be asked once."""

    table: Any
    columns: list[str]
    where: str | None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.scan(columns=self.columns, predicate=self.where).__arrow_c_stream__(requested_schema)


class WriteDeltaParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: TablePath
    mode: Annotated[
        Literal["append", "overwrite", "error"],
        about("`append`: add the rows; `overwrite`: replace all rows by them; `error`: there must be no table yet."),
    ] = "append"
    partition_by: Annotated[list[str], about("Columns by which the files of a new table are parted.")] = []
    new_columns: Annotated[
        bool, about("Columns that the table lacks are added to it; otherwise they are an error.")
    ] = False
    credentials: parameters.Credentials = None


class WriteDelta(Writer[WriteDeltaParams]):
    """Write rows into a Delta table in one commit; a table that is not there is made.

    A run that is resumed after its commit does not write again. The result is `{version}`. Needs the package `deltalake`. The
    rows go on through `main` when it is connected.
    """

    type = "write_delta"

    def check(self, params: WriteDeltaParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        schema = inputs.get("input")
        names = [] if schema is None else [column.name for column in schema]
        problem = parameters.missing(params.partition_by, names, "the input") if names else None
        return [] if problem is None else [Mistake(("partition_by",), problem, kind="column")]

    def run(self, params: WriteDeltaParams, call: Call) -> dict[str, Any]:
        delta = _deltalake()
        rows = call.input()
        uri, options = _delta_place(params.path, params.credentials, call)
        with _delta_failures(params.path):
            is_there = delta.DeltaTable.is_deltatable(uri, options)
            key = f"penstock:{call.idempotency_key}"
            is_done = is_there and delta.DeltaTable(uri, storage_options=options).transaction_version(key) is not None
            if not is_done:
                if not is_elsewhere(params.path):
                    file_paths.resolved(params.path, call).parent.mkdir(parents=True, exist_ok=True)
                delta.write_deltalake(
                    uri,
                    call.engine.arrow(select.sql(everything("input")), {"input": rows}),
                    mode=params.mode,
                    partition_by=params.partition_by or None,
                    schema_mode="merge" if params.new_columns and params.mode == "append" else None,
                    storage_options=options,
                    commit_properties=delta.CommitProperties(app_transactions=[delta.Transaction(key, 1)]),
                )
            version = delta.DeltaTable(uri, storage_options=options).version()
        call.put("main", rows)
        return {"version": version}


def _delta_place(path: str, credentials: parameters.Credentials, call: Call) -> tuple[str, dict[str, str] | None]:
    if not is_elsewhere(path):
        return str(file_paths.resolved(path, call)), None
    with place_failures():
        location = Location.parsed(path)
        if location.scheme not in OBJECT_STORES:
            raise ToolFailure(
                "unsupported_scheme", f"a Delta table is a folder here or in an object store, not `{path}`"
            )
        entry = call.credential(credentials) if isinstance(credentials, str) else credentials or {}
        options = store_options(entry, call.settings.addresses)
    return path, {name: str(value).lower() if isinstance(value, bool) else value for name, value in options.items()}


_DELTA_KINDS = {"TableNotFoundError": "missing_file", "SchemaMismatchError": "columns", "CommitFailedError": "conflict"}


@contextmanager
def _delta_failures(path: str) -> Iterator[None]:
    try:
        yield
    except (ComponentFailure, RowsFailed):
        raise
    except Exception as error:  # The library's own errors are of several families.
        name = type(error).__name__
        if not isinstance(error, (ValueError, OSError)) and type(error).__module__ not in (
            "_internal",
            "deltalake.exceptions",
        ):
            raise
        words = " ".join(str(error).split())
        if name == "TableNotFoundError":
            words = f"there is no Delta table `{path}`"
        kind = _DELTA_KINDS.get(name, "delta")
        raise ComponentFailure(kind, f"`{path}`: {words}", retryable=kind == "conflict", path=path) from error


# ---- Iceberg


def _pyiceberg() -> tuple[ModuleType, ModuleType, ModuleType]:
    hint = "Iceberg tables need the package `pyiceberg`; hint: `pip install 'penstock[iceberg]'`"
    names = ("pyiceberg.catalog", "pyiceberg.exceptions", "pyarrow")
    catalog, exceptions, pyarrow = (import_module_or_fail(name, hint) for name in names)
    return catalog, exceptions, pyarrow


Catalog = Annotated[
    str | dict[str, Any],
    about(
        "The catalog, as pyiceberg describes one: `{type: rest, uri: …, warehouse: …}`, `{type: sql, uri: sqlite:///…}`; or the "
        "keychain entry that does, with the credentials of its storage (`s3.access-key-id` …).",
        schema=KEYCHAIN_ENTRY,
    ),
]
Table = Annotated[str, about("The table, with its namespace: `shop.orders`.", pattern=r"^[^.]+(\.[^.]+)+$")]


class ReadIcebergParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    catalog: Catalog
    table: Table
    columns: ReadColumns = []
    where: Where = None
    snapshot: Annotated[int | None, about("An earlier snapshot, by its number; the newest when left out.")] = None
    incremental: IncrementalParam = None


class ReadIceberg(Action[ReadIcebergParams]):
    """Read rows of an Iceberg table, of its newest snapshot or an earlier one.

    Only the files and columns that are needed are read. Rows come in no particular order. After-variable: `SNAPSHOT`. Needs the
    package `pyiceberg`.
    """

    type = "read_iceberg"
    family = "read"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="the rows"),)

    def run(self, params: ReadIcebergParams, call: Call) -> None:
        with _catalog(params.catalog, params.table, call) as catalog:
            table = catalog.load_table(params.table)
            wanted = _wanted(params, call)
            names = [field.name for field in table.schema().fields]
            if (problem := parameters.missing(wanted, names, f"`{params.table}`")) is not None:
                raise ComponentFailure("columns", problem)
            more = {} if params.where is None else {"row_filter": params.where}
            found = table.scan(selected_fields=tuple(wanted) or ("*",), snapshot_id=params.snapshot, **more)
            newest = table.current_snapshot()
            call.after["SNAPSHOT"] = params.snapshot or (newest.snapshot_id if newest is not None else None)
            _deliver(found.to_arrow_batch_reader(), wanted, call)


class WriteIcebergParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    catalog: Catalog
    table: Table
    mode: Annotated[Literal["append", "overwrite"], about("Add the rows, or replace all rows by them.")] = "append"
    create: Annotated[bool, about("Make the table, and its namespace, when there is none.")] = True


class WriteIceberg(Writer[WriteIcebergParams]):
    """Write rows into an Iceberg table in one commit.

    A run that is resumed after its commit does not write again. The result is `{snapshot}`. Needs the package `pyiceberg`. The
    rows go on through `main` when it is connected.
    """

    type = "write_iceberg"

    def run(self, params: WriteIcebergParams, call: Call) -> dict[str, Any]:
        *_, pyarrow = _pyiceberg()
        rows = call.input()
        stream = call.engine.arrow(select.sql(everything("input")), {"input": rows})
        reader = pyarrow.RecordBatchReader.from_stream(stream)
        with _catalog(params.catalog, params.table, call) as catalog:
            table = self._table(params, catalog, reader.schema)
            key = {"penstock.key": call.idempotency_key}
            is_done = any(
                snapshot.summary is not None and snapshot.summary.get("penstock.key") == call.idempotency_key
                for snapshot in table.snapshots()
            )
            if not is_done and params.mode == "append":
                table.append(reader, snapshot_properties=key)
            elif not is_done:
                table.overwrite(reader.read_all(), snapshot_properties=key)
            newest = table.current_snapshot()
        call.put("main", rows)
        return {"snapshot": None if newest is None else newest.snapshot_id}

    def _table(self, params: WriteIcebergParams, catalog: Any, schema: Any) -> Any:
        if not params.create or catalog.table_exists(params.table):
            return catalog.load_table(params.table)
        catalog.create_namespace_if_not_exists(params.table.rpartition(".")[0])
        return catalog.create_table_if_not_exists(params.table, schema=schema)


@contextmanager
def _catalog(given: str | dict[str, Any], table: str, call: Call) -> Iterator[Any]:
    library, exceptions, pyarrow = _pyiceberg()
    with place_failures():
        entry = fields(call.credential(given) if isinstance(given, str) else given)
    properties = {name: _local(str(value), call) for name, value in entry.items() if value is not None}
    with place_failures():
        _require_opened(properties, call.settings.addresses)
    opened = None
    try:
        opened = library.load_catalog(str(entry.get("name") or "penstock"), **properties)
        yield opened
    except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
        raise ComponentFailure("missing_file", f"the catalog has no table `{table}`") from None
    except exceptions.CommitFailedException as error:
        raise ComponentFailure("conflict", f"`{table}`: another writer was faster: {error}", retryable=True) from error
    except (ValueError, pyarrow.ArrowException, OSError) as error:
        raise ComponentFailure("iceberg", f"`{table}`: {' '.join(str(error).split())}") from error
    finally:
        if opened is not None:
            opened.close()


def _local(value: str, call: Call) -> str:
    """Paths of this machine are relative to the document's folder."""
    for scheme in ("sqlite:///", "file://"):
        path = value.removeprefix(scheme)
        if path != value and not path.startswith("/"):
            return f"{scheme}{call.resolve(path)}"
    return value


def _require_opened(properties: Mapping[str, str], allowed: Addresses) -> None:
    if allowed.is_open:
        return
    for name, value in properties.items():
        parts = urlsplit(value)
        is_named = parts.scheme in ("http", "https", "postgresql", "postgresql+psycopg2", "mysql") or "endpoint" in name
        if is_named and not allowed.opens(parts.hostname or ""):
            raise address_refused(f"`{name}` could lead the catalog's client to an address that is not judged")
