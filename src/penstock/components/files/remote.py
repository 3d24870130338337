"""A file server as `file_transfer` sees it, whatever protocol it speaks.

Law: all of it blocks and runs in one thread; only `abort` may be called from another, and ends whatever is being waited for. What
goes wrong leaves here as a ComponentFailure that names the server and never the password.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, Protocol

from penstock.components.base import ComponentFailure

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


@dataclass(frozen=True, slots=True)
class RemoteFile:
    path: str
    """On the server."""
    relative: str
    """From the folder that was searched."""
    size: int | None = None
    modified: datetime.datetime | None = None
    """UTC, without a zone."""
    is_folder: bool = False


class Remote(Protocol):
    def connect(self) -> None: ...

    def look(self, path: str) -> RemoteFile | None:
        """What is there, if anything."""
        ...

    def entries(self, folder: str) -> list[RemoteFile]: ...

    def read(self, path: str) -> Iterator[bytes]: ...

    def write(self, path: str, chunks: Iterable[bytes]) -> int:
        """A file of exactly this name; the bytes written."""
        ...

    def rename(self, path: str, to: str) -> None:
        """Also over a file that is there."""
        ...

    def delete(self, path: str) -> None: ...

    def make_folder(self, path: str) -> None:
        """With the folders above it; one that is there is fine."""
        ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


def joined(folder: str, name: str) -> str:
    return name if not folder or name.startswith("/") else f"{folder.rstrip('/')}/{name}"


def parent(path: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return folder or slash


def is_plain_name(name: str) -> bool:
    """A server can call its files what it likes; a name that leads elsewhere is never used for a local file."""
    return name not in ("", ".", "..") and "/" not in name and "\\" not in name and "\0" not in name


def search(remote: Remote, folder: str, patterns: list[str], *, recursive: bool) -> list[RemoteFile]:
    """The files of a folder that match, by name."""
    found: list[RemoteFile] = []
    waiting = [(folder, "")]
    while waiting:
        here, prefix = waiting.pop()
        for each in remote.entries(here):
            name = each.relative
            if not is_plain_name(name):
                raise ComponentFailure("unsafe_name", f"the server has a file called `{name[:200]}`, which is refused")
            relative = prefix + name
            if each.is_folder:
                if recursive:
                    waiting.append((joined(here, name), f"{relative}/"))
            elif any(fnmatchcase(name, one) or fnmatchcase(relative, one) for one in patterns):
                found.append(RemoteFile(joined(here, name), relative, each.size, each.modified))
    return sorted(found, key=lambda each: each.relative)
