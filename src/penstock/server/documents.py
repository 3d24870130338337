"""Documents as executions hold them: pinned to the text they started with, compiled once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.dialects.kind import kind_of, kind_of_file
from penstock.dialects.playbook import Compiled, compile_file, compile_text
from penstock.dialects.problems import Problem, Severity
from penstock.dialects.secrets import MASK, literal_secrets, masked, restored_text
from penstock.kernel.errors import Refused
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap, frozen, merge_deeply
from penstock.ports.blobs import ResultRef
from penstock.ports.components import NO_SCHEMAS, ComponentCatalog, Inferred
from penstock.ports.folders import (
    CATALOG,
    Base,
    CatalogFolder,
    Surroundings,
    in_project,
    is_address,
    whole_folder,
)
from penstock.ports.plugins import ToolCatalog, at_folder
from penstock.ports.projects import ProjectFolders, is_decent, ref_json
from penstock.ports.results import decode, encode
from penstock.ports.rows import Schema
from penstock.server.named_documents import named_among, named_below, project_folder

if TYPE_CHECKING:
    from penstock.dialects.job.compile import CompiledJob


C = TypeVar("C")
T = TypeVar("T")


class DocumentInvalid(Refused):
    """The document has errors; all of them are listed here."""

    def __init__(self, file: str, problems: Sequence[Problem], text: str) -> None:
        errors = [one for one in problems if one.severity is Severity.ERROR]
        first = file
        if errors:
            position = errors[0].position
            first = f"{position.file}{f':{position.line}' if position.line else ''}: {errors[0].message}"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"the document is not valid: {first}{more}")
        self.file = file
        self.problems = tuple(problems)
        self.text = text


@frozen
class Pinned:
    """The text an execution started with, and where it came from, which relative paths and error messages need. `sources`:
    the joblets a job includes, by file; a run is pinned to those, too. `project`: the archive of the project the document
    belongs to, in the version that the run started with."""

    file: str
    text: str
    sources: tuple[tuple[str, str], ...] = ()
    project: ResultRef | None = None

    def as_json(self) -> JsonMap:
        said: JsonMap = {"file": self.file, "text": self.text}
        if self.sources:
            said["sources"] = dict(self.sources)
        if self.project is not None:
            said["project"] = ref_json(self.project)
        return said

    def to_bytes(self) -> bytes:
        return encode(self.as_json())

    @staticmethod
    def from_bytes(data: bytes) -> Pinned:
        return Pinned.from_mapping(decode(data))

    @staticmethod
    def from_mapping(data: Any) -> Pinned:
        assert isinstance(data, Mapping)
        sources = data.get("sources") or {}
        project = data.get("project")
        return Pinned(
            str(data["file"]),
            str(data["text"]),
            tuple((str(k), str(v)) for k, v in sources.items()),
            None if project is None else ResultRef.from_json(dict(project)),
        )

    def as_kept(self) -> Pinned:
        """What goes into the log: the document without the secrets that were written into it."""
        sources = tuple((file, masked(text)) for file, text in self.sources)
        return Pinned(self.file, masked(self.text), sources, self.project)

    def registered(
        self, payload: Mapping[str, Any], context: str | None, trace_id: str | None, keep: Sequence[str] = ()
    ) -> bytes:
        """What a run is registered with: the document and its inputs, so that any server can start it."""
        inputs: JsonMap = {"payload": dict(payload), "context": context, "trace_id": trace_id}
        if keep:
            inputs["keep"] = list(keep)
        return encode({**self.as_kept().as_json(), "inputs": inputs})

    def with_secrets(self) -> tuple[Pinned, list[str]]:
        """The document with its secrets restored, as far as the files still have them; and the parameters whose secrets are
        gone."""
        text, missing = restored_text(self.text, _read(self.file) if MASK in self.text else None)
        sources = []
        for file, kept in self.sources:
            joblet, more = restored_text(kept, _read(file) if MASK in kept else None)
            sources.append((file, joblet))
            missing += more
        return replace(self, text=text, sources=tuple(sources)), missing

    def secrets(self) -> list[str]:
        """The secrets written into its parameters. Refused if they are gone from the file: without them nothing can run."""
        whole, missing = self.with_secrets()
        if missing:
            raise Refused(
                f"the secret in `{missing[0]}` was written into the document, is not in the log, and "
                f"`{self.file}` has it no more",
                hint="put it back there for the resume; better, declare it in `keychain`",
            )
        return [secret for text in (whole.text, *dict(whole.sources).values()) for secret in literal_secrets(text)]

    @property
    def folder(self) -> Path:
        return Path(self.file).parent


def _read(file: str) -> str | None:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def inputs_of(registered: bytes) -> dict[str, Any] | None:
    """The inputs a run was registered with. None if it was registered by an earlier release that did not store them."""
    data = decode(registered)
    found = data.get("inputs") if isinstance(data, dict) else None
    return dict(found) if isinstance(found, dict) else None


def kept_of(inputs: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The ports, `COMPONENT.PORT`, whose rows a run is to keep."""
    return tuple(str(name) for name in (inputs or {}).get("keep") or ())


class Unlooked:
    """A catalog that does not look at files and tables. A run continues with what it was checked against when it started,
    even if its inputs have been moved since."""

    def __init__(self, catalog: ComponentCatalog) -> None:
        self._catalog = catalog
        self.types = catalog.types
        self.describe = catalog.describe
        self.ports = catalog.ports

    def infer(
        self,
        type: str,
        params: Mapping[str, Any],
        inputs: Mapping[str, Schema | None],
        outputs: tuple[str, ...],
        folder: Path,
        declared: Mapping[str, Schema] = NO_SCHEMAS,
        engine: str = "duckdb",
    ) -> Inferred:
        return Inferred()


@frozen
class ProjectFiles:
    """For the project of a document: its address, its files on this machine, and the document's folder among them."""

    root: str
    unpacked: Path
    folder: Path

    def text(self, address: str) -> str | None:
        inner = os.path.normpath(address).removeprefix(f"{self.root}/")
        try:
            return (self.unpacked / inner).read_text(encoding="utf-8") if is_decent(inner) else None
        except (OSError, UnicodeDecodeError):
            return None


class Documents:
    """Compiles pinned documents, each text once.

    Law: with `reads_files` off, no file of this machine is read, looked for or followed, whatever a document names: its
    author is on another machine, and only what came with it counts. Servers and workers run like that."""

    def __init__(
        self,
        catalog: ToolCatalog,
        components: ComponentCatalog | None = None,
        *,
        strict: bool = False,
        reads_files: bool = True,
        runs: bool = True,
        projects: ProjectFolders | None = None,
        base: Path | None = None,
        nowhere: Path | None = None,
        caller: Path | None = None,
    ) -> None:
        """`reads_files`: see above. `runs`: documents compiled here also run here, and so have the secrets written into
        them. `projects`: where the files of projects are on this machine. `base`: where relative paths lead in catalog
        documents that belong to no project. `nowhere`: an empty folder. `caller`: the working folder of whoever runs the
        documents that are read here."""
        self._catalog = catalog
        self._components = components
        self._strict = strict
        self._reads_files = reads_files
        self._runs = runs
        self._projects = projects
        self._base = base
        self._nowhere = nowhere or Path(os.devnull)
        self._caller = caller
        self._compiled: dict[Pinned, tuple[Net, Compiled | CompiledJob]] = {}

    def compile(self, document: Pinned) -> tuple[Net, Compiled | CompiledJob]:
        found = self._compiled.get(document)
        if found is None:
            compiled = self._again(document)
            if compiled.net is None:
                raise DocumentInvalid(document.file, compiled.problems, compiled.text)
            found = self._compiled[document] = (compiled.net, compiled)
        return found

    async def aside(self, work: Callable[[], T]) -> T:
        """Read and check documents. A server does this outside its event loop."""
        return work()

    async def prepared(self, document: Pinned) -> tuple[Net, Compiled | CompiledJob]:
        """Like `compile`."""
        found = self._compiled.get(document)
        return found if found is not None else await self.aside(lambda: self.compile(document))

    async def sought(
        self, path: str, folder: Path, sent: Mapping[str, str] | None = None, project: ResultRef | None = None
    ) -> Pinned:
        """Like `find`."""
        return await self.aside(lambda: self.find(path, folder, sent, project))

    def _again(self, document: Pinned) -> Compiled | CompiledJob:
        files = self._files_of(document)
        if self._runs:
            document = document.with_secrets()[0]
        if kind_of(document.text) == "playbook":
            tools = self._with_plugins(self._catalog, document, files)
            return compile_text(document.text, document.file, tools, strict=self._strict)
        from penstock.dialects.job.compile import (
            compile_text as compile_job,  # Playbooks need none of it: start-up time.
        )

        texts = dict(document.sources) if self._reads_files else _by_whole_name(document.sources)
        are_all = bool(texts) or not self._reads_files or is_address(document.file)

        def read(path: Path) -> str | None:
            text = texts.get(str(path))
            return text if text is not None or files is None else files.text(str(path))

        return compile_job(
            document.text,
            document.file,
            Unlooked(self._with_plugins(self._known(), document, files)),
            strict=self._strict,
            read=read if are_all else None,
            whole=whole_folder if self._reads_files else normpath,
        )

    # ---- plug-ins

    def _with_plugins(self, catalog: C, document: Pinned, files: ProjectFiles | None) -> C:
        """What the document can use, including the plug-ins in its project or beside it. If a text merely claims to be a
        file of this machine, no code beside that file is run."""
        if files is not None:
            return at_folder(catalog, files.folder)
        return at_folder(catalog, document.folder) if self._reads_files else catalog

    def brought(self, document: Pinned) -> frozenset[str]:
        """The kinds of tools that only the plug-ins of the document have."""
        scoped = self._with_plugins(self._catalog, document, self._files_of(document))
        return frozenset() if scoped is self._catalog else frozenset(scoped.kinds()).difference(self._catalog.kinds())

    # ---- folders

    def folder(self, document: Pinned) -> Path:
        """The folder on this machine that the relative paths of a document start from."""
        return self.located(document.folder, document)

    def located(self, folder: Path, document: Pinned) -> Path:
        """The document's own folder, or that of something it includes, in a form in which files can be looked up."""
        if self._is_on_disk(folder):
            return folder
        address = whole_folder(folder if is_address(folder) else Path(f"{CATALOG}/", folder))
        found = in_project(address)
        if found is None or document.project is None or self._projects is None:
            inside = address.removeprefix(CATALOG).strip("/")
            leads_out = not is_address(address) or inside.split("/", 1)[0] == os.pardir
            base = None if self._base is None or leads_out else self._base / inside
            return CatalogFolder.made(Surroundings(address, "", None, base, self._base), self._nowhere)
        files = self._projects.folder(document.project)
        base = None if self._base is None else self._base / found.name
        return CatalogFolder.made(Surroundings(address, found.inner, files, base, base), self._nowhere)

    def bases(self, document: Pinned, compiled: Compiled | CompiledJob) -> Mapping[str, Base]:
        """Component -> where its relative paths start, if not in the folder of the document."""
        bases: Mapping[str, Base] = getattr(compiled, "bases", {})
        if self._is_on_disk(document.folder):
            return bases
        return {name: base.located(lambda folder: self.located(folder, document)) for name, base in bases.items()}

    def _is_on_disk(self, folder: Path) -> bool:
        """A text that was sent without an absolute path lies in no folder, not even in the working directory of the server."""
        return not is_address(folder) and (self._reads_files or folder.is_absolute())

    def _files_of(self, document: Pinned) -> ProjectFiles | None:
        found = None if document.project is None else in_project(document.file)
        if found is None or document.project is None or self._projects is None:
            return None
        root = self._projects.folder(document.project)
        around = Surroundings(str(document.folder), str(Path(found.inner).parent), root, None, None)
        return ProjectFiles(found.root, root, CatalogFolder.made(around, self._nowhere))

    def open(
        self,
        path: Path,
        context: Mapping[str, Any] | None = None,
        group: str | None = None,
    ) -> Pinned:
        """Open a file named by a person: problems carry the path as it was given, the pinned document the absolute one."""
        compiled = self.read(path, context, group)
        if compiled.net is None:
            raise DocumentInvalid(compiled.file, compiled.problems, compiled.text)
        if getattr(compiled, "is_joblet", False):
            raise Refused(
                f"`{path}` is a joblet, and runs only inside a job", hint='call it from a job as `type: "@name"`'
            )
        document = pinned_to(path, compiled)
        self._compiled[document] = (compiled.net, compiled)
        return document

    def read(
        self,
        path: Path,
        context: Mapping[str, Any] | None = None,
        group: str | None = None,
        *,
        looks: bool = True,
    ) -> Compiled | CompiledJob:
        """A file, compiled, with its problems, of whatever severity. `looks`: it would run on this machine, so the files it
        names are checked."""
        if kind_of_file(path) == "playbook":
            tools = at_folder(self._catalog, path.parent)
            found = compile_file(path, tools, strict=self._strict, looks=looks, caller=self._caller)
            if kind_of(found.text) == "playbook":
                return found
            from penstock.dialects.job.compile import (
                compile_text as compile_job,  # Playbooks need none of it: start-up time.
            )

            # It came through a pipe, which can be read only once and has been.
            return self._job(path, lambda more: compile_job(found.text, found.file, **more), context, group)
        from penstock.dialects.job.compile import (
            compile_file as compile_job_file,  # Playbooks need none of it: start-up time.
        )

        return self._job(path, lambda more: compile_job_file(path, looks=looks, **more), context, group)

    def _job(
        self,
        path: Path,
        compile_with: Callable[[dict[str, Any]], CompiledJob],
        context: Mapping[str, Any] | None,
        group: str | None,
    ) -> CompiledJob:
        """The values of a context group are only known once the document has been read, so it is then compiled again with
        them."""
        more: dict[str, Any] = {"catalog": at_folder(self._known(), path.parent), "strict": self._strict}
        compiled = compile_with({**more, "context": context})
        if compiled.net is not None and group in compiled.net.contexts:
            compiled = compile_with({**more, "context": merge_deeply(compiled.net.contexts[group], context or {})})
        return compiled

    def hold(self, document: Pinned, net: Net, compiled: Compiled | CompiledJob) -> None:
        """Run this net, a part of the document, under the document's name."""
        self._compiled[document] = (net, compiled)

    def find(
        self, path: str, folder: Path, sent: Mapping[str, str] | None = None, project: ResultRef | None = None
    ) -> Pinned:
        """A document by path: relative to the calling file's folder, with or without `.yaml`. `sent`: file -> text of those
        that came with the run, from a machine whose files cannot be read here. `project`: that of the calling document; a
        called document is taken from the same version. A path that is no file is looked for among the names that documents
        give themselves: those of the project around the calling file, or those that came along."""
        if is_address(folder):
            return self._of_project(path, folder, project)
        tried = []
        texts = _by_whole_name((sent or {}).items())
        for name in (path, f"{path}.yaml", f"{path}.yml"):
            candidate = (folder / name).expanduser() if self._reads_files else folder / name
            tried.append(str(candidate))
            file = normpath(candidate)
            if file in texts:
                return self._sent(file, texts)
            if self._reads_files and candidate.is_file():
                return self._found(candidate)
        if (elsewhere := self._elsewhere(path)) is not None:
            return elsewhere
        named = named_among(texts.items(), path)
        if named is not None:
            return self._sent(named, texts)
        if self._reads_files and (named := named_below(folder, path)) is not None:
            return self._found(Path(named))
        where = " and for documents with that `metadata.path`"
        where += (
            f" below `{project_folder(folder)}`" if self._reads_files else " among those that came along with the run"
        )
        raise Refused(f"there is no document `{path}`", hint="looked for " + ", ".join(tried) + where + self._also)

    _also = ""
    """Where else a document is looked for, in the words of a hint."""

    def _elsewhere(self, path: str) -> Pinned | None:
        """A document that is found by its name before the files of the project are looked through."""
        return None

    def _of_project(self, path: str, folder: Path, project: ResultRef | None) -> Pinned:
        wanted, here = in_project(folder / path), in_project(folder)
        if project is None or self._projects is None or wanted is None or here is None or wanted.root != here.root:
            raise Refused(f"there is no document `{path}`", hint="only the files of a project can be reached from here")
        files = ProjectFiles(wanted.root, self._projects.folder(project), folder)
        for name in (wanted.inner, f"{wanted.inner}.yaml", f"{wanted.inner}.yml"):
            file = f"{wanted.root}/{name}"
            if (text := files.text(file)) is not None:
                return self.with_joblets(Pinned(file, text, (), project))
        if (elsewhere := self._elsewhere(path)) is not None:
            return elsewhere
        named = named_below(files.unpacked, path)
        if named is not None:
            inner = Path(named).relative_to(files.unpacked.resolve()).as_posix()
            return self.with_joblets(
                Pinned(f"{wanted.root}/{inner}", files.text(f"{wanted.root}/{inner}") or "", (), project)
            )
        raise Refused(
            f"there is no document `{path}`",
            hint=f"looked for `{wanted.inner}` and for that `metadata.path` in version {wanted.version} of the project"
            + self._also,
        )

    def with_joblets(self, document: Pinned) -> Pinned:
        """The document pinned to the joblets it includes, too."""
        if kind_of(document.text) == "playbook":
            return document
        _, compiled = self.compile(document)
        return replace(document, sources=tuple(getattr(compiled, "sources", {}).items()))

    def _sent(self, file: str, sent: Mapping[str, str]) -> Pinned:
        """Pinned as if it had been found in a file: to the text and, for a job, its joblets."""
        text = sent[file]
        if kind_of(text) == "playbook":
            return Pinned(file, text)
        _, compiled = self.compile(Pinned(file, text, tuple(sent.items())))
        return Pinned(file, text, tuple(getattr(compiled, "sources", {}).items()))

    def _found(self, path: Path) -> Pinned:
        return self.with_joblets(Pinned(str(path.resolve()), path.read_text(encoding="utf-8")))

    def _known(self) -> ComponentCatalog:
        if self._components is None:
            raise Refused("jobs cannot be compiled here: no components are known")
        return self._components


def pinned_to(path: Path, compiled: Compiled | CompiledJob) -> Pinned:
    """A file of this machine, with the text that was read."""
    sources: Mapping[str, str] = getattr(compiled, "sources", {})
    return Pinned(str(path.resolve()), compiled.text, tuple(sources.items()))


def _by_whole_name(sources: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {normpath(file): text for file, text in sources}
