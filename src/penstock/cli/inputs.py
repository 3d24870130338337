"""The workload as the command line gives it: `--payload` goes over the defaults, `--set` over both (D53)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import DecodeError

from penstock.cli.arguments import CommandLineError
from penstock.dialects.source.loader import load_text
from penstock.dialects.source.node import to_json
from penstock.ports.json_text import json_mistake
from penstock.ports.results import decode

_DOT = re.compile(r"(?<!\\)\.")
MOST_BYTES = 256 * 1024 * 1024


def workload(payload: str | None, settings: Sequence[str]) -> dict[str, Any]:
    values = _payload(payload) if payload is not None else {}
    for setting in settings:
        _set(values, setting)
    return values


def _payload(text: str) -> dict[str, Any]:
    data = _read(Path(text[1:]).expanduser()) if text.startswith("@") else text.encode("utf-8", "surrogateescape")
    whence = f"the file `{text[1:]}` of `--payload`" if text.startswith("@") else "`--payload`"
    try:
        value = decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (DecodeError, RecursionError) as error:
        hint = '`--payload \'{"key": "value"}\'`, or `--payload @file.json`'
        raise CommandLineError(f"{whence} is not JSON: {json_mistake(data, error)}", hint) from error
    if not isinstance(value, dict):
        raise CommandLineError(f"{whence} is not a JSON object but {_kind(value)}", "the workload is a mapping")
    return value


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandLineError(f"`--payload` names `{path}`, which cannot be read: {reason.lower()}") from error
    if len(data) > MOST_BYTES:
        raise CommandLineError(f"`{path}` has more than {MOST_BYTES:,} bytes", "let a task read the data instead")
    return data


def _set(values: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise CommandLineError(
            f"`--set {setting}` has no `=`" if not equals else f"`--set {setting}` has no key",
            "write `--set key=value`",
        )
    parts = [part.replace("\\.", ".") for part in _DOT.split(key.strip())]
    if not all(parts):
        raise CommandLineError(f"`--set {key}`: there is an empty name between the dots")
    target = values
    for part in parts[:-1]:
        inner = target.get(part)
        if not isinstance(inner, dict):
            inner = target[part] = {}
        target = inner
    target[parts[-1]] = _yaml(key, text)


def _yaml(key: str, text: str) -> Any:
    if not text.strip():
        return None
    loaded = load_text(text, f"--set {key}")
    if loaded.problems or loaded.root is None:
        reason = loaded.problems[0].message if loaded.problems else "it is empty"
        raise CommandLineError(
            f"the value of `--set {key}` cannot be read as YAML: {reason}",
            f"to give it as text, quote it: `--set {key}='\"…\"'`",
        )
    return to_json(loaded.root)


def _kind(value: object) -> str:
    return {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}.get(type(value), "a number")
