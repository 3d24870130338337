"""Documents by name: those that a server keeps, beside those that come with a request.

A document of the catalog has no folder. It goes by `catalog:/PATH@VERSION`, and what it calls by a relative path is looked for
beside it in the catalog, then in the catalog as a whole. What a document from a client calls is looked for among the sources that
came with it, then in the catalog; never in the files of this machine.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kernel.errors import Refused
from penstock.kernel.net import Net
from penstock.ports.components import ComponentCatalog
from penstock.ports.control import ControlStore, Filed
from penstock.ports.plugins import ToolCatalog
from penstock.server.documents import Documents, Pinned

if TYPE_CHECKING:
    from penstock.dialects.job.compile import CompiledJob
    from penstock.dialects.playbook import Compiled

MARK = "catalog:"
MOST_COMPILED = 500
"""So many documents are kept compiled; the others are compiled again when they are needed."""


class NotFiled(Refused):
    """The catalog has no such document, or not in that version."""


class CatalogDocuments(Documents):
    def __init__(self, tools: ToolCatalog, components: ComponentCatalog, control: ControlStore) -> None:
        super().__init__(tools, components, reads_files=False)
        self._control = control

    def compile(self, document: Pinned) -> tuple[Net, Compiled | CompiledJob]:
        found = super().compile(document)
        while len(self._compiled) > MOST_COMPILED:
            self._compiled.pop(next(iter(self._compiled)), None)
        return found

    def examined(self, document: Pinned, *, strict: bool = False) -> Compiled | CompiledJob:
        """With all its problems, whatever they are."""
        return Documents(self._catalog, self._components, strict=strict, reads_files=False)._again(document)

    def filed(self, path: str, version: int | None = None) -> Pinned:
        found = self._control.document(path, version)
        if found is None:
            which = f"`{path}`" if version is None else f"version {version} of `{path}`"
            raise NotFiled(f"there is no {which} in the catalog", hint="`penstock catalog list` shows what is there")
        return pinned(found)

    def find(self, path: str, folder: Path, sent: Mapping[str, str] | None = None) -> Pinned:
        if not str(folder).startswith(MARK):
            try:
                return super().find(path, folder, sent)
            except Refused as error:
                found = self._named(path)
                if found is None:
                    raise Refused(error.message, hint=f"{error.hint}, and in the catalog") from error
                return found
        beside = posixpath.normpath(posixpath.join(str(folder).removeprefix(MARK).strip("/"), path))
        found = self._named(beside) or self._named(path)
        if found is None:
            raise Refused(f"there is no document `{path}`", hint=f"looked for `{beside}` and `{path}` in the catalog")
        return found

    def _named(self, path: str) -> Pinned | None:
        plain = path.strip("/")
        for name in (plain, plain.removesuffix(".yaml").removesuffix(".yml")):
            found = self._control.document(name) if name else None
            if found is not None:
                return pinned(found)
        return None


def pinned(filed: Filed) -> Pinned:
    return Pinned(f"{MARK}/{filed.path}@{filed.version}", filed.text, tuple(filed.sources.items()))
