"""Reading values at the door: each comes out typed, or is reported and comes out as None. Reading never stops at a problem."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from penstock.dialects.playbook.refused import SYNONYMS, refusal
from penstock.dialects.playbook.word import Strictness
from penstock.dialects.playbook.words import SCOPES
from penstock.dialects.problems import Findings, Place, closest
from penstock.dialects.source import SourceNode
from penstock.expr.lexer import is_template as has_expression
from penstock.kernel.errors import PenstockError
from penstock.kernel.values import Condition
from penstock.ports.plugins import ToolCatalog, ToolDescription

E = TypeVar("E", bound=Enum)

_NAME = re.compile(r"[^\W\d][\w-]*\Z")

# Names that every expression already has a meaning for.
TAKEN_NAMES = frozenset(
    ("args", "ctx", "event", "execution", "execution_id", "iter", "keychain", "outcome", "output", "workload")
)


def is_template(node: SourceNode) -> bool:
    text = node.text()
    return text is not None and has_expression(text)


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    # Sorted, since sets have no order and of two equally close words always the same one should be shown.
    found = closest(word, sorted(candidates))
    return f"did you mean `{found}`?" if found else ""


def listed(words: Iterable[str], most: int = 16) -> str:
    every = list(words)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(f"`{word}`" for word in every[:most]) + more


class Reading:
    def __init__(self, findings: Findings, catalog: ToolCatalog) -> None:
        self.findings = findings
        self.catalog = catalog
        self.broken: set[str] = set()
        self._described: dict[str, ToolDescription | None] = {}

    def words(self, node: SourceNode, scope_name: str, skip: Iterable[str] = ()) -> None:
        """Report every key that the scope does not know, and every required one that is missing."""
        scope = SCOPES[scope_name]
        skipped = set(skip)
        for key in node.entries:
            if key not in scope.words and key not in skipped:
                self.unknown_word(node, key, scope_name)
        for name, word in scope.words.items():
            if word.required and name not in skipped and name not in node.entries:
                self.findings.error(
                    "P0105", f"{scope.title} has no `{name}`", node.place, hint=f"`{name}`: {word.about}"
                )

    def unknown_word(self, node: SourceNode, key: str, scope_name: str) -> None:
        scope = SCOPES[scope_name]
        place = node.keys[key]
        refused = refusal(scope_name, key, node)
        if refused is not None:
            self.findings.error(
                refused.code, refused.message, place, label=refused.label, hint=refused.hint, rewrite=refused.rewrite
            )
            return
        meant = SYNONYMS.get(scope_name, {}).get(key) or closest(key, scope.words)
        label = f"did you mean `{meant}`?" if meant else ""
        takes = f"{scope.title} takes {listed(scope.words)}"
        if scope.strictness is Strictness.CLOSED:
            code = "P0002" if scope_name == "root" else "P0102"
            self.findings.error(code, f"`{key}` is not a word of {scope.title}", place, label=label, hint=takes)
        elif meant:
            self.findings.warning("P0103", f"`{key}` looks like a misspelt word of {scope.title}", place, label=label)
        elif scope.strictness is Strictness.HINTS:
            self.findings.warning("P0104", f"`{key}` means nothing in {scope.title}", place, hint=takes)

    def wrong_shape(self, node: SourceNode, what: str, expected: str, hint: str = "", rewrite: str = "") -> None:
        message = f"{what} must be {expected}, not {node.noun}"
        self.findings.error("P0101", message, node.place, hint=hint, rewrite=rewrite)

    def mapping(self, node: SourceNode | None, what: str) -> SourceNode | None:
        if node is None or node.is_null:
            return None
        if node.kind != "mapping":
            self.wrong_shape(node, what, "a mapping")
            return None
        return node

    def section(self, parent: SourceNode, key: str, scope_name: str, what: str = "") -> SourceNode | None:
        """The mapping under `key`, with its words checked."""
        node = self.mapping(parent.get(key), what or f"`{key}`")
        if node is not None:
            self.words(node, scope_name)
        return node

    def items(self, node: SourceNode | None, what: str) -> list[SourceNode]:
        if node is None or node.is_null:
            return []
        if node.kind != "sequence":
            self.wrong_shape(node, what, "a list")
            return []
        return node.items

    def text(self, node: SourceNode | None, what: str) -> str | None:
        if node is None:
            return None
        text = node.text()
        if text is None:
            self.wrong_shape(node, what, "text")
            return None
        if not text.strip():
            self.findings.error("P0101", f"{what} is empty", node.place)
            return None
        return text

    def name(self, node: SourceNode, what: str) -> str | None:
        """A name that ids and expressions can carry: letters, digits, `_` and `-`."""
        value = node.value
        text = self.text(node, what) if isinstance(value, str) or value is None or node.kind != "scalar" else str(value)
        if text is None:
            return None
        if not _NAME.match(text):
            hint = "a name begins with a letter and goes on with letters, digits, `_` or `-`"
            self.findings.error("P0301", f"`{text}` cannot be {what}", node.place, hint=hint)
            return None
        if text in TAKEN_NAMES:
            self.findings.warning(
                "P0303", f"{what} is `{text}`, which expressions already have a meaning for", node.place,
                hint=f"`{{{{ {text} }}}}` will never read its result; choose another name",
            )  # fmt: skip
        return text

    def choice(self, node: SourceNode | None, what: str, values: Iterable[str], code: str = "P0106") -> str | None:
        if node is None or node.is_null:
            return None
        allowed = list(values)
        text = str(node.value) if node.kind == "scalar" else None
        if text in allowed:
            return text
        shown = node.noun if text is None else f"`{text}`"
        label = did_you_mean(text or "", allowed)
        self.findings.error(
            code, f"{shown} is not {what}", node.place, label=label, hint=f"it is one of {listed(allowed)}"
        )
        return None

    def enum(self, node: SourceNode | None, what: str, kind: type[E]) -> E | None:
        found = self.choice(node, what, [str(member.value) for member in kind])
        return None if found is None else kind(found)

    def whole(self, node: SourceNode | None, what: str, least: int = 1) -> int | None:
        if node is None or node.is_null:
            return None
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong_shape(node, what, "a whole number")
            return None
        if value < least:
            self.findings.error("P0107", f"{what} must be at least {least}, not `{value}`", node.place)
            return None
        return value

    def number(self, node: SourceNode | None, what: str, least: float = 0.0) -> float | None:
        if node is None or node.is_null:
            return None
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong_shape(node, what, "a number")
            return None
        if value < least:
            self.findings.error("P0107", f"{what} must be at least {least:g}, not `{value}`", node.place)
            return None
        return float(value)

    def condition(self, node: SourceNode | None, what: str) -> Condition | None:
        """A condition is text; the two constants may also be written as YAML booleans."""
        if node is None:
            return None
        if isinstance(node.value, bool):
            return "{{ true }}" if node.value else "{{ false }}"
        return self.text(node, what)

    def warn_unrendered(self, node: SourceNode, what: str) -> None:
        """Say where a template stands that nobody renders: it would reach the run as the text it is."""
        waiting = [value for key, value in node.entries.items() if key != "policy"]
        while waiting:
            here = waiting.pop()
            waiting += [*here.items, *here.entries.values()]
            if is_template(here):
                self.findings.warning(
                    "P0109", f"templates in {what} are not rendered", here.place, label="this stays text"
                )

    def describe(self, kind: str, place: Place) -> ToolDescription | None:
        """What the catalog says of a tool, asked once; a tool that cannot be loaded is reported where it is first used."""
        if kind not in self._described:
            try:
                self._described[kind] = self.catalog.describe(kind)
            except PenstockError as error:
                self._described[kind] = None
                self.broken.add(kind)
                self.findings.error(
                    "P0514", f"the tool `{kind}` cannot be loaded: {error.message}", place, hint=error.hint or ""
                )
        return self._described[kind]
