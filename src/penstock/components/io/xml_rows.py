"""Elements of an XML file as rows, one at a time: no more than one row is held, whatever the size of the file.

Law: a document that declares entities is refused. They are what makes a small file unpack into a large one, or reach
into other files, and no data needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.parsers import expat

from penstock.components.base import ComponentFailure

_CHUNK = 1 << 16
_MAX_DEPTH = 1_000


@dataclass(slots=True)
class Element:
    name: str
    attributes: dict[str, str]
    line: int = 0
    pieces: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces).strip()


def local(name: str) -> str:
    """The name without its namespace prefix."""
    return name.rpartition(":")[2]


def is_called(name: str, wanted: str) -> bool:
    return wanted in ("*", name, local(name))


@dataclass(frozen=True, slots=True)
class RowPath:
    """Which elements are rows: `/orders/order` from the root, or `order` wherever it stands."""

    steps: tuple[str, ...]
    from_root: bool

    @staticmethod
    def of(text: str) -> RowPath:
        steps = tuple(step for step in text.split("/") if step)
        if not steps or any(step.startswith("@") for step in steps):
            raise ComponentFailure("parameters", f"`{text}` does not name elements; hint: `/orders/order`, or `order`")
        return RowPath(steps, text.startswith("/") and not text.startswith("//"))

    def matches(self, names: Sequence[str]) -> bool:
        if len(names) < len(self.steps) or (self.from_root and len(names) != len(self.steps)):
            return False
        return all(is_called(name, step) for name, step in zip(reversed(names), reversed(self.steps), strict=False))


def values_at(element: Element, path: str) -> list[str]:
    """The texts that a path such as `customer/name`, `customer/@id` or `.` leads to."""
    found = [element]
    for step in path.split("/"):
        if step in ("", "."):
            continue
        if step.startswith("@"):
            return [value for each in found for name, value in each.attributes.items() if is_called(name, step[1:])]
        found = [child for each in found for child in each.children if is_called(child.name, step)]
    return [each.text for each in found]


class _Reader:
    """Follows the parser through the document and gathers the elements that are rows."""

    def __init__(self, path: RowPath, encoding: str | None) -> None:
        self.parser = expat.ParserCreate(encoding)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.EntityDeclHandler = self._entity
        self.rows: list[Element] = []
        self._path = path
        self._names: list[str] = []
        self._open: list[Element] = []

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._names.append(name)
        if len(self._names) > _MAX_DEPTH:
            raise ComponentFailure("refused", f"elements are nested more than {_MAX_DEPTH} deep")
        if self._open or self._path.matches(self._names):
            element = Element(name, attributes, self.parser.CurrentLineNumber)
            if self._open:
                self._open[-1].children.append(element)
            self._open.append(element)

    def _end(self, name: str) -> None:
        self._names.pop()
        if self._open:
            element = self._open.pop()
            if not self._open:
                self.rows.append(element)

    def _data(self, text: str) -> None:
        if self._open:
            self._open[-1].pieces.append(text)

    def _entity(self, *about: object) -> None:
        raise ComponentFailure(
            "refused", f"it declares the entity `{about[0]}`, and documents with entities are not read"
        )


def elements(path: Path, rows: RowPath, encoding: str | None = None) -> Iterator[Element]:
    """The row elements of a file. Raises ComponentFailure where the file is not XML, or not to be trusted."""
    with path.open("rb") as file:
        reader = _Reader(rows, encoding)
        yield from _parsed(path, file, reader)


def _parsed(path: Path, file: IO[bytes], reader: _Reader) -> Iterator[Element]:
    while True:
        chunk = file.read(_CHUNK)
        try:
            reader.parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            where = f"`{path}`, line {error.lineno}, column {error.offset + 1}"
            raise ComponentFailure(
                "format",
                f"{where}: this is not XML: {expat.ErrorString(error.code)}",
                path=str(path),
                line=error.lineno,
            ) from None
        except (LookupError, ValueError) as error:
            raise ComponentFailure("encoding", f"`{path}` cannot be decoded: {error}", path=str(path)) from None
        except ComponentFailure as failure:
            line = reader.parser.CurrentLineNumber
            raise ComponentFailure(
                failure.kind, f"`{path}`, line {line}: {failure.message}", path=str(path), line=line
            ) from None
        yield from reader.rows
        reader.rows.clear()
        if not chunk:
            return
