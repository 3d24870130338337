"""Rows as the author's code likes them, and back.

The exchange is the Arrow C stream, which Arrow, Polars and pandas all read and write; none of them is needed by anything here
unless the document asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any, Literal

from penstock.components.base import Call, ComponentFailure
from penstock.components.forms import Form, given
from penstock.ports.rows import EngineSession, Relation, Schema

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
