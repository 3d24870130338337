"""Joblets: where they are found, and that they do not call themselves.

`@x` is `x.yaml` beside the document that calls it, or in the folder `joblets` there; then the same beside the job. Each file
is read once, however many calls it has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.dialects.job.build import build
from penstock.dialects.job.checks.names import Names
from penstock.dialects.job.document import read_document
from penstock.dialects.job.drafts import JobDraft
from penstock.dialects.job.level import Level
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Position
from penstock.dialects.reader import did_you_mean
from penstock.dialects.source.loader import Loaded, load_file, load_text
from penstock.ports.folders import whole_folder

Read = Callable[[Path], str | None]
"""The text of a file by its whole path, or None when there is none."""
Whole = Callable[[str], str]
"""One name for a folder by whatever way it is reached. Folders of another machine can only be compared as they are written."""

DEEPEST = 20
_MOST_SHOWN = 6
_NAME = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)*\Z")


class Joblets:
    """The documents of one compilation."""

    def __init__(self, reading: Reading, file: str, read: Read | None, whole: Whole = whole_folder) -> None:
        self.reading = reading
        self.folder = Path(file).parent
        self.loaded: dict[str, Loaded] = {}
        """By the name that problems carry."""
        self.sources: dict[str, str] = {}
        """Whole path -> text, of joblets only."""
        self.names = Names()
        self._read = read
        self._whole_folder = whole
        self._levels: dict[str, Level | None] = {}
        self._is_told_of_depth = False
        self._stack: list[str] = [self._whole(Path(file))]

    def level(self, draft: JobDraft, text: str) -> Level:
        """A draft put together, with the joblets that it calls."""
        near = Path(draft.file).parent
        return build(self.reading, draft, text, lambda name, position: self._find(name, position, near), self.names)

    def drafts(self) -> Iterator[JobDraft]:
        return (level.draft for level in self._levels.values() if level is not None)

    def _find(self, name: str, position: Position, near: Path) -> Level | None:
        found = self._look(name, near) if _NAME.match(name) else None
        if found is None:
            self._not_found(name, position, near)
            return None
        loaded, path = found
        if path in self._stack:
            chain = _chain([*self._stack[self._stack.index(path) :], path])
            self.reading.report("JOBLET_RECURSION_DEPTH", f"`{name}` calls itself: {chain}", position)
            return None
        if len(self._stack) > DEEPEST:
            self._too_deep(position)
            return None
        if path not in self._levels:
            self._levels[path] = self._built(name, loaded, path, position)
        level = self._levels[path]
        if level is not None and len(self._stack) + level.depth > DEEPEST:
            self._too_deep(position)
        return level

    def _built(self, name: str, loaded: Loaded, path: str, position: Position) -> Level | None:
        self.sources[path] = loaded.text
        self.loaded[loaded.file] = loaded
        self.reading.findings.extend(loaded.problems)
        if loaded.root is None:
            return None
        kind = loaded.root.get("kind")
        if kind is not None and kind.value == "Job":
            message = f"`{name}` is a job, and `@{name}` calls a joblet"
            hint = f"write `kind: Joblet` in `{loaded.file}`, or run the job with a component of type `run_job`"
            self.reading.report("NOT_A_JOBLET", message, position, hint=hint)
            return None
        draft = read_document(self.reading, loaded.root, loaded.file, loaded.text, as_joblet=True)
        if draft is None:
            return None
        self._stack.append(path)
        try:
            return self.level(draft, loaded.text)
        finally:
            self._stack.pop()

    def _too_deep(self, position: Position) -> None:
        # Every caller further up is too deep as well; the innermost is met first, and one message is enough.
        if self._is_told_of_depth:
            return
        self._is_told_of_depth = True
        message = f"joblets are nested more than {DEEPEST} deep here: {_chain(self._stack)} -> …"
        self.reading.report("JOBLET_RECURSION_DEPTH", message, position, hint="call some of them from the job itself")

    def _look(self, name: str, near: Path) -> tuple[Loaded, str] | None:
        for path in self._candidates(name, near):
            whole = self._whole(path)
            known = self.loaded.get(str(path))
            if known is not None:
                return known, whole
            if self._read is not None:
                text = self._read(Path(whole))
                if text is not None:
                    return load_text(text, str(path)), whole
            elif _is_file(path):
                return load_file(path), whole
        return None

    def _whole(self, path: Path) -> str:
        """A resume comes by another way than the run did."""
        return os.path.normpath(os.path.join(self._whole_folder(str(path.parent)), path.name))

    def _candidates(self, name: str, near: Path) -> list[Path]:
        folders = (near, near / "joblets", self.folder, self.folder / "joblets")
        return list(dict.fromkeys(folder / f"{name}{ending}" for folder in folders for ending in (".yaml", ".yml")))

    def _not_found(self, name: str, position: Position, near: Path) -> None:
        looked = [str(path) for path in self._candidates(name, near) if path.suffix == ".yaml"]
        hint = (
            "looked for " + ", ".join(f"`{path}`" for path in looked) if _NAME.match(name) else "`@name` names a file"
        )
        label = did_you_mean(name, self._names_near(near))
        self.reading.report("JOBLET_NOT_FOUND", f"there is no joblet `{name}`", position, label=label, hint=hint)

    def _names_near(self, near: Path) -> list[str]:
        if self._read is not None:
            return []
        found: list[str] = []
        for folder in (near, near / "joblets", self.folder / "joblets"):
            try:
                found += [path.stem for path in folder.glob("*.yaml")]
            except OSError:
                continue
        return found


def _chain(files: list[str]) -> str:
    """Who calls whom, in one line."""
    names = [f"`{Path(file).stem}`" for file in files]
    return " -> ".join(names if len(names) <= _MOST_SHOWN else [*names[:3], "…", *names[-2:]])


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
