"""The author's code over rows, in the Python of a cluster's worker.

Law: nothing of Penstock is installed there. This text travels to the workers beside that of `penstock.tools.python.code`, which
is given to it as `code_tools`; it needs the standard library and pyarrow. What it does is what `python.py` does here: the same
names, the same outputs, the same words about a failure, but for the number of a row, which counts within one part of the rows.
"""

from __future__ import annotations
import __future__

import ast
import base64
import datetime
import json
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

FAILED = "penstock-failure:"
_STEP = "__penstock_step__"


def program(told: str, schema: bytes, *, code_tools: Any) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """A function from record batches to record batches of the schema, for one part of the rows at a time."""
    return lambda batches: _Part(json.loads(told), code_tools).run(batches, schema)


class Failed(Exception):
    """What the code did, for the author; it crosses the cluster as text."""

    def __init__(self, failure: Mapping[str, Any]) -> None:
        text = base64.b64encode(json.dumps(failure).encode()).decode()
        super().__init__(f"{FAILED}{text};")


class ReadOnly(dict[str, Any]):
    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("`context` is read-only")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


def _fixed(value: Any) -> Any:
    return ReadOnly({key: _fixed(one) for key, one in value.items()}) if isinstance(value, dict) else value


class _Part:
    def __init__(self, told: dict[str, Any], code_tools: Any) -> None:
        self._told = told
        self._tools = code_tools
        self._code = code_tools.Code(told["code"], told["file"], told["line"])
        self._module = ModuleType("penstock_component")
        self._names: dict[str, Any] = self._module.__dict__
        self._names.update(context=_fixed(told["context"]), iteration=told["iteration"])
        self._before = 0

    def run(self, batches: Iterable[Any], schema_bytes: bytes) -> Iterator[Any]:
        import pyarrow  # Of the worker.

        schema = pyarrow.ipc.read_schema(pyarrow.py_buffer(schema_bytes))
        # Data classes and pickle look theirs up by name.
        sys.modules[self._module.__name__] = self._module
        try:
            step = self._prepared()
            each = self._by_row if self._told["mode"] == "row" else self._by_batch
            for rows in self._batches(batches):
                made = each(step, rows)
                self._before += len(rows)
                if made:
                    yield self._columns(made, schema, pyarrow)
        finally:
            sys.modules.pop(self._module.__name__, None)

    def _prepared(self) -> Callable[[], object]:
        """What is to be done once is done; what is to be done for each row or batch is returned."""
        setup = self._told["setup"]
        if setup is not None:
            code = self._tools.Code(setup["code"], setup["file"], setup["line"])
            self._once(self._tools._compiled(code), code, "setup")
        # Empty lines in front make every line number one of the author's file.
        tree = ast.parse("\n" * (max(self._code.line, 1) - 1) + self._code.text)
        body, constant, names = tree.body, self._told["constant"], self._told["names"]
        flags = self._tools._compiled(self._code).co_flags & __future__.annotations.compiler_flag
        self._once(self._compiled(body[:constant], flags), self._code, "code")
        rest = body[constant:]
        if names is None:
            whole = self._compiled(rest, flags)
            return lambda: exec(whole, self._names)
        # As a function its names are found faster than those of a module; all of them are declared global.
        function = ast.parse(f"def {_STEP}():\n    pass").body[0]
        assert isinstance(function, ast.FunctionDef)
        declared: list[ast.stmt] = [ast.Global(names=names)] if names else []
        function.body = [*declared, *(rest or [ast.Pass()])]
        exec(self._compiled([ast.fix_missing_locations(function)], flags), self._names)
        found: Callable[[], object] = self._names.pop(_STEP)
        return found

    def _compiled(self, body: list[ast.stmt], flags: int) -> Any:
        return compile(ast.Module(body=body, type_ignores=[]), self._code.file, "exec", flags=flags, dont_inherit=True)

    def _once(self, compiled: Any, code: Any, parameter: str) -> None:
        try:
            exec(compiled, self._names)
        except (Exception, SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            raise self._failure(error, code, parameter) from None

    def _failure(self, error: BaseException, code: Any, parameter: str, at: str = "") -> Failed:
        if isinstance(error, Failed):
            return error
        found = self._tools._describe(error, code, self._module.__name__)
        found["message"] = found["message"].replace(" of `code`", f" of `{parameter}`") + at
        return Failed({**found, "detail": {**found["helpers"].get("py", {}), **found["detail"]}})

    # ---- Rows

    def _batches(self, batches: Iterable[Any]) -> Iterator[list[dict[str, Any]]]:
        """The rows of this part as mappings, in batches of the size that was asked for."""
        size, waiting = self._told["batch_size"], []
        for batch in batches:
            waiting += self._mappings(batch)
            at = 0
            while len(waiting) - at >= size:
                yield waiting[at : at + size]
                at += size
            waiting = waiting[at:]
        if waiting:
            yield waiting

    def _mappings(self, batch: Any) -> list[dict[str, Any]]:
        columns = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            values = column.to_pylist()
            convert = _FROM.get(self._told["kinds"].get(name))
            columns.append([None if one is None else convert(one) for one in values] if convert else values)
        names = batch.schema.names
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _by_row(self, step: Callable[[], object], rows: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
        values, passes = self._names, self._told["passes"]
        made: list[Mapping[str, Any]] = []
        for number, row in enumerate(rows):
            values["row"] = row
            values["output"] = row if passes else None
            try:
                step()
                output = values["output"]
                if output.__class__ is dict:
                    made.append(output if output is row else output.copy())
                elif output is not None:
                    made += _several(output)
            except (Exception, SystemExit, KeyboardInterrupt, GeneratorExit) as error:
                raise self._failure(error, self._code, "code", self._place(number)) from None
        return made

    def _by_batch(self, step: Callable[[], object], rows: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
        self._names["rows"] = rows
        self._names["output"] = None
        try:
            step()
            return _of_batch(self._names["output"])
        except (Exception, SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            first = self._before + 1
            at = f", in the batch of rows {first:,} to {self._before + len(rows):,}{self._part()}"
            raise self._failure(error, self._code, "code", at) from None

    def _place(self, number: int) -> str:
        return f", at row {self._before + number + 1:,}{self._part()}"

    def _part(self) -> str:
        from pyspark import TaskContext  # Of the worker.

        context = TaskContext.get()
        return f" of part {context.partitionId() + 1:,}" if context is not None else ""

    # ---- Columns

    def _columns(self, rows: list[Mapping[str, Any]], schema: Any, pyarrow: Any) -> Any:
        arrays = [self._column(field, [row.get(field.name) for row in rows], pyarrow) for field in schema]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    def _column(self, field: Any, values: list[Any], pyarrow: Any) -> Any:
        kinds = {type(one) for one in values} - {type(None)}
        try:
            if pyarrow.types.is_string(field.type):
                return pyarrow.array(values if kinds <= {str} else [_text(one) for one in values], field.type)
            if kinds == {str} and not pyarrow.types.is_binary(field.type):
                return pyarrow.array(values, pyarrow.string()).cast(field.type)
            if kinds & {float} and pyarrow.types.is_integer(field.type):
                values = [round(one) if isinstance(one, float) else one for one in values]
            return pyarrow.array(values, field.type)
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
            message = f"column `{field.name}` of `output` must be {field.type}: {error}{self._part()}"
            raise Failed({"kind": "conversion", "message": message, "retryable": False, "detail": {}}) from None


def _several(output: Any) -> list[Mapping[str, Any]]:
    if isinstance(output, Mapping):
        return [dict(output)]
    if isinstance(output, (str, bytes)) or not isinstance(output, Iterable):
        raise _wrong(f"`output` must be a mapping, a list of mappings, or None to drop the row, and is {_kind(output)}")
    return [dict(one) for one in _rows(output, "output")]


def _of_batch(output: Any) -> list[Mapping[str, Any]]:
    if output is None:
        return []
    if isinstance(output, Mapping):
        others = [port for port in output if port != "main"]
        if others:
            raise _wrong(f"output: on an engine elsewhere `{others[0]}` is not an output port; there is only `main`")
        return _of_batch(output["main"]) if output else []
    if hasattr(output, "collect") and type(output).__name__ == "LazyFrame":
        output = output.collect()
    if hasattr(output, "reset_index"):
        return list(output.to_dict(orient="records"))
    for method in ("to_dicts", "to_pylist"):
        if hasattr(output, method):
            return list(getattr(output, method)())
    return _rows(output, "output")


def _rows(value: Any, name: str) -> list[Mapping[str, Any]]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise _wrong(f"`{name}` must be a list of mappings, one per row, and is {_kind(value)}")
    made = list(value)
    for number, each in enumerate(made):
        if not isinstance(each, Mapping):
            raise _wrong(f"`{name}[{number}]` must be a mapping, one row, and is {_kind(each)}")
    return made


def _wrong(message: str) -> Failed:
    return Failed({"kind": "output", "message": message, "retryable": False, "detail": {}})


def _kind(value: Any) -> str:
    named = {list: "a list", str: "text", int: "a number", float: "a number"}
    return named.get(type(value), f"of type `{type(value).__name__}`")


def _text(value: Any) -> str | None:
    """As DuckDB writes what is put into a column of text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, default=str, separators=(",", ":"), ensure_ascii=False)
    return str(value)


_FROM: dict[str | None, Callable[[Any], Any]] = {
    "UUID": uuid.UUID,
    "INTEGER": int,
    "TIME": datetime.time.fromisoformat,
    "MAP": dict,
    "ZONED": lambda value: value.astimezone(datetime.UTC),
}
"""By kind of column: what DuckDB would have given the code."""
