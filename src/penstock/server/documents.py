"""Documents as executions hold them: pinned to the text they started with, compiled once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.dialects.inline_secrets import masked
from penstock.dialects.literal_secrets import MASK, literal_secrets, restored_text
from penstock.dialects.playbook import Compiled, compile_file, compile_text
from penstock.dialects.problems import Problem, Severity
from penstock.dialects.sniff import kind_of, kind_of_file
from penstock.kernel.errors import Refused
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap, merge_deeply
from penstock.ports.components import NO_SCHEMAS, ComponentCatalog, Inferred
from penstock.ports.plugins import ToolCatalog
from penstock.ports.results import decode, encode
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from penstock.dialects.job.compile import CompiledJob


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
    """The text an execution started with, and where it came from: relative paths and error messages need the latter.

    `sources` are the joblets that a job takes in, by file: a run is pinned to those, too.
    """

    file: str
    text: str
    sources: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> JsonMap:
        if not self.sources:
            return {"file": self.file, "text": self.text}
        return {"file": self.file, "text": self.text, "sources": dict(self.sources)}

    def to_bytes(self) -> bytes:
        return encode(self.as_json())

    @staticmethod
    def from_bytes(data: bytes) -> Pinned:
        return Pinned.from_mapping(decode(data))

    @staticmethod
    def from_mapping(data: Any) -> Pinned:
        assert isinstance(data, Mapping)
        sources = data.get("sources") or {}
        return Pinned(str(data["file"]), str(data["text"]), tuple((str(k), str(v)) for k, v in sources.items()))

    def as_kept(self) -> Pinned:
        """What goes into the log: the document without the secrets that were written into it."""
        return Pinned(self.file, masked(self.text), tuple((file, masked(text)) for file, text in self.sources))

    def with_secrets(self) -> tuple[Pinned, list[str]]:
        """As it was before it was kept, as far as the files still say it; and the parameters whose secrets are gone."""
        text, missing = restored_text(self.text, _read(self.file) if MASK in self.text else None)
        sources = []
        for file, kept in self.sources:
            joblet, more = restored_text(kept, _read(file) if MASK in kept else None)
            sources.append((file, joblet))
            missing += more
        return Pinned(self.file, text, tuple(sources)), missing

    def secrets(self) -> list[str]:
        """Those that were written into its parameters. Refused when they are gone from the file: without them nothing can run."""
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


class Unlooked:
    """A catalog that does not look at files and tables. A run goes on with what it was checked against when it started,
    though its inputs may have been moved away since."""

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
    ) -> Inferred:
        return Inferred()


class Documents:
    """Compiles pinned documents, each text once."""

    def __init__(
        self, catalog: ToolCatalog, components: ComponentCatalog | None = None, *, strict: bool = False
    ) -> None:
        self._catalog = catalog
        self._components = components
        self._strict = strict
        self._compiled: dict[Pinned, tuple[Net, Compiled | CompiledJob]] = {}

    def compile(self, document: Pinned) -> tuple[Net, Compiled | CompiledJob]:
        found = self._compiled.get(document)
        if found is None:
            compiled = self._again(document)
            if compiled.net is None:
                raise DocumentInvalid(document.file, compiled.problems, compiled.text)
            found = self._compiled[document] = (compiled.net, compiled)
        return found

    def _again(self, document: Pinned) -> Compiled | CompiledJob:
        document = document.with_secrets()[0]
        if kind_of(document.text) == "playbook":
            return compile_text(document.text, document.file, self._catalog, strict=self._strict)
        from penstock.dialects.job.compile import compile_text as compile_job

        texts = dict(document.sources)
        return compile_job(
            document.text,
            document.file,
            Unlooked(self._known()),
            strict=self._strict,
            read=(lambda path: texts.get(str(path))) if texts else None,
        )

    def open(self, path: Path, context: Mapping[str, Any] | None = None, group: str | None = None) -> Pinned:
        """A file as a person names it: problems carry the path as it was given, the pinned document the whole one."""
        compiled: Compiled | CompiledJob
        sources: dict[str, str] = {}
        if kind_of_file(path) == "playbook":
            compiled = compile_file(path, self._catalog, strict=self._strict)
            if kind_of(compiled.text) != "playbook":  # A pipe can be read only once, and by now it has been.
                from penstock.dialects.job.compile import compile_text as compile_job

                text, file = compiled.text, str(path)
                compiled = self._job(lambda more: compile_job(text, file, **more), context, group)
                sources = compiled.sources
        else:
            from penstock.dialects.job.compile import compile_file as compile_job_file

            compiled = self._job(lambda more: compile_job_file(path, **more), context, group)
            sources = compiled.sources
        if compiled.net is None:
            raise DocumentInvalid(compiled.file, compiled.problems, compiled.text)
        if getattr(compiled, "is_joblet", False):
            raise Refused(
                f"`{path}` is a joblet, and runs only inside a job", hint='call it from a job as `type: "@name"`'
            )
        document = Pinned(str(path.resolve()), compiled.text, tuple(sources.items()))
        self._compiled[document] = (compiled.net, compiled)
        return document

    def _job(
        self,
        compile_with: Callable[[dict[str, Any]], CompiledJob],
        context: Mapping[str, Any] | None,
        group: str | None,
    ) -> CompiledJob:
        """What a context group says is known only once the document has been read: then it is looked at again with it."""
        more: dict[str, Any] = {"catalog": self._known(), "strict": self._strict}
        compiled = compile_with({**more, "context": context})
        if compiled.net is not None and group in compiled.net.contexts:
            compiled = compile_with({**more, "context": merge_deeply(compiled.net.contexts[group], context or {})})
        return compiled

    def hold(self, document: Pinned, net: Net, compiled: Compiled | CompiledJob) -> None:
        """Run this net under the document's name: part of what it says."""
        self._compiled[document] = (net, compiled)

    def find(self, path: str, folder: Path, sent: Mapping[str, str] | None = None) -> Pinned:
        """A document by path: relative to the calling file's folder, with or without `.yaml`.

        `sent`: file -> text of those that came along with the run, from a machine whose files cannot be read here.
        """
        tried = []
        for name in (path, f"{path}.yaml", f"{path}.yml"):
            candidate = (folder / name).expanduser()
            tried.append(str(candidate))
            file = normpath(candidate)
            if sent and file in sent:
                return self._sent(file, sent)
            if candidate.is_file():
                return self._found(candidate)
        raise Refused(f"there is no document `{path}`", hint="looked at " + ", ".join(tried))

    def _sent(self, file: str, sent: Mapping[str, str]) -> Pinned:
        """Pinned to what it would be pinned to if it were found in a file: the text, and of a job its joblets."""
        text = sent[file]
        if kind_of(text) == "playbook":
            return Pinned(file, text)
        _, compiled = self.compile(Pinned(file, text, tuple(sent.items())))
        return Pinned(file, text, tuple(getattr(compiled, "sources", {}).items()))

    def _found(self, path: Path) -> Pinned:
        text = path.read_text(encoding="utf-8")
        document = Pinned(str(path.resolve()), text)
        if kind_of(text) == "playbook":
            return document
        _, compiled = self.compile(document)
        sources = getattr(compiled, "sources", {})
        return Pinned(document.file, text, tuple(sources.items())) if sources else document

    def _known(self) -> ComponentCatalog:
        if self._components is None:
            raise Refused("jobs cannot be compiled here: no components are known")
        return self._components
