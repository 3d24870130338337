"""`components`: a list of components with a `name`, or a mapping from names to components; and the columns they declare."""

from __future__ import annotations

import re

from penstock.dialects.connections import CONNECTIONS
from penstock.dialects.job.drafts import ComponentDraft, Declared, ParamDraft
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Position
from penstock.dialects.reader import did_you_mean, is_template, listed
from penstock.dialects.source.node import SourceNode, to_json
from penstock.kernel.values import JsonMap
from penstock.ports.rows import ENGINES, Column


def read_components(reading: Reading, node: SourceNode) -> dict[str, ComponentDraft]:
    found: dict[str, ComponentDraft] = {}
    for component in _each(reading, node):
        first = found.setdefault(component.name, component)
        if first is not component:
            message = f"two components are called `{component.name}`"
            hint = f"the first is on line {first.position.line}"
            reading.report("DUPLICATE_NAME", message, component.position, hint=hint)
    return found


def _each(reading: Reading, node: SourceNode) -> list[ComponentDraft]:
    found: list[ComponentDraft | None] = []
    if node.kind == "mapping":
        for key, item in node.entries.items():
            position = node.keys[key]
            name = reading.name(SourceNode("scalar", position, key), "the name of a component")
            if item.kind != "mapping":
                reading.wrong_shape(item, f"the component `{key}`", "a mapping")
                continue
            reading.words(item, "unnamed_component")
            found.append(_read(reading, item, name, position))
    elif node.kind == "sequence":
        found = [_listed(reading, item) for item in node.items]
    else:
        reading.wrong_shape(
            node, "`components`", "a list", hint="such as `- {name: orders, type: read_csv, params: {…}}`"
        )
    return [component for component in found if component is not None]


def _listed(reading: Reading, item: SourceNode) -> ComponentDraft | None:
    if item.kind != "mapping":
        reading.wrong_shape(item, "a component", "a mapping")
        return None
    reading.words(item, "component")
    named = item.get("name")
    if named is None:
        return None
    return _read(reading, item, reading.name(named, "the name of a component"), named.position)


def _read(reading: Reading, item: SourceNode, name: str | None, position: Position) -> ComponentDraft | None:
    kind = item.get("type")
    type_ = reading.text(kind, "`type`")
    params = reading.mapping(item.get("params"), "`params`")
    schemas = read_schemas(reading, item)
    component = ComponentDraft(
        name=name or "",
        position=position,
        type=type_ or "",
        type_position=position if kind is None else kind.position,
        params={}
        if params is None
        else {key: ParamDraft(params.keys[key], one) for key, one in params.entries.items()},
        die_on_error=reading.flag(item.get("die_on_error"), "`die_on_error`", False),
        exports=tuple(str(each.value) for each in reading.texts(item.get("global_export"), "`global_export`")),
        startable=reading.flag(item.get("startable"), "`startable`", False),
        active=reading.flag(item.get("active"), "`active`", True),
        engine=read_engine(reading, item.get("engine")),
        engine_node=item.get("engine"),
        schemas=schemas,
        span=(min(position.line, item.position.line), item.end_line),
    )
    return component if name is not None and type_ is not None else None


# ---- `engine`: what runs the rows, of a job or of a sub-job


def read_engine(reading: Reading, node: SourceNode | None) -> JsonMap:
    """The words of one `engine`, that for the kind under the name `engine`; none for none."""
    if node is None or node.is_null:
        return {}
    if node.kind != "mapping":
        return _engine_kind(reading, node)
    reading.words(node, "engine", skip=(CONNECTIONS,))
    found: JsonMap = _engine_kind(reading, node.get("kind"))
    found |= {
        "threads": reading.whole(node.get("threads"), "`threads`"),
        "fuse": reading.flag(node.get("fuse"), "`fuse`", True),
        "remote": reading.text(node.get("remote"), "`remote`"),
        "master": reading.text(node.get("master"), "`master`"),
        "folder": reading.text(node.get("folder"), "`folder`"),
        "connection": reading.text(node.get("connection"), "`connection`"),
        "schema": reading.text(node.get("schema"), "`schema`"),
    }
    conf = reading.mapping(node.get("conf"), "`conf`")
    if conf is not None:
        found["conf"] = to_json(conf)
    # The document's own, written out where they are used.
    connections = node.get(CONNECTIONS)
    if connections is not None:
        found[CONNECTIONS] = to_json(connections)
    return {name: value for name, value in found.items() if value is not None}


def _engine_kind(reading: Reading, node: SourceNode | None) -> JsonMap:
    if node is not None and is_template(node):
        return {"engine": node.value}
    kind = reading.choice(node, "an engine", ENGINES)
    return {"engine": kind} if kind is not None else {}


# ---- Declared columns: `- id: BIGINT`, or `- {name: id, type: BIGINT, nullable: false, key: true}`


_ALIASES = {
    "str": "VARCHAR", "string": "VARCHAR", "text": "VARCHAR", "char": "VARCHAR", "bpchar": "VARCHAR", "varchar": "VARCHAR",
    "int": "INTEGER", "int4": "INTEGER", "integer": "INTEGER", "signed": "INTEGER", "short": "SMALLINT", "int2": "SMALLINT",
    "smallint": "SMALLINT", "byte": "TINYINT", "int1": "TINYINT", "tinyint": "TINYINT", "long": "BIGINT", "int8": "BIGINT",
    "bigint": "BIGINT", "hugeint": "HUGEINT", "uinteger": "UINTEGER", "ubigint": "UBIGINT", "usmallint": "USMALLINT",
    "utinyint": "UTINYINT", "uhugeint": "UHUGEINT", "float": "FLOAT", "float4": "FLOAT", "real": "FLOAT",
    "double": "DOUBLE", "float8": "DOUBLE", "number": "DOUBLE", "decimal": "DECIMAL(18,3)", "numeric": "DECIMAL(18,3)",
    "bool": "BOOLEAN", "boolean": "BOOLEAN", "logical": "BOOLEAN", "date": "DATE", "time": "TIME", "datetime": "TIMESTAMP",
    "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "timestamp with time zone": "TIMESTAMP WITH TIME ZONE", "timestamp_s": "TIMESTAMP_S", "timestamp_ms": "TIMESTAMP_MS",
    "timestamp_ns": "TIMESTAMP_NS", "interval": "INTERVAL", "uuid": "UUID", "json": "JSON", "bytes": "BLOB",
    "binary": "BLOB", "blob": "BLOB", "bytea": "BLOB", "varbinary": "BLOB", "bit": "BIT",
}  # fmt: skip
_PARAMETERS = re.compile(r"([a-z_0-9]+)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\Z")
_NESTED = re.compile(r"(struct|map|list|union|enum|row)\s*\(|.*\[\d*\]\Z", re.DOTALL)

NO_VALUES = '"NULL"'
"""What DuckDB calls the type of a column of which nothing is known but its name."""


def column_type(text: str) -> str | None:
    """A type as DuckDB writes it, or None when there is no such type: `string` is `VARCHAR`, `int[]` is `INTEGER[]`."""
    bare = " ".join(text.casefold().split())
    if bare in _ALIASES:
        return _ALIASES[bare]
    if found := _PARAMETERS.match(bare):
        known = _ALIASES.get(found[1], "")
        if known.startswith("DECIMAL"):
            scale = found[3] or "0"
            fits = 1 <= int(found[2]) <= 38 and int(scale) <= int(found[2])
            return f"DECIMAL({found[2]},{scale})" if fits else None
        return known if known in ("VARCHAR", "BIT", "TIMESTAMP", "TIME") and not found[3] else None
    if bare.endswith("]") and not bare.startswith(("struct", "map", "union", "enum", "row")):
        inner = column_type(bare[: bare.rindex("[")])
        return None if inner is None else inner + bare[bare.rindex("[") :]
    return _nested(text) if _NESTED.match(bare) else None


def can_become(type_: str, other: str) -> bool:
    """Are the two of a kind, so that a declaration brings about a width or a scale and not another meaning? Text takes all,
    and a column without a value can be anything."""
    return type_ in (other, NO_VALUES) or other == "VARCHAR" or _kind(type_) == _kind(other)


def _kind(type_: str) -> str:
    word = type_.partition("(")[0]
    if type_.endswith("]") or word in ("STRUCT", "MAP", "UNION"):
        return "nested"
    if word.endswith("INT") or word in ("INTEGER", "UINTEGER", "DECIMAL", "FLOAT", "DOUBLE"):
        return "number"
    if word == "DATE" or word.startswith("TIMESTAMP"):
        return "date"
    return "text" if word in ("VARCHAR", "JSON", "UUID", "ENUM") else word


def _nested(text: str) -> str | None:
    # Only columns with types need it: it takes 0.1 s to import.
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        return exp.DataType.build(text, dialect="duckdb").sql("duckdb")
    except SqlglotError:
        return None


def read_schemas(reading: Reading, item: SourceNode) -> dict[str, Declared]:
    """`schema` is about the port `main`, `schemas` about any port."""
    found: dict[str, Declared] = {}
    main = item.get("schema")
    if main is not None and not main.is_null:
        found["main"] = _read_columns(reading, main, item.keys["schema"])
    ports = reading.mapping(item.get("schemas"), "`schemas`")
    for port, node in ports.entries.items() if ports is not None else ():
        assert ports is not None
        if port in found:
            message = "the columns of `main` are declared twice"
            reading.report("BAD_COLUMN", message, ports.keys[port], hint="keep `schema`, or `schemas.main`")
            continue
        found[port] = _read_columns(reading, node, ports.keys[port])
    return found


def _read_columns(reading: Reading, node: SourceNode, port: Position) -> Declared:
    columns: list[Column] = []
    positions: list[Position] = []
    for position, column in _columns(reading, node):
        if column.name in {other.name for other in columns}:
            reading.report("BAD_COLUMN", f"the column `{column.name}` is declared twice", position)
            continue
        columns.append(column)
        positions.append(position)
    return Declared(tuple(columns), tuple(positions), port)


def _columns(reading: Reading, node: SourceNode) -> list[tuple[Position, Column]]:
    found: list[tuple[Position, Column]] = []
    if node.kind == "mapping":
        for name, value in node.entries.items():
            found += _named(reading, name, node.keys[name], value)
    elif node.kind == "sequence":
        for item in node.items:
            found += _column_list(reading, item)
    else:
        reading.wrong_shape(node, "a schema", "a list of columns", hint="such as `- id: BIGINT`")
    return found


def _column_list(reading: Reading, item: SourceNode) -> list[tuple[Position, Column]]:
    if item.kind == "mapping" and len(item.entries) == 1 and "name" not in item.entries:
        name, value = next(iter(item.entries.items()))
        return _named(reading, name, item.keys[name], value)
    if item.kind == "mapping":
        reading.words(item, "column")
        named = item.get("name")
        if named is None or named.kind != "scalar" or named.value is None:
            return []
        return _full(reading, str(named.value), named.position, item)
    if item.kind == "scalar" and item.value is not None:
        return [(item.position, Column(str(item.value), "VARCHAR"))]
    reading.wrong_shape(item, "a column", "`name: type` or a mapping")
    return []


def _named(reading: Reading, name: str, position: Position, value: SourceNode) -> list[tuple[Position, Column]]:
    if value.kind == "mapping":
        reading.words(value, "column", skip=("name",))
        return _full(reading, name, position, value)
    return [(position, Column(name, _type(reading, value)))]


def _full(reading: Reading, name: str, position: Position, node: SourceNode) -> list[tuple[Position, Column]]:
    pattern = node.get("pattern")
    column = Column(
        name,
        _type(reading, node.get("type")),
        nullable=reading.flag(node.get("nullable"), "`nullable`", True),
        key=reading.flag(node.get("key"), "`key`", False),
        pattern=None if pattern is None or pattern.is_null else reading.text(pattern, "`pattern`"),
    )
    return [(position, column)]


def _type(reading: Reading, node: SourceNode | None) -> str:
    if node is None or node.is_null:
        return "VARCHAR"
    text = reading.text(node, "the type of a column")
    found = None if text is None else column_type(text)
    if text is not None and found is None:
        known = sorted({*_ALIASES.values()})
        label = did_you_mean(text, [*_ALIASES, *known])
        message = f"`{text}` is not a type of column"
        reading.report("BAD_COLUMN", message, node.position, label=label, hint=f"types are {listed(known, most=40)}")
    return found or "VARCHAR"
