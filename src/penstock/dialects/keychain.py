"""`keychain`: which secrets a document needs, and how each is found. Values are never read here."""

from __future__ import annotations

from typing import Any

from penstock.dialects.keychain_words import KEYCHAIN_KINDS
from penstock.dialects.problems import closest
from penstock.dialects.reader import Reader, did_you_mean, listed
from penstock.dialects.source.loader import SourceNode


def read_keychain(reading: Reader[Any], node: SourceNode | None) -> list[SourceNode]:
    """The entries that can be kept, each a mapping with a name of its own."""
    found: dict[str, SourceNode] = {}
    for item in reading.items(node, "`keychain`"):
        if item.kind != "mapping":
            reading.wrong_shape(item, "a keychain entry", "a mapping")
            continue
        named, kind = item.get("name"), item.get("kind")
        for word, value in (("name", named), ("kind", kind)):
            if value is None:
                hint = "such as `{name: token, kind: env, var: API_TOKEN}`"
                reading.findings.error("P0901", f"this keychain entry has no `{word}`", item.place, hint=hint)
        name = None if named is None else reading.name(named, "the name of a keychain entry")
        if kind is not None:
            _check_kind(reading, item, kind)
        if name is None or named is None:
            continue
        if name in found:
            reading.findings.error("P0904", f"two keychain entries are called `{name}`", named.place)
            continue
        found[name] = item
    return list(found.values())


def _check_kind(reading: Reader[Any], item: SourceNode, kind: SourceNode) -> None:
    scope = KEYCHAIN_KINDS.get(str(kind.value)) if kind.kind == "scalar" else None
    if scope is None:
        reading.findings.error(
            "P0902", f"{kind.shown} is not a kind of secret", kind.place,
            label=did_you_mean(str(kind.value), KEYCHAIN_KINDS), hint=f"it is one of {listed(KEYCHAIN_KINDS)}",
        )  # fmt: skip
        return
    if kind.value == "static":
        reading.findings.warning(
            "P0903", "this secret is written in the document itself", item.keys["kind"],
            hint="`static` is for tests; use `env`, `file` or `secret_manager`",
        )  # fmt: skip
    for name, word in scope.words.items():
        if word.required and name not in ("name", "kind") and name not in item.entries:
            reading.findings.error(
                "P0905", f"a `{kind.value}` entry has no `{name}`", item.place, hint=f"`{name}`: {word.about}"
            )
    for key in item.entries:
        meant = None if key in scope.words else closest(key, scope.words)
        if meant:
            message = f"`{key}` looks like a misspelt word of a `{kind.value}` entry"
            reading.findings.warning("P0103", message, item.keys[key], label=f"did you mean `{meant}`?")
