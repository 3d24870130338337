"""File servers, whatever protocol they speak: FTP, FTPS, SFTP.

Law: all of it blocks and runs in one thread at a time; only `abort` may be called from another, and ends whatever is being waited
for. What goes wrong leaves here as a ToolFailure that names the server and never the password.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import Any, Protocol, cast

from penstock.tools.addresses import Addresses
from penstock.tools.base import ToolFailure
from penstock.tools.network import allowed_addresses
from penstock.tools.places.base import PORTS, Credential, Entry, Location, Place, Scheme, Server, joined


class Remote(Protocol):
    def connect(self) -> None: ...

    def look(self, path: str) -> Entry | None:
        """What is there, if anything."""
        ...

    def entries(self, folder: str) -> list[Entry]: ...

    def read(self, path: str, start: int = 0) -> Iterator[bytes]: ...

    def part(self, path: str, start: int, length: int) -> bytes: ...

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


def parent(path: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return folder or slash


def is_plain_name(name: str) -> bool:
    """A server can call its files what it likes; a name that leads elsewhere is never used for a local file."""
    return name not in ("", ".", "..") and "/" not in name and "\\" not in name and "\0" not in name


def _walked(remote: Remote, folder: str, *, recursive: bool) -> Iterator[Entry]:
    waiting = [(folder, "")]
    while waiting:
        here, prefix = waiting.pop()
        for each in remote.entries(here):
            name = each.relative
            if not is_plain_name(name):
                raise ToolFailure("unsafe_name", f"the server has a file called `{name[:200]}`, which is refused")
            yield Entry(joined(here, name), prefix + name, each.size, each.modified, each.is_folder)
            if each.is_folder and recursive:
                waiting.append((joined(here, name), f"{prefix}{name}/"))


def search(remote: Remote, folder: str, patterns: list[str], *, recursive: bool) -> list[Entry]:
    """The files of a folder that match, by name."""

    def matches(each: Entry) -> bool:
        name = each.path.rpartition("/")[2]
        return any(fnmatchcase(name, one) or fnmatchcase(each.relative, one) for one in patterns)

    found = _walked(remote, folder, recursive=recursive)
    return sorted((each for each in found if not each.is_folder and matches(each)), key=lambda each: each.relative)


def put_whole(remote: Remote, target: str, chunks: Iterable[bytes], *, overwrite: bool) -> int:
    """Under another name first, so that nobody there picks up half of it."""
    if not overwrite and remote.look(target) is not None:
        raise ToolFailure("exists", f"the server has a `{target}` already", path=target)
    folder = parent(target)
    if folder not in ("", "/"):
        remote.make_folder(folder)
    temporary = joined(folder, f".{secrets.token_hex(6)}.part")
    try:
        size = remote.write(temporary, chunks)
        remote.rename(temporary, target)
    except BaseException:
        with suppress(ToolFailure):
            remote.delete(temporary)
        raise
    return size


def client(server: Server) -> Remote:
    if server.scheme == "sftp":
        from penstock.tools.places.sftp import Sftp  # A transfer speaks one protocol.

        return Sftp(server)
    from penstock.tools.places.ftp import Ftp  # As above.

    return Ftp(server)


def server_at(
    scheme: Scheme, host: str, port: int, addresses: list[str], login: Mapping[str, Any], **options: Any
) -> Server:
    """`login` has the fields of a keychain entry."""

    def text(*names: str) -> str | None:
        return next((str(login[name]) for name in names if login.get(name) is not None), None)

    password = text("password")
    return Server(
        scheme,
        host,
        port,
        addresses,
        user=text("username", "user") or "",
        password=None if password is None else password.strip("\r\n"),
        private_key=text("private_key"),
        passphrase=text("passphrase"),
        **{"host_key": text("host_key"), **options},
        implicit_tls=scheme == "ftps" and port == 990,
    )


class ServerPlace(Place):
    """One connection, made when it is first needed and again after it was lost."""

    at_once = 1

    def __init__(self, location: Location, credential: Credential, allowed: Addresses) -> None:
        super().__init__(location)
        self._credential = {**location.login, **credential}
        self._allowed = allowed
        self._remote: Remote | None = None
        self._turn = threading.RLock()

    @contextmanager
    def _connected(self) -> Iterator[Remote]:
        with self._turn:
            try:
                if self._remote is None:
                    remote = client(self._server())
                    remote.connect()
                    self._remote = remote
                yield self._remote
            except ToolFailure as failure:
                if failure.retryable:
                    self.close()
                raise

    def _server(self) -> Server:
        scheme = cast(Scheme, self.location.scheme)
        host, _, digits = self.location.host.rpartition(":") if self.location.host[-1] != "]" else ("", "", "")
        port = int(digits) if host else PORTS[scheme]
        host = (host or self.location.host).strip("[]")
        verify = self._credential.get("verify", True)
        return server_at(
            scheme, host, port, allowed_addresses(host, port, self._allowed), self._credential, verify=verify
        )

    def look(self, path: str) -> Entry | None:
        with self._connected() as remote:
            return remote.look(path.rstrip("/") or path)

    def entries(self, folder: str, *, recursive: bool) -> Iterator[Entry]:
        with self._connected() as remote:
            if remote.look(folder) is None:
                return
            found = list(_walked(remote, folder, recursive=recursive))
        yield from found

    def read(self, entry: Entry, start: int = 0) -> Iterator[bytes]:
        with self._connected() as remote:
            yield from remote.read(entry.path, start)

    def has_parts(self, entry: Entry) -> bool:
        return self.location.scheme == "sftp"

    def part(self, entry: Entry, start: int, length: int) -> bytes:
        length = length if entry.size is None else min(length, entry.size - start)
        with self._connected() as remote:
            return remote.part(entry.path, start, length) if length > 0 else b""

    def write(self, path: str, chunks: Iterable[bytes], *, overwrite: bool = True) -> int:
        with self._connected() as remote:
            return put_whole(remote, path, chunks, overwrite=overwrite)

    def delete(self, path: str) -> None:
        with self._connected() as remote:
            remote.delete(path)

    def copy(self, entry: Entry, to: str) -> None:
        # The one connection cannot read and write at the same time.
        other = ServerPlace(self.location, self._credential, self._allowed)
        try:
            other.write(to, self.read(entry))
        finally:
            other.close()

    def move(self, entry: Entry, to: str) -> None:
        with self._connected() as remote:
            if parent(to) not in ("", "/"):
                remote.make_folder(parent(to))
            remote.rename(entry.path, to)

    def close(self) -> None:
        remote, self._remote = self._remote, None
        if remote is not None:
            with suppress(ToolFailure):
                remote.close()
