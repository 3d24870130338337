"""What the `nats` tool does on a connection, one method for each operation."""

from __future__ import annotations

import asyncio
import base64
import binascii
import fnmatch
import io
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import IO, Any, ClassVar

import msgspec
from msgspec import UNSET
from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js import errors as js_errors
from nats.js.kv import KeyValue
from nats.js.object_store import ObjectStore

from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef, is_ref
from penstock.ports.results import encode
from penstock.tools.base import Call, ToolFailure
from penstock.tools.nats.parameters import NatsParams

CHUNK = 256 * 1024
LARGEST_TEXT = 64 * 1024 * 1024
SLOWEST = 256 * 1024
"""Bytes in a second: an object that comes more slowly is given up."""
_SAID_OF_CONFIG = ("name", "subjects", "retention", "max_msgs", "max_bytes", "max_age")
_SAID_OF_STATE = ("messages", "bytes", "first_seq", "last_seq", "consumer_count")


class Operations:
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (errors.Error, TimeoutError, OSError, ValueError)

    def __init__(self, params: NatsParams, call: Call) -> None:
        self._params = params
        self._call = call

    @property
    def subject(self) -> str:
        """What it is about, for errors."""
        params = self._params
        for name in ("bucket", "stream", "subject"):
            if (value := getattr(params, name)) is not None:
                return f"{name} `{value}`"
        return f"`{params.operation}`"

    @property
    def seconds(self) -> float | None:
        """How long all of it may take. The pieces of an object have limits of their own."""
        if self._params.operation in ("object_get", "object_put"):
            return None
        waits = 2 if self._params.operation == "pull" else 1  # For messages, and for what is said before and after.
        return self._params.timeout * waits

    async def act(self, client: Client) -> JsonMap:
        done = await getattr(self, f"_{self._params.operation}")(client)
        return {"status": "success", **done}

    def _js(self, client: Client) -> JetStreamContext:
        return client.jetstream(timeout=self._params.timeout)

    # ---- keys and values

    async def _kv_get(self, client: Client) -> JsonMap:
        key = self._params.key or ""
        where: JsonMap = {"bucket": self._params.bucket, "key": key}
        bucket = await self._key_value(client)
        try:
            entry = await bucket.get(key, self._params.revision or None)
        except js_errors.KeyNotFoundError:
            return {"status": "not_found", **where, "value": None, "revision": None}
        return {**where, **self._read(entry.value, "value"), "revision": entry.revision}

    async def _kv_put(self, client: Client) -> JsonMap:
        params, key = self._params, self._params.key or ""
        bucket, value = await self._key_value(client), self._bytes(params.value)
        if params.revision is None:
            revision = await bucket.put(key, value)
        else:
            revision = await bucket.update(key, value, params.revision)
        return {"bucket": params.bucket, "key": key, "revision": revision}

    async def _kv_delete(self, client: Client) -> JsonMap:
        await (await self._key_value(client)).delete(self._params.key or "")
        return {"bucket": self._params.bucket, "key": self._params.key}

    async def _kv_purge(self, client: Client) -> JsonMap:
        await (await self._key_value(client)).purge(self._params.key or "")
        return {"bucket": self._params.bucket, "key": self._params.key}

    async def _kv_keys(self, client: Client) -> JsonMap:
        bucket = await self._key_value(client)
        try:
            keys = sorted(await bucket.keys())
        except js_errors.NoKeysError:
            keys = []
        if self._params.pattern is not None:
            keys = [key for key in keys if fnmatch.fnmatchcase(key, self._params.pattern)]
        return {"bucket": self._params.bucket, "keys": list[Json](keys), "count": len(keys)}

    async def _key_value(self, client: Client) -> KeyValue:
        js, name = self._js(client), self._params.bucket or ""
        try:
            return await js.key_value(name)
        except js_errors.NotFoundError:
            if not self._params.create:
                raise _no_bucket(name) from None
            return await js.create_key_value(bucket=name)

    # ---- messages

    async def _publish(self, client: Client) -> JsonMap:
        params = self._params
        await client.publish(params.subject or "", self._payload(), headers=self._headers())
        await client.flush(params.timeout)  # type: ignore[arg-type]
        return {"subject": params.subject}

    async def _request(self, client: Client) -> JsonMap:
        params = self._params
        reply = await client.request(params.subject or "", self._payload(), params.timeout, headers=self._headers())
        return {"subject": params.subject, **self._read(reply.data, "data"), "headers": dict(reply.headers or {})}

    async def _js_publish(self, client: Client) -> JsonMap:
        params, headers = self._params, self._headers() or {}
        if params.msg_id:
            key = self._call.idempotency_key if params.msg_id is True else params.msg_id
            headers.setdefault(api.Header.MSG_ID.value, key)
        try:
            ack = await self._js(client).publish(
                params.subject or "", self._payload(), stream=params.stream, headers=headers
            )
        except js_errors.NoStreamResponseError:
            raise ToolFailure("not_found", f"no stream takes messages for `{params.subject}`") from None
        return {
            "subject": params.subject,
            "stream": ack.stream,
            "seq": ack.seq,
            "duplicate": bool(ack.duplicate),
        }

    async def _js_get_msg(self, client: Client) -> JsonMap:
        params, js, stream = self._params, self._js(client), self._params.stream or ""
        seq = params.seq
        if params.last:
            seq = (await js.stream_info(stream)).state.last_seq
        found = await js.get_msg(stream, seq=seq, subject=params.subject)
        return {
            "stream": stream,
            "subject": found.subject,
            "seq": found.seq,
            **self._read(found.data, "data"),
            "headers": dict(found.headers or {}),
            "time": None if found.time is None else found.time.isoformat(),
        }

    async def _js_stream_info(self, client: Client) -> JsonMap:
        info = await self._js(client).stream_info(self._params.stream or "")
        return {
            "stream": self._params.stream,
            "config": {name: _plain(getattr(info.config, name)) for name in _SAID_OF_CONFIG},
            "state": {name: _plain(getattr(info.state, name)) for name in _SAID_OF_STATE},
        }

    async def _pull(self, client: Client) -> JsonMap:
        params, js = self._params, self._js(client)
        stream, consumer = params.stream or "", params.consumer or ""
        await self._find_consumer(js, stream, consumer)
        subscription = await js.pull_subscribe_bind(consumer, stream)
        try:
            messages = await subscription.fetch(params.batch, timeout=params.timeout)
        except TimeoutError:
            messages = []
        finally:
            # Whatever still comes is not acknowledged, and is delivered again.
            await asyncio.shield(subscription.unsubscribe())
        taken = [self._message(message) for message in messages]
        if params.ack == "taken":
            for message in messages:
                await message.ack()
            await client.flush(params.timeout)  # type: ignore[arg-type]
        return {
            "stream": stream,
            "consumer": consumer,
            "count": len(taken),
            "messages": list[Json](taken),
            "ack_ids": [message["ack_id"] for message in taken],
        }

    async def _find_consumer(self, js: JetStreamContext, stream: str, consumer: str) -> None:
        try:
            info = await js.consumer_info(stream, consumer)
        except js_errors.NotFoundError as error:
            if not self._params.create:
                raise ToolFailure(
                    "not_found",
                    f"there is no consumer `{consumer}` of a stream `{stream}`; hint: `create: true` makes it",
                ) from error
            info = await js.add_consumer(
                stream, durable_name=consumer, ack_policy=api.AckPolicy.EXPLICIT, filter_subject=self._params.subject
            )
        if info.config.deliver_subject is not None:
            raise ToolFailure(
                "parameters", f"the consumer `{consumer}` of `{stream}` is one that messages are pushed to"
            )

    def _message(self, message: Msg) -> JsonMap:
        about = message.metadata
        return {
            "subject": message.subject,
            "seq": about.sequence.stream,
            **self._read(message.data, "data"),
            "headers": dict(message.headers or {}),
            "time": about.timestamp.isoformat(),
            "deliveries": about.num_delivered,
            "ack_id": message.reply,
        }

    async def _ack(self, client: Client) -> JsonMap:
        ids = self._params.ack_ids
        foreign = [one for one in ids if not one.startswith("$JS.ACK.")]
        if foreign:
            raise ToolFailure("parameters", f"`{foreign[0]}` is not the `ack_id` of a message")
        for one in ids:
            await client.publish(one, b"+ACK")
        await client.flush(self._params.timeout)  # type: ignore[arg-type]
        return {"count": len(ids)}

    def _headers(self) -> dict[str, str] | None:
        for name, value in self._params.headers.items():
            if not name or any(mark in f"{name}{value}" for mark in "\r\n\0"):
                words = "cannot be sent: it has characters that headers may not have"
                raise ToolFailure("parameters", f"the header {name!r} {words}")
        return dict(self._params.headers) or None

    # ---- objects

    async def _object_get(self, client: Client) -> JsonMap:
        store, name = await self._objects(client), self._params.object or ""
        info = await self._object(store)
        is_binary = self._params.encoding == "binary"
        if not is_binary and (info.size or 0) > LARGEST_TEXT:
            raise ToolFailure("too_large", f"the object `{name}` has {info.size:,} bytes; hint: `encoding: binary`")
        with ExitStack() as opened:
            into: Any = opened.enter_context(tempfile.TemporaryFile()) if is_binary else io.BytesIO()
            async with asyncio.timeout(self._params.timeout + (info.size or 0) / SLOWEST):
                await store.get(name, writeinto=into)
            into.seek(0)
            read: JsonMap
            if is_binary:
                ref = await self._call.threads.run(self._call.blobs.put, _pieces(into), "application/octet-stream")
                read = {"data": ref.as_json()}
            else:
                read = self._read(into.read(), "data", "utf-8")
        return {**_described(info), **read}

    async def _object_put(self, client: Client) -> JsonMap:
        store, name, data = await self._objects(client), self._params.object or "", self._params.data
        if is_ref(data):
            ref = ResultRef.from_json(data)
            with await self._call.threads.run(lambda: Path(self._call.blobs.path(ref)).open("rb")) as file:
                info = await store.put(name, file)
        else:
            info = await store.put(name, self._bytes(data))
        return _described(info)

    async def _object_delete(self, client: Client) -> JsonMap:
        store = await self._objects(client)
        await self._object(store)
        await store.delete(self._params.object or "")
        return {"bucket": self._params.bucket, "name": self._params.object}

    async def _object_info(self, client: Client) -> JsonMap:
        return _described(await self._object(await self._objects(client)))

    async def _object_list(self, client: Client) -> JsonMap:
        store = await self._objects(client)
        try:
            found = [_described(info) for info in await store.list(ignore_deletes=True)]
        except js_errors.NotFoundError:
            found = []
        found.sort(key=lambda one: str(one["name"]))
        return {"bucket": self._params.bucket, "objects": list[Json](found), "count": len(found)}

    async def _object(self, store: ObjectStore) -> api.ObjectInfo:
        name = self._params.object or ""
        try:
            return await store.get_info(name)
        except js_errors.NotFoundError:
            raise ToolFailure("not_found", f"the bucket `{self._params.bucket}` has no object `{name}`") from None

    async def _objects(self, client: Client) -> ObjectStore:
        js, name = self._js(client), self._params.bucket or ""
        try:
            return await js.object_store(name)
        except js_errors.NotFoundError:
            if not self._params.create:
                raise _no_bucket(name) from None
            return await js.create_object_store(name)

    # ---- bytes

    def _payload(self) -> bytes:
        return b"" if self._params.data is UNSET else self._bytes(self._params.data)

    def _bytes(self, value: Any) -> bytes:
        if self._params.encoding == "base64":
            try:
                return base64.b64decode(value, validate=True)
            except (binascii.Error, TypeError, ValueError) as error:
                raise ToolFailure("parameters", f"with `encoding: base64` the value is base64 text: {error}") from None
        try:
            return value.encode() if isinstance(value, str) and self._params.encoding != "json" else encode(value)
        except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
            raise ToolFailure("parameters", f"the value cannot be written: {error}") from None

    def _read(self, data: bytes | None, name: str, usual: str = "json") -> JsonMap:
        """The bytes under `name`, and how to read them where they are no text."""
        data, encoding = data or b"", self._params.encoding
        if encoding == "base64":
            return {name: base64.b64encode(data).decode(), "encoding": "base64"}
        if (encoding or usual) == "json":
            try:
                return {name: msgspec.json.decode(data)}
            except (msgspec.DecodeError, RecursionError) as error:
                if encoding == "json":
                    raise ToolFailure("parse", f"the bytes are not JSON: {error}") from None
        try:
            return {name: data.decode()}
        except UnicodeDecodeError as error:
            if encoding == "utf-8":
                raise ToolFailure("parse", f"the bytes are no text in UTF-8: {error}") from None
        return {name: base64.b64encode(data).decode(), "encoding": "base64"}


def _no_bucket(name: str) -> ToolFailure:
    return ToolFailure("not_found", f"there is no bucket `{name}`; hint: `create: true` makes it", bucket=name)


def _described(info: api.ObjectInfo) -> JsonMap:
    return {
        "bucket": info.bucket,
        "name": info.name,
        "size": info.size,
        "digest": info.digest,
        "modified": info.mtime,
    }


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(CHUNK):
        yield piece


def _plain(value: Any) -> Json:
    """What the library says, as JSON."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    plain: Json = value.value if isinstance(value, Enum) else value
    return plain
