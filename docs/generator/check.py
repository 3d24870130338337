"""What is wrong with the documentation as it lies on disk: pages out of date, links to nothing, codes that nobody explains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import penstock
from docs.generator.markdown import anchor
from docs.generator.reference import stray
from penstock.dialects.diagnostics import pages

_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|(?:src|href)=\"([^\"]+)\"")
_ID = re.compile(r"<a id=\"([^\"]+)\">")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//")
_CODE = re.compile(r"[\"']([EJPY]\d{4})[\"']")


def differences(pages: dict[str, str], folder: Path) -> list[str]:
    found = []
    for path, text in pages.items():
        target = folder / path
        if not target.is_file():
            found.append(f"{target}: missing")
        elif target.read_text(encoding="utf-8") != text:
            found.append(f"{target}: out of date")
    return found + [f"{folder / path}: made by nothing" for path in stray(pages, folder)]


def unknown_codes() -> list[str]:
    """Codes that the source uses and that are not registered, so that no page explains them."""
    known = pages()
    found = []
    root = Path(penstock.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            place = f"{path.relative_to(root)}:{number}"
            found += [
                f"{place}: the code `{name}` is not registered" for name in _CODE.findall(line) if name not in known
            ]
    return found


def dead_links(project: Path) -> list[str]:
    """Relative links in the project's Markdown that lead to no file, or to no heading of it."""
    pages = [*sorted(project.glob("*.md")), *sorted((project / "docs").rglob("*.md"))]
    return [problem for page in pages for problem in _dead_links(page, project)]


def _dead_links(page: Path, project: Path) -> Iterator[str]:
    shown = page.relative_to(project)
    for target in _links(page):
        path, _, heading = target.partition("#")
        leads_to = (page.parent / unquote(path)).resolve() if path else page
        if not leads_to.exists():
            yield f"{shown}: the link `{target}` leads to nothing"
        elif heading and leads_to.suffix == ".md" and heading not in _anchors(leads_to):
            yield f"{shown}: the link `{target}` leads to no heading of that page"


def _links(page: Path) -> Iterator[str]:
    text = _INLINE_CODE.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))
    for found in _LINK.finditer(text):
        target = found[1] or found[2]
        if not _ELSEWHERE.match(target):
            yield target


@cache
def _anchors(page: Path) -> frozenset[str]:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return frozenset([*_ID.findall(text), *map(anchor, _HEADING.findall(text))])
