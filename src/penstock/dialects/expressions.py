"""What both languages say about an expression: which part of it is named, when it never changes, which secrets it may read."""

from __future__ import annotations

from collections.abc import Collection

from penstock.dialects.problems import Findings, Place
from penstock.dialects.reading import listed
from penstock.expr.check import Use


def named_part(text: str, use: Use, namespaces: Collection[str]) -> tuple[int, int]:
    """As far as names are checked: a namespace with its first key, or a bare name. Positions in the text."""
    written = ".".join(use.path[: 2 if use.path[0] in namespaces else 1])
    return use.start, use.start + len(written) if text.startswith(written, use.start) else use.end


def is_plain_true(text: str) -> bool:
    """`{{ true }}` is said on purpose; anything longer that never changes is a slip."""
    return text.strip("{}- \n\t").casefold() == "true"


def warn_constant(findings: Findings, text: str, value: bool, place: Place, example: str) -> None:
    hint = f"names stand without quotes: `{example}`" if "'" in text or '"' in text else ""
    findings.warning("E0108", f"this condition is always {'true' if value else 'false'}", place, hint=hint)


def declared_secrets(names: Collection[str]) -> str:
    """The hint beside a secret that is not declared."""
    return f"`keychain` declares {listed(sorted(names))}" if names else "the document has no `keychain`"
