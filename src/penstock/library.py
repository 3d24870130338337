"""Documents as people open them: a playbook by the playbooks' compiler, a job or joblet by the jobs'."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.dialects.sniff import kind_of, kind_of_file
from penstock.kernel.errors import Refused

if TYPE_CHECKING:
    from penstock.dialects.job import CompiledJob
    from penstock.dialects.playbook import Compiled


class _WhenAsked:
    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)


class Library:
    """The catalogs, each made when the first document asks for it."""

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._tools: Any = None
        self._components: Any = None

    @property
    def tools(self) -> Any:
        if self._tools is None:
            from penstock.tools.registry import Registry

            self._tools = Registry()
        return self._tools

    @property
    def components(self) -> Any:
        if self._components is None:
            from penstock.components.registry import ComponentRegistry

            self._components = ComponentRegistry()
        return self._components

    @property
    def components_when_asked(self) -> Any:
        """A playbook asks only if one of its tasks runs a job."""
        return _WhenAsked(lambda: self.components)

    def compiled(self, path: Path) -> Compiled | CompiledJob:
        """With its problems, whatever they are."""
        if kind_of_file(path) == "playbook":
            from penstock.dialects.playbook import compile_file

            compiled = compile_file(path, self.tools.at(path.parent), strict=self._strict)
            if kind_of(compiled.text) == "playbook":
                return compiled
            from penstock.dialects.job import compile_text  # It came through a pipe, which is read once.

            components = self.components.at(path.parent)
            return compile_text(compiled.text, compiled.file, components, strict=self._strict)
        return self._job(path)

    def _job(self, path: Path) -> CompiledJob:
        from penstock.dialects.job import compile_file

        return compile_file(path, self.components.at(path.parent), strict=self._strict)

    def valid(self, path: Path) -> Compiled | CompiledJob:
        """Raises DocumentInvalid, which tells all problems."""
        return _checked(self.compiled(path))

    def valid_job(self, path: Path, what: str) -> CompiledJob:
        """`what` a playbook has none of, such as "lineage"."""
        from penstock.dialects.job import CompiledJob

        found = self.valid(path)
        if not isinstance(found, CompiledJob):
            raise Refused(f"`{path}` is a playbook, which has no {what}", "give a job: a file with `components`")
        return found


def sources_of(compiled: Compiled | CompiledJob) -> dict[str, str]:
    """File -> text, of every file that a problem may lie in."""
    return {compiled.file: compiled.text, **getattr(compiled, "texts", {})}


def _checked(compiled: Compiled | CompiledJob) -> Compiled | CompiledJob:
    if compiled.net is None:
        from penstock.server.documents import DocumentInvalid

        raise DocumentInvalid(compiled.file, compiled.problems, compiled.text)
    return compiled
