"""SFTP, through paramiko, which is installed by those who need it.

Law: nothing is said to a server whose key is not known. A key is known from `host_key`, or from a file of known hosts.
"""

from __future__ import annotations

import base64
import datetime
import errno
import hashlib
import io
import logging
import socket
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from penstock.tools.base import ToolFailure
from penstock.tools.network import connect_words
from penstock.tools.places.base import Entry, Server, joined

CHUNK = 256 * 1024


def _paramiko() -> Any:
    try:
        module = import_module("paramiko")
    except ModuleNotFoundError as error:
        message = "SFTP needs the package `paramiko`, which is not installed; hint: `pip install 'penstock[sftp]'`"
        raise ToolFailure("not_installed", message) from error
    # Its threads write tracebacks to the terminal of a program that has no logging; what failed is said by the failure.
    logger = logging.getLogger("paramiko")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return module


class Sftp:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._paramiko = _paramiko()
        self._socket: socket.socket | None = None
        self._transport: Any = None
        self._client: Any = None

    def connect(self) -> None:
        server = self._server
        with self._failures(server.place):
            self._socket = _dial(server)
            self._transport = self._paramiko.Transport(self._socket)
            self._transport.banner_timeout = self._transport.auth_timeout = server.timeout
            self._transport.start_client(timeout=server.timeout)
            self._check_host_key(self._transport.get_remote_server_key())
            if server.private_key is not None:
                self._transport.auth_publickey(server.user, self._key(server.private_key))
            else:
                self._transport.auth_password(server.user, server.password or "")
            self._client = self._paramiko.SFTPClient.from_transport(self._transport)
            self._client.get_channel().settimeout(server.timeout)

    def _check_host_key(self, key: Any) -> None:
        server = self._server
        if server.verify is False:
            return
        digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
        shown = f"`SHA256:{digest}` ({key.get_name()})"
        if server.host_key is not None:
            given = server.host_key.strip()
            if given.removeprefix("SHA256:").rstrip("=") != digest and key.get_base64() not in given.split():
                raise ToolFailure("host_key", f"{server.place} has the key {shown}, which is not `host_key`")
            return
        file = Path("~/.ssh/known_hosts" if server.verify is True else server.verify).expanduser()
        if not self._is_known(file, key):
            raise ToolFailure(
                "host_key",
                f"the key of {server.place} is {shown}, and `{file}` does not have it for this host; "
                "hint: if that is the right key, give it as `host_key`",
            )

    def _is_known(self, file: Path, key: Any) -> bool:
        server = self._server
        try:
            known = self._paramiko.HostKeys(str(file))
        except FileNotFoundError:
            return False
        name = server.host if server.port == 22 else f"[{server.host}]:{server.port}"
        return bool(known.check(name, key))

    def _key(self, text: str) -> Any:
        server, paramiko = self._server, self._paramiko
        for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
            try:
                return kind.from_private_key(io.StringIO(text), server.passphrase)
            except paramiko.PasswordRequiredException as error:
                raise ToolFailure("auth", "the private key has a passphrase: give it in the keychain entry") from error
            except (paramiko.SSHException, ValueError, IndexError):
                continue
        hint = "an Ed25519, ECDSA or RSA key in OpenSSH or PEM form, and its right passphrase"
        raise ToolFailure("auth", f"the private key cannot be read; needed is {hint}")

    def look(self, path: str) -> Entry | None:
        with self._failures(path):
            try:
                found = self._client.stat(path or ".")
            except FileNotFoundError:
                return None
            return _file(path, path.rpartition("/")[2], found)

    def entries(self, folder: str) -> list[Entry]:
        with self._failures(folder):
            found = self._client.listdir_attr(folder or ".")
        # Links are left out: what they lead to is only known by asking again, and may be a way round in circles.
        plain = [entry for entry in found if stat.S_ISREG(entry.st_mode or 0) or stat.S_ISDIR(entry.st_mode or 0)]
        return [_file(joined(folder, entry.filename), entry.filename, entry) for entry in plain]

    def read(self, path: str, start: int = 0) -> Iterator[bytes]:
        with self._failures(path), self._client.open(path, "rb") as file:
            file.seek(start)
            file.prefetch(file.stat().st_size)
            while chunk := file.read(CHUNK):
                yield chunk

    def part(self, path: str, start: int, length: int) -> bytes:
        with self._failures(path), self._client.open(path, "rb") as file:
            return b"".join(file.readv([(start, length)]))

    def write(self, path: str, chunks: Iterable[bytes]) -> int:
        written = 0
        with self._failures(path), self._client.open(path, "wb") as file:
            file.set_pipelined(True)
            for chunk in chunks:
                file.write(chunk)
                written += len(chunk)
        return written

    def rename(self, path: str, to: str) -> None:
        with self._failures(to):
            try:
                self._client.posix_rename(path, to)
            except OSError:
                # Servers without that extension do not rename over a file.
                with suppress(OSError):
                    self._client.remove(to)
                self._client.rename(path, to)

    def delete(self, path: str) -> None:
        with self._failures(path):
            self._client.remove(path)

    def make_folder(self, path: str) -> None:
        with self._failures(path):
            made = "/" if path.startswith("/") else ""
            for part in filter(None, path.split("/")):
                made = joined(made, part)
                try:
                    self._client.stat(made)
                except FileNotFoundError:
                    self._client.mkdir(made)

    def close(self) -> None:
        for each in (self._client, self._transport, self._socket):
            if each is not None:
                with suppress(OSError, EOFError):
                    each.close()

    def abort(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _failures(self, path: str) -> Iterator[None]:
        try:
            yield
        except ToolFailure:
            raise
        except (OSError, EOFError, self._paramiko.SSHException) as error:
            raise self._failure(error, path) from error

    def _failure(self, error: Exception, path: str) -> ToolFailure:
        server, paramiko = self._server, self._paramiko
        about = path if path == server.place else f"`{path}` on {server.place}"
        if isinstance(error, paramiko.AuthenticationException):
            return ToolFailure("auth", f"{server.place} does not accept the login of `{server.user}`")
        if isinstance(error, FileNotFoundError):
            return ToolFailure("not_found", f"there is no {about}")
        if isinstance(error, PermissionError) or getattr(error, "errno", None) == errno.EACCES:
            return ToolFailure("permission", f"no permission for {about}")
        if isinstance(error, TimeoutError):
            return ToolFailure("timeout", f"{server.place} did not answer in time", retryable=True)
        lost = isinstance(error, (ConnectionError, EOFError, paramiko.SSHException)) or "closed" in str(error)
        if lost or path == server.place:
            reason = connect_words(error, server.host, server.port) if str(error) else "closed"
            return ToolFailure("connection", f"the connection to {server.place} failed: {reason}", retryable=True)
        return ToolFailure("sftp", f"{about}: the server answered: {error}")


def _dial(server: Server) -> socket.socket:
    for number, address in enumerate(server.addresses, start=1):
        try:
            return socket.create_connection((address, server.port), server.timeout)
        except OSError:
            if number == len(server.addresses):
                raise
    raise AssertionError("there is at least one address")


def _file(path: str, name: str, about: Any) -> Entry:
    modified = None
    if about.st_mtime is not None:
        modified = datetime.datetime.fromtimestamp(about.st_mtime, datetime.UTC).replace(tzinfo=None)
    return Entry(path, name, about.st_size, modified, is_folder=stat.S_ISDIR(about.st_mode or 0))
