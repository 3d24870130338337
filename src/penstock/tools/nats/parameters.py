"""The parameters of the `nats` tool, and which operation takes which of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET

from penstock.ports.meanings import KEYCHAIN_ENTRY, url
from penstock.tools.base import ToolFailure
from penstock.tools.parameters import Positive, about

Operation = Literal[
    "kv_get", "kv_put", "kv_delete", "kv_keys", "kv_purge",
    "publish", "request",
    "js_publish", "js_get_msg", "js_stream_info", "pull", "ack",
    "object_get", "object_put", "object_delete", "object_list", "object_info",
]  # fmt: skip
NEEDS: dict[str, tuple[str, ...]] = {
    "kv_get": ("bucket", "key"), "kv_put": ("bucket", "key", "value"), "kv_delete": ("bucket", "key"),
    "kv_keys": ("bucket",), "kv_purge": ("bucket", "key"), "publish": ("subject",), "request": ("subject",),
    "js_publish": ("subject",), "js_get_msg": ("stream",), "js_stream_info": ("stream",), "pull": ("stream", "consumer"),
    "ack": ("ack_ids",), "object_get": ("bucket", "object"), "object_put": ("bucket", "object", "data"),
    "object_delete": ("bucket", "object"), "object_list": ("bucket",), "object_info": ("bucket", "object"),
}  # fmt: skip
"""Operation -> the parameters that it cannot do without."""
TAKES: dict[str, tuple[str, ...]] = {
    "kv_get": ("revision", "encoding"), "kv_put": ("revision", "encoding", "create"), "kv_keys": ("pattern",),
    "publish": ("data", "encoding", "headers"), "request": ("data", "encoding", "headers"),
    "js_publish": ("stream", "data", "encoding", "headers", "msg_id"), "js_get_msg": ("seq", "last", "subject", "encoding"),
    "pull": ("subject", "batch", "ack", "create", "encoding"), "object_get": ("encoding",),
    "object_put": ("encoding", "create"),
}  # fmt: skip
"""Operation -> those that it takes beside."""


class NatsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    operation: Annotated[Operation, about("What to do.")]
    auth: Annotated[
        str | dict[str, Any] | None,
        about(
            "A keychain entry with `url` and, as the server asks for it, `user` and `password`, `token`, `nkey` (a seed) or "
            "`creds` (the text of a `.creds` file).",
            schema=KEYCHAIN_ENTRY,
        ),
    ] = None
    url: Annotated[
        str | None, about("`nats://HOST:4222` or `tls://HOST`; several with commas.", schema=url("nats", "tls"))
    ] = None
    user: Annotated[str | None, about("User name.")] = None
    password: Annotated[str | None, about("Password; better kept in the keychain.")] = None
    token: Annotated[str | None, about("Token; better kept in the keychain.")] = None
    verify: Annotated[
        bool | str, about("Check the server's certificate; a path names the file of certificates to trust.")
    ] = True
    timeout: Annotated[
        Positive,
        about("Seconds to wait for each answer; for `pull`, for the first message. `spec.timeout` holds as well."),
    ] = 10.0
    bucket: Annotated[str | None, about("`kv_…`, `object_…`: the bucket.")] = None
    key: Annotated[str | None, about("`kv_…`: the key.")] = None
    value: Annotated[Any, about("`kv_put`: the value; what is not text is written as JSON.")] = UNSET
    revision: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        about("`kv_get`: this revision of the key. `kv_put`: only if this is the last one, 0 for a key not there."),
    ] = None
    pattern: Annotated[str | None, about("`kv_keys`: only keys like this, such as `orders.*`.")] = None
    object: Annotated[str | None, about("`object_…`: the name of the object.")] = None
    subject: Annotated[
        str | None,
        about("Where a message goes; `js_get_msg`: the last one there; `pull`: for a consumer that is created."),
    ] = None
    data: Annotated[Any, about("The message or the object; what is not text is written as JSON.")] = UNSET
    headers: Annotated[dict[str, str], about("Headers of the message.")] = {}
    encoding: Annotated[
        Literal["json", "utf-8", "base64", "binary"] | None,
        about(
            "How bytes are read and written. Without it they are read as JSON if they are that, otherwise as text, objects "
            "always as text; bytes that are no text become base64 text. `binary`: an object goes to the result store."
        ),
    ] = None
    stream: Annotated[str | None, about("The stream; `js_publish`: the one that has to take the message.")] = None
    msg_id: Annotated[
        str | bool,
        about("`js_publish`: what the stream knows a repeated message by; true is the idempotency key of the task."),
    ] = True
    seq: Annotated[Annotated[int, msgspec.Meta(ge=1)] | None, about("`js_get_msg`: the message with this number.")] = (
        None
    )
    last: Annotated[bool, about("`js_get_msg`: the last message of the stream.")] = False
    consumer: Annotated[str | None, about("`pull`: the durable consumer.")] = None
    batch: Annotated[int, about("`pull`: at most so many messages.", ge=1, le=10_000)] = 100
    ack: Annotated[
        Literal["taken", "none"],
        about("`pull`: acknowledge messages once they are in the result, or leave that to `ack`."),
    ] = "taken"
    ack_ids: Annotated[list[str], about("`ack`: of the messages to acknowledge, as `pull` gave them.")] = []
    create: Annotated[bool, about("Make the bucket or the consumer if there is none.")] = False


def check(params: NatsParams) -> None:
    """Every parameter that is given must be one of the operation's: a forgotten `operation` would do something else."""
    operation = params.operation
    needed, taken = NEEDS[operation], TAKES.get(operation, ())
    missing = [name for name in needed if not _is_given(params, name)]
    if missing:
        raise ToolFailure("parameters", f"`operation: {operation}` needs `{'`, `'.join(missing)}`")
    every = {name for names in (*NEEDS.values(), *TAKES.values()) for name in names}
    foreign = [name for name in sorted(every.difference(needed, taken)) if _is_given(params, name)]
    if foreign:
        raise ToolFailure("parameters", f"`operation: {operation}` takes no `{foreign[0]}`")
    if operation == "js_get_msg" and sum(_is_given(params, name) for name in ("seq", "last", "subject")) != 1:
        raise ToolFailure("parameters", "`operation: js_get_msg` needs one of `seq`, `last` and `subject`")


_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(NatsParams)}


def _is_given(params: NatsParams, name: str) -> bool:
    value = getattr(params, name)
    if name in ("value", "data"):
        return value is not UNSET  # Null is a value, too.
    return value not in (None, [], {}) and value != _DEFAULTS[name]
