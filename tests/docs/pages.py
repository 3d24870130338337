"""The documentation as the tests read it: its pages, and the code blocks in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
DOCS = PROJECT / "docs"
REFERENCE = DOCS / "reference"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+\.(?:yaml|csv|json|txt|py|toml))`[^`]*:\s*\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block. `file` is the name of a file that the line above calls it, as in "save this as `x.yaml`:"."""

    page: Path
    line: int
    language: str
    text: str
    file: str | None

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(PROJECT)}:{self.line}"


def written_pages() -> list[Path]:
    """What people wrote: everything but the reference."""
    pages = [*PROJECT.glob("*.md"), *DOCS.rglob("*.md")]
    return sorted(page for page in pages if not page.is_relative_to(REFERENCE))


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """The blocks in these languages, or in any."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        if found[1] in languages or not languages:
            above = _FILE.search(text[: found.start()]) if found[1] != "console" else None
            line = text.count("\n", 0, found.start()) + 1
            yield Block(page, line, found[1], found[2], above[1] if above else None)
