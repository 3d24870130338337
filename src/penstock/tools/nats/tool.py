"""The `nats` tool: its parameters, and which operation takes which of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET

from penstock.ports.meanings import KEYCHAIN_ENTRY, url
from penstock.tools.base import Call, Success, Tool, ToolFailure, local_path
from penstock.tools.network import Resolver, resolve_host
from penstock.tools.parameters import Positive, about

if TYPE_CHECKING:
    from penstock.tools.nats.connection import Servers

CONNECT_SECONDS = 10.0

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


class NatsTool(Tool[NatsParams]):
    """Keys and values, messages, streams and objects of NATS.

    Needs the extra `nats`: `pip install 'penstock[nats]'`.

    | operation | result beside `status` |
    |---|---|
    | `kv_get` | `bucket`, `key`, `value`, `revision`; for a key that is not there `status` is `not_found`, `value` null |
    | `kv_put`, `kv_delete`, `kv_purge` | `bucket`, `key`; of `kv_put` also `revision` |
    | `kv_keys` | `bucket`, `keys`, `count` |
    | `publish` | `subject` |
    | `js_publish` | `subject`, and of the stream that has stored the message `stream`, `seq`, `duplicate` |
    | `request` | `subject`, `data`, `headers` of the reply |
    | `js_get_msg` | `stream`, `subject`, `seq`, `data`, `headers`, `time` |
    | `js_stream_info` | `stream`, `config`, `state` |
    | `pull` | `stream`, `consumer`, `count`, `messages` (each as of `js_get_msg`, with `deliveries` and `ack_id`), `ack_ids` |
    | `ack` | `count` |
    | `object_get`, `object_put`, `object_info`, `object_delete` | `bucket`, `name`; `data`, `size`, `digest`, `modified` |
    | `object_list` | `bucket`, `objects`, `count` |

    `status` is `success`. Where bytes are no text, `encoding` in the result is `base64`.

    A message of `js_publish` carries the task's idempotency key as `Nats-Msg-Id`, so that one which is sent again after a
    crash or by a retry is stored once, as long as the stream remembers it (two minutes unless it says otherwise).

    `pull` takes what is there, and waits for the first message only; none in time is no error. Its messages are acknowledged when
    they are in the result, which is before the log has it: a worker that dies in between loses them. Where that matters, say
    `ack: none`, and let a later task or step give `ack_ids` to `ack`: then a message that was not dealt with comes again.

    The tasks of a run share one connection for each server and user. Whether it is encrypted is the server's to say; with
    `tls://` one that is not is refused.

    Errors are of kind `not_found` (a bucket, stream, consumer, message or object; a subject that no stream takes),
    `no_responders`, `conflict`, `too_large`, `permission`, `auth`, `connect`, `timeout`,
    `unavailable` (such as no JetStream), `dns`, `tls`, `address_refused`, `not_installed`, `nats` or `parameters`.
    """

    kind: ClassVar[str] = "nats"
    makes_files: ClassVar[bool] = False

    def __init__(self, resolve: Resolver = resolve_host) -> None:
        self._resolve = resolve

    async def run(self, params: NatsParams, call: Call) -> object:
        _check(params)
        await call.threads.run(_load)
        from penstock.tools.nats.connection import Link, failure_of  # Needs the extra.
        from penstock.tools.nats.operations import Operations

        servers = _servers(params, call)

        async def make() -> Any:
            link = Link(servers, call.settings.addresses, self._resolve)
            return link, link.close

        link: Link = await call.resources.get(("nats", servers), make)
        operations = Operations(params, call)
        try:
            unanswered = params.subject if params.operation == "publish" else None
            result = await link.use(operations.act, operations.seconds, unanswered)
        except ToolFailure:
            raise
        except operations.ERRORS as error:
            raise failure_of(error, operations.subject, servers) from error
        return Success(result)


def _servers(params: NatsParams, call: Call) -> Servers:
    from penstock.tools.nats.connection import servers_of  # Needs the extra.

    match params.auth:
        case None:
            entry: dict[str, Any] = {}
        case str() if "://" in params.auth:
            entry = {"url": params.auth}
        case str():
            entry = call.credential(params.auth)
        case _:
            entry = params.auth
    given = {name: getattr(params, name) for name in ("url", "user", "password", "token")}
    verify = str(local_path(params.verify, call)) if isinstance(params.verify, str) else params.verify
    laid_over = {**entry, **{name: value for name, value in given.items() if value is not None}}
    return servers_of(laid_over, verify, min(CONNECT_SECONDS, params.timeout))


def _load() -> None:
    try:
        import penstock.tools.nats.operations  # noqa: F401  # Slow to import, and needs the extra.
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "nats":
            raise
        message = "`nats` needs the package `nats-py`, which is not installed; hint: `pip install 'penstock[nats]'`"
        raise ToolFailure("not_installed", message) from error


def _check(params: NatsParams) -> None:
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
