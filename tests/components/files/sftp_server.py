"""A small real SFTP server on loopback over one folder, made of paramiko's server side."""

from __future__ import annotations

import io
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paramiko
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519


@dataclass
class SftpSite:
    root: Path
    host_key: Any
    port: int = 0
    logins: list[str] = field(default_factory=list)

    def url(self, path: str = "") -> str:
        return f"sftp://127.0.0.1:{self.port}{path}"

    @property
    def known_hosts_line(self) -> str:
        return f"[127.0.0.1]:{self.port} {self.host_key.get_name()} {self.host_key.get_base64()}\n"


def new_key(passphrase: str | None = None) -> tuple[str, Any]:
    """A private key as text, and as paramiko knows it."""
    secret = serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else serialization.NoEncryption()
    text = (
        ed25519.Ed25519PrivateKey.generate()
        .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, secret)
        .decode()
    )
    return text, paramiko.Ed25519Key.from_private_key(io.StringIO(text), passphrase)


class _Login(paramiko.ServerInterface):
    def __init__(self, site: SftpSite, accepted: Any) -> None:
        self._site, self._accepted = site, accepted

    def check_auth_password(self, username: str, password: str) -> int:
        self._site.logins.append("password")
        good = (username, password) == ("ann", "right")
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def check_auth_publickey(self, username: str, key: Any) -> int:
        self._site.logins.append("publickey")
        good = username == "ann" and self._accepted is not None and key.asbytes() == self._accepted.asbytes()
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def get_allowed_auths(self, username: str) -> str:
        return "password,publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED


class _Handle(paramiko.SFTPHandle):
    def __init__(self, file: Any, flags: int) -> None:
        super().__init__(flags)
        self.readfile = self.writefile = file

    def stat(self) -> Any:
        return paramiko.SFTPAttributes.from_stat(os.fstat(self.readfile.fileno()))


def _code(action: Any) -> int:
    try:
        action()
    except OSError as error:
        return int(paramiko.SFTPServer.convert_errno(error.errno or 0))
    return paramiko.SFTP_OK


class _Files(paramiko.SFTPServerInterface):
    def __init__(self, server: Any, *arguments: Any, site: SftpSite, posix_rename: bool = True) -> None:
        self._site, self._posix_rename = site, posix_rename
        super().__init__(server, *arguments)

    def _place(self, path: str) -> Path:
        return self._site.root.joinpath(*[part for part in path.split("/") if part not in ("", ".", "..")])

    def list_folder(self, path: str) -> Any:
        try:
            entries = sorted(self._place(path).iterdir())
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)
        return [paramiko.SFTPAttributes.from_stat(each.lstat(), each.name) for each in entries]

    def stat(self, path: str) -> Any:
        try:
            return paramiko.SFTPAttributes.from_stat(self._place(path).stat())
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)

    lstat = stat

    def open(self, path: str, flags: int, attr: Any) -> Any:
        mode = "wb" if flags & (os.O_WRONLY | os.O_RDWR) else "rb"
        try:
            return _Handle(self._place(path).open(mode), flags)
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)

    def remove(self, path: str) -> int:
        return _code(lambda: self._place(path).unlink())

    def rename(self, oldpath: str, newpath: str) -> int:
        if self._place(newpath).exists():
            return paramiko.SFTP_FAILURE
        return _code(lambda: self._place(oldpath).rename(self._place(newpath)))

    def posix_rename(self, oldpath: str, newpath: str) -> int:
        if not self._posix_rename:
            return paramiko.SFTP_OP_UNSUPPORTED
        return _code(lambda: self._place(oldpath).replace(self._place(newpath)))

    def mkdir(self, path: str, attr: Any) -> int:
        return _code(lambda: self._place(path).mkdir())


@contextmanager
def sftp_server(root: Path, *, accepted: Any = None, posix_rename: bool = True) -> Iterator[SftpSite]:
    """`accepted`: the key that may log in, beside the password `right` of `ann`."""
    root.mkdir(parents=True, exist_ok=True)
    site = SftpSite(root, new_key()[1])
    listener = socket.create_server(("127.0.0.1", 0))
    site.port = listener.getsockname()[1]
    opened: list[Any] = []
    transports: list[Any] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            opened.append(connection)
            # A client that does not like the key, or the password, hangs up at any moment.
            with suppress(paramiko.SSHException, EOFError, OSError):
                transport = paramiko.Transport(connection)
                transports.append(transport)
                transport.add_server_key(site.host_key)
                transport.set_subsystem_handler(
                    "sftp", paramiko.SFTPServer, _Files, site=site, posix_rename=posix_rename
                )
                transport.start_server(server=_Login(site, accepted))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for transport in transports:
            transport.close()
            transport.join(5)
        for connection in opened:
            connection.close()
