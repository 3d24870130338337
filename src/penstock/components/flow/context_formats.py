"""Files of names and values: YAML, JSON, `.env` and CSV.

Law: a file says what it says. YAML is read by the rules of its version 1.2, as documents are: `no` and `2024-01-01` are text.
Aliases and name clashes are refused. Messages name the line and never quote a value: it may be a secret.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from penstock.components.base import ComponentFailure
from penstock.kernel.values import Json, JsonMap
from penstock.ports.json_text import json_mistake

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
    from penstock.tools.base import open_regular
    from penstock.tools.files import text_from

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
    import yaml

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
