"""Secrets that an author wrote into the keychain of a document. They are used for the run and never stored with it.

`masked` gives the text that is kept: the same document with the values blanked where they stand, so that lines and digests stay
what they were. `restored` gives them back from the file the document came from, for a resume.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.dialects.secrets import MASK, blank, masked_literals
from penstock.dialects.source.loader import SourceNode, load_file, load_text, to_json
from penstock.kernel.errors import Refused
from penstock.kernel.values import Json, JsonMap

_SECRET_PARTS = ("pass", "secret", "token")
_CONNECTIONS = ("postgres_credential", "mysql_credential")


def is_inline_secret(kind: Json, key: str, value: Json) -> bool:
    """A value written out; one that is named (`{env: …}`) or rendered from the workload is not."""
    if not isinstance(value, str | int | float) or isinstance(value, bool) or "{{" in str(value):
        return False
    if key == "value":
        return True
    if key in ("url", "dsn"):
        return kind in _CONNECTIONS
    return key != "token_url" and any(part in key for part in _SECRET_PARTS)


def masked(text: str) -> str:
    root = load_text(text).root if "keychain" in text else None
    entries = root.get("keychain") if root is not None else None
    lines = text.splitlines(keepends=True)
    for entry in entries.items if entries is not None else []:
        kind = entry.get("kind")
        for key, node in entry.entries.items():
            if is_inline_secret(kind.value if kind else None, key, node.value):
                blank(lines, node)
    return masked_literals("".join(lines))


def without_secrets(entries: Sequence[JsonMap]) -> list[JsonMap]:
    return [
        {key: MASK if is_inline_secret(entry.get("kind"), key, value) else value for key, value in entry.items()}
        for entry in entries
    ]


def restored(entries: Sequence[JsonMap], file: str) -> list[JsonMap]:
    """The entries of a document as it was kept, with the blanked values read again from its file."""
    if not any(MASK in entry.values() for entry in entries):
        return list(entries)
    root = load_file(Path(file)).root
    there = root.get("keychain") if root is not None else None
    written = {str(_field(node, "name")): node for node in (there.items if there is not None else [])}
    return [_filled(entry, written.get(str(entry.get("name"))), file) for entry in entries]


def _field(node: SourceNode, name: str) -> Json:
    found = node.get(name)
    return None if found is None else to_json(found)


def _filled(entry: JsonMap, node: SourceNode | None, file: str) -> JsonMap:
    filled = dict(entry)
    for key, value in entry.items():
        if value != MASK:
            continue
        again = _field(node, key) if node is not None else None
        if again is None:
            raise Refused(
                f"the secret `{entry.get('name')}` was written into the document, is not in the log, and `{file}` has it no more",
                hint="put it back there for the resume; better, declare it with `kind: env` or `kind: file`",
            )
        filled[key] = again
    return filled
