"""The result store in a NATS JetStream object store, in the format of its other clients: `nats object ls` shows the results.

Law: a result becomes visible by its one meta message, which names the subject of its pieces. Meta messages are only ever
replaced on the condition that they are still the ones that were looked at, so of two who change a result one starts again.
JetStream acknowledges before the disk has it, unless its server is told to synchronise always: a result that was lost with the
machine is told to be missing, and its step can be run again.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import nats
from nats import errors
from nats.aio.client import Client
from nats.js import JetStreamContext, api
from nats.js import errors as js_errors
from nats.js.errors import BadRequestError, NotFoundError

from penstock.adapters.files.blobs import BlobCache, CachedBlobs, missing
from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import JsonMap
from penstock.ports.blobs import KEY, checksum_of

# ---- A connection to NATS for callers that do not run an event loop: it lives on a loop in a thread of its own.
# Law: what is done here can be done twice with the same end, so that a connection which dies, and a stream which is gone,
# are answered by doing it once more. That goes on for as long as the store is patient; then it is Unavailable. No request
# waits without a limit.

T = TypeVar("T")

REQUEST_SECONDS = 10.0
CONNECT_SECONDS = 5.0
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
PASSING = (
    errors.TimeoutError,
    errors.NoRespondersError,
    errors.ConnectionClosedError,
    errors.ConnectionReconnectingError,
    errors.ConnectionDrainingError,
    errors.NoServersError,
    errors.OutboundBufferLimitError,
    errors.StaleConnectionError,
    js_errors.NoStreamResponseError,
    js_errors.ServerError,
    js_errors.ServiceUnavailableError,
    OSError,
)


class NatsConnection:
    """`prepare` is called with every new connection, and again when its stream is found to be gone."""

    def __init__(
        self, url: str, patience_s: float, prepare: Callable[[JetStreamContext], Awaitable[None]], purpose: str
    ) -> None:
        self._url = url
        self._patience_s = patience_s
        self._prepare = prepare
        self._purpose = purpose
        self._client: Client | None = None
        self._connecting: asyncio.Lock | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._was_ready = False
        self._is_ready = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._mutex = threading.Lock()
        self._is_closed = False

    def run(self, act: Callable[[JetStreamContext], Coroutine[Any, Any, T]]) -> T:
        """Do it on the loop, from any thread but the loop's own."""
        with self._mutex:
            loop = self._running_loop()
            future: Future[T] = asyncio.run_coroutine_threadsafe(self._patiently(act), loop)
        try:
            return future.result()
        except CancelledError:
            raise self._closed() from None
        finally:
            future.cancel()

    @property
    def largest_message(self) -> int:
        """What the server takes at most, inside `run`."""
        assert self._client is not None
        return self._client.max_payload

    async def ask(self, what: str, body: JsonMap) -> dict[str, Any]:
        """A request to the JetStream API for which the client has no method; on the loop, inside `run`."""
        assert self._client is not None
        answer = await self._client.request(f"$JS.API.{what}", json.dumps(body).encode(), timeout=REQUEST_SECONDS)
        reply: dict[str, Any] = json.loads(answer.data)
        if "error" in reply:
            js_errors.APIError.from_error(reply["error"])
        return reply

    def close(self) -> None:
        with self._mutex:
            self._is_closed = True
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    async def _patiently(self, act: Callable[[JetStreamContext], Coroutine[Any, Any, T]]) -> T:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await self._try_until(time.monotonic() + self._patience_s, act)
        finally:
            self._tasks.discard(task)

    async def _try_until(self, deadline: float, act: Callable[[JetStreamContext], Coroutine[Any, Any, T]]) -> T:
        pause = FIRST_PAUSE
        while True:
            try:
                return await act(await self._stream())
            except (errors.Error, OSError) as error:
                self._is_ready = self._is_ready and not isinstance(error, js_errors.NoStreamResponseError)
                # A server that never answered is more likely named wrongly than about to come back.
                is_hopeful = self._was_ready and isinstance(error, PASSING)
                if not is_hopeful or time.monotonic() + pause > deadline:
                    raise self._unavailable(error) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _stream(self) -> JetStreamContext:
        if self._connecting is None:
            self._connecting = asyncio.Lock()
        async with self._connecting:
            if self._client is None or self._client.is_closed:
                self._is_ready = False
                self._client = await self._connect()
            stream = self._client.jetstream(timeout=REQUEST_SECONDS)
            if not self._is_ready:
                await self._prepare(stream)
                self._is_ready = self._was_ready = True
            return stream

    async def _connect(self) -> Client:
        """It is not left to the client to connect again: its requests would wait for that without saying so."""
        reported: list[Exception] = []

        async def listen(error: Exception) -> None:
            reported.append(error)

        try:
            async with asyncio.timeout(3 * CONNECT_SECONDS):
                return await nats.connect(
                    self._url,
                    name=self._purpose,
                    allow_reconnect=False,
                    max_reconnect_attempts=1,  # For each server; 0 would be for ever.
                    reconnect_time_wait=0,
                    connect_timeout=int(CONNECT_SECONDS),
                    error_cb=listen,
                )
        except errors.NoServersError as error:
            raise (reported[-1] if reported and isinstance(reported[-1], PASSING) else error) from None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._is_closed:
            raise self._closed()
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name=self._purpose, daemon=True)
            self._thread.start()
        return self._loop

    async def _end(self) -> None:
        """What callers are waiting for is given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            with suppress(errors.Error, OSError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self._client.close()

    def _closed(self) -> Refused:
        return Refused(f"the connection to NATS for {self._purpose} has been closed")

    def _unavailable(self, error: Exception) -> Unavailable:
        reason = str(error).removeprefix("nats: ").strip() or type(error).__name__
        return Unavailable(
            f"NATS at `{without_secrets(self._url)}` cannot be used for {self._purpose}: {reason}",
            "see that the server runs with JetStream, that the URL is right, and that its user may use the bucket",
        )


def without_secrets(url: str) -> str:
    """Servers without users and passwords."""
    return ",".join(one.rpartition("@")[2].rpartition("//")[2] for one in url.split(","))


STORE = "nats"
BUCKET = "penstock"
PIECE_BYTES = 256 * 1024
# Room in a message beside the piece.
HEADER_BYTES = 1024
PATIENCE_SECONDS = 60.0
# Another process may change the same result between two looks at it; then it is looked again.
ATTEMPTS = 100
# A piece says whose it is, so that pieces without a result can be told from those that have one.
KEY_HEADER = "Penstock-Key"
WRONG_LAST_SEQUENCE = 10071
SUBJECTS_A_PAGE = 100_000


@dataclass(frozen=True, slots=True)
class Meta:
    """What the last meta message of a result says; `nuid` names its pieces, and a deleted result has none."""

    sequence: int
    seen: float
    name: str
    nuid: str
    pieces: int
    is_deleted: bool
    size: int = 0


ABSENT = Meta(0, 0.0, "", "", 0, True)


class NatsBlobs(CachedBlobs):
    store = STORE

    def __init__(
        self,
        url: str,
        bucket: str,
        cache: BlobCache | Path,
        *,
        replicas: int = 1,
        patience_s: float = PATIENCE_SECONDS,
    ) -> None:
        super().__init__(cache)
        if not bucket.replace("-", "").replace("_", "").isalnum() or not bucket.isascii():
            raise Refused(f"`{bucket}` cannot be the name of a bucket", "use letters, digits, `-` and `_`")
        self._bucket = bucket
        self._stream = f"OBJ_{bucket}"
        self._replicas = replicas
        self._connection = NatsConnection(url, patience_s, self._make_bucket, "the results of penstock")

    def seen(self, key: str) -> float | None:
        meta = self._connection.run(partial(self._meta, key))
        return None if meta.is_deleted else meta.seen

    def size(self, key: str) -> int | None:
        meta = self._connection.run(partial(self._meta, key))
        return None if meta.is_deleted else meta.size

    def keys(self, older_than: float) -> Iterator[tuple[str, float]]:
        last = 0
        while meta := self._connection.run(partial(self._next_meta, last)):
            last = meta.sequence
            if not meta.is_deleted and meta.seen < older_than and KEY.fullmatch(meta.name):
                yield meta.name, meta.seen

    def tidy(self, older_than: float) -> None:
        offset = 0
        while subjects := self._connection.run(partial(self._piece_subjects, offset)):
            for subject in subjects:
                self._connection.run(partial(self._purge_orphans, subject, older_than))
            offset += SUBJECTS_A_PAGE

    def close(self) -> None:
        self._connection.close()

    # ---- writing

    def _send(self, key: str, file: Path, size: int) -> None:
        self._connection.run(partial(self._store, key, file, size))

    async def _store(self, key: str, file: Path, size: int, js: JetStreamContext) -> None:
        known: int | None = None
        for _ in range(ATTEMPTS):
            meta = await self._meta(key, js)
            known = meta.sequence if known is None else known
            if not meta.is_deleted:
                if meta.sequence > known:
                    return  # Somebody has put the same since this began.
                if await self._is_whole(js, meta):
                    if await self._publish(js, meta.sequence, _info(self._bucket, key, meta.nuid, size, meta.pieces)):
                        return
                    continue
            if await self._replace(js, meta, key, file, size):
                return
        raise Unavailable(f"the result `{key}` could not be stored: others put and removed it all the time")

    async def _replace(self, js: JetStreamContext, meta: Meta, key: str, file: Path, size: int) -> bool:
        """Pieces of a writer that dies before the end are left to `tidy`: it cannot know whether they are in use."""
        nuid = uuid.uuid4().hex
        count = await self._write(js, self._pieces(nuid), key, file)
        is_made = await self._publish(js, meta.sequence, _info(self._bucket, key, nuid, size, count))
        unused = meta.nuid if is_made else nuid
        if unused:
            await js.purge_stream(self._stream, subject=self._pieces(unused))
        return is_made

    async def _write(self, js: JetStreamContext, subject: str, key: str, file: Path) -> int:
        count = 0
        size = max(1, min(PIECE_BYTES, self._connection.largest_message - HEADER_BYTES))
        with file.open("rb") as source:
            while piece := source.read(size):
                await js.publish(subject, piece, stream=self._stream, headers={KEY_HEADER: key})
                count += 1
        return count

    async def _publish(self, js: JetStreamContext, expected: int, info: JsonMap) -> bool:
        """Replace a meta message if it is still the one with the number `expected`; 0 when there was none."""
        headers = {
            api.Header.ROLLUP.value: "sub",
            api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(expected),
        }
        try:
            await js.publish(
                self._meta_subject(str(info["name"])), json.dumps(info).encode(), stream=self._stream, headers=headers
            )
        except BadRequestError as error:
            if error.err_code != WRONG_LAST_SEQUENCE:
                raise
            return False
        return True

    # ---- reading

    def _bring(self, key: str) -> Iterator[bytes]:
        meta = self._connection.run(partial(self._meta, key))
        if meta.is_deleted:
            raise missing(key, f"the bucket `{self._bucket}` has no such object")
        last = 0
        for _ in range(meta.pieces):
            found = self._connection.run(partial(self._piece, meta.nuid, last))
            if found is None:
                return
            last, piece = found
            yield piece

    async def _piece(self, nuid: str, last: int, js: JetStreamContext) -> tuple[int, bytes] | None:
        """The next piece after the message `last`. A replica that does not have it yet is not believed, but the leader is."""
        for is_direct in (True, False):
            with suppress(NotFoundError):
                message = await js.get_msg(
                    self._stream, seq=last + 1, subject=self._pieces(nuid), next=True, direct=is_direct
                )
                return message.seq or 0, message.data or b""
        return None

    async def _is_whole(self, js: JetStreamContext, meta: Meta) -> bool:
        digest = hashlib.sha256()
        last = 0
        for _ in range(meta.pieces):
            found = await self._piece(meta.nuid, last, js)
            if found is None:
                return False
            last, piece = found
            digest.update(piece)
        return digest.hexdigest() == checksum_of(meta.name)

    async def _meta(self, key: str, js: JetStreamContext) -> Meta:
        try:
            return _meta_of(await js.get_last_msg(self._stream, self._meta_subject(key)))
        except NotFoundError:
            return ABSENT

    async def _next_meta(self, last: int, js: JetStreamContext) -> Meta | None:
        try:
            return _meta_of(await js.get_msg(self._stream, seq=last + 1, subject=f"$O.{self._bucket}.M.>", next=True))
        except NotFoundError:
            return None

    # ---- removing

    def _remove(self, key: str) -> None:
        self._remove_unless_put_again(key, float("inf"))

    def _remove_unless_put_again(self, key: str, seen: float) -> bool:
        return self._connection.run(partial(self._delete, key, seen))

    async def _delete(self, key: str, seen: float, js: JetStreamContext) -> bool:
        for _ in range(ATTEMPTS):
            meta = await self._meta(key, js)
            if meta.is_deleted or meta.seen > seen:
                return False
            if await self._publish(js, meta.sequence, _info(self._bucket, key, meta.nuid, 0, 0, is_deleted=True)):
                await js.purge_stream(self._stream, subject=self._pieces(meta.nuid))
                await self._forget(js, key)
                return True
        raise Unavailable(f"the result `{key}` could not be deleted: others put it all the time")

    async def _forget(self, js: JetStreamContext, key: str) -> None:
        """The message that says a result is deleted need not stay; it goes by its number, which a result put since has not."""
        meta = await self._meta(key, js)
        if meta.sequence and meta.is_deleted:
            with suppress(NotFoundError):
                await js.delete_msg(self._stream, meta.sequence)

    async def _piece_subjects(self, offset: int, js: JetStreamContext) -> list[str]:
        asked: JsonMap = {"subjects_filter": f"$O.{self._bucket}.C.>", "offset": offset}
        answer = await self._connection.ask(f"STREAM.INFO.{self._stream}", asked)
        subjects = answer.get("state", {}).get("subjects") or {}
        return list(subjects)

    async def _purge_orphans(self, subject: str, older_than: float, js: JetStreamContext) -> None:
        """Remove pieces that are old and named by no result; those of other programs in this bucket are none of ours."""
        with suppress(NotFoundError):
            piece = await js.get_last_msg(self._stream, subject)
            key = (piece.headers or {}).get(KEY_HEADER)
            if key is None or piece.time is None or piece.time.timestamp() >= older_than:
                return
            meta = await self._meta(key, js)
            if meta.is_deleted or self._pieces(meta.nuid) != subject:
                await js.purge_stream(self._stream, subject=subject)

    # ---- the bucket

    async def _make_bucket(self, js: JetStreamContext) -> None:
        try:
            await js.stream_info(self._stream)
        except NotFoundError:
            await js.create_object_store(
                self._bucket,
                description="results of penstock",
                storage=api.StorageType.FILE,
                replicas=self._replicas,
            )

    def _pieces(self, nuid: str) -> str:
        return f"$O.{self._bucket}.C.{nuid}"

    def _meta_subject(self, key: str) -> str:
        return f"$O.{self._bucket}.M.{base64.urlsafe_b64encode(key.encode()).decode()}"


def _info(bucket: str, key: str, nuid: str, size: int, count: int, *, is_deleted: bool = False) -> JsonMap:
    """A meta message as every client of the object store reads it."""
    digest = base64.urlsafe_b64encode(bytes.fromhex(checksum_of(key))).decode()
    return {
        "name": key,
        "bucket": bucket,
        "nuid": nuid,
        "size": size,
        "chunks": count,
        "digest": "" if is_deleted else f"SHA-256={digest}",
        "mtime": datetime.now(UTC).isoformat(),
        "deleted": is_deleted,
        "options": {"max_chunk_size": PIECE_BYTES},
    }


def _meta_of(message: api.RawStreamMsg) -> Meta:
    try:
        info = json.loads(message.data or b"{}")
        seen = message.time.timestamp() if message.time else 0.0
        is_deleted = bool(info.get("deleted"))
        figures = int(info["chunks"] or 0), is_deleted, int(info.get("size") or 0)
        return Meta(message.seq or 0, seen, str(info["name"]), str(info["nuid"]), *figures)
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"the message {message.seq} of `{message.subject}` is not one of an object store") from error
