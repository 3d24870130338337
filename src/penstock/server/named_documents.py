"""Documents by the name that they give themselves: `metadata.path`, or `metadata.name` where there is no path.

Law: one name is one document. Two that bear it are refused, wherever they lie, and a folder that is too large to be searched
is refused as well: which document a call means never depends on how far somebody looked.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from penstock.dialects.source.edits import at
from penstock.dialects.source.loader import load_text
from penstock.kernel.errors import Refused
from penstock.server.project_files import TooManyFiles, yaml_files

MARKS = (".penstockignore", "penstock.yaml", "penstock.toml", "pyproject.toml")
"""Files that make a folder the folder of a project."""


def project_folder(folder: Path) -> Path:
    """The nearest folder around a document that has a project file; otherwise the document's own."""
    for around in (folder, *folder.parents):
        if any((around / mark).is_file() for mark in MARKS):
            return around
    return folder


def named_below(folder: Path, name: str) -> str | None:
    """The file of the document of that name, below the project of a folder."""
    return _only(all_below(folder, name), name)


def named_among(texts: Iterable[tuple[str, str]], name: str) -> str | None:
    return _only(_all_among(texts, name), name)


def all_below(folder: Path, name: str) -> list[str]:
    """The files of all documents of that name, below the project of a folder."""
    root = project_folder(folder.resolve())
    try:
        files = list(yaml_files(root))
    except TooManyFiles:
        raise Refused(
            f"there is no document `{name}`, and `{root}` has too many files to look for one of that name",
            "call it by its file",
        ) from None
    return _all_among(((str(file), _text(file)) for file in files), name)


def _all_among(texts: Iterable[tuple[str, str]], name: str) -> list[str]:
    return sorted(file for file, text in texts if name in text and _bears(text, name))


def _only(found: list[str], name: str) -> str | None:
    if len(found) > 1:
        raise Refused(
            f"several documents are called `{name}`: {', '.join(f'`{file}`' for file in found)}",
            "give each a `metadata.path` of its own, or call the one that is meant by its file",
        )
    return found[0] if found else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""


def _bears(text: str, name: str) -> bool:
    root = load_text(text).root
    if root is None or root.kind != "mapping" or not ("workflow" in root.entries or "components" in root.entries):
        return False
    given = at(root, ("metadata", "path")) or at(root, ("metadata", "name"))
    return given is not None and given.text() == name
