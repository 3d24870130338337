"""Files elsewhere, as one component run works with them.

Law: what is read is copied into the run's own folder first, under the names it has there; what is written is sent when the
component is done, and not if it failed. So whoever reads and writes needs to know of local files only. Parquet files are read in
parts instead, where their place gives parts. Nothing is left behind when the run of the component ends.
"""

from __future__ import annotations

import datetime
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.ports.rows import RowsFailed
from penstock.tools.addresses import Addresses
from penstock.tools.base import ToolFailure
from penstock.tools.places import opened
from penstock.tools.places.base import CHUNK, Entry, Location, Place, again, fetch, matching, required

Credentials = str | dict[str, Any] | None
"""The name of a keychain entry, or what would be in it."""


@dataclass(frozen=True, slots=True)
class RemoteParts:
    """A file elsewhere of which parts can be had."""

    place: Place
    entry: Entry

    @property
    def url(self) -> str:
        return self.place.location.url(self.entry.path)

    @property
    def size(self) -> int:
        assert self.entry.size is not None, "parts are those of a file with a size"
        return self.entry.size

    @property
    def modified(self) -> datetime.datetime | None:
        return self.entry.modified

    def part(self, start: int, length: int) -> bytes:
        try:
            found: bytes = again(lambda: self.place.part(self.entry, start, length))
        except ToolFailure as failed:
            raise RowsFailed(failed.kind, failed.message, retryable=failed.retryable) from failed
        return found


@dataclass(frozen=True, slots=True)
class _Target:
    place: Place
    path: str
    """There."""
    here: Path


class Mirror:
    def __init__(self, work: Path, credential: Callable[[str], Mapping[str, Any]], allowed: Addresses) -> None:
        self._work = work
        self._credential = credential
        self._allowed = allowed
        self._folder: Path | None = None
        self._places: dict[tuple[str, str, str], Place] = {}
        self._copies: dict[tuple[str, str], list[Path]] = {}
        self._targets: dict[tuple[str, str], _Target] = {}
        self._names: dict[str, str] = {}
        """What a path here begins with -> what its URL begins with."""
        self._parts: dict[tuple[str, str], list[RemoteParts] | None] = {}
        self._releases: dict[str, Callable[[], None]] = {}
        self._is_stopped = False

    def at(self, url: str, credentials: Credentials) -> tuple[Place, Location]:
        """The place of a URL, opened once for all that is done there."""
        location = Location.parsed(url)
        key = (location.root, repr(credentials), f"{location.query}{sorted(location.login.items())}")
        if key not in self._places:
            entry = self._credential(credentials) if isinstance(credentials, str) else credentials or {}
            self._places[key] = opened(location, entry, self._allowed)
        return self._places[key], location

    def entries(self, url: str, credentials: Credentials) -> tuple[Place, list[Entry]]:
        """The file, or those that match the pattern. Raises ToolFailure when there is none."""
        place, location = self.at(url, credentials)
        if not location.is_pattern:
            return place, [required(place, location.path)]
        found = again(lambda: matching(place, location.path))
        if not found:
            raise ToolFailure("not_found", f"no file matches `{location.url()}`", path=location.url())
        return place, found

    # Reading

    def copies(self, url: str, credentials: Credentials) -> list[Path]:
        """Copies of the file, or of those that match the pattern, in the order of their names."""
        key = (url, repr(credentials))
        if key not in self._copies:
            place, found = self.entries(url, credentials)
            root = self._new_folder(place.location)
            paths = [root / each for each in map(_safe, (entry.path for entry in found))]
            with ThreadPoolExecutor(min(place.at_once, len(found)), "fetch") as pool:
                list(pool.map(lambda pair: self._fetch(place, *pair), zip(found, paths, strict=True)))
            self._copies[key] = paths
        return self._copies[key]

    def _fetch(self, place: Place, entry: Entry, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            fetch(place, entry, file, self._check)

    def parts(self, url: str, credentials: Credentials) -> list[RemoteParts] | None:
        """The same, to be read in parts; None where the place gives only whole files."""
        key = (url, repr(credentials))
        if key not in self._parts:
            place, found = self.entries(url, credentials)
            parts = [RemoteParts(place, each) for each in found]
            self._parts[key] = parts if all(map(place.has_parts, found)) else None
        return self._parts[key]

    def derived(self, path: Path, name: str, make: Callable[[Path], None]) -> Path:
        """A file in the run's folder that is made of another one, once; it is shown as that."""
        key = (str(path), name)
        if key not in self._copies:
            self._check()
            folder = self._made_folder() / f"derived-{len(self._names)}"
            folder.mkdir()
            copy = folder / name
            self._names = {str(copy): self.shown(str(path)), **self._names}
            make(copy)
            self._copies[key] = [copy]
        return self._copies[key][0]

    # Writing

    def target(self, url: str, credentials: Credentials, *, begun: bool = False) -> Path:
        """Where to write what will be sent; with `begun`, a copy of what is there is there already."""
        key = (url, repr(credentials))
        if key not in self._targets:
            place, location = self.at(url, credentials)
            if location.is_pattern:
                raise ToolFailure("parameters", f"`{location.url()}` is a pattern, and one file is to be written")
            here = self._new_folder(location) / _safe(location.path)
            here.parent.mkdir(parents=True, exist_ok=True)
            if begun and (there := place.look(location.path)) is not None:
                self._fetch(place, there, here)
            self._targets[key] = _Target(place, location.path, here)
        return self._targets[key].here

    @property
    def is_used(self) -> bool:
        return bool(self._places) or self._folder is not None

    @property
    def has_targets(self) -> bool:
        return bool(self._targets)

    def send(self) -> None:
        """Each file appears there whole or not at all."""
        for target in self._targets.values():
            if target.here.is_dir():
                files = sorted(path for path in target.here.rglob("*") if path.is_file())
                for path in files:
                    self._send(
                        target.place, f"{target.path.rstrip('/')}/{path.relative_to(target.here).as_posix()}", path
                    )
            elif target.here.exists():
                self._send(target.place, target.path, target.here)
        self._targets.clear()

    def _send(self, place: Place, path: str, file: Path) -> None:
        again(lambda: place.write(path, self._chunks(file)))

    def _chunks(self, path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                self._check()
                yield chunk

    # Names

    def shown(self, text: str) -> str:
        """A text with the URLs that people know in the place of paths here."""
        for here, there in self._names.items():
            text = text.replace(here, there)
        return text

    def prefixes(self) -> Mapping[str, str]:
        return self._names

    def _new_folder(self, location: Location) -> Path:
        root = self._made_folder() / str(len(self._names)) / location.scheme / location.host
        self._names[f"{root}{os.sep}"] = location.url("" if location.scheme not in ("sftp", "ftp", "ftps") else "/")
        return root

    def _made_folder(self) -> Path:
        if self._folder is None:
            self._work.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix="mirror-", dir=self._work))
        return self._folder

    # The end

    def keep(self, key: str, hold: Callable[[], Callable[[], None]]) -> None:
        """Hold something, once under a key; what `hold` returns lets go of it when the run of the component ends."""
        if key not in self._releases:
            self._releases[key] = hold()

    def interrupt(self) -> None:
        self._is_stopped = True

    def _check(self) -> None:
        if self._is_stopped:
            raise ToolFailure("interrupted", "interrupted")

    def close(self) -> None:
        for release in self._releases.values():
            release()
        for place in self._places.values():
            place.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        for held in (self._releases, self._parts, self._places, self._copies, self._targets, self._names):
            held.clear()
        self._folder = None


def _safe(path: str) -> str:
    """A place can call its files what it likes; a name that leads elsewhere is never used for a local file."""
    parts: Sequence[str] = [part for part in path.split("/") if part] or ["index"]
    if any(part in (".", "..") or "\0" in part or len(part.encode()) > 255 for part in parts):
        raise ToolFailure("unsafe_name", f"a file called `{path[:200]}` cannot be copied here")
    return "/".join(parts)
