"""The `notify` tool: tell people, by mail or through a webhook."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta

from penstock.kernel.values import JsonMap
from penstock.ports.meanings import KEYCHAIN_ENTRY, READS_FILE, WEB
from penstock.tools.base import Call, Success, Tool, ToolFailure, local_path
from penstock.tools.http.tool import HttpParams, HttpTool, Identity, Scalar, TimeLimits, within
from penstock.tools.network import Resolver, addresses_of, require_allowed, resolve_host
from penstock.tools.parameters import about

if TYPE_CHECKING:
    from penstock.tools.http.exchange import Exchange
    from penstock.tools.mail import Server

Port: TypeAlias = Annotated[int, Meta(ge=1, le=65535)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0)]

_SMTP_ONLY = ("host", "port", "security", "from", "to", "cc", "bcc", "subject", "html", "attachments", "timeout")
_WEBHOOK_ONLY = ("url", "json", "headers")


class NotifyParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    via: Annotated[Literal["smtp", "webhook"], about("How to tell: by mail, or by a POST to a URL.")]
    text: Annotated[
        str | None, about("The words. A webhook without `json` gets `{text: …}`, which Slack and others take.")
    ] = None
    auth: Annotated[
        str | dict[str, Any] | None,
        about(
            "A keychain entry: user name and password of the mail server, or as in `http` for a webhook.",
            schema=KEYCHAIN_ENTRY,
        ),
    ] = None
    verify: Annotated[
        bool | str, about("Check the server's certificate; a path names the file of certificates to trust.")
    ] = True
    url: Annotated[str | None, about("Webhook: where to.", schema=WEB)] = None
    json: Annotated[Any, about("Webhook: the body, in place of `{text: …}`.")] = UNSET
    headers: Annotated[dict[str, Scalar], about("Webhook: more headers.")] = {}
    host: Annotated[str | None, about("Mail: the server.")] = None
    port: Annotated[Port | None, about("Mail: its port; 587 for `starttls`, 465 for `tls`, 25 for `none`.")] = None
    security: Annotated[Literal["none", "starttls", "tls"], about("Mail: how the connection is made safe.")] = (
        "starttls"
    )
    from_: Annotated[str | None, about("Mail: the sender, `ann@example.com` or `Ann <ann@example.com>`.")] = (
        msgspec.field(name="from", default=None)
    )
    to: Annotated[str | list[str], about("Mail: who gets it, as a list or with commas.")] = []
    cc: Annotated[str | list[str], about("Mail: who gets a copy.")] = []
    bcc: Annotated[str | list[str], about("Mail: who gets a copy that the others do not see.")] = []
    subject: Annotated[str, about("Mail: the subject.")] = ""
    html: Annotated[str | None, about("Mail: the words as HTML, beside or in place of `text`.")] = None
    attachments: Annotated[
        list[str], about("Mail: paths of files to send along, up to 50 MiB in all.", schema=READS_FILE)
    ] = []
    timeout: Annotated[Seconds | None, about("Mail: how long the server may stay silent, in seconds (60).")] = None


class NotifyTool(Tool[NotifyParams]):
    """Sends a mail, or posts to a webhook.

    Mail: the result is `{via, message_id, accepted, refused}`. When the server takes the mail for some addresses only, the
    outcome is ok and `refused` has the others. A retry sends the same Message-ID, so that mail programs can drop the second
    copy. Failures are of kind `auth`, `recipients`, `smtp_status`, `connect`, `timeout`, `dns`, `tls`, `protocol`,
    `address_refused` or `parameters`; `outcome.smtp.code` has the server's answer.

    Webhook: the result is `{via, status, data}`, the failures are those of `http`, and `spec.retry` works as there. The path
    of the URL is kept out of results and messages, because for many webhooks it is the secret.

    `spec.timeout` limits the time: a number of seconds for all of it, or `{connect, read, write, total}`.
    """

    kind: ClassVar[str] = "notify"
    makes_files: ClassVar[bool] = False
    defaults: ClassVar[JsonMap] = {"timeout": {"connect": 10, "read": 60, "write": 60}}

    def __init__(self, resolve: Resolver = resolve_host) -> None:
        self._resolve = resolve
        self._webhook = Webhook(resolve)

    async def run(self, params: NotifyParams, call: Call) -> Success:
        _check(params)
        if params.via == "webhook":
            return await self._post(params, call)
        limits = TimeLimits.of(call.spec)
        async with within(limits.total, "mail"):
            return await self._mail(params, call, limits)

    async def _post(self, params: NotifyParams, call: Call) -> Success:
        request = HttpParams(
            url=params.url or "",
            method="POST",
            json={"text": params.text} if params.json is UNSET else params.json,
            headers=params.headers,
            auth=params.auth,
            verify=params.verify,
            idempotency_key=True,
        )
        sent = await self._webhook.run(request, call)
        result = sent.result if isinstance(sent.result, dict) else {}
        return Success({"via": "webhook", "status": result.get("status"), "data": result.get("data")}, sent.helpers)

    async def _mail(self, params: NotifyParams, call: Call, limits: TimeLimits) -> Success:
        from penstock.tools.mail import Letter, Session  # Slow to import: only mail needs it.

        letter = Letter(
            sender=params.from_ or "",
            to=_listed(params.to),
            cc=_listed(params.cc),
            bcc=_listed(params.bcc),
            subject=params.subject,
            text=params.text,
            html=params.html,
            attachments=[local_path(path, call) for path in params.attachments],
            sent_at=call.clock.now(),
            key=call.idempotency_key,
        )
        session = Session(await self._server(params, call, limits))
        sending = asyncio.ensure_future(call.threads.run(session.send, letter))
        try:
            result = await asyncio.shield(sending)
        except asyncio.CancelledError:
            session.abort()
            sending.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            # It ends at once, or when it could not connect; in no case does it send any more.
            await asyncio.wait({sending}, timeout=2)
            raise
        return Success({"via": "smtp", **result})

    async def _server(self, params: NotifyParams, call: Call, limits: TimeLimits) -> Server:
        from penstock.tools.mail import PORTS, Server  # Slow to import: only mail needs it.

        host, port = params.host or "", params.port or PORTS[params.security]
        login = _login(params, call)
        if login is not None and params.security == "none":
            call.say(f"the password for `{host}` is sent without encryption, because `security` is `none`")
        connect = min(limits.connect, params.timeout or limits.connect)
        addresses = await addresses_of(host, port, self._resolve, connect)
        require_allowed(host, addresses, call.settings.addresses)
        return Server(
            host=host,
            port=port,
            security=params.security,
            addresses=addresses,
            connect=connect,
            silence=params.timeout or limits.read,
            verify=str(local_path(params.verify, call)) if isinstance(params.verify, str) else params.verify,
            login=login,
        )


class Webhook(HttpTool):
    def exchange_for(self, params: HttpParams, known: Identity, call: Call) -> Exchange:
        from penstock.tools.http.exchange import Exchange  # Slow to import: only a request needs it.

        return Exchange(
            params.follow_redirects, frozenset(known.headers), holds_secret=call.holds_secret, origin_only=True
        )


def _listed(addresses: str | list[str]) -> list[str]:
    return [addresses] if isinstance(addresses, str) else addresses


def _login(params: NotifyParams, call: Call) -> tuple[str, str] | None:
    if params.auth is None:
        return None
    entry = call.credential(params.auth) if isinstance(params.auth, str) else params.auth
    if entry.get("username") is None or entry.get("password") is None:
        raise ToolFailure("parameters", "`auth` for mail needs an entry with `username` and `password`")
    return str(entry["username"]), str(entry["password"]).strip("\r\n")


def _check(params: NotifyParams) -> None:
    given = {name for name in _SMTP_ONLY + _WEBHOOK_ONLY if _is_given(params, name)}
    foreign = [name for name in (_WEBHOOK_ONLY if params.via == "smtp" else _SMTP_ONLY) if name in given]
    if foreign:
        other = "webhook" if params.via == "smtp" else "smtp"
        raise ToolFailure("parameters", f"`{foreign[0]}` is for `via: {other}`, not for `via: {params.via}`")
    needed = ("host", "from") if params.via == "smtp" else ("url",)
    for name in needed:
        if name not in given:
            raise ToolFailure("parameters", f"`via: {params.via}` needs `{name}`")
    words = ("text", "html") if params.via == "smtp" else ("text", "json")
    if params.text is None and words[1] not in given:
        raise ToolFailure("parameters", f"`via: {params.via}` needs `{words[0]}` or `{words[1]}`")


def _is_given(params: NotifyParams, name: str) -> bool:
    field = "from_" if name == "from" else name
    default = {"security": "starttls", "subject": ""}.get(name)
    value = getattr(params, field)
    return value is not UNSET if name == "json" else value not in (None, default, [], {}, "")
