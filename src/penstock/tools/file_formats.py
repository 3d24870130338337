"""Between the bytes of a file and the values of a playbook: text, JSON, JSON lines, CSV.

Law: what is written in a format and read in it again is the same value; CSV alone keeps no types, all its values are text.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from penstock.kernel.values import Json
from penstock.ports.json_text import json_mistake
from penstock.tools.base import ToolFailure

Format = Literal["text", "json", "jsonl", "csv", "bytes"]

_BY_SUFFIX: dict[str, Format] = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}


def format_by_name(path: Path) -> Format | None:
    return _BY_SUFFIX.get(path.suffix.lower())


def text_from(data: bytes, encoding: str, path: Path) -> str:
    """The text of a file. A byte order mark is not part of it."""
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ToolFailure(
            "decode",
            f"`{path}` is not text in `{encoding}`: byte {error.start} does not fit; "
            "give the right `encoding` or `format: bytes`",
            path=str(path),
            byte=error.start,
        ) from error
    except LookupError as error:
        raise ToolFailure(
            "parameters", f"`{encoding}` is not an encoding; write `utf-8`, `latin-1`, `cp1252` …"
        ) from error


def bytes_from(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise ToolFailure("parameters", f"the content cannot be written in `{encoding}`: {error.reason}") from error
    except LookupError as error:
        raise ToolFailure(
            "parameters", f"`{encoding}` is not an encoding; write `utf-8`, `latin-1`, `cp1252` …"
        ) from error


def _undecodable(path: Path, what: str, error: Exception | str, line: int | None = None) -> ToolFailure:
    place = f"`{path}`" if line is None else f"`{path}` line {line}"
    return ToolFailure("decode", f"{place} is not {what}: {error}", path=str(path), line=line)


def decode(data: bytes, form: Format, encoding: str, delimiter: str, path: Path) -> Json:
    """The value in a file's bytes; `bytes` itself is not for here, as it never becomes a value."""
    text = text_from(data, encoding, path)
    if form == "json":
        return _json(text, path)
    if form == "jsonl":
        lines = enumerate(text.split("\n"), start=1)
        return [_json(line, path, number) for number, line in lines if line.strip()]
    if form == "csv":
        return _rows(text, delimiter, path)
    return text


def _json(text: str, path: Path, line: int | None = None) -> Json:
    try:
        value: Json = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        said = json_mistake(text, error)
        # A line of its own has no other lines: there it is the file's line that counts.
        raise _undecodable(path, "JSON", said if line is None else said.removeprefix("line 1, "), line) from error
    return value


def _rows(text: str, delimiter: str, path: Path) -> Json:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_one(delimiter), strict=True)
    rows: list[Json] = []
    header: list[str] | None = None
    try:
        for row in reader:
            if not row:
                continue
            if header is None:
                header = row
                if len(set(header)) != len(header):
                    twice = next(name for name in header if header.count(name) > 1)
                    raise csv.Error(f"the column `{twice}` is there twice")
                continue
            if len(row) != len(header):
                raise csv.Error(f"{len(row)} values for {len(header)} columns")
            rows.append(dict(zip(header, row, strict=True)))
    except csv.Error as error:
        raise _undecodable(path, "CSV", error, reader.line_num) from error
    return rows


def _one(delimiter: str) -> str:
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ToolFailure("parameters", f"`delimiter` is `{delimiter}`: it must be one character, such as `,` or `;`")
    return delimiter


def encode(content: Any, form: Format, delimiter: str) -> str:
    """The text of a whole file."""
    if form == "json":
        return _json_text(content, indent=2) + "\n"
    if form == "jsonl":
        return encode_lines(content)
    if form == "csv":
        rows = _mappings(content)
        return encode_rows(rows, list(dict.fromkeys(name for row in rows for name in row)), delimiter, with_header=True)
    return content if isinstance(content, str) else _json_text(content)


def encode_lines(content: Any) -> str:
    items = content if isinstance(content, list) else [content]
    return "".join(_json_text(item) + "\n" for item in items)


def _json_text(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolFailure("parameters", f"`content` cannot be written as JSON: {error}") from error


def _mappings(content: Any) -> list[dict[str, Any]]:
    rows = content if isinstance(content, list) else [content]
    for row in rows:
        if not isinstance(row, dict):
            raise ToolFailure(
                "parameters", "CSV is written from a list of mappings, one per row: `[{column: value, …}, …]`"
            )
    return rows


def encode_rows(rows: Iterable[dict[str, Any]], columns: list[str], delimiter: str, *, with_header: bool) -> str:
    target = io.StringIO(newline="")
    writer = csv.writer(target, delimiter=_one(delimiter), lineterminator="\n")
    if with_header and columns:
        writer.writerow(columns)
    for row in rows:
        unknown = row.keys() - set(columns)
        if unknown:
            raise ToolFailure("parameters", f"the file has no column `{min(unknown)}`; it has `{'`, `'.join(columns)}`")
        writer.writerow([_cell(row.get(name)) for name in columns])
    return target.getvalue()


def encode_more_rows(content: Any, existing: str, delimiter: str) -> str:
    """Rows in the order of the columns that a file already has."""
    header = next(csv.reader(io.StringIO(existing, newline=""), delimiter=_one(delimiter)), [])
    return encode_rows(_mappings(content), header, delimiter, with_header=False)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _json_text(value)
