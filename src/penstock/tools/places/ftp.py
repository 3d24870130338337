"""FTP, plain or over TLS, with the standard library's client.

Law: control and data connections both go to the address that was judged, and to no other.
"""

from __future__ import annotations

import datetime
import ftplib
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from penstock.tools.base import ToolFailure
from penstock.tools.network import causes, connect_words, tls_context, tls_reason
from penstock.tools.places.base import Entry, Server, joined

CHUNK = 64 * 1024
_ABSENT = ("500", "501", "502", "504")
"""The server does not know the command, or not with these arguments."""
_ERRORS: tuple[type[Exception], ...] = (*ftplib.all_errors, ValueError)


class _Dialled(ftplib.FTP):
    """Connects to the addresses given in place of looking the name up again."""

    def dial(self, server: Server) -> None:
        self.host, self.port, self.timeout = server.host, server.port, server.timeout
        self.encoding = server.encoding
        for number, address in enumerate(server.addresses, start=1):
            try:
                self.sock = socket.create_connection((address, server.port), server.timeout)
            except OSError:
                if number == len(server.addresses):
                    raise
            else:
                break
        assert self.sock is not None
        if server.implicit_tls and isinstance(self, ftplib.FTP_TLS):
            self.sock = self.context.wrap_socket(self.sock, server_hostname=server.host)
        self.af = self.sock.family
        self.file = self.sock.makefile("r", encoding=self.encoding)
        self.welcome = self.getresp()


class _DialledTls(ftplib.FTP_TLS, _Dialled):
    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int | None]:
        """Many servers ask that a data connection resumes the session of the control connection; the library does not."""
        connection, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        if self._prot_p:  # type: ignore[attr-defined]
            session = self.sock.session if isinstance(self.sock, ssl.SSLSocket) else None
            connection = self.context.wrap_socket(connection, server_hostname=self.host, session=session)
        return connection, size


class Ftp:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._client: _Dialled = _Dialled()
        self._data: socket.socket | None = None
        self._has_mlsd = True

    def connect(self) -> None:
        server = self._server
        with self._failures(server.place):
            if server.scheme == "ftps":
                self._client = _DialledTls(context=tls_context(server.verify))
            client = self._client
            client.dial(server)
            # On an FTP_TLS this first makes the control connection safe.
            client.login(server.user or "anonymous", server.password or ("" if server.user else "anonymous@"))
            if isinstance(client, _DialledTls):
                client.prot_p()
            client.set_pasv(server.passive)
            client.voidcmd("TYPE I")

    def look(self, path: str) -> Entry | None:
        with self._failures(path):
            size = self._asked(lambda: self._client.size(path))
            if size is not None:
                return Entry(path, path.rpartition("/")[2], int(size), self._time(path))
            here = self._client.pwd()
            if self._asked(lambda: self._client.cwd(path)) is None:
                return None
            self._client.cwd(here)
            return Entry(path, path.rpartition("/")[2], is_folder=True)

    def entries(self, folder: str) -> list[Entry]:
        with self._failures(folder):
            if self._has_mlsd:
                try:
                    return [each for each in map(_described, self._mlsd(folder)) if each is not None]
                except ftplib.error_perm as error:
                    if not str(error).startswith(_ABSENT):
                        raise
                    self._has_mlsd = False
            return self._plain_list(folder)

    def _mlsd(self, folder: str) -> list[tuple[str, dict[str, str], str]]:
        return [(folder, facts, name) for name, facts in self._client.mlsd(folder)]

    def _plain_list(self, folder: str) -> list[Entry]:
        """Old servers give names only; what has a size is a file."""
        try:
            names = self._client.nlst(folder) if folder else self._client.nlst()
        except ftplib.error_perm as error:
            if str(error).startswith("550") and "no files" in str(error).lower():
                return []
            raise
        found = []
        for name in sorted({each.rpartition("/")[2] for each in names} - {".", ".."}):
            path = joined(folder, name)
            size = self._asked(lambda path=path: self._client.size(path))  # type: ignore[misc]
            time = None if size is None else self._time(path)
            found.append(Entry(path, name, size, time, is_folder=size is None))
        return found

    def read(self, path: str, start: int = 0) -> Iterator[bytes]:
        with self._failures(path):
            self._client.voidcmd("TYPE I")
            try:
                opened, skip = self._client.transfercmd(f"RETR {path}", start or None), 0
            except ftplib.error_perm:
                if not start:
                    raise
                # Not every server can begin in the middle.
                opened, skip = self._client.transfercmd(f"RETR {path}"), start
            with opened as data:
                self._data = data
                while chunk := data.recv(CHUNK):
                    if kept := chunk[skip:]:
                        yield kept
                    skip = max(0, skip - len(chunk))
                _end(data)
            self._data = None
            self._client.voidresp()

    def part(self, path: str, start: int, length: int) -> bytes:
        raise AssertionError("one connection for orders: what is asked for is read to its end")

    def write(self, path: str, chunks: Iterable[bytes]) -> int:
        written = 0
        with self._failures(path):
            self._client.voidcmd("TYPE I")
            try:
                with self._client.transfercmd(f"STOR {path}") as data:
                    self._data = data
                    for chunk in chunks:
                        data.sendall(chunk)
                        written += len(chunk)
                    _end(data)
            except ToolFailure:
                # The source broke, not the server: it takes what came for all, says so, and is asked to delete it.
                with suppress(*_ERRORS):
                    self._client.voidresp()
                raise
            self._data = None
            self._client.voidresp()
        return written

    def rename(self, path: str, to: str) -> None:
        with self._failures(to):
            try:
                self._client.rename(path, to)
            except ftplib.error_perm:
                # Some servers do not rename over a file; if it was not there either, the second attempt says why.
                self._asked(lambda: self._client.delete(to))
                self._client.rename(path, to)

    def delete(self, path: str) -> None:
        with self._failures(path):
            self._client.delete(path)

    def make_folder(self, path: str) -> None:
        with self._failures(path):
            made = "/" if path.startswith("/") else ""
            for part in filter(None, path.split("/")):
                made = joined(made, part)
                # "It exists" and "not allowed" are both 550; writing into it will tell them apart.
                self._asked(lambda made=made: self._client.mkd(made))  # type: ignore[misc]

    def close(self) -> None:
        with suppress(*_ERRORS):
            if self._client.sock is not None:
                self._client.quit()
        self._client.close()

    def abort(self) -> None:
        for connection in (self._data, self._client.sock):
            if connection is not None:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """The answer, or None when the server says no."""
        try:
            return ask()
        except ftplib.error_perm:
            return None

    def _time(self, path: str) -> datetime.datetime | None:
        answer = self._asked(lambda: self._client.voidcmd(f"MDTM {path}"))
        return _timestamp(answer.partition(" ")[2]) if answer else None

    @contextmanager
    def _failures(self, path: str) -> Iterator[None]:
        try:
            yield
        except ToolFailure:
            raise
        except _ERRORS as error:
            raise _failure(error, path, self._server) from error


def _end(data: socket.socket) -> None:
    if isinstance(data, ssl.SSLSocket):
        with suppress(OSError):
            data.unwrap()


def _described(entry: tuple[str, dict[str, str], str]) -> Entry | None:
    folder, facts, name = entry
    kind = facts.get("type", "file").lower()
    # The folder itself and the one above it; and links, which each server describes in its own way.
    if kind not in ("file", "dir") or name in (".", ".."):
        return None
    size = facts.get("size", "")
    return Entry(
        joined(folder, name),
        name,
        int(size) if size.isdecimal() else None,
        _timestamp(facts.get("modify", "")),
        is_folder=kind == "dir",
    )


def _timestamp(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(text.strip()[:14], "%Y%m%d%H%M%S")
    except ValueError:
        return None


def _failure(error: Exception, path: str, server: Server) -> ToolFailure:
    reply = str(error)
    if isinstance(error, (ftplib.error_perm, ftplib.error_temp)):
        about = path if path == server.place else f"`{path}` on {server.place}"
        kind = {"530": "auth", "532": "auth", "550": "not_found", "552": "disk", "553": "permission"}.get(reply[:3])
        return ToolFailure(
            kind or "ftp_status", f"{about}: the server answered {reply}", retryable=reply.startswith("4")
        )
    for cause in causes(error):
        if isinstance(cause, ssl.SSLError):
            return ToolFailure("tls", f"no secure connection to {server.place}: {tls_reason(cause)}")
        if isinstance(cause, TimeoutError):
            return ToolFailure("timeout", f"{server.place} did not answer in time", retryable=True)
    if isinstance(error, ftplib.Error):
        return ToolFailure("protocol", f"{server.place} said what no FTP server should: {reply}")
    if isinstance(error, UnicodeError):
        return ToolFailure("encoding", f"a name on {server.place} is not in `{server.encoding}`: give its `encoding`")
    if isinstance(error, ValueError):
        return ToolFailure("parameters", f"`{path}` cannot be said to an FTP server: {reply}")
    words = connect_words(error, server.host, server.port) if reply else "closed"
    return ToolFailure("connection", f"the connection to {server.place} failed: {words}", retryable=True)
