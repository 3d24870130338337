"""`mail`: a message to people."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call
from penstock.components.flow.tool_calls import tool_call, tool_failures
from penstock.kernel.values import JsonMap
from penstock.ports.meanings import KEYCHAIN_ENTRY, READS_FILE
from penstock.tools.notify import NotifyParams, NotifyTool
from penstock.tools.parameters import about

Addresses = str | list[str]
Port = Annotated[int, Meta(ge=1, le=65535)]


class MailParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    host: Annotated[str, about("The mail server.")]
    to: Annotated[Addresses, about("Who gets it, as a list or with commas.")]
    from_: Annotated[str, about("The sender, `ann@example.com` or `Ann <ann@example.com>`.")] = msgspec.field(
        name="from"
    )
    subject: Annotated[str, about("The subject.")] = ""
    text: Annotated[str | None, about("The words; this or `html` is needed, or both.")] = None
    html: Annotated[str | None, about("The words as HTML.")] = None
    cc: Annotated[Addresses, about("Who gets a copy.")] = []
    bcc: Annotated[Addresses, about("Who gets a copy that the others do not see.")] = []
    attachments: Annotated[
        list[str], about("Paths of files to send along, up to 50 MiB in all.", schema=READS_FILE)
    ] = []
    auth: Annotated[
        str | dict[str, Any] | None,
        about("Keychain entry with the user name and password of the server.", schema=KEYCHAIN_ENTRY),
    ] = None
    port: Annotated[Port | None, about("587 for `starttls`, 465 for `tls`, 25 for `none`.")] = None
    security: Annotated[Literal["none", "starttls", "tls"], about("How the connection is made safe.")] = "starttls"
    verify: Annotated[
        bool | str, about("Check the server's certificate; a path names the file of certificates to trust.")
    ] = True
    timeout: Annotated[float, about("Seconds the server may stay silent.", gt=0)] = 60.0


class Mail(Action[MailParams]):
    """Send a mail.

    The result is `{message_id, accepted, refused}`. When the server takes the mail for some addresses only, the component is
    OK and `refused` has the others. A run that is repeated sends the same Message-ID, so that mail programs can drop the
    second copy. After-variable: `MESSAGE_ID`. Behind an `error` link, `{{ global.load.ERROR_MESSAGE }}` says what happened.
    """

    type: ClassVar[str] = "mail"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False

    async def run(self, params: MailParams, call: Call) -> JsonMap:
        given = {name: getattr(params, name) for name in params.__struct_fields__}
        with tool_failures():
            sent = await NotifyTool().run(
                NotifyParams(via="smtp", **given), tool_call(call, {"timeout": {"connect": min(10, params.timeout)}})
            )
        assert isinstance(sent.result, dict)
        result: JsonMap = {name: value for name, value in sent.result.items() if name != "via"}
        call.after["MESSAGE_ID"] = result["message_id"]
        return result
