"""Secrets that an author wrote into a document: into the parameters of a tool or a component (a password, a token, a URL that
contains one), or into its keychain.

Law: they work, cause a warning, and are never stored. `masked` blanks them in the stored text without moving any line, so that
positions and digests stay the same; `restored_text` and `restored` read them again from the document's file, for a resume.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from penstock.dialects.problems import Findings
from penstock.dialects.source.loader import load_file, load_text
from penstock.dialects.source.node import SourceNode, to_json
from penstock.kernel.errors import Refused
from penstock.kernel.values import Json, JsonMap

MASK = "***"
Path: TypeAlias = "tuple[str | int, ...]"

_KEYS = frozenset({
    "password", "passwd", "passphrase", "secret", "client_secret", "secret_key", "secret_access_key", "private_key", "token",
    "access_token", "refresh_token", "auth_token", "bearer_token", "api_key", "apikey", "x_api_key", "x_auth_token",
    "authorization", "proxy_authorization",
})  # fmt: skip
# Where such a key means what it says. Elsewhere, as in a mapping of columns, it may be the name of anything.
_GROUPS = frozenset({
    "params", "connection", "auth", "headers", "query", "credentials", "login", "env", "body", "json", "data", "form", "proxy",
    "source", "target", "from", "to", "server",
})  # fmt: skip
_SECTIONS = ("workflow", "workbook", "components", "connections")
_NOT_PARAMETERS = frozenset({"next", "set", "set_ctx", "set_iter", "append_ctx", "set_shared", "policy", "loop"})
_CONNECTIONS = frozenset({"url", "dsn", "uri", "connection", "conninfo", "connection_string", "database_url"})
# No pattern starts anew inside of what it has just gone through, so that each needs linear time on any text.
_IN_URL = re.compile(r"(?P<head>(?<![\w+.-])[A-Za-z][\w+.-]*://[^\s/@:'\"{}]*:)(?P<secret>[^\s/@'\"{}]+)(?=@)")
_IN_QUERY = re.compile(
    r"(?P<head>[?&](?:access_token|auth_token|token|api_?key|password|passwd|secret|client_secret|signature|sig)=)"
    r"(?P<secret>[^&\s#'\"{}]+)",
    re.IGNORECASE,
)
_IN_DSN = re.compile(r"(?P<head>\b(?:password|pwd)\s*+=\s*+)(?P<secret>[^\s;'\"{}&]+)", re.IGNORECASE)
_HINTS = re.compile(r"pass|secret|token|api.?key|private.?key|authorization|://[^\s/@]*@|pwd|sig", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Literal:
    path: Path
    node: SourceNode
    key: str
    """The parameter it stands in."""
    is_whole: bool
    """The value is nothing but the secret; otherwise the secret is a part of it."""
    secrets: tuple[str, ...]


def literals_in(root: SourceNode) -> Iterator[Literal]:
    for section in _SECTIONS:
        node = root.get(section)
        if node is not None:
            yield from _within((section,), node, "", is_group=False)


def _within(path: Path, node: SourceNode, name: str, *, is_group: bool) -> Iterator[Literal]:
    if node.kind == "sequence":
        for index, item in enumerate(node.items):
            yield from _within((*path, index), item, name, is_group=is_group)
        return
    if node.kind == "scalar":
        yield from _scalar(path, node, name, is_group)
        return
    holds = name in _GROUPS or "kind" in node.entries
    for key, inner in node.entries.items():
        if key not in _NOT_PARAMETERS:
            yield from _within((*path, key), inner, key, is_group=holds)


def _scalar(path: Path, node: SourceNode, key: str, is_group: bool) -> Iterator[Literal]:
    value = node.value
    if is_group and is_secret_key(key) and _is_literal(value):
        text = str(value)
        scheme, _, rest = text.partition(" ")
        secret = rest if scheme.casefold() in ("bearer", "basic", "token") and rest else text
        yield Literal(path, node, key, True, (text, secret))
    elif isinstance(value, str):
        found = [match for pattern in _patterns(key) for match in pattern.finditer(value) if match["secret"] != MASK]
        if found:
            yield Literal(path, node, key, False, tuple(match["secret"] for match in found))


def is_secret_key(key: str) -> bool:
    return key.casefold().replace("-", "_") in _KEYS


def _is_literal(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    text = str(value)
    return bool(text.strip()) and "{{" not in text and text != MASK


def _patterns(key: str) -> tuple[re.Pattern[str], ...]:
    return (_IN_URL, _IN_QUERY, _IN_DSN) if key in _CONNECTIONS else (_IN_URL, _IN_QUERY)


def masked_value(key: str, value: str) -> str:
    """The text of a parameter without the secrets inside it."""
    for pattern in _patterns(key):
        value = pattern.sub(lambda match: f"{match['head']}{MASK}", value)
    return value


def warn_literals(findings: Findings, root: SourceNode) -> None:
    for literal in literals_in(root):
        what = f"`{literal.key}` is written" if literal.is_whole else f"a secret inside `{literal.key}` is written"
        hint = (
            "declare it in `keychain` and write `{{ keychain.name }}`; this one is blanked in what is stored and shown"
        )
        findings.warning("Y0210", f"{what} in the document itself", literal.node.position, hint=hint)


def literal_secrets(text: str) -> list[str]:
    """The secrets themselves, so that they can be hidden in all that is shown."""
    root = load_text(text).root if _HINTS.search(text) else None
    return [secret for literal in literals_in(root) for secret in literal.secrets] if root is not None else []


def masked_literals(text: str) -> str:
    root = load_text(text).root if _HINTS.search(text) else None
    if root is None:
        return text
    lines = text.splitlines(keepends=True)
    for literal in sorted(literals_in(root), key=lambda literal: _place(literal.node), reverse=True):
        if literal.is_whole or not _mask_inside(lines, literal):
            blank(lines, literal.node)
    return "".join(lines)


def _place(node: SourceNode) -> tuple[int, int]:
    """The last one is blanked first: what is blanked moves all that stands behind it on its line."""
    return node.position.line, node.position.column


def _mask_inside(lines: list[str], literal: Literal) -> bool:
    """Blank the secret where it stands in its lines; False when it is spelt otherwise there, such as with escapes."""
    node = literal.node
    first, last = node.position.line - 1, max(node.end_line, node.position.line) - 1
    begin, end = (node.position.column - 1, node.position.end_column - 1) if _is_short(node) else (0, None)
    parts = [line[begin:end] for line in lines[first : last + 1]]
    masked = [masked_value(literal.key, part) for part in parts]
    if any(secret in part for secret in literal.secrets for part in masked) or masked == parts:
        return False
    lines[first : last + 1] = [
        f"{line[:begin]}{part}{'' if end is None else line[end:]}"
        for line, part in zip(lines[first : last + 1], masked, strict=True)
    ]
    return True


def _is_short(node: SourceNode) -> bool:
    """Does it lie within one line?"""
    return node.end_line <= node.position.line and not node.style.startswith(("|", ">"))


def blank(lines: list[str], node: SourceNode) -> None:
    """Replace a scalar by the mask; of one that takes several lines the others are emptied, so that no line moves."""
    first, last = node.position.line - 1, max(node.end_line, node.position.line) - 1
    line = lines[first]
    rest = line[node.position.end_column - 1 :] if _is_short(node) else "\n"
    lines[first] = f"{line[: node.position.column - 1]}'{MASK}'{rest}"
    for number in range(first + 1, min(last + 1, len(lines))):
        lines[number] = "\n"


def masked_tree(value: Json, key: str = "", *, is_group: bool = False) -> Json:
    """The same for a compiled document, so that no secret enters a digest."""
    if isinstance(value, dict):
        holds = key in _GROUPS or "kind" in value
        return {name: masked_tree(inner, name, is_group=holds) for name, inner in value.items()}
    if isinstance(value, list):
        return [masked_tree(inner, key, is_group=is_group) for inner in value]
    if is_group and is_secret_key(key) and _is_literal(value):
        return MASK
    return masked_value(key, value) if isinstance(value, str) else value


def restored_text(kept: str, written: str | None) -> tuple[str, list[str]]:
    """The document as it was before it was kept, with what `written`, the file it came from, says in the masked places; and the
    parameters that the file does not have any more."""
    if MASK not in kept:
        return kept, []
    if written is not None and masked_literals(written) == kept:
        return written, []
    root = load_text(kept).root
    there = load_text(written).root if written is not None else None
    lines = kept.splitlines(keepends=True)
    missing: list[str] = []
    nodes = (
        [] if root is None else sorted(_masked_nodes((), root, ""), key=lambda found: _place(found[1]), reverse=True)
    )
    for path, node, key in nodes:
        again = _at(there, path)
        if again is None or again.kind != "scalar" or MASK in str(again.value):
            missing.append(key)
            continue
        line, text = lines[node.position.line - 1], json.dumps(again.value, ensure_ascii=False)
        lines[node.position.line - 1] = (
            f"{line[: node.position.column - 1]}{text}{line[node.position.end_column - 1 :]}"
        )
    return "".join(lines), missing[::-1]


def _masked_nodes(path: Path, node: SourceNode, key: str) -> Iterator[tuple[Path, SourceNode, str]]:
    for index, item in enumerate(node.items):
        yield from _masked_nodes((*path, index), item, key)
    for name, inner in node.entries.items():
        if path or name in _SECTIONS:
            yield from _masked_nodes((*path, name), inner, name)
    if (
        node.kind == "scalar"
        and isinstance(node.value, str)
        and MASK in node.value
        and node.end_line <= node.position.line
    ):
        is_part = masked_value(key, node.value) == node.value and node.value != MASK
        if node.value == MASK or (is_part and _was_masked(node.value)):
            yield path, node, key


def _was_masked(value: str) -> bool:
    return (
        re.search(r"://[^\s/@:]*:\*\*\*@|[?&\s;][\w-]+\s*=\s*\*\*\*|^(?i:password|pwd)\s*=\s*\*\*\*", value) is not None
    )


def _at(root: SourceNode | None, path: Path) -> SourceNode | None:
    node = root
    for step in path:
        if node is None:
            return None
        node = node.get(step) if isinstance(step, str) else next(iter(node.items[step : step + 1]), None)
    return node


# ---- Secrets in the keychain of a document


_SECRET_PARTS = ("pass", "secret", "token")
_DATABASES = ("postgres_credential", "mysql_credential")


# The fields with texts of the author's own inside: kind -> field -> is all of it secret, or what has a name like one?
_NESTED: Mapping[str, Mapping[str, bool]] = {
    "static": {"value": True, "map": True},
    "oauth2": {"data": False, "headers": False},
}
_SECRET_HEADERS = ("authorization", "key", "cookie")


def is_inline_secret(kind: Json, path: Path, value: Json) -> bool:
    """A value written out; one that is named (`{env: …}`) or rendered is not. `path` leads to it in its entry."""
    if not isinstance(value, str | int | float) or isinstance(value, bool) or "{{" in str(value):
        return False
    key = str(path[0])
    if len(path) > 1:
        is_whole = _NESTED.get(str(kind), {}).get(key)
        name = str(path[-1]).casefold()
        return bool(is_whole) or (
            is_whole is not None and len(path) == 2 and any(part in name for part in (*_SECRET_PARTS, *_SECRET_HEADERS))
        )
    if key == "value":
        return True
    if key in ("url", "dsn"):
        return kind in _DATABASES
    return key != "token_url" and any(part in key for part in _SECRET_PARTS)


@lru_cache(maxsize=64)
def masked(text: str) -> str:
    """A document without its secrets. The same text comes again and again, with every run of it."""
    root = load_text(text).root if "keychain" in text else None
    entries = root.get("keychain") if root is not None else None
    lines = text.splitlines(keepends=True)
    found: list[SourceNode] = []
    for entry in entries.items if entries is not None else []:
        kind = entry.get("kind") or entry.get("type")
        scalars = _scalars((), entry)
        found += [node for path, node in scalars if is_inline_secret(kind.value if kind else None, path, node.value)]
    for node in sorted(found, key=_place, reverse=True):
        blank(lines, node)
    return masked_literals("".join(lines))


def _scalars(path: Path, node: SourceNode) -> Iterator[tuple[Path, SourceNode]]:
    if path and node.kind == "scalar":
        yield path, node
    for key, inner in node.entries.items():
        yield from _scalars((*path, key), inner)
    for index, inner in enumerate(node.items):
        yield from _scalars((*path, index), inner)


def without_secrets(entries: Sequence[JsonMap]) -> list[JsonMap]:
    def bare(kind: Json, path: Path, value: Json) -> Json:
        if isinstance(value, dict):
            return {key: bare(kind, (*path, key), inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [bare(kind, (*path, index), inner) for index, inner in enumerate(value)]
        return MASK if is_inline_secret(kind, path, value) else value

    return [{key: bare(entry.get("kind"), (key,), value) for key, value in entry.items()} for entry in entries]


def restored(entries: Sequence[JsonMap], file: str) -> list[JsonMap]:
    """The entries of a document as it was kept, with the blanked values read again from its file."""
    if not any(_is_blanked(list(entry.values())) for entry in entries):
        return list(entries)
    root = load_file(pathlib.Path(file)).root
    there = root.get("keychain") if root is not None else None
    written = {str(_name(node)): node for node in (there.items if there is not None else [])}
    return [
        {
            key: _filled(entry, value, _inner(written.get(str(entry.get("name"))), key), file)
            for key, value in entry.items()
        }
        for entry in entries
    ]


def _is_blanked(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_is_blanked, value.values()))
    return any(map(_is_blanked, value)) if isinstance(value, list) else value == MASK


def _name(node: SourceNode) -> Json:
    found = node.get("name")
    return None if found is None else to_json(found)


def _inner(node: SourceNode | None, step: str | int) -> SourceNode | None:
    return None if node is None else _at(node, (step,))


def _filled(entry: JsonMap, value: Json, node: SourceNode | None, file: str) -> Json:
    if isinstance(value, dict):
        return {key: _filled(entry, inner, _inner(node, key), file) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(entry, inner, _inner(node, index), file) for index, inner in enumerate(value)]
    if value != MASK:
        return value
    again = None if node is None else to_json(node)
    if again is None:
        raise Refused(
            f"the secret `{entry.get('name')}` was written into the document, is not in the log, and `{file}` has it no more",
            hint="put it back there for the resume; better, declare it with `kind: env` or `kind: file`",
        )
    return again
