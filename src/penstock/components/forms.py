"""The forms in which Python code takes rows and gives them back: mappings, Arrow, Polars, pandas.

Frames travel as an Arrow C stream, so the engine needs none of these libraries; a component that asks for one brings it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, islice
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from penstock.components.base import Call, ComponentFailure, Port
from penstock.components.queries import everything, gathered
from penstock.components.runner import ERRORS
from penstock.data import select
from penstock.data.types import UNKNOWN_COLUMNS
from penstock.ports.rows import EngineSession, Relation, Schema

BATCH = 10_000


class Form(Enum):
    ROWS = "list[dict]"
    STREAM = "Iterator[dict]"
    ARROW = "pyarrow.Table"
    POLARS = "polars.DataFrame"
    PANDAS = "pandas.DataFrame"
    RELATION = "Relation"


_FRAMES = {"pyarrow": Form.ARROW, "polars": Form.POLARS, "pandas": Form.PANDAS}


def form_of(annotation: Any) -> Form:
    """The form that an annotation asks for; a list of mappings unless it says otherwise."""
    given_forms = [one for one in get_args(annotation) if one is not NoneType]
    if get_origin(annotation) in (Union, UnionType) and given_forms:
        return form_of(given_forms[0])
    origin = get_origin(annotation) or annotation
    if origin is Relation:
        return Form.RELATION
    library = str(getattr(origin, "__module__", "")).partition(".")[0]
    if library in _FRAMES:
        return _FRAMES[library]
    if isinstance(origin, type) and origin is not object and issubclass(origin, Iterable):
        return Form.ROWS if issubclass(origin, Sequence) else Form.STREAM
    return Form.ROWS


def given(call: Call, port: str, form: Form) -> Any:
    """The rows on a port in the form that is wanted."""
    relation = gathered(call, port)
    match form:
        case Form.RELATION:
            return relation
        case Form.ROWS:
            return list(mappings(call, relation))
        case Form.STREAM:
            return mappings(call, relation)
        case _:
            return _frame(call, relation, form)


def mappings(call: Call, relation: Relation) -> Iterator[dict[str, Any]]:
    """The rows one by one, read from the engine in batches."""
    names = [column.name for column in relation.schema]
    for batch in call.engine.rows(_all(), {"input": relation}, BATCH):
        for row in batch:
            yield dict(zip(names, row, strict=True))


def put_rows(call: Call, outputs: Sequence[Port], value: Any) -> None:
    """Rows that a function returned, on the ports they are meant for."""
    if isinstance(value, Mapping):
        _by_port(call, outputs, value)
        return
    main = next((port for port in outputs if not port.reject and not port.is_wild), None)
    if main is None:
        raise ComponentFailure("output", "which port are the rows for? return a mapping of output port to rows")
    _put(call, main, value)


def _by_port(call: Call, outputs: Sequence[Port], value: Mapping[Any, Any]) -> None:
    for name, rows in value.items():
        port = next((port for port in outputs if isinstance(name, str) and port.accepts(name)), None)
        if port is None:
            known = ", ".join(f"`{port.name}`" for port in outputs)
            message = f"a mapping was returned, and its key `{name}` is not an output port; the ports are {known}"
            raise ComponentFailure("output", f"{message}. Put a single row into a list")
        _put(call, Port(name, port.required, port.many, port.reject), rows)


def _put(call: Call, port: Port, value: Any) -> None:
    if port.name not in call.connected:
        if isinstance(value, Iterator):
            deque(value, maxlen=0)  # a generator may do more than yield
        return
    schema = call.declared.get(port.name)
    if isinstance(value, Relation):
        rows = value
    elif hasattr(value, "__arrow_c_stream__"):
        rows = call.engine.load_arrow(value, schema)
    elif value is None:
        rows = call.engine.empty(schema or _guess(call, port))
    elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        rows = _loaded(call, port, value, schema)
    else:
        raise ComponentFailure("output", f"port `{port.name}`: rows are needed, and `{type(value).__name__}` came")
    call.put(port.name, rows)


def _loaded(call: Call, port: Port, value: Iterable[Any], schema: Schema | None) -> Relation:
    batches = _batches(value, port.name)
    first = next(batches, None)
    if first is None:
        return call.engine.empty(schema or _guess(call, port))
    return call.engine.load_mappings(chain([first], batches), schema)


def _batches(rows: Iterable[Any], port: str) -> Iterator[list[Mapping[str, Any]]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH)):
        for row in batch:
            if not isinstance(row, Mapping):
                raise ComponentFailure(
                    "output", f"port `{port}`: each row must be a mapping, and `{type(row).__name__}` came"
                )
        yield batch


def _guess(call: Call, port: Port) -> Schema:
    """No rows and no declaration: most probably the columns that came in."""
    first = next((rows[0].schema for rows in call.inputs.values() if rows), ())
    return (*first, *ERRORS) if port.reject else first or UNKNOWN_COLUMNS


def _frame(call: Call, relation: Relation, form: Form) -> Any:
    return framed(call.engine.arrow(_all(), {"input": relation}), form)


def framed(stream: Any, form: Form) -> Any:
    """A stream of Arrow as a table of PyArrow, or a frame of Polars or pandas."""
    if form is Form.POLARS:
        return import_module("polars").DataFrame(stream)
    if form is Form.PANDAS:
        pandas = import_module("pandas")
        if hasattr(pandas.DataFrame, "from_arrow"):
            return pandas.DataFrame.from_arrow(stream)
    table = import_module("pyarrow").table(stream)
    return table.to_pandas() if form is Form.PANDAS else table


def _all() -> str:
    return select.sql(everything("input"))


FrameName = Literal["rows", "arrow", "polars", "pandas"]

_FORMS = {"rows": Form.ROWS, "arrow": Form.ARROW, "polars": Form.POLARS, "pandas": Form.PANDAS}
_PACKAGES = {"arrow": ("pyarrow",), "polars": ("polars",), "pandas": ("pandas", "pyarrow")}


def frame(call: Call, port: str, name: FrameName) -> Any:
    """The rows on a port as a list of mappings, an Arrow table, or a data frame."""
    for package in _PACKAGES.get(name, ()):
        if find_spec(package) is None:
            message = f"`frame: {name}` needs the package `{package}`, which is not installed"
            raise ComponentFailure("not_installed", message, package=package)
    return given(call, port, _FORMS[name])


def is_frame(value: Any) -> bool:
    """A table of some library's own, as opposed to rows."""
    return not isinstance(value, type) and (hasattr(value, "__arrow_c_stream__") or _is_lazy(value))


def load(value: Any, engine: EngineSession, schema: Schema | None) -> Relation:
    """A frame as the code made it."""
    if _is_lazy(value):
        value = value.collect()
    if hasattr(value, "reset_index"):
        value = _without_index(value)
    return engine.load_arrow(value, schema)


def rows(value: Any, name: str) -> list[Mapping[str, Any]]:
    """What the code calls rows, as a list of mappings; a ComponentFailure that says what it is otherwise."""
    if value is None:
        return []
    if isinstance(value, Mapping | str | bytes) or not isinstance(value, Iterable):
        raise ComponentFailure("output", f"`{name}` must be a list of mappings, one per row, and is {kind(value)}")
    made = value if isinstance(value, list) else list(value)
    for number, each in enumerate(made):
        if each.__class__ is not dict and not isinstance(each, Mapping):
            raise ComponentFailure("output", f"`{name}[{number}]` must be a mapping, one row, and is {kind(each)}")
    return made


def kind(value: Any) -> str:
    """What a value is, in a sentence."""
    named = {dict: "a mapping", list: "a list", str: "text", int: "a number", float: "a number", type(None): "`None`"}
    return named.get(type(value), f"of type `{type(value).__name__}`")


def _is_lazy(value: Any) -> bool:
    return type(value).__name__ == "LazyFrame" and hasattr(value, "collect")


def _without_index(value: Any) -> Any:
    """A data frame of pandas. Its index is no column, unless it was given a name; names of columns are text."""
    named = any(name is not None for name in value.index.names)
    return value.reset_index(drop=not named).rename(columns=str)


def records(value: Any) -> list[Mapping[str, Any]]:
    """A frame as rows, where rows have to stand beside it."""
    if _is_lazy(value):
        value = value.collect()
    if hasattr(value, "reset_index"):
        return list(_without_index(value).to_dict(orient="records"))
    for method in ("to_dicts", "to_pylist"):
        if hasattr(value, method):
            return list(getattr(value, method)())
    raise ComponentFailure("output", f"rows or a data frame are needed, and this is {kind(value)}")
