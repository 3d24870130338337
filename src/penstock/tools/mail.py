"""One mail over SMTP. Blocks, so it runs in a thread; imported on first use, as few runs send mail.

Law: the connection goes to one of the addresses given and to nothing else, while TLS still verifies the host's name.
"""

from __future__ import annotations

import hashlib
import mimetypes
import smtplib
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import formatdate, getaddresses
from pathlib import Path
from typing import Any, Literal

from penstock.kernel.values import JsonMap
from penstock.tools.base import ToolFailure, open_regular
from penstock.tools.network import causes, connect_words, dns_failure, tls_context, tls_reason

Security = Literal["none", "starttls", "tls"]
PORTS: dict[Security, int] = {"none": 25, "starttls": 587, "tls": 465}
MAX_ATTACHED_BYTES = 50 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Letter:
    sender: str
    to: list[str]
    cc: list[str]
    bcc: list[str]
    subject: str
    text: str | None
    html: str | None
    attachments: list[Path]
    sent_at: float
    key: str
    """The same for every attempt: a mail that was delivered before a crash comes with the same Message-ID again."""


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    security: Security
    addresses: list[str]
    """What the host was resolved to, and judged where that is asked for; at least one."""
    connect: float
    silence: float
    verify: bool | str
    login: tuple[str, str] | None


def _address_list(texts: list[str]) -> list[Address]:
    found = []
    for name, spec in getaddresses(texts):
        if "@" not in spec:
            raise ToolFailure("parameters", f"`{spec or ', '.join(texts)}` is not a mail address")
        try:
            found.append(Address(display_name=name, addr_spec=spec))
        except (ValueError, IndexError, MessageError) as error:
            raise ToolFailure("parameters", f"`{spec}` is not a mail address: {error}") from error
    return found


def compose(letter: Letter) -> tuple[EmailMessage, list[str]]:
    """The message and all it goes to. Headers with line breaks are refused, so no header can be smuggled in."""
    message = EmailMessage(policy=SMTP_POLICY)
    sender, to, cc = _address_list([letter.sender]), _address_list(letter.to), _address_list(letter.cc)
    recipients = list(dict.fromkeys(each.addr_spec for each in [*to, *cc, *_address_list(letter.bcc)]))
    if len(sender) != 1 or not recipients:
        raise ToolFailure("parameters", "a mail needs one address in `from` and at least one in `to`, `cc` or `bcc`")
    try:
        message["From"] = sender[0]
        if to:
            message["To"] = to
        if cc:
            message["Cc"] = cc
        message["Subject"] = letter.subject
    except (ValueError, IndexError, MessageError) as error:
        raise ToolFailure("parameters", f"the mail cannot be written: {error}") from error
    message["Date"] = formatdate(letter.sent_at, usegmt=True)
    message["Message-ID"] = f"<{hashlib.sha256(letter.key.encode()).hexdigest()[:32]}@{sender[0].domain}>"
    if letter.text is not None or letter.html is None:
        message.set_content(letter.text or "")
        if letter.html is not None:
            message.add_alternative(letter.html, subtype="html")
    else:
        message.set_content(letter.html, subtype="html")
    _attach(message, letter.attachments)
    return message, recipients


def _attach(message: EmailMessage, paths: list[Path]) -> None:
    left = MAX_ATTACHED_BYTES
    for path in paths:
        with open_regular(path) as file:
            content = file.read(left + 1)
        left -= len(content)
        if left < 0:
            raise ToolFailure("too_large", f"the attachments are larger than {MAX_ATTACHED_BYTES:,} bytes")
        kind, encoding = mimetypes.guess_type(path.name)
        main, _, sub = (kind if kind and not encoding else "application/octet-stream").partition("/")
        message.add_attachment(content, maintype=main, subtype=sub, filename=path.name)


class _Dialled(smtplib.SMTP):
    """Connects to the addresses given in place of looking the name up again."""

    def __init__(self, server: Server, **more: Any) -> None:
        self._server = server
        # A name of our own saves a reverse look-up, which can take very long where there is no name server.
        name = socket.gethostname()
        super().__init__(
            server.host,
            server.port,
            local_hostname=name if "." in name and name.isascii() else "[127.0.0.1]",
            timeout=server.silence,
            **more,
        )

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        addresses = self._server.addresses
        for number, address in enumerate(addresses, start=1):
            try:
                dialled = socket.create_connection((address, port), self._server.connect)
            except OSError:
                if number == len(addresses):
                    raise
            else:
                dialled.settimeout(timeout)
                return dialled
        raise AssertionError("there is at least one address")


class _DialledTls(smtplib.SMTP_SSL, _Dialled):
    def __init__(self, server: Server, context: ssl.SSLContext) -> None:
        self.context = context
        _Dialled.__init__(self, server)


class Session:
    """One connection; `abort` may be called from another thread and ends whatever it waits for."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._smtp: smtplib.SMTP | None = None
        self._aborted = False

    def abort(self) -> None:
        self._aborted = True
        connection = getattr(self._smtp, "sock", None)
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def send(self, letter: Letter) -> JsonMap:
        message, recipients = compose(letter)
        try:
            refused = self._deliver(message, recipients)
        except (OSError, UnicodeError) as error:
            raise failure_of(error, self._server) from error
        finally:
            if self._smtp is not None:
                self._smtp.close()
        return {
            "message_id": str(message["Message-ID"]),
            "accepted": [each for each in recipients if each not in refused],
            "refused": {each: {"code": code, "message": _words(reply)} for each, (code, reply) in refused.items()},
        }

    def _deliver(self, message: EmailMessage, recipients: list[str]) -> dict[str, tuple[int, bytes]]:
        server = self._server
        context = None if server.security == "none" else tls_context(server.verify)
        smtp = _Dialled(server) if context is None or server.security == "starttls" else _DialledTls(server, context)
        self._smtp = smtp
        self._check_peer(smtp)
        if server.security == "starttls":
            smtp.starttls(context=context)
        if server.login is not None:
            smtp.login(*server.login)
        if self._aborted:
            raise ConnectionAbortedError("cancelled")
        refused = smtp.send_message(message, to_addrs=recipients)
        with suppress(smtplib.SMTPException):
            # The mail is accepted; a bad good-bye does not undo that.
            smtp.quit()
        return refused

    def _check_peer(self, smtp: smtplib.SMTP) -> None:
        """The addresses are kept to by a hook that the library does not promise; this does not rely on it."""
        if smtp.sock is not None:
            peer = smtp.sock.getpeername()[0]
            if peer not in self._server.addresses:
                raise ToolFailure(
                    "address_refused", f"`{self._server.host}` led to `{peer}`, which is none of its addresses"
                )


def _words(reply: bytes | str) -> str:
    return reply if isinstance(reply, str) else reply.decode("utf-8", "replace")


def failure_of(error: OSError | UnicodeError, server: Server) -> ToolFailure:
    """What a policy can test: `auth`, `recipients`, `smtp_status`, and the kinds that http has for the network."""
    where = f"`{server.host}:{server.port}`"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        replies = {each: f"{code} {_words(text)}" for each, (code, text) in error.recipients.items()}
        passing = all(400 <= code < 500 for code, _ in error.recipients.values())
        words = "; ".join(f"{each}: {text}" for each, text in replies.items())
        return ToolFailure("recipients", f"{where} takes mail for none of them: {words}", retryable=passing)
    if isinstance(error, smtplib.SMTPResponseException):
        code, text = error.smtp_code, _words(error.smtp_error)
        kind = "auth" if isinstance(error, smtplib.SMTPAuthenticationError) else "smtp_status"
        about: JsonMap = {"code": code, "message": text}
        return ToolFailure(
            kind, f"{where} answered {code} {text}", retryable=400 <= code < 500, helpers={"smtp": about}, code=code
        )
    for cause in causes(error):
        if isinstance(cause, (socket.gaierror, UnicodeError)):
            return dns_failure(server.host, cause)
        if isinstance(cause, ssl.SSLError):
            return ToolFailure("tls", f"no secure connection to {where}: {tls_reason(cause)}")
        if isinstance(cause, TimeoutError):
            return ToolFailure("timeout", f"{where} did not answer in time", retryable=True)
    if isinstance(error, (smtplib.SMTPServerDisconnected, OSError)) and not isinstance(
        error, smtplib.SMTPNotSupportedError
    ):
        words = connect_words(error, server.host, server.port)
        return ToolFailure("connect", f"the connection to {where} failed: {words}", retryable=True)
    return ToolFailure("protocol", f"{where}: {error}")
