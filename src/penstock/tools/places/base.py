"""A place: where files lie, whatever protocol it speaks.

    s3:// gs:// az:// and their relatives     an object store
    https:// http://                          a web server, for reading
    sftp:// ftp:// ftps://                    a file server
    a path, or file://                        this machine

Law: all of it blocks and is called from threads. A file that is written appears whole or not at all. What goes wrong leaves as a
ToolFailure that names the URL, and never what was signed or logged in with.
"""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO, Any, ClassVar, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from penstock.ports.meanings import FILE_SCHEMES, OBJECT_STORES, SERVER_SCHEMES, WEB_SCHEMES
from penstock.tools.base import ToolFailure

CHUNK = 1024 * 1024
TRIES = 5
"""So often in a row may a transfer break off without a byte having come."""
FIRST_PAUSE = 0.2
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_WILD = re.compile(r"[*?\[]")


def is_elsewhere(path: str) -> bool:
    """Is this the URL of a file that is not on this machine?"""
    found = _SCHEME.match(path)
    return found is not None and found[1].lower() in FILE_SCHEMES


@dataclass(frozen=True, slots=True)
class Location:
    """A URL, taken apart: the place, and the path there."""

    scheme: str
    host: str
    """Bucket, or host and port."""
    path: str
    """Without the first `/` where the place is a bucket."""
    query: str = field(default="", repr=False)
    login: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def parsed(url: str) -> Location:
        found = _SCHEME.match(url)
        scheme = found[1].lower() if found else ""
        if scheme not in FILE_SCHEMES:
            known = "`, `".join(f"{each}://" for each in FILE_SCHEMES)
            raise ToolFailure(
                "unsupported_scheme", f"`{scheme}://` is not supported: give a path, or a URL with `{known}`"
            )
        rest = url[len(scheme) + 3 :]
        if scheme in OBJECT_STORES:
            # Keys may hold any character, so this is no URL to be decoded.
            host, _, path = rest.partition("/")
            if not host:
                raise ToolFailure("parameters", f"`{url}` names no bucket: write `{scheme}://BUCKET/KEY`")
            return Location(scheme, host, path)
        try:
            parts = urlsplit(url)
            port, host = parts.port, parts.hostname or ""
        except ValueError as error:
            raise ToolFailure("parameters", f"this URL cannot be read: {error}") from error
        if not host:
            raise ToolFailure("parameters", f"`{scheme}://` is followed by no host: write `{scheme}://HOST/PATH`")
        shown = f"[{host}]" if ":" in host else host
        shown = shown if port is None else f"{shown}:{port}"
        login = {"username": parts.username, "password": parts.password}
        given = {name: unquote(value) for name, value in login.items() if value}
        path = parts.path if scheme in WEB_SCHEMES else unquote(rest.partition("/")[2])
        if scheme in SERVER_SCHEMES:
            # `sftp://host/~/inbox` is below the login's own folder, `sftp://host/inbox` below the root.
            path = path.removeprefix("~/") if path.startswith("~/") else f"/{path}"
        return Location(scheme, shown, path, parts.query, given)

    @property
    def root(self) -> str:
        return f"{self.scheme}://{self.host}"

    def url(self, path: str | None = None) -> str:
        """For people, for rows and for the log: without login and query, which may be secrets."""
        path = self.path if path is None else path
        if self.scheme in SERVER_SCHEMES:
            path = path.removeprefix("/") if path.startswith("/") else f"~/{path}"
        return f"{self.root}/{path.removeprefix('/')}"

    @property
    def is_pattern(self) -> bool:
        return self.scheme not in WEB_SCHEMES and _WILD.search(self.path) is not None


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder of a place."""

    path: str
    relative: str = ""
    """From the folder that was searched."""
    size: int | None = None
    modified: datetime.datetime | None = None
    """UTC, without a zone."""
    is_folder: bool = False
    version: str | None = None
    """Another one when the content is another, where the place says so."""


class Place:
    """Paths are those of the place itself. What a place cannot do raises ToolFailure `unsupported`."""

    at_once: ClassVar[int] = 8
    """How many files may be read at a time."""

    def __init__(self, location: Location) -> None:
        self.location = location

    def look(self, path: str) -> Entry | None:
        """What is there, if anything."""
        raise NotImplementedError

    def entries(self, folder: str, *, recursive: bool) -> Iterator[Entry]:
        """The files and folders in a folder; with `recursive`, also of the folders below. Nothing when it is not there."""
        raise self._cannot("be listed", "name the files")

    def read(self, entry: Entry, start: int = 0) -> Iterator[bytes]:
        """The content from that byte on."""
        raise NotImplementedError

    def part(self, entry: Entry, start: int, length: int) -> bytes:
        """Some bytes of the middle; fewer only at the end of the file."""
        found = b""
        with closing_of(self.read(entry, start)) as chunks:
            for chunk in chunks:
                found += chunk
                if len(found) >= length:
                    break
        return found[:length]

    def has_parts(self, entry: Entry) -> bool:
        """Can a part be had without what comes before it?"""
        return True

    def write(self, path: str, chunks: Iterable[bytes], *, overwrite: bool = True) -> int:
        """A whole file; its size. Nothing is there under this name if it fails, or what was there before."""
        raise self._cannot("be written to", "name a place that takes files: `s3://`, `sftp://`, a path")

    def delete(self, path: str) -> None:
        raise self._cannot("be deleted from", "only reading is possible there")

    def copy(self, entry: Entry, to: str) -> None:
        """Within this place."""
        self.write(to, self.read(entry))

    def move(self, entry: Entry, to: str) -> None:
        self.copy(entry, to)
        self.delete(entry.path)

    def close(self) -> None: ...

    def _cannot(self, what: str, hint: str) -> ToolFailure:
        return ToolFailure("unsupported", f"`{self.location.root}` cannot {what}; hint: {hint}")


def closing_of(chunks: Iterator[bytes]) -> Any:
    """A generator that is left early lets go of its connection now, and not when it is collected."""
    return closing(chunks)  # type: ignore[type-var, unused-ignore]


def missing(location: Location, path: str | None = None) -> ToolFailure:
    url = location.url(path)
    return ToolFailure("not_found", f"there is no file `{url}`", path=url)


def required(place: Place, path: str) -> Entry:
    """The file itself. Raises ToolFailure when it is not there, or is a folder."""
    found = place.look(path)
    if found is None:
        raise missing(place.location, path)
    if found.is_folder:
        url = place.location.url(path)
        raise ToolFailure(
            "is_directory",
            f"`{url}` is a folder; hint: name a file, or a pattern such as `{url.rstrip('/')}/*`",
            path=url,
        )
    return found


def translated(pattern: str) -> re.Pattern[str]:
    """A pattern of paths as a regular expression, as a shell reads it: `*` stays within a folder, `**` goes through folders,
    and what begins with a dot is found only by a dot."""
    parts = pattern.split("/")
    made = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            made.append(r"(?:[^/.][^/]*/)*" + (r"[^/.][^/]*" if last else ""))
            continue
        hidden = r"(?!\.)" if part[:1] in ("*", "?", "[") else ""
        made.append(hidden + _segment(part) + ("" if last else "/"))
    return re.compile("".join(made))


def _segment(part: str) -> str:
    made, at = "", 0
    while at < len(part):
        mark = part[at]
        end = part.find("]", at + 2) if mark == "[" else -1
        if mark == "*":
            made += "[^/]*"
        elif mark == "?":
            made += "[^/]"
        elif end > 0:
            inside = part[at + 1 : end].replace("\\", r"\\").replace("[", r"\[")
            made += f"[{'^' + inside[1:] if inside[0] == '!' else inside}]"
            at = end
        else:
            made += re.escape(mark)
        at += 1
    return made


def matching(place: Place, pattern: str) -> list[Entry]:
    """The files of a place that match, by their paths."""
    parts = pattern.split("/")
    first = next(number for number, part in enumerate(parts) if _WILD.search(part))
    folder, rule = "/".join(parts[:first]) or ("/" if pattern.startswith("/") else ""), translated(pattern)
    found = place.entries(folder, recursive=first < len(parts) - 1 or parts[-1] == "**")
    return sorted(
        (each for each in found if not each.is_folder and rule.fullmatch(each.path)), key=lambda each: each.path
    )


def pausing(number: int) -> None:
    time.sleep(min(FIRST_PAUSE * 2 ** (number - 1), 5.0))


def fetch(place: Place, entry: Entry, file: IO[bytes], check: Callable[[], None] = lambda: None) -> None:
    """All of a file into another. Where it breaks off it is begun again there; a file that changed meanwhile is a failure."""
    failed = 0
    while True:
        check()
        start = file.tell()
        try:
            with closing_of(place.read(entry, start)) as chunks:
                for chunk in chunks:
                    check()
                    file.write(chunk)
            if entry.size is not None and file.tell() != entry.size:
                url = place.location.url(entry.path)
                words = f"`{url}` has {entry.size:,} bytes, and {file.tell():,} came"
                raise ToolFailure("connection", words, retryable=file.tell() < entry.size, path=url)
            return
        except ToolFailure as failure:
            failed = 1 if file.tell() > start else failed + 1
            if not failure.retryable or failed >= TRIES:
                raise
        pausing(failed)


def again(attempt: Callable[[], Any]) -> Any:
    """What an attempt gives, tried again while the failure is one that may pass."""
    for number in range(1, TRIES + 1):
        try:
            return attempt()
        except ToolFailure as failure:
            if not failure.retryable or number == TRIES:
                raise
        pausing(number)
    raise AssertionError("the last attempt returned or raised")


Credential = Mapping[str, Any]


def fields(credential: Credential) -> Credential:
    """The fields of a keychain entry; one that is a single text, as from the environment, may hold them as JSON."""
    text = credential.get("value")
    if set(credential) != {"value"} or not isinstance(text, str) or not text.lstrip().startswith("{"):
        return credential
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise ToolFailure("credential", "the keychain entry begins like JSON and is none") from None
    return found if isinstance(found, dict) else credential


# ---- file servers

Scheme = Literal["ftp", "ftps", "sftp"]
PORTS: dict[Scheme, int] = {"ftp": 21, "ftps": 21, "sftp": 22}


@dataclass(frozen=True, slots=True)
class Server:
    scheme: Scheme
    host: str
    port: int
    addresses: list[str]
    """What the host was resolved to, and judged where that is asked for; at least one."""
    user: str = ""
    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    host_key: str | None = None
    verify: bool | str = True
    timeout: float = 60.0
    passive: bool = True
    implicit_tls: bool = False
    """FTPS as it was before there was a standard: TLS from the first byte on, by custom on port 990."""
    encoding: str = "utf-8"

    @property
    def place(self) -> str:
        return f"`{self.scheme}://{self.host}:{self.port}`"


def joined(folder: str, name: str) -> str:
    return name if not folder or name.startswith("/") else f"{folder.rstrip('/')}/{name}"
