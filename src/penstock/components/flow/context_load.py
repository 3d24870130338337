"""`context_load` and `set_global`: global variables from a file or from rows, and from expressions."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from sqlglot import exp

from penstock.components.base import Action, Call, ComponentFailure, Known, Mistake, PlanCall
from penstock.components.flow.iterate import mappings
from penstock.components.flow.tool_calls import file_failures, local_file, missing_columns, require
from penstock.data import select
from penstock.expr.scope import why_not_a_global
from penstock.kernel.values import Json, JsonMap
from penstock.ports.components import Port
from penstock.ports.json_text import json_mistake
from penstock.ports.meanings import READS_FILE, only_when
from penstock.tools.base import open_regular
from penstock.tools.files import text_from
from penstock.tools.parameters import about

Format = Literal["yaml", "json", "env", "csv"]
MAX_BYTES = 10 * 1024 * 1024

_BY_SUFFIX: dict[str, Format] = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".env": "env",
    ".properties": "env",
    ".csv": "csv",
    ".tsv": "csv",
}
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)\Z", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def format_of(path: Path) -> Format:
    form = "env" if path.name.startswith(".env") else _BY_SUFFIX.get(path.suffix.lower())
    if form is None:
        known = "`, `".join(_BY_SUFFIX)
        raise ComponentFailure(
            "parameters", f"the name of `{path}` does not say what is in it (`{known}`): give its `format`"
        )
    return form


def read(path: Path, form: Format, encoding: str, columns: tuple[str, str], delimiter: str | None) -> JsonMap:
    """The names and values in a file. Raises OSError, ComponentFailure."""
    text = _text(path, encoding)
    values: Any
    if form == "csv":
        values = _from_csv(text, path, columns, delimiter or ("\t" if path.suffix.lower() == ".tsv" else ","))
    else:
        values = _READERS[form](text, path)
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise _unreadable(path, f"it is not a mapping of names to values but a {type(values).__name__}")
    return values


def _text(path: Path, encoding: str) -> str:
    with open_regular(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise _unreadable(path, f"it is larger than {MAX_BYTES:,} bytes, too much for settings")
    return text_from(data, encoding, path)


def _unreadable(path: Path, why: str, line: int | None = None) -> ComponentFailure:
    where = f"`{path}`" if line is None else f"`{path}` line {line}"
    return ComponentFailure("format", f"{where}: {why}", path=str(path), line=line)


def _from_json(text: str, path: Path) -> Any:
    try:
        return msgspec.json.decode(text) if text.strip() else None
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"it is not JSON: {json_mistake(text, error, quoted=False)}") from None


def _from_env(text: str, path: Path) -> JsonMap:
    values: JsonMap = {}
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if not line or line[0] in "#;!":
            continue
        found = _ASSIGNMENT.match(line)
        if found is None:
            raise _unreadable(path, "a line is `NAME=value`", number)
        values[found[1]] = _env_value(found[2], path, number)
    return values


def _env_value(text: str, path: Path, line: int) -> str:
    """Quotes are taken off; `\\n` and its like mean something in double quotes; a comment begins with a space and `#`."""
    mark = text[:1]
    if mark not in ("'", '"'):
        return re.split(r"\s#", text, maxsplit=1)[0].strip()
    whole = re.match(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"", text)
    if whole is None or not re.fullmatch(r"\s*(#.*)?", text[whole.end() :]):
        raise _unreadable(path, f"a value that begins with {mark} ends with {mark}", line)
    if mark == "'":
        return whole[1]
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), whole[2])


def _from_csv(text: str, path: Path, columns: tuple[str, str], delimiter: str) -> JsonMap:
    if len(delimiter) != 1:
        raise ComponentFailure("parameters", f"`delimiter` is `{delimiter}`: it is one character")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        missing = [name for name in columns if name not in header]
        if missing:
            there = "`, `".join(header)
            raise _unreadable(path, f"the first line has no column `{missing[0]}`; there are `{there}`", 1)
        key, value = (header.index(name) for name in columns)
        values: JsonMap = {}
        for row in reader:
            if row:
                if len(row) <= max(key, value):
                    raise _unreadable(path, "the line has too few values", reader.line_num)
                values[row[key]] = row[value]
    except csv.Error as error:
        raise _unreadable(path, f"it is not CSV: {error}", reader.line_num) from None
    return values


def _from_yaml(text: str, path: Path) -> Any:
    import yaml  # Only YAML files need it.

    class Loader(yaml.SafeLoader):
        """YAML 1.2's core schema."""

        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.composer.ComposerError(None, None, "an alias is not allowed here", mark)
            if self.depth > _DEEPEST:
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.composer.ComposerError(None, None, f"values are nested more than {_DEEPEST} deep", mark)
            self.depth += 1
            try:
                return super().compose_node(parent, index)
            finally:
                self.depth -= 1

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.constructor.ConstructorError(None, None, "a name is text", key.start_mark)
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, "a name comes twice", key.start_mark)
                seen.add(key.value)
                key.tag = "tag:yaml.org,2002:str"
            return super().construct_mapping(node, deep)

    Loader.yaml_implicit_resolvers = {}
    for tag, pattern, first in _CORE:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", pattern, first)
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: _integer(node.value))
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))
    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise _unreadable(path, f"it is not YAML: {error.problem}", mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unreadable(path, f"it is not YAML: {error}") from None


_DEEPEST = 64

_CORE: tuple[tuple[str, re.Pattern[str], list[str]], ...] = (
    ("null", re.compile(r"(?:|~|null|Null|NULL)\Z"), ["", "~", "n", "N"]),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")),
    ("int", re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"), list("-+0123456789")),
    ("float", re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"), list("-+.0123456789")),
)


def _integer(text: str) -> Json:
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


_READERS: dict[str, Callable[[str, Path], Any]] = {"yaml": _from_yaml, "json": _from_json, "env": _from_env}


class ContextLoadParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[
        str | None,
        about(
            "The file; without it the names and values come in through `input`.",
            schema=only_when(READS_FILE, missing_ok=[None, False]),
        ),
    ] = None
    format: Annotated[
        Literal["auto", "yaml", "json", "env", "csv"], about("What is in it; `auto` goes by the file's name.")
    ] = "auto"
    prefix: Annotated[str, about("Put in front of every name.")] = ""
    key: Annotated[str, about("The column with the names, of `input` and of CSV.")] = "key"
    value: Annotated[str, about("The column with the values.")] = "value"
    required: Annotated[list[str], about("Names that must be there, without the prefix.")] = []
    missing_ok: Annotated[bool, about("A file that is not there is no error.")] = False
    encoding: Annotated[str, about("The encoding of the file.")] = "utf-8"
    delimiter: Annotated[str | None, about("Between the values of CSV; a comma, a tab in `.tsv`.")] = None


class ContextLoad(Action[ContextLoadParams]):
    """Read settings from a file, or from rows, into global variables.

    The context of a job does not change while it runs, so what is loaded here becomes globals: `host: db1` in the file is
    `{{ global.host }}` afterwards, with `prefix: db_` it is `{{ global.db_host }}`.

    YAML and JSON are one mapping, and its values keep their types; in `.env` files (`NAME=value`, quotes and `#` comments
    understood) and in CSV (a first line with the columns `key` and `value`) all values are text. Of rows on `input` the
    last one counts when a name comes twice; a row without a name is an error.

    The result is `{names}`; the values are not shown, as they may be secrets. After-variable: `COUNT`.
    """

    type: ClassVar[str] = "context_load"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False
    inputs: ClassVar[tuple[Port, ...]] = (Port("input", required=False, description="rows of names and values"),)

    def check(self, params: ContextLoadParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        return _mistakes(params, "input" in inputs) or missing_columns(_named_columns(params), inputs.get("input"))

    def run(self, params: ContextLoadParams, call: Call) -> JsonMap:
        require(_mistakes(params, "input" in call.inputs))
        values = _from_rows(params, call) if params.path is None else _from_file(params, params.path, call)
        absent = [name for name in params.required if name not in values]
        if absent:
            raise ComponentFailure("missing", f"`{'`, `'.join(absent)}` is required and was not among what was loaded")
        names = [params.prefix + name for name in values]
        for name, value in zip(names, values.values(), strict=True):
            call.globals[name] = value
        call.after["COUNT"] = len(names)
        return {"names": [*sorted(names)]}


def _mistakes(params: ContextLoadParams, fed: bool) -> list[Mistake]:
    if fed == (params.path is not None):
        had = "both" if fed else "neither"
        message = f"settings come either from a file, `path`, or from rows on `input`; here there is {had}"
        return [Mistake(("path",) if fed else (), message)]
    return []


def _named_columns(params: ContextLoadParams) -> list[tuple[tuple[str | int, ...], str]]:
    return [(("key",), params.key), (("value",), params.value)]


def _from_file(params: ContextLoadParams, given: str, call: Call) -> JsonMap:

    path = local_file(given, call)
    if params.missing_ok and not path.exists():
        return {}
    form = format_of(path) if params.format == "auto" else params.format
    with file_failures(path):
        return read(path, form, params.encoding, (params.key, params.value), params.delimiter)


def _from_rows(params: ContextLoadParams, call: Call) -> JsonMap:
    rows = call.input()
    require(missing_columns(_named_columns(params), rows.schema))
    by_name = {column.name.casefold(): column for column in rows.schema}
    schema = (by_name[params.key.casefold()], by_name[params.value.casefold()])
    query = exp.select(*(select.column(column.name) for column in schema)).from_(select.table("input"))
    values: JsonMap = {}
    for number, row in enumerate(mappings(schema, call.engine.rows(select.sql(query), {"input": rows})), start=1):
        key, value = row.values()
        if key is None or key == "":
            raise ComponentFailure("rows", f"row {number} has no name in the column `{params.key}`")
        values[str(key)] = value
    return values


class SetGlobalParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    values: Annotated[dict[str, Any], about("Name -> value: text, a number, a list, a mapping, null.")] = msgspec.field(
        default_factory=dict
    )
    delete: Annotated[
        list[str], about("Names of globals that are gone from here on. One that is not there is left alone.")
    ] = msgspec.field(default_factory=list)


class SetGlobal(Action[SetGlobalParams]):
    """Set global variables, and delete them.

    They are visible when the component's links fire, all of them at once, as `{{ global.name }}`. A value that is exactly
    one `{{ … }}` keeps its type. A variable that another sub-job created can be changed for everyone only by a component
    that lists it in `global_export`. A name has letters, digits, `_` and `-`, and begins with a letter. What is
    deleted is as if it had never been for whoever comes after: `{{ global.name | default(…) }}` gives the default, and an `if`
    link that reads it does not fire. The result is `{names}`, with `delete`
    `{names, deleted}`.
    """

    type: ClassVar[str] = "set_global"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False

    def check(self, params: SetGlobalParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        if not params.values and not params.delete:
            return [Mistake((), "it sets nothing and deletes nothing; hint: give `values`, or `delete`")]
        both = sorted(set(params.values) & set(params.delete))
        return [Mistake(("delete",), f"`{both[0]}` is set and deleted at once")] if both else []

    async def run(self, params: SetGlobalParams, call: Call) -> JsonMap:
        for name, value in params.values.items():
            reason = why_not_a_global(name)
            if reason is not None:
                raise ComponentFailure("parameters", reason)
            call.globals[name] = value
        gone = [name for name in params.delete if name in call.globals]
        for name in gone:
            del call.globals[name]
        names: JsonMap = {"names": [*sorted(params.values)]}
        return {**names, "deleted": [*sorted(gone)]} if params.delete else names
