"""Which files of a run have changed since it was started.

Law: a run continues with the text it is pinned to; this only tells people what they might have expected instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from penstock.dialects.secrets import masked
from penstock.dialects.source.loader import load_file
from penstock.kernel.values import JsonMap
from penstock.server.documents import Pinned

TextNow = Callable[[str], "str | None"]
"""The current text of a file; None if it cannot be determined."""


@dataclass(frozen=True, slots=True)
class Change:
    """A file of a run that has changed. `diff` is a unified diff from the pinned text to the current one."""

    file: str
    diff: str

    def as_json(self) -> JsonMap:
        return {"file": self.file, "diff": self.diff}


def changes(document: Pinned, text_now: TextNow) -> list[Change]:
    """Secrets written into a document are masked on both sides: the log never had them."""
    found = []
    for file, pinned in ((document.file, document.text), *document.sources):
        now = text_now(file)
        if now is None:
            continue
        then, now = masked(pinned), masked(now)
        if then != now:
            found.append(Change(file, _diff(file, then, now)))
    return found


def text_on_disk(file: str) -> str | None:
    """The text, read as documents are. None for a pipe, a deleted file and an unreadable one: there is nothing to compare
    with."""
    path = Path(file)
    try:
        if not path.is_absolute() or not path.is_file():
            return None
    except (OSError, ValueError):
        return None
    return load_file(path).text or None


def _diff(file: str, then: str, now: str) -> str:
    lines = unified_diff(
        then.splitlines(), now.splitlines(), f"{file} (when the run started)", f"{file} (now)", lineterm="", n=2
    )
    return "\n".join(lines)
