"""Documents by name: those that a server stores, beside those that come with a request.

A document that was added to the catalog on its own has the address `catalog:/PATH@VERSION`. What it calls by a relative path
is looked up beside it in the catalog, then in the catalog as a whole. A document of a project has the address
`catalog:/PROJECT@VERSION/FILE`, and is named `PROJECT/FILE`, with or without its extension. What it calls by a relative path
is a file of the same version of the project, otherwise a name in the catalog. What a client's document calls is looked up
among the sources that came with it, then in the catalog; never in the files of this machine, unless their owner alone may ask
(`penstock ui`).
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from penstock.dialects.kind import Kind, document_kind, kind_of
from penstock.dialects.playbook import compile_text
from penstock.dialects.problems import closest
from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.net import Net
from penstock.ports.blobs import ResultRef
from penstock.ports.components import ComponentCatalog
from penstock.ports.control import ControlStore, Filed
from penstock.ports.folders import CATALOG, in_project, is_address
from penstock.ports.plugins import ToolCatalog, at_folder
from penstock.ports.projects import DOCUMENTS, KIND, Files, Manifest, ProjectFolders
from penstock.server.documents import DocumentInvalid, Documents, Pinned

if TYPE_CHECKING:
    from penstock.dialects.job.compile import CompiledJob
    from penstock.dialects.playbook import Compiled

MOST_COMPILED = 500
"""Maximum number of documents that are kept compiled; others are compiled again when needed."""
DEEPEST_NAME = 20


T = TypeVar("T")

COMPILE_S = 60.0
"""Maximum time a request waits for a document to be checked."""
# A small pool of its own: however many documents are sent, the threads that drive executions stay free.
_COMPILING = ThreadPoolExecutor(4, "compile")


async def compiling(job: Callable[[], T], patience_s: float = COMPILE_S) -> T:
    """Read and check a document outside the event loop: a stranger wrote it, and may have made it slow."""
    work = asyncio.get_running_loop().run_in_executor(_COMPILING, job)
    try:
        return await asyncio.wait_for(work, patience_s)
    except TimeoutError:
        raise Unavailable(
            f"the document was not checked within {patience_s:g} s",
            "others are being checked at the same time, or it is very large: split it into sub-playbooks or joblets",
        ) from None


class NotFiled(Refused):
    """The catalog has no such document, or no such version of it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """`inner`: the requested file of a project; empty for a document, and for a project as a whole."""

    filed: Filed
    inner: str = ""

    @property
    def text(self) -> str:
        return self.filed.sources[self.inner] if self.inner else self.filed.text

    @property
    def kind(self) -> str:
        return kind_of(self.text) if self.inner else self.filed.kind

    @property
    def path(self) -> str:
        return f"{self.filed.path}/{self.inner}" if self.inner else self.filed.path

    def pinned(self) -> Pinned:
        """The document as a run is pinned to it. The joblets of a document that was added on its own are stored by their
        paths from its folder; those of a document in a project are files of the project."""
        filed, address = self.filed, f"{CATALOG}/{self.filed.path}@{self.filed.version}"
        if self.inner:
            return Pinned(f"{address}/{self.inner}", self.text, (), Manifest.read(filed.text).archive)
        folder = posixpath.dirname(address)
        sources = {posixpath.normpath(posixpath.join(folder, name)): text for name, text in filed.sources.items()}
        return Pinned(address, filed.text, tuple(sources.items()))


class CatalogDocuments(Documents):
    def __init__(
        self,
        tools: ToolCatalog,
        components: ComponentCatalog,
        control: ControlStore,
        projects: ProjectFolders | None = None,
        root: Path | None = None,
    ) -> None:
        """`root`: the folder of a project on this machine whose owner alone asks this server. Documents are then files of this
        machine, as for a run without a server, and relative names start there."""
        super().__init__(tools, components, reads_files=root is not None, runs=False, projects=projects)
        self._control = control
        self._root = root

    def compile(self, document: Pinned) -> tuple[Net, Compiled | CompiledJob]:
        found = super().compile(document)
        while len(self._compiled) > MOST_COMPILED:
            self._compiled.pop(next(iter(self._compiled)), None)
        return found

    async def aside(self, work: Callable[[], T]) -> T:
        return await compiling(work)

    def examined(self, document: Pinned, *, strict: bool = False) -> Compiled | CompiledJob:
        """The document with all its problems, of whatever severity."""
        alike = CatalogDocuments(self._catalog, self._known(), self._control, self._projects, self._root)
        alike._strict = strict
        if self._root is not None and not is_address(document.file) and Path(document.file).is_absolute():
            return alike.looked_at(document)
        return alike._again(document)

    def looked_at(self, document: Pinned) -> Compiled | CompiledJob:
        """The document checked as if it were saved: the files it names are looked at, as before a run on this machine."""
        path = Path(document.file)
        if kind_of(document.text) == "playbook":
            tools = at_folder(self._catalog, path.parent)
            return compile_text(document.text, document.file, tools, strict=self._strict, folder=path.parent)
        from penstock.dialects.job.compile import (
            compile_text as compile_job,  # Playbooks need none of it: start-up time.
        )

        return self._job(path, lambda more: compile_job(document.text, document.file, **more), None, None)

    def sent(self, file: str, text: str, sources: Mapping[str, str]) -> Pinned:
        """A document that came with a request, as a run is pinned to it."""
        document = Pinned(file, text, tuple(sources.items()))
        if self._root is None or sources or is_address(file):
            return document
        whole = replace(document, file=str((self._root / Path(file).expanduser()).resolve()))
        try:
            return self.with_joblets(whole) if kind_of(text) == "job" else whole
        except DocumentInvalid:  # Whoever compiles it says what is wrong.
            return whole

    def sent_before(self, file: str, text: str, sources: Mapping[str, str]) -> tuple[Pinned, Net] | None:
        """The same, of a text that has been compiled and can run; reads and parses nothing."""
        document = Pinned(file, text, tuple(sources.items()))
        found = self._compiled.get(document) if self._root is None else None
        return None if found is None or getattr(found[1], "is_joblet", False) else (document, found[0])

    def located(self, folder: Path, document: Pinned) -> Path:
        """A server runs nothing, so it knows a folder only by its address."""
        return folder

    def filed(self, path: str, version: int | None = None) -> Pinned:
        """A document that can run, by its path."""
        found = self.kept(path, version)
        if found is None:
            raise self.not_filed(path, version)
        if found.kind == KIND:
            names = ", ".join(f"`{name}`" for name, _ in _documents_of(found.filed)[:10])
            raise NotFiled(f"`{path}` is a project, and not a document of one", hint=f"name a document of it: {names}")
        return self._pinned(found)

    def kept(self, path: str, version: int | None = None) -> Kept | None:
        """What the catalog has under a path: a document, a project, or a document in a version of a project."""
        filed = self._control.document(path, version)
        if filed is not None:
            return Kept(filed)
        project = self._project_of(path, version)
        if project is None:
            return None
        inner = Manifest.read(project.text).document(path.removeprefix(f"{project.path}/"))
        return None if inner is None or inner not in project.sources else Kept(project, inner)

    def not_filed(self, path: str, version: int | None = None) -> NotFiled:
        """Suggests what was probably meant: another document of the project that the path begins with, otherwise another
        path."""
        if version is not None and self.kept(path) is not None:
            return NotFiled(
                f"there is no version {version} of `{path}` in the catalog",
                hint=f"`penstock catalog versions {path}` shows them",
            )
        if (parent := self._project_of(path)) is not None:
            known = [name.removesuffix(ending) for name, ending in _documents_of(parent)]
        else:
            known = [one.path for one in self._control.documents()]
        meant = closest(path, sorted(known))
        return NotFiled(
            f"there is no `{path}` in the catalog" + (f"; did you mean `{meant}`?" if meant else ""),
            hint="`penstock catalog list` shows what is there"
            if parent is None
            else f"`penstock catalog show {parent.path}` lists the files of the project",
        )

    def _project_of(self, path: str, version: int | None = None) -> Filed | None:
        """The project whose name the path begins with."""
        parts = path.split("/")
        for cut in range(min(len(parts) - 1, DEEPEST_NAME), 0, -1):
            found = self._control.document("/".join(parts[:cut]), version)
            if found is not None and found.kind == KIND:
                return found
        return None

    def find(
        self, path: str, folder: Path, sent: Mapping[str, str] | None = None, project: ResultRef | None = None
    ) -> Pinned:
        if not is_address(folder) or in_project(folder) is not None:
            return super().find(path, folder, sent, project)
        beside = posixpath.normpath(posixpath.join(str(folder).removeprefix(CATALOG).strip("/"), path))
        found = self._named(beside) or self._named(path)
        if found is None:
            raise Refused(f"there is no document `{path}`", hint=f"looked for `{beside}` and `{path}` in the catalog")
        return found

    _also = ", and in the catalog"

    def _elsewhere(self, path: str) -> Pinned | None:
        return self._named(path)

    def _named(self, path: str) -> Pinned | None:
        plain = path.strip("/")
        for name in (plain, plain.removesuffix(".yaml").removesuffix(".yml")):
            found = self.kept(name) if name else None
            if found is not None and found.kind != KIND:
                return self._pinned(found)
        return None

    def _pinned(self, kept: Kept) -> Pinned:
        found = kept.pinned()
        return self.with_joblets(found) if kept.inner else found


def _documents_of(project: Filed) -> list[tuple[str, str]]:
    """The documents by name, each with its extension."""
    return [
        (f"{project.path}/{name}", ending)
        for name in Manifest.read(project.text).files
        for ending in DOCUMENTS
        if name.endswith(ending)
    ]


def documents_in(files: Files) -> dict[str, tuple[Kind, str]]:
    """The documents among the files of a project: path -> kind and text. Other YAML is data."""
    found: dict[str, tuple[Kind, str]] = {}
    for path, file in files.items():
        if not path.endswith(DOCUMENTS):
            continue
        try:
            text = file.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
        if (kind := document_kind(text)) is not None:
            found[path] = kind, text
    return found
