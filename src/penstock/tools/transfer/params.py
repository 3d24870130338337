"""What a transfer is told: where rows come from and where they go, each end with the parameters of its kind."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock.ports.meanings import KEYCHAIN_ENTRY, LOCAL_PATH, READS_FILE, WEB
from penstock.tools.http.tool import Fields, Scalar
from penstock.tools.parameters import about
from penstock.tools.sql.connection import (
    Auth,
    ConnectionName,
    Database,
    Host,
    MysqlUrl,
    Password,
    Port,
    PostgresUrl,
    SslMode,
    User,
)
from penstock.tools.sql.plan import Bindings

Table = Annotated[str | None, about("The table to read, spelled as the database keeps it; or give `query`.")]
Query = Annotated[str | None, about("The SELECT that gives the rows, instead of `table`.")]
Values = Annotated[Bindings, about("Values to bind in `query`, never pasted.")]
DatabaseFile = Annotated[
    str | None, about("The database file, relative to the document's folder; `:memory:` is the execution's own.")
]
_FILE = "The file, relative to the document's folder."
Path = Annotated[str, about(_FILE, schema=LOCAL_PATH)]
SourcePath = Annotated[str, about(_FILE, schema=READS_FILE)]
Character = Annotated[str, Meta(min_length=1, max_length=1)]
Delimiter = Annotated[Character, about("The character between values.")]
Encoding = Annotated[str, about("How the text is written in bytes.")]
NullText = Annotated[str, about("How a missing value is written.")]
RowsAt = Annotated[
    str | None, about("Where in the document the list of rows is, such as `data.items`; the document itself else.")
]
TargetTable = Annotated[str, about("The table to write, spelled as the database keeps it.")]
Mode = Annotated[
    Literal["insert", "append", "upsert", "replace", "truncate"],
    about(
        "`insert` (or `append`) adds rows; `upsert` inserts or updates by `keys`; `truncate` empties the table "
        "first; `replace` drops it and makes it anew."
    ),
]
Keys = Annotated[list[str], about("`upsert`: columns that identify a row.")]
Create = Annotated[bool, about("Make the table when it is missing, with types taken from the rows.")]
Types = Annotated[dict[str, str], about("Types of columns of a table that is made, in the database's own words.")]
FileMode = Annotated[Literal["replace", "append"], about("`replace` writes the file anew, at once when all is there.")]


class ServerSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    connection: ConnectionName = None
    auth: Auth = None
    host: Host = None
    port: Port = None
    user: User = None
    password: Password = None
    database: Database = None
    sslmode: SslMode = None
    table: Table = None
    query: Query = None
    params: Values = None


class PostgresSource(ServerSource, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="postgres"):
    """Rows of a PostgreSQL table or query, read through a server-side cursor."""

    url: PostgresUrl = None


class MysqlSource(ServerSource, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="mysql"):
    """Rows of a MySQL table or query."""

    url: MysqlUrl = None


class DatabaseFileSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: DatabaseFile = None
    connection: ConnectionName = None
    auth: Auth = None
    table: Table = None
    query: Query = None
    params: Values = None


class SqliteSource(DatabaseFileSource, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="sqlite"):
    """Rows of a SQLite table or query."""


class DuckdbSource(DatabaseFileSource, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="duckdb"):
    """Rows of a DuckDB table or query; a query can read files of many formats."""


class CsvSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="csv"):
    """Lines of a CSV file. Values are text; the target's columns give them their types."""

    path: SourcePath
    delimiter: Delimiter = ","
    header: Annotated[bool, about("The first line names the columns; otherwise they are `column_1` …")] = True
    null: NullText = ""
    encoding: Encoding = "utf-8-sig"


class JsonSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="json"):
    """Objects of a list in a JSON file."""

    path: SourcePath
    rows: RowsAt = None


class JsonlSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="jsonl"):
    """One JSON object a line."""

    path: SourcePath


class ParquetSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="parquet"):
    """Rows of a Parquet file."""

    path: SourcePath


class RowsSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="rows"):
    """Rows at hand, such as an earlier task's result."""

    rows: Annotated[Any, about("A list of mappings from column to value, or a reference to one.")]


class HttpSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="http"):
    """The body of an HTTP response, kept in the result store while it is read."""

    url: Annotated[str, about("Where to: an `http` or `https` URL.", schema=WEB)]
    method: Annotated[str, about("`GET`, `POST` …")] = "GET"
    params: Annotated[Fields, about("Query parameters.")] = {}
    headers: Annotated[dict[str, Scalar], about("Request headers.")] = {}
    json: Annotated[Any, about("A body sent as JSON.")] = msgspec.UNSET
    auth: Annotated[str | dict[str, Any] | None, about("As for the `http` tool.", schema=KEYCHAIN_ENTRY)] = None
    format: Annotated[Literal["json", "jsonl", "csv"], about("What the body is.")] = "json"
    rows: RowsAt = None
    delimiter: Delimiter = ","
    header: Annotated[bool, about("csv: the first line names the columns.")] = True
    null: NullText = ""


Source = (
    PostgresSource
    | MysqlSource
    | SqliteSource
    | DuckdbSource
    | CsvSource
    | JsonSource
    | JsonlSource
    | ParquetSource
    | RowsSource
    | HttpSource
)


class TableTarget(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    table: TargetTable
    mode: Mode = "insert"
    keys: Keys = []
    create: Create = False
    types: Types = {}


class ServerTarget(TableTarget, kw_only=True, forbid_unknown_fields=True):
    connection: ConnectionName = None
    auth: Auth = None
    host: Host = None
    port: Port = None
    user: User = None
    password: Password = None
    database: Database = None
    sslmode: SslMode = None


class PostgresTarget(ServerTarget, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="postgres"):
    """A PostgreSQL table, filled with COPY, or row by row for `upsert`."""

    url: PostgresUrl = None


class MysqlTarget(ServerTarget, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="mysql"):
    """A MySQL table."""

    url: MysqlUrl = None


class DatabaseFileTarget(TableTarget, kw_only=True, forbid_unknown_fields=True):
    path: DatabaseFile = None
    connection: ConnectionName = None
    auth: Auth = None


class SqliteTarget(DatabaseFileTarget, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="sqlite"):
    """A SQLite table."""


class DuckdbTarget(DatabaseFileTarget, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="duckdb"):
    """A DuckDB table."""


class CsvTarget(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="csv"):
    """A CSV file."""

    path: Path
    mode: FileMode = "replace"
    delimiter: Delimiter = ","
    header: Annotated[bool, about("Name the columns in the first line.")] = True
    null: NullText = ""


class JsonlTarget(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="jsonl"):
    """One JSON object a line."""

    path: Path
    mode: FileMode = "replace"


class JsonTarget(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="json"):
    """One JSON file with a list of objects."""

    path: Path


class ParquetTarget(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="parquet"):
    """A Parquet file."""

    path: Path
    types: Types = {}


Target = (
    PostgresTarget | MysqlTarget | SqliteTarget | DuckdbTarget | CsvTarget | JsonlTarget | JsonTarget | ParquetTarget
)


class TransferParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    source: Annotated[Source, about("Where the rows come from; `kind` says what it is.")]
    target: Annotated[Target, about("Where they go; `kind` says what it is.")]
    columns: Annotated[
        dict[str, str] | list[str] | None,
        about("Columns to move: target name to source name, or a list when the names stay. All when left out."),
    ] = None
    chunk_rows: Annotated[int, about("Rows read, written and committed at a time.", ge=1)] = 5000
    atomic: Annotated[bool, about("Databases: one transaction for everything, instead of one per chunk.")] = False
