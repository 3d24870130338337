"""Readers of values: each value comes out typed, or is reported and comes out as None. Reading never stops at a problem.

Both languages are read with the same readers. What differs is in three tables that each brings along: its words, its words that
are easily written for others, and its codes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar
from unicodedata import normalize

from penstock.dialects.problems import Findings, Position, closest
from penstock.dialects.source.node import SourceNode
from penstock.dialects.words import (
    KEYCHAIN_KIND_ALIASES,
    KEYCHAIN_KINDS,
    KEYCHAIN_WITHOUT_EFFECT,
    KEYCHAIN_WORD_ALIASES,
    NO_GOOGLE,
    PROVIDER_PLUGINS,
    PROVIDERS,
    Scope,
    Strictness,
)
from penstock.expr.check import inspect
from penstock.expr.lexer import is_template as has_expression
from penstock.kernel.errors import PenstockError
from penstock.ports.plugins import offered

E = TypeVar("E", bound=Enum)
D_co = TypeVar("D_co", covariant=True)

LONGEST_S = 1e9
"""Thirty years: what takes longer is meant otherwise, and no clock of a database counts so far."""
_NAME = re.compile(r"[^\W\d][\w-]*\Z")
NAME_HINT = "a name begins with a letter and goes on with letters, digits, `_` or `-`"
COMPOSED_HINT = "an accent stands in it as a character of its own; type the letter with its accent as one (Unicode NFC)"


def is_template(node: SourceNode) -> bool:
    text = node.text()
    return text is not None and has_expression(text)


def texts_in(node: SourceNode) -> Iterator[SourceNode]:
    """Every text in a value, however deep; the values of mappings, not their keys."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if here.text() is not None:
            yield here
        waiting += [*here.items, *here.entries.values()]


def template_keys_in(node: SourceNode) -> Iterator[tuple[str, Position]]:
    """Every key with a template in it, however deep. Only values are rendered, so its braces would stay."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield from ((key, position) for key, position in here.keys.items() if has_expression(key))
        waiting += [*here.items, *here.entries.values()]


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    # Sorted, since sets have no order and of two equally close words always the same one should be shown.
    found = closest(word, sorted(candidates))
    return f"did you mean `{found}`?" if found else ""


def listed(words: Iterable[str], most: int = 16) -> str:
    every = list(words)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(f"`{word}`" for word in every[:most]) + more


class Catalog(Protocol[D_co]):
    def describe(self, name: str, /) -> D_co | None: ...


@dataclass(frozen=True, slots=True)
class Language:
    """What a document may say, and the codes of what is wrong with it."""

    scopes: Mapping[str, Scope]
    synonyms: Mapping[str, Mapping[str, str]]
    roots: frozenset[str]
    """The scopes that are a whole document."""
    unknown_section: str
    """The code of an unknown key at the root; the others speak for themselves."""
    unknown_word: str
    missing_word: str
    wrong_shape: str
    not_a_choice: str
    out_of_bounds: str
    unrendered: str


class Reader(ABC, Generic[D_co]):
    """`D_co` is what the catalog says of an installed tool or component."""

    language: Language

    def __init__(self, findings: Findings, descriptions: Catalog[D_co]) -> None:
        self.findings = findings
        self.broken: set[str] = set()
        """What is installed but cannot be loaded."""
        self._descriptions = descriptions
        self._described: dict[str, D_co | None] = {}

    def words(self, node: SourceNode, scope_name: str, skip: Iterable[str] = ()) -> None:
        """Report every key that the scope does not know, and every required one that is missing."""
        scope = self.language.scopes[scope_name]
        skipped = set(skip)
        for key in node.entries:
            if key not in scope.words and key not in skipped:
                self.unknown_word(node, key, scope_name)
        for name, word in scope.words.items():
            if word.required and name not in skipped and name not in node.entries:
                hint = f"`{name}`: {word.about}"
                self.findings.error(
                    self.language.missing_word, f"{scope.title} has no `{name}`", node.position, hint=hint
                )

    def unknown_word(self, node: SourceNode, key: str, scope_name: str) -> None:
        scope = self.language.scopes[scope_name]
        if scope.strictness is Strictness.CLOSED:
            meant = self.meant_word(key, scope_name)
            label = f"did you mean `{meant}`?" if meant else ""
            hint = f"{scope.title} takes {listed(scope.words)}"
            is_root = scope_name in self.language.roots
            code = self.language.unknown_section if is_root else self.language.unknown_word
            self.findings.error(code, f"`{key}` is not a word of {scope.title}", node.keys[key], label=label, hint=hint)

    def meant_word(self, key: str, scope_name: str) -> str | None:
        meant = self.language.synonyms.get(scope_name, {}).get(key)
        return meant or closest(key, self.language.scopes[scope_name].words)

    def wrong_shape(self, node: SourceNode, what: str, expected: str, hint: str = "", rewrite: str = "") -> None:
        message = f"{what} must be {expected}, not {node.noun}"
        self.findings.error(self.language.wrong_shape, message, node.position, hint=hint, rewrite=rewrite)

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
            self.findings.error(self.language.wrong_shape, f"{what} is empty", node.position)
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
        """A name that ids and expressions can carry: letters, digits, `_` and `-`."""
        is_number = node.kind == "scalar" and node.value is not None and not isinstance(node.value, str)
        text = str(node.value) if is_number else self.text(node, what)
        if text is None:
            return None
        if not _NAME.match(text):
            # A letter and its accent typed as two characters look just like the name that would be right.
            is_composable = _NAME.match(normalize("NFC", text)) is not None
            self.bad_name(text, what, node.position, COMPOSED_HINT if is_composable else NAME_HINT)
            return None
        return text

    @abstractmethod
    def bad_name(self, text: str, what: str, position: Position, hint: str = NAME_HINT) -> None:
        """Report a text that cannot be a name."""

    def choice(self, node: SourceNode | None, what: str, values: Iterable[str], code: str = "") -> str | None:
        if node is None or node.is_null:
            return None
        allowed = list(values)
        text = str(node.value) if node.kind == "scalar" else None
        if text in allowed:
            return text
        self.findings.error(
            code or self.language.not_a_choice, f"{node.shown} is not {what}", node.position,
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

    def whole(self, node: SourceNode | None, what: str, least: int = 1, most: int = 2**63 - 1) -> int | None:
        if node is None or node.is_null:
            return None
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong_shape(node, what, "a whole number")
            return None
        return value if self._is_within(node, what, value, least, most) else None

    def number(self, node: SourceNode | None, what: str, least: float = 0.0, most: float = LONGEST_S) -> float | None:
        if node is None or node.is_null:
            return None
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong_shape(node, what, "a number")
            return None
        return float(value) if self._is_within(node, what, value, least, most) else None

    def _is_within(self, node: SourceNode, what: str, value: float, least: float, most: float) -> bool:
        if least <= value <= most:
            return True
        bound = f"at most {most:.15g}" if value > most else f"at least {least:.15g}"
        self.findings.error(self.language.out_of_bounds, f"{what} must be {bound}, not `{value}`", node.position)
        return False

    def warn_unrendered(self, node: SourceNode, what: str, skip: Iterable[str] = ()) -> None:
        """Report a template in a place that is never rendered: the run would see its text."""
        message = f"templates in {what} are not rendered"
        for key, value in node.entries.items():
            for here in texts_in(value) if key not in skip else ():
                if is_template(here):
                    self.findings.warning(self.language.unrendered, message, here.position, label="this stays text")

    def describe(self, name: str, position: Position) -> D_co | None:
        """The catalog's description, looked up once; a plug-in that cannot be loaded is reported where it is first used."""
        if name not in self._described:
            try:
                self._described[name] = self._descriptions.describe(name)
            except PenstockError as error:
                self._described[name] = None
                self.broken.add(name)
                self.cannot_load(name, error, position)
        return self._described[name]

    @abstractmethod
    def cannot_load(self, name: str, error: PenstockError, position: Position) -> None:
        """Report a tool or component that is installed and broken."""


# ---- `keychain`: which secrets a document needs, and how each is found; never their values


def read_keychain(reading: Reader[Any], node: SourceNode | None) -> list[SourceNode]:
    """The entries that can be kept, each a mapping with a name of its own, in today's words."""
    found: dict[str, SourceNode] = {}
    for given in reading.items(node, "`keychain`"):
        if given.kind != "mapping":
            reading.wrong_shape(given, "a keychain entry", "a mapping")
            continue
        item = _in_our_words(reading, given)
        named, kind = item.get("name"), item.get("kind")
        for word, value in (("name", named), ("kind", kind)):
            if value is None:
                hint = "such as `{name: token, kind: env, var: API_TOKEN}`"
                reading.findings.error("P0901", f"this keychain entry has no `{word}`", item.position, hint=hint)
        name = None if named is None else reading.name(named, "the name of a keychain entry")
        if kind is not None:
            _check_kind(reading, item, kind)
        if name is None or named is None:
            continue
        if name in found:
            reading.findings.error("P0904", f"two keychain entries are called `{name}`", named.position)
            continue
        found[name] = item
    _check_order(reading, found)
    return list(found.values())


def _in_our_words(reading: Reader[Any], item: SourceNode) -> SourceNode:
    """An entry as it is read: other engines have other words for some."""
    entries, keys = dict(item.entries), dict(item.keys)

    def rename(word: str, to: str) -> None:
        if word in entries and to not in entries:
            entries[to], keys[to] = entries.pop(word), keys.pop(word)

    typed = entries.get("type")
    if typed is not None and "kind" not in entries:
        reading.findings.warning(
            "P0906", "`type` is read as `kind`", keys["type"], hint="write `kind`", rewrite=f"kind: {typed.value}"
        )
        rename("type", "kind")
    kind = entries.get("kind")
    written = None if kind is None else kind.text()
    if written in KEYCHAIN_WORD_ALIASES:
        entries.pop("type", None)  # What kind of login it is; whoever logs in knows.
    for word, to in KEYCHAIN_WORD_ALIASES.get(written or "", {}).items():
        rename(word, to)
    if kind is not None and written in KEYCHAIN_KIND_ALIASES:
        entries["kind"] = replace(kind, value=KEYCHAIN_KIND_ALIASES[written])
    for word in KEYCHAIN_WITHOUT_EFFECT:
        if word in entries and (word != "scope" or written != "oauth2" or "endpoint" in entries):
            del entries[word], keys[word]
    return replace(item, entries=entries, keys=keys)


def _check_kind(reading: Reader[Any], item: SourceNode, kind: SourceNode) -> None:
    scope = KEYCHAIN_KINDS.get(str(kind.value)) if kind.kind == "scalar" else None
    if scope is None:
        is_google = kind.kind == "scalar" and str(kind.value).startswith("google_")
        hint = NO_GOOGLE if is_google else f"it is one of {listed(KEYCHAIN_KINDS)}"
        label = "" if is_google else did_you_mean(str(kind.value), KEYCHAIN_KINDS)
        reading.findings.error("P0902", f"{kind.shown} is not a kind of secret", kind.position, label=label, hint=hint)
        return
    if kind.value == "static" and any(not is_template(leaf) for leaf in _values_of(item)):
        reading.findings.warning(
            "P0903", "this secret is written in the document itself", item.keys["kind"],
            hint="`static` is for tests; use `env`, `file` or `secret_manager`",
        )  # fmt: skip
    lacking = [name for name, word in scope.words.items() if word.required and name not in ("name", "kind")]
    lacking += [] if any(name in item.entries for name in scope.need_one_of) else scope.need_one_of[:1]
    for name in lacking:
        if name not in item.entries:
            reading.findings.error(
                "P0905",
                f"a `{kind.value}` entry has no `{name}`",
                item.position,
                hint=f"`{name}`: {scope.words[name].about}",
            )
    for key in item.entries:
        meant = None if key in scope.words else closest(key, scope.words)
        if meant:
            message = f"`{key}` looks like a misspelt word of a `{kind.value}` entry"
            reading.findings.warning("P0103", message, item.keys[key], label=f"did you mean `{meant}`?")
    _check_provider(reading, item.get("provider"))


def _values_of(item: SourceNode) -> Iterator[SourceNode]:
    """The values of a `static` entry, each by itself."""
    waiting = [node for name in ("value", "map") if (node := item.get(name)) is not None]
    while waiting:
        node = waiting.pop()
        if node.kind == "scalar":
            yield node
        waiting += [*node.items, *node.entries.values()]


def _check_provider(reading: Reader[Any], node: SourceNode | None) -> None:
    name = None if node is None or is_template(node) else node.text()
    if node is None or name is None or name in PROVIDERS:
        return
    installed = offered(PROVIDER_PLUGINS)
    if name not in installed:
        known = [one for one in PROVIDERS if one != "env"] + sorted(installed)
        *most, last = (f"`{one}`" for one in known)
        message = f"there is no provider `{name}` here; use {', '.join(most)} or {last}"
        hint = "keep the secret in one of them, or install a package that has the provider"
        reading.findings.error("P0907", message, node.position, label=did_you_mean(name, known), hint=hint)


def _check_order(reading: Reader[Any], entries: Mapping[str, SourceNode]) -> None:
    """An entry reads those above it."""
    reads = {name: _entries_read(item) for name, item in entries.items()}
    above: list[str] = []
    for name in entries:
        for other, node in reads[name].items():
            if other in above:
                continue
            if other == name:
                message, hint = f"`{name}` reads itself", "name where the value lies: `{env: NAME}`, `{file: path}`"
            elif other in entries:
                is_cycle = name in _all_read(other, reads)
                message = (
                    f"`{name}` and `{other}` read each other"
                    if is_cycle
                    else f"`{name}` reads `{other}`, which comes after it"
                )
                hint = "one of them must do without the other" if is_cycle else f"put `{other}` above `{name}`"
            else:
                message, hint = f"`{other}` is not declared in `keychain`", "an entry reads those above it"
            label = "" if other in entries else did_you_mean(other, above)
            reading.findings.error("P0908", message, node.position, label=label, hint=hint)
        above.append(name)


def _entries_read(item: SourceNode) -> dict[str, SourceNode]:
    """The entries that templates in an entry read, and where."""
    found: dict[str, SourceNode] = {}
    for node in texts_in(item):
        for use in inspect(str(node.value)).uses if is_template(node) else ():
            if use.path[0] == "keychain" and len(use.path) > 1:
                found.setdefault(str(use.path[1]), node)
    return found


def _all_read(name: str, reads: Mapping[str, Mapping[str, SourceNode]]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for other in reads.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found
