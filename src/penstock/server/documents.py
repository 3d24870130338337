"""Documents as executions hold them: pinned to the text they started with, compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.dialects.playbook import Compiled, compile_file, compile_text
from penstock.dialects.playbook.inline_secrets import masked
from penstock.dialects.problems import Problem, Severity
from penstock.kernel.errors import Refused
from penstock.kernel.net import Net
from penstock.ports.plugins import ToolCatalog
from penstock.ports.results import decode, encode


class DocumentInvalid(Refused):
    """The document has errors; all of them are here."""

    def __init__(self, file: str, problems: Sequence[Problem], text: str) -> None:
        errors = [one for one in problems if one.severity is Severity.ERROR]
        first = file
        if errors:
            place = errors[0].place
            first = f"{place.file}{f':{place.line}' if place.line else ''}: {errors[0].message}"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"the document is not valid: {first}{more}")
        self.file = file
        self.problems = tuple(problems)
        self.text = text


@dataclass(frozen=True, slots=True)
class Pinned:
    """The text an execution started with, and where it came from: relative paths and error messages need the latter."""

    file: str
    text: str

    def to_bytes(self) -> bytes:
        return encode({"file": self.file, "text": self.text})

    @staticmethod
    def from_bytes(data: bytes) -> Pinned:
        return Pinned.from_mapping(decode(data))

    @staticmethod
    def from_mapping(data: Any) -> Pinned:
        assert isinstance(data, Mapping)
        return Pinned(str(data["file"]), str(data["text"]))

    def as_kept(self) -> Pinned:
        """What goes into the log: the document without the secrets that were written into it."""
        return Pinned(self.file, masked(self.text))

    @property
    def folder(self) -> Path:
        return Path(self.file).parent


class Documents:
    """Compiles pinned documents, each text once."""

    def __init__(self, catalog: ToolCatalog, *, strict: bool = False) -> None:
        self._catalog = catalog
        self._strict = strict
        self._compiled: dict[Pinned, tuple[Net, Compiled]] = {}

    def compile(self, document: Pinned) -> tuple[Net, Compiled]:
        found = self._compiled.get(document)
        if found is None:
            compiled = compile_text(document.text, document.file, self._catalog, strict=self._strict)
            if compiled.net is None:
                raise DocumentInvalid(document.file, compiled.problems, compiled.text)
            found = self._compiled[document] = (compiled.net, compiled)
        return found

    def open(self, path: Path) -> Pinned:
        """A file as a person names it: problems carry the path as it was given, the pinned document the whole one."""
        compiled = compile_file(path, self._catalog, strict=self._strict)
        if compiled.net is None:
            raise DocumentInvalid(compiled.file, compiled.problems, compiled.text)
        document = Pinned(str(path.resolve()), compiled.text)
        self._compiled[document] = (compiled.net, compiled)
        return document

    def find(self, path: str, folder: Path) -> Pinned:
        """A sub-playbook by path: relative to the calling file's folder, with or without `.yaml`."""
        tried = []
        for name in (path, f"{path}.yaml", f"{path}.yml"):
            candidate = (folder / name).expanduser()
            tried.append(str(candidate))
            if candidate.is_file():
                return Pinned(str(candidate.resolve()), candidate.read_text(encoding="utf-8"))
        raise Refused(f"there is no playbook `{path}`", hint="looked at " + ", ".join(tried))
