"""What is known before the run: literals, templates that read only the context, and the folders of relative paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from penstock.dialects.job.expand import Expanded, Unit
from penstock.dialects.job.joblets import Whole
from penstock.dialects.source.node import SourceNode
from penstock.expr.budget import MAX_STEPS, Frame
from penstock.expr.errors import ExpressionError
from penstock.expr.lexer import is_template
from penstock.expr.scope import Names
from penstock.expr.template import render_within, roots
from penstock.kernel.values import JsonMap, merge_deeply
from penstock.ports.components import UNKNOWN
from penstock.ports.folders import Base, whole_folder
from penstock.ports.results import materialised

PLAN_STEPS: Final = 4 * MAX_STEPS
"""So much may be evaluated of a document before the run, all its templates together; the rest is left to the run."""


class Context:
    """The context as far as it is known, and what can be rendered with it."""

    def __init__(self, values: JsonMap) -> None:
        self._scope = Names({**values, "context": values})
        self._steps = PLAN_STEPS

    def value(self, node: SourceNode) -> Any:
        """The value with its templates filled in; `UNKNOWN` for each that depends on the run."""
        if node.kind == "mapping":
            return {key: self.value(inner) for key, inner in node.entries.items()}
        if node.kind == "sequence":
            return [self.value(item) for item in node.items]
        text = node.value
        if not isinstance(text, str) or not is_template(text):
            return text
        return self.text(text)

    def text(self, text: str) -> Any:
        frame = Frame(self._scope)
        frame.steps = allowed = min(self._steps, MAX_STEPS)
        try:
            if not roots(text) <= self._scope.keys():
                return UNKNOWN
            return materialised(render_within(text, frame))
        except ExpressionError:
            return UNKNOWN
        finally:
            self._steps -= allowed - max(frame.steps, 0)


def effective(defaults: JsonMap, given: Mapping[str, Any] | None) -> JsonMap:
    """As the run will have it: mappings merge, everything else is replaced."""
    return merge_deeply(defaults, given or {})


# ---- Folders: the relative paths of a component begin at the document they are written in (D56).


@dataclass(frozen=True, slots=True)
class Folders:
    job: Path
    bases: Mapping[str, Base] = field(default_factory=dict)

    def of(self, component: str, render: Callable[[str], Any]) -> Path:
        base = self.bases.get(component)
        return self.job if base is None else base.rendered(render)


def find_bases(expanded: Expanded, file: str, whole: Whole = whole_folder) -> dict[str, Base]:
    """Component -> where its paths begin, for those that differ from the job's own file."""

    @cache
    def folder(document: str) -> Path:
        # Whole and without links, as the run has the job's own.
        return Path(whole(str(Path(document).parent)))

    found: dict[str, Base] = {}
    for name, unit in expanded.units.items():
        own = folder(unit.level.file)
        borrowed = tuple((text, folder(lender)) for text, lender in unit.borrowed if folder(lender) != own)
        if borrowed or own != folder(file):
            found[name] = Base(own, borrowed)
    return found


def target_of(unit: Unit) -> SourceNode | None:
    """The parameter with the file or folder that a component of the families `write` and `file` makes."""
    description = unit.member.description
    if description is None or not description.makes_files or description.family not in ("write", "file"):
        return None
    return unit.params.get("to") or unit.params.get("path")


def written_files(expanded: Expanded, context: Context, folders: Folders) -> set[str]:
    """The whole paths that components of the job write to, as far as they are known before the run."""
    found = set()
    for unit in expanded.units.values():
        target = target_of(unit)
        path = None if target is None else context.value(target)
        if isinstance(path, str):
            found.add(os.path.abspath(folders.of(unit.name, context.text) / path))
    return found
