"""The documents in a folder of this machine: listed, read and saved for the owner of the machine alone (`penstock ui`).

Law: nothing outside the folder is read or written, whatever a path says and wherever a link leads, and in it only YAML files. A
file is replaced whole or not at all, and only if its content is still what the editor read.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from penstock.dialects.kind import document_kind
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.projects import DOCUMENTS

MOST = 2000
"""How many documents are listed."""
MOST_LOOKED_AT = 50_000
"""How many files and folders are looked at for them."""
LONGEST_S = 5.0
LARGEST = 10_000_000
SKIPPED = frozenset({"node_modules", "venv", "__pycache__", "site-packages", "dist", "build"})
OTHER = "other"
"""The kind of YAML that is no document of ours."""

_NAME = re.compile(
    r"^metadata:(?:[ \t]*\{[^}\n]*?\bname:[ \t]*|[ \t]*(?:\#.*)?\n(?:[ \t]+.*\n|[ \t]*\n)*?[ \t]+name:[ \t]*)"
    r"(?P<quote>[\"']?)(?P<name>[^\"'\n,}#]+)",
    re.MULTILINE,
)


class NoSuchFile(Refused):
    """There is no such document in the project, or it may not be looked at."""


class FileChanged(Refused):
    """The file is not what it was when its editor read it."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    path: str
    """From the folder of the project, with slashes."""
    file: str
    """As a run names it."""
    kind: str
    name: str
    modified_at: float
    size: int


@dataclass(frozen=True, slots=True)
class ProjectText:
    about: ProjectFile
    text: str
    digest: str


class TooManyFiles(Refused):
    """The folder is too large to be looked through."""


def yaml_files(root: Path, until: float | None = None) -> Iterator[Path]:
    """The YAML files of a project, without those of hidden folders and of environments, and none that a link leads to from
    outside. Raises TooManyFiles, also when the time is over."""
    looked_at = 0
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            looked_at += 1
            if looked_at > MOST_LOOKED_AT or (until is not None and time.monotonic() > until):
                raise TooManyFiles(f"`{root}` has too many files")
            if entry.name.startswith("."):
                continue
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED and not (path / "pyvenv.cfg").is_file():
                    waiting.append(path)
            elif entry.name.endswith(DOCUMENTS) and _is_inside(path, root):
                yield path


def _is_inside(path: Path, root: Path) -> bool:
    try:
        return path.is_file() and path.resolve().is_relative_to(root)
    except OSError:
        return False


class ProjectDocuments:
    """All methods read files, so they must be called from threads."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._known: dict[tuple[str, int, int], tuple[str, str] | None] = {}
        self._saving = threading.Lock()

    def listed(self) -> list[ProjectFile]:
        """The playbooks, jobs and joblets, by path. A large folder is not looked through to its end."""
        found: list[ProjectFile] = []
        with suppress(TooManyFiles):
            for path in yaml_files(self.root, until=time.monotonic() + LONGEST_S):
                one = self._document(path)
                if one is not None:
                    found.append(one)
                if len(found) >= MOST:
                    break
        return sorted(found, key=lambda one: one.path)

    def read(self, path: str) -> ProjectText:
        whole = self._whole(path)
        try:
            data = _read(whole)
        except FileNotFoundError:
            raise NoSuchFile(f"there is no `{path}` in the project") from None
        return self._text(path, whole, data)

    def save(self, path: str, text: str, digest: str | None) -> ProjectText:
        """`digest`: of the text that was changed; None for a new file."""
        whole, data = self._whole(path), text.encode("utf-8")
        with self._saving:
            before = None
            with suppress(FileNotFoundError):
                before = _read(whole)
            if before is None and digest is not None:
                raise FileChanged(
                    f"`{path}` was deleted in the meantime", "save it as a new file, or under another name"
                )
            if before is not None and digest is None:
                raise FileChanged(f"there is a file `{path}` already", "open it, or choose another name")
            if before is not None and _digest(before) != digest:
                raise FileChanged(
                    f"`{path}` was changed in the meantime, by another program or in another tab",
                    "look at what is there now before you save yours",
                )
            try:
                _replace(whole, data, is_new=before is None)
            except FileExistsError:
                raise FileChanged(f"there is a file `{path}` already", "open it, or choose another name") from None
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise Unavailable(f"`{path}` cannot be saved: {reason}", "is the folder writable?") from error
        return self._text(path, whole, data)

    # ---- looking

    def _document(self, path: Path) -> ProjectFile | None:
        try:
            status = path.stat()
            key = (str(path), status.st_mtime_ns, status.st_size)
            if key not in self._known:
                if len(self._known) > 2 * MOST:
                    self._known.clear()
                self._known[key] = _recognised(path) if status.st_size <= LARGEST else None
        except OSError:
            return None
        known = self._known[key]
        if known is None:
            return None
        inner = path.relative_to(self.root).as_posix()
        return ProjectFile(inner, str(path.resolve()), known[0], known[1], status.st_mtime, status.st_size)

    def _whole(self, path: str) -> Path:
        pure = PurePosixPath(path)
        is_plain = path and "\0" not in path and "\\" not in path and not pure.is_absolute() and str(pure) == path
        if not is_plain or any(part.startswith(".") for part in pure.parts):
            raise NoSuchFile(f"`{path}` is no path in the project", "write it from the folder of the project, with `/`")
        if pure.suffix not in DOCUMENTS:
            raise NoSuchFile(f"`{path}` is no document", "documents end in `.yaml` or `.yml`")
        try:
            whole = (self.root / pure).resolve()
        except (OSError, RuntimeError):
            raise NoSuchFile(f"`{path}` cannot be followed", "is it a link to itself?") from None
        if not whole.is_relative_to(self.root):
            raise NoSuchFile(f"`{path}` leads out of the project")
        return whole

    def _text(self, path: str, whole: Path, data: bytes) -> ProjectText:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise NoSuchFile(f"`{path}` is no text in UTF-8") from None
        kind, name = _about(text, whole)
        try:
            modified = whole.stat().st_mtime
        except OSError:
            modified = time.time()
        about = ProjectFile(path, str(whole), kind, name, modified, len(data))
        return ProjectText(about, text, _digest(data))


def _recognised(path: Path) -> tuple[str, str] | None:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    kind, name = _about(text, path)
    return None if kind == OTHER else (kind, name)


def _about(text: str, path: Path) -> tuple[str, str]:
    found = _NAME.search(text)
    return document_kind(text) or OTHER, found["name"].strip() if found is not None else path.stem


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NoSuchFile(f"`{path.name}` cannot be read: {(error.strerror or str(error)).lower()}") from error
    if len(data) > LARGEST:
        raise NoSuchFile(f"`{path.name}` is larger than {LARGEST:,} bytes")
    return data


def _replace(path: Path, data: bytes, *, is_new: bool) -> None:
    """Readers see the old file or the new one. A new file never takes the place of one that appeared in the meantime."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    descriptor = os.open(written, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            os.link(written, path)
        else:
            written.chmod(path.stat().st_mode & 0o7777)
            written.replace(path)
    finally:
        written.unlink(missing_ok=True)
