"""Where relative paths in parameters begin: at the folder of the document they stand in (D56).

A component of a joblet is written in the joblet's file, and so are its paths; but a text that the caller gave to the joblet
stands in the caller's. So one component may have paths of several documents. Components need not know: they ask for
`folder / path`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

if sys.platform == "win32":
    from pathlib import WindowsPath as _Native
else:
    from pathlib import PosixPath as _Native


@dataclass(frozen=True, slots=True)
class Base:
    """Of one component: the folder of its own document, and the texts in its parameters that stand in another one."""

    folder: Path
    borrowed: tuple[tuple[str, Path], ...] = ()
    """Template, and the folder of the document it was given in."""

    def rendered(self, render: Callable[[str], Any]) -> Path:
        """The folder once templates have a value."""
        if not self.borrowed:
            return self.folder
        found: dict[str, Path] = {}
        for text, folder in self.borrowed:
            value = render(text)
            if isinstance(value, str):
                # Of the URL of a database only the file in it is looked for.
                found.update({str(Path(path)): folder for path in (value, value.partition(":///")[2]) if path})
        return DocumentFolder.with_borrowed(self.folder, found)


class DocumentFolder(_Native):
    """A folder from which the texts that another document lent lead elsewhere."""

    borrowed: Mapping[str, Path] = MappingProxyType({})

    @classmethod
    def with_borrowed(cls, folder: Path, borrowed: Mapping[str, Path]) -> DocumentFolder:
        made = cls(folder)
        made.borrowed = borrowed
        return made

    def __truediv__(self, key: str | PathLike[str]) -> Path:  # type: ignore[override]
        return base_of(self, key) / key


def base_of(folder: Path, path: str | PathLike[str]) -> Path:
    """The folder that a path from a parameter is relative to."""
    if not isinstance(folder, DocumentFolder):
        return folder
    return folder.borrowed.get(str(Path(path)), Path(folder))
