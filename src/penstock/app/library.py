"""Documents as people open them, with the tools and components of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from penstock.app.state_folder import home_for
from penstock.dialects.problems import Findings, Problem
from penstock.kernel.errors import Refused
from penstock.ports.ambient import SystemClock
from penstock.tools.registry import Registry

if TYPE_CHECKING:
    from penstock.components.registry import ComponentRegistry
    from penstock.dialects.job import CompiledJob
    from penstock.dialects.playbook import Compiled
    from penstock.kernel.values import JsonMap
    from penstock.keychain import Inputs, KeychainProblem
    from penstock.server.documents import Documents, Pinned


UNDECLARED = frozenset({"P0708", "J0706"})


class Examined(NamedTuple):
    file: str
    problems: tuple[Problem, ...]
    texts: Mapping[str, str]
    """File -> text, of every file that a problem may lie in."""


async def _missing(
    home: Path, documents: Documents, entries: Sequence[JsonMap], inputs: Inputs, document: Pinned
) -> list[KeychainProblem]:
    from penstock.keychain import missing  # Commands for a server do not need it.

    return await missing(
        entries,
        inputs=inputs,
        folder=documents.folder(document),
        home=home,
        environ=os.environ,
        clock=SystemClock(),
    )


def callers_folder() -> Path | None:
    """Where this process was started, or moved to since; None when that folder was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


class Lazy:
    """A value that is created on first use."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.made: Any = None
        """None until the first use."""

    def __getattr__(self, name: str) -> Any:
        if self.made is None:
            self.made = self._make()
        value = getattr(self.made, name)
        if isinstance(value, MethodType):
            setattr(self, name, value)  # The next access does not come through here.
        return value


def lazy_components() -> ComponentRegistry:
    """The components of this machine. A playbook never asks for them, and so starts without loading DuckDB."""

    def made() -> ComponentRegistry:
        from penstock.components.registry import ComponentRegistry  # Takes 0.2 s to import.

        return ComponentRegistry(with_lineage=False)

    return cast("ComponentRegistry", Lazy(made))


class Library:
    """The catalogs of tools and components, each created when the first document asks for it."""

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict

    @cached_property
    def tools(self) -> Any:
        return Registry()

    @cached_property
    def components(self) -> Any:
        from penstock.components.registry import ComponentRegistry  # Only jobs need components and DuckDB.

        return ComponentRegistry()

    @property
    def lazy_components(self) -> Any:
        """A playbook needs them only if one of its tasks runs a job."""
        return Lazy(lambda: self.components)

    def documents(self) -> Documents:
        from penstock.server.documents import Documents  # Commands for a server do not need it.

        return Documents(self.tools, self.lazy_components, strict=self._strict, caller=callers_folder())

    def compiled(self, path: Path, *, looks: bool = True) -> Compiled | CompiledJob:
        """The document with all of its problems. `looks`: check that the files it names exist on this machine."""
        return self.documents().read(path, looks=looks)

    async def examined(
        self,
        path: Path,
        inputs: Mapping[str, Any] | None = None,
        context: str | None = None,
        home: Path | None = None,
    ) -> Examined:
        """Everything that would stop a run of the document on this machine with these inputs, and everything suspicious; also in
        the documents that it calls by literal paths. `home` is the state folder with the stored secrets."""
        # Commands for a server do not need it.
        from penstock.server.calls import calls_of, input_problems, missing_secrets, secret_problems
        from penstock.server.child_execution import workload_of
        from penstock.server.documents import pinned_to

        documents = self.documents()
        compiled = documents.read(path, inputs, context)
        problems = Findings(compiled.problems)
        document, given = pinned_to(path, compiled), None
        if compiled.net is not None:
            problems.extend(input_problems(compiled.net, compiled.file, inputs or {}, context))
            known = context if context in compiled.net.contexts else None
            given = workload_of(compiled.net, inputs or {}, known)
        found = calls_of(documents, document, compiled, given)
        problems.extend(found.problems)
        look = partial(_missing, home or home_for(path), documents)
        missing = list(secret_problems(await missing_secrets(found.called, look)))
        problems = Findings([*_without_told(problems, missing), *missing])
        if self._strict:
            problems = problems.strict()
        return Examined(compiled.file, tuple(problems), {**sources_of(compiled), **found.texts})

    def valid(self, path: Path) -> Compiled | CompiledJob:
        """Raises DocumentInvalid, which has all problems."""
        return _checked(self.compiled(path))

    def valid_job(self, path: Path, what: str) -> CompiledJob:
        """`what`: a thing that playbooks do not have, such as "lineage"."""
        from penstock.dialects.job import CompiledJob  # Commands for a server do not need it.

        found = self.valid(path)
        if not isinstance(found, CompiledJob):
            raise Refused(f"`{path}` is a playbook, which has no {what}", "give a job: a file with `components`")
        return found


def _without_told(problems: Iterable[Problem], missing: Sequence[Problem]) -> list[Problem]:
    """Drops the warning that a secret is not declared where another problem says that it does not exist."""
    reported = {one.position for one in missing}
    return [one for one in problems if one.code not in UNDECLARED or one.position not in reported]


def sources_of(compiled: Compiled | CompiledJob) -> dict[str, str]:
    """File -> text, of every file that a problem may lie in."""
    return {compiled.file: compiled.text, **getattr(compiled, "texts", {})}


def _checked(compiled: Compiled | CompiledJob) -> Compiled | CompiledJob:
    if compiled.net is None:
        from penstock.server.documents import DocumentInvalid  # Commands for a server do not need it.

        raise DocumentInvalid(compiled.file, compiled.problems, compiled.text)
    return compiled
