"""Literals, checked before the run by what they mean to a tool or component; the same checks in both languages.

Law: only what is certain is reported. A template is unknown until it has a value, and a file may be written by an earlier task;
whether that is possible is decided by each language.
"""

from __future__ import annotations

import glob
import importlib.machinery
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from penstock.dialects.problems import Severity
from penstock.dialects.reader import did_you_mean, is_template, listed
from penstock.dialects.source.node import SourceNode
from penstock.ports.meanings import (
    BODY,
    CODE,
    DATABASE_URL,
    ENTRY,
    FILE,
    LOCAL,
    MEANING,
    SCHEMES,
    SCRIPT,
    URL,
    WHEN,
    Schema,
)
from penstock.tools.python.code import require_compiles, syntax_hint

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_NETWORK = frozenset({"http", "https", "ftp", "ftps", "sftp"})
"""Schemes whose URLs name a host."""
_HOST = re.compile(r"(localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+)(:\d+)?(/|$)")
FILES = frozenset({FILE, SCRIPT})
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Literal:
    """A text in a parameter. `owner` is the kind of what takes it: of the tool, or of the mapping around it."""

    parameter: str
    meaning: str
    node: SourceNode
    owner: str
    schemes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return str(self.node.value)

    @property
    def entry(self) -> str | None:
        """The keychain entry that it names; of a template it is the template."""
        if is_template(self.node):
            return self.text
        is_name = self.meaning == ENTRY or (self.meaning == DATABASE_URL and _is_name(self.text))
        return self.text if is_name and "://" not in self.text else None


class Flaw(NamedTuple):
    message: str
    label: str = ""
    hint: str = ""
    offset: int | None = None
    """Where in the text, when not as a whole."""


def literals(params: Mapping[str, SourceNode], schema: Schema, owner: str) -> Iterator[Literal]:
    """`schema` is that of all the parameters."""
    for name, node in params.items():
        yield from _Walk(schema, name).value(node, schema.get("properties", {}).get(name, {}), params, owner)


def named_by_templates(params: Mapping[str, SourceNode], schema: Schema, owner: str) -> Iterator[Literal]:
    """The templates that stand where a keychain entry is named."""
    for name, node in params.items():
        walk = _Walk(schema, name, templates=True)
        yield from walk.value(node, schema.get("properties", {}).get(name, {}), params, owner)


class _Walk:
    """`templates`: those are looked for, instead of literals, where a keychain entry is named."""

    def __init__(self, schema: Schema, parameter: str, *, templates: bool = False) -> None:
        self._definitions: Mapping[str, Any] = schema.get("$defs", {})
        self._parameter = parameter
        self._templates = templates

    def value(
        self,
        node: SourceNode,
        schema: Schema,
        around: Mapping[str, SourceNode],
        owner: str,
        meaning: Schema | None = None,
    ) -> Iterator[Literal]:
        schema = self._resolved(schema)
        if MEANING in schema:
            meaning = schema if _holds(schema, around) else None
        if node.kind == "scalar":
            if meaning is not None and (node.text() or "").strip() and self._is_wanted(node, meaning):
                schemes = tuple(meaning.get(SCHEMES, ()))
                yield Literal(self._parameter, str(meaning[MEANING]), node, owner, schemes)
            return
        if node.kind == "sequence":
            for item in node.items:
                yield from self.value(item, self._part(schema, "items"), around, owner, meaning)
            return
        kind = node.get("kind")
        inside = str(kind.value) if kind is not None and kind.kind == "scalar" else owner
        properties = self._part(self._chosen(schema, node), "properties")
        # A login with fields of its own may be laid over an entry: `auth: {credential: name, …}`.
        named = meaning if meaning is not None and meaning[MEANING] == ENTRY else None
        for name, inner in node.entries.items():
            own = named if name == "credential" else None
            yield from self.value(inner, properties.get(name, {}), node.entries, inside, own)

    def _is_wanted(self, node: SourceNode, meaning: Schema) -> bool:
        if not self._templates:
            return not is_template(node)
        return is_template(node) and meaning[MEANING] in (ENTRY, DATABASE_URL)

    def _resolved(self, schema: Schema) -> Schema:
        target = schema.get("$ref")
        return self._definitions.get(target.rpartition("/")[2], {}) if isinstance(target, str) else schema

    def _part(self, schema: Schema, name: str) -> Schema:
        """That part of a schema, or of the first of its alternatives that has one."""
        for each in (schema, *map(self._resolved, schema.get("anyOf", ()))):
            if isinstance(found := each.get(name), Mapping):
                return found
        return {}

    def _chosen(self, schema: Schema, node: SourceNode) -> Schema:
        """Of several alternatives of a mapping, the one that its discriminator selects."""
        choice = schema.get("discriminator")
        choice_made = node.get(str(choice["propertyName"])) if isinstance(choice, Mapping) else None
        if choice is None or choice_made is None:
            return schema
        return self._resolved({"$ref": choice["mapping"].get(str(choice_made.value), "")})


def _holds(schema: Schema, around: Mapping[str, SourceNode]) -> bool:
    for name, values in schema.get(WHEN, {}).items():
        node = _at(around, name)
        if node is not None and (node.kind != "scalar" or is_template(node)):
            return False
        if (None if node is None else node.value) not in values:
            return False
    return True


def _at(around: Mapping[str, SourceNode], name: str) -> SourceNode | None:
    """What the parameter is, or for `mapping.key` the entry in it; the mapping where that is none."""
    first, _, key = name.partition(".")
    node = around.get(first)
    return node if not key or node is None or node.kind != "mapping" else node.get(key)


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[\w-]+", text) is not None


# ---- the checks


def url_flaw(literal: Literal) -> Flaw | None:
    """A URL that cannot work on any server, or a URL where only a path can work."""
    text = literal.text.strip()
    found = _SCHEME.match(text)
    if literal.meaning in (*FILES, LOCAL):
        if found is None or found[1].lower() in ("file", *literal.schemes):
            return None
        others = f", or one with {listed(f'{each}://' for each in literal.schemes)}" if literal.schemes else ""
        return Flaw(f"`{found[1]}://` is not supported here", hint=f"give a local path, or a `file://` URL{others}")
    if literal.meaning not in (URL, DATABASE_URL):
        return None
    if found is None:
        return _without_scheme(literal)
    # A driver may be named behind a plus: `mysql+pymysql://`.
    scheme, schemes = found[1].casefold().partition("+")[0], literal.schemes
    if scheme not in schemes:
        what = (
            "the scheme of a database that is known here"
            if literal.meaning == DATABASE_URL
            else f"a scheme of `{literal.owner}`"
        )
        hint = f"it begins with {listed(f'{each}://' for each in schemes)}"
        return Flaw(f"`{found[1]}` is not {what}", did_you_mean(scheme, schemes), hint)
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        return Flaw(f"this URL cannot be read: {error}")
    if port == 0:
        return Flaw("a URL cannot have the port 0")
    if not host and scheme in _NETWORK:
        return Flaw("this URL names no host")
    return None


def _without_scheme(literal: Literal) -> Flaw | None:
    text, schemes = literal.text, literal.schemes
    if literal.meaning == DATABASE_URL:
        if _is_name(text):
            return None  # It is the name of a keychain entry.
        hint = "write it as a URL, `sqlite:///orders.db`, or name a keychain entry in `auth`"
        return Flaw("this is neither the URL of a database nor the name of a keychain entry", hint=hint)
    scheme, colon, rest = text.partition(":")
    if colon and scheme.casefold() in schemes and not rest.startswith("//"):
        return Flaw(f"this URL lacks the `//` behind `{scheme}:`", hint=f"write `{scheme}://{rest.lstrip('/')}`")
    if _NETWORK.isdisjoint(schemes) or not _HOST.match(text):
        return None  # Databases have other ways to write it, too.
    return Flaw("this URL lacks its scheme", hint=f"it begins with {listed(f'{each}://' for each in schemes)}")


def missing_file(literal: Literal, folder: Path) -> str | None:
    """The path that was looked up and does not exist; None when it exists or cannot be known."""
    text = literal.text
    if literal.meaning not in FILES or "\0" in text or "\n" in text:
        return None
    found = _SCHEME.match(text)
    if found is not None:
        if found[1].lower() != "file":
            return None
        text = unquote(urlsplit(text).path)
    try:
        position = folder / Path(text).expanduser()
        if position.exists() or (_PATTERN.search(text) and glob.glob(str(position), recursive=True)):
            return None
    except (OSError, RuntimeError, ValueError):
        return None
    return os.path.abspath(position)


def missing_flaw(literal: Literal, looked_for: str, whose: str, *, is_certain: bool) -> Flaw:
    """A script that is missing is a mistake of the document; data may be there when it runs, or on the machine where it does."""
    is_mistake = is_certain and literal.meaning == SCRIPT
    later = "" if is_mistake else "it works only if the file is there by then"
    message = f"there is no file `{literal.text}` for `{literal.parameter}` of `{whose}`"
    return Flaw(message, hint="; ".join(filter(None, (f"looked for `{looked_for}`", later))))


def missing_severity(literal: Literal, *, is_certain: bool, is_foreseen: bool) -> Severity:
    """Missing data is left to the run to report, so that it is on record for schedules and alerts."""
    if is_certain and literal.meaning == SCRIPT:
        return Severity.ERROR
    return Severity.NOTE if is_foreseen else Severity.WARNING


def undeclared_flaw(literal: Literal, declared: Iterable[str]) -> Flaw:
    """Of a keychain entry that is named and not declared."""
    return Flaw(
        f"`{literal.parameter}` names `{literal.entry}`, which `keychain` does not declare",
        did_you_mean(literal.text, declared),
        f"it is looked up in the keychain store (`penstock keychain set {literal.entry}`), then in the environment; "
        "declare it to be sure",
    )


def _compiled(text: str) -> None:
    compile(text, "<code>", "exec", dont_inherit=True)


def python_flaw(text: str, compiled: Callable[[str], None] = _compiled) -> Flaw | None:
    """Of a text that is no Python, with Python's own reason. `compiled`: what compiles it where it runs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled(text)
    except SyntaxError as error:
        lines = text.splitlines(keepends=True)
        at = sum(map(len, lines[: (error.lineno or 1) - 1])) + max((error.offset or 1) - 1, 0)
        reason = str(error.msg)
        return Flaw(f"this Python cannot be compiled: {reason}", "", syntax_hint(reason), min(at, len(text.rstrip())))
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return Flaw(f"this Python cannot be compiled: {str(error) or 'it is too complex'}")
    return None


def code_flaw(literal: Literal) -> Flaw | None:
    if literal.meaning == BODY:
        return python_flaw(literal.text, require_compiles)
    return python_flaw(literal.text) if literal.meaning == CODE else None


def missing_module(name: str, folder: Path) -> str | None:
    """The top module of a dotted name, if code in that folder cannot import it on this machine; nothing is imported to find
    out, so what a package has in it is not known."""
    top = name.partition(".")[0]
    try:
        is_known = top in sys.modules or importlib.util.find_spec(top) is not None
    except (ImportError, ValueError, AttributeError):
        return None  # A finder of somebody else's: only the import itself can tell.
    return None if is_known or importlib.machinery.PathFinder.find_spec(top, [str(folder)]) is not None else top
