"""A small real FTP server on loopback over one folder: plain, or with TLS from the `AUTH` command or the first byte on."""

from __future__ import annotations

import datetime
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast


@dataclass
class FtpSite:
    root: Path
    port: int = 0
    commands: list[str] = field(default_factory=list)
    hanging: threading.Event = field(default_factory=threading.Event)
    encrypted_data: list[bool] = field(default_factory=list)

    def url(self, path: str = "", scheme: str = "ftp") -> str:
        return f"{scheme}://127.0.0.1:{self.port}{path}"


class _Handler(socketserver.StreamRequestHandler):
    server: _FtpServer

    def setup(self) -> None:
        if self.server.implicit_tls:
            assert self.server.tls is not None
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")

    def handle(self) -> None:
        self.folder, self.private, self.renaming = "/", False, ""
        self.listener: socket.socket | None = None
        self.say("220 ready")
        while line := self.rfile.readline():
            verb, _, argument = line.decode().rstrip("\r\n").partition(" ")
            verb = verb.upper()
            self.server.site.commands.append(verb if verb == "PASS" else f"{verb} {argument}".strip())
            told = self.server.answers.get(verb)
            if told == "hang":
                self.server.site.hanging.set()
                self.server.closing.wait(10)
                return
            if told is not None:
                self.say(told)
                continue
            action = getattr(self, f"on_{verb.lower()}", None)
            if action is None:
                self.say("502 not known")
            elif action(argument) is False:
                return

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()
        if self.listener is not None:
            self.listener.close()
        self.request.close()

    def place(self, path: str) -> Path:
        whole = path if path.startswith("/") else f"{self.folder}/{path}"
        return self.server.site.root.joinpath(*[part for part in whole.split("/") if part not in ("", ".", "..")])

    def on_auth(self, argument: str) -> bool | None:
        if self.server.tls is None:
            self.say("502 no TLS here")
            return None
        self.say("234 go ahead")
        try:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        except (ssl.SSLError, OSError):
            return False
        self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", buffering=0)
        return None

    def on_pbsz(self, argument: str) -> None:
        self.say("200 ok")

    def on_prot(self, argument: str) -> None:
        self.private = argument == "P"
        self.say("200 ok")

    def on_user(self, argument: str) -> None:
        self.user = argument
        self.say("331 and the password?")

    def on_pass(self, argument: str) -> None:
        good = self.user == "anonymous" or (self.user, argument) == ("ann", "right")
        self.say("230 welcome" if good else "530 no")

    def on_type(self, argument: str) -> None:
        self.say("200 ok")

    def on_pwd(self, argument: str) -> None:
        self.say(f'257 "{self.folder}"')

    def on_cwd(self, argument: str) -> None:
        if self.place(argument).is_dir():
            self.folder = argument if argument.startswith("/") else f"{self.folder.rstrip('/')}/{argument}"
            self.say("250 ok")
        else:
            self.say("550 no such folder")

    def on_size(self, argument: str) -> None:
        path = self.place(argument)
        self.say(f"213 {path.stat().st_size}" if path.is_file() else "550 no such file")

    def on_mdtm(self, argument: str) -> None:
        self.say(f"213 {_time(self.place(argument))}")

    def on_pasv(self, argument: str) -> None:
        if self.listener is not None:
            self.listener.close()
        self.listener = socket.create_server(("127.0.0.1", 0))
        port = self.listener.getsockname()[1]
        self.say(f"227 entering passive mode (10,0,0,1,{port // 256},{port % 256})")

    def data(self) -> socket.socket:
        assert self.listener is not None
        connection, _ = self.listener.accept()
        self.listener.close()
        self.listener = None
        if self.private and self.server.tls is not None:
            connection = self.server.tls.wrap_socket(connection, server_side=True)
        self.server.site.encrypted_data.append(isinstance(connection, ssl.SSLSocket))
        return connection

    def send(self, content: bytes) -> None:
        self.say("150 here it comes")
        with self.data() as connection:
            connection.sendall(content)
            _end(connection)
        self.say("226 done")

    def on_mlsd(self, argument: str) -> None:
        folder = self.place(argument)
        if not folder.is_dir():
            self.say("550 no such folder")
            return
        lines = ["type=cdir; ."]
        for each in sorted(folder.iterdir()):
            kind = "dir" if each.is_dir() else "file"
            lines.append(f"type={kind};size={each.stat().st_size};modify={_time(each)}; {each.name}")
        lines += [f"type=file;size=1; {name}" for name in self.server.extra_names]
        self.send("".join(f"{line}\r\n" for line in lines).encode())

    def on_nlst(self, argument: str) -> None:
        names = sorted(each.name for each in self.place(argument).iterdir())
        self.send("".join(f"{argument}/{name}\r\n" if argument else f"{name}\r\n" for name in names).encode())

    def on_retr(self, argument: str) -> None:
        path = self.place(argument)
        if not path.is_file():
            self.say("550 no such file")
            return
        content = path.read_bytes()
        self.send(content[: self.server.cut] if self.server.cut is not None else content)

    def on_stor(self, argument: str) -> None:
        path = self.place(argument)
        if not path.parent.is_dir():
            self.say("553 no such folder")
            return
        self.say("150 go on")
        with self.data() as connection, path.open("wb") as file:
            while chunk := connection.recv(65536):
                file.write(chunk)
            _end(connection)
        self.say("226 done")

    def on_dele(self, argument: str) -> None:
        path = self.place(argument)
        if path.is_file():
            path.unlink()
            self.say("250 ok")
        else:
            self.say("550 no such file")

    def on_rnfr(self, argument: str) -> None:
        self.renaming = argument
        self.say("350 and to?")

    def on_rnto(self, argument: str) -> None:
        if self.place(argument).exists() and not self.server.renames_over:
            self.say("550 it exists")
        else:
            self.place(self.renaming).rename(self.place(argument))
            self.say("250 ok")

    def on_mkd(self, argument: str) -> None:
        path = self.place(argument)
        if path.exists():
            self.say("550 it exists")
        else:
            path.mkdir()
            self.say(f'257 "{argument}"')

    def on_quit(self, argument: str) -> bool:
        self.say("221 bye")
        return False


def _time(path: Path) -> str:
    return datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).strftime("%Y%m%d%H%M%S")


def _end(connection: socket.socket) -> None:
    if isinstance(connection, ssl.SSLSocket):
        with suppress(OSError):
            connection.unwrap()


class _FtpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, site: FtpSite, tls: ssl.SSLContext | None) -> None:
        self.site, self.tls = site, tls
        self.implicit_tls = False
        self.answers: dict[str, str] = {}
        self.renames_over = True
        self.cut: int | None = None
        self.extra_names: list[str] = []
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", 0), cast("Callable[..., socketserver.BaseRequestHandler]", _Handler))

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of some tests."""


@contextmanager
def ftp_server(
    root: Path,
    *,
    tls: ssl.SSLContext | None = None,
    implicit_tls: bool = False,
    answers: dict[str, str] | None = None,
    renames_over: bool = True,
    cut: int | None = None,
    extra_names: list[str] | None = None,
) -> Iterator[FtpSite]:
    """`answers` maps a verb to what is said in place of doing it (`hang` hangs); `cut` breaks off what is fetched there."""
    root.mkdir(parents=True, exist_ok=True)
    server = _FtpServer(FtpSite(root), tls)
    server.implicit_tls, server.answers, server.renames_over = implicit_tls, answers or {}, renames_over
    server.cut, server.extra_names = cut, extra_names or []
    server.site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.site
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
