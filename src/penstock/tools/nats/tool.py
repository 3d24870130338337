"""The `nats` tool: which server it asks, and what it says of failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from penstock.tools.base import Call, Success, Tool, ToolFailure, local_path
from penstock.tools.nats.parameters import NatsParams, check
from penstock.tools.network import Resolver, resolve_host

if TYPE_CHECKING:
    from penstock.tools.nats.connection import Servers

CONNECT_SECONDS = 10.0


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
        check(params)
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
