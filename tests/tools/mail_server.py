"""A small real SMTP server on loopback: takes mail, or answers what a test tells it to."""

from __future__ import annotations

import base64
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as default_policy
from typing import cast


@dataclass
class Mailbox:
    port: int = 0
    commands: list[str] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    letters: list[tuple[str, list[str], EmailMessage]] = field(default_factory=list)
    """Sender and recipients of the envelope, and the message."""
    hanging: threading.Event = field(default_factory=threading.Event)
    encrypted: list[bool] = field(default_factory=list)
    """Per letter: did it come over TLS?"""


class _Handler(socketserver.StreamRequestHandler):
    server: _MailServer

    def say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")

    def handle(self) -> None:
        self.sender, self.recipients, self.secure = "", [""], self.server.implicit_tls
        self.say(self.server.answers.get("GREETING", "220 ready"))
        while line := self.rfile.readline():
            text = line.decode().rstrip("\r\n")
            verb = text.upper().split(":")[0].split(" ")[0]
            self.server.mailbox.commands.append(text if verb != "AUTH" else "AUTH")
            answers = {command.casefold(): answer for command, answer in self.server.answers.items()}
            told = answers.get(text.casefold()) or answers.get(verb.casefold())
            if told == "hang":
                self.server.mailbox.hanging.set()
                self.server.closing.wait(10)
                return
            if told == "drop":
                return
            if told is not None:
                self.say(told)
                continue
            if not getattr(self, f"on_{verb.lower()}", self.unknown)(text):
                return

    def finish(self) -> None:
        super().finish()
        # After STARTTLS this is no longer the socket that the server knows and closes.
        self.request.close()

    def unknown(self, text: str) -> bool:
        self.say("502 not known")
        return True

    def on_ehlo(self, text: str) -> bool:
        self.say("250-here")
        if self.server.tls is not None and not self.secure:
            self.say("250-STARTTLS")
        self.say("250 AUTH PLAIN")
        return True

    def on_starttls(self, text: str) -> bool:
        self.say("220 go ahead")
        assert self.server.tls is not None
        try:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        except (ssl.SSLError, OSError):
            return False
        self.secure = True
        self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", buffering=0)
        return True

    def on_auth(self, text: str) -> bool:
        _, user, password = base64.b64decode(text.split(" ")[2]).decode().split("\0")
        self.server.mailbox.logins.append((user, password))
        self.say("235 welcome" if password == "right" else "535 5.7.8 wrong password")
        return True

    def on_mail(self, text: str) -> bool:
        self.sender, self.recipients = text.split("<")[1].split(">")[0], []
        self.say("250 ok")
        return True

    def on_rcpt(self, text: str) -> bool:
        self.recipients.append(text.split("<")[1].split(">")[0])
        self.say("250 ok")
        return True

    def on_data(self, text: str) -> bool:
        self.say("354 go on")
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b"."))
        message = cast("EmailMessage", message_from_bytes(b"".join(lines), policy=default_policy))
        self.server.mailbox.letters.append((self.sender, self.recipients, message))
        self.server.mailbox.encrypted.append(self.secure)
        self.say("250 taken")
        return True

    def on_rset(self, text: str) -> bool:
        self.say("250 ok")
        return True

    def on_quit(self, text: str) -> bool:
        self.say("221 bye")
        return False


class _MailServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, answers: dict[str, str], tls: ssl.SSLContext | None, *, implicit_tls: bool) -> None:
        self.answers, self.tls, self.implicit_tls = answers, tls, implicit_tls
        self.mailbox = Mailbox()
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", 0), cast("Callable[..., socketserver.BaseRequestHandler]", _Handler))
        if implicit_tls and tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of some tests."""


@contextmanager
def mail_server(
    answers: dict[str, str] | None = None, *, tls: ssl.SSLContext | None = None, implicit_tls: bool = False
) -> Iterator[Mailbox]:
    """`answers` maps a verb or a whole command to what is said in place of the usual; `hang` and `drop` do that."""
    server = _MailServer(answers or {}, tls, implicit_tls=implicit_tls)
    server.mailbox.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.mailbox
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
