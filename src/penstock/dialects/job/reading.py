"""Reading values at the door: each comes out typed, or is reported and comes out as None. Reading never stops at a problem.

Problems of structure begin with a NAME that people search for (`PORT_ARITY: …`); `codes.NAMES` gives each its code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from penstock.dialects.job.codes import NAMES
from penstock.dialects.job.words import SCOPES, SYNONYMS
from penstock.dialects.playbook.reading import did_you_mean, is_template, listed
from penstock.dialects.playbook.word import Strictness
from penstock.dialects.problems import Findings, Place, Problem, Severity, closest
from penstock.dialects.source import SourceNode
from penstock.kernel.errors import PenstockError
from penstock.ports.components import ComponentCatalog, ComponentDescription

__all__ = ["Reading", "did_you_mean", "is_template", "listed"]

E = TypeVar("E", bound=Enum)

_NAME = re.compile(r"[^\W\d][\w-]*\Z")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)\s*\Z", re.IGNORECASE)
_UNITS = {
    "b": "B",
    "kb": "KB",
    "mb": "MB",
    "gb": "GB",
    "tb": "TB",
    "kib": "KiB",
    "mib": "MiB",
    "gib": "GiB",
    "tib": "TiB",
}


class Reading:
    def __init__(self, findings: Findings, catalog: ComponentCatalog) -> None:
        self.findings = findings
        self.catalog = catalog
        self._described: dict[str, ComponentDescription | None] = {}
        self._broken: set[str] = set()

    def report(
        self,
        name: str,
        message: str,
        place: Place,
        *,
        label: str = "",
        hint: str = "",
        rewrite: str = "",
        severity: Severity = Severity.ERROR,
    ) -> None:
        """A problem of structure, by its NAME."""
        self.findings.add(Problem(NAMES[name], severity, f"{name}: {message}", place, label, hint, rewrite))

    def words(self, node: SourceNode, scope_name: str, skip: Iterable[str] = ()) -> None:
        """Report every key that the scope does not know, and every required one that is missing."""
        scope = SCOPES[scope_name]
        skipped = set(skip)
        for key in node.entries:
            if key not in scope.words and key not in skipped:
                self._unknown_word(node, key, scope_name)
        for name, word in scope.words.items():
            if word.required and name not in skipped and name not in node.entries:
                hint = f"`{name}`: {word.about}"
                self.findings.error("J0103", f"{scope.title} has no `{name}`", node.place, hint=hint)

    def _unknown_word(self, node: SourceNode, key: str, scope_name: str) -> None:
        scope = SCOPES[scope_name]
        if scope.strictness is Strictness.OPEN:
            return
        meant = SYNONYMS.get(scope_name, {}).get(key) or closest(key, scope.words)
        label = f"did you mean `{meant}`?" if meant else ""
        hint = f"{scope.title} takes {listed(scope.words)}"
        code = "J0002" if scope_name in ("job", "joblet") else "J0102"
        self.findings.error(code, f"`{key}` is not a word of {scope.title}", node.keys[key], label=label, hint=hint)

    def wrong_shape(self, node: SourceNode, what: str, expected: str, hint: str = "") -> None:
        self.findings.error("J0101", f"{what} must be {expected}, not {node.noun}", node.place, hint=hint)

    def mapping(self, node: SourceNode | None, what: str) -> SourceNode | None:
        if node is None or node.is_null:
            return None
        if node.kind != "mapping":
            self.wrong_shape(node, what, "a mapping")
            return None
        return node

    def section(self, parent: SourceNode, key: str, scope_name: str) -> SourceNode | None:
        """The mapping under `key`, with its words checked."""
        node = self.mapping(parent.get(key), f"`{key}`")
        if node is not None:
            self.words(node, scope_name)
        return node

    def text(self, node: SourceNode | None, what: str) -> str | None:
        if node is None:
            return None
        text = node.text()
        if text is None:
            self.wrong_shape(node, what, "text")
            return None
        if not text.strip():
            self.findings.error("J0101", f"{what} is empty", node.place)
            return None
        return text

    def texts(self, node: SourceNode | None, what: str) -> list[SourceNode]:
        """One text, or a list of them."""
        if node is None or node.is_null:
            return []
        if node.kind == "sequence":
            return [item for item in node.items if self.text(item, f"an entry of {what}") is not None]
        return [node] if self.text(node, what) is not None else []

    def name(self, node: SourceNode, what: str) -> str | None:
        """A name that links, ids and expressions can carry. Two underscores in front are what joblets put there."""
        value = node.value
        is_number = node.kind == "scalar" and value is not None and not isinstance(value, str)
        text = str(value) if is_number else self.text(node, what)
        if text is None:
            return None
        if not _NAME.match(text) or text.startswith("__"):
            hint = "a name begins with a letter and goes on with letters, digits, `_` or `-`; `__` in front is kept for joblets"
            self.report("BAD_NAME", f"`{text}` cannot be {what}", node.place, hint=hint)
            return None
        return text

    def choice(self, node: SourceNode | None, what: str, values: Iterable[str]) -> str | None:
        if node is None or node.is_null:
            return None
        allowed = list(values)
        text = str(node.value) if node.kind == "scalar" else None
        if text in allowed:
            return text
        shown = node.noun if text is None else f"`{text}`"
        self.findings.error(
            "J0104", f"{shown} is not {what}", node.place,
            label=did_you_mean(text or "", allowed), hint=f"it is one of {listed(allowed)}",
        )  # fmt: skip
        return None

    def enum(self, node: SourceNode | None, what: str, kind: type[E]) -> E | None:
        found = self.choice(node, what, [str(member.value) for member in kind])
        return None if found is None else kind(found)

    def flag(self, node: SourceNode | None, what: str, default: bool) -> bool:
        if node is None or node.is_null:
            return default
        if not isinstance(node.value, bool):
            self.wrong_shape(node, what, "`true` or `false`")
            return default
        return node.value

    def whole(self, node: SourceNode | None, what: str, least: int = 1) -> int | None:
        if node is None or node.is_null:
            return None
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong_shape(node, what, "a whole number")
            return None
        if value < least:
            self.findings.error("J0105", f"{what} must be at least {least}, not `{value}`", node.place)
            return None
        return value

    def size(self, node: SourceNode | None, what: str) -> str | None:
        """An amount of memory: `256MB`, `1.5GB`, or a number of bytes."""
        if node is None or node.is_null:
            return None
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return f"{value}B"
        found = _SIZE.match(value) if isinstance(value, str) else None
        if found is None or not float(found[1]):
            shown = f"`{value}`" if node.kind == "scalar" else node.noun
            hint = "a number with a unit, such as `256MB` or `2GB`"
            self.findings.error("J0107", f"{what} cannot be {shown}", node.place, hint=hint)
            return None
        return f"{found[1]}{_UNITS[found[2].lower()]}"

    def warn_unrendered(self, node: SourceNode, what: str) -> None:
        """Say where a template stands that nobody renders: it would reach the run as the text it is."""
        waiting = [node]
        while waiting:
            here = waiting.pop()
            waiting += [*here.items, *here.entries.values()]
            if is_template(here):
                message = f"templates in {what} are not rendered"
                self.findings.warning("J0106", message, here.place, label="this stays text")

    def describe(self, type_: str, place: Place) -> ComponentDescription | None:
        """What the catalog says of a type, asked once; one that cannot be loaded is reported where it is first used."""
        if type_ not in self._described:
            try:
                self._described[type_] = self.catalog.describe(type_)
            except PenstockError as error:
                self._described[type_] = None
                self._broken.add(type_)
                hint = error.hint or ""
                self.report(
                    "BROKEN_TYPE", f"the component `{type_}` cannot be loaded: {error.message}", place, hint=hint
                )
        if self._described[type_] is None and type_ not in self._broken:
            self._unknown_type(type_, place)
        return self._described[type_]

    def _unknown_type(self, type_: str, place: Place) -> None:
        types = self.catalog.types()
        label = did_you_mean(type_, types)
        hint = "" if label else _hint_of_type(type_, types)
        self.report("UNKNOWN_TYPE", f"there is no component of type `{type_}`", place, label=label, hint=hint)


_MEANT = {
    "csv": "read_csv", "csv_input": "read_csv", "tfileinputdelimited": "read_csv", "tfileoutputdelimited": "write_csv",
    "tmap": "map", "tfilterrow": "filter", "taggregaterow": "aggregate", "tsortrow": "sort", "tuniqrow": "unique",
    "tunite": "union", "treplicate": "replicate", "tlogrow": "log_rows", "tjava": "python", "tjavarow": "python",
    "tdie": "die", "twarn": "warn", "tprejob": "pre_job", "tpostjob": "post_job", "tfilelist": "iterate_files",
    "tflowtoiterate": "iterate_rows", "tloop": "iterate_range", "trunjob": "run_job",
    "tsetglobalvar": "set_global", "tcontextload": "context_load", "tsleep": "sleep", "tjoin": "join",
    "trowgenerator": "generate_rows", "tfixedflowinput": "fixed_rows", "group_by": "aggregate", "where": "filter",
    "order_by": "sort", "distinct": "unique", "rename": "select", "extract": "read_csv", "load": "write_csv",
}  # fmt: skip


def _hint_of_type(type_: str, types: list[str]) -> str:
    meant = _MEANT.get(type_.casefold())
    if meant in types:
        return f"what you look for may be `{meant}`"
    return f"installed are {listed(sorted(types), most=100)}; a joblet is written `@name`"
