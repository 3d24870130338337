"""A document on its way to a server: with everything it takes in or calls that lies in files here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from os.path import dirname, normpath, relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.kernel.errors import PenstockError, Refused

if TYPE_CHECKING:
    from penstock.app.library import Library
    from penstock.dialects.job import CompiledJob
    from penstock.dialects.playbook import Compiled
    from penstock.dialects.problems import Problem
    from penstock.kernel.net import Net

MOST = 200
"""Documents that come along."""


class Sent:
    """`body` is what the API takes for a document; `net` is None when it cannot be compiled here: the server will say."""

    def __init__(self, library: Library, given: str) -> None:
        self.given = given
        self.file = ""
        self.text = ""
        self.net: Net | None = None
        self.compiled: Any = None
        self.taken_in: dict[str, str] = {}
        """The joblets that a job takes in: file -> text."""
        path = Path(given)
        if not path.exists() and (not path.suffix or (len(path.parts) > 1 and not path.parent.exists())):
            self.body: dict[str, Any] = {"path": given}
            return
        self.compiled = library.compiled(path, looks=False)
        if not self.compiled.text:  # It cannot be read, or there is nothing in it: nobody else can do better.
            from penstock.server.documents import DocumentInvalid

            raise DocumentInvalid(self.compiled.file, self.compiled.problems, "")
        self.net = self.compiled.net
        self.file, self.text = str(path.resolve()), self.compiled.text
        self.taken_in = {**_as_called(self.compiled, path, Path(self.file).parent), **_sources(self.compiled)}
        sources = dict(self.taken_in)
        _gather(library, self.compiled, Path(self.file).parent, sources)
        self.body = {"file": self.file, "text": self.text, "sources": sources}

    @property
    def is_here(self) -> bool:
        """It is a file of this machine, and no name in the catalog."""
        return bool(self.file)


def _sources(compiled: Any) -> dict[str, str]:
    return {str(file): text for file, text in getattr(compiled, "sources", {}).items()}


def _as_called(compiled: Any, given: Path, folder: Path) -> dict[str, str]:
    """The joblets of a job under the names it finds them by. Where a folder is a link these are not the names of the files, and
    the server, which cannot follow links of this machine, looks for these."""
    texts: dict[str, str] = getattr(compiled, "texts", {})
    called = {file: text for file, text in texts.items() if file != compiled.file}
    return {normpath(folder / relpath(file, given.parent)): text for file, text in called.items()}


def _gather(library: Library, compiled: Compiled | CompiledJob, folder: Path, sources: dict[str, str]) -> None:
    """What a document calls by a path that is written out, and what that calls in turn. What is not here is in the catalog,
    or on the server's own disk, or missing: the server will say."""
    given = dirname(compiled.file)
    for call in compiled.calls:
        # Folders are named as the document was, and the server knows it by its whole path.
        base = folder if call.folder is None else folder / relpath(call.folder, given)
        for name in (call.path, f"{call.path}.yaml", f"{call.path}.yml"):
            file = Path(normpath((base / name).expanduser()))
            if str(file) in sources or not file.is_file():
                continue
            if len(sources) >= MOST:
                raise Refused(f"the document calls more than {MOST} others", "keep them in the catalog instead")
            try:
                found = library.compiled(file, looks=False)
            except PenstockError:
                break
            sources[str(file)] = found.text
            sources.update({**_as_called(found, file, file.parent), **_sources(found)})
            _gather(library, found, file.parent, sources)
            break


def as_seen_here(error: Refused, sent: Sent) -> Refused:
    """The problems of a document, with the name and the text that it has here."""
    from penstock.server.documents import DocumentInvalid

    if not isinstance(error, DocumentInvalid) or not sent.is_here:
        return error
    return DocumentInvalid(sent.given, seen_here(error.problems, sent), sent.text)


def seen_here(problems: Iterable[Problem], sent: Sent) -> list[Problem]:
    return [
        replace(one, place=replace(one.place, file=sent.given)) if one.place.file == sent.file else one
        for one in problems
    ]
