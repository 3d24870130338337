"""What a set of delimited files holds: the names in their headers, and the types of their columns.

Law: the columns of a read are settled before the first row is read, and written into the query. A later line that
does not fit is wrong; it never changes the columns.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from sqlglot import exp

from penstock.components.base import ComponentFailure
from penstock.components.io import file_paths, parameters, scans
from penstock.components.io.file_paths import open_text
from penstock.components.io.row_types import Notation, found_types
from penstock.components.io.scans import all_of, column_types, scan, text_lines
from penstock.components.types import checked_whole
from penstock.data import select
from penstock.data.types import NOTHING
from penstock.ports.rows import Column, Schema

_HEADER_LINES = 100
_SAMPLE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Layout:
    """How a delimited file is cut into values. Hashable: what was found out about a file is remembered under it."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    skip: int = 0
    comment: str | None = None
    encoding: str = "utf-8"
    null: tuple[str, ...] = ("",)
    quoted_null: bool = True
    fill_missing: bool = False
    max_line_bytes: int | None = None
    sample: int = 20_480
    notation: Notation = field(default_factory=Notation)

    def options(self) -> dict[str, Any]:
        """The same in the words of DuckDB's `read_csv`, for a file in UTF-8."""
        notation = self.notation
        return {
            "auto_detect": False,
            "delim": self.delimiter,
            "quote": self.quote,
            "escape": self.escape,
            "header": self.header,
            "skip": self.skip or None,
            "comment": self.comment,
            "nullstr": list(self.null),
            "allow_quoted_nulls": self.quoted_null,
            "null_padding": self.fill_missing or None,
            # DuckDB cannot fill up lines in parallel when a quoted value has a line break in it.
            "parallel": False if self.fill_missing else None,
            "max_line_size": self.max_line_bytes,
            "decimal_separator": notation.decimal if notation.decimal != "." else None,
            "thousands": notation.thousands,
            "dateformat": notation.date_format,
            "timestampformat": notation.timestamp_format,
        }


@lru_cache(maxsize=512)
def names_in(stamp: file_paths.Stamp, layout: Layout) -> tuple[tuple[str, ...], int]:
    """The names of the columns, from the header or `column_1`, `column_2` …, and the empty lines before them.

    An empty file has no names.
    """
    with _readable(Path(stamp[0]), layout, _SAMPLE_BYTES) as path:
        first, blank = _first_record(path, layout)
    if not layout.header:
        return tuple(f"column_{number}" for number in range(1, len(first) + 1)), blank
    return distinct([name.strip() or f"column_{number}" for number, name in enumerate(first, 1)]), blank


def _first_record(path: Path, layout: Layout) -> tuple[list[str], int]:
    found = scans.ask(text_lines(path, limit=layout.skip + _HEADER_LINES))
    lines = [str(line or "") for (line,) in islice(found, layout.skip, None)]
    if layout.comment:
        lines = [line for line in lines if not line.startswith(layout.comment)]
    blank = 0
    while lines and not lines[0].strip():
        lines.pop(0)
        blank += 1
    if not lines:
        return [], blank
    if len(layout.delimiter) > 1:
        return lines[0].split(layout.delimiter), blank
    escapes = layout.escape if layout.escape and layout.escape != layout.quote else None
    reader = csv.reader(
        io.StringIO("\n".join(lines), newline=""),
        delimiter=layout.delimiter,
        quotechar=layout.quote or None,
        quoting=csv.QUOTE_MINIMAL if layout.quote else csv.QUOTE_NONE,
        escapechar=escapes,
        doublequote=escapes is None,
    )
    try:
        return next(reader, []), blank
    except csv.Error as error:
        raise ComponentFailure("format", f"`{path}`: the first line cannot be read: {error}", path=str(path)) from None


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """DuckDB takes `ID` and `id` for the same name: the second of two gets a number."""
    taken = {name.lower() for name in names}
    seen: set[str] = set()
    chosen: list[str] = []
    for name in names:
        free, number = name, 2
        while free.lower() in seen or (free != name and free.lower() in taken):
            free, number = f"{name}_{number}", number + 1
        seen.add(free.lower())
        chosen.append(free)
    return tuple(chosen)


@lru_cache(maxsize=512)
def types_in(stamp: file_paths.Stamp, layout: Layout, names: tuple[str, ...], blank: int) -> dict[str, str]:
    """The types of the columns, by the first `sample` lines after so many empty ones."""
    if not names:
        return {}
    options = layout.options() | {
        "columns": column_types(dict.fromkeys(names, "VARCHAR")),
        "ignore_errors": True,
        "skip": layout.skip + blank,
        "buffer_size": None if layout.sample < 0 else max(1 << 22, 2 * (layout.max_line_bytes or 0)),
        "decimal_separator": None,
        "thousands": None,
        "dateformat": None,
        "timestampformat": None,
    }
    limit = None if layout.sample < 0 else _SAMPLE_BYTES

    def asked(path: Path) -> dict[str, str]:
        sample = exp.select(exp.Star()).from_(scan("read_csv", [path], options))
        if layout.sample >= 0:
            sample = exp.select(exp.Star()).from_(sample.limit(layout.sample).subquery("sampled"))
        return found_types(names, sample, layout.notation, lambda query: scans.ask(query)[0])

    try:
        with _readable(Path(stamp[0]), layout, limit) as path:
            return asked(path)
    except ComponentFailure as failure:
        if not has_mixed_ends(failure.message):
            raise
    with _copied(Path(stamp[0]), layout, limit) as path:
        return asked(path)


def has_mixed_ends(message: str) -> bool:
    """Is this what DuckDB says of a file whose lines end now in `\\n`, now in `\\r\\n`?"""
    return "reached an invalid state" in message


@contextmanager
def _readable(path: Path, layout: Layout, limit: int | None) -> Iterator[Path]:
    """The file in UTF-8; of another encoding, as much of its beginning as is wanted, in a file of its own."""
    if file_paths.is_utf8(layout.encoding):
        yield path
    else:
        with _copied(path, layout, limit) as copy:
            yield copy


@contextmanager
def _copied(path: Path, layout: Layout, limit: int | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="penstock-look-") as folder:
        copy = Path(folder) / "copy.csv"
        recode(path, copy, layout.encoding, limit)
        yield copy


def recode(path: Path, copy: Path, encoding: str, limit: int | None = None) -> None:
    """Write a file anew in UTF-8, with the same end to every line, up to a number of characters.

    A byte that is none of the encoding's stays as it is, so that its line is found to be wrong.
    """
    left = limit
    try:
        with (
            open_text(path, encoding) as source,
            copy.open("w", encoding="utf-8", errors="surrogateescape", newline="") as target,
        ):
            while text := source.read(1 << 20 if left is None else min(left, 1 << 20)):
                target.write(text)
                if left is not None and (left := left - len(text)) <= 0:
                    # The last line may be cut in two: half a line would be judged as a whole one.
                    target.write(source.readline())
                    break
    except UnicodeError as error:
        raise ComponentFailure(
            "encoding", f"`{path}` is not written in `{encoding}`: {error}; hint: `encoding: utf-8`", path=str(path)
        ) from None


@dataclass(frozen=True, slots=True)
class Group:
    """Files with the same header."""

    names: tuple[str, ...]
    paths: tuple[Path, ...]
    blank: int = 0
    """Empty lines before the header, which DuckDB would take for it."""


def grouped(paths: Sequence[Path], layout: Layout) -> list[Group]:
    """The files by their headers, in order. An empty file has no header, and no rows to be missed."""
    groups: list[tuple[tuple[tuple[str, ...], int], list[Path]]] = []
    for path in paths:
        found = names_in(file_paths.stamp(path), layout)
        if not found[0] and len(paths) > 1:
            continue
        if groups and groups[-1][0] == found:
            groups[-1][1].append(path)
        else:
            groups.append((found, [path]))
    return [Group(names, tuple(paths), blank) for (names, blank), paths in groups] or [Group((), tuple(paths[:1]))]


def all_names(groups: Sequence[Group], *, by_name: bool) -> tuple[str, ...]:
    """The columns of all files. Raises ComponentFailure when a file has others than the first and `by_name` does not
    allow it."""
    names = list(groups[0].names)
    for group in groups[1:]:
        if set(group.names) != set(names) and not by_name:
            here, there = set(group.names) - set(names), set(names) - set(group.names)
            differences = [f"has `{name}`" for name in sorted(here)] + [f"lacks `{name}`" for name in sorted(there)]
            path, other = group.paths[0], groups[0].paths[0]
            message = f"`{path}` {', '.join(differences)}, unlike `{other}`; hint: `by_name: true` fills with NULL"
            raise ComponentFailure("columns", message, path=str(path))
        names += [name for name in group.names if name not in names]
    return tuple(names)


def inferred(groups: Sequence[Group], layout: Layout, declared: Mapping[str, str]) -> dict[str, str]:
    """Column -> type: as declared, else by the first file that has the column and a row in it; without one, `NOTHING`."""
    found: dict[str, str] = {}
    samples = [(next((path for path in group.paths if _has_rows(path, layout)), None), group) for group in groups]
    for path, group in sorted(samples, key=lambda one: one[0] is None):
        if all(name in found or name in declared for name in group.names):
            continue
        if path is None:
            types = dict.fromkeys(group.names, NOTHING)
        else:
            types = types_in(file_paths.stamp(path), layout, group.names, group.blank)
        found = {**types, **found}
    return {**found, **declared}


def _has_rows(path: Path, layout: Layout) -> bool:
    """Does anything follow the header? A day without rows is no reason to take the numbers of all days for text."""
    try:
        with file_paths.open_bytes(path) as file:
            begins = file.read(1 << 16)
    except file_paths.unpacking_failures():
        return True  # What is wrong with it is said by who reads it.
    lines = [line for line in begins.splitlines()[layout.skip :] if line.strip(b"\0")]
    if layout.comment:
        lines = [line for line in lines if not line.startswith(layout.comment.encode())]
    return len(lines) > int(layout.header) or len(begins) == 1 << 16


@dataclass(frozen=True, slots=True)
class Reading:
    """One read, settled: which files, which of their columns, with which types."""

    groups: tuple[Group, ...]
    types: Mapping[str, str]
    chosen: tuple[str, ...]
    layout: Layout
    file_column: str | None = None
    shown: Mapping[Path, str] | None = None
    """Of copies, of files elsewhere or anew in UTF-8: what they are copies of."""
    whole: tuple[str, ...] = ()
    """The columns that the author wants as whole numbers. DuckDB would round `9.95` to 10, and say nothing."""

    @property
    def schema(self) -> Schema:
        columns = tuple(Column(name, self.types[name]) for name in self.chosen)
        return (*columns, Column(self.file_column, "VARCHAR")) if self.file_column is not None else columns

    def parts(self) -> list[Group]:
        """What one scan can read. The path of a copy must not show, so each is read by itself and given its original name."""
        if self.shown is None or self.file_column is None:
            return list(self.groups)
        return [replace(group, paths=(path,)) for group in self.groups for path in group.paths]

    def query(self, *, is_checked: bool = True, **more: Any) -> exp.Query:
        """All rows; with `is_checked` a number with a fraction ends it where a whole one is wanted. `more` are further options of
        each scan; a `{}` in one is replaced by the number of the scan."""
        if not any(group.names for group in self.groups):
            return self._nothing()
        checked = self.whole if is_checked else ()
        return all_of(*(self._scan(part, number, more, checked) for number, part in enumerate(self.parts())))

    def fractions(self, **more: Any) -> exp.Query:
        """All values of the whole columns, as a scan that refuses every one with a decimal point."""

        def of_part(number: int, part: Group) -> exp.Query:
            types = {name: "DECIMAL(38,0)" if name in self.whole else "VARCHAR" for name in part.names}
            source = self._source(part, number, types, {"decimal_separator": ",", **more})
            picked = [
                select.column(name) if name in part.names else exp.alias_(exp.null(), select.name(name))
                for name in self.whole
            ]
            return exp.select(*picked).from_(source)

        return all_of(*(of_part(number, part) for number, part in enumerate(self.parts())))

    def _scan(self, group: Group, number: int, more: Mapping[str, Any], checked: Sequence[str]) -> exp.Query:
        # A column that is not selected stays text: it cannot be wrong.
        types = {name: self.types[name] if name in self.chosen else "VARCHAR" for name in group.names}
        types = {name: "VARCHAR" if type == NOTHING or name in checked else type for name, type in types.items()}
        named = self.file_column is not None and self.shown is None
        source = self._source(group, number, types, {**more, "filename": self.file_column if named else None})
        picked: list[exp.Expr] = [self._pick(name, group.names, checked) for name in self.chosen]
        if named and self.file_column is not None:
            picked.append(select.column(self.file_column))
        elif self.file_column is not None and self.shown is not None:
            picked.append(exp.alias_(select.literal(self.shown[group.paths[0]]), select.name(self.file_column)))
        return exp.select(*picked).from_(source)

    def _source(self, group: Group, number: int, types: Mapping[str, str], more: Mapping[str, Any]) -> exp.Table:
        extra = {name: value.format(number) if isinstance(value, str) else value for name, value in more.items()}
        options = self.layout.options() | extra
        options |= {"skip": self.layout.skip + group.blank, "columns": column_types(types)}
        return scan("read_csv", group.paths, options)

    def _pick(self, name: str, present: Sequence[str], checked: Sequence[str]) -> exp.Expr:
        if name in present and name in checked:
            value = select.cast(checked_whole(select.column(name)), self.types[name])
            return exp.alias_(value, select.name(name))
        if name in present and self.types[name] != NOTHING:
            return select.column(name)
        return parameters.missing_value(name, self.types[name])

    def _nothing(self) -> exp.Query:
        return parameters.no_rows(self.schema)
